//! Tests the HTTP interface: access, errors, and agreement with the OpenAPI description.

use crate::daemon::{Daemon, Folder, connect_greeted, connect_switch, start_refused, status_and_body};
use rustix::process::Signal;

#[test]
fn http_is_for_those_who_are_meant() {
    assert!(start_refused(&["--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"]).contains("--http-insecure"));
    let controller = Daemon::start(&["--http-host", "sdn.example"]);
    let _switch = connect_greeted(&controller.switches);
    for host in ["localhost", "127.0.0.1:80", "sdn.example"] {
        assert!(controller.get("/health", host).starts_with("HTTP/1.1 200"), "{host}");
    }
    assert!(controller.get("/health", "evil.example").starts_with("HTTP/1.1 421"));
    assert!(controller.get("/nothing", "localhost").starts_with("HTTP/1.1 404"));
    let metrics = controller.get("/metrics", "localhost");
    assert!(metrics.contains("text/plain; version=0.0.4"));
    assert!(
        metrics
            .contains("# TYPE beehive_switch_packet_ins_total counter\nbeehive_switch_packet_ins_total 0\n")
    );
    assert!(metrics.contains("\nbeehive_connections 1\n"), "{metrics}");
    let status = controller.get("/api/v1/status", "localhost");
    let body = status.split("\r\n\r\n").nth(1).expect("a body");
    let json: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(json["switches"].as_array().map(Vec::len), Some(1));
    assert_eq!(json["hive"]["apps"][1]["name"], "learning-switch");

    assert!(controller.end(Signal::TERM).0);
}

#[test]
fn requests_that_are_wrong_are_told_so() {
    let controller = Daemon::start(&[]);
    let code = |answer: &str| -> String {
        let body = answer.split("\r\n\r\n").nth(1).expect("a body");
        let json: serde_json::Value = serde_json::from_str(body).expect("JSON");
        json["error"]["code"].as_str().expect("a code").to_string()
    };

    for (path, status, name) in [
        ("/api/v1/flows?switch=zz", "400", "bad_request"),
        ("/api/v1/flows?swich=1", "400", "bad_request"),
        ("/api/v1/ports?switch=1", "404", "unknown_switch"),
        ("/api/v1/flows?switch=1", "404", "unknown_switch"),
    ] {
        let answer = controller.get(path, "localhost");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        assert_eq!(code(&answer), name, "{path}");
    }

    let post = |origin: &str| {
        let head = "POST /api/v1/flows/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n";
        controller.ask(&format!("{head}{origin}Connection: close\r\n\r\n"))
    };

    assert!(post("").starts_with("HTTP/1.1 200"));
    let refused = post("Origin: http://127.0.0.1:8653\r\n");
    assert!(refused.starts_with("HTTP/1.1 403") && code(&refused) == "foreign_origin", "{refused}");
    assert!(controller.get("/api/v1/flows/verify", "localhost").starts_with("HTTP/1.1 405"));
}

#[test]
fn what_no_app_knows_is_said_with_what_to_do() {
    let controller = Daemon::start(&[]);
    for (path, app) in [("/api/v1/links", "discovery"), ("/api/v1/hosts", "hosts")] {
        let answer = controller.get(path, "localhost");
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(
            answer.contains("\"app_not_running\"") && answer.contains(&format!("--app {app}")),
            "{answer}"
        );
        let answer = controller.get(&format!("{path}?switch=xyz"), "localhost");
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }

    assert!(controller.end(Signal::TERM).0);
}

/// Fetches the OpenAPI description.
pub(crate) fn description(controller: &Daemon) -> serde_json::Value {
    let (status, body) = status_and_body(&controller.get("/api/v1/openapi.json", "localhost"));
    assert_eq!(status, "200");
    serde_json::from_str(&body).expect("JSON")
}

/// Validates an answer of an operation against the schema for its status.
pub(crate) fn is_as_described(
    description: &serde_json::Value,
    operation: &serde_json::Value,
    status: &str,
    value: &serde_json::Value,
) -> Result<(), String> {
    let schema = &operation["responses"][status]["content"]["application/json"]["schema"];
    if schema.is_null() {
        return Err(format!("nothing is said of JSON with status {status}"));
    }
    let whole = serde_json::json!({ "allOf": [schema], "components": description["components"] });
    let schema = jsonschema::validator_for(&whole).map_err(|error| error.to_string())?;
    schema.validate(value).map_err(|error| format!("{error} at {}", error.instance_path))
}

#[test]
fn every_path_is_described_and_every_answer_is_as_described() {
    let folder = Folder::new("described");
    let file = folder.file("beehive.toml", "", 0o600);
    let controller = Daemon::start(&["--app", "learning-switch,hosts", "--config", &file]);
    let _switch = connect_switch(&controller.switches, 7);
    let description = description(&controller);
    assert_eq!(description["openapi"], "3.1.0");

    let names = [
        "status",
        "switches",
        "ports",
        "links",
        "hosts",
        "flows",
        "flows/verify",
        "top",
        "dead-letters",
        "dead-letters/resend",
        "reload",
        "openapi.json",
    ];
    let mut known: Vec<String> = names.iter().map(|name| format!("/api/v1/{name}")).collect();
    known.extend(["/health".into(), "/metrics".into()]);
    let paths = description["paths"].as_object().expect("paths");
    assert_eq!(paths.len(), known.len(), "{:?}", paths.keys());

    for path in &known {
        let operations = paths[path].as_object().expect("described");
        assert!(!operations.is_empty(), "{path}");
        for (method, operation) in operations {
            // the summary must be a single line
            let is_summary = |words: &str| !words.is_empty() && !words.contains('\n');
            assert!(operation["summary"].as_str().is_some_and(is_summary), "{path}");
            let ask = |path: &str, host: &str| {
                let head = format!("{} {path} HTTP/1.1\r\nHost: {host}\r\n", method.to_uppercase());
                status_and_body(
                    &controller.ask(&format!("{head}Content-Length: 0\r\nConnection: close\r\n\r\n")),
                )
            };

            let is_text = matches!(path.as_str(), "/health" | "/metrics");
            for (asked, host) in [
                (path.clone(), "localhost"),
                (format!("{path}?switch=7"), "localhost"),
                (format!("{path}?switch=8"), "localhost"),
                (format!("{path}?nonsense=1"), "localhost"),
                (path.clone(), "evil.example"),
            ] {
                let (status, body) = ask(&asked, host);
                if is_text && status == "200" {
                    continue;
                }

                let value: serde_json::Value = serde_json::from_str(&body).expect("JSON");
                is_as_described(&description, operation, &status, &value)
                    .unwrap_or_else(|why| panic!("{asked}: {status}: {why}: {body}"));

                // all fields are required
                for key in value.as_object().expect("an object").keys().filter(|_| !path.ends_with("json")) {
                    let mut less = value.clone();
                    less.as_object_mut().expect("an object").remove(key);
                    assert!(
                        is_as_described(&description, operation, &status, &less).is_err(),
                        "{asked}: {key}"
                    );
                }
            }
        }

        let wrong =
            controller.ask(&format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
        assert!(status_and_body(&wrong).1.contains("\"wrong_method\""), "{wrong}");
    }

    assert!(status_and_body(&controller.get("/api/v2", "localhost")).1.contains("\"unknown_path\""));
}
