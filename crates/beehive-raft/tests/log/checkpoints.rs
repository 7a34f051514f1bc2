//! A checkpoint is made from the one before it: what has not changed since is taken over as it is.

use crate::client::{FOLDER, Reports};
use beehive_core::journal::Journal;
use beehive_protocol::{
    AppId, BeeId, CellId, Entry, Input, LaneId, LogState, Op, Part, Record, Redo, Seq, Time, Work,
};
use beehive_raft::files::{Fault, Files, SimulatedFiles};
use beehive_raft::{Data, OpenError, Options};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LOGS: usize = 2;

/// Bees that are made at the beginning.
const BEES: u64 = 60;

/// Senders whose lanes the bees remember.
const LANES: u64 = 5;

fn lane(number: u64) -> LaneId {
    LaneId::of_bee(AppId(1), BeeId(1_000 + number))
}

fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random >> 8
}

/// A log, and the state that results from what was appended to it.
struct Log {
    journal: Arc<dyn Journal>,
    reports: Arc<Reports>,
    model: LogState,
}

impl Log {
    fn append(&mut self, record: Record) {
        let entry = Entry { number: self.model.last.next(), after: self.model.last, record };
        assert!(self.model.apply(&entry));
        self.journal.append(Arc::new(entry))
    }

    /// A bee handles a message from outside its log, and changes a row.
    fn work(&mut self, bee: u64, random: &mut u64) {
        let mut redo = Redo::default();
        let (row, value) = (next(random) % 3, vec![next(random) as u8; (next(random) % 50) as usize]);
        redo.push(Op { dict: 0, key: &bee.to_le_bytes(), row: Some(&[row as u8]), value: Some(&value) });
        let from = lane(next(random) % LANES);
        let input =
            Input { lane: from, floor: Some(Seq(0)), seq: Seq(next(random)), count: 1, part: Part::WHOLE };
        let work = Work {
            app: AppId(0),
            bee: BeeId(bee),
            cells: vec![CellId(bee)],
            inputs: [input].into_iter().collect(),
            visits: Vec::new(),
            redo,
            emits: Default::default(),
            next_seq: Seq(next(random) % 100),
            now: Time::from_nanoseconds(next(random)),
        };
        self.append(Record::Turn(vec![Arc::new(work)]))
    }

    /// Does something to a few bees.
    fn step(&mut self, random: &mut u64) {
        let app = AppId(0);
        let bees: Vec<BeeId> = self.model.bees.keys().map(|(_, bee)| *bee).collect();
        let bee = bees[(next(random) % bees.len() as u64) as usize];
        match next(random) % 40 {
            0 => self.append(Record::Release { app, bee, floors: Vec::new(), view: 0 }),
            1 if bee != bees[0] => self.append(Record::Fuse { app, from: bee, into: bees[0], view: 0 }),
            2 => self.append(Record::Retire { lanes: vec![lane(next(random) % LANES)], view: 0 }),
            3 => self.work(BEES + 1 + next(random) % 1_000, random),
            // most of the time, the same few bees are active
            _ => self.work(1 + next(random) % 3, random),
        }
    }

    /// Waits until everything is on disk.
    fn settle(&self) -> bool {
        self.reports.wait(self.model.last.0, Duration::from_secs(20))
    }
}

fn open(files: &SimulatedFiles) -> Result<Data, OpenError> {
    let options = Options::default().files(Arc::new(files.clone())).logs(LOGS as u16);
    let data = options.sizes(1_500, 3_000).open(FOLDER)?;
    data.begin()?;
    Ok(data)
}

/// Returns the logs, and checks that each is as the model says.
fn logs(data: &Data, models: &[LogState]) -> Vec<Log> {
    let all = data.journals().into_iter().enumerate();
    all.map(|(log, (journal, state))| {
        let mut model = models.get(log).cloned().unwrap_or_default();
        model.begin_term(state.last.term());
        assert!(state == model, "log {log} is not as it was");
        let reports = Arc::new(Reports::default());
        journal.attach(reports.clone());
        Log { journal, reports, model }
    })
    .collect()
}

/// Waits until no checkpoint is being made.
fn settle(data: &Data) {
    let until = Instant::now() + Duration::from_secs(20);
    while data.status().is_making_checkpoint {
        assert!(Instant::now() < until, "a checkpoint takes long: {:?}", data.status());
        std::thread::sleep(Duration::from_millis(1))
    }
}

#[test]
fn a_checkpoint_contains_what_has_not_changed_since_the_one_before() {
    for seed in 1..9u64 {
        let files = SimulatedFiles::new(seed);
        let (mut random, mut models) = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), Vec::new());
        let mut checkpoints = 0;
        for life in 0..3 {
            let data = open(&files).unwrap();
            let mut logs = logs(&data, &models);
            for log in &mut logs {
                (1..=BEES).filter(|_| life == 0).for_each(|bee| log.work(bee, &mut random))
            }
            for _ in 0..20 {
                for log in &mut logs {
                    (0..10).for_each(|_| log.step(&mut random));
                    assert!(log.settle())
                }
                settle(&data)
            }
            checkpoints += data.status().checkpoints;
            models = logs.into_iter().map(|log| log.model).collect();
            data.close()
        }
        assert!(checkpoints >= 3, "{checkpoints} checkpoints");
        let data = open(&files).unwrap();
        logs(&data, &models);
        data.close()
    }
}

/// The files fail while the checkpoint before is read the first or the second time, or the next one is written. The log goes
/// on, and nothing is lost.
#[test]
fn a_checkpoint_that_cannot_be_made_changes_nothing() {
    let (mut warned, mut made) = (0, 0);
    for at in 0..60 {
        let files = SimulatedFiles::new(3);
        let mut random = 0x1234_5678_9abc;
        let data = open(&files).unwrap();
        let mut all = logs(&data, &[]);
        (1..=BEES).for_each(|bee| all[0].work(bee, &mut random));
        while data.status().checkpoints < 2 {
            all[0].step(&mut random);
            assert!(all[0].settle());
        }
        let models: Vec<LogState> = all.into_iter().map(|log| log.model).collect();
        data.close();

        // the next checkpoint is made by the last finished segment of this life, while nothing else happens
        let data = Options::default().files(Arc::new(files.clone())).logs(LOGS as u16);
        let data = data.sizes(1_500, 1 << 20).open(FOLDER).unwrap();
        data.begin().unwrap();
        let mut all = logs(&data, &models);
        (0..100).for_each(|_| all[0].step(&mut random));
        assert!(all[0].settle());
        let models: Vec<LogState> = all.into_iter().map(|log| log.model).collect();
        data.close();

        let data = open(&files).unwrap();
        files.fail_at(files.operations() + 1 + at, Fault::Device);
        let until = Instant::now() + Duration::from_secs(20);
        while data.status().checkpoints == 0 && data.status().warning.is_none() {
            assert!(Instant::now() < until, "{:?}", data.status());
            std::thread::sleep(Duration::from_millis(1))
        }
        warned += u32::from(data.status().warning.is_some());
        made += data.status().checkpoints;
        data.close();
        // without the fault, if no operation came so far
        let files = files.copy();
        let data = open(&files).unwrap();
        logs(&data, &models);
        data.close();
        assert!(files.list(Path::new(FOLDER)).unwrap().iter().any(|name| name.starts_with("checkpoint")));
    }
    assert!(warned > 5 && made > 5, "{warned} attempts failed, {made} succeeded");
}
