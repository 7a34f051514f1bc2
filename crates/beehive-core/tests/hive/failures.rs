//! Each kind of failure of a request has its own variant. No variant contains the text of a panic.

use crate::load::{EVERYWHERE, On, on_workers, start};
use beehive_core::{
    App, Ctx, Dict, Error, ErrorKind, Hive, Mapper, Message, MessageError, RequestError, handlers, limits,
};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SECRET: &str = "the password is bee";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum No {
    NotToday,
}

/// Reads a value, or fails as `end` says.
#[derive(Message)]
#[message(reply = u64, error = No)]
struct Get {
    key: u64,
    end: End,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum End {
    Well,
    Error,
    Panic,
    /// Panics with an [`Error`] as its payload.
    PanicWithError,
    Unmapped,
    Limit,
    /// Holds its thread until the key is `RELEASED`.
    Hold,
}
/// A message that apps only observe.
#[derive(Message)]
#[message(reply = u64)]
struct Observed;
/// A message that no app handles.
#[derive(Message)]
struct Unheard;
#[derive(Message)]
struct Many(u64);

/// One flag for even keys and one for odd keys, because the tests run at the same time.
static RELEASED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

#[derive(App)]
struct Store {
    values: Dict<u64, u64>,
    other: Dict<String, u64>,
}

/// A map that names fewer cells than the handler touches.
fn get_map(msg: &Get, mapper: &mut Mapper) {
    mapper.cell(Store::__bh_values, &msg.key);
}

#[handlers]
impl Store {
    #[rcv(map = get_map)]
    fn get(&mut self, msg: &Get, ctx: &mut Ctx) -> Result<Option<u64>, No> {
        match msg.end {
            End::Well => {}
            End::Error => return Err(No::NotToday),
            End::Panic => crate::load::unheard(SECRET),
            End::PanicWithError => std::panic::resume_unwind(Box::new(Error::new(SECRET))),
            End::Unmapped => drop(self.other.put(SECRET.into(), 1)),
            End::Limit => (0..=limits::EMITS_PER_TRANSACTION_MAX as u64).for_each(|n| ctx.emit(Many(n))),
            End::Hold => {
                while !RELEASED[msg.key as usize % 2].load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(1))
                }
            }
        }
        Ok(self.values.get(&msg.key).copied())
    }

    #[rcv(centralized, observes)]
    fn observed(&mut self, _: &Observed) {
        *self.values.entry(0).or_default() += 1;
    }
}

/// Checks that the error does not show a client the details that only the log and the dead letters may
/// contain.
fn says_nothing<E: MessageError>(error: &RequestError<E>) {
    assert!(!error.to_string().contains(SECRET) && !format!("{error:?}").contains(SECRET), "{error}");
}

#[test]
fn each_failure_of_a_request_is_a_variant_of_its_own() {
    for on in EVERYWHERE {
        on_workers(3, async {
            RELEASED[0].store(false, Ordering::Release);
            let (hive, _journal) = start(Hive::builder().app::<Store>(), on);
            let get = |end| hive.request(Get { key: 1, end });

            // an app handles the message, but does not answer it
            let message = <Get as Message>::NAME;
            assert_eq!(get(End::Well).await, Err(RequestError::NoAnswer { message }), "{on:?}");

            // no app can answer: no app was added for the message, or only an observer
            let (unheard, observed) = (<Unheard as Message>::NAME, <Observed as Message>::NAME);
            assert_eq!(hive.request(Unheard).await, Err(RequestError::NoApp { message: unheard }));
            assert_eq!(hive.request(Observed).await, Err(RequestError::NoApp { message: observed }));

            // the handler's own error
            assert_eq!(get(End::Error).await, Err(RequestError::Handler(No::NotToday)));
            assert!(hive.dead_letters().is_empty());

            // for bugs, only the dead letter contains the text
            for (end, error) in [
                (End::Panic, RequestError::Panicked),
                (End::PanicWithError, RequestError::Panicked),
                (End::Unmapped, RequestError::Unmapped),
            ] {
                let failed = get(end).await.unwrap_err();
                assert_eq!(failed, error, "{on:?}");
                says_nothing(&failed);
                assert_eq!(failed.kind(), hive.dead_letters().last().map(|letter| letter.error.kind()));
            }
            let letters = hive.dead_letters();
            assert!(letters.iter().take(2).all(|letter| letter.error.text() == SECRET), "{letters:?}");

            // a limit: the error names it
            let failed = get(End::Limit).await.unwrap_err();
            let RequestError::Limit(error) = &failed else { panic!("{failed:?}") };
            assert_eq!((error.kind(), failed.kind()), (ErrorKind::Limit, Some(ErrorKind::Limit)));

            // a timeout: the handler may be running
            let after = Duration::from_millis(30);
            let late = hive.request_within(after, Get { key: 2, end: End::Hold }).await;
            RELEASED[0].store(true, Ordering::Release);
            assert_eq!(late, Err(RequestError::Timeout { after }), "{on:?}");

            hive.stop(Duration::from_secs(5)).await;
            assert_eq!(get(End::Well).await, Err(RequestError::Unavailable));
        })
    }
}

#[test]
fn a_request_that_finds_no_room_is_overloaded_and_is_not_handled() {
    on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Store>(), On::Memory);

        // one message holds the cell, and the others take all credits of the hive behind it
        let mut accepted = 0;
        while hive.try_emit(Get { key: 3, end: End::Hold }).is_ok() {
            accepted += 1
        }

        let after = Duration::from_millis(50);
        let refused = hive.request_within(after, Get { key: 4, end: End::Well }).await;
        // release the handlers before any assertion can fail, because a runtime does not end before its
        // handlers
        RELEASED[1].store(true, Ordering::Release);
        assert_eq!(refused, Err(RequestError::Overloaded { after }));

        hive.idle().await;
        let status = hive.status();
        let get = status.apps[0].handlers.iter().find(|handler| handler.name == "get").unwrap();
        assert_eq!(get.messages, accepted, "the request is not handled later either");
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn an_error_keeps_its_variant_when_its_type_is_converted() {
    let error: RequestError<No> = RequestError::Handler(No::NotToday);
    assert_eq!(error.map_handler(|no| format!("{no:?}")), RequestError::Handler("NotToday".to_string()));

    let others: [RequestError<No>; 3] =
        [RequestError::Panicked, RequestError::Limit(Error::new("full")), RequestError::Unavailable];
    for error in others {
        assert_eq!(error.clone().map_handler(|_| 7).to_string(), error.to_string());
    }
}
