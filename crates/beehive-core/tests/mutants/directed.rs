//! Mutants that the load seldom reaches, each with the scenario that its rule is about.

use crate::findings::{Checker, Finding, Watched};
use crate::log_checks::{Log, check_ends, check_ids, check_owners, replay};
use crate::log_mutants::{LogMutant, replay_as};
use beehive_core::journal::{CrashMarker, Entry, Journal, LogState, Record};
use beehive_core::testing::{Mutant, TestJournal, move_one};
use beehive_core::{App, Builder, Ctx, Dict, Hive, Io, Message, handlers, limits};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Adds one to a cell.
#[derive(Message)]
pub(crate) struct Add(pub(crate) u64);
/// Looks at a cell, and changes nothing.
#[derive(Message)]
pub(crate) struct Touch(pub(crate) u64);
/// Touches a cell that stays empty, so its bee soon retires.
#[derive(Message)]
struct Leave(u64);
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Get(pub(crate) u64);
/// `Counter` passes it on to `Field`.
#[derive(Message)]
#[message(reply = u64)]
struct Pass(u64);
/// Needs the cells of two keys.
#[derive(Message)]
struct Both(u64, u64);
/// Merges the bees of two keys.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Unite(pub(crate) u64, pub(crate) u64);
/// `Counter` sends [`After`] to `Field`.
#[derive(Message)]
struct Tell(u64);
/// Checks that [`Both`] has been handled before.
#[derive(Message)]
struct Behind(u64);
/// Waits until [`HELD`] is false.
#[derive(Message)]
struct Hold;
/// Adds one to every cell.
#[derive(Message)]
pub(crate) struct All;
/// Sends [`All`], and then [`After`] to every cell.
#[derive(Message)]
struct Begin(u64);
/// Checks that the sweep has visited the cell before.
#[derive(Message)]
struct After(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Overtaken(u64);

static HELD: AtomicBool = AtomicBool::new(false);
static HOLDS: AtomicBool = AtomicBool::new(false);

#[derive(App)]
pub(crate) struct Counter {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Counter {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) {
        *self.counts.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn touch(&mut self, msg: &Touch) {
        let _ = self.counts.get(&msg.0);
    }
    #[rcv(sharded)]
    fn leave(&mut self, msg: &Leave) {
        self.counts.remove(&msg.0);
    }
    #[rcv(sharded)]
    fn get(&mut self, msg: &Get) -> u64 {
        self.counts.get(&msg.0).copied().unwrap_or(0)
    }
    #[rcv(joins)]
    fn both(&mut self, msg: &Both) {
        *self.counts.entry(msg.0).or_default() += 1;
        *self.counts.entry(msg.1).or_default() += 1
    }
    #[rcv(sharded)]
    fn tell(&mut self, msg: &Tell, ctx: &mut Ctx) {
        *self.counts.entry(msg.0).or_default() += 1;
        ctx.emit(After(msg.0))
    }
    #[rcv(joins)]
    fn unite(&mut self, msg: &Unite) -> u64 {
        let one = self.counts.get(&msg.0).copied().unwrap_or(0);
        one + self.counts.get(&msg.1).copied().unwrap_or(0)
    }
    #[rcv(sharded)]
    fn behind(&mut self, msg: &Behind) {
        if self.counts.get(&msg.0) == Some(&1) {
            *self.counts.entry(msg.0).or_default() += 100
        }
    }
    #[rcv(sharded)]
    fn pass(&mut self, msg: &Pass) -> Option<u64> {
        *self.counts.entry(msg.0).or_default() += 1;
        None
    }
    #[rcv(centralized)]
    fn hold(&mut self, _: &Hold) {
        HOLDS.store(true, Ordering::Release);
        while HELD.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
        *self.counts.entry(u64::MAX).or_default() += 1
    }
}

#[derive(App)]
pub(crate) struct Field {
    visits: Dict<u64, u64>,
    early: Dict<u64, u64>,
}
#[handlers]
impl Field {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add) {
        self.visits.entry(msg.0).or_default();
    }
    #[rcv(each = visits)]
    fn all(&mut self, key: &u64, _: &All) {
        *self.visits.entry(*key).or_default() += 1
    }
    #[rcv(sharded)]
    fn pass(&mut self, msg: &Pass) -> u64 {
        *self.visits.entry(msg.0).or_default() += 1;
        msg.0
    }
    #[rcv(sharded)]
    fn after(&mut self, msg: &After, ctx: &mut Ctx) {
        if self.visits.get(&msg.0) == Some(&0) {
            ctx.emit(Early(0))
        }
    }
    #[rcv(sharded)]
    fn early(&mut self, msg: &Early) {
        *self.early.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn overtaken(&mut self, msg: &Overtaken) -> u64 {
        self.early.get(&msg.0).copied().unwrap_or(0)
    }
}
#[derive(Message)]
pub(crate) struct Early(pub(crate) u64);

#[derive(App)]
struct Farmer {
    begun: Dict<u64, u64>,
}
#[handlers]
impl Farmer {
    #[rcv(sharded)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        *self.begun.entry(msg.0).or_default() += 1;
        ctx.emit(All);
        (0..msg.0).for_each(|key| ctx.emit(After(key)))
    }
}

pub(crate) const LANE: u64 = 5;

pub(crate) fn counter(mutant: Option<Mutant>) -> Builder {
    Hive::builder().app::<Counter>().seed(7).mutant(mutant)
}

/// Waits a moment; an error after `began` is long ago.
pub(crate) async fn wait(what: &str, began: Instant) -> Result<(), Finding> {
    tokio::time::sleep(Duration::from_millis(2)).await;
    match began.elapsed() > Duration::from_secs(20) {
        true => Err(Finding::new(Checker::Liveness, what)),
        false => Ok(()),
    }
}

/// Waits until the first `count` messages of a sender are done.
pub(crate) async fn all_done(io: &mut Io, count: u64) -> Result<(), Finding> {
    let began = Instant::now();
    while io.floor() != count {
        wait("all messages are done", began).await?
    }
    Ok(())
}

/// A scenario finds the mutant, and finds nothing without it.
#[track_caller]
pub(crate) fn check(
    mutant: Mutant,
    checker: Checker,
    scenario: impl Fn(Option<Mutant>) -> Result<(), Finding>,
) {
    scenario(None).unwrap_or_else(|found| panic!("without {mutant:?}: {found}"));
    match scenario(Some(mutant)) {
        Err(found) if found.checker == checker => println!("{mutant:?}: {found}"),
        found => panic!("{mutant:?}: {checker:?} finds it, not {found:?}"),
    }
}

/// A log that applies the record of a merge unites the dedup tables of the two bees.
#[test]
fn what_a_bee_had_handled_before_it_merged() {
    let scenario = |mutant| {
        let mut log = Log::new();
        for life in 0..2 {
            let before = crate::load::spared(replay_as(&log, mutant));
            log.extend(Watched::new(2).run(async move {
                let journal = TestJournal::start(life, 0, before.last);
                let hive = counter(None).journal(journal.clone(), before).start().unwrap();
                let mut io = hive.io();
                // the sender does not remember which messages were handled
                io.resume(LANE, 0);
                (0..6).for_each(|key| io.emit(Add(key)));
                io.flush().await;
                all_done(&mut io, 6).await?;
                for key in 0..6 {
                    let count = hive.request(Get(key)).await.unwrap_or(0);
                    if count != 1 {
                        return Err(Finding::new(Checker::Counts, format!("{count} messages at {key}")));
                    }
                }
                for key in 1..6 {
                    let _ = hive.request(Unite(key - 1, key)).await;
                }
                journal.stop();
                hive.stop(Duration::ZERO).await;
                Ok(journal.log())
            })??)
        }
        Ok(())
    };
    scenario(None).unwrap_or_else(|found: Finding| panic!("{found}"));
    let found = scenario(Some(LogMutant::DedupNotMerged)).unwrap_err();
    assert_eq!(found.checker, Checker::Counts, "{found}");
}

/// The same without a restart: a sender that has lost its connection sends again what a bee had handled before it merged.
#[test]
fn what_a_bee_had_handled_before_it_merged_in_the_same_life() {
    check(Mutant::DedupNotMerged, Checker::Counts, |mutant| {
        Watched::new(2).run(async move {
            let [journal, of_field] = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
            let builder = counter(mutant).app::<Field>();
            let builder = builder.journal_of(["counter"], journal.clone(), LogState::default());
            let hive = builder.journal_of(["field"], of_field.clone(), LogState::default()).start().unwrap();
            // the bee of the first key has the lower id, so it remains
            for key in 0..2 {
                let _ = hive.request(Get(key)).await;
                hive.emit(Add(key)).await;
                hive.idle().await
            }
            // while its log commits nothing, the floor of the sender stays below this message
            of_field.stall(true);
            let send = async |count| {
                let mut io = hive.io();
                io.resume(LANE, 0);
                io.emit(Early(0));
                io.flush().await;
                for _ in 0..count {
                    io.emit(Add(1));
                    io.flush().await
                }
                let began = Instant::now();
                loop {
                    wait("the messages are handled", began).await?;
                    match hive.request(Get(1)).await {
                        Ok(total) if total > count => return Ok::<u64, Finding>(total),
                        _ => {}
                    }
                }
            };
            assert_eq!(send(1).await?, 2);
            let _ = hive.request(Unite(0, 1)).await;
            let total = send(2).await?;
            [journal, of_field].iter().for_each(|journal| journal.stop());
            hive.stop(Duration::ZERO).await;
            match total {
                3 => Ok(()),
                _ => Err(Finding::new(Checker::Counts, format!("{total} messages instead of 3"))),
            }
        })?
    })
}

/// A restart does not assign the id of a bee that has run and ended, although no bee with a higher id is left.
#[test]
fn the_id_of_a_bee_that_has_ended() {
    check(Mutant::IdReused, Checker::Ids, |mutant| {
        let mut log = Log::new();
        for life in 0..2 {
            let before = replay(&log);
            log.extend(Watched::new(2).run(async move {
                let journal = TestJournal::start(life, 0, before.last);
                let hive = counter(mutant).journal(journal.clone(), before).start().unwrap();
                for key in 6 * life..6 * life + 6 {
                    hive.emit(Add(key)).await;
                    hive.idle().await
                }
                // the bee with the higher id ends
                let _ = hive.request(Unite(4, 5)).await;
                journal.stop();
                hive.stop(Duration::ZERO).await;
                journal.log()
            })?)
        }
        check_ids(&[log])
    })
}

/// Messages that enter through the hive have a new lane in each process.
#[test]
fn the_lane_of_an_earlier_process() {
    check(Mutant::SameLane, Checker::Counts, |mutant| {
        let mut log = Log::new();
        for life in 1..=2 {
            let before = replay(&log);
            let (more, count) = Watched::new(2).run(async move {
                let journal = TestJournal::start(life, 0, before.last);
                let hive = counter(mutant).journal(journal.clone(), before).start().unwrap();
                for _ in 0..10 {
                    hive.emit(Add(1)).await
                }
                hive.idle().await;
                let count = hive.request(Get(1)).await.unwrap_or(0);
                journal.stop();
                hive.stop(Duration::ZERO).await;
                (journal.log(), count)
            })?;
            log.extend(more);
            if count != 10 * life {
                return Err(Finding::new(Checker::Counts, format!("{count} messages in life {life}")));
            }
        }
        Ok(())
    })
}

/// The last app of an answer chain answers to the one who asked.
#[test]
fn an_answer_from_the_end_of_the_chain() {
    check(Mutant::AskerForgotten, Checker::Liveness, |mutant| {
        Watched::new(2).run(async move {
            let journal = TestJournal::start(1, 0, 0);
            let builder = counter(mutant).app::<Field>();
            let hive = builder.journal(journal.clone(), LogState::default()).start().unwrap();
            let answer = hive.request_within(Duration::from_secs(2), Pass(3)).await;
            journal.stop();
            hive.stop(Duration::ZERO).await;
            let unanswered = |error| Finding::new(Checker::Liveness, format!("no answer: {error:?}"));
            answer.map_err(unanswered).map(drop)
        })?
    })
}

/// A read that has seen an uncommitted change is answered when the change is committed.
#[test]
fn a_read_of_the_tail() {
    check(Mutant::ReadTail, Checker::History, |mutant| {
        Watched::new(2).run(async move {
            let journal = TestJournal::start(1, 0, 0);
            let hive = counter(mutant).journal(journal.clone(), LogState::default()).start().unwrap();
            hive.emit(Add(1)).await;
            hive.idle().await;
            journal.stall(true);
            hive.emit(Add(1)).await;
            let early = hive.request_within(Duration::from_millis(200), Get(1)).await;
            journal.stall(false);
            hive.idle().await;
            journal.stop();
            hive.stop(Duration::ZERO).await;
            match early {
                Err(_) => Ok(()),
                Ok(count) => {
                    Err(Finding::new(Checker::History, format!("answered {count} before the commit")))
                }
            }
        })?
    })
}

/// An entry names everything that its bee has handled without effect before. Otherwise a crash right behind this entry
/// would make the earlier message run after the later one.
#[test]
fn one_mark_without_those_before_it() {
    check(Mutant::OneMark, Checker::Order, |mutant| {
        Watched::new(2).run(async move {
            let journal = TestJournal::start(1, 0, 0);
            let hive = counter(mutant).journal(journal.clone(), LogState::default()).start().unwrap();
            hive.emit(Add(1)).await;
            hive.idle().await;
            let mut io = hive.io();
            io.resume(LANE, 0);
            for _ in 0..20 {
                io.emit(Touch(1));
                io.emit(Add(1));
                io.flush().await
            }
            all_done(&mut io, 40).await?;
            journal.stop();
            hive.stop(Duration::ZERO).await;
            let mut handled = BTreeSet::new();
            for entry in journal.log().iter().map(|bytes| Entry::decode(bytes).unwrap()) {
                let Record::Turn(works) = &entry.record else { continue };
                for input in
                    works.iter().flat_map(|work| &work.inputs).filter(|input| input.lane.is_lasting())
                {
                    handled.extend(input.messages().map(|(seq, _)| seq.0))
                }
                let newest = handled.last().copied().unwrap_or(0);
                if let Some(missing) = (0..newest).find(|seq| !handled.contains(seq)) {
                    let what =
                        format!("an entry says that {newest} is handled, but none says so of {missing}");
                    return Err(Finding::new(Checker::Order, what));
                }
            }
            Ok(())
        })?
    })
}

/// After a crash, a message runs when the log's marker names it, and not before that marker is committed.
#[test]
fn a_message_that_may_end_the_process() {
    let scenario = |mutant| {
        Watched::new(3).run(async move {
            HELD.store(true, Ordering::Release);
            HOLDS.store(false, Ordering::Release);
            let journal = TestJournal::start(1, 0, 0);
            let crashed = LogState { marker: Some(CrashMarker::default()), ..LogState::default() };
            let hive = counter(mutant).journal(journal.clone(), crashed).start().unwrap();
            journal.stall(true);
            let mut io = hive.io();
            io.resume(LANE, 0);
            io.emit(Hold);
            io.flush().await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let is_early = HOLDS.load(Ordering::Acquire);
            journal.stall(false);
            let began = Instant::now();
            let mut runs = Ok(());
            while !HOLDS.load(Ordering::Acquire) && runs.is_ok() {
                runs = wait("the message runs", began).await
            }
            let state = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
            HELD.store(false, Ordering::Release);
            runs?;
            all_done(&mut io, 1).await?;
            journal.stop();
            hive.stop(Duration::ZERO).await;
            match state.marker.and_then(|marker| marker.running.first().copied()) {
                _ if is_early => Err(Finding::new(Checker::Marker, "the message runs before the marker")),
                None => Err(Finding::new(Checker::Marker, "the marker names no message")),
                Some(_) => Ok(()),
            }
        })?
    };
    for mutant in [Mutant::PoisonUnmarked, Mutant::PoisonBeforeMarker] {
        check(mutant, Checker::Marker, scenario)
    }
}

/// The same if the bee has moved, and the next owner is in another log, which commits although the log of the bee that
/// has ended does not. After a crash, each log would have an owner of the cell.
#[test]
fn the_next_owner_in_another_log() {
    let found = Watched::new(3).run(async move {
        let journals = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
        let logs = journals.clone().map(|journal| (journal as Arc<dyn Journal>, LogState::default()));
        let hive = counter(None).journals(logs).start().unwrap();
        let mut io = hive.io();
        io.resume(LANE, 0);
        (0..100).for_each(|key| io.emit(Add(key)));
        io.flush().await;
        for chance in 0..200 {
            move_one(&hive, chance).await;
        }
        (0..100).for_each(|key| io.emit(Leave(key)));
        io.flush().await;
        all_done(&mut io, 200).await?;
        journals[0].stall(true);
        let began = Instant::now();
        while hive.status().apps[0].bees_retired == 0 {
            wait("a bee ends", began).await?
        }
        (0..100).for_each(|key| io.emit(Add(key)));
        io.flush().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;
        check_owners(&journals.map(|journal| journal.log()))
    });
    found.and_then(|found| found).unwrap_or_else(|found| panic!("{found}"))
}

/// A bee does not end before everything is acknowledged that another bee had sent before it merged into this one.
#[test]
fn the_outbox_of_a_bee_that_has_merged() {
    check(Mutant::ReleaseBusy, Checker::Ends, |mutant| {
        Watched::new(3).run(async move {
            let [journal, of_field] = [1, 2].map(|seed| TestJournal::start(seed, 0, 0));
            let builder = counter(mutant).app::<Field>();
            let builder = builder.journal_of(["counter"], journal.clone(), LogState::default());
            let hive = builder.journal_of(["field"], of_field.clone(), LogState::default()).start().unwrap();
            let mut io = hive.io();
            io.resume(LANE, 0);
            // the bee of the first key has the lower id, so it remains
            for key in 0..2 {
                let _ = hive.request(Get(key)).await;
            }
            of_field.stall(true);
            io.emit(Tell(1));
            io.flush().await;
            all_done(&mut io, 1).await?;
            let _ = hive.request(Unite(0, 1)).await;
            (0..2).for_each(|key| io.emit(Leave(key)));
            io.flush().await;
            all_done(&mut io, 3).await?;
            // several times the interval at which idle bees end
            tokio::time::sleep(Duration::from_millis(400)).await;
            let early = check_ends(&[journal.log()]);
            of_field.stall(false);
            let began = Instant::now();
            while early.is_ok() && hive.status().apps[0].bees_retired == 0 {
                wait("the bee ends when all is acknowledged", began).await?
            }
            [journal, of_field].iter().for_each(|journal| journal.stop());
            hive.stop(Duration::ZERO).await;
            early
        })?
    })
}

/// A message that waits until two bees have merged is not overtaken by a later one of its sender to one of them.
#[test]
fn a_message_behind_one_that_waits() {
    check(Mutant::NoAfter, Checker::Order, |mutant| {
        Watched::new(3).run(async move {
            let journal = TestJournal::start(1, 0, 0);
            let hive = counter(mutant).journal(journal.clone(), LogState::default()).start().unwrap();
            let mut io = hive.io();
            (0..100).for_each(|key| io.emit(Add(key)));
            io.flush().await;
            hive.idle().await;
            for key in (0..100).step_by(2) {
                io.emit(Both(key, key + 1));
                io.emit(Behind(key));
                io.flush().await
            }
            hive.idle().await;
            let mut overtaken = 0;
            for key in (0..100).step_by(2) {
                overtaken += u64::from(hive.request(Get(key)).await.unwrap() != 2)
            }
            journal.stop();
            hive.stop(Duration::ZERO).await;
            let found = || Finding::new(Checker::Order, format!("{overtaken} messages were overtaken"));
            (overtaken == 0).then_some(()).ok_or_else(found)
        })?
    })
}

/// A later message of the sender of a sweep arrives after the visit.
#[test]
fn a_message_behind_a_sweep() {
    check(Mutant::EachOvertaken, Checker::Order, |mutant| {
        Watched::new(3).run(async move {
            // more than one step of the sweep
            let cells = limits::SWEEP_STEP_MAX as u64 + 100;
            let journal = TestJournal::start(1, 0, 0);
            let builder = Hive::builder().app::<Field>().app::<Farmer>().seed(7).mutant(mutant);
            let hive = builder.journal(journal.clone(), LogState::default()).start().unwrap();
            let mut io = hive.io();
            (0..cells).for_each(|key| io.emit(Add(key)));
            io.flush().await;
            hive.idle().await;
            io.emit(Begin(cells));
            io.flush().await;
            hive.idle().await;
            let early = hive.request(Overtaken(0)).await.unwrap();
            journal.stop();
            hive.stop(Duration::ZERO).await;
            let overtaken = || Finding::new(Checker::Order, format!("{early} visits were overtaken"));
            (early == 0).then_some(()).ok_or_else(overtaken)
        })?
    })
}

/// The log learns that a bee has ended before another bee gets its cells.
#[test]
fn the_next_owner_of_the_cells_of_a_bee_that_has_ended() {
    check(Mutant::ReleaseRegistryFirst, Checker::Owners, |mutant| {
        Watched::new(3).run(async move {
            let journal = TestJournal::start(1, 8, 0);
            let hive = counter(mutant).journal(journal.clone(), LogState::default()).start().unwrap();
            for key in 0..100 {
                let mut io = hive.io();
                io.resume(LANE + key, 0);
                // the log knows that the bee owns the cell
                io.emit(Add(key));
                io.flush().await;
                io.emit(Leave(key));
                io.flush().await
            }
            let began = Instant::now();
            while hive.status().apps[0].bees_retired == 0 {
                wait("a bee ends", began).await?
            }
            for key in 0..100 {
                hive.emit(Add(key)).await
            }
            hive.idle().await;
            journal.stop();
            hive.stop(Duration::ZERO).await;
            check_owners(&[journal.log()])
        })?
    })
}
