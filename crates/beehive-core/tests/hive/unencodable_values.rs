//! Values that cannot be logged, because they cannot be encoded or are too large: only the transaction that
//! writes such a value fails, with an error that states the reason.

use crate::load::on_workers;
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Io, Message, RequestError, handlers};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn started() -> (Hive, Arc<TestJournal>) {
    let journal = TestJournal::start(9, 0, 0);
    let builder = Hive::builder().app::<Cactus>().seed(1);
    (builder.journal(journal.clone(), LogState::default()).start().unwrap(), journal)
}

#[derive(Clone, Default, PartialEq, serde::Deserialize)]
struct Prickly(u64);
impl serde::Serialize for Prickly {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == 7 {
            return Err(serde::ser::Error::custom("it will not be encoded"));
        }
        serializer.serialize_u64(self.0)
    }
}
#[derive(Message)]
struct Out(Prickly);
#[derive(Message)]
struct Inner(u64);
#[derive(Message)]
#[message(reply = u64)]
struct AskEmit(u64);
#[derive(Message)]
#[message(reply = u64)]
struct AskNested(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Large {
    key: u64,
    rows: u64,
    bytes: u64,
}
/// Counts, and stores a value.
#[derive(Message)]
#[message(reply = u64)]
struct Keep(u64);
#[derive(Message)]
struct Lately(Prickly);
#[derive(Message)]
struct Fine(u64);
/// Can be encoded, but not decoded.
#[derive(Clone, serde::Serialize)]
struct OneWay;
impl<'de> serde::Deserialize<'de> for OneWay {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<OneWay, D::Error> {
        Err(serde::de::Error::custom("it will not be decoded"))
    }
}
#[derive(Message)]
#[message(reply = u64)]
struct AskLater(Prickly, Option<OneWay>);

#[derive(App)]
struct Cactus {
    count: Dict<u64, u64>,
    large: Dict<u64, Vec<u8>>,
    prickly: Dict<u64, Prickly>,
}
#[handlers]
impl Cactus {
    #[rcv(centralized)]
    fn ask_emit(&mut self, msg: &AskEmit, ctx: &mut Ctx) -> u64 {
        *self.count.entry(1).or_default() += 1;
        ctx.emit(Out(Prickly(msg.0)));
        msg.0
    }
    #[rcv(centralized)]
    fn ask_nested(&mut self, msg: &AskNested, ctx: &mut Ctx) -> u64 {
        *self.count.entry(1).or_default() += 1;
        ctx.emit(Inner(msg.0));
        msg.0
    }
    #[rcv(joins)]
    fn keep(&mut self, msg: &Keep) -> u64 {
        *self.count.entry(msg.0).or_default() += 1;
        self.prickly.put(msg.0, Prickly(msg.0));
        msg.0
    }
    #[rcv(stateless)]
    fn inner(&mut self, msg: &Inner, ctx: &mut Ctx) {
        ctx.emit(Out(Prickly(msg.0)))
    }
    #[rcv(centralized)]
    fn out(&mut self, _msg: &Out) {
        *self.count.entry(2).or_default() += 1
    }
    #[rcv(sharded)]
    fn fine(&mut self, msg: &Fine) {
        *self.count.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) -> u64 {
        self.count.get(&msg.0).copied().unwrap_or_default()
    }
    #[rcv(joins)]
    fn large(&mut self, msg: &Large) -> u64 {
        for row in 0..msg.rows {
            self.large.put(msg.key + row, vec![1; msg.bytes as usize]);
        }
        msg.key
    }
    /// Postpones a message after a change.
    #[rcv(centralized)]
    fn ask_later(&mut self, _msg: &AskLater, ctx: &mut Ctx) -> u64 {
        *self.count.entry(3).or_default() += 1;
        ctx.emit(Fine(4));
        ctx.postpone(Duration::from_millis(1));
        0
    }
    /// Postpones a message that cannot be encoded.
    #[rcv(stateless)]
    fn lately(&mut self, _msg: &Lately, ctx: &mut Ctx) {
        ctx.postpone(Duration::from_millis(1))
    }
}

/// The log must be able to hold a postponed message. If it cannot, the transaction that postpones the message fails
/// and leaves no changes, and the error says so.
#[test]
fn a_message_that_cannot_be_postponed_leaves_nothing() {
    on_workers(3, async {
        let (hive, _) = started();
        for (number, message, why) in [
            (0, AskLater(Prickly(7), None), "it will not be encoded"),
            (1, AskLater(Prickly(1), Some(OneWay)), "the message cannot be postponed"),
        ] {
            let refused = hive.request_within(LIMIT, message).await.unwrap_err();
            assert!(matches!(refused, RequestError::Panicked | RequestError::Limit(_)), "{refused}");
            let error = hive.dead_letters()[number].error.text().to_string();
            assert!(error.contains(why), "{error}");
            assert_eq!(hive.request_within(LIMIT, Count(3)).await, Ok(0), "the change is undone");
            assert_eq!(hive.request_within(LIMIT, Count(4)).await, Ok(0), "nothing is sent");
        }

        hive.stop(LIMIT).await;
    })
}

/// A request whose handler emits a message that cannot be encoded ends with that error, and its transaction
/// leaves nothing.
#[test]
fn a_request_is_answered_when_an_emitted_message_cannot_be_encoded() {
    on_workers(3, async {
        let (hive, journal) = started();
        let refused = hive.request_within(LIMIT, AskEmit(7)).await.unwrap_err();
        assert_eq!(refused, RequestError::Panicked);
        assert!(hive.dead_letters()[0].error.text().contains("it will not be encoded"));
        assert_eq!((hive.dead_letters().len(), hive.request(Count(1)).await), (1, Ok(0)));
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// A failure of a stateless handler drops only its own output.
#[test]
fn an_unencodable_message_of_a_stateless_handler_does_not_harm_the_bee() {
    on_workers(3, async {
        let (hive, journal) = started();
        let nested = hive.request_within(LIMIT, AskNested(7)).await;
        let count = hive.request(Count(1)).await;
        assert_eq!((nested, count), (Ok(7), Ok(1)));

        let letters = hive.dead_letters();
        assert!(
            letters.len() == 1 && letters[0].error.to_string().contains("it will not be encoded"),
            "{letters:?}"
        );
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

fn too_large(key: u64, rows: u64, bytes: u64) {
    on_workers(3, async {
        let (hive, journal) = started();
        assert_eq!(hive.request_within(LIMIT, Large { key: 1, rows: 1, bytes: 1 }).await, Ok(1));

        let got = hive.request_within(LIMIT, Large { key, rows, bytes }).await;
        let refused = got.as_ref().unwrap_err().to_string();
        assert!(refused.contains("RECORD_BYTES_MAX"), "{refused}");

        // Other messages are still handled.
        let after = hive.request_within(LIMIT, Count(1)).await;
        let small = hive.request_within(LIMIT, Large { key: 1_000, rows: 1, bytes: 1 }).await;
        journal.stop();

        let log = journal.log();
        let replayed = LogState::replay(log.iter().map(Vec::as_slice)).map(|colony| colony.last);
        hive.stop(Duration::ZERO).await;
        assert_eq!((after, small), (Ok(0), Ok(1_000)), "others; {got:?}; {replayed:?}");
        assert!(replayed.is_ok(), "{replayed:?}")
    })
}
/// Each value fits on its own.
#[test]
fn two_large_values_in_one_transaction() {
    too_large(10, 2, 20 << 20)
}
/// Many small messages in one batch.
#[test]
fn many_messages_in_one_run() {
    on_workers(3, async {
        let (hive, journal) = started();
        let mut io = hive.io();
        for _ in 0..1_000 {
            io.emit(Large { key: 5, rows: 1, bytes: 64 << 10 })
        }

        io.flush().await;
        let after = hive.request_within(LIMIT, Count(1)).await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
        assert_eq!(after, Ok(0), "others")
    })
}

/// A stateless handler postpones a message that cannot be encoded. The IO bee that sent the message continues
/// to work.
#[test]
fn an_io_bee_goes_on_after_something_that_cannot_be_encoded() {
    on_workers(3, async {
        let (hive, journal) = started();
        let mut io: Io = hive.io();
        io.emit(Lately(Prickly(7)));
        io.flush().await;

        let mut sent = 0;
        let all = async {
            for number in 0..10_000 {
                io.emit(Fine(3 + number % 5));
                io.flush().await;
                sent += 1;
            }
        };

        let late = tokio::time::timeout(Duration::from_secs(60), all).await;
        assert!(late.is_ok(), "flush hangs after {sent} messages");
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// If a transaction fails because one of its values cannot be encoded, the log contains none of its values.
#[test]
fn a_log_has_nothing_of_what_failed() {
    let log = on_workers(2, async {
        let (hive, journal) = started();
        assert_eq!(hive.request_within(LIMIT, Keep(7)).await, Err(RequestError::Panicked));
        let refused = hive.dead_letters().remove(0).error;
        assert!(refused.text().contains("it will not be encoded"), "{refused}");
        assert_eq!(hive.request_within(LIMIT, Keep(8)).await, Ok(8));
        journal.stop();
        hive.stop(Duration::ZERO).await;
        journal.log()
    });

    on_workers(2, async {
        let colony = crate::load::killed(&log);
        let other = Hive::builder().app::<Cactus>().seed(2);
        let other = other.journal(TestJournal::start(9, 0, colony.last), colony.clone()).start();
        assert!(other.err().is_some_and(|error| error.to_string().contains("another `seed`")));

        let journal = TestJournal::start(9, 0, colony.last);
        let hive = Hive::builder().app::<Cactus>().seed(1).journal(journal.clone(), colony).start().unwrap();
        assert_eq!((hive.request(Count(7)).await, hive.request(Count(8)).await), (Ok(0), Ok(1)));
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}
