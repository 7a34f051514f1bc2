//! Sweeps with a journal: even if the hive is killed at an arbitrary moment, each cell is visited once and in
//! the sender's order.

use crate::load::{Chance, eventually, on_workers};
use beehive_core::journal::{Entry, Journal, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Builder, Ctx, Dict, Hive, Message, Time, handlers, limits};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Message)]
struct Plant(u64);
#[derive(Message)]
struct All(u64);
/// A message to one cell from a bee that has sent a sweep before.
#[derive(Message)]
struct After {
    key: u64,
    sweep: u64,
}
#[derive(Message)]
struct Begin(u64);
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Turns(u64);
#[derive(App)]
struct Field {
    turns: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Field {
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        self.turns.entry(msg.0).or_default();
    }
    #[rcv(each = turns)]
    fn all(&mut self, key: &u64, msg: &All, ctx: &mut Ctx) {
        self.turns.entry(*key).or_default().push(msg.0);
        ctx.emit(Seen { key: *key, sweep: msg.0 });
    }
    #[rcv(sharded)]
    fn after(&mut self, msg: &After) {
        self.turns.entry(msg.key).or_default().push(msg.sweep + 1)
    }
    #[rcv(sharded)]
    fn turns(&mut self, msg: &Turns) -> Vec<u64> {
        self.turns.get(&msg.0).cloned().unwrap_or_default()
    }
}
/// Emitted at every visit.
#[derive(Message)]
struct Seen {
    key: u64,
    sweep: u64,
}
#[derive(App)]
struct Witness {
    seen: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Witness {
    #[rcv(sharded)]
    fn seen(&mut self, msg: &Seen) {
        self.seen.entry(msg.sweep).or_default().push(msg.key)
    }
    #[rcv(sharded)]
    fn witnessed(&mut self, msg: &Witnessed) -> Vec<u64> {
        self.seen.get(&msg.0).cloned().unwrap_or_default()
    }
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Witnessed(u64);

/// A bee that sends sweeps.
#[derive(App)]
struct Farmer {
    begun: Dict<u64, u64>,
}
#[handlers]
impl Farmer {
    #[rcv(centralized)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        *self.begun.entry(0).or_default() += 1;
        ctx.emit(All(msg.0));
        for key in 0..KEYS.min(20) {
            ctx.emit(After { key, sweep: msg.0 })
        }
    }
}

/// More cells than one step of a sweep visits.
const KEYS: u64 = 1_500;
const SWEEPS: u64 = 4;

fn farm() -> Builder {
    Hive::builder().app::<Field>().app::<Witness>().app::<Farmer>().seed(3)
}

fn begin(journal: &Arc<TestJournal>, colony: LogState) -> Hive {
    farm().journal(journal.clone(), colony).start().unwrap()
}

/// Returns a log in which all cells exist.
fn planted() -> Vec<Vec<u8>> {
    on_workers(2, async {
        let journal = TestJournal::start(1, 0, 0);
        let hive = begin(&journal, LogState::default());
        let mut io = hive.io();
        io.resume(1, 0);
        for key in 0..KEYS {
            io.emit(Plant(key))
        }

        io.flush().await;
        eventually("all is planted", Duration::from_secs(20), || io.floor() == KEYS).await;
        journal.stop();
        hive.stop(Duration::ZERO).await;
        journal.log()
    })
}

#[test]
fn killed_in_the_middle_of_a_sweep_every_cell_has_its_turn_once() {
    assert!(KEYS as usize > limits::SWEEP_STEP_MAX, "one step would be all of it");
    let field = planted();
    let mut middles = 0;

    for run in 0..3u64 {
        let mut log = field.clone();
        let mut chance = Chance(run + 10);
        const LIVES: u64 = 7;

        for life in 0..LIVES {
            let last_life = life + 1 == LIVES;
            log = on_workers(3, async {
                let mut colony = crate::load::killed(&log);
                if run % 2 == 1 {
                    // as after a clean stop, so that unfinished messages do not run under a marker
                    colony.marker = None
                }
                middles += colony.sweeps.values().filter(|s| !s.open.is_empty() || s.next.is_some()).count();
                let refuse = if last_life { 0 } else { 200 };
                let journal = TestJournal::start(run * 100 + life + 2, refuse, colony.last);
                let hive = begin(&journal, colony);

                // In every incarnation, the sweeps are sent again from outside and by a bee.
                let mut io = hive.io();
                io.resume(2, 0);
                for sweep in 0..SWEEPS {
                    match sweep % 2 {
                        0 => io.emit(All(10 * sweep)),
                        _ => io.emit(Begin(10 * sweep)),
                    }
                    io.flush().await
                }

                if last_life {
                    check(&hive).await
                } else {
                    tokio::time::sleep(Duration::from_micros(chance.below(60_000))).await
                }

                journal.stop();
                log.extend(journal.log());
                hive.stop(Duration::ZERO).await;
                log
            });
        }

        let colony = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        assert!(colony.sweeps.is_empty(), "{:?}", colony.sweeps);
        assert!(colony.outbox.is_empty(), "{:?}", colony.outbox.keys().collect::<Vec<_>>());
    }

    assert!(middles >= 3, "it was hardly ever killed in the middle of a sweep: {middles}");
}

/// A request waits behind all visits of an incarnation, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

async fn check(hive: &Hive) {
    let mut left = 2_000;
    loop {
        let mut open = 0;
        for sweep in 0..SWEEPS {
            let mut seen = hive.request_within(LIMIT, Witnessed(10 * sweep)).await.unwrap();
            seen.sort_unstable();
            assert!(seen.is_sorted_by(|a, b| a < b), "sweep {sweep}: a cell had its turn twice");
            open += KEYS - seen.len() as u64;
        }

        if open == 0 {
            break;
        }

        left -= 1;
        assert!(left > 0, "{open} turns are missing");
        tokio::time::sleep(Duration::from_millis(10)).await
    }

    // These messages come after the last sweep of the bee.
    for _ in 0..200 {
        if hive.request_within(LIMIT, Turns(19)).await.unwrap().len() as u64 == SWEEPS + SWEEPS / 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await
    }

    for key in 0..KEYS {
        let turns = hive.request_within(LIMIT, Turns(key)).await.unwrap();
        let mut all = turns.clone();
        all.sort_unstable();
        let mut want: Vec<u64> = (0..SWEEPS).map(|sweep| 10 * sweep).collect();

        if key < 20 {
            want.extend((0..SWEEPS).filter(|sweep| sweep % 2 == 1).map(|sweep| 10 * sweep + 1));
            want.sort_unstable();
            for sweep in (1..SWEEPS).step_by(2) {
                let at = |n: u64| turns.iter().position(|t| *t == n);
                assert!(at(10 * sweep) < at(10 * sweep + 1), "key {key}: out of order: {turns:?}");
            }
        }

        assert_eq!(all, want, "key {key}");
    }
}

// ---- bees in several logs ----

/// Starts a hive on logs in these states.
fn begin_on(states: Vec<LogState>, seed: u64) -> (Vec<Arc<TestJournal>>, Hive) {
    let start = |(at, state): (u64, &LogState)| TestJournal::start(seed + at, 0, state.last);
    let journals: Vec<_> = (0..).zip(&states).map(start).collect();
    let all = journals.iter().cloned().map(|journal| journal as Arc<dyn Journal>).zip(states);
    let hive = farm().journals(all).start().unwrap();
    (journals, hive)
}

async fn kill(journals: &[Arc<TestJournal>], hive: &Hive) {
    journals.iter().for_each(|journal| journal.stop());
    hive.stop(Duration::ZERO).await;
}

/// Returns the states of the logs of a hive that was killed when a sweep had taken its first step.
fn killed_behind_a_step(logs: usize, seed: u64) -> Vec<LogState> {
    on_workers(3, async {
        let (journals, hive) = begin_on(vec![LogState::default(); logs], seed);
        let mut io = hive.io();
        for key in 0..KEYS {
            io.emit(Plant(key))
        }
        io.flush().await;
        hive.idle().await;
        let before: Vec<usize> = journals.iter().map(|journal| journal.log().len()).collect();
        io.emit(Begin(10));
        io.flush().await;
        let is_step = |bytes: &Vec<u8>| matches!(Entry::decode(bytes).unwrap().record, Record::Expand { .. });
        // on a busy machine, all of the sweep may be in the log when this looks again
        let has_stepped = || {
            journals.iter().zip(&before).any(|(journal, from)| journal.log().iter().skip(*from).any(is_step))
        };
        eventually("the sweep takes a step", Duration::from_secs(20), has_stepped).await;
        kill(&journals, &hive).await;

        let logs = journals.iter().map(|journal| journal.log());
        let state = |log: Vec<Vec<u8>>| LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        logs.map(|log| LogState { marker: None, ..state(log) }).collect()
    })
}

#[test]
fn after_a_crash_what_a_bee_has_sent_stays_behind_its_sweep_whichever_logs_they_are_in() {
    for logs in [1, 2, 4] {
        let mut middles = 0;
        for run in 0..4 {
            let states = killed_behind_a_step(logs, 10 * run);
            middles += states.iter().map(|state| state.sweeps.len()).sum::<usize>();
            on_workers(3, async {
                let (journals, hive) = begin_on(states, 10 * run + 5);
                for key in 0..20 {
                    let mut turns = Vec::new();
                    for _ in 0..1_000 {
                        turns = hive.request_within(LIMIT, Turns(key)).await.unwrap();
                        if turns.len() >= 2 {
                            break;
                        }
                        tokio::time::sleep(Duration::from_millis(10)).await
                    }
                    assert_eq!(turns, [10, 11], "{logs} logs, key {key}")
                }
                kill(&journals, &hive).await
            })
        }
        assert!(middles > 0, "{logs} logs: it was never killed in the middle of the sweep")
    }
}

// ---- visits that need cells of other bees ----

#[derive(Message)]
struct Put(u64);
#[derive(Message)]
struct Gather(u64);
#[derive(Message)]
#[message(reply = Vec<(u64, u64)>)]
struct Gathered;

#[derive(App)]
struct Barn {
    sheaves: Dict<u64, u64>,
    store: Dict<u8, Vec<(u64, u64)>>,
}
#[handlers]
impl Barn {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) {
        self.sheaves.entry(msg.0).or_default();
    }
    #[rcv(each = sheaves, centralized)]
    fn gather(&mut self, key: &u64, msg: &Gather) {
        *self.sheaves.entry(*key).or_default() += 1;
        self.store.entry(0).or_default().push((msg.0, *key))
    }
    #[rcv(centralized)]
    fn gathered(&mut self, _: &Gathered) -> Vec<(u64, u64)> {
        self.store.get(&0).cloned().unwrap_or_default()
    }
}

