//! A load on the apps of `relay`: a hive on several logs is killed again and again, each time with its logs at
//! different points, while its bees merge, move and retire. In the end, every checker looks at what is left.

use crate::accounts::Accounts;
use crate::findings::{Checker, Finding, Watched, panicked_here};
use crate::load::Chance;
use crate::log_checks::{
    Log, Settled, check_ends, check_ids, check_lanes, check_memory, check_moves, check_outbox_order,
    check_owners, check_rest,
};
use crate::log_mutants::{LogMutant, replay_as};
use crate::relay::{APPS, Begin, KEYS, PLANTED, Plant, Unite, apps, check};
use beehive_core::journal::{Entry, Journal, LogState};
use beehive_core::testing::{Mutant, TestJournal, merge_two, move_one};
use beehive_core::{Hive, Io};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a hive divides apps and bees among its logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Divided {
    /// Each app has its own log.
    ByApp,
    /// The bees of every app are spread over all logs, and move between them.
    ByBee,
    /// Some apps have a log of their own, and the bees of the others are spread over the other logs, and move between
    /// them.
    Mixed,
}

impl Divided {
    /// Returns the apps that have log number `at` of `logs` for themselves, or `None` if bees of the other apps are spread
    /// over it.
    fn apps_of(self, at: usize, logs: usize) -> Option<Vec<&'static str>> {
        match self {
            Divided::ByApp => Some(APPS.iter().skip(at).step_by(logs).copied().collect()),
            Divided::ByBee => None,
            Divided::Mixed => {
                APPS.get(at).filter(|_| at < (APPS.len() / 2).min(logs - 1)).map(|app| vec![*app])
            }
        }
    }

    /// Returns whether bees move from one of `logs` logs to another.
    pub(crate) fn moves_bees(self, logs: usize) -> bool {
        (0..logs).filter(|at| self.apps_of(*at, logs).is_none()).count() > 1
    }
}

/// A load, and what is wrong with the hive that it runs on.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) divided: Divided,
    pub(crate) logs: usize,
    pub(crate) messages: u64,
    pub(crate) lives: u64,
    /// How long a hive lives before it is killed, in milliseconds.
    pub(crate) life: Range<u64>,
    /// The pause after each 32 messages, in milliseconds.
    pub(crate) pause: u64,
    /// Number of merges of random bees in each life.
    pub(crate) merges: u64,
    /// Whether one log stops to commit some time before the hive is killed.
    pub(crate) uneven: bool,
    /// Whether the last messages are sent when all others are acknowledged, so that they state floors above them.
    pub(crate) is_long: bool,
    /// Whether the logs contain entries without effect, because they were executed on refused ones.
    pub(crate) logs_dead: bool,
    /// Whether each hive begins a term of its logs. What the hive before it had appended, and its journals had not decided, is in
    /// the logs behind the first entry of the term.
    pub(crate) begins_terms: bool,
    /// Whether to check, whenever a hive is killed, that each emitted message is accounted for. Without a mutant, this is always
    /// checked.
    pub(crate) checks_emits: bool,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) log_mutant: Option<LogMutant>,
    /// How long the last hive may take for everything that is left.
    pub(crate) patience: Duration,
}

const LANE: u64 = 9;
/// Number of messages that are sent last if a load [`is_long`](Load::is_long).
const STATING_FLOORS: u64 = 10 * KEYS;
/// Number of bees that move at the same time.
const MOVERS: u64 = 8;

impl Load {
    /// Returns a load on a hive without a mutant.
    pub(crate) fn new(divided: Divided, logs: usize, messages: u64) -> Load {
        Load {
            divided,
            logs,
            messages,
            lives: 5,
            life: 20..80,
            pause: 0,
            merges: 0,
            uneven: false,
            is_long: false,
            logs_dead: false,
            begins_terms: false,
            checks_emits: false,
            mutant: None,
            log_mutant: None,
            patience: Duration::from_secs(60),
        }
    }

