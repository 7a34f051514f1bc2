//! Logs that another version of the program has written: the hive refuses incompatible changes, and names the
//! place. Also tests two types with the same name.

use crate::load::on_workers;
use beehive_core::journal::Record;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Builder, Ctx, Dict, Hive, Message, StartError, handlers};
use std::time::Duration;

/// Defines the same app in several versions of a program.
macro_rules! program {
    ($name:ident, $account:ty, { $($field:ident: $type:ty),* }, $message:literal) => {
        mod $name {
            use super::*;
            #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
            pub(super) struct Balance { $(pub(super) $field: $type),* }
            #[derive(Message)]
            #[message(name = "bank::Deposit")]
            pub(super) struct Deposit(pub(super) u64, pub(super) Balance);
            #[derive(Message)]
            #[message(name = $message)]
            pub(super) struct Later($account);
            #[derive(Message)]
            #[message(name = "bank::Look", reply = Option<String>)]
            pub(super) struct Look(pub(super) u64);
            #[derive(App)]
            #[app(name = "bank")]
            pub(super) struct Bank {
                accounts: Dict<u64, Balance>,
                other: Dict<u64, $account>,
            }
            #[handlers]
            impl Bank {
                #[rcv(sharded)]
                fn deposit(&mut self, msg: &Deposit, ctx: &mut Ctx) {
                    self.accounts.put(msg.0, msg.1.clone());
                    if msg.0 == 9 {
                        // This message waits in the log for longer than any test takes.
                        ctx.after(Duration::from_secs(3600), Later(Default::default()))
                    }
                }
                #[rcv(centralized)]
                fn later(&mut self, msg: &Later) {
                    self.other.put(0, msg.0.clone());
                }
                #[rcv(sharded)]
                fn look(&mut self, msg: &Look) -> Option<String> {
                    self.accounts.get(&msg.0).map(|balance| format!("{balance:?}"))
                }
            }
        }
    };
}
program!(first, u64, { coins: u64, notes: u32 }, "bank::Later");
// In this version, the waiting message and an empty dictionary have other types.
program!(second, String, { coins: u64, notes: u32 }, "bank::Later");
program!(swapped, u64, { notes: u32, coins: u64 }, "bank::Later");

const SEED: u64 = 11;

fn hive(builder: Builder, log: &[Vec<u8>]) -> (Result<Hive, StartError>, std::sync::Arc<TestJournal>) {
    let colony = crate::load::killed(log);
    let journal = TestJournal::start(3, 0, colony.last);
    (builder.seed(SEED).journal(journal.clone(), colony).start(), journal)
}

/// Returns the log of the first program after these deposits.
async fn written(deposits: &[u64]) -> Vec<Vec<u8>> {
    let (hive, journal) = hive(Hive::builder().app::<first::Bank>(), &[]);
    let hive = hive.unwrap();
    for account in deposits {
        let balance = first::Balance { coins: 5, notes: 7 };
        hive.request(first::Deposit(*account, balance)).await.unwrap();
    }

    journal.stop();
    hive.stop(Duration::ZERO).await;
    journal.log()
}

fn refusal(builder: Builder, log: &[Vec<u8>]) -> String {
    match hive(builder, log).0 {
        Err(StartError::Log { why }) => why,
        other => panic!("{:?}", other.map(|_| ())),
    }
}

#[test]
fn a_log_is_decoded_with_the_types_it_was_written_with_or_refused() {
    on_workers(2, async {
        let log = written(&[1, 2]).await;
        let why = refusal(Hive::builder().app::<swapped::Bank>(), &log);
        let place = "the dictionary `accounts` of app `bank` cannot be read: \
                     `[]` was { coins: u64, notes: u32 } and is { notes: u32, coins: u64 }";

        assert!(why.starts_with(place), "{why}");
        assert!(why.contains("serde(rename"), "what to do about it: {why}");

        // This log contains nothing whose type has changed.
        let (started, journal) = hive(Hive::builder().app::<second::Bank>(), &log);
        let started = started.unwrap();
        let found = started.request(second::Look(1)).await.unwrap();

        assert_eq!(found.as_deref(), Some("Balance { coins: 5, notes: 7 }"));
        // From now on the log records the new types.
        started.request(second::Deposit(9, second::Balance { coins: 1, notes: 1 })).await.unwrap();
        journal.stop();
        started.stop(Duration::ZERO).await;

        let both: Vec<Vec<u8>> = log.iter().cloned().chain(journal.log()).collect();
        let why = refusal(Hive::builder().app::<first::Bank>(), &both);
        let place = "an unhandled message `bank::Later` cannot be read: was str and is u64";
        assert!(why.starts_with(place), "{why}");
        assert!(hive(Hive::builder().app::<second::Bank>(), &both).0.is_ok());

        // A program that has not changed does not record its types again.
        let shapes = |bytes: &&Vec<u8>| {
            let entry = beehive_core::journal::Entry::decode(bytes).unwrap();
            matches!(entry.record, Record::Shapes(_))
        };
        assert_eq!((log.iter().filter(shapes).count(), both.iter().filter(shapes).count()), (1, 2));
    })
}

