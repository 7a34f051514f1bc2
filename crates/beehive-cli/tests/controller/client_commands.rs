//! Tests the commands that query a running controller.

use crate::daemon::{Daemon, Folder, answer_flow_requests, connect_switch, run, run_client, status_and_body};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

#[test]
fn top_and_provenance_tell_what_a_running_controller_does() {
    let controller = Daemon::start(&[]);
    let load = ["bench", "openflow", "--controller", &controller.switches, "--switches", "2", "--macs", "10"];
    let load = [&load[..], &["--mode", "throughput", "--of", "1.3", "--seconds"]].concat();

    // query while the load is running, because bees end when their switches leave
    let mut going_on = Command::new(env!("CARGO_BIN_EXE_beehive"));
    let going_on = going_on.args(&load).arg("60").stdout(Stdio::null()).stderr(Stdio::null());
    let mut going_on = going_on.spawn().expect("starts");
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        let (done, top, words) = run(&["top", "--http", &controller.http, "--json", "--most", "1"]);
        assert!(done, "{words}");
        let top: serde_json::Value = serde_json::from_str(&top).expect("JSON");
        let most = |what: &str| top[what].as_array().map(Vec::len);
        let handled = top["handlers"][0]["messages"].as_u64().is_some_and(|n| n > 100);
        if (most("bees"), most("pairs"), handled) == (Some(1), Some(1), true) {
            break;
        }
        assert!(Instant::now() < limit, "{top}");
        std::thread::sleep(Duration::from_millis(50))
    }

    let (done, top, words) = run(&["top", "--http", &controller.http]);
    assert!(done, "{words}");
    assert!(top.contains("learning-switch::packet_in") && top.contains("outside"), "{top}");
    going_on.kill().expect("runs");
    going_on.wait().expect("ends");
    let (done, causes, words) = run(&["provenance", "--http", &controller.http]);
    assert!(done, "{words}");
    assert!(causes.contains("all PacketOut come from learning-switch on PacketIn"), "{causes}");

    // The load has ended, so soon no handler runs during a measured second. What had arrived is handled first.
    let limit = Instant::now() + Duration::from_secs(30);
    loop {
        let (done, causes, words) =
            run(&["provenance", "--http", &controller.http, "--seconds", "1", "--json"]);
        assert!(done, "{words}");
        let causes: serde_json::Value = serde_json::from_str(&causes).expect("JSON");
        let all = causes["causes"].as_array().expect("a list");
        if all.iter().all(|cause| cause["answer"] == false) {
            break;
        }
        assert!(Instant::now() < limit, "{causes}")
    }

    assert!(controller.end(Signal::TERM).0);
}

#[test]
fn a_controller_that_is_not_there_is_said_with_a_remedy() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("an address").to_string();
    drop(socket);
    for command in ["top", "provenance"] {
        let (done, _, words) = run(&[command, "--http", &address]);
        assert!(!done && words.contains(&address) && words.contains("--http"), "{words}");
    }
}

#[test]
fn whoever_asks_a_controller_heeds_the_environment() {
    let controller = Daemon::start(&[]);
    for command in ["top", "provenance", "switches", "ports", "flows", "dead-letters"] {
        let mut asker = Command::new(env!("CARGO_BIN_EXE_beehive"));
        let Output { status, stderr, .. } =
            asker.arg(command).env("BEEHIVE_HTTP", &controller.http).output().expect("starts");
        assert!(status.success(), "{command}: {}", String::from_utf8_lossy(&stderr));
    }
    assert!(controller.end(Signal::TERM).0);
}

#[test]
fn a_proxy_of_the_environment_is_not_asked() {
    let controller = Daemon::start(&[]);
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    proxy.set_nonblocking(true).expect("a socket");

    let place = format!("http://{}", proxy.local_addr().expect("an address"));
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        let mut asker = Command::new(env!("CARGO_BIN_EXE_beehive"));
        asker.args(["switches", "--http", &controller.http]).env(name, &place);
        // the request runs in a thread, because it would never return if it went through the proxy
        let asked = std::thread::spawn(move || asker.output());

        let began = std::time::Instant::now();
        while !asked.is_finished() {
            assert!(proxy.accept().is_err(), "{name}: it sees the question, and the token");
            assert!(began.elapsed() < std::time::Duration::from_secs(20), "{name}: no answer");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }

        let Output { status, stderr, .. } = asked.join().expect("no panic").expect("starts");
        assert!(status.success(), "{name}: {}", String::from_utf8_lossy(&stderr));
    }
}

