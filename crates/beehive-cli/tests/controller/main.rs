//! Tests the controller as a process: start, configuration errors, HTTP interface, client commands and shutdown.

mod client_commands;
mod cluster_options;
mod daemon;
mod data;
mod http_api;
mod http_threats;
mod reload;

use daemon::{Daemon, Folder, connect_greeted, connect_switch, start_refused};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

#[test]
fn sigterm_and_sigint_end_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let controller = Daemon::start(&[]);
        let _switch = connect_greeted(&controller.switches);
        let _idle = TcpStream::connect(&controller.http).expect("connects");
        let (success, took, log) = controller.end(signal);
        assert!(success, "{log}");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn a_connection_without_a_word_is_a_debug_line() {
    let controller = Daemon::start(&[]);
    drop(TcpStream::connect(&controller.switches).expect("connects"));
    drop(connect_greeted(&controller.switches));
    std::thread::sleep(Duration::from_millis(200));
    let (_, _, log) = controller.end(Signal::TERM);
    assert!(!log.contains("no hello received"), "{log}");
    let controller = Daemon::start(&["--log", "debug"]);
    drop(TcpStream::connect(&controller.switches).expect("connects"));
    std::thread::sleep(Duration::from_millis(200));

    let (_, _, log) = controller.end(Signal::TERM);
    assert!(log.contains("no hello received"), "{log}");
}

