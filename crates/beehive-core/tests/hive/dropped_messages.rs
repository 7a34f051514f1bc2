//! If a map drops a message that its handler would act on, the message ends with an error. The map of
//! [`Shop`] is wrong in the way that a faulty derivation would be.

use crate::load::{EVERYWHERE, On, on_workers, start};
use beehive_core::testing::{Kit, TestJournal};
use beehive_core::{
    App, Builder, Ctx, Dict, Error, ErrorKind, HandlerReport, Handlers, Handles, Hive, Mapper, Message,
    RequestError, handlers,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a handler does with a message that the map drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Does {
    Nothing,
    Touch,
    Emit,
    Postpone,
    Fail,
    Panic,
    Answer,
}

use Does::*;

/// A request to the shop, and to the fallback app behind it.
#[derive(Message)]
#[message(reply = u64)]
struct Ask(Does);
/// A message that the shop observes.
#[derive(Message)]
struct Tell(Does);
/// A message that handlers of the shop emit.
#[derive(Message)]
struct Sold;
#[derive(Message)]
#[message(reply = u64)]
struct Count;

#[derive(App)]
struct Shop {
    sold: Dict<u64, u64>,
}

impl Shop {
    fn does(&mut self, does: Does, ctx: &mut Ctx) -> Result<Option<u64>, Error> {
        match does {
            Nothing => {}
            Touch => drop(self.sold.put(7, 1)),
            Emit => ctx.emit(Sold),
            Postpone => ctx.postpone(Duration::from_millis(1)),
            Fail => return Err("as asked".into()),
            Panic => crate::load::unheard("as asked"),
            Answer => return Ok(Some(1)),
        }
        Ok(None)
    }
}

const fn report(name: &'static str, line: u32) -> HandlerReport {
    HandlerReport {
        name,
        message: name,
        answer: "",
        kind: "sharded",
        cells: "sold[..]",
        joins: "",
        views: "",
        file: "shop.rs",
        line,
        reason: "",
        reason_line: 0,
        note: "",
    }
}

impl Handlers for Shop {
    const MONOLITHIC: u64 = 0;
    const REPORT: &'static [HandlerReport] = &[report("ask", 11), report("tell", 22)];

    fn register(registrar: &mut beehive_core::__private::Registrar<'_, Self>) {
        beehive_core::__private::Registration::<Self, (), Ask>::of(registrar).rcv();
        beehive_core::__private::Registration::<Self, (), Tell>::of(registrar).rcv();
    }
}

impl Handles<Ask> for Shop {
    const HANDLER: usize = 0;
    const ANSWERS: bool = true;

    fn map(_: &Ask, _: &mut Mapper) {}
    fn handle(&mut self, msg: &Ask, ctx: &mut Ctx) -> Result<Option<u64>, Error> {
        self.does(msg.0, ctx)
    }
}

impl Handles<Tell> for Shop {
    const HANDLER: usize = 1;
    const ANSWERS: bool = false;

    fn map(_: &Tell, _: &mut Mapper) {}
    fn handle(&mut self, msg: &Tell, ctx: &mut Ctx) -> Result<Option<()>, Error> {
        self.does(msg.0, ctx).map(|_| None)
    }
}

#[derive(App)]
struct Behind {
    seen: Dict<u64, u64>,
}
#[handlers]
impl Behind {
    #[rcv]
    fn ask(&mut self, _: &Ask) -> u64 {
        99
    }
    #[rcv(centralized)]
    fn sold(&mut self, _: &Sold) {
        *self.seen.entry(0).or_default() += 1
    }
    #[rcv(centralized)]
    fn count(&mut self, _: &Count) -> u64 {
        self.seen.get(&0).copied().unwrap_or(0)
    }
}

fn builder() -> Builder {
    Hive::builder().app::<Shop>().app::<Behind>()
}

/// Returns how many messages of the shop became dead letters because of its maps. Each of these dead letters
/// names the line of the handler.
fn found(hive: &Hive) -> usize {
    let letters = hive.dead_letters();
    let wrong = letters.iter().filter(|letter| letter.app == <Shop as App>::NAME);
    wrong
        .inspect(|letter| {
            let line = if letter.handler == "ask" { "ask at shop.rs:11" } else { "tell at shop.rs:22" };
            let named = letter.error.text().contains(line) || letter.error.kind() == ErrorKind::Panicked;
            assert!(named, "{}", letter.error);
        })
        .count()
}

#[test]
fn a_wrongly_dropped_message_ends_with_an_error_and_leaves_nothing() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(builder().verify_maps(1), on);

            for (n, does) in [Touch, Emit, Postpone, Fail, Panic, Answer].into_iter().enumerate() {
                let failed = match does {
                    Panic => RequestError::Panicked,
                    _ => RequestError::Unmapped,
                };
                assert_eq!(hive.request(Ask(does)).await, Err(failed), "{on:?} {does:?}");
                assert_eq!(found(&hive), n + 1, "{on:?} {does:?}");
            }

            // no requester waits for an emitted message, so only the dead letter has the error. The failure
            // of an observer reaches the requester
            let before = found(&hive);
            hive.emit(Tell(Touch)).await;
            assert_eq!(hive.request(Tell(Emit)).await, Err(RequestError::Unmapped), "{on:?}");
            assert_eq!(found(&hive), before + 2, "{on:?}");

            // a message that is dropped correctly goes on to the next app, and the failed transactions have
            // left no changes
            assert_eq!(hive.request(Ask(Nothing)).await, Ok(99));
            let message = <Tell as Message>::NAME;
            assert_eq!(hive.request(Tell(Nothing)).await, Err(RequestError::NoAnswer { message }));
            assert_eq!(found(&hive), before + 2, "{on:?}");
            assert_eq!(hive.request(Count).await, Ok(0), "{on:?}");
            assert_eq!(hive.status().apps[0].bees, 0, "{on:?}");
        })
    }
}

