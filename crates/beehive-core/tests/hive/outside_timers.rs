//! Timers that stateless handlers set for messages from outside, in hives with several logs.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

const KEYS: u64 = 20;

#[derive(Message)]
struct Knock(u64);
#[derive(Message)]
struct Ring(u64);
#[derive(Message)]
struct Chime(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Rung(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Chimed(u64);

#[derive(App)]
struct Doors {
    rings: Dict<u64, u64>,
}
#[handlers]
impl Doors {
    #[rcv(stateless)]
    fn knock(&mut self, msg: &Knock, ctx: &mut Ctx) {
        ctx.after(Duration::from_millis(1 + msg.0 % 3), Ring(msg.0))
    }
    #[rcv(sharded)]
    fn ring(&mut self, msg: &Ring) {
        *self.rings.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn rung(&mut self, msg: &Rung) -> u64 {
        self.rings.get(&msg.0).copied().unwrap_or(0)
    }
}

/// Sets its timers for the messages for which [`Doors`] sets its own. Its handler for them has no state.
#[derive(App)]
struct Bells {
    chimes: Dict<u64, u64>,
}
/// Counts what a stateless handler has got from a timer.
#[derive(Message)]
struct Heard(u64);
#[handlers]
impl Bells {
    #[rcv(stateless)]
    fn knock(&mut self, msg: &Knock, ctx: &mut Ctx) {
        ctx.after(Duration::from_millis(1), Chime(msg.0));
        ctx.after(Duration::from_millis(2), Chime(msg.0))
    }
    #[rcv(stateless)]
    fn chime(&mut self, msg: &Chime, ctx: &mut Ctx) {
        ctx.emit(Heard(msg.0))
    }
    #[rcv(sharded)]
    fn heard(&mut self, msg: &Heard) {
        *self.chimes.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn chimed(&mut self, msg: &Chimed) -> u64 {
        self.chimes.get(&msg.0).copied().unwrap_or(0)
    }
}

/// Where the apps have their logs.
#[derive(Clone, Copy, Debug)]
enum Logs {
    /// Both apps have the same two logs.
    Shared,
    /// Each app has a log of its own.
    Apart,
}

fn start(logs: Logs, states: &[LogState]) -> (Hive, Vec<Arc<TestJournal>>) {
    let journals: Vec<_> = states.iter().map(|state| TestJournal::start(5, 0, state.last)).collect();
    let builder = Hive::builder().app::<Doors>().app::<Bells>().seed(7);
    let mut all =
        journals.iter().zip(states).map(|(log, state)| (log.clone() as Arc<dyn Journal>, state.clone()));
    let builder = match logs {
        Logs::Shared => builder.journals(all),
        Logs::Apart => {
            let (doors, bells) = (all.next().unwrap(), all.next().unwrap());
            builder.journal_of(["doors"], doors.0, doors.1).journal_of(["bells"], bells.0, bells.1)
        }
    };
    (builder.start().unwrap(), journals)
}

async fn counts(hive: &Hive) -> Vec<(u64, u64)> {
    let mut counts = Vec::new();
    for key in 0..KEYS {
        counts.push((hive.request(Rung(key)).await.unwrap(), hive.request(Chimed(key)).await.unwrap()))
    }
    counts
}

/// In each of several lives of the hive, each timer fires once, and no log keeps it for the next life.
#[test]
fn each_fires_once_and_leaves_the_log() {
    for logs in [Logs::Shared, Logs::Apart] {
        on_workers(2, async move {
            let mut states = vec![LogState::default(), LogState::default()];
            let mut written = [Vec::new(), Vec::new()];
            for life in 1..=3 {
                let (hive, journals) = start(logs, &states);
                for key in 0..KEYS {
                    while hive.try_emit(Knock(key)).is_err() {
                        tokio::time::sleep(Duration::from_millis(1)).await
                    }
                }
                let mut now = Vec::new();
                for _ in 0..500 {
                    now = counts(&hive).await;
                    if now.iter().all(|(rung, chimed)| *rung >= life && *chimed >= 2 * life) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await
                }
                hive.idle().await;
                let state_of = |at: usize| {
                    let log: Vec<Vec<u8>> = written[at].iter().cloned().chain(journals[at].log()).collect();
                    killed(&log)
                };
                eventually("the outboxes are empty", Duration::from_secs(10), || {
                    (0..2).all(|at| state_of(at).outbox.is_empty())
                })
                .await;
                // a timer that is handled again would be so by now
                assert_eq!(
                    counts(&hive).await,
                    vec![(life, 2 * life); KEYS as usize],
                    "{logs:?}, life {life}"
                );
                assert_eq!(now.len() as u64, KEYS);
                journals.iter().for_each(|journal| journal.stop());
                hive.stop(Duration::ZERO).await;
                for (written, journal) in written.iter_mut().zip(&journals) {
                    written.extend(journal.log())
                }
                states = written.iter().map(|log| killed(log)).collect()
            }
        })
    }
}