#[test]
fn the_log_follows_a_message_from_handler_to_handler() {
    let controller = Daemon::start(&["--log", "beehive::messages=trace"]);
    let _switch = connect_switch(&controller.switches, 7);
    std::thread::sleep(Duration::from_millis(200));
    let (_, _, log) = controller.end(Signal::TERM);

    let came = log.lines().find(|line| line.contains(" emitted ") && line.contains("::NodeJoined\""));
    let chain =
        came.and_then(|line| line.split("chain=").nth(1)?.get(..16)).unwrap_or_else(|| panic!("{log}"));
    for app in ["node-controller", "learning-switch"] {
        let handled = format!("app=\"{app}\" handler=\"node_joined\"");
        let is_handled =
            |line: &str| line.contains(chain) && line.contains(&handled) && line.ends_with(": new");
        assert!(log.lines().any(is_handled), "{app} in chain {chain}:\n{log}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_a_remedy() {
    let controller = Daemon::start(&[]);
    let words = start_refused(&["--listen", &controller.switches, "--http", "off"]);
    assert!(words.contains(&format!("cannot listen on {}", controller.switches)), "{words}");
    assert!(words.contains("another program already listens there") && words.contains("ss -ltnp"), "{words}");
    let words = start_refused(&["--listen", "127.0.0.1:0", "--http", &controller.http]);
    assert!(words.contains(&controller.http), "{words}");
}

#[test]
fn what_is_not_known_is_refused() {
    let file = std::env::temp_dir().join(format!("beehive-controller-{}.toml", std::process::id()));
    let with = |text: &str| {
        std::fs::write(&file, text).expect("writes");
        start_refused(&[
            "--config",
            file.to_str().expect("a name"),
            "--listen",
            "127.0.0.1:0",
            "--http",
            "off",
        ])
    };

    assert!(with("[controller]\nlissten = []\n").contains("did you mean `listen`?"));
    assert!(with("[apps.learning-swich]\n").contains("did you mean `learning-switch`?"));
    let place = format!("{}: [apps.learning-switch]: ", file.display());
    let words = with("[apps.learning-switch]\nage = 5\n");
    assert!(words.contains(&format!("{place}unknown key `age`; did you mean `age_s`?")), "{words}");
    let words = with("[apps.learning-switch]\nage_s = 3\n");
    assert!(
        words.contains(&format!("{place}3 is out of range (expected 4 to 131070), in `age_s`")),
        "{words}"
    );
    let words =
        with("[controller]\napps = [\"firewall\"]\n[[apps.firewall.rules]]\naction = \"deny\"\nfrm = 5\n");
    assert!(words.contains("[apps.firewall]: unknown key `frm` in `rules`; did you mean `from`?"), "{words}");
    let words = with("[controller]\nidle_s = 5\napps = []\n");
    assert!(words.contains("unknown key `idle_s`"), "{words}");
    let words = with("[controller]\napps = []\n");
    assert!(words.contains(&format!("{}: [controller]: apps = [] is empty", file.display())), "{words}");
    // if a key also exists as a flag, an error about its value names the place that the value comes from
    let of = |key: &str| format!(", in `{key}`");
    for (text, why, key) in [
        ("apps = [\"hubb\"]", "unknown app `hubb`; did you mean `hub`?", "apps"),
        ("apps = [\"hub\", \"hub\"]", "app `hub` is given twice", "apps"),
        ("listen_plain = [\"nowhere\"]", "nowhere: not an address with a port", "listen_plain"),
        ("switch_tls_dir = \"/nowhere\"", "/nowhere: ", "switch_tls_dir"),
        ("switch_allow = [\"xyz\"]", "invalid datapath id `xyz`", "switch_allow"),
        ("switch_allow_from = [\"10.0.0.0/33\"]", "`10.0.0.0/33` is neither", "switch_allow_from"),
        ("http_token_file = \"/nowhere\"", "/nowhere: ", "http_token_file"),
        ("http_hosts = [\"sdn.example:80\"]", "`sdn.example:80`: not a host name", "http_hosts"),
        ("log = \"warning\"", "unknown log level `warning`", "log"),
    ] {
        let words = with(&format!("[controller]\n{text}\n"));
        let place = format!("{}: [controller]: ", file.display());
        assert!(words.contains(&place) && words.contains(why) && words.contains(&of(key)), "{text}: {words}");
    }
    let words = with(&("#".repeat(1 << 20) + "\n["));
    assert!(words.contains("the configuration file is too long"), "{words}");
    std::fs::remove_file(&file).expect("was written");

    for name in ["", "sdn.example:8653", "http://sdn.example", "sdn example"] {
        // `--log ==` keeps the controller from starting if the name is accepted
        let words = start_refused(&["--http-host", name, "--log", "=="]);
        assert!(
            words.contains("not a host name (expected a name without a port, such as sdn.example)"),
            "{words}"
        );
    }

    let words = start_refused(&["--listen", "127.0.0.1:9", "--http", "127.0.0.1:9"]);
    assert!(words.contains("127.0.0.1:9 is given twice"), "{words}");
    assert!(start_refused(&["--app", "hubb"]).contains("did you mean `hub`?"));
    assert!(start_refused(&["--listen", "6653"]).contains("127.0.0.1:6653"));
    assert!(start_refused(&["--log", "=="]).contains("--log"));

    assert!(start_refused(&["--log", "warning"]).contains("unknown log level `warning`"));
}

#[test]
fn tls_and_lists_are_refused_in_words_where_they_make_no_sense() {
    let folder = Folder::new("no-tls");
    let words = start_refused(&["--switch-tls-dir", folder.0.to_str().expect("a name")]);
    assert!(words.contains("cert.pem") && words.contains("No such file"), "{words}");
    assert!(start_refused(&["--switch-tls-bind"]).contains("--switch-tls-dir"));
    assert!(start_refused(&["--listen-plain", "127.0.0.1:0"]).contains("--switch-tls-dir"));
    assert!(start_refused(&["--switch-allow", "xyz"]).contains("--switch-allow: invalid datapath id `xyz`"));

    assert!(
        start_refused(&["--switch-allow-from", "10.0.0.0/33"])
            .contains("`10.0.0.0/33` is neither an address")
    );
}

#[test]
fn a_configuration_is_as_long_as_it_is_and_not_as_it_says() {
    let folder = Folder::new("pipe");
    let pipe = folder.0.join("beehive.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success()));
    let path = pipe.clone();

    // the controller stops reading at the maximum length, so writing the rest fails
    let saying = std::thread::spawn(move || std::fs::write(path, "#".repeat(2 << 20) + "\n["));
    let words = start_refused(&["--config", pipe.to_str().expect("a name")]);
    assert!(words.contains("the configuration file is too long"), "{words}");
    let _ = saying.join().expect("no panic");
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let folder = Folder::new("order");
    let text = "[controller]\napps = [\"hub\", \"nonsense\"]\nlisten = [\"nowhere\"]\nhttp = \"nowhere\"\n\
        echo_interval_ms = 3600000\n[apps.hosts]\nage_s = 60\n";
    let file = folder.file("beehive.toml", text, 0o600);
    let controller = Daemon::start(&["--config", &file, "--app", "learning-switch"]);
    let mut switch = connect_switch(&controller.switches, 7);

    // with the default setting an echo request arrives after a second
    switch.set_read_timeout(Some(Duration::from_millis(2500))).expect("a time");
    let asked = switch.read(&mut [0; 64]);
    assert!(asked.is_err(), "a setting of the file has no effect: {asked:?}");
    let (_, _, log) = controller.end(Signal::TERM);
    assert!(log.contains("[apps.hosts] has no effect"), "{log}");

    let words = with_environment(&["--config", &file, "--listen", "nowhere too"]);
    assert!(words.contains("--listen nowhere too"), "{words}");
}

/// Starts a controller with settings in its environment and invalid `arguments`. Returns its error message.
fn with_environment(arguments: &[&str]) -> String {
    let mut command = daemon::beehive(arguments);
    command
        .env("BEEHIVE_APP", "learning-switch")
        .env("BEEHIVE_HTTP", "off")
        .env("BEEHIVE_HTTP_INSECURE", "1");
    let output = command.output().expect("starts");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("words")
}

#[test]
fn lists_of_switches_and_addresses_are_heeded() {
    let controller = Daemon::start(&["--switch-allow", "1,0x2a", "--switch-allow-from", "127.0.0.0/8"]);
    let _switch = connect_switch(&controller.switches, 0x2a);
    let unlisted = |count: u32| {
        let metrics = controller.get("/metrics", "localhost");
        assert!(metrics.contains(&format!("\nbeehive_switch_unlisted_total {count}\n")), "{metrics}");
    };

    unlisted(0);
    let mut stranger = connect_greeted(&controller.switches);
    // features reply of switch 3, which has no ports
    let features = [&[1, 6, 0, 32, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3][..], &[0; 16]].concat();
    stranger.write_all(&features).expect("says who it is");
    let _ = stranger.read_to_end(&mut Vec::new());
    unlisted(1);
    let elsewhere = Daemon::start(&["--switch-allow-from", "192.0.2.7"]);
    let mut stream = TcpStream::connect(&elsewhere.switches).expect("connects");
    let mut answer = Vec::new();

    // the connection may be closed or reset
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    let metrics = elsewhere.get("/metrics", "localhost");
    assert!(metrics.contains("\nbeehive_addresses_refused_total 1\n"), "{metrics}");

    let (_, _, log) = elsewhere.end(Signal::TERM);
    assert!(log.contains("its address is not on the list of allowed networks"), "{log}");
}
