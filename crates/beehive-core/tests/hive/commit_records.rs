//! Commit records: everything that a message causes is in its sender's record, so nothing becomes visible
//! early, is lost or is duplicated.

use crate::load::{Chance, eventually, on_workers};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{Address, App, Ctx, Dict, Hive, Message, RequestError, handlers};
use std::collections::BTreeMap;
use std::time::Duration;

/// Comes from outside.
#[derive(Message)]
struct Hit(u64);
/// Emitted by the bee that handles [`Hit`].
#[derive(Message)]
struct Step(u64);
/// Emitted by a stateless handler.
#[derive(Message)]
struct Nested(u64);
#[derive(Message)]
struct Late(u64);
#[derive(Message)]
struct LateFromOutside(u64);
/// A request that is passed on to the end of the chain.
#[derive(Message)]
#[message(reply = u64)]
struct Ask(u64);
/// The observable result: its kind, and the number.
#[derive(Message)]
struct Echo(u8, u64);
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Echoes(u8);

/// Stores what comes from outside, and passes it on.
#[derive(App)]
struct Front {
    hits: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Front {
    #[rcv(sharded)]
    fn hit(&mut self, msg: &Hit, ctx: &mut Ctx) {
        self.hits.entry(msg.0 % 8).or_default().push(msg.0);
        ctx.emit(Step(msg.0));
        ctx.emit(Ask(msg.0));
        ctx.emit(Echo(0, msg.0));
    }
}

/// Has no state.
#[derive(App)]
struct Relay {}
#[handlers]
impl Relay {
    #[rcv(stateless)]
    fn hit(&mut self, msg: &Hit, ctx: &mut Ctx) {
        ctx.emit(Echo(1, msg.0));
        ctx.after(Duration::from_millis(msg.0 % 5), LateFromOutside(msg.0));
        ctx.emit(Nested(msg.0));
    }
    #[rcv(stateless)]
    fn step(&mut self, msg: &Step, ctx: &mut Ctx) -> Result<(), beehive_core::Error> {
        ctx.emit(Nested(msg.0 | 1 << 40));
        ctx.after(Duration::from_millis(msg.0 % 5), Late(msg.0));
        ctx.emit(Echo(2, msg.0));
        Ok(())
    }
    #[rcv(stateless)]
    fn nested(&mut self, msg: &Nested, ctx: &mut Ctx) {
        match msg.0 >> 40 {
            0 => ctx.emit(Echo(3, msg.0)),
            _ => ctx.emit(Echo(4, msg.0 & 0xff_ffff)),
        }
    }
    #[rcv(stateless)]
    fn late(&mut self, msg: &Late, ctx: &mut Ctx) {
        ctx.emit(Echo(5, msg.0));
        ctx.emit(Echo(6, msg.0))
    }
    #[rcv(stateless)]
    fn late_from_outside(&mut self, msg: &LateFromOutside, ctx: &mut Ctx) {
        ctx.emit(Echo(7, msg.0))
    }
}

/// Fails after it has emitted messages. None of these messages may become visible, and nothing else may be
/// affected.
#[derive(App)]
struct Faulty {}
#[handlers]
impl Faulty {
    #[rcv(stateless)]
    fn step(&mut self, msg: &Step, ctx: &mut Ctx) -> Result<(), beehive_core::Error> {
        ctx.emit(Echo(99, msg.0));
        Err("it always does")?
    }
}

#[derive(App)]
struct First {
    asked: Dict<u64, u64>,
}
#[handlers]
impl First {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask, ctx: &mut Ctx) -> Option<u64> {
        *self.asked.entry(msg.0 % 4).or_default() += 1;
        ctx.emit(Echo(8, msg.0));
        None
    }
}
#[derive(App)]
struct Second {
    asked: Dict<u64, u64>,
}
#[handlers]
impl Second {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask, ctx: &mut Ctx) -> Option<u64> {
        *self.asked.entry(msg.0 % 3).or_default() += 1;
        ctx.emit(Echo(9, msg.0));
        None
    }
}
#[derive(App)]
struct Third {}
#[handlers]
impl Third {
    #[rcv(stateless)]
    fn ask(&mut self, msg: &Ask, ctx: &mut Ctx) -> Option<u64> {
        ctx.emit(Echo(10, msg.0));
        (msg.0 == u64::MAX).then_some(1)
    }
}
#[derive(App)]
struct Fourth {
    asked: Dict<u64, u64>,
}
#[handlers]
impl Fourth {
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask, ctx: &mut Ctx) -> Option<u64> {
        *self.asked.entry(msg.0 % 5).or_default() += 1;
        ctx.emit(Echo(11, msg.0));
        Some(2)
    }
}

