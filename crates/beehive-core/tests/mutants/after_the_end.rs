//! A hive ends while its logs go on, or have crashed: runs, merges, moves, timers and requests are under way. From then on, no
//! handler begins, and nothing is appended, proposed or answered.

use crate::directed::{check, wait};
use crate::findings::{Checker, Finding, Watched};
use beehive_core::journal::{Journal, LogState};
use beehive_core::registry::{Decision, LocalRegistry, Proposal, Registry, RegistryState, Unavailable};
use beehive_core::seams::BoxFuture;
use beehive_core::testing::{Mutant, TestJournal, move_one};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The handlers of all scenarios count here, so the scenarios take turns.
static TURN: Mutex<()> = Mutex::new(());
/// Number of handlers that have begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// Whether a handler of [`Hold`] may end.
static MAY_END: AtomicBool = AtomicBool::new(false);

#[derive(Message)]
#[message(reply = u64)]
struct Hit(u64);
/// Waits until [`MAY_END`] is set.
#[derive(Message)]
struct Hold;
/// Sends [`Hit`] after [`TIMER`].
#[derive(Message)]
struct Remind(u64);
/// Merges the bees of two keys.
#[derive(Message)]
#[message(reply = u64)]
struct Both(u64, u64);

const TIMER: Duration = Duration::from_millis(800);
const KEYS: u64 = 40;

#[derive(App)]
struct Board {
    hits: Dict<u64, u64>,
}
#[handlers]
impl Board {
    #[rcv(sharded)]
    fn hit(&mut self, msg: &Hit) -> u64 {
        BEGUN.fetch_add(1, Ordering::AcqRel);
        *self.hits.entry(msg.0).or_default() += 1;
        msg.0
    }
    #[rcv(centralized)]
    fn hold(&mut self, _: &Hold) {
        BEGUN.fetch_add(1, Ordering::AcqRel);
        *self.hits.entry(u64::MAX).or_default() += 1;
        while !MAY_END.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
    }
    #[rcv(sharded)]
    fn remind(&mut self, msg: &Remind, ctx: &mut Ctx) {
        *self.hits.entry(msg.0).or_default() += 1;
        ctx.after(TIMER, Hit(msg.0))
    }
    #[rcv(joins)]
    fn both(&mut self, msg: &Both) -> u64 {
        BEGUN.fetch_add(1, Ordering::AcqRel);
        *self.hits.entry(msg.0).or_default() += 1;
        *self.hits.entry(msg.1).or_default() += 1;
        msg.0
    }
}

/// The registry of a single hive, which counts proposals.
struct Counted {
    registry: LocalRegistry,
    proposals: AtomicU64,
}

impl Registry for Counted {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        self.proposals.fetch_add(proposals.len() as u64, Ordering::AcqRel);
        self.registry.propose(proposals)
    }
    fn index(&self) -> u64 {
        self.registry.index()
    }
    fn wait(&self, index: u64) -> BoxFuture<()> {
        self.registry.wait(index)
    }
    fn read(&self, read: &mut dyn FnMut(&RegistryState)) {
        self.registry.read(read)
    }
}

/// A hive and everything that sees what it does.
struct Ending {
    hive: Hive,
    journals: Vec<Arc<TestJournal>>,
    registry: Arc<Counted>,
    answers: Arc<AtomicU64>,
}

/// What a hive has done so far: handlers begun, entries appended, proposals, and answers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Done {
    begun: u64,
    appended: usize,
    proposed: u64,
    answered: u64,
}

impl Ending {
    fn start(logs: usize, mutant: Option<Mutant>) -> Ending {
        BEGUN.store(0, Ordering::Release);
        MAY_END.store(false, Ordering::Release);
        let journals: Vec<_> = (0..logs as u64).map(|seed| TestJournal::start(seed, 0, 0)).collect();
        let states =
            journals.iter().map(|journal| (journal.clone() as Arc<dyn Journal>, LogState::default()));
        let registry = LocalRegistry::restored(RegistryState::alone(logs as u32, [], 0));
        let registry = Arc::new(Counted { registry, proposals: AtomicU64::new(0) });
        let builder = Hive::builder().app::<Board>().seed(7).mutant(mutant).registry(registry.clone());
        let hive = builder.journals(states).start().unwrap();
        Ending { hive, journals, registry, answers: Arc::default() }
    }

