//! Tests attacks over HTTP: rows S18 to S20 of the table of threats in SECURITY.md, including attacks by web pages.

use crate::daemon::{Daemon, Folder, connect_switch, run_client, start_refused, status_and_body};
use crate::http_api::description;
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

const SECRET: &str = "correct-horse-battery-staple";

/// Number of connections that the tests open and leave idle.
fn connections() -> usize {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 10_000 } else { 500 }
}

/// Sends a request and returns the status of the answer, even if the server closes the connection early.
fn status(controller: &Daemon, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(&controller.http).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    // the server may close the connection before it has read the whole request
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let mut some = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut some) {
        answer.extend_from_slice(&some[..count])
    }

    let text = String::from_utf8_lossy(&answer).into_owned();
    text.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {text}")).to_string()
}

fn get(path: &str, more: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n").into_bytes()
}

/// Returns all paths of the OpenAPI description with their methods.
fn operations(controller: &Daemon) -> Vec<(String, String)> {
    let description = description(controller);
    let paths = description["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, operations)| {
        operations.as_object().expect("operations").keys().map(|method| (path.clone(), method.to_uppercase()))
    });
    all.collect()
}

#[test]
fn s18_others_are_answered_with_a_token_only() {
    assert!(
        start_refused(&["--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"]).contains("--http-token-file FILE")
    );
    let folder = Folder::new("token");
    let open = folder.file("open", SECRET, 0o644);
    assert!(start_refused(&["--http-token-file", &open]).contains("chmod"));
    let short = folder.file("short", "admin", 0o600);
    let words = start_refused(&["--http-token-file", &short]);
    assert!(words.contains("16 to 1024") && !words.contains("admin"), "{words}");
    let file = folder.file("token", &format!("{SECRET}\n"), 0o600);
    let reachable = Daemon::with(&["--http", "0.0.0.0:0", "--http-token-file", &file, "--log", "trace"]);
    let without = Daemon::start(&[]);
    let port = reachable.http.rsplit(':').next().expect("a port").to_string();
    let address = format!("127.0.0.1:{port}");
    let mut asked = 0;
    for (path, method) in operations(&without) {
        let ask = |more: &str| {
            let head =
                format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
            status(&reachable, head.as_bytes())
        };

        if path == "/health" {
            assert_eq!(ask(""), "200", "whoever looks after processes has no token");
            continue;
        }

        for wrong in
            ["", "Authorization: Bearer \r\n", "Authorization: Bearer correct-horse-battery-stapl\r\n"]
        {
            assert_eq!(ask(wrong), "401", "{method} {path} {wrong}");
        }

        assert_ne!(ask(&format!("Authorization: Bearer {SECRET}\r\n")), "401", "{method} {path}");
        asked += 1;
    }

    assert!(asked > 10);
    assert!(reachable.get("/metrics", "localhost").contains("\r\nwww-authenticate: Bearer\r\n"));
    let beehive = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beehive"));
        command.args(["switches", "--http", &address]).args(more);
        command
    };

    let told = beehive(&[]).output().expect("starts");
    assert!(String::from_utf8_lossy(&told.stderr).contains("--http-token-file"), "{told:?}");
    assert!(beehive(&["--http-token-file", &file]).status().expect("starts").success());
    let told = beehive(&[]).env("BEEHIVE_HTTP_TOKEN_FILE", &file).output().expect("starts");
    assert!(told.status.success(), "{told:?}");

    let (_, _, log) = reachable.end(Signal::TERM);
    assert!(!log.contains(SECRET), "a log is read by many");
}

