//! The virtual clock: time advances only when the test advances it, and everything that becomes due in
//! between runs in order.

use beehive_core::testing::Kit;
use beehive_core::{App, Ctx, Dict, Message, RequestError, Time, handlers};
use std::time::Duration;

#[derive(Message)]
struct Begin(u64);
#[derive(Message)]
struct Later(u64);
#[derive(Message, PartialEq, Debug)]
struct Heard(String, u64, u64);
#[derive(Message)]
#[message(reply = u64)]
struct Ask(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Silence(u64);

#[derive(App)]
struct Clock {
    begun: Dict<u64, Time>,
}

#[handlers]
impl Clock {
    #[rcv]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        self.begun.put(msg.0, ctx.now());
        ctx.after(Duration::from_millis(1_500), Later(msg.0));
    }
    #[rcv]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        if let Some(begun) = self.begun.get(&msg.0) {
            let passed = ctx.now().since(*begun).as_millis() as u64;
            ctx.emit(Heard("later".into(), msg.0, passed))
        }
    }
    #[every("1s")]
    fn tick(&mut self, ctx: &mut Ctx) {
        ctx.emit(Heard("tick".into(), 0, 0))
    }
    #[every("4s", each = begun)]
    fn sweep(&mut self, key: &u64, ctx: &mut Ctx) {
        ctx.emit(Heard("sweep".into(), *key, 0))
    }
    #[rcv]
    fn ask(&mut self, msg: &Ask) -> u64 {
        self.begun.get(&msg.0).map_or(0, |_| 1)
    }
    #[rcv]
    fn silence(&mut self, msg: &Silence) -> Option<u64> {
        self.begun.get(&msg.0).map(|_| 1)
    }
}

fn heard(kit: &mut Kit) -> Vec<(String, u64, u64)> {
    kit.sent::<Heard>().iter().map(|h| (h.0.clone(), h.1, h.2)).collect()
}

#[test]
fn timers_ticks_and_sweeps_fire_in_order() {
    let mut kit = Kit::of::<Clock>().start();
    let start = kit.now();
    kit.emit(Begin(7));
    assert_eq!(heard(&mut kit), [], "nothing is due");

    kit.advance(Duration::from_millis(999));
    assert_eq!(heard(&mut kit), []);

    kit.advance(Duration::from_millis(2_001));
    let named = |word: &str, key, passed| (word.to_string(), key, passed);
    let (tick, later) = (named("tick", 0, 0), named("later", 7, 1_500));
    assert_eq!(heard(&mut kit), [tick.clone(), later, tick.clone(), tick]);
    assert_eq!(kit.now().since(start), Duration::from_secs(3));
    kit.advance(Duration::from_secs(4));
    assert_eq!(heard(&mut kit).iter().filter(|h| h.0 == "sweep").count(), 1);
}

/// A paced sweep visits its cells in the first half of the period, and none in the second half.
#[test]
fn a_paced_sweep_is_spread_over_half_of_its_period() {
    const CELLS: usize = 1_000;
    let mut kit = Kit::of::<Clock>().start();
    kit.emit_all((0..CELLS as u64).map(Begin)).advance(Duration::from_millis(4_000));
    let mut swept = Vec::new();

    for _ in 0..8 {
        kit.advance(Duration::from_millis(495));
        swept.push(heard(&mut kit).iter().filter(|h| h.0 == "sweep").count())
    }

    let (spread, rest) = swept.split_at(4);
    assert!(spread.iter().all(|part| (CELLS / 8..CELLS / 2).contains(part)), "{swept:?}");
    assert!(rest.iter().sum::<usize>() < CELLS / 20, "{swept:?}");
    assert_eq!(swept.iter().sum::<usize>(), CELLS, "{swept:?}");
}

#[test]
fn two_runs_are_the_same() {
    let run = || {
        let mut kit = Kit::of::<Clock>().start();
        kit.emit_all((0..50).map(Begin)).advance(Duration::from_secs(20));
        heard(&mut kit)
    };
    let once = run();
    assert!(once.len() > 100);
    assert_eq!(once, run());
}

#[test]
fn a_question_is_answered_without_waiting_and_an_unanswered_one_says_so() {
    let mut kit = Kit::of::<Clock>().start();
    let start = kit.now();
    kit.emit(Begin(1));
    assert_eq!(kit.request(Ask(1)), Ok(1));
    assert_eq!(kit.request(Ask(2)), Ok(0));
    assert!(matches!(kit.request(Silence(2)), Err(RequestError::NoAnswer { .. })));
    assert_eq!(kit.now(), start);
}

#[test]
fn a_copy_of_the_state_does_not_change() {
    let mut kit = Kit::of::<Clock>().start();
    kit.emit(Begin(1));
    let mut before = kit.state_copy::<Clock>();
    kit.emit(Begin(2));

    assert_eq!(before.look(|app| app.begun.whole().len()), 1);
    assert_eq!(kit.look::<Clock, _>(|app| app.begun.whole().len()), 2);

    before.look(|app| app.begun.remove(&1));
    assert!(before.look(|app| app.begun.contains(&1)), "a look changes nothing");
    assert_eq!(before.cells().len(), 1);
}

#[test]
fn a_message_to_the_test_arrives() {
    #[derive(Message)]
    struct Call(beehive_core::Address);
    #[derive(Message, PartialEq, Debug)]
    struct Back(u64);
    #[derive(App)]
    struct Echo {}

    #[handlers]
    impl Echo {
        #[rcv]
        fn call(&mut self, msg: &Call, ctx: &mut Ctx) {
            ctx.send(msg.0, Back(3))
        }
    }

    let mut kit = Kit::of::<Clock>().app::<Echo>().start();
    let to = kit.address();
    kit.emit(Call(to));
    assert_eq!(kit.sent::<Back>(), [Back(3)]);
    assert_eq!(kit.sent::<Back>(), [], "asked for already");
}

#[test]
fn more_messages_than_credits_arrive() {
    let mut kit = Kit::of::<Clock>().start();
    kit.emit_all((0..20_000).map(Begin));
    assert_eq!(kit.look::<Clock, _>(|app| app.begun.whole().len()), 20_000);
}
