//! The registry knows in which log each bee is, and forgets the lanes of bees that have merged.

use crate::load::{Chance, eventually, on_workers};
use crate::log_checks::replay;
use beehive_core::journal::{Journal, LaneId, LogState};
use beehive_core::registry::{Decision, LocalRegistry, Proposal, Registry, RegistryState, Unavailable};
use beehive_core::seams::BoxFuture;
use beehive_core::testing::{TestJournal, move_one};
use beehive_core::{App, AppId, BeeId, Dict, Hive, Message, handlers};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
struct Add(Vec<u64>);

#[derive(App)]
struct Sums {
    sums: Dict<u64, u64>,
}

#[handlers]
impl Sums {
    #[rcv(joins)]
    fn add(&mut self, msg: &Add) -> u64 {
        for key in &msg.0 {
            *self.sums.entry(*key).or_default() += 1;
        }
        msg.0.len() as u64
    }
}

/// A registry that refuses one round of proposals in `refuse_one_in`.
struct Refuses {
    registry: LocalRegistry,
    rounds: AtomicU64,
    refuse_one_in: u64,
}

impl Refuses {
    fn read<T>(&self, read: impl FnOnce(&RegistryState) -> T) -> T {
        let (mut read, mut result) = (Some(read), None);
        self.registry.read(&mut |state| result = read.take().map(|read| read(state)));
        result.expect("the registry has a state")
    }
}

impl Registry for Refuses {
    fn propose(&self, proposals: Vec<Proposal>) -> BoxFuture<Result<Vec<Decision>, Unavailable>> {
        let round = self.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        match round.is_multiple_of(self.refuse_one_in) {
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

const KEYS: u64 = 60;

/// Lets bees begin, merge and move. Returns the number of moves.
async fn run(hive: &Hive, seed: u64) -> u64 {
    let (mut chance, mut moved) = (Chance(seed), 0);
    for _ in 0..400 {
        let (key, other) = (chance.below(KEYS), chance.below(KEYS));
        let keys = if chance.below(10) == 0 { vec![key, other] } else { vec![key] };
        let count = keys.len() as u64;
        assert_eq!(hive.request(Add(keys)).await.unwrap(), count);
        moved += u64::from(move_one(hive, chance.below(1 << 30)).await)
    }
    moved
}

fn follows(logs: u32, refuse_one_in: u64) {
    on_workers(2, async {
        let journals: Vec<Arc<TestJournal>> =
            (0..u64::from(logs)).map(|log| TestJournal::start(9 + log, 50, 0)).collect();
        let registry = Arc::new(Refuses {
            registry: LocalRegistry::restored(RegistryState::alone(logs, [], 0)),
            rounds: AtomicU64::new(0),
            refuse_one_in,
        });
        let with = journals.iter().map(|journal| (journal.clone() as Arc<dyn Journal>, LogState::default()));
        let builder = Hive::builder().app::<Sums>().journals(with);
        let hive = builder.registry(registry.clone()).start().unwrap();
        let moved = run(&hive, 3).await;
        assert!(logs == 1 || moved > 50, "{moved} moves");
        hive.idle().await;

        // each bee is where the registry says
        let differs = |state: &RegistryState| {
            assert_eq!(state.check(), Ok(()));
            let mut bees = 0;
            for ((colony, _), journal) in state.colonies().zip(&journals) {
                for ((_, bee), image) in &replay(&journal.log()).bees {
                    if image.is_frozen() || state.bee(*bee).is_none_or(|known| known.colony != colony) {
                        return true;
                    }
                    bees += 1
                }
            }
            bees != state.bees()
        };
        eventually("registry and logs agree", Duration::from_secs(20), || !registry.read(differs)).await;

        // the lanes of merged bees end, those of the others do not
        let left = |state: &RegistryState| {
            let merged = (1..=KEYS).map(BeeId).filter(|bee| state.bee(*bee).is_none());
            let lanes = merged.map(|bee| LaneId::of_bee(AppId(0), bee));
            lanes.filter(|lane| state.bee_of_lane(*lane).is_some()).count()
        };
        eventually("the lanes of merged bees end", Duration::from_secs(20), || registry.read(left) == 0)
            .await;

        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}

#[test]
fn the_registry_knows_in_which_log_each_bee_is() {
    follows(1, u64::MAX);
    follows(3, u64::MAX)
}

#[test]
fn the_registry_knows_it_even_if_it_refuses_some_proposals() {
    follows(3, 7)
}

/// Another app with bees in the same log.
#[derive(App)]
struct Counts {
    counts: Dict<u64, u64>,
}

#[handlers]
impl Counts {
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) {
        *self.counts.entry(msg.0).or_default() += 1
    }
}

#[derive(Message)]
struct Count(u64);

/// Bees of different apps have different ids, so the registry cannot tell which app's bee such an id means.
#[test]
fn a_log_in_which_two_apps_have_a_bee_of_one_id_is_refused() {
    let start = |state: LogState| {
        let journal = TestJournal::start(1, u64::MAX, state.last);
        let builder = Hive::builder().seed(3).app::<Sums>().app::<Counts>().journal(journal.clone(), state);
        builder.start().map(|hive| (hive, journal))
    };
    on_workers(2, async {
        let (hive, journal) = start(LogState::default()).unwrap();
        assert_eq!(hive.request(Add(vec![1])).await.unwrap(), 1);
        hive.emit(Count(1)).await;
        hive.idle().await;
        hive.stop(Duration::from_secs(5)).await;
        journal.stop();

        let mut state = replay(&journal.log());
        let ids: Vec<_> = state.bees.keys().copied().collect();
        let [(_, bee), (other, second)] = ids[..] else { panic!("two bees: {ids:?}") };
        start(state.clone()).map(|_| ()).unwrap();
        let image = state.bees.remove(&(other, second)).unwrap();
        state.bees.insert((other, bee), image);
        let refused = start(state).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(&format!("the apps number 0 and 1 both have {bee}")), "{refused}");
    })
}