#[test]
fn s18_by_default_only_this_machine_reaches_it() {
    let controller = Daemon::with(&[]);
    assert!(controller.http.starts_with("127.0.0.1:"), "{}", controller.http);
    let listening =
        std::fs::read_to_string(format!("/proc/{}/net/tcp", controller.child.id())).expect("Linux");
    let port: u16 = controller.http.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    assert!(listening.contains(&format!(" 0100007F:{port:04X} 00000000:0000 0A")), "{listening}");

    // the default port is taken, so the controller uses another port, also on loopback
    let other = Daemon::with(&[]);
    assert!(other.http.starts_with("127.0.0.1:") && other.http != controller.http, "{}", other.http);
    assert!(other.get("/health", "localhost").starts_with("HTTP/1.1 200"));
}

#[test]
fn s18_no_answer_has_a_secret_in_it() {
    let folder = Folder::new("secret");
    let text = format!("[apps.discovery]\nsecret = \"{SECRET}\"\n");
    let file = folder.file("beehive.toml", &text, 0o600);
    let token = folder.file("token", SECRET, 0o600);
    let controller = Daemon::start(&[
        "--app",
        "discovery,learning-switch",
        "--config",
        &file,
        "--http-token-file",
        &token,
        "--log",
        "trace",
    ]);
    let _switch = connect_switch(&controller.switches, 7);
    let shown = format!("Authorization: Bearer {SECRET}\r\n");
    for mistake in ["", "\"\"\"", "\nsecret = 5", "\nage = 1"] {
        // every time except the first one, there is an error next to the secret
        folder.file("beehive.toml", &text.replace("\"\n", &format!("\"{mistake}\n")), 0o600);
        for (path, method) in [
            ("/api/v1/status?sizes", "GET"),
            ("/api/v1/top", "GET"),
            ("/metrics", "GET"),
            ("/api/v1/flows", "GET"),
            ("/api/v1/dead-letters", "GET"),
            ("/api/v1/openapi.json", "GET"),
            ("/api/v1/reload", "POST"),
        ] {
            let head =
                format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{shown}\r\n");
            let answer = controller.ask(&head);
            assert!(!answer.contains(SECRET), "{path}: {answer}");
        }
    }

    let (_, _, log) = controller.end(Signal::TERM);
    assert!(!log.contains(SECRET), "a log is read by many");
}

#[test]
fn s19_a_request_is_taken_as_it_is_meant_or_refused() {
    let controller = Daemon::start(&[]);
    let _switch = connect_switch(&controller.switches, 0xff);
    for name in ["ff", "FF", "0xff", "00000000000000FF", "00:00:00:00:00:00:00:Ff"] {
        let answer = controller.get(&format!("/api/v1/ports?switch={name}"), "localhost");
        assert!(answer.contains("\"switch\":\"00000000000000ff\""), "{name}: {answer}");
    }

    for (method, path, expected) in [
        ("GET", "/api/v1/ports?switch=", "400"),
        ("GET", "/api/v1/ports?switch=../1", "400"),
        ("GET", "/api/v1/ports?switch=ff&switch=1", "400"),
        ("GET", "/api/v1/ports?port=1", "400"),
        ("GET", "/api/v1/flows?drift=perhaps", "400"),
        ("GET", "/api/v1/top?most=-1", "400"),
        ("GET", "/api/v1/top?most=1001", "400"),
        ("GET", "/api/v1/top?most=99999999999999999999", "400"),
        ("POST", "/api/v1/dead-letters/resend", "400"),
        ("POST", "/api/v1/dead-letters/resend?number=1&all=true", "400"),
        ("POST", "/api/v1/dead-letters/resend?number=1e3", "400"),
        ("DELETE", "/api/v1/dead-letters?number=18446744073709551616", "400"),
        ("POST", "/api/v1/flows/verify?force=true", "400"),
        ("POST", "/api/v1/reload?config=/etc/passwd", "400"),
        // flows cannot be installed and settings cannot be changed over HTTP
        ("POST", "/api/v1/flows", "405"),
        ("PUT", "/api/v1/flows", "405"),
        ("DELETE", "/api/v1/flows", "405"),
        ("PUT", "/api/v1/reload", "405"),
        ("PATCH", "/api/v1/switches", "405"),
        ("TRACE", "/api/v1/switches", "405"),
        ("BREW", "/api/v1/switches", "405"),
        // no files are served
        ("GET", "/../../../../etc/passwd", "404"),
        ("GET", "/api/v1/%2e%2e/%2e%2e/etc/passwd", "404"),
        ("GET", "//etc/passwd", "404"),
    ] {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&controller, head.as_bytes()), expected, "{method} {path}");
    }
}