#[test]
fn a_turn_that_needs_cells_of_others_is_taken_once() {
    const SHEAVES: u64 = 30;
    for run in 0..4u64 {
        let mut log: Vec<Vec<u8>> = Vec::new();
        let mut chance = Chance(run + 5);
        const LIVES: u64 = 5;

        for life in 0..LIVES {
            let last_life = life + 1 == LIVES;
            log = on_workers(3, async {
                let mut colony = crate::load::killed(&log);
                if run % 2 == 1 {
                    // as after a clean stop, so that unfinished messages do not run under a marker
                    colony.marker = None
                }
                let refuse = if last_life { 0 } else { 40 };
                let journal = TestJournal::start(run * 100 + life + 2, refuse, colony.last);
                let builder = Hive::builder().app::<Barn>().seed(3).journal(journal.clone(), colony);
                let hive = builder.start().unwrap();
                let mut io = hive.io();

                io.resume(2, 0);
                for key in 0..SHEAVES {
                    io.emit(Put(key))
                }

                io.flush().await;
                // All cells must exist before the first sweep.
                eventually("all are there", Duration::from_secs(20), || io.floor() >= SHEAVES).await;
                for sweep in 0..3 {
                    io.emit(Gather(sweep));
                    io.flush().await
                }

                if last_life {
                    let mut left = 1_000;
                    loop {
                        let mut got = hive.request(Gathered).await.unwrap();
                        got.sort_unstable();
                        assert!(got.is_sorted_by(|a, b| a < b), "a turn was taken twice: {got:?}");

                        if got.len() as u64 == 3 * SHEAVES {
                            break;
                        }

                        left -= 1;
                        assert!(left > 0, "{} turns of {}", got.len(), 3 * SHEAVES);
                        tokio::time::sleep(Duration::from_millis(10)).await
                    }
                } else {
                    tokio::time::sleep(Duration::from_micros(chance.below(40_000))).await
                }

                journal.stop();
                log.extend(journal.log());
                hive.stop(Duration::ZERO).await;
                log
            });
        }
    }
}