    fn done(&self) -> Done {
        // an entry that is committed meanwhile is counted twice, which the caller excludes by waiting
        let entries = |journal: &Arc<TestJournal>| journal.log().len() + journal.waiting();
        Done {
            begun: BEGUN.load(Ordering::Acquire),
            appended: self.journals.iter().map(entries).sum(),
            proposed: self.registry.proposals.load(Ordering::Acquire),
            answered: self.answers.load(Ordering::Acquire),
        }
    }

    fn ask<M: Message>(&self, message: M) {
        let (hive, answers) = (self.hive.clone(), self.answers.clone());
        tokio::spawn(async move {
            let answer = hive.request_within(Duration::from_secs(60), message).await;
            answers.fetch_add(u64::from(answer.is_ok()), Ordering::AcqRel)
        });
    }

    /// Checks for some time that the hive does nothing more.
    async fn stays(&self, before: Done, time: Duration) -> Result<(), Finding> {
        let began = Instant::now();
        while began.elapsed() < time {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let done = self.done();
            if done != before {
                let what = format!("{before:?} when the hive ended, and then {done:?}");
                return Err(Finding::new(Checker::Ended, what));
            }
        }
        Ok(())
    }
}

/// A hive is stopped during the first of some messages that arrived together. Its log goes on.
fn in_a_run(mutant: Option<Mutant>) -> Result<(), Finding> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Watched::new(2).run(async move {
        let ending = Ending::start(1, mutant);
        let mut io = ending.hive.io();
        io.resume(5, 0);
        (0..10).for_each(|_| io.emit(Hold));
        io.flush().await;
        let began = Instant::now();
        while BEGUN.load(Ordering::Acquire) == 0 {
            wait("the first handler begins", began).await?
        }
        ending.hive.stop(Duration::ZERO).await;
        // the log commits what it got until then
        let began = Instant::now();
        while ending.journals[0].waiting() > 0 {
            wait("the log commits", began).await?
        }
        let before = ending.done();
        MAY_END.store(true, Ordering::Release);
        ending.stays(before, Duration::from_millis(300)).await
    })?
}

#[test]
fn a_hive_that_ends_in_a_run_begins_and_records_nothing() {
    check(Mutant::RunsWhenOver, Checker::Ended, in_a_run);
    check(Mutant::RecordsWhenOver, Checker::Ended, in_a_run)
}

/// A hive is stopped while bees merge and move, and timers and requests wait, because its logs commit nothing. Then the logs
/// either go on, or never commit anything, as after a crash.
fn while_logs_stall(logs: usize, crash: bool, mutant: Option<Mutant>) -> Result<(), Finding> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Watched::new(2).run(async move {
        let ending = Ending::start(logs, mutant);
        let Ending { hive, journals, .. } = &ending;
        for key in 0..KEYS {
            hive.emit(Hit(key)).await
        }
        hive.emit(Remind(KEYS)).await;
        hive.idle().await;
        journals.iter().for_each(|journal| journal.stall(true));
        for key in (0..KEYS / 2).step_by(2) {
            ending.ask(Both(key, key + 1))
        }
        for key in KEYS / 2..KEYS {
            ending.ask(Hit(key))
        }
        for chance in 0..4 {
            let hive = hive.clone();
            tokio::spawn(async move { move_one(&hive, chance).await });
        }
        let began = Instant::now();
        while journals.iter().all(|journal| journal.waiting() < 2) {
            wait("merges and runs wait for the log", began).await?
        }
        // on a busy machine, the last of these messages are on their way for some time
        let mut running = ending.done();
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            match ending.done() {
                now if now == running => break,
                now => running = now,
            }
            wait("the hive waits for the log", began).await?
        }
        if crash {
            journals.iter().for_each(|journal| journal.stop())
        }
        hive.stop(Duration::ZERO).await;
        // the stop itself logs what was consumed, the time, and that it was clean
        let before = Done { appended: ending.done().appended, ..running };
        if !crash {
            journals.iter().for_each(|journal| journal.stall(false));
            let began = Instant::now();
            while journals.iter().any(|journal| journal.waiting() > 0) {
                wait("the logs commit", began).await?
            }
        }
        ending.stays(before, TIMER + Duration::from_millis(200)).await
    })?
}

#[test]
fn a_hive_that_ends_while_its_logs_stall_does_nothing_more() {
    check(Mutant::MergesWhenOver, Checker::Ended, |mutant| while_logs_stall(1, true, mutant));
    for (logs, crash) in [(1, false), (2, true), (2, false)] {
        let found = while_logs_stall(logs, crash, None);
        found.unwrap_or_else(|found| panic!("{logs} logs, crash: {crash}: {found}"))
    }
}