#[derive(App)]
struct Book {
    echoes: Dict<u8, Vec<u64>>,
}
#[handlers]
impl Book {
    #[rcv(sharded)]
    fn echo(&mut self, msg: &Echo) {
        self.echoes.entry(msg.0).or_default().push(msg.1)
    }
    #[rcv(sharded)]
    fn echoes(&mut self, msg: &Echoes) -> Vec<u64> {
        self.echoes.get(&msg.0).cloned().unwrap_or_default()
    }
}

const KINDS: u8 = 12;
const MESSAGES: u64 = 200;

fn start(journal: &std::sync::Arc<TestJournal>, colony: LogState) -> Hive {
    Hive::builder()
        .app::<Front>()
        .app::<Relay>()
        .app::<Faulty>()
        .app::<First>()
        .app::<Second>()
        .app::<Third>()
        .app::<Fourth>()
        .app::<Book>()
        .seed(42)
        .journal(journal.clone(), colony)
        .start()
        .unwrap()
}

async fn echoes(hive: &Hive) -> BTreeMap<u8, Vec<u64>> {
    let mut all = BTreeMap::new();
    for kind in 0..KINDS {
        let mut numbers = hive.request(Echoes(kind)).await.unwrap();
        numbers.sort_unstable();
        assert!(numbers.is_sorted_by(|a, b| a < b), "kind {kind} came twice: {numbers:?}");
        all.insert(kind, numbers);
    }

    assert_eq!(hive.request(Echoes(99)).await.unwrap(), [0u64; 0], "of a handler that failed");
    all
}

#[test]
fn killed_at_any_moment_what_stateless_handlers_and_chains_do_is_done_once() {
    let mut replayed = 0;
    for run in 0..5u64 {
        let mut log: Vec<Vec<u8>> = Vec::new();
        let mut chance = Chance(run);
        for life in 0..6 {
            let last_life = life == 5;
            log = on_workers(3, async {
                let mut colony = crate::load::killed(&log);
                if run % 2 == 1 {
                    // as after a clean stop, so that unfinished messages do not run under a marker
                    colony.marker = None
                }
                replayed += colony.outbox.len();
                let refuse = if last_life { 0 } else { 30 };
                let journal = TestJournal::start(run * 100 + life, refuse, colony.last);
                let hive = start(&journal, colony);
                let mut io = hive.io();

                io.resume(77, 0);
                for number in 0..MESSAGES {
                    io.emit(Hit(number));
                    if number % 8 == 7 {
                        io.flush().await
                    }
                }

                if last_life {
                    let want: Vec<u64> = (0..MESSAGES).collect();
                    let mut left = 1_000;
                    loop {
                        let got = echoes(&hive).await;
                        let missing: Vec<_> = got
                            .iter()
                            .filter(|(_, n)| **n != want)
                            .map(|(kind, n)| (*kind, n.len()))
                            .collect();

                        if missing.is_empty() {
                            break;
                        }

                        left -= 1;
                        assert!(left > 0, "run {run}: kind and number of what came: {missing:?}");
                        tokio::time::sleep(Duration::from_millis(5)).await
                    }

                    // Wait, in case more messages arrive.
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    let _ = echoes(&hive).await;
                } else {
                    tokio::time::sleep(Duration::from_micros(chance.below(25_000))).await
                }

                journal.stop();
                log.extend(journal.log());
                hive.stop(Duration::ZERO).await;
                log
            });
        }

        let colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        assert!(colony.outbox.is_empty(), "{:?}", colony.outbox.keys().collect::<Vec<_>>());
    }

    assert!(replayed > 100, "nothing was on its way when it was killed: {replayed}");
}

// ---- visibility from outside ----

#[derive(Message)]
struct Knock {
    number: u64,
    back: Address,
}
#[derive(Message)]
struct Inner {
    number: u64,
    back: Address,
}
#[derive(Message)]
struct Heard(u64);