// ---- ticks ----

#[derive(App)]
struct Clock {
    ticks: Dict<u64, Vec<Time>>,
}
const PERIOD: Duration = Duration::from_millis(300);
#[derive(Message)]
struct Wind(u64);
#[derive(Message)]
#[message(reply = Vec<Time>)]
struct Ticks(u64);
#[handlers]
impl Clock {
    #[rcv(sharded)]
    fn wind(&mut self, msg: &Wind) {
        self.ticks.entry(msg.0).or_default();
    }
    #[every("300ms", each = ticks)]
    fn tick(&mut self, key: &u64, ctx: &mut Ctx) {
        self.ticks.entry(*key).or_default().push(ctx.now())
    }
    #[rcv(sharded)]
    fn ticks(&mut self, msg: &Ticks) -> Vec<Time> {
        self.ticks.get(&msg.0).cloned().unwrap_or_default()
    }
}

#[test]
fn ticks_on_a_journal_meet_every_cell_once_in_each_period() {
    on_workers(2, async {
        let journal = TestJournal::start(4, 30, 0);
        let builder = Hive::builder().app::<Clock>().journal(journal.clone(), LogState::default());
        let hive = builder.start().unwrap();
        for key in 0..100 {
            hive.emit(Wind(key)).await
        }

        tokio::time::sleep(PERIOD * 6).await;
        for key in 0..100 {
            // on a busy machine, a sweep on this journal may take longer than a period
            let began = Instant::now();
            let ticks = loop {
                let ticks = hive.request(Ticks(key)).await.unwrap();
                if ticks.len() >= 3 {
                    break ticks;
                }
                assert!(began.elapsed() < Duration::from_secs(20), "key {key}: {ticks:?}");
                tokio::time::sleep(PERIOD / 10).await
            };

            let apart = ticks.windows(2).map(|pair| pair[1].since(pair[0])).min();
            assert!(apart.is_some_and(|apart| apart >= PERIOD / 3), "key {key}: {ticks:?}");
        }

        journal.stop();
        hive.stop(Duration::ZERO).await;
        let colony = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
        assert!(colony.sweeps.len() <= 1, "{:?}", colony.sweeps.keys());
    })
}

