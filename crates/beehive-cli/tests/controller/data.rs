//! A controller that keeps its state in a folder.

use crate::daemon::{Daemon, Folder, connect_switch, run, start_refused, status_and_body};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const FLOOD: u16 = 0xfffb;

/// Sends a packet from one station to another into a port of an OpenFlow 1.0 switch. Returns the port to which the
/// controller sends it. Answers the controller's own requests meanwhile.
fn sent_to(switch: &mut TcpStream, source: u8, destination: u8, port: u8) -> u16 {
    let data =
        [&[2, 0, 0, 0, 0, destination][..], &[2, 0, 0, 0, 0, source], &[0x12, 0x34], &[7; 50]].concat();
    let length = 18 + data.len() as u8;
    let head = [1, 10, 0, length, 0, 0, 0, 9, 255, 255, 255, 255, 0, data.len() as u8, 0, port, 0, 0];
    switch.write_all(&[&head[..], &data].concat()).expect("sends a packet");
    switch.set_read_timeout(Some(Duration::from_secs(10))).expect("is a socket");

    loop {
        let mut head = [0; 8];
        switch.read_exact(&mut head).expect("an answer");
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 8];
        switch.read_exact(&mut body).expect("a whole message");
        let answer: &[u8] = match head[1] {
            2 => &[1, 3, 0, 8],
            16 => &[1, 17, 0, 12],
            18 => &[1, 19, 0, 8],
            // packet-out: the first action is an output
            13 => return u16::from_be_bytes([body[12], body[13]]),
            _ => continue,
        };
        let body: &[u8] = if head[1] == 16 { &[0, 1, 0, 0] } else { &[] };
        switch.write_all(&[answer, &head[4..], body].concat()).expect("answers")
    }
}

fn state(controller: &Daemon) -> serde_json::Value {
    let (_, body) = status_and_body(&controller.get("/api/v1/status", "localhost"));
    let json: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    json["state"].clone()
}

/// Lets a controller learn a station, kills it, and starts it again. Returns where the new one sends a packet for the
/// station, and the state that both report.
fn after_kill_9(arguments: &[&str]) -> (u16, [serde_json::Value; 2]) {
    let mut controller = Daemon::start(arguments);
    let mut switch = connect_switch(&controller.switches, 7);
    assert_eq!(sent_to(&mut switch, 1, 255, 1), FLOOD, "nobody knows the destination");
    let before = state(&controller);
    controller.child.kill().expect("it runs");
    controller.child.wait().expect("it ends");

    let controller = Daemon::start(arguments);
    let mut switch = connect_switch(&controller.switches, 7);
    (sent_to(&mut switch, 2, 1, 2), [before, state(&controller)])
}

#[test]
fn a_controller_goes_on_where_it_was_killed() {
    let folder = Folder::new("data");
    let data = folder.0.join("state").to_str().expect("words").to_string();
    let (port, [before, after]) = after_kill_9(&["--data", &data]);
    assert_eq!(port, 1, "the station is known");
    assert_eq!((&before["kept"], &after["kept"]), (&"on_disk".into(), &"on_disk".into()));
    assert_eq!((&before["starts"], &after["starts"]), (&1.into(), &2.into()));
    assert!(before["entries"].as_u64() > Some(0) && after["failed"].is_null(), "{before} {after}");

    let (success, verified, errors) = run(&["data", "verify", &data]);
    assert!(
        success && verified.contains(" entries in ") && verified.contains(": whole\n"),
        "{verified}{errors}"
    );
    let (success, shown, errors) = run(&["data", "show", &data]);
    assert!(
        success && shown.starts_with("hive 0, 2 starts") && shown.contains("learning-switch"),
        "{shown}{errors}"
    );
}