#[derive(App)]
struct Door {
    knocks: Dict<u64, u64>,
}
#[handlers]
impl Door {
    #[rcv(sharded)]
    fn knock(&mut self, msg: &Knock, ctx: &mut Ctx) {
        *self.knocks.entry(msg.number % 4).or_default() += 1;
        ctx.emit(Inner { number: msg.number, back: msg.back });
    }
}
#[derive(App)]
struct Bell {}
#[handlers]
impl Bell {
    #[rcv(stateless)]
    fn inner(&mut self, msg: &Inner, ctx: &mut Ctx) {
        ctx.send(msg.back, Heard(msg.number))
    }
}

#[test]
fn messages_of_a_stateless_handler_are_held_until_the_record_of_its_sender_is_committed() {
    on_workers(2, async {
        // This journal refuses every entry.
        let journal = TestJournal::start(9, 1, 0);
        let hive = Hive::builder()
            .app::<Door>()
            .app::<Bell>()
            .journal(journal.clone(), LogState::default())
            .start()
            .unwrap();

        let mut io = hive.io();
        let back = io.address();
        for number in 0..100 {
            io.emit(Knock { number, back })
        }

        io.flush().await;
        let handler = || hive.status().apps[1].handlers[0].messages;
        eventually("it has run again and again", Duration::from_secs(10), || {
            handler() > 500 && journal.refused() > 5
        })
        .await;

        assert!(io.try_receive().is_none(), "something was sent that never happened");
        journal.accept_all();
        let mut heard = Vec::new();

        while heard.len() < 100 {
            let mail = tokio::time::timeout(Duration::from_secs(10), io.receive()).await.unwrap();
            heard.extend(mail.messages::<Heard>().unwrap().iter().map(|h| h.0))
        }

        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(io.try_receive().is_none(), "something was sent twice");

        heard.sort_unstable();
        assert_eq!(heard, (0..100).collect::<Vec<u64>>());
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

// ---- values that cannot be recorded ----

#[derive(Message)]
struct Plain(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Asked(u64);
#[derive(Clone, Default, PartialEq, serde::Deserialize)]
struct Prickly(u64);
impl serde::Serialize for Prickly {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0.is_multiple_of(10), "it cannot be encoded");
        if self.0.is_multiple_of(7) {
            return Err(serde::ser::Error::custom("it will not be encoded"));
        }
        serializer.serialize_u64(self.0)
    }
}
#[derive(Message)]
#[message(reply = u64)]
struct Sum(u64);

#[derive(App)]
struct Cactus {
    values: Dict<u64, Vec<Prickly>>,
}
#[handlers]
impl Cactus {
    #[rcv(centralized)]
    fn plain(&mut self, msg: &Plain) {
        self.values.entry(0).or_default().push(Prickly(msg.0 + 1))
    }
    #[rcv(centralized)]
    fn asked(&mut self, msg: &Asked) -> u64 {
        self.values.entry(0).or_default().push(Prickly(msg.0));
        msg.0
    }
    #[rcv(sharded)]
    fn sum(&mut self, msg: &Sum) -> u64 {
        self.values.get(&msg.0).map_or(0, |values| values.iter().map(|v| v.0).sum())
    }
}

#[test]
fn a_value_that_cannot_be_recorded_harms_its_own_message_only() {
    on_workers(2, async {
        let journal = TestJournal::start(9, 20, 0);
        let hive =
            Hive::builder().app::<Cactus>().journal(journal.clone(), LogState::default()).start().unwrap();
        let mut io = hive.io();
        for number in 0..99 {
            io.emit(Plain(number))
        }

        io.flush().await;
        journal.accept_all();
        eventually("all are done", Duration::from_secs(10), || io.floor() == 99).await;
        let want: u64 = (1..100).filter(|n| n % 10 != 0 && n % 7 != 0).sum();

        assert_eq!(hive.request(Sum(0)).await.unwrap(), want);
        for (value, why) in [(10, "it cannot be encoded"), (7, "it will not be encoded")] {
            assert_eq!(hive.request(Asked(value)).await, Err(RequestError::Panicked));
            let letter = hive.dead_letters().pop().unwrap();
            assert!(letter.error.to_string().contains(why), "{}", letter.error);
        }

        assert_eq!(hive.request(Sum(0)).await.unwrap(), want);
        journal.stop();
        let colony = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
        assert!(colony.outbox.is_empty());
        hive.stop(Duration::ZERO).await;
    })
}