// ---- sweeps that find nothing to do ----

#[derive(Message)]
struct Look;
#[derive(App)]
struct Quiet {
    values: Dict<u64, u64>,
}
#[handlers]
impl Quiet {
    #[rcv(sharded)]
    fn wind(&mut self, msg: &Wind) {
        self.values.put(msg.0, msg.0);
    }
    #[every("50ms", each = values)]
    fn tick(&mut self, key: &u64, ctx: &mut Ctx) {
        if self.values.get(key) == Some(&0) {
            ctx.emit(Wind(1_000_000))
        }
    }
    #[rcv(each = values)]
    fn look(&mut self, key: &u64, _: &Look) {
        if self.values.get(key) == Some(&7) {
            self.values.put(*key, 8);
        }
    }
}

const QUIET: u64 = 500;

async fn quiet(first: u64, refuse_one_in: u64) -> (Hive, std::sync::Arc<TestJournal>) {
    let journal = TestJournal::start(9, refuse_one_in, 0);
    let builder = Hive::builder().app::<Quiet>().journal(journal.clone(), LogState::default());
    let hive = builder.start().unwrap();
    for key in first..first + QUIET {
        hive.emit(Wind(key)).await
    }
    hive.idle().await;
    (hive, journal)
}

#[test]
fn ticks_that_change_and_send_nothing_are_not_logged() {
    on_workers(2, async {
        let (hive, journal) = quiet(1, 0).await;
        let logged = journal.log().len();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let visits = hive.status().apps[0].handlers.iter().map(|handler| handler.messages).sum::<u64>();
        assert!(visits > 3 * QUIET, "{visits} visits and messages");
        assert_eq!((journal.log().len(), journal.waiting()), (logged, 0), "an idle hive writes nothing");
        hive.stop(Duration::from_secs(5)).await;

        // a sweep whose visits send a message is logged
        let (hive, journal) = quiet(0, 0).await;
        let sent = || {
            let state = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
            assert!(state.sweeps.is_empty());
            state.emitted
        };
        eventually("two ticks have sent something", Duration::from_secs(10), || sent() >= 2).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A few entries record the visits of all cells, no matter which entries the journal refuses.
#[test]
fn visits_that_change_and_send_nothing_are_logged_together() {
    on_workers(2, async {
        for refuse_one_in in [0, 3] {
            let (hive, journal) = quiet(1, refuse_one_in).await;
            let logged = journal.log().len();
            hive.emit(Look).await;

            let state = || LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
            let over = || state().emitted == 1 && state().sweeps.is_empty();
            eventually("the sweep is over", Duration::from_secs(10), over).await;
            let entries = journal.log().len() - logged;
            assert!(entries < 40, "{entries} entries for {QUIET} cells");
            hive.stop(Duration::from_secs(5)).await;
        }
    })
}