    /// Runs the load.
    pub(crate) fn run(&self, seed: u64) -> Result<Ran, Finding> {
        let mut logs: Vec<Log> = vec![Vec::new(); self.logs];
        let mut late: Vec<Late> = vec![Vec::new(); self.logs];
        let (mut done, mut ran, mut accounts) = (0, Ran::default(), Accounts::default());
        let accounts_for_all = self.checks_emits || (self.mutant.is_none() && self.log_mutant.is_none());
        for life in 0..self.lives {
            if accounts_for_all {
                accounts.read(&logs)
            }
            let states = accounts_for_all.then(|| accounts.states().cloned().collect());
            let load = self.clone();
            let before = Before { logs: std::mem::take(&mut logs), states, late: std::mem::take(&mut late) };
            let living = async move { load.live(before, seed, life, done).await };
            let lived = Watched::new(3).run(living)??;
            (logs, late, done) = (lived.logs, lived.late, lived.floor);
            ran.moves += lived.moves;
            ran.refused += lived.refused;
            ran.late += late.iter().map(Vec::len).sum::<usize>();
            if accounts_for_all {
                accounts.read(&logs);
                accounts.check()?
            }
        }
        check_owners(&logs)?;
        check_ids(&logs)?;
        if self.divided.moves_bees(self.logs) {
            check_ends(&logs)?
        }
        check_moves(&logs)?;
        check_outbox_order(&logs)?;
        check_lanes(&logs)?;
        if self.is_long {
            check_memory(&logs)?
        }
        ran.handled = accounts.handled();
        Ok(ran)
    }

    /// Starts a hive on the logs.
    fn start(&self, before: &Before, seed: u64) -> Result<(Hive, Vec<Arc<TestJournal>>), Finding> {
        let mut builder = apps().mutant(self.mutant);
        let (mut journals, mut spread) = (Vec::new(), Vec::new());
        let states = before.states(self.log_mutant);
        for (at, (state, late)) in states.into_iter().zip(&before.late).enumerate() {
            let mut state = crate::load::spared(state);
            if !seed.is_multiple_of(4) {
                // as after a clean stop, so that unfinished messages do not wait for a marker that names them
                state.marker = None
            }
            let journal = TestJournal::start(seed.wrapping_mul(31) + at as u64, 50, state.last);
            journal.depose(4);
            journal.log_dead_entries(self.logs_dead);
            if self.begins_terms {
                let term = state.last.term() + 1;
                journal.begin_with(state.begin_term(term), late.iter().cloned())
            }
            journals.push(journal.clone());
            match self.divided.apps_of(at, before.logs.len()) {
                Some(its_apps) => builder = builder.journal_of(its_apps, journal, state),
                None => spread.push((journal as Arc<dyn Journal>, state)),
            }
        }
        if !spread.is_empty() {
            builder = builder.journals(spread)
        }
        let hive = builder.start().map_err(|error| Finding::new(Checker::Restart, error.to_string()))?;
        Ok((hive, journals))
    }

    async fn live(&self, before: Before, seed: u64, life: u64, done: u64) -> Result<Lived, Finding> {
        let (hive, journals) = self.start(&before, seed * 100 + life)?;
        let lived = self.until_killed(&hive, &journals, (seed, life), (&before, done)).await;
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;
        let (floor, moves) = lived?;
        let refused = journals.iter().map(|journal| journal.refused()).sum();
        let late = journals.iter().map(|journal| journal.take_waiting()).collect();
        Ok(Lived { logs: written(&before.logs, &journals), late, floor, moves, refused })
    }

