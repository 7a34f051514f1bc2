//! The app of `beehive cluster`: it keeps the values of keys. And its HTTP interface.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use beehive_core::{App, Dict, Hive, Message, RequestError, handlers};

#[derive(Message)]
#[message(reply = String)]
struct Get(String);

/// Stores a value. The answer is how often the key has been written.
#[derive(Message)]
#[message(reply = u64)]
struct Put {
    key: String,
    value: String,
}

#[derive(App)]
pub(super) struct Store {
    values: Dict<String, String>,
    writes: Dict<String, u64>,
}

#[handlers]
impl Store {
    #[rcv(sharded)]
    fn get(&mut self, Get(key): &Get) -> Option<String> {
        self.values.get(key).cloned()
    }

    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> u64 {
        self.values.put(msg.key.clone(), msg.value.clone());
        let writes = self.writes.entry(msg.key.clone()).or_default();
        *writes += 1;
        *writes
    }
}

/// Returns the HTTP interface of a hive: `GET /KEY`, and `PUT /KEY/VALUE`.
pub(super) fn router(hive: Hive) -> Router {
    Router::new()
        .route("/{key}", get(read))
        .route("/{key}/{value}", put(write))
        .fallback(async || (StatusCode::NOT_FOUND, "unknown path (expected GET /KEY, or PUT /KEY/VALUE)\n"))
        .with_state(hive)
}

type Answer = Result<String, (StatusCode, String)>;

async fn read(State(hive): State<Hive>, Path(key): Path<String>) -> Answer {
    match hive.request(Get(key.clone())).await {
        Ok(value) => Ok(value + "\n"),
        Err(RequestError::NoAnswer { .. }) => Err((StatusCode::NOT_FOUND, format!("{key} has no value\n"))),
        Err(error) => Err(failure(error)),
    }
}

async fn write(State(hive): State<Hive>, Path((key, value)): Path<(String, String)>) -> Answer {
    match hive.request(Put { key: key.clone(), value: value.clone() }).await {
        Ok(writes) => Ok(format!("{key} = {value} (written {writes} times)\n")),
        Err(error) => Err(failure(error)),
    }
}

/// If no answer comes in time, the request may have taken effect or not.
fn failure(error: RequestError) -> (StatusCode, String) {
    let status = match error {
        RequestError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{error}\n"))
}
