//! The sender of a sweep merges with another bee while a step of the sweep is being committed.

use crate::load::{eventually, on_workers};
use crate::stalls::StallsAt;
use beehive_core::journal::{Entry, Journal, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

const CELLS: u64 = 8;
const SOON: Duration = Duration::from_secs(10);

#[derive(Message)]
#[message(reply = ())]
struct Plant(u64);
#[derive(Message)]
struct All;
#[derive(Message)]
#[message(reply = u64)]
struct Visits(u64);

#[derive(App)]
struct Field {
    visits: Dict<u64, u64>,
}

#[handlers]
impl Field {
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        self.visits.entry(msg.0).or_default();
    }
    #[rcv(each = visits)]
    fn all(&mut self, key: &u64, _: &All) {
        *self.visits.entry(*key).or_default() += 1
    }
    #[rcv(sharded)]
    fn visits(&mut self, msg: &Visits) -> u64 {
        self.visits.get(&msg.0).copied().unwrap_or_default()
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

    let sweeps = 1 + u64::from(other_sweeps);
    for key in 0..CELLS {
        assert_eq!(hive.request(Visits(key)).await, Ok(sweeps), "cell {key}")
    }
    assert_eq!(entries(&fields.log, |record| matches!(record, Record::Expand { .. })) as u64, sweeps);
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