    /// Returns the floor of the sender outside and the number of moves.
    async fn until_killed(
        &self,
        hive: &Hive,
        journals: &[Arc<TestJournal>],
        (seed, life): (u64, u64),
        (before, done): (&Before, u64),
    ) -> Result<(u64, u64), Finding> {
        let (end_of_moves, moved) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mover = |number| {
            let seed = (seed * 100 + life) * MOVERS + number;
            tokio::spawn(move_bees(hive.clone(), seed, end_of_moves.clone(), moved.clone()))
        };
        let movers: Vec<_> = (0..MOVERS).map(mover).collect();
        let mut chance = Chance(seed * 7 + life);
        if life == 0 {
            self.within(async {
                for key in 0..PLANTED {
                    hive.emit(Plant(key)).await
                }
                hive.idle().await
            })
            .await?
        }

        let (merging, mut pick, random) = (hive.clone(), Chance(seed + 99 * life), self.merges);
        let merges = tokio::spawn(async move {
            for _ in 0..4 {
                merging.emit(Unite(pick.below(10), pick.below(10))).await;
                tokio::time::sleep(Duration::from_millis(3)).await
            }
            for number in 0..random {
                merge_two(&merging, seed.wrapping_mul(1 << 20) + 100 * life + number).await;
                tokio::time::sleep(Duration::from_millis(1)).await
            }
        });

        let life_time = self.life.start + chance.below(self.life.end - self.life.start);
        let is_last = life + 1 == self.lives;
        if self.uneven && !is_last {
            let journal = journals[chance.below(self.logs as u64) as usize].clone();
            let stalls_at = Duration::from_millis(chance.below(life_time + 1));
            tokio::spawn(async move {
                tokio::time::sleep(stalls_at).await;
                journal.stall(true)
            });
        }

        let mut io = hive.io();
        io.resume(LANE, done);
        let until = self.messages * (life + 1) / self.lives;
        let mut settled = None;
        if is_last && self.is_long {
            let until = until - STATING_FLOORS;
            self.within(self.emit(&mut io, done..until, &mut chance)).await?;
            self.within(quiet(hive)).await?;
            settled = Some(self.settle(journals, before).await?);
            self.within(self.emit(&mut io, until..self.messages, &mut chance)).await?;
        }
        let sending = async {
            if !(is_last && self.is_long) {
                self.emit(&mut io, done..until, &mut chance).await
            }
        };
        if is_last {
            self.within(sending).await?;
            self.finish(hive, &mut io, merges).await?;
            end_of_moves.store(true, Ordering::Release);
            for mover in movers {
                let _ = self.within(mover).await?;
            }
            self.within(quiet(hive)).await?;
            check(hive, self.messages).await?;
            journals.iter().for_each(|journal| journal.accept_all());
            let states = self.come_to_rest(journals, before).await?;
            if let Some(settled) = settled {
                let logs: Vec<Log> = journals.iter().map(|journal| journal.log()).collect();
                settled.check(&logs, &states)?
            }
        } else {
            let killed = tokio::time::sleep(Duration::from_millis(life_time));
            let sends_and_waits = async {
                sending.await;
                // with a pause, a hive also lives on while it is idle, and its bees retire
                if self.pause > 0 {
                    std::future::pending::<()>().await
                }
            };
            tokio::select! {
                biased;
                () = sends_and_waits => {}
                () = killed => {}
            }
        }
        end_of_moves.store(true, Ordering::Release);
        panicked_here().map_or(Ok(()), Err)?;
        Ok((io.floor(), moved.load(Ordering::Relaxed)))
    }

    async fn emit(&self, io: &mut Io, messages: Range<u64>, chance: &mut Chance) {
        for id in messages {
            io.emit(Begin(id));
            if id.is_multiple_of(if self.pause > 0 { 32 } else { 64 }) {
                io.flush().await;
                while io.try_receive().is_some() {}
                if self.pause > 0 {
                    tokio::time::sleep(Duration::from_millis(self.pause)).await
                } else if chance.below(8) == 0 {
                    tokio::task::yield_now().await
                }
            }
        }
        io.flush().await
    }

