//! A key-value store over HTTP: axum handlers share a `Hive`, and each key is a cell.
//! `cargo run --example key_value`
#![allow(missing_docs)]

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use beehive::prelude::*;
use beehive::{MessageError, RequestError};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Message)]
#[message(reply = String)]
pub(crate) struct Get(pub(crate) String);

/// Stores a value. The answer is the number of times that the key has been written.
#[derive(Message)]
#[message(reply = u64, error = Refused)]
pub(crate) struct Put {
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Why a value is not stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Refused {
    Empty,
}

#[derive(Message)]
#[message(reply = String)]
pub(crate) struct Delete(pub(crate) String);

#[derive(App)]
pub(crate) struct Store {
    values: Dict<String, String>,
    writes: Dict<String, u64>,
}

#[handlers]
impl Store {
    // `None` passes the question on to the next app; if none answers, the request fails with `NoAnswer`
    #[rcv(sharded)]
    fn get(&mut self, Get(key): &Get) -> Option<String> {
        self.values.get(key).cloned()
    }

    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> Result<u64, Refused> {
        let writes = self.writes.entry(msg.key.clone()).or_default();
        *writes += 1;
        if msg.value.is_empty() {
            return Err(Refused::Empty); // this also undoes the count
        }
        self.values.put(msg.key.clone(), msg.value.clone());
        Ok(*writes)
    }

    #[rcv(sharded)]
    fn delete(&mut self, Delete(key): &Delete) -> Option<String> {
        self.values.remove(key)
    }
}

type Failure = (StatusCode, String);

/// Returns the status for a failure that the application does not handle itself. The text of a panic is never
/// sent to the client; it is in the log and in the dead letters.
pub(crate) fn failure<E: MessageError>(error: RequestError<E>) -> Failure {
    let status = match error {
        RequestError::Handler(_) => StatusCode::BAD_REQUEST,
        RequestError::NoAnswer { .. } => StatusCode::NOT_FOUND,
        RequestError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
        RequestError::NoApp { .. }
        | RequestError::Overloaded { .. }
        | RequestError::Limit(_)
        | RequestError::Stale(_)
        | RequestError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        // a bug: a panic, for example
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

async fn read(State(hive): State<Hive>, Path(key): Path<String>) -> Result<String, Failure> {
    hive.request(Get(key)).await.map_err(failure)
}

async fn write(hive: State<Hive>, Path(key): Path<String>, value: String) -> Result<String, Failure> {
    match hive.request(Put { key, value }).await {
        Ok(writes) => Ok(writes.to_string()),
        Err(RequestError::Handler(Refused::Empty)) => {
            Err((StatusCode::UNPROCESSABLE_ENTITY, "a value has at least one byte".into()))
        }
        Err(error) => Err(failure(error)),
    }
}

async fn erase(State(hive): State<Hive>, Path(key): Path<String>) -> Result<String, Failure> {
    hive.request(Delete(key)).await.map_err(failure)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hive = Hive::builder().app::<Store>().start()?;
    let router = Router::new().route("/{key}", get(read).put(write).delete(erase)).with_state(hive.clone());
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    let address = socket.local_addr()?;
    tokio::spawn(async move { axum::serve(socket, router).await });

    let asked = ["GET", "PUT red", "PUT blue", "GET", "PUT", "DELETE", "GET"];
    for (method, body) in asked.map(|asked| asked.split_once(' ').unwrap_or((asked, ""))) {
        println!("{method} /color {body}-> {}", ask(address, method, body).await?);
    }

    hive.stop(Duration::from_secs(1)).await;
    Ok(())
}

/// Sends one HTTP request, as curl would.
async fn ask(address: SocketAddr, method: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("{method} /color HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}", body.len());
    stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(format!("{}: {body}", head.split(' ').nth(1).unwrap_or("?")))
}
