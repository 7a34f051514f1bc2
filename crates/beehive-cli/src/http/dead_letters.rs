//! `/api/v1/dead-letters`: lists messages that could not be handled, and resends or discards them.

use crate::api::{DeadLetters, Discarded, Failure, Letter, NotResent, Resent};
use crate::http::Served;
use crate::http::switches::query;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use beehive_core::{Address, DeadLetter, ErrorKind, Hive, ResendError};
use serde::Deserialize;
use utoipa::IntoParams;

/// Selects one dead letter or all dead letters.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DeadLettersQuery {
    /// Number of the dead letter.
    number: Option<u64>,
    /// Select all dead letters.
    #[serde(default)]
    all: bool,
}

impl DeadLettersQuery {
    fn numbers(&self, hive: &Hive) -> Result<Vec<u64>, Failure> {
        match (self.number, self.all) {
            (Some(number), false) => Ok(vec![number]),
            (None, true) => Ok(hive.dead_letters().iter().map(|letter| letter.number).collect()),
            _ => Err(Failure::bad_request("specify either `number=..` or `all=true`")),
        }
    }
}

fn error_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Panicked => "panicked",
        ErrorKind::Aborted => "aborted",
        ErrorKind::Unmapped => "unmapped",
        ErrorKind::Limit => "limit",
        _ => "error",
    }
}

fn to_api(hive: &Hive, letter: DeadLetter) -> Letter {
    let sender = match (letter.cause.handler, letter.cause.sender) {
        (Some((app, handler, upon)), _) => format!("{app}::{handler} on {upon}"),
        (None, Address::Io(..)) => "IO bee".to_string(),
        (None, Address::App(_)) => "app".to_string(),
        (None, Address::Outside) => "outside".to_string(),
    };

    Letter {
        number: letter.number,
        seconds_ago: hive.now().since(letter.at).as_secs(),
        app: letter.app.to_string(),
        handler: letter.handler.to_string(),
        message: letter.message.to_string(),
        can_be_sent_again: letter.can_be_sent_again(),
        bytes: letter.bytes.as_ref().map(Vec::len),
        error_kind: error_kind(letter.error.kind()).to_string(),
        error: letter.error.text().to_string(),
        chain: format!("{:016x}", letter.cause.chain),
        hops: letter.cause.hops,
        sender,
        words: letter.words,
    }
}

/// Lists the stored dead letters.
#[utoipa::path(get, path = "/api/v1/dead-letters", responses((status = 200, body = DeadLetters), Failure))]
pub(super) async fn list(State(Served { hive, .. }): State<Served>) -> Json<DeadLetters> {
    let letters = hive.dead_letters().into_iter().map(|letter| to_api(&hive, letter)).collect();
    let status = hive.status();
    Json(DeadLetters { letters, total: status.dead_letters, dropped: status.dead_letters_dropped })
}

/// Resends dead letters to the apps that failed to handle them.
#[utoipa::path(post, path = "/api/v1/dead-letters/resend", params(DeadLettersQuery), responses((status = 200, body = Resent), Failure))]
pub(super) async fn resend(
    State(Served { hive, .. }): State<Served>,
    which: Result<Query<DeadLettersQuery>, QueryRejection>,
) -> Result<Json<Resent>, Failure> {
    let which = query(which)?;
    let mut answer = Resent::default();
    for number in which.numbers(&hive)? {
        match hive.resend_dead_letter(number).await {
            Ok(()) => answer.resent.push(number),
            Err(ResendError::Unavailable) => return Err(Failure::unavailable(ResendError::Unavailable)),
            Err(why @ ResendError::Unknown { .. }) if !which.all => return Err(Failure::unknown_letter(why)),
            // the dead letter has been evicted since the list was made
            Err(ResendError::Unknown { .. }) => {}
            Err(why) => answer.not_resent.push(NotResent { number, why: why.to_string() }),
        }
    }

    Ok(Json(answer))
}

