//! Tests reloading the configuration file of a running controller: by SIGHUP, over HTTP and by `beehive reload`.

use crate::daemon::{Daemon, Folder, run_client, status_and_body};
use crate::http_api::{description, is_as_described};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const NAME: &str = "beehive.toml";

/// Returns the version of the settings of the learning switch, which each change increments.
fn version(controller: &Daemon) -> u32 {
    let status = controller.get("/api/v1/status", "localhost");
    let app = status.split("\"name\":\"learning-switch\",\"settings_version\":").nth(1).expect("is there");
    app.split(',').next().and_then(|version| version.parse().ok()).expect("a number")
}

#[test]
fn a_hang_up_has_the_file_read_again_and_a_mistake_in_it_changes_nothing() {
    let folder = Folder::new("hang-up");
    let write = |text: &str| folder.file(NAME, text, 0o600);
    let file = write("[apps.learning-switch]\nage_s = 100\n");
    let controller = Daemon::start(&["--config", &file]);
    let version = || version(&controller);
    let hang_up = || kill_process(Pid::from_child(&controller.child), Signal::HUP).expect("is running");

    let until = |wanted: u32| {
        let began = Instant::now();
        while version() != wanted {
            assert!(began.elapsed() < Duration::from_secs(20), "still {} and not {wanted}", version());
            std::thread::sleep(Duration::from_millis(10));
        }
    };

    assert_eq!(version(), 1);
    write("[controller]\nhandshake_ms = 7000\n[apps.learning-switch]\nage_s = 200\n");
    hang_up();
    until(2);
    write("[apps.learning-switch]\nage_s = 1\n");
    hang_up();
    write("[apps.learning-switch]\nage_s = 300\n");

    // the two signals may be merged into one; then the invalid file is never read
    hang_up();
    until(3);
    write("[apps.learning-switch]\nages = 1\n");
    hang_up();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(version(), 3);
    let (success, _, log) = controller.end(Signal::TERM);
    assert!(success, "{log}");
    assert!(log.contains("handshake_ms"), "{log}");

    assert!(log.contains("did you mean `age_s`?") && log.contains(&file), "{log}");
}

/// Reloads over HTTP. Returns the status and the answer, which was validated against the OpenAPI description.
fn reload(controller: &Daemon) -> (String, Value) {
    let head = "POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (status, body) = status_and_body(&controller.ask(head));
    let (value, all) = (serde_json::from_str(&body).expect("JSON"), description(controller));
    is_as_described(&all, &all["paths"]["/api/v1/reload"]["post"], &status, &value)
        .unwrap_or_else(|why| panic!("{status}: {why}: {body}"));
    (status, value)
}

#[test]
fn who_has_the_file_read_again_is_told_what_came_of_it() {
    let folder = Folder::new("reload");
    let write = |text: &str| folder.file(NAME, text, 0o600);
    let file = write("[apps.learning-switch]\nage_s = 100\n");
    let controller = Daemon::start(&["--config", &file]);
    let reloaded = |apps: &[&str], at_next_start: &[&str], without_effect: &[&str]| json!({ "apps": apps, "at_next_start": at_next_start, "without_effect": without_effect });
    assert_eq!(reload(&controller), ("200".into(), reloaded(&[], &[], &[])));
    write(
        "[controller]\nhandshake_ms = 7000\n[apps.learning-switch]\nage_s = 200\n[apps.hosts]\nage_s = 60\n",
    );
    let expected = reloaded(&["learning-switch"], &["handshake_ms"], &["hosts"]);
    assert_eq!(reload(&controller), ("200".into(), expected));
    assert_eq!(version(&controller), 2);

    for (text, place, why) in [
        ("[apps.learning-switch]\nages = 1\n", "[apps.learning-switch]", "did you mean `age_s`?"),
        ("[apps.learning-switch]\nage_s = 1\n", "[apps.learning-switch]", "1 is out of range"),
        ("[controller]\necho_misses = 0\n", "[controller]", "in `echo_misses`"),
        ("[controller\n", "line 1", "syntax error"),
        ("[controller]\nhttp_token_file = \"/nowhere/token\"\n", "/nowhere/token", "No such file"),
    ] {
        write(text);
        let (status, failed) = reload(&controller);
        let words = failed["error"]["message"].as_str().expect("words");
        assert_eq!(
            (status.as_str(), &failed["error"]["code"]),
            ("422", &"bad_configuration".into()),
            "{words}"
        );
        assert!(words.contains(place) && words.contains(why), "{text}: {words}");

        let (code, _, words) = run_client(&controller, &["reload"]);
        assert!(code == Some(1) && words.contains(place) && words.contains(why), "{text}: {words}");
    }

    assert_eq!(version(&controller), 2, "a mistake changes nothing");
    std::fs::remove_file(&file).expect("was written");
    assert_eq!(reload(&controller).0, "422");
    write("[apps.learning-switch]\nage_s = 300\n");
    let (code, words, _) = run_client(&controller, &["reload"]);
    assert_eq!((code, words.as_str()), (Some(0), "settings changed: learning-switch\n"));
    let (code, words, _) = run_client(&controller, &["reload", "--json"]);
    assert_eq!((code, serde_json::from_str(&words).ok()), (Some(0), Some(reloaded(&[], &[], &[]))));
    assert_eq!(version(&controller), 3);

    assert!(controller.end(Signal::TERM).0);
}

/// A pipe, as in `--config <(..)`, is empty at the second read, which would reset all settings.
#[test]
fn a_pipe_is_not_read_again() {
    let folder = Folder::new("pipe");
    let file = folder.file(NAME, "", 0o600);
    std::fs::remove_file(&file).expect("was written");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().expect("runs").success());
    let pour = |text: &'static str| {
        let file = file.clone();
        std::thread::spawn(move || std::fs::write(file, text))
    };

    let poured = pour("[apps.learning-switch]\nage_s = 100\n");
    let controller = Daemon::start(&["--config", &file]);
    poured.join().expect("ends").expect("is read");
    let poured = pour("");
    let (status, failed) = reload(&controller);
    let words = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(status == "422" && words.contains("not a regular file"), "{status}: {failed}");
    assert_eq!(version(&controller), 1);
    assert!(controller.end(Signal::TERM).0);
    assert_eq!(std::fs::read_to_string(&file).expect("is a pipe"), "");

    poured.join().expect("ends").expect("is read");
}

/// With another secret, discovery would lose all links.
#[test]
fn a_secret_that_the_file_no_longer_has_stays() {
    let folder = Folder::new("kept");
    let file = folder.file(NAME, "", 0o600);
    let controller = Daemon::start(&["--app", "discovery,learning-switch", "--config", &file]);
    for (text, changed) in [
        ("", json!([])),
        ("[apps.discovery]\nsecret = \"correct-horse\"\n", json!(["discovery"])),
        ("", json!([])),
    ] {
        folder.file(NAME, text, 0o600);
        let (status, told) = reload(&controller);
        assert_eq!((status.as_str(), &told["apps"]), ("200", &changed), "{text}");
    }

    assert!(controller.end(Signal::TERM).0);
}

#[test]
fn without_a_file_nothing_can_be_read_again() {
    let controller = Daemon::start(&[]);
    let (status, failed) = reload(&controller);
    assert_eq!((status.as_str(), &failed["error"]["code"]), ("409", &"no_configuration".into()));
    let (code, _, words) = run_client(&controller, &["reload"]);
    assert!(code == Some(1) && words.contains("start the controller with --config FILE"), "{words}");
}
