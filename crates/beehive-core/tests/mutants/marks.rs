//! What a log knows of messages without effect when their bee merges or moves. Such messages have no entry of their own: the
//! log has to know of them before it knows of a later message of their sender.

use crate::directed::{Add, Early, Field, Get, LANE, Touch, Unite, check, counter, wait};
use crate::findings::{Checker, Finding, Watched};
use crate::log_checks::replay;
use beehive_core::journal::{Journal, LogState, Part, Seq};
use beehive_core::seams::{BoxFuture, Platform, TokioPlatform};
use beehive_core::testing::{Mutant, TestJournal, move_one};
use beehive_core::{Hive, Io, Time};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A platform on which the hive never gets to its periodic work, which logs what was handled without effect.
struct Unmaintained(TokioPlatform);

impl Unmaintained {
    const PERIOD: Duration = Duration::from_millis(100);

    fn here() -> Arc<Unmaintained> {
        Arc::new(Unmaintained(TokioPlatform::new(tokio::runtime::Handle::current())))
    }
}

impl Platform for Unmaintained {
    fn now(&self) -> Time {
        self.0.now()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        match duration == Unmaintained::PERIOD {
            true => Box::pin(std::future::pending()),
            false => self.0.sleep(duration),
        }
    }
    fn spawn(&self, task: BoxFuture<()>) {
        self.0.spawn(task)
    }
    fn spawns_here(&self) -> bool {
        self.0.spawns_here()
    }
    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        self.0.spawn_blocking(task)
    }
    fn spawn_thread(&self, name: &str, task: Box<dyn FnOnce() + Send>) {
        self.0.spawn_thread(name, task)
    }
    fn random(&self) -> u64 {
        self.0.random()
    }
    fn workers(&self) -> usize {
        self.0.workers()
    }
}

/// The number of the message without effect.
const TOUCHED: Seq = Seq(1);
/// The number of the later message.
const ADDED: Seq = Seq(2);

/// Sends a message that its log cannot commit, so that the floor of the sender stays below it, and then one without effect
/// to cell 1. Waits until the second one is handled.
async fn touch(hive: &Hive, of_field: &TestJournal) -> Result<Io, Finding> {
    of_field.stall(true);
    let mut io = hive.io();
    io.resume(LANE, 0);
    io.emit(Early(0));
    io.flush().await;
    io.emit(Touch(1));
    io.flush().await;
    let began = Instant::now();
    let is_handled = || {
        let status = hive.status();
        status.apps[0].handlers.iter().any(|handler| handler.name == "touch" && handler.messages == 1)
    };
    while !is_handled() {
        wait("the message without effect is handled", began).await?
    }
    Ok(io)
}

/// Sends a message with effect to cell 1, and waits until a log contains it. Checks that this log then also contains the
/// message without effect.
async fn add(io: &mut Io, journals: &[Arc<TestJournal>]) -> Result<(), Finding> {
    io.emit(Add(1));
    io.flush().await;
    let began = Instant::now();
    loop {
        wait("a log contains the message with effect", began).await?;
        for state in journals.iter().map(|journal| replay(&journal.log())) {
            for (bee, image) in &state.bees {
                let lanes = image.seen.floors().map(|(lane, _)| lane).filter(|lane| lane.is_lasting());
                for lane in lanes {
                    let has_handled = |seq| image.seen.contains(lane, seq, Part::WHOLE);
                    if has_handled(ADDED) && has_handled(TOUCHED) {
                        return Ok(());
                    }
                    if has_handled(ADDED) {
                        let what = format!("{bee:?} has handled {ADDED:?}, but not {TOUCHED:?} before");
                        return Err(Finding::new(Checker::Order, what));
                    }
                }
            }
        }
    }
}

#[test]
fn a_message_without_effect_before_a_merge() {
    check(Mutant::MarksNotMerged, Checker::Order, |mutant| {
        Watched::new(2).run(async move {
            let [journal, of_field] = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
            let builder = counter(mutant).app::<Field>().platform(Unmaintained::here());
            let builder = builder.journal_of(["counter"], journal.clone(), LogState::default());
            let hive = builder.journal_of(["field"], of_field.clone(), LogState::default()).start().unwrap();
            // the bee of the first key has the lower id, so it remains
            for key in 0..2 {
                let _ = hive.request(Get(key)).await;
                hive.emit(Add(key)).await;
                hive.idle().await
            }
            let mut io = touch(&hive, &of_field).await?;
            let _ = hive.request(Unite(0, 1)).await;
            let found = add(&mut io, std::slice::from_ref(&journal)).await;
            [journal, of_field].iter().for_each(|journal| journal.stop());
            hive.stop(Duration::ZERO).await;
            found
        })?
    })
}

/// The copy of the bee lists what the old log does not know.
#[test]
fn a_message_without_effect_before_a_move() {
    check(Mutant::DedupNotMoved, Checker::Order, |mutant| {
        Watched::new(2).run(async move {
            let [one, other, of_field] = [1, 2, 3].map(|seed| TestJournal::start(seed, 0, 0));
            let builder = counter(mutant).app::<Field>().platform(Unmaintained::here());
            let builder = builder.journal_of(["field"], of_field.clone(), LogState::default());
            let logs =
                [&one, &other].map(|journal| (journal.clone() as Arc<dyn Journal>, LogState::default()));
            let hive = builder.journals(logs).start().unwrap();
            hive.emit(Add(1)).await;
            hive.idle().await;
            let mut io = touch(&hive, &of_field).await?;
            let (began, mut chance) = (Instant::now(), 0);
            // a bee of the other app does not move, and waits for its log
            let moved = |chance| tokio::time::timeout(Duration::from_millis(500), move_one(&hive, chance));
            while moved(chance).await != Ok(true) {
                chance += 1;
                wait("the bee moves", began).await?
            }
            let journals = [one, other];
            let found = add(&mut io, &journals).await;
            journals.iter().chain([&of_field]).for_each(|journal| journal.stop());
            hive.stop(Duration::ZERO).await;
            found
        })?
    })
}
