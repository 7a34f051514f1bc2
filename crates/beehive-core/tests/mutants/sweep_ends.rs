//! A sweep of bees that move ends after a restart. Its receivers then forget its visits.

use crate::directed::{Add, All, Field, check, wait};
use crate::findings::{Checker, Finding, Watched};
use crate::log_checks::{Log, replay};
use beehive_core::journal::{Entry, Journal, LogState, MessageId, Record, Seq};
use beehive_core::testing::{Mutant, TestJournal};
use beehive_core::{Hive, limits};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More cells than one step of a sweep.
const CELLS: u64 = limits::SWEEP_STEP_MAX as u64 + 100;

/// Starts a hive on two logs.
fn start(logs: &[Log; 2], life: u64, mutant: Option<Mutant>) -> (Hive, [Arc<TestJournal>; 2]) {
    let states = logs.each_ref().map(|log| crate::load::spared(replay(log)));
    let journals = [0, 1].map(|at| TestJournal::start(2 * life + at as u64, 0, states[at].last));
    let logs = journals.clone().map(|journal| journal as Arc<dyn Journal>).into_iter().zip(states);
    let builder = Hive::builder().app::<Field>().seed(7).mutant(mutant);
    (builder.journals(logs).start().unwrap(), journals)
}

/// Returns the sweeps that have begun in a log.
fn begun(log: &[Vec<u8>]) -> Vec<MessageId> {
    let mut sweeps = Vec::new();
    for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
        if let Record::Admit { emits, .. } = entry.record {
            sweeps.extend(emits.iter().filter(|emit| emit.is_sweep).map(|emit| emit.id))
        }
    }
    sweeps
}

/// Plants the cells, and stops when a sweep has begun and cannot end. Returns the sweep, and what the logs contain.
async fn killed_in_a_sweep(mutant: Option<Mutant>) -> Result<(MessageId, [Log; 2]), Finding> {
    let (hive, journals) = start(&[Log::new(), Log::new()], 0, mutant);
    let mut io = hive.io();
    (0..CELLS).for_each(|key| io.emit(Add(key)));
    io.flush().await;
    hive.idle().await;
    io.emit(All);
    io.flush().await;
    hive.idle().await;
    let home = journals.iter().position(|journal| !begun(&journal.log()).is_empty()).unwrap();
    // both logs have bees, and those of this one cannot be visited
    journals[1 - home].stall(true);
    io.emit(All);
    io.flush().await;
    let began = Instant::now();
    let interrupted = loop {
        wait("the sweep begins", began).await?;
        if let [_, second] = begun(&journals[home].log())[..] {
            break second;
        }
    };
    journals.iter().for_each(|journal| journal.stop());
    hive.stop(Duration::ZERO).await;
    Ok((interrupted, journals.each_ref().map(|journal| journal.log())))
}

/// Returns a bee whose dedup table still has to list visits of a sweep.
fn remembers(state: &LogState, sweep: MessageId) -> Option<String> {
    let ended: Seq = sweep.seq.next();
    let mut bees = state.bees.iter();
    let found =
        bees.find(|(_, image)| image.seen.floor(sweep.lane) < ended && image.seen.contains_lane(sweep.lane));
    found.map(|(bee, image)| format!("{bee:?} has the floor {:?}", image.seen.floor(sweep.lane)))
}

#[test]
fn a_sweep_that_ends_after_a_restart() {
    check(Mutant::OpenSweepsForgotten, Checker::Memory, |mutant| {
        let patience = Duration::from_secs(if mutant.is_some() { 3 } else { 30 });
        let (sweep, logs) = Watched::new(3).run(killed_in_a_sweep(mutant))??;
        assert!(logs.iter().any(|log| replay(log).sweeps.contains_key(&sweep)), "the sweep is over");
        Watched::new(3).run(async move {
            let (hive, journals) = start(&logs, 1, mutant);
            let began = Instant::now();
            let found = loop {
                hive.idle().await;
                // the visits of the next sweep state a floor
                hive.emit(All).await;
                hive.idle().await;
                let states = [0, 1].map(|at| replay(&[&logs[at][..], &journals[at].log()].concat()));
                let is_over = states.iter().all(|state| !state.sweeps.contains_key(&sweep));
                let Some(found) = states.iter().find_map(|state| remembers(state, sweep)) else {
                    break if is_over { Ok(()) } else { Err(Finding::new(Checker::Rest, "the sweep runs")) };
                };
                if began.elapsed() > patience {
                    break Err(Finding::new(Checker::Memory, found));
                }
                tokio::time::sleep(Duration::from_millis(110)).await
            };
            journals.iter().for_each(|journal| journal.stop());
            hive.stop(Duration::ZERO).await;
            found
        })?
    })
}
