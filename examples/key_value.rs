//! A key-value store over HTTP: axum handlers share a `Hive`, and each key is a cell.
//! `cargo run --example key_value`
#![allow(missing_docs)]

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use beehive::RequestError;
use beehive::prelude::*;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Message)]
#[message(reply = String)]
pub(crate) struct Get(pub(crate) String);

/// Stores a value. The answer is the number of times that the key has been written.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Put {
    pub(crate) key: String,
    pub(crate) value: String,
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
    // `None` passes the question on to the next app; if no app answers, the request fails with `NoAnswer`
    #[rcv(sharded)]
    fn get(&mut self, Get(key): &Get) -> Option<String> {
        self.values.get(key).cloned()
    }

    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> Result<u64> {
        if msg.value.is_empty() {
            return Err("a value has at least one byte".into());
        }
        self.values.put(msg.key.clone(), msg.value.clone());
        Ok(self.writes.update(msg.key.clone(), |writes| {
            *writes += 1;
            *writes
        }))
    }

    #[rcv(sharded)]
    fn delete(&mut self, Delete(key): &Delete) -> Option<String> {
        self.values.remove(key)
    }
}

struct Failure(RequestError);

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        Failure(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match &self.0 {
            RequestError::NoAnswer { .. } => StatusCode::NOT_FOUND,
            RequestError::Handler(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, self.0.to_string()).into_response()
    }
}

async fn read(State(hive): State<Hive>, Path(key): Path<String>) -> Result<String, Failure> {
    Ok(hive.request(Get(key)).await?)
}

async fn write(hive: State<Hive>, Path(key): Path<String>, value: String) -> Result<String, Failure> {
    Ok(hive.request(Put { key, value }).await?.to_string())
}

async fn erase(State(hive): State<Hive>, Path(key): Path<String>) -> Result<String, Failure> {
    Ok(hive.request(Delete(key)).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hive = Hive::builder().app::<Store>().start()?;
    let router = Router::new().route("/{key}", get(read).put(write).delete(erase)).with_state(hive.clone());
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    let address = socket.local_addr()?;
    tokio::spawn(async move { axum::serve(socket, router).await });

    for (method, body) in
        [("GET", ""), ("PUT", "red"), ("PUT", "blue"), ("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "")]
    {
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