#[test]
fn s20_bodies_are_refused_before_they_are_read() {
    let controller = Daemon::start(&[]);
    let head = |length: &str| {
        format!("POST /api/v1/flows/verify HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n")
    };
    let nested = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
    let chunked =
        format!("{}{:x}\r\n{nested}\r\n0\r\n\r\n", head("Transfer-Encoding: chunked\r\n"), nested.len());

    let large = head("Content-Length: 10485760\r\n") + &"x".repeat(10 << 20);
    for request in [&large, &chunked, &(head("Content-Length: 2\r\n") + "{}")] {
        let begun = Instant::now();
        assert_eq!(status(&controller, request.as_bytes()), "413");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    // the server does not wait for a body that is announced and does not arrive
    let begun = Instant::now();
    assert_eq!(status(&controller, head("Content-Length: 1000\r\n").as_bytes()), "413");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());

    // request smuggling: two lengths, or a length and chunks
    let smuggled = head("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n");
    assert!(["400", "413"].contains(&status(&controller, smuggled.as_bytes()).as_str()));
    assert_eq!(status(&controller, head("Content-Length: 0\r\nContent-Length: 5\r\n").as_bytes()), "400");
    assert_eq!(status(&controller, head("Content-Length: 0\r\n").as_bytes()), "200");
}

#[test]
fn s20_heads_have_limits() {
    let controller = Daemon::start(&[]);
    let long = format!("X-Long: {}\r\n", "x".repeat(1 << 20));
    let many: String = (0..1_000).map(|n| format!("X-{n}: y\r\n")).collect();
    for more in [&long, &many] {
        assert_eq!(status(&controller, &get("/health", more)), "431");
    }
    let path = format!("/health?{}", "x".repeat(1 << 20));
    assert!(["414", "431"].contains(&status(&controller, &get(&path, "")).as_str()));
    assert_eq!(status(&controller, b"\0\xff\x16\x03\x01\r\n\r\n"), "400");

    assert_eq!(status(&controller, &get("/health", "")), "200");
}

#[test]
fn s20_who_is_slow_or_many_keeps_nobody_waiting() {
    let controller = Daemon::start(&[]);
    let descriptors =
        || std::fs::read_dir(format!("/proc/{}/fd", controller.child.id())).expect("Linux").count();
    let before = descriptors();

    // a client that sends its request head slowly is disconnected
    let mut slow = TcpStream::connect(&controller.http).expect("connects");
    slow.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");

    let begun = Instant::now();
    for byte in get("/health", &"X-Slow: yes\r\n".repeat(100)) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still listened to");
        let mut answer = [0; 64];
        let heard = slow.write_all(&[byte]).and_then(|()| slow.read(&mut answer));
        if !heard.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)) {
            break;
        }
    }

    assert!(begun.elapsed() > Duration::from_secs(1), "a person may type as slowly");
    // many clients that send nothing, or half a request
    let mut idle = Vec::new();
    for number in 0..connections() {
        let Ok(mut stream) = TcpStream::connect(&controller.http) else { continue };
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: ");
        }
        idle.push(stream);
        // stay below the descriptor limit of the test
        if idle.len() > 800 {
            drop(idle.drain(..100))
        }
    }

    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(status(&controller, &get("/health", "")), "200");
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "others waited: {:?}", begun.elapsed());
    assert!(descriptors() < before + 100, "{before} descriptors, then {}", descriptors());

    // a switch is served meanwhile
    let mut switch = connect_switch(&controller.switches, 7);
    switch.set_read_timeout(Some(Duration::from_secs(2))).expect("a time");
    switch.write_all(&[1, 2, 0, 8, 0, 0, 0, 77]).expect("asks");

    let mut answers = Vec::new();
    while !answers.windows(8).any(|message| message == [1, 3, 0, 8, 0, 0, 0, 77]) {
        let mut some = [0; 1024];
        let count = switch.read(&mut some).expect("an echo");
        assert!(count > 0, "the connection is over");
        answers.extend_from_slice(&some[..count]);
    }
}