#[test]
fn a_release_build_finds_one_in_some_and_then_all() {
    on_workers(2, async {
        let (hive, _) = start(builder().verify_maps(100), On::Memory);

        for _ in 0..99 {
            assert_eq!(hive.request(Ask(Touch)).await, Ok(99), "not verified");
        }
        assert_eq!(hive.request(Ask(Touch)).await, Err(RequestError::Unmapped));

        for _ in 0..10 {
            assert_eq!(hive.request(Ask(Touch)).await, Err(RequestError::Unmapped));
        }
        assert_eq!(found(&hive), 11);

        // each message of a batch ends separately
        let mut io = hive.io();
        for n in 0..50 {
            io.emit(Tell(if n % 5 == 0 { Touch } else { Nothing }));
        }
        io.flush().await;
        assert_eq!(found(&hive), 11, "50 of 100");
        for _ in 0..50 {
            io.emit(Tell(Touch));
        }
        io.flush().await;
        assert_eq!(found(&hive), 12);
        io.emit(Tell(Nothing));
        io.emit(Tell(Touch));
        io.flush().await;
        assert_eq!(found(&hive), 13);
    })
}

#[test]
fn verification_can_be_turned_off_and_is_on_under_test() {
    on_workers(2, async {
        let (hive, _) = start(builder().verify_maps(0), On::Memory);
        for _ in 0..1_000 {
            assert_eq!(hive.request(Ask(Touch)).await, Ok(99));
        }
        let message = <Tell as Message>::NAME;
        assert_eq!(hive.request(Tell(Touch)).await, Err(RequestError::NoAnswer { message }));
        assert_eq!(found(&hive), 0);
    });

    let mut kit = Kit::of::<Shop>().app::<Behind>().failures_allowed().start();
    assert_eq!(kit.request(Ask(Touch)), Err(RequestError::Unmapped));
}

/// A user who writes a map by hand may drop messages that the handler would act on.
#[test]
fn a_map_written_by_hand_may_drop() {
    #[derive(App)]
    struct Even {
        seen: Dict<u64, u64>,
    }
    #[derive(Message)]
    #[message(reply = u64)]
    struct Number(u64);
    fn even(msg: &Number, mapper: &mut Mapper) {
        if msg.0.is_multiple_of(2) {
            mapper.cell(Even::__bh_seen, &msg.0)
        }
    }
    #[handlers]
    impl Even {
        #[rcv(map = even)]
        fn number(&mut self, msg: &Number) -> u64 {
            let seen = self.seen.entry(msg.0).or_default();
            *seen += 1;
            *seen
        }
    }

    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Even>().verify_maps(1), On::Memory);
        assert_eq!(hive.request(Number(2)).await, Ok(1));
        assert!(matches!(hive.request(Number(3)).await, Err(RequestError::NoAnswer { .. })));
        assert!(hive.dead_letters().is_empty());
    })
}

/// A journaled handler emits a message that is wrongly dropped. The record does not contain the message, and
/// the error is reported after the record is committed.
#[test]
fn what_a_logged_handler_emits_is_verified() {
    #[derive(Message)]
    #[message(reply = u64)]
    struct Start(Does);
    #[derive(App)]
    struct Starts {
        begun: Dict<u64, u64>,
    }
    #[handlers]
    impl Starts {
        #[rcv(centralized)]
        fn start(&mut self, msg: &Start, ctx: &mut Ctx) -> u64 {
            ctx.emit(Tell(msg.0));
            let begun = self.begun.entry(0).or_default();
            *begun += 1;
            *begun
        }
    }

    on_workers(2, async {
        let journal = TestJournal::start(7, 3, 0);
        let hive = builder()
            .app::<Starts>()
            .verify_maps(1)
            .journal(journal.clone(), beehive_core::journal::LogState::default())
            .start()
            .unwrap();

        for n in 1..=20 {
            assert_eq!(hive.request(Start(Touch)).await, Ok(n));
        }
        assert!(found(&hive) >= 20, "{}", found(&hive));
        assert!(hive.stop(Duration::from_secs(5)).await.is_clean());
    })
}
