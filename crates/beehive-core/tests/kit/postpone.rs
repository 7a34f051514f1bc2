//! `ctx.postpone(..)`: the same message is handled again later, and is answered then.

use beehive_core::testing::Kit;
use beehive_core::{App, Ctx, Dict, Message, RequestError, Result, attempt, handlers};
use std::time::Duration;

/// A request for a key that may not exist yet. The handler gives up after `tries` attempts.
#[derive(Message)]
#[message(reply = u64)]
struct Want {
    key: u64,
    tries: u64,
}
#[derive(Message)]
struct Give {
    key: u64,
    value: u64,
}
#[derive(Message, PartialEq, Debug)]
struct Tried(u64);
/// A message that apps only observe.
#[derive(Message)]
struct Seen(u64);

#[derive(App)]
struct Store {
    value: Dict<u64, u64>,
    tries: Dict<u64, u64>,
}
#[handlers]
impl Store {
    #[rcv(joins)]
    fn want(&mut self, msg: &Want, ctx: &mut Ctx) -> Result<Option<u64>> {
        if let Some(value) = self.value.get(&msg.key) {
            return Ok(Some(*value));
        }

        let tries = self.tries.entry(msg.key).or_default();
        *tries += 1;
        ctx.emit(Tried(*tries));
        ctx.postpone(Duration::from_secs(1));
        if *tries > msg.tries {
            Err("not to be had")?
        }

        Ok(None)
    }
    #[rcv]
    fn give(&mut self, msg: &Give) {
        self.value.put(msg.key, msg.value);
    }
    #[rcv]
    fn seen(&mut self, msg: &Seen, ctx: &mut Ctx) {
        let tries = self.tries.entry(msg.0).or_default();
        *tries += 1;
        if *tries < 3 {
            let undone = attempt! {
                ctx.postpone(Duration::from_secs(500));
                Err("on second thoughts")?;
                Ok(())
            };
            assert!(undone.is_err());
            ctx.postpone(Duration::from_millis(10));
        }
    }
}

/// Answers the requests that the store passes on.
#[derive(App)]
struct Last {
    none: Dict<u64, u64>,
}
#[handlers]
impl Last {
    #[rcv]
    fn want(&mut self, msg: &Want) -> u64 {
        self.none.get(&msg.key).copied().unwrap_or(99)
    }
}

#[test]
fn the_answer_comes_when_it_can_be_given() {
    let mut kit = Kit::of::<Store>().start();
    let hive = kit.hive().clone();
    let (started, platform) = (kit.now(), kit.platform().clone());
    let asked = async {
        let asked = hive.request_within(Duration::from_secs(60), Want { key: 1, tries: 100 });
        let given = async {
            use beehive_core::seams::Platform;
            platform.sleep(Duration::from_millis(3_500)).await;
            hive.emit(Give { key: 1, value: 42 }).await
        };
        tokio::join!(asked, given).0
    };

    assert_eq!(kit.platform().drive(asked), Ok(42));
    assert_eq!(kit.now().since(started), Duration::from_secs(4));

    kit.advance(Duration::from_secs(10));
    assert_eq!(kit.sent::<Tried>(), [Tried(1), Tried(2), Tried(3), Tried(4)]);
    assert_eq!(kit.hive().status().timers, 0, "nothing is left behind");
}

#[test]
fn a_postponed_request_keeps_its_deadline() {
    let mut kit = Kit::of::<Store>().start();
    let answer = kit.request(Want { key: 1, tries: 100 });
    assert_eq!(answer, Err(RequestError::Timeout { after: Duration::from_secs(5) }));
}

#[test]
fn an_error_is_an_answer_and_undoes_the_wait() {
    let mut kit = Kit::of::<Store>().start();
    let Err(RequestError::Handler(error)) = kit.request(Want { key: 1, tries: 2 }) else {
        panic!("it gives up")
    };
    assert_eq!(error.text(), "not to be had");
    kit.advance(Duration::from_secs(10));
    assert_eq!(kit.sent::<Tried>(), [Tried(1), Tried(2)], "the last try was undone");
    assert_eq!(kit.look::<Store, _>(|app| app.tries.get(&1).copied()), Some(2));
}

#[test]
fn a_postponed_message_is_not_passed_on() {
    let mut kit = Kit::of::<Store>().app::<Last>().start();
    assert!(matches!(kit.request(Want { key: 1, tries: 100 }), Err(RequestError::Timeout { .. })));
    kit.emit(Give { key: 1, value: 5 });
    assert_eq!(kit.request(Want { key: 1, tries: 100 }), Ok(5));
}

#[test]
fn an_observer_reports_when_it_is_done() {
    let mut kit = Kit::of::<Store>().start();
    let started = kit.now();
    assert_eq!(kit.request(Seen(4)), Ok(()));
    assert_eq!(kit.now().since(started), Duration::from_millis(20));
    assert_eq!(kit.look::<Store, _>(|app| app.tries.get(&4).copied()), Some(3));
}

#[test]
fn postponing_does_not_depend_on_bees() {
    Kit::of::<Store>().check(|kit| {
        kit.emit_all((0..10).map(|key| Want { key: key % 4, tries: 20 }));
        kit.advance(Duration::from_millis(2_500));
        kit.emit_all((0..3).map(|key| Give { key, value: key }));
        kit.emit_all((0..4).map(Seen)).advance(Duration::from_secs(3));
    });
}

#[derive(Message)]
struct Try {
    fails: bool,
}
#[derive(App)]
struct Tries {
    count: Dict<u64, u64>,
}
#[handlers]
impl Tries {
    #[rcv(centralized)]
    fn one(&mut self, msg: &Try, ctx: &mut Ctx) -> Result {
        *self.count.entry(0).or_default() += 1;
        if msg.fails {
            ctx.postpone(Duration::from_secs(1));
            Err("not this one")?
        }
        Ok(())
    }
}

#[test]
fn a_wait_that_was_undone_is_not_the_next_message_s() {
    let mut kit = Kit::of::<Tries>().start();
    kit.emit_all([true, false, true, false].map(|fails| Try { fails })).advance(Duration::from_secs(3));
    assert_eq!(kit.look::<Tries, _>(|app| app.count.get(&0).copied()), Some(2));
}