#[test]
fn without_a_folder_state_is_in_memory_and_the_controller_says_so() {
    let (port, [before, _]) = after_kill_9(&[]);
    assert_eq!((port, &before["kept"]), (FLOOD, &"in_memory".into()));

    let mut child =
        crate::daemon::beehive(&["--listen", "127.0.0.1:0", "--http", "off"]).spawn().expect("starts");
    let mut banner = Vec::new();
    let mut output = child.stdout.take().expect("piped");
    while !String::from_utf8_lossy(&banner).contains("mininet") {
        let mut some = [0; 512];
        let count = output.read(&mut some).expect("a banner");
        assert!(count > 0, "the banner ends");
        banner.extend_from_slice(&some[..count])
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let banner = String::from_utf8(banner).expect("words");
    assert!(
        banner.contains("  state in memory only: a restart loses it (--data DIR keeps it)\n"),
        "{banner}"
    );
}

#[test]
fn a_folder_that_cannot_be_used_is_refused() {
    let folder = Folder::new("data");
    let data = folder.0.to_str().expect("words").to_string();
    let start = ["--listen", "127.0.0.1:0", "--http", "off", "--data", &data];
    let controller = Daemon::start(&["--data", &data]);
    assert!(start_refused(&start).contains("the folder is in use; stop the other process"));
    drop(controller);

    let segment = folder.0.join("log-00000000000000000001");
    let mut bytes = std::fs::read(&segment).expect("a segment");
    bytes[60] ^= 1;
    std::fs::write(&segment, bytes).expect("writes");
    let words = start_refused(&start);
    assert!(
        words.contains("log-00000000000000000001: damaged at byte 56: the checksum of a record"),
        "{words}"
    );
    let (success, _, errors) = run(&["data", "verify", &data]);
    assert!(!success && errors.contains("damaged at byte 56"), "{errors}");

    let other = Folder::new("data");
    other.file("notes.txt", "mine", 0o600);
    let words = start_refused(&["--listen", "127.0.0.1:0", "--data", other.0.to_str().expect("words")]);
    assert!(words.contains("`notes.txt`, but no hive"), "{words}");
}

#[test]
fn a_backup_made_while_the_controller_runs_is_restored_into_a_new_folder() {
    let folder = Folder::new("backup");
    let path = |name: &str| folder.0.join(name).to_str().expect("words").to_string();
    let (data, backup, new) = (path("state"), path("backup"), path("new"));
    let mut controller = Daemon::start(&["--data", &data]);
    let mut switch = connect_switch(&controller.switches, 7);
    assert_eq!(sent_to(&mut switch, 1, 255, 1), FLOOD);
    let (success, exported, errors) = run(&["data", "export", &data, &backup]);
    assert!(success && exported.contains(" bytes, hive 0\n"), "{exported}{errors}");
    controller.child.kill().expect("it runs");
    controller.child.wait().expect("it ends");

    let (success, _, errors) = run(&["data", "export", &data, &backup]);
    assert!(!success && errors.contains("name another file"), "{errors}");
    let (success, restored, errors) = run(&["data", "restore", &backup, &new]);
    assert!(success && restored.contains("which begins with term 65538\n"), "{restored}{errors}");
    let (success, verified, errors) = run(&["data", "verify", &new]);
    assert!(success && verified.contains(": whole\n"), "{verified}{errors}");

    let controller = Daemon::start(&["--data", &new]);
    let mut switch = connect_switch(&controller.switches, 7);
    assert_eq!(sent_to(&mut switch, 2, 1, 2), 1, "the station is known");
    assert_eq!(state(&controller)["starts"], 65_538)
}

/// Unmounts a file system when it is dropped.
struct Mounted<'a>(&'a std::path::Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// Needs root, for a small file system; without it, prints `SKIPPED`.
#[test]
fn a_full_disk_holds_changes_up_and_keeps_the_switches_connected() {
    let folder = Folder::new("full");
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "none"])
        .arg(&folder.0)
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: mounting a file system needs root");
        return;
    }
    let _mounted = Mounted(&folder.0);
    let data = folder.0.join("state").to_str().expect("words").to_string();
    let controller = Daemon::start(&["--data", &data]);
    let mut switch = connect_switch(&controller.switches, 7);
    assert_eq!(sent_to(&mut switch, 1, 255, 1), FLOOD);

    let filler = folder.0.join("filler");
    let mut file = std::fs::File::create(&filler).expect("a file");
    let mut part = vec![7; 1 << 16];
    while !part.is_empty() {
        if file.write_all(&part).is_err() {
            part.truncate(part.len() / 2)
        }
    }
    // a file that is open keeps its space when it is removed
    drop(file);
    // new stations, until what they change no longer fits
    let began = std::time::Instant::now();
    let mut station = 0u16;
    while state(&controller)["held_up"].is_null() {
        assert!(began.elapsed() < Duration::from_secs(60), "the disk is full");
        for _ in 0..32 {
            station += 1;
            let [high, low] = station.to_be_bytes();
            let data =
                [&[2, 0, 0, 0, 0, 255][..], &[2, 0, 0, 1, high, low], &[0x12, 0x34], &[7; 50]].concat();
            let head = [1, 10, 0, 82, 0, 0, 0, 9, 255, 255, 255, 255, 0, data.len() as u8, 0, 1, 0, 0];
            switch.write_all(&[&head[..], &data].concat()).expect("stays connected")
        }
        std::thread::sleep(Duration::from_millis(50))
    }

    // the connection lives: an echo request is answered, and a second switch is set up
    assert!(echoed(&mut switch), "the switch stays connected");
    let before = state(&controller);
    assert!(before["failed"].is_null(), "{before}");
    std::fs::remove_file(&filler).expect("it is there");
    let began = std::time::Instant::now();
    while !state(&controller)["held_up"].is_null() {
        assert!(began.elapsed() < Duration::from_secs(60), "the log goes on");
        std::thread::sleep(Duration::from_millis(50))
    }
    assert!(echoed(&mut switch));
    // the answers to the packets that waited come first
    let is_known = (0..4_000).any(|_| sent_to(&mut switch, 2, 1, 2) == 1);
    assert!(is_known, "the first station is still known, and its answer comes")
}

/// Sends an echo request. Returns whether it is answered. Answers the controller's own requests meanwhile.
fn echoed(switch: &mut TcpStream) -> bool {
    switch.write_all(&[1, 2, 0, 8, 0, 0, 0x77, 0x77]).expect("stays connected");
    switch.set_read_timeout(Some(Duration::from_secs(10))).expect("is a socket");
    loop {
        let mut head = [0; 8];
        if switch.read_exact(&mut head).is_err() {
            return false;
        }
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]])) - 8];
        switch.read_exact(&mut body).expect("a whole message");
        match head[1] {
            3 if head[4..] == [0, 0, 0x77, 0x77] => return true,
            2 => switch.write_all(&[&[1, 3, 0, 8], &head[4..]].concat()).expect("answers"),
            _ => {}
        }
    }
}