#[test]
fn an_encoded_message_is_read_by_its_name() {
    on_workers(1, async {
        let hive = Hive::builder().app::<first::Bank>().start().unwrap();
        let bytes =
            [7u64.to_le_bytes().to_vec(), 8u64.to_le_bytes().to_vec(), 9u32.to_le_bytes().to_vec()].concat();
        let words = hive.message_in_words("bank::Deposit", &bytes);

        assert_eq!(words.as_deref(), Ok("[7,{\"coins\":8,\"notes\":9}]"));
        assert!(hive.message_in_words("bank::Deposit", &bytes[1..]).is_err());

        let unknown = hive.message_in_words("bank::Withdraw", &bytes).unwrap_err().to_string();
        assert!(unknown.contains("no app handles one called `bank::Withdraw`"), "{unknown}");

        let shapes = hive.message_shapes();
        assert_eq!(shapes["bank::Deposit"].to_string(), "(u64, { coins: u64, notes: u32 })");
        hive.stop(Duration::from_secs(1)).await;
    })
}

mod one {
    #[derive(beehive_core::Message)]
    #[message(name = "tests::Same")]
    pub(super) struct Same;
}
mod other {
    #[derive(beehive_core::Message)]
    #[message(name = "tests::Same")]
    pub(super) struct Same(pub(super) u8);
}
#[derive(Message)]
struct Done;
#[derive(App)]
struct One {}
#[handlers]
impl One {
    #[rcv(stateless)]
    fn same(&mut self, _: &one::Same, ctx: &mut Ctx) {
        ctx.emit(Done)
    }
}
#[derive(App)]
struct Other {}
#[handlers]
impl Other {
    #[rcv(stateless)]
    fn same(&mut self, _: &other::Same, ctx: &mut Ctx) {
        ctx.emit(Done)
    }
}
#[derive(App)]
#[app(name = "one")]
struct AlsoOne {}
#[handlers]
impl AlsoOne {
    #[rcv(stateless)]
    fn same(&mut self, _: &one::Same, ctx: &mut Ctx) {
        ctx.emit(Done)
    }
}

#[test]
fn two_types_with_one_name_are_refused_with_both_places() {
    on_workers(1, async {
        let line_of = |text: &str| {
            let source = include_str!("schema_changes.rs");
            let before = source.split(text).next().unwrap();
            // The derive is a few lines above.
            let from = before.matches('\n').count();
            move |place: &str| {
                let (file, line) = place.rsplit_once(':').unwrap();
                let line: usize = line.parse().unwrap();
                assert!(file.ends_with("tests/hive/schema_changes.rs"), "{place}");
                assert!((from.saturating_sub(2)..=from + 1).contains(&line), "{place}, not about {from}");
            }
        };

        let start = |builder: Builder| builder.start().expect_err("refused");
        let same = start(Hive::builder().app::<One>().app::<Other>());
        let words = same.to_string();
        let StartError::SameMessageName { message, places: [first, second] } = same else {
            panic!("{words}")
        };

        assert_eq!(message, "tests::Same");
        line_of("pub(super) struct Same;")(first);
        line_of("pub(super) struct Same(pub(super) u8);")(second);
        assert!(
            words.contains(first) && words.contains(second) && words.contains("#[message(name"),
            "{words}"
        );

        let same = start(Hive::builder().app::<One>().app::<AlsoOne>());
        let words = same.to_string();
        let StartError::SameName { app, places: [first, second] } = same else { panic!("{words}") };
        assert_eq!(app, "one");

        line_of("struct One {}")(first);
        line_of("struct AlsoOne {}")(second);
        assert!(words.contains(first) && words.contains(second), "{words}");
    })
}
