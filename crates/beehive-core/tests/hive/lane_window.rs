//! A bee has sent a message to a log that commits nothing, and sends more and more to other logs: what the receivers have to remember
//! is bounded, because those outside wait.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Io, Message, handlers, limits};
use std::sync::Arc;
use std::time::Duration;

/// A sink counts it.
#[derive(Message)]
struct Fall(u64);
/// Makes the relay send to a sink.
#[derive(Message)]
struct Pass(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Count(u64);

#[derive(App)]
struct Sink {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Sink {
    #[rcv(sharded)]
    fn fall(&mut self, msg: &Fall) {
        *self.counts.entry(msg.0).or_default() += 1
    }
    #[rcv(stateless)]
    fn snooze(&mut self, _: &Snooze, ctx: &mut Ctx) {
        ctx.postpone(Duration::from_secs(3_600))
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) -> u64 {
        self.counts.get(&msg.0).copied().unwrap_or_default()
    }
}

#[derive(App)]
struct Relay {
    passed: Dict<u8, u64>,
}
/// Makes the relay send what a stateless handler postpones.
#[derive(Message)]
struct Later;
#[derive(Message)]
struct Snooze;
/// Makes the relay set a timer.
#[derive(Message)]
struct Arm;

#[handlers]
impl Relay {
    #[rcv(centralized)]
    fn later(&mut self, _: &Later, ctx: &mut Ctx) {
        *self.passed.entry(0).or_default() += 1;
        ctx.emit(Snooze)
    }
    #[rcv(centralized)]
    fn arm(&mut self, _: &Arm, ctx: &mut Ctx) {
        *self.passed.entry(0).or_default() += 1;
        ctx.after(Duration::from_secs(3_600), Pass(0))
    }
    #[rcv(centralized)]
    fn pass(&mut self, msg: &Pass, ctx: &mut Ctx) {
        *self.passed.entry(0).or_default() += 1;
        ctx.emit(Fall(msg.0))
    }
}

const SOON: Duration = Duration::from_secs(20);
/// Messages that are flushed at once.
const BATCH: u64 = 256;

/// Sends to two sinks in turn, until those before wait. Returns how many messages were sent to each.
async fn send_until_it_waits(io: &mut Io, sinks: [u64; 2]) -> u64 {
    let mut sent = 0;
    while sent < 4 * limits::BEE_LANE_WINDOW_MAX {
        for _ in 0..BATCH / 2 {
            sinks.into_iter().for_each(|sink| io.emit(Pass(sink)))
        }
        sent += BATCH;
        if tokio::time::timeout(Duration::from_secs(2), io.flush()).await.is_err() {
            break;
        }
    }
    sent / 2
}

fn state(log: &TestJournal) -> LogState {
    LogState::replay(log.log().iter().map(Vec::as_slice)).unwrap()
}

async fn one_message_is_stuck(stops: bool) {
    let journals: Vec<_> = (1..4).map(|seed| TestJournal::start(seed, 0, 0)).collect();
    let [of_relay, of_sinks, stuck] = [0, 1, 2].map(|at| journals[at].clone());
    let new = |journal: &Arc<TestJournal>| (journal.clone() as Arc<dyn Journal>, LogState::default());
    let (relay, _) = new(&of_relay);
    let hive = Hive::builder()
        .app::<Sink>()
        .app::<Relay>()
        .journal_of(["relay"], relay, LogState::default())
        .journals([new(&of_sinks), new(&stuck)])
        .start()
        .unwrap();

    // which sinks are in which log
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for key in 0.. {
        let before = state(&stuck).bees.len();
        hive.emit(Fall(key)).await;
        hive.idle().await;
        let is_there = state(&stuck).bees.len() > before;
        if is_there { &mut there } else { &mut here }.push(key);
        if here.len() >= 2 && !there.is_empty() {
            break;
        }
    }

    stuck.stall(true);
    let mut io = hive.io();
    io.emit(Pass(there[0]));
    io.flush().await;
    let mut other = hive.io();
    let sent = send_until_it_waits(&mut other, [here[0], here[1]]).await;
    let window = limits::BEE_LANE_WINDOW_MAX;
    assert!(sent > window / 4, "{sent} messages were sent to each sink, and the window is {window}");
    assert!(2 * sent < 2 * window, "{sent} messages were sent to each sink, and the window is {window}");

    if stops {
        drop((io, other));
        let stopping = tokio::spawn({
            let hive = hive.clone();
            async move { hive.stop(3 * SOON).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        stuck.stall(false);
        let report = tokio::time::timeout(SOON, stopping).await.expect("the hive stops").unwrap();
        assert!(report.is_clean(), "{report:?}");
        return journals.iter().for_each(|journal| journal.stop());
    }
    stuck.stall(false);
    tokio::time::timeout(SOON, other.flush()).await.expect("nobody waits any more");
    hive.idle().await;
    for (sink, count) in [(here[0], sent + 1), (here[1], sent + 1), (there[0], 2)] {
        assert_eq!(hive.request(Count(sink)).await, Ok(count), "sink {sink}")
    }
    eventually("all is acknowledged", SOON, || state(&of_relay).outbox.is_empty()).await;
    hive.stop(SOON).await;
    journals.iter().for_each(|journal| journal.stop())
}

/// The relay first gets a message whose effect keeps the floor of its lane for an hour. Nobody waits for that.
async fn nobody_waits(first: fn(&mut Io)) {
    let journals = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
    let logs = journals.clone().map(|journal| (journal as Arc<dyn Journal>, LogState::default()));
    let hive = Hive::builder().app::<Sink>().app::<Relay>().journals(logs).start().unwrap();
    let mut io = hive.io();
    first(&mut io);
    for sent in 0..limits::BEE_LANE_WINDOW_MAX + 3 * u64::from(limits::CREDITS_PER_IO_BEE) {
        io.emit(Pass(sent % 2));
        if sent % BATCH == 0 {
            tokio::time::timeout(SOON, io.flush()).await.expect("nobody waits");
        }
    }
    tokio::time::timeout(SOON, io.flush()).await.expect("nobody waits");
    hive.stop(Duration::from_millis(10)).await;
    journals.iter().for_each(|journal| journal.stop())
}

#[test]
fn a_timer_of_the_sender_stops_nobody() {
    on_workers(2, nobody_waits(|io| io.emit(Arm)))
}

/// A stateless handler of another app postpones it, in the record of the bee.
#[test]
fn a_message_that_is_postponed_stops_nobody() {
    on_workers(2, nobody_waits(|io| io.emit(Later)))
}

#[test]
fn what_receivers_remember_is_bounded_while_one_message_is_stuck() {
    on_workers(2, one_message_is_stuck(false))
}

#[test]
fn a_hive_stops_although_those_outside_wait() {
    on_workers(2, one_message_is_stuck(true))
}