#[test]
fn s20_so_many_requests_are_answered_at_the_same_time() {
    let folder = Folder::new("busy");
    let file = folder.file("beehive.toml", "[controller]\necho_interval_ms = 3600000\n", 0o600);
    let controller = Daemon::start(&["--config", &file]);
    let _silent = connect_switch(&controller.switches, 7);
    // requests for flows are answered at once as long as no switch is ready
    let connected = Instant::now();
    while !status_and_body(&controller.get("/api/v1/switches", "localhost")).1.contains("\"ready\":true") {
        assert!(connected.elapsed() < Duration::from_secs(20), "the switch is not ready");
        std::thread::sleep(Duration::from_millis(10));
    }

    // each request waits for the silent switch until its timeout
    let asking: Vec<_> = (0..32)
        .map(|_| {
            let mut stream = TcpStream::connect(&controller.http).expect("connects");
            stream.write_all(&get("/api/v1/flows", "")).expect("asks");
            stream
        })
        .collect();

    let begun = Instant::now();
    let answer = loop {
        let answer = controller.get("/api/v1/switches", "localhost");
        if status_and_body(&answer).0 != "200" || begun.elapsed() > Duration::from_secs(5) {
            break status_and_body(&answer);
        }
    };

    assert!(answer.0 == "503" && answer.1.contains("\"busy\""), "{answer:?}");
    drop(asking);
    // closed connections release their requests
    while status_and_body(&controller.get("/health", "localhost")).0 != "200" {
        assert!(begun.elapsed() < Duration::from_secs(20), "still busy");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn s20_pages_on_the_web_get_nothing() {
    let controller = Daemon::start(&[]);
    // DNS rebinding: names that resolve to this machine
    for host in ["evil.example", "evil.example:8653", "127.0.0.1.evil.example", "localhost@evil.example", ""]
    {
        assert_eq!(status_and_body(&controller.get("/api/v1/switches", host)).0, "421", "{host}");
    }

    let request = "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&controller, request.as_bytes()), "421", "no host");
    let request =
        "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&controller, request.as_bytes()), "421", "two hosts");
    let from = "Origin: https://evil.example\r\n";
    let answer = String::from_utf8(get("/api/v1/switches", from)).map(|request| controller.ask(&request));
    let answer = answer.expect("words").to_lowercase();
    assert!(answer.starts_with("http/1.1 200") && !answer.contains("access-control-"), "{answer}");
    assert!(answer.contains("x-content-type-options: nosniff") && answer.contains("cache-control: no-store"));

    for (path, method) in operations(&controller).into_iter().filter(|(_, method)| method != "GET") {
        let ask = |method: &str, more: &str| {
            let head = format!("{method} {path}?all=true HTTP/1.1\r\nHost: localhost\r\n{from}{more}\r\n");
            controller.ask(&head.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
        };
        assert!(ask(&method, "").starts_with("HTTP/1.1 403"), "{method} {path}");
        // a CORS preflight request
        let may = ask("OPTIONS", &format!("Access-Control-Request-Method: {method}\r\n")).to_lowercase();
        assert!(may.starts_with("http/1.1 405") && !may.contains("access-control-"), "{may}");
    }

    let (code, _, _) = run_client(&controller, &["switches"]);
    assert_eq!(code, Some(0));
}
