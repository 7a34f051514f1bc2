//! The sender of a sweep merges with another bee while a step of the sweep is being committed, and the hive may crash then.

use crate::load::{eventually, on_workers};
use crate::stalls::StallsAt;
use beehive_core::journal::{Entry, Journal, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::{Duration, Instant};

const CELLS: u64 = 8;
const SOON: Duration = Duration::from_secs(10);

#[derive(Message)]
#[message(reply = ())]
pub(crate) struct Plant(pub(crate) u64);
#[derive(Message)]
pub(crate) struct All;
/// The sender sends it to a cell, behind its sweep.
#[derive(Message)]
pub(crate) struct After(pub(crate) u64);
#[derive(Message)]
#[message(reply = Vec<Turn>)]
pub(crate) struct Turns(pub(crate) u64);
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Turn {
    Visit,
    After,
}

#[derive(App)]
pub(crate) struct Field {
    turns: Dict<u64, Vec<Turn>>,
}

#[handlers]
impl Field {
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        self.turns.entry(msg.0).or_default();
    }
    #[rcv(each = turns)]
    fn all(&mut self, key: &u64, _: &All) {
        self.turns.entry(*key).or_default().push(Turn::Visit)
    }
    #[rcv(sharded)]
    fn after(&mut self, msg: &After) {
        self.turns.entry(msg.0).or_default().push(Turn::After)
    }
    #[rcv(sharded)]
    fn turns(&mut self, msg: &Turns) -> Vec<Turn> {
        self.turns.get(&msg.0).cloned().unwrap_or_default()
    }
}

/// Removes both values, so that their owner may end.
#[derive(Message)]
#[message(reply = ())]
struct Clear(u64, u64);
/// Begins a sweep if `sweeps`.
#[derive(Message)]
#[message(reply = ())]
struct Begin {
    key: u64,
    sweeps: bool,
}
#[derive(Message)]
#[message(reply = ())]
struct Join(u64, u64);
/// Sends [`After`] to all cells.
#[derive(Message)]
#[message(reply = ())]
struct Follow(u64);

#[derive(App)]
struct Farmer {
    begun: Dict<u64, u64>,
}

#[handlers]
impl Farmer {
    #[rcv(sharded)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        *self.begun.entry(msg.key).or_default() += 1;
        if msg.sweeps {
            ctx.emit(All)
        }
    }
    #[rcv(joins)]
    fn join(&mut self, msg: &Join) {
        *self.begun.entry(msg.0).or_default() += 1;
        *self.begun.entry(msg.1).or_default() += 1
    }
    #[rcv(sharded)]
    fn follow(&mut self, msg: &Follow, ctx: &mut Ctx) {
        *self.begun.entry(msg.0).or_default() += 1;
        (0..CELLS).for_each(|key| ctx.emit(After(key)))
    }
    #[rcv(joins)]
    fn clear(&mut self, msg: &Clear) {
        self.begun.remove(&msg.0);
        self.begun.remove(&msg.1);
    }
}

fn entries(log: &TestJournal, is_one: fn(&Record) -> bool) -> usize {
    log.log().iter().filter(|bytes| is_one(&Entry::decode(bytes).unwrap().record)).count()
}

/// Each cell is visited once per sweep, although the bee that goes on with the sweep is another one. A second sweep, which the
/// other bee has begun, does not lose its place either.
async fn merge_during_a_step(other_sweeps: bool) {
    let senders = TestJournal::start(1, 0, 0);
    let fields = Arc::new(StallsAt::new(TestJournal::start(2, 0, 0), |record| {
        matches!(record, Record::Expand { .. })
    }));
    let new = |journal: Arc<dyn Journal>| (journal, LogState::default());
    let (of_senders, of_fields) = (new(senders.clone()), new(fields.clone()));
    let hive = Hive::builder()
        .app::<Farmer>()
        .app::<Field>()
        .journal_of(["farmer"], of_senders.0, of_senders.1)
        .journal_of(["field"], of_fields.0, of_fields.1)
        .start()
        .unwrap();
    for key in 0..CELLS {
        hive.request(Plant(key)).await.unwrap()
    }
    // the first one has the lower id, and stays
    for key in 0..2 {
        hive.request(Begin { key, sweeps: false }).await.unwrap()
    }

    fields.arm();
    hive.request(Begin { key: 1, sweeps: true }).await.unwrap();
    eventually("a step is being committed", SOON, || fields.has_stalled()).await;
    if other_sweeps {
        hive.request(Begin { key: 0, sweeps: true }).await.unwrap()
    }
    hive.request(Join(0, 1)).await.unwrap();
    assert_eq!(entries(&senders, |record| matches!(record, Record::Fuse { .. })), 1);
    // time for the queue of the other bee to look at what waits
    tokio::time::sleep(Duration::from_millis(100)).await;
    fields.log.stall(false);
    hive.idle().await;

    let sweeps = 1 + usize::from(other_sweeps);
    for key in 0..CELLS {
        assert_eq!(hive.request(Turns(key)).await, Ok(vec![Turn::Visit; sweeps]), "cell {key}")
    }
    assert_eq!(entries(&fields.log, |record| matches!(record, Record::Expand { .. })), sweeps);
    // the task of the sender's queue has ended, and keeps nothing
    hive.request(Clear(0, 1)).await.unwrap();
    eventually("the sender ends", SOON, || hive.status().apps[0].bees == 0).await;
    hive.stop(SOON).await;
    senders.stop();
    fields.log.stop()
}

