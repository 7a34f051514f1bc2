//! An app is kept in a log by one program, and in memory by the next one, or the other way round.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, AppId, Ctx, Dict, Hive, Message, StartError, handlers};
use std::sync::Arc;
use std::time::Duration;

/// Sends [`Job`].
#[derive(Message)]
struct Order(u64);
#[derive(Message)]
struct Job(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Jobs(u64);

/// Always in the log.
#[derive(App)]
#[app(name = "boss")]
struct Boss {
    orders: Dict<u64, u64>,
}
#[handlers]
impl Boss {
    #[rcv(sharded)]
    fn order(&mut self, msg: &Order, ctx: &mut Ctx) {
        *self.orders.entry(msg.0).or_default() += 1;
        ctx.emit(Job(msg.0))
    }
}

/// In the log, or in memory.
#[derive(App)]
#[app(name = "worker")]
struct Worker {
    jobs: Dict<u64, u64>,
}
#[handlers]
impl Worker {
    #[rcv(sharded)]
    fn job(&mut self, msg: &Job) {
        *self.jobs.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn jobs(&mut self, msg: &Jobs) -> u64 {
        self.jobs.get(&msg.0).copied().unwrap_or(0)
    }
}

const WORKER: AppId = AppId(1);
const KEYS: u64 = 20;

/// The log of all lives so far.
struct Log {
    entries: Vec<Vec<u8>>,
    journal: Arc<TestJournal>,
}

impl Log {
    fn new() -> Log {
        Log { entries: Vec::new(), journal: TestJournal::start(1, 0, 0) }
    }

    fn state(&self) -> LogState {
        let mut all = self.entries.clone();
        all.extend(self.journal.log());
        killed(&all)
    }

    /// Begins the next life, after the process has ended at this moment.
    fn start(&mut self, in_memory: bool) -> Result<Hive, StartError> {
        self.journal.stop();
        self.entries.extend(self.journal.log());
        self.journal = TestJournal::start(1 + self.entries.len() as u64, 0, killed(&self.entries).last);
        let builder = Hive::builder().app::<Boss>().app::<Worker>().seed(7);
        let builder = builder.journal(self.journal.clone(), self.state());
        if in_memory { builder.in_memory(["worker"]) } else { builder }.start()
    }

    /// Lets the process end earlier: when the log contained the first jobs, and no bee that has handled one. Returns the number
    /// of these jobs.
    fn cut(&mut self) -> u64 {
        self.journal.stop();
        self.entries.extend(self.journal.log());
        let has_job = |length: &usize| !killed(&self.entries[..*length]).outbox.is_empty();
        let length = (0..=self.entries.len()).find(has_job).expect("a job was in the log");
        self.entries.truncate(length);
        let state = killed(&self.entries);
        assert!(state.bees.keys().all(|(app, _)| *app != WORKER));
        self.journal = TestJournal::start(1, 0, state.last);
        state.outbox.len() as u64
    }

    /// Waits until no message is unhandled.
    async fn rests(&self) {
        eventually("nothing is unhandled", Duration::from_secs(10), || self.state().outbox.is_empty()).await
    }
}

async fn order(hive: &Hive) {
    for key in 0..KEYS {
        hive.emit(Order(key)).await
    }
}

/// Waits until this many jobs of all keys are done.
async fn counts(hive: &Hive, expected: u64) {
    let mut counted = 0;
    for _ in 0..1_000 {
        counted = 0;
        for key in 0..KEYS {
            counted += hive.request(Jobs(key)).await.unwrap()
        }
        if counted == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await
    }
    panic!("{counted} jobs are done, instead of {expected}")
}

#[test]
fn what_an_app_had_in_memory_is_gone_when_it_gets_a_log() {
    on_workers(2, async {
        let mut log = Log::new();
        let hive = log.start(true).unwrap();
        order(&hive).await;
        counts(&hive, KEYS).await;
        log.rests().await;
        assert!(log.state().bees.keys().all(|(app, _)| *app != WORKER));

        let after_crash = log.start(false).unwrap();
        drop(hive);
        counts(&after_crash, 0).await;
        order(&after_crash).await;
        counts(&after_crash, KEYS).await;
        log.rests().await;
        assert_eq!(log.state().bees.keys().filter(|(app, _)| *app == WORKER).count() as u64, KEYS);

        // from now on, it is there
        let again = log.start(false).unwrap();
        drop(after_crash);
        counts(&again, KEYS).await;
        again.stop(Duration::from_secs(5)).await;
        log.rests().await
    })
}

#[test]
fn the_bees_that_an_app_has_in_a_log_keep_it_from_being_in_memory() {
    on_workers(2, async {
        let mut log = Log::new();
        let hive = log.start(false).unwrap();
        order(&hive).await;
        counts(&hive, KEYS).await;

        let Err(StartError::Log { why }) = log.start(true) else { panic!("the bees are in the log") };
        drop(hive);
        assert!(
            why.contains("bees of the app `worker`") && why.contains("give the app the log that it had"),
            "{why}"
        );
        let hive = log.start(false).unwrap();
        counts(&hive, KEYS).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn a_message_in_a_log_to_an_app_that_is_now_in_memory_is_given_to_it_once() {
    on_workers(2, async {
        let mut log = Log::new();
        let hive = log.start(false).unwrap();
        order(&hive).await;
        counts(&hive, KEYS).await;
        let unhandled = log.cut();
        drop(hive);

        let in_memory = log.start(true).unwrap();
        counts(&in_memory, unhandled).await;
        log.rests().await;
        let again = log.start(true).unwrap();
        drop(in_memory);
        order(&again).await;
        counts(&again, KEYS).await;
        log.rests().await;

        // and back
        let back = log.start(false).unwrap();
        drop(again);
        counts(&back, 0).await;
        order(&back).await;
        counts(&back, KEYS).await;
        log.rests().await;
        back.stop(Duration::from_secs(5)).await;
    })
}