#[test]
fn what_is_not_a_controller_is_said_in_a_line() {
    use std::io::{Read, Write};
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = other.local_addr().expect("an address").to_string();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().expect("is asked");
        let _ = stream.read(&mut [0; 4096]);
        let page = "<html>\n".repeat(1_000);
        let head = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n", page.len());
        let _ = stream.write_all((head + &page).as_bytes());
    });

    let (done, _, words) = run(&["switches", "--http", &address]);
    answering.join().expect("answered");
    let says = format!("the HTTP server at {address} is not Beehive: it answers with status 404");
    assert!(!done && words.contains(&says) && words.len() < 400, "{words}");
}

#[test]
fn maps_are_shown_without_a_controller() {
    let (done, maps, _) = run(&["maps", "--app", "hub"]);
    assert!(done && maps.starts_with("hub\n") && maps.contains("stateless"), "{maps}");
    let (done, maps, _) = run(&["maps", "--json"]);
    let maps: serde_json::Value = serde_json::from_str(&maps).expect("JSON");
    assert!(done && maps.as_array().is_some_and(|apps| apps.len() >= 3), "{maps}");
}

#[test]
fn switches_and_ports_are_listed() {
    let controller = Daemon::start(&[]);
    let _switch = connect_switch(&controller.switches, 0x2a);
    let (code, table, _) = run_client(&controller, &["switches"]);
    let lines: Vec<_> = table.lines().collect();
    assert_eq!((code, lines.len()), (Some(0), 2), "{table}");
    assert!(lines[0].starts_with("SWITCH") && lines[1].starts_with("000000000000002a "), "{table}");
    assert!(lines[1].contains("OpenFlow 1.0  ready"), "{table}");
    let (_, text, _) = run_client(&controller, &["ports", "--json", "--switch", "2a"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let expected = serde_json::json!({
        "switch": "000000000000002a", "port": "2", "name": "eth", "address": "02:09:00:00:00:02", "up": true
    });
    assert_eq!((json["ports"].as_array().map(Vec::len), &json["ports"][1]), (Some(2), &expected));
    let _other = connect_switch(&controller.switches, 0x2c);
    let (_, text, _) = run_client(&controller, &["ports", "--json", "--switch", "2c"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let switches: Vec<_> =
        json["ports"].as_array().expect("ports").iter().map(|port| &port["switch"]).collect();
    assert_eq!(switches, ["000000000000002c"; 2]);
    let (code, _, words) = run_client(&controller, &["ports", "--switch", "2b"]);
    assert_eq!(code, Some(1));

    assert!(words.contains("unknown switch 000000000000002b"), "{words}");
}

#[test]
fn a_switch_that_does_not_tell_its_flows_is_named() {
    let controller = Daemon::start(&[]);
    let _switch = connect_switch(&controller.switches, 7);
    let (code, table, words) = run_client(&controller, &["flows"]);
    assert_eq!(code, Some(0), "{words}");
    assert!(table.contains("0000000000000007 did not report its flows in time"), "{table}");
}

#[test]
fn flows_of_a_switch_that_does_not_tell_are_unknown_and_that_is_drift() {
    let controller = Daemon::start(&["--app", "firewall,learning-switch"]);
    let _switch = connect_switch(&controller.switches, 7);
    let (code, text, _) = run_client(&controller, &["flows", "--drift", "--json"]);
    assert_eq!(code, Some(3), "what is not told cannot be said to be right: {text}");
    let flows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(flows["unread"], serde_json::json!(["0000000000000007"]));
    let flows = flows["flows"].as_array().expect("flows");
    let guard = flows.iter().find(|flow| flow["app"] == "firewall").expect("what should be there is told");
    assert_eq!((&guard["state"], &guard["cause"]), (&"unknown".into(), &"NodeJoined".into()));
}

#[test]
fn flows_are_listed_in_the_syntax_of_ovs_ofctl() {
    let controller = Daemon::start(&["--app", "firewall,learning-switch"]);
    answer_flow_requests(connect_switch(&controller.switches, 7));
    let (code, text, words) = run_client(&controller, &["flows", "--ofctl"]);
    assert_eq!(code, Some(0), "{words}");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("# switch 0000000000000007"), "{text}");

    let flow = lines.find(|line| line.contains("firewall")).unwrap_or_else(|| panic!("no flow in {text}"));
    let (flow, comment) = flow.split_once("  # ").expect("a comment");
    assert!(comment.contains("firewall, NodeJoined"), "{comment}");
    let flow = beehive_of::text::Flow::parse(flow, beehive_of::Version::V1_0).expect("ovs-ofctl reads it");
    assert_eq!((flow.priority, flow.cookie >> 48), (1_000, 0xbee1));

    let (_, json, _) = run_client(&controller, &["flows", "--ofctl", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(
        json["flows"][0]["ofctl"].as_str().is_some_and(|flow| flow.starts_with("cookie=0xbee1")),
        "{json}"
    );

    let (_, json, _) = run_client(&controller, &["flows", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["flows"][0]["ofctl"].is_null(), "{json}");
}

#[test]
fn switches_that_do_not_tell_their_flows_keep_the_others_from_nothing() {
    let folder = Folder::new("silent");
    // switches that answer no echo requests stay connected
    let file = folder.file("beehive.toml", "[controller]\necho_interval_ms = 3600000\n", 0o600);
    let controller = Daemon::start(&["--config", &file]);

    // more switches than the controller queries concurrently
    let silent: Vec<_> = (1..=20).map(|datapath| connect_switch(&controller.switches, datapath)).collect();
    for datapath in [0xa1, 0xa2] {
        answer_flow_requests(connect_switch(&controller.switches, datapath));
    }
    let (code, text, words) = run_client(&controller, &["flows", "--json"]);
    assert_eq!(code, Some(0), "{words}");
    let flows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let names: Vec<_> = (1..=20).map(|datapath: u64| format!("{datapath:016x}")).collect();
    assert_eq!(flows["unread"], serde_json::json!(names));

    // it is unknown whether the flows of these switches are as intended, which counts as drift
    assert_eq!(run_client(&controller, &["flows", "--drift", "--switch", "1"]).0, Some(3));
    let (code, text, _) = run_client(&controller, &["flows", "--drift", "--json", "--switch", "a1"]);
    let flows: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, &flows["unread"]), (Some(0), &serde_json::json!([])), "it was asked alone");
    let head = "POST /api/v1/flows/verify HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let verified: serde_json::Value =
        serde_json::from_str(&status_and_body(&controller.ask(head)).1).expect("JSON");
    let switches = verified["switches"].as_array().expect("switches");
    let verified: Vec<_> = switches.iter().filter_map(|switch| switch["switch"].as_str()).collect();
    assert_eq!(verified, ["00000000000000a1", "00000000000000a2"]);

    drop(silent);
}

#[test]
fn whoever_watches_goes_on_when_the_controller_comes() {
    let place = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let place = place.expect("a free port").to_string();
    let mut watching = Command::new(env!("CARGO_BIN_EXE_beehive"))
        .args(["switches", "--json", "--watch", "1", "--http", &place])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut words = BufReader::new(watching.stderr.take().expect("piped"));
    let mut line = String::new();
    words.read_line(&mut line).expect("words");
    assert!(line.contains("no controller answers"), "{line}");
    let controller = Daemon::with(&["--http", &place]);
    let lines = BufReader::new(watching.stdout.take().expect("piped")).lines();
    let told: Vec<_> = lines.take(2).map(|line| line.expect("words")).collect();
    assert_eq!(told, ["{\"switches\":[]}"; 2]);
    watching.kill().and_then(|()| watching.wait()).expect("was running");

    assert!(controller.end(Signal::TERM).0);
}

#[test]
fn nobody_there_is_said_with_the_address() {
    let (done, _, words) = run(&["switches", "--http", "127.0.0.1:1"]);
    assert!(!done && words.contains("no controller answers at 127.0.0.1:1"), "{words}");
    for wrong in ["off", "127.0.0.1", "nonsense"] {
        let (done, _, words) = run(&["switches", "--http", wrong]);
        assert!(!done && words.contains("such as 127.0.0.1:8653"), "{words}");
    }
}