/// Discards dead letters.
#[utoipa::path(delete, path = "/api/v1/dead-letters", params(DeadLettersQuery), responses((status = 200, body = Discarded), Failure))]
pub(super) async fn discard(
    State(Served { hive, .. }): State<Served>,
    which: Result<Query<DeadLettersQuery>, QueryRejection>,
) -> Result<Json<Discarded>, Failure> {
    let which = query(which)?;
    let numbers = which.numbers(&hive)?;
    let discarded: Vec<u64> =
        numbers.into_iter().filter(|number| hive.discard_dead_letter(*number).is_some()).collect();
    match which.number {
        Some(number) if discarded.is_empty() => Err(Failure::unknown_letter(ResendError::Unknown { number })),
        _ => Ok(Json(Discarded { discarded })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::endpoint::Endpoint;
    use crate::client::request::{Method, Request};
    use crate::http::{Guard, serve};
    use beehive_core::{App, Dict, Message, handlers};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[derive(Message)]
    struct Sting {
        number: u64,
    }
    #[derive(Message)]
    #[message(reply = u64)]
    struct Stings(u64);

    static MENDED: AtomicBool = AtomicBool::new(false);

    #[derive(App)]
    struct Fragile {
        handled: Dict<u64, u64>,
    }
    #[handlers]
    impl Fragile {
        #[rcv(sharded)]
        fn sting(&mut self, msg: &Sting) {
            *self.handled.entry(msg.number).or_default() += 1;
            if !MENDED.load(Ordering::Acquire) {
                std::panic::resume_unwind(Box::new("stung"))
            }
        }
        #[rcv(sharded)]
        fn stings(&mut self, msg: &Stings) -> u64 {
            self.handled.get(&msg.0).copied().unwrap_or(0)
        }
    }

    /// Sends a request in the same way as the commands.
    async fn ask(http: &str, request: Request) -> (u16, serde_json::Value) {
        let controller = Endpoint { http: http.to_string(), http_token_file: None };
        let asked = move || request.send(&controller, Duration::from_secs(10), 1 << 20).expect("answers");
        let (status, body) = tokio::task::spawn_blocking(asked).await.expect("asks");
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    #[test]
    fn dead_letters_are_listed_resent_and_discarded_over_http() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let hive = Hive::builder().app::<Fragile>().start().expect("starts");
            let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("binds");
            let http = socket.local_addr().expect("bound").to_string();
            let (over, stopped) = tokio::sync::watch::channel(());
            let served = Served { hive: hive.clone(), directory: Arc::default(), reloader: None, data: None };
            let serving = tokio::spawn(serve(socket, served, Guard::new(Vec::new(), None), stopped));
            for number in 1..=3 {
                assert!(hive.request(Sting { number }).await.is_err());
            }
            let path = "/api/v1/dead-letters";
            let (status, listed) = ask(&http, Request::new(Method::Get, path)).await;
            assert_eq!((status, &listed["total"]), (200, &3.into()));
            let first = &listed["letters"][0];
            assert_eq!((&first["number"], &first["app"]), (&1.into(), &"fragile".into()));
            assert_eq!((&first["words"], &first["error"]), (&"{\"number\":1}".into(), &"stung".into()));
            assert_eq!(first["chain"].as_str().map(str::len), Some(16));

            // resend one, which succeeds now; discard one; resend the rest
            MENDED.store(true, Ordering::Release);
            let again = |which, value| {
                Request::new(Method::Post, "/api/v1/dead-letters/resend").with(which, Some(value))
            };
            let (status, resent) = ask(&http, again("number", "2")).await;
            assert_eq!((status, &resent["resent"]), (200, &serde_json::json!([2])));
            hive.idle().await;
            assert_eq!(hive.request(Stings(2)).await, Ok(1));
            let away = |number| Request::new(Method::Delete, path).with("number", Some(number));
            assert_eq!(ask(&http, away("1")).await.1["discarded"], serde_json::json!([1]));
            for request in [away("1"), again("number", "2")] {
                let (status, failed) = ask(&http, request).await;
                assert_eq!((status, &failed["error"]["code"]), (404, &"unknown_letter".into()));
            }

            assert_eq!(ask(&http, Request::new(Method::Delete, path)).await.0, 400, "which one?");
            assert_eq!(ask(&http, again("all", "true")).await.1["resent"], serde_json::json!([3]));
            hive.idle().await;
            assert_eq!((hive.request(Stings(3)).await, hive.request(Stings(1)).await), (Ok(1), Ok(0)));
            let (_, listed) = ask(&http, Request::new(Method::Get, path)).await;
            assert_eq!((&listed["letters"], &listed["total"]), (&serde_json::json!([]), &3.into()));
            drop(over);
            serving.await.expect("ends");

            hive.stop(Duration::from_secs(5)).await;
        })
    }
}
