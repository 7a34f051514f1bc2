//! A registry that decides, but whose answer is lost: it says that it is unavailable, and decides at once or later. Nobody
//! may wait for ever because of this, and no bee that has ended may be created a second time.

use crate::merge_storm::on_workers;
use beehive_core::journal::{BeeImage, Epoch, Journal, LogState};
use beehive_core::registry::{
    ColonyId, Decision, LocalRegistry, Proposal, Registry, RegistryState, Unavailable,
};
use beehive_core::seams::BoxFuture;
use beehive_core::testing::{TestJournal, move_one};
use beehive_core::{App, BeeId, Builder, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
struct Add(Vec<u64>);
/// Empties cells, whose bees retire then. Answers with the total of what they contained.
#[derive(Message)]
#[message(reply = u64)]
struct Take(Vec<u64>);

#[derive(App)]
struct Counter {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Counter {
    #[rcv(joins)]
    fn add(&mut self, msg: &Add) -> u64 {
        for key in &msg.0 {
            *self.counts.entry(*key).or_default() += 1;
        }
        msg.0.len() as u64
    }
    #[rcv(joins)]
    fn take(&mut self, msg: &Take) -> u64 {
        let mut total = 0;
        for key in &msg.0 {
            total += self.counts.remove(key).unwrap_or_default();
        }
        total
    }
}

/// Loses the answers to one round of proposals in `lose_one_in`.
struct LosesAnswers {
    registry: Arc<LocalRegistry>,
    lose_one_in: u64,
    /// The time after which proposals are decided whose answers are lost; `None` if that is at once.
    decides_after: Option<Duration>,
    rounds: AtomicU64,
}

impl LosesAnswers {
    fn new(lose_one_in: u64, decides_after: Option<Duration>, logs: u32) -> Arc<LosesAnswers> {
        let registry = Arc::new(LocalRegistry::restored(RegistryState::alone(logs.max(1), [], 0)));
        Arc::new(LosesAnswers { registry, lose_one_in, decides_after, rounds: AtomicU64::new(0) })
    }
}

impl Registry for LosesAnswers {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let round = self.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        if !round.is_multiple_of(self.lose_one_in) {
            return self.registry.propose(proposals);
        }
        let registry = self.registry.clone();
        match self.decides_after {
            None => drop(registry.decide(&proposals)),
            Some(after) => drop(tokio::spawn(async move {
                tokio::time::sleep(after).await;
                registry.decide(&proposals)
            })),
        }
        Box::pin(std::future::ready(Err(Unavailable)))
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

const PATIENCE: Duration = Duration::from_secs(20);

async fn add(hive: &Hive, keys: Vec<u64>) {
    let count = keys.len() as u64;
    assert_eq!(hive.request_within(PATIENCE, Add(keys)).await, Ok(count))
}

/// Lets bees begin, merge and retire again and again, and checks that nothing is lost.
async fn live(builder: Builder, registry: Arc<LosesAnswers>) {
    let hive = builder.app::<Counter>().seed(7).registry(registry.clone()).start().unwrap();
    let keys = 16;
    for round in 0..4 {
        for key in 0..keys {
            add(&hive, vec![key]).await
        }
        for key in (round % 3..keys - 5).step_by(3) {
            add(&hive, vec![key, key + 5]).await
        }
        let merges = (round % 3..keys - 5).step_by(3).count() as u64;
        let all = hive.request_within(PATIENCE, Take((0..keys / 2).collect())).await.unwrap();
        let rest = hive.request_within(PATIENCE, Take((keys / 2..keys).collect())).await.unwrap();
        assert_eq!(all + rest, keys + 2 * merges, "round {round}");
        // some bees retire now, and some while they are needed again
        tokio::time::sleep(Duration::from_millis(60 * (round % 4))).await
    }

    // a claim that is decided late may leave a bee of which the hive has not heard yet
    let is_empty = || registry.decides_after.is_some() || registry.registry.size() == (0, 0);
    let began = std::time::Instant::now();
    while hive.status().apps[0].bees > 0 || !is_empty() {
        assert!(began.elapsed() < PATIENCE, "{:?}, {:?}", registry.registry.size(), hive.status().apps[0]);
        tokio::time::sleep(Duration::from_millis(5)).await
    }
    hive.stop(Duration::from_secs(5)).await;
}

fn logs(count: u64) -> (Builder, Vec<Arc<TestJournal>>) {
    let journals: Vec<_> = (0..count).map(|at| TestJournal::start(5 + at, 0, 0)).collect();
    let logs = journals.iter().map(|journal| (journal.clone() as Arc<_>, LogState::default()));
    (Hive::builder().journals(logs), journals)
}

#[test]
fn a_lost_answer_hangs_nobody_and_creates_no_bee_twice() {
    for decides_after in [None, Some(Duration::from_millis(3)), Some(Duration::from_millis(70))] {
        on_workers(2, live(Hive::builder(), LosesAnswers::new(3, decides_after, 1)));
        for count in [1, 3] {
            on_workers(2, async {
                let (builder, journals) = logs(count);
                live(builder, LosesAnswers::new(3, decides_after, count as u32)).await;
                journals.iter().for_each(|journal| journal.stop())
            })
        }
    }
}

/// A registry that cannot be told of the end of any bee, or of a merge, while it is closed.
struct Closed {
    registry: LocalRegistry,
    is_closed: AtomicBool,
}

impl Registry for Closed {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let tells = |one: &Proposal| {
            matches!(one, Proposal::Release { .. } | Proposal::Fused { .. } | Proposal::Commit { .. })
        };
        match proposals.iter().any(tells) && self.is_closed.load(Ordering::Acquire) {
            true => Box::pin(std::future::ready(Err(Unavailable))),
            false => self.registry.propose(proposals),
        }
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

/// The registry still names a bee that has ended. The hive must not take it for one that it has yet to create: when the
/// registry learns of the end, the cells of the bee would get a second owner.
#[test]
fn a_bee_that_has_ended_is_not_created_again_while_the_registry_names_it() {
    on_workers(2, async {
        let registry =
            Arc::new(Closed { registry: LocalRegistry::default(), is_closed: AtomicBool::new(true) });
        let builder = Hive::builder().app::<Counter>().registry(registry.clone());
        let hive = builder.start().unwrap();
        add(&hive, vec![1]).await;
        assert_eq!(hive.request(Take(vec![1])).await, Ok(1));
        let began = std::time::Instant::now();
        while hive.status().apps[0].bees > 0 {
            assert!(began.elapsed() < PATIENCE, "the bee retires");
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        assert_eq!(registry.registry.size(), (1, 1), "the registry does not know it");

        let adding = tokio::spawn({
            let hive = hive.clone();
            async move { add(&hive, vec![1]).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!adding.is_finished(), "the cell has no owner yet");
        registry.is_closed.store(false, Ordering::Release);
        adding.await.unwrap();
        add(&hive, vec![1]).await;
        assert_eq!(hive.request(Take(vec![1])).await, Ok(2));
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// The registry lives longer than the hive, and knows bees that were in memory only.
#[test]
fn a_hive_that_starts_on_a_used_registry_gives_up_the_bees_that_it_does_not_have() {
    on_workers(2, async {
        let registry = LosesAnswers::new(2, None, 1);
        for _ in 0..2 {
            let builder = Hive::builder().app::<Counter>().seed(7).registry(registry.clone());
            let hive = builder.start().unwrap();
            for key in 0..20 {
                add(&hive, vec![key]).await
            }
            assert_eq!(hive.request_within(PATIENCE, Take((0..20).collect())).await, Ok(20));
            hive.stop(Duration::ZERO).await;
        }
    })
}

/// The log has committed that a bee has merged into another one, and the process ends before it has told the registry. The
/// next process must not give up the bee that has merged: its cells have an owner.
#[test]
fn a_hive_that_starts_on_a_used_registry_tells_it_of_a_merge_in_its_log() {
    on_workers(2, async {
        let registry = LocalRegistry::restored(RegistryState::alone(1, [], 0));
        let registry = Arc::new(Closed { registry, is_closed: AtomicBool::new(false) });
        let start = |state: LogState| {
            let journal = TestJournal::start(5, 0, state.last);
            let builder = Hive::builder().app::<Counter>().seed(7).journal(journal.clone(), state);
            (builder.registry(registry.clone()).start().unwrap(), journal)
        };
        let (hive, journal) = start(LogState::default());
        for key in [1, 2, 3] {
            add(&hive, vec![key]).await
        }
        registry.is_closed.store(true, Ordering::Release);
        let adding = tokio::spawn({
            let hive = hive.clone();
            async move { hive.request(Add(vec![1, 2])).await }
        });
        let replay = || LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
        let began = std::time::Instant::now();
        while replay().bees.len() > 2 {
            assert!(began.elapsed() < PATIENCE, "the log says that two bees have merged");
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        journal.stop();
        hive.stop(Duration::ZERO).await;
        let _ = adding.await;
        assert_eq!(registry.registry.size(), (3, 3), "the registry does not know it");

        registry.is_closed.store(false, Ordering::Release);
        let (hive, journal) = start(replay());
        assert_eq!(registry.registry.size(), (2, 3), "the registry knows it");
        add(&hive, vec![2, 9]).await;
        assert_eq!(hive.status().apps[0].bees, 2, "the cells still have one owner");
        add(&hive, vec![1]).await;
        let taken = hive.request_within(PATIENCE, Take(vec![1, 2, 3, 9])).await.unwrap();
        assert!((6..=8).contains(&taken), "{taken}: the message that was not answered counts or does not");
        registry.registry.read(&mut |state| assert_eq!(state.check(), Ok(())));
        journal.stop();
        hive.stop(Duration::ZERO).await;
    })
}

/// Returns the bees of which the registry knows another colony than that of the log that contains them.
fn elsewhere(registry: &Closed, logs: &[LogState]) -> Vec<BeeId> {
    let mut elsewhere = Vec::new();
    registry.registry.read(&mut |state| {
        for (colony, log) in (1..).map(ColonyId).zip(logs) {
            let bees = log.bees.iter().filter(|(_, image)| !image.is_frozen()).map(|((_, bee), _)| *bee);
            elsewhere.extend(bees.filter(|bee| state.bee(*bee).is_none_or(|entry| entry.colony != colony)))
        }
    });
    elsewhere
}

/// A log has committed that a bee has moved to it, and the process ends before it has told the registry. The next process
/// tells it, and the registry learns of the moves after that one, too.
#[test]
fn a_hive_that_starts_on_a_used_registry_tells_it_of_a_move_in_its_logs() {
    on_workers(2, async {
        let registry = LocalRegistry::restored(RegistryState::alone(2, [], 0));
        let registry = Arc::new(Closed { registry, is_closed: AtomicBool::new(false) });
        let start = |states: Vec<LogState>| {
            let journals: Vec<_> =
                (5..).zip(&states).map(|(seed, state)| TestJournal::start(seed, 0, state.last)).collect();
            let logs = journals.iter().map(|journal| journal.clone() as Arc<dyn Journal>).zip(states);
            let builder = Hive::builder().app::<Counter>().seed(7).journals(logs);
            (builder.registry(registry.clone()).start().unwrap(), journals)
        };
        // the entries of each log, of which those of `journals` are the latest
        let replay = |before: &[Vec<Vec<u8>>], journals: &[Arc<TestJournal>]| -> Vec<LogState> {
            let of_log = |(before, journal): (&Vec<Vec<u8>>, &Arc<TestJournal>)| {
                let log = [before.clone(), journal.log()].concat();
                LogState::replay(log.iter().map(Vec::as_slice)).unwrap()
            };
            before.iter().zip(journals).map(of_log).collect()
        };
        let eventually = async |what: &str, is_so: &mut dyn FnMut() -> bool| {
            let began = std::time::Instant::now();
            while !is_so() {
                assert!(began.elapsed() < PATIENCE, "{what}");
                tokio::time::sleep(Duration::from_millis(5)).await
            }
        };

        let none = vec![Vec::new(); 2];
        let (hive, journals) = start(vec![LogState::default(), LogState::default()]);
        for key in 0..4 {
            add(&hive, vec![key]).await
        }
        registry.is_closed.store(true, Ordering::Release);
        let moving = tokio::spawn({
            let hive = hive.clone();
            async move {
                // one that moves a bee to another log does not return before the registry is told
                for chance in 0.. {
                    move_one(&hive, chance).await;
                }
            }
        });
        let has_moved = |logs: Vec<LogState>| {
            let moved = |image: &BeeImage| image.epoch > Epoch(0) && !image.is_frozen();
            logs.iter().any(|log| log.bees.values().any(|image| moved(image)))
        };
        eventually("a log says that a bee has moved", &mut || has_moved(replay(&none, &journals))).await;
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;
        moving.abort();
        // the registry opens when nothing of the hive is left that could tell it
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(elsewhere(&registry, &replay(&none, &journals)).len(), 1, "the registry does not know it");

        registry.is_closed.store(false, Ordering::Release);
        let before: Vec<_> = journals.iter().map(|journal| journal.log()).collect();
        let (hive, journals) = start(replay(&none, &journals));
        let knows = || elsewhere(&registry, &replay(&before, &journals)).is_empty();
        eventually("the registry knows it", &mut || knows()).await;
        for chance in 0..12 {
            move_one(&hive, chance).await;
        }
        eventually("the registry knows where the bees are", &mut || knows()).await;
        assert_eq!(hive.request_within(PATIENCE, Take((0..4).collect())).await, Ok(4));
        registry.registry.read(&mut |state| assert_eq!(state.check(), Ok(())));
        journals.iter().for_each(|journal| journal.stop());
        hive.stop(Duration::ZERO).await;
    })
}

/// A registry that decides at once and answers after a while.
struct AnswersLate(LocalRegistry);

impl Registry for AnswersLate {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let decisions = self.0.decide(&proposals);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(decisions)
        })
    }

    fn index(&self) -> u64 {
        self.0.index()
    }

    fn wait(&self, index: u64) -> BoxFuture<()> {
        self.0.wait(index)
    }

    fn read(&self, read: &mut dyn FnMut(&RegistryState)) {
        self.0.read(read)
    }
}

#[test]
fn a_hive_that_has_stopped_creates_no_bee_when_the_registry_answers() {
    on_workers(2, async {
        let builder =
            Hive::builder().app::<Counter>().registry(Arc::new(AnswersLate(LocalRegistry::default())));
        let hive = builder.start().unwrap();
        let adding = tokio::spawn({
            let hive = hive.clone();
            async move { hive.request(Add(vec![1])).await }
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        hive.stop(Duration::ZERO).await;
        assert!(adding.await.unwrap().is_err());
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(hive.status().apps[0].bees, 0);
    })
}
