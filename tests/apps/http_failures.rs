//! For each kind of failure of a request over HTTP, checks the status to which `examples/key_value.rs` maps
//! it, and that the text is never that of a panic.

use crate::key_value::failure;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use beehive::prelude::*;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SECRET: &str = "the password is bee";

#[derive(Debug, Serialize, Deserialize)]
enum No {
    NotToday,
}

/// Reads a value, or fails in the way that the key specifies.
#[derive(Message)]
#[message(reply = u64, error = No)]
struct Read(String);

/// A message that no app handles.
#[derive(Message)]
struct Unheard;

/// Emitted too often.
#[derive(Message)]
struct Noise(u64);

static RELEASED: AtomicBool = AtomicBool::new(false);

/// Releases the handlers even if the test fails. Otherwise the runtime would wait for them forever.
struct Release;
impl Drop for Release {
    fn drop(&mut self) {
        RELEASED.store(true, Ordering::Release)
    }
}

#[derive(App)]
struct Faulty {
    values: Dict<String, u64>,
}

#[handlers]
impl Faulty {
    #[rcv(sharded)]
    fn read(&mut self, Read(key): &Read, ctx: &mut Ctx) -> Result<Option<u64>, No> {
        match key.as_str() {
            "error" => return Err(No::NotToday),
            // do not call the panic hook, because its backtrace takes long
            "panic" => std::panic::resume_unwind(Box::new(SECRET.to_string())),
            "limit" => (0..1_000_000).for_each(|number| ctx.emit(Noise(number))),
            "hold" => {
                while !RELEASED.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(1))
                }
            }
            _ => {}
        }
        Ok(self.values.get(key).copied())
    }
}

async fn answer(State(hive): State<Hive>, Path(key): Path<String>) -> Result<String, (StatusCode, String)> {
    let limit = match key.as_str() {
        "hold" | "overloaded" => Duration::from_millis(200),
        _ => Duration::from_secs(20),
    };
    match key.as_str() {
        "unheard" => hive.request(Unheard).await.map(|()| String::new()).map_err(failure),
        _ => hive.request_within(limit, Read(key)).await.map(|value| value.to_string()).map_err(failure),
    }
}

/// Sends a GET request. Returns the status and the body.
async fn ask(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn each_failure_of_a_request_has_its_status_and_no_panic_reaches_a_client() {
    let release = Release;
    let hive = Hive::builder().app::<Faulty>().start().unwrap();
    let router = Router::new().route("/{key}", get(answer)).with_state(hive.clone());
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(socket, router).await });

    for (path, status, text) in [
        ("missing", 404, "no answer to"),
        ("unheard", 503, "add one with `Builder::app`"),
        ("error", 400, "NotToday"),
        ("panic", 500, "the handler panicked"),
        ("limit", 503, "emit"),
        ("hold", 504, "whether the message was handled is not known"),
    ] {
        let (got, body) = ask(address, path).await;
        assert_eq!(got, status, "{path}: {body}");
        assert!(body.contains(text) && !body.contains(SECRET), "{path}: {body}");
    }

    let letters = hive.dead_letters();
    assert!(letters.iter().any(|letter| letter.error.text() == SECRET), "the dead letter has the text");

    // `hold` holds its cell, so these messages take all credits
    while hive.try_emit(Read("hold".into())).is_ok() {}
    let (status, body) = ask(address, "overloaded").await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("overloaded") && body.contains("is not handled"), "{body}");

    drop(release);
    hive.stop(Duration::from_secs(10)).await;
    let (status, body) = ask(address, "missing").await;
    assert_eq!((status, body.as_str()), (503, "the hive has stopped"));
}