    /// Waits until all messages from outside are done.
    async fn finish(
        &self,
        hive: &Hive,
        io: &mut Io,
        merges: tokio::task::JoinHandle<()>,
    ) -> Result<(), Finding> {
        let began = Instant::now();
        while io.floor() < self.messages {
            panicked_here().map_or(Ok(()), Err)?;
            if began.elapsed() > self.patience {
                let what = format!("{} of {} messages are done", io.floor(), self.messages);
                return Err(Finding::new(Checker::Liveness, what));
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        let _ = self.within(merges).await?;
        self.within(quiet(hive)).await
    }

    /// Waits until the logs are at rest. Returns their states.
    async fn come_to_rest(
        &self,
        journals: &[Arc<TestJournal>],
        before: &Before,
    ) -> Result<Vec<LogState>, Finding> {
        let began = Instant::now();
        loop {
            // the hive writes acknowledgments ten times a second
            tokio::time::sleep(Duration::from_millis(110)).await;
            panicked_here().map_or(Ok(()), Err)?;
            let (states, _) = before.states_after(journals);
            match check_rest(&states) {
                Err(finding) if began.elapsed() > self.patience => return Err(finding),
                Err(_) => {}
                Ok(()) => return Ok(states),
            }
        }
    }

    /// Waits until all messages are acknowledged, although bees move.
    async fn settle(&self, journals: &[Arc<TestJournal>], before: &Before) -> Result<Settled, Finding> {
        let began = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            panicked_here().map_or(Ok(()), Err)?;
            let (states, entries) = before.states_after(journals);
            if let Some(settled) = Settled::of(&states, entries) {
                return Ok(settled);
            }
            if began.elapsed() > self.patience {
                return Err(Finding::new(Checker::Rest, "not all messages are acknowledged"));
            }
        }
    }

    async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Finding> {
        let done = tokio::time::timeout(self.patience, work).await;
        done.map_err(|_| {
            panicked_here()
                .unwrap_or_else(|| Finding::new(Checker::Liveness, "the hive does not come to rest"))
        })
    }
}

/// Entries that a hive has appended and that its journal has not decided.
type Late = Vec<Arc<Entry>>;

/// What a hive starts with.
struct Before {
    logs: Vec<Log>,
    /// The states of the logs, if they are known.
    states: Option<Vec<LogState>>,
    late: Vec<Late>,
}

impl Before {
    fn states(&self, mutant: Option<LogMutant>) -> Vec<LogState> {
        let replayed = || self.logs.iter().map(|log| replay_as(log, mutant)).collect();
        self.states.clone().unwrap_or_else(replayed)
    }

    /// Returns the states of the logs after the entries in these journals, and the numbers of these entries.
    fn states_after(&self, journals: &[Arc<TestJournal>]) -> (Vec<LogState>, Vec<usize>) {
        let (mut states, mut entries) = (self.states(None), Vec::new());
        for (state, journal) in states.iter_mut().zip(journals) {
            let log = journal.log();
            entries.push(log.len());
            log.iter().for_each(|bytes| {
                state.apply(&Entry::decode(bytes).unwrap());
            })
        }
        (states, entries)
    }
}

/// What a hive leaves when it is killed.
struct Lived {
    logs: Vec<Log>,
    late: Vec<Late>,
    floor: u64,
    moves: u64,
    refused: u64,
}

/// What happened during a load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ran {
    /// Number of messages that the logs say are handled. Not counted if the hive has a mutant.
    pub(crate) handled: usize,
    /// Number of moves of bees.
    pub(crate) moves: u64,
    /// Number of refused appends.
    pub(crate) refused: u64,
    /// Number of entries that were not decided when their hive was killed.
    pub(crate) late: usize,
}

/// Returns the logs: what earlier hives have written, and what the journals contain.
fn written(before: &[Log], journals: &[Arc<TestJournal>]) -> Vec<Log> {
    let logs = before.iter().zip(journals);
    logs.map(|(log, journal)| log.iter().cloned().chain(journal.log()).collect()).collect()
}

/// Waits until the hive is idle and no timer is left.
async fn quiet(hive: &Hive) {
    loop {
        hive.idle().await;
        if hive.status().timers == 0 {
            return hive.idle().await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await
    }
}

/// Moves one bee after the other until `end` is set. Counts the completed moves in `moved`.
async fn move_bees(hive: Hive, seed: u64, end: Arc<AtomicBool>, moved: Arc<AtomicU64>) {
    for round in 0.. {
        if end.load(Ordering::Acquire) {
            break;
        }
        let has_moved = move_one(&hive, seed.wrapping_mul(1 << 20) + round).await;
        moved.fetch_add(u64::from(has_moved), Ordering::Relaxed);
        tokio::task::yield_now().await
    }
}
