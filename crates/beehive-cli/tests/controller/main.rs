//! The controller as a program: it starts without a flag too many, says what is wrong, answers who asks, and ends when told
//! to.

mod asked;
mod http;
mod reload;
mod running;
mod threats;

use running::{Folder, Running, greeted, joined, refused};
use rustix::process::Signal;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn sigterm_and_sigint_end_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let controller = Running::start(&[]);
        let _switch = greeted(&controller.switches);
        let _idle = TcpStream::connect(&controller.http).expect("connects");
        let (success, took, log) = controller.end(signal);
        assert!(success, "{log}");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn a_connection_without_a_word_is_a_debug_line() {
    let controller = Running::start(&[]);
    drop(TcpStream::connect(&controller.switches).expect("connects"));
    drop(greeted(&controller.switches));
    std::thread::sleep(Duration::from_millis(200));
    let (_, _, log) = controller.end(Signal::TERM);
    assert!(!log.contains("without a word"), "{log}");
    let controller = Running::start(&["--log", "debug"]);
    drop(TcpStream::connect(&controller.switches).expect("connects"));
    std::thread::sleep(Duration::from_millis(200));
    let (_, _, log) = controller.end(Signal::TERM);
    assert!(log.contains("without a word"), "{log}");
}

#[test]
fn a_port_that_is_taken_is_named_with_a_remedy() {
    let controller = Running::start(&[]);
    let words = refused(&["--listen", &controller.switches, "--http", "off"]);
    assert!(words.contains(&format!("cannot listen on {}", controller.switches)), "{words}");
    assert!(words.contains("another program does") && words.contains("ss -ltnp"), "{words}");
    let words = refused(&["--listen", "127.0.0.1:0", "--http", &controller.http]);
    assert!(words.contains(&controller.http), "{words}");
}

#[test]
fn what_is_not_known_is_refused() {
    let file = std::env::temp_dir().join(format!("beehive-controller-{}.toml", std::process::id()));
    let with = |text: &str| {
        std::fs::write(&file, text).expect("writes");
        refused(&["--config", file.to_str().expect("a name"), "--listen", "127.0.0.1:0", "--http", "off"])
    };
    assert!(with("[controller]\nlissten = []\n").contains("did you mean `listen`?"));
    assert!(with("[apps.learning-swich]\n").contains("did you mean `learning-switch`?"));
    let place = format!("{}: [apps.learning-switch]: ", file.display());
    let words = with("[apps.learning-switch]\nage = 5\n");
    assert!(words.contains(&format!("{place}there is no key `age`; did you mean `age_s`?")), "{words}");
    let words = with("[apps.learning-switch]\nage_s = 3\n");
    assert!(
        words.contains(&format!("{place}3 is out of range: it can be 4 to 131070, in `age_s`")),
        "{words}"
    );
    let words =
        with("[controller]\napps = [\"firewall\"]\n[[apps.firewall.rules]]\naction = \"deny\"\nfrm = 5\n");
    assert!(words.contains("[apps.firewall]: there is no key `frm`; did you mean `from`?"), "{words}");
    let words = with("[controller]\nidle_s = 5\napps = []\n");
    assert!(words.contains("there is no key `idle_s`"), "{words}");
    let words = with("[controller]\napps = []\n");
    assert!(words.contains(&format!("{}: [controller]: apps = [] names none", file.display())), "{words}");
    std::fs::remove_file(&file).expect("was written");
    assert!(refused(&["--app", "hubb"]).contains("did you mean `hub`?"));
    assert!(refused(&["--listen", "6653"]).contains("127.0.0.1:6653"));
    assert!(refused(&["--log", "=="]).contains("--log"));
    assert!(refused(&["--log", "warning"]).contains("--log warning: there is no such level"));
}

#[test]
fn tls_and_lists_are_refused_in_words_where_they_make_no_sense() {
    let folder = Folder::new("no-tls");
    let words = refused(&["--switch-tls-dir", folder.0.to_str().expect("a name")]);
    assert!(words.contains("cert.pem") && words.contains("No such file"), "{words}");
    assert!(refused(&["--switch-tls-bind"]).contains("--switch-tls-dir"));
    assert!(refused(&["--listen-plain", "127.0.0.1:0"]).contains("--switch-tls-dir"));
    assert!(refused(&["--switch-allow", "xyz"]).contains("--switch-allow `xyz` is no datapath identifier"));
    assert!(refused(&["--switch-allow-from", "10.0.0.0/33"]).contains("`10.0.0.0/33` is neither an address"));
}

#[test]
fn lists_of_switches_and_addresses_are_heeded() {
    let controller = Running::start(&["--switch-allow", "1,0x2a", "--switch-allow-from", "127.0.0.0/8"]);
    let _switch = joined(&controller.switches, 0x2a);
    let metrics = controller.get("/metrics", "localhost");
    assert!(metrics.contains("\nbeehive_switch_unlisted_total 0\n"), "{metrics}");
    let elsewhere = Running::start(&["--switch-allow-from", "192.0.2.7"]);
    let mut stream = TcpStream::connect(&elsewhere.switches).expect("connects");
    let mut answer = Vec::new();
    // a reset is as good as an end
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    let metrics = elsewhere.get("/metrics", "localhost");
    assert!(metrics.contains("\nbeehive_addresses_refused_total 1\n"), "{metrics}");
    let (_, _, log) = elsewhere.end(Signal::TERM);
    assert!(log.contains("its address is not one of those that may"), "{log}");
}