#[test]
fn a_sweep_takes_each_step_once_although_its_sender_merges() {
    for other_sweeps in [false, true] {
        on_workers(2, merge_during_a_step(other_sweeps))
    }
}

// ---- a crash ----

/// An app whose bees are in several logs, so that bees may move.
#[derive(App)]
struct Elsewhere {
    known: Dict<u64, u64>,
}

#[handlers]
impl Elsewhere {
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        *self.known.entry(msg.0).or_default() += 1
    }
}

/// The logs of the senders and of the fields, and if bees move, those of the other app.
fn begin_on(logs: Vec<(Arc<dyn Journal>, LogState)>) -> Hive {
    let mut logs = logs.into_iter();
    let mut next = || logs.next().unwrap();
    let (senders, fields) = (next(), next());
    let builder = Hive::builder()
        .seed(3)
        .app::<Farmer>()
        .app::<Field>()
        .journal_of(["farmer"], senders.0, senders.1)
        .journal_of(["field"], fields.0, fields.1);
    let others: Vec<_> = logs.collect();
    match others.is_empty() {
        true => builder.start().unwrap(),
        false => builder.app::<Elsewhere>().journals(others).start().unwrap(),
    }
}

/// Returns the state of a log after what a journal got.
fn after(state: &LogState, journal: &TestJournal) -> LogState {
    let mut state = state.clone();
    for bytes in journal.log() {
        state.apply(&Entry::decode(&bytes).unwrap());
    }
    state
}

/// A life of a hive. It is killed when the sweep of the sender has begun, and its first step is being committed.
#[derive(Clone, Copy)]
struct Life {
    /// The sender sends the sweep. Otherwise, an earlier hive has begun it.
    begins: bool,
    /// The sender merges into another bee, which then sends a message to each cell.
    merges: bool,
}

impl Life {
    /// Returns the states of the logs when the hive was killed.
    async fn killed(self, states: Vec<LogState>) -> Vec<LogState> {
        let journals: Vec<_> =
            (1..).zip(&states).map(|(seed, state)| TestJournal::start(seed, 0, state.last)).collect();
        let fields =
            Arc::new(StallsAt::new(journals[1].clone(), |record| matches!(record, Record::Expand { .. })));
        let mut all: Vec<Arc<dyn Journal>> = journals.iter().map(|log| log.clone() as _).collect();
        all[1] = fields.clone();
        if !self.begins {
            fields.arm()
        }
        let before = states.clone();
        let hive = begin_on(all.into_iter().zip(states).collect());
        if self.begins {
            for key in 0..CELLS {
                hive.request(Plant(key)).await.unwrap()
            }
            for key in 0..2 {
                hive.request(Begin { key, sweeps: false }).await.unwrap()
            }
            hive.idle().await;
            fields.arm();
            hive.request(Begin { key: 1, sweeps: true }).await.unwrap()
        }
        eventually("a step is being committed", SOON, || fields.has_stalled()).await;
        // time in which the log of the sender learns what the other one has committed
        tokio::time::sleep(Duration::from_millis(500)).await;
        if self.merges {
            hive.request(Join(0, 1)).await.unwrap();
            hive.request(Follow(0)).await.unwrap();
            hive.request(Follow(1)).await.unwrap()
        }
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;
        let ended = before.iter().zip(&journals).map(|(state, journal)| after(state, journal));
        ended.map(|state| LogState { marker: None, ..state }).collect()
    }
}

async fn restart_behind_a_merge(states: Vec<LogState>) {
    let journals: Vec<_> =
        (11..).zip(&states).map(|(seed, state)| TestJournal::start(seed, 0, state.last)).collect();
    let all = journals.iter().map(|log| log.clone() as Arc<dyn Journal>);
    let before = states.clone();
    let hive = begin_on(all.zip(states).collect());
    for key in 0..CELLS {
        let began = Instant::now();
        let mut turns = Vec::new();
        while turns.len() < 3 && began.elapsed() < SOON {
            tokio::time::sleep(Duration::from_millis(5)).await;
            turns = hive.request(Turns(key)).await.unwrap()
        }
        assert_eq!(turns, [Turn::Visit, Turn::After, Turn::After], "cell {key}")
    }
    // nothing of the sweep stays in the log of the sender
    eventually("all is acknowledged", SOON, || {
        let states = journals.iter().zip(&before).map(|(journal, state)| after(state, journal));
        states.into_iter().all(|state| state.outbox.is_empty() && state.sweeps.is_empty())
    })
    .await;
    hive.stop(SOON).await;
    for log in &journals {
        log.stop()
    }
}

fn stays_behind_the_sweep(lives: &[Life]) {
    // with four logs, bees move
    for logs in [2, 4] {
        let mut states = vec![LogState::default(); logs];
        for life in lives {
            states = on_workers(2, life.killed(states));
            assert_eq!(states[1].sweeps.len(), 1, "{logs} logs: the sweep has begun");
        }
        assert!(!states[0].outbox.is_empty(), "{logs} logs: the messages behind it wait");
        on_workers(2, restart_behind_a_merge(states))
    }
}

#[test]
fn after_a_crash_what_the_merged_bee_has_sent_stays_behind_the_sweep() {
    stays_behind_the_sweep(&[Life { begins: true, merges: true }])
}

#[test]
fn after_two_crashes_what_the_merged_bee_has_sent_stays_behind_the_sweep() {
    stays_behind_the_sweep(&[Life { begins: true, merges: false }, Life { begins: false, merges: true }])
}
