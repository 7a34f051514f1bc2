//! A sweep has reached a cell whose bee has ended. A later message of the sweep's sender creates the cell again.

use crate::load::{eventually, on_workers};
use crate::stalls::StallsAt;
use crate::sweep_of_merging_sender::{After, All, Field, Plant, Turn, Turns};
use beehive_core::journal::{Entry, Journal, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::time::Duration;

/// Begins a sweep, and sends a message to a cell behind it.
#[derive(Message)]
struct SweepAndSend(u64);

#[derive(App)]
#[app(name = "sweeper")]
struct Sweeper {
    begun: Dict<u8, u64>,
}
#[handlers]
impl Sweeper {
    #[rcv(centralized)]
    fn sweep_and_send(&mut self, msg: &SweepAndSend, ctx: &mut Ctx) {
        *self.begun.entry(0).or_default() += 1;
        ctx.emit(All);
        ctx.emit(After(msg.0))
    }
}

const LIMIT: Duration = Duration::from_secs(20);

/// A process: the logs of the field, the first of which has its sweeps, and that of the sweeper.
struct Life {
    hive: Hive,
    home: Arc<StallsAt>,
    logs: [Arc<TestJournal>; 3],
    /// The states with which it began.
    begun_with: [LogState; 3],
}

impl Life {
    fn new(states: [LogState; 3], tweak: impl FnOnce(&StallsAt)) -> Life {
        let logs = [0, 1, 2].map(|at: usize| TestJournal::start(1 + at as u64, 0, states[at].last));
        let home = Arc::new(StallsAt::new(logs[0].clone(), |record| matches!(record, Record::Expand { .. })));
        tweak(&home);
        let begun_with = states.clone();
        let [of_home, of_other, of_sweeper] = states;
        let hive = Hive::builder()
            .seed(5)
            .app::<Field>()
            .app::<Sweeper>()
            .journal_of(["sweeper"], logs[2].clone(), of_sweeper)
            .journals([
                (home.clone() as Arc<dyn Journal>, of_home),
                (logs[1].clone() as Arc<dyn Journal>, of_other),
            ])
            .start()
            .unwrap();
        Life { hive, home, logs, begun_with }
    }

    fn state(&self, at: usize) -> LogState {
        let mut state = self.begun_with[at].clone();
        for entry in self.logs[at].log() {
            state.apply(&Entry::decode(&entry).unwrap());
        }
        state
    }

    /// The process ends. Returns its logs, as after a clean stop: unfinished messages do not run under a marker.
    async fn end(self) -> [LogState; 3] {
        self.logs.iter().for_each(|log| log.stop());
        self.hive.stop(Duration::ZERO).await;
        [0, 1, 2].map(|at| LogState { marker: None, ..self.state(at) })
    }
}

#[test]
fn the_visit_of_a_cell_that_was_gone_does_not_come_behind_a_later_message() {
    on_workers(2, async {
        let life = Life::new(Default::default(), |_| ());
        let mut key = 0;
        loop {
            life.hive.emit(Plant(key)).await;
            life.hive.idle().await;
            if !life.state(1).bees.is_empty() {
                break;
            }
            key += 1
        }
        life.logs[1].stall(true);
        life.hive.emit(SweepAndSend(key)).await;
        let is_open =
            || life.state(0).sweeps.values().any(|sweep| sweep.next.is_none() && sweep.open.len() == 1);
        eventually("only the visit in the other log is open", LIMIT, is_open).await;
        let mut states = life.end().await;
        // as if it had ended between the step of the sweep and the visit
        states[1].bees.clear();

        let life = Life::new(states, StallsAt::arm);
        eventually("the log is to say that the cell is gone", LIMIT, || life.home.has_stalled()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let states = life.end().await;
        let is_open = states[0].sweeps.values().any(|sweep| sweep.open.len() == 1);
        assert!(is_open, "the log says nothing of the cell");

        let life = Life::new(states, |_| ());
        let mut done = Vec::new();
        for _ in 0..2_000 {
            done = life.hive.request(Turns(key)).await.unwrap();
            if !done.is_empty() && (0..3).all(|at| life.state(at).sweeps.is_empty()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        assert!(done == [Turn::After] || done == [Turn::Visit, Turn::After], "{done:?}");
        let states = life.end().await;
        assert!(states.iter().all(|state| state.sweeps.is_empty()))
    })
}
