//! A hive takes over from another one on real threads, under load, with the crash markers that the other hive left: that one has
//! died, or lives on.

use crate::bank::{Account, Audited, Auditor, Bank, Look, Pay};
use beehive_core::cluster::{Incarnation, Membership, Network, Packets};
use beehive_core::journal::{Entry, Journal, LaneId, LogState};
use beehive_core::registry::{ColonyId, Decision, LocalRegistry, Proposal};
use beehive_core::testing::TestJournal;
use beehive_core::{Hive, HiveId, RequestError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ACCOUNTS: u64 = 12;
const PAYMENTS: u64 = 3_000;

/// Carries packets between the hives, each in a task of its own, so that they overtake one another.
#[derive(Default)]
struct Wires(Mutex<[Option<Arc<dyn Packets>>; 2]>);

struct Wire(Arc<Wires>, HiveId);

impl Network for Wire {
    fn send(&self, to: HiveId, packet: Vec<u8>) {
        let (wires, from) = (self.0.clone(), self.1);
        tokio::spawn(async move {
            let receivers = wires.0.lock().unwrap().clone();
            // a hive that is down gets nothing, and nothing that it sends arrives
            if let [Some(_), Some(_)] = &receivers
                && let Some(Some(receiver)) = receivers.get(to.0 as usize)
            {
                receiver.arrived(from, &packet)
            }
        });
    }

    fn attach(&self, receiver: Arc<dyn Packets>) {
        self.0.0.lock().unwrap()[self.1.0 as usize] = Some(receiver)
    }
}

fn join(registry: &LocalRegistry, hive: HiveId) -> (Incarnation, LaneId) {
    match registry.decide(&[Proposal::Join { hive, after: Incarnation(0) }]).pop() {
        Some(Decision::Joined { incarnation, lane, .. }) => (incarnation, lane),
        other => panic!("{other:?}"),
    }
}

fn start(
    registry: &Arc<LocalRegistry>,
    wires: &Arc<Wires>,
    at: u32,
    (incarnation, lane): (Incarnation, LaneId),
) -> (Hive, Arc<TestJournal>) {
    let (id, colony) = (HiveId(at), ColonyId(at + 1));
    let members = vec![HiveId(0), HiveId(1)];
    registry.decide(&[
        Proposal::Found { after: ColonyId(at), members, is_replicated: true },
        Proposal::Leader { colony, term: 1, hive: id },
    ]);
    let mut state = LogState::default();
    state.begin_term(1);
    let journal = TestJournal::start(7 + u64::from(at), 50, state.last);
    let network = Arc::new(Wire(wires.clone(), id));
    let hive = Hive::builder()
        .app::<Bank>()
        .app::<Auditor>()
        .id(id)
        .seed(5)
        .registry(registry.clone())
        .journal(journal.clone() as Arc<dyn Journal>, state)
        .cluster(Membership { network, incarnation, lane, colonies: vec![colony], follows: false })
        .start()
        .unwrap();
    (hive, journal)
}

fn pay(number: u64) -> Pay {
    let (from, to) = (number * 7 % ACCOUNTS, number * 5 % ACCOUNTS);
    Pay { number, from, to, amount: 1 + number as i64 % 9 }
}

/// Returns the sum of all balances, that of all deposits, and that of all deposits that the auditor has seen.
async fn sums(hive: &Hive) -> (i64, i64, i64) {
    let (mut balance, mut deposited, mut audited) = (0, 0, 0);
    for account in 0..ACCOUNTS {
        match hive.request(Look(account)).await {
            Ok(Account { balance: of_one, deposited: to_one, faults, .. }) => {
                assert!(faults.is_empty(), "account {account}: {faults:?}");
                balance += of_one;
                deposited += to_one
            }
            Err(RequestError::NoAnswer { .. }) => {}
            Err(error) => panic!("account {account}: {error}"),
        }
    }
    for sum in 0..3 {
        audited += hive.request(Audited(sum)).await.unwrap()
    }
    (balance, deposited, audited)
}

#[test]
fn a_hive_takes_over_on_real_threads_under_load() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let (registry, wires) =
            (Arc::new(LocalRegistry::restored(Default::default())), Arc::<Wires>::default());
        let joined = [0, 1].map(|at| join(&registry, HiveId(at)));
        let (dies, journal) = start(&registry, &wires, 0, joined[0]);
        let (lives, _kept) = start(&registry, &wires, 1, joined[1]);

        let (emitting, doomed) = (lives.clone(), dies.clone());
        let of_dead = tokio::spawn(async move {
            for number in 0..PAYMENTS {
                doomed.emit(pay(2 * number)).await
            }
        });
        let of_living = tokio::spawn(async move {
            for number in 0..PAYMENTS {
                emitting.emit(pay(2 * number + 1)).await
            }
        });
        tokio::time::sleep(Duration::from_millis(150)).await;

        journal.stop();
        wires.0.lock().unwrap()[0] = None;
        of_dead.abort();
        dies.stop(Duration::ZERO).await;
        drop(dies);
        let log = journal.log();
        // the journal does not write the first entry of a term
        let mut state = LogState::default();
        state.begin_term(1);
        log.iter().for_each(|entry| assert!(state.apply(&Entry::decode(entry).unwrap())));
        assert!(state.marker.is_some(), "the hive crashed");
        let unhandled = state.outbox.len();
        state.begin_term(2);
        let next = TestJournal::start(99, 50, state.last);
        registry.decide(&[Proposal::HiveDead { hive: HiveId(0), incarnation: joined[0].0 }]);
        lives.lead(ColonyId(1), 2, next.clone() as Arc<dyn Journal>, state).await.unwrap();

        of_living.await.unwrap();
        tokio::time::timeout(Duration::from_secs(60), lives.idle()).await.expect("all is handled in time");
        let mut found = sums(&lives).await;
        // what the dead hive's bees had sent is not in flight for anybody outside
        for _ in 0..100 {
            if found.0 == 0 && found.1 == found.2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            found = sums(&lives).await
        }
        println!("{unhandled} unhandled messages at the crash, {} entries, {found:?}", log.len());
        assert!(unhandled > 0 && found.0 == 0 && found.1 == found.2 && found.1 > 0, "{found:?}");
        lives.stop(Duration::from_secs(10)).await
    });
}

/// Two hives lose a colony to one another, or to themselves, and are told or find out.
#[test]
fn hives_lose_a_colony_to_one_another_on_real_threads_under_load() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let (registry, wires) =
            (Arc::new(LocalRegistry::restored(Default::default())), Arc::<Wires>::default());
        let joined = [0, 1].map(|at| join(&registry, HiveId(at)));
        let (first, mut journal) = start(&registry, &wires, 0, joined[0]);
        let (second, _kept) = start(&registry, &wires, 1, joined[1]);
        let hives = [first, second];
        let payments = [0, 1].map(|at: u64| {
            let hive = hives[at as usize].clone();
            tokio::spawn(async move {
                for number in 0..PAYMENTS {
                    hive.emit(pay(2 * number + at)).await
                }
            })
        });

        let mut state = LogState::default();
        state.begin_term(1);
        let mut rounds = 0;
        for term in 2..26 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            // what is left arrives behind the first entry of the next term
            let _late = journal.lose();
            let (lost, by) = (journal.clone(), (term as usize / 2) % 2);
            journal.log().iter().for_each(|entry| {
                state.apply(&Entry::decode(entry).unwrap());
            });
            let is_same = (term as usize - 1) / 2 % 2 == by || term == 2 && by == 0;
            if term % 3 > 0 || is_same {
                lost.tell_deposed()
            }
            state.begin_term(term);
            journal = TestJournal::start(99 + term, 50, state.last);
            let led = hives[by].lead(ColonyId(1), term, journal.clone() as Arc<dyn Journal>, state.clone());
            led.await.unwrap();
            rounds += 1
        }
        for payment in payments {
            tokio::time::timeout(Duration::from_secs(120), payment)
                .await
                .expect("all is sent in time")
                .unwrap()
        }
        for hive in &hives {
            tokio::time::timeout(Duration::from_secs(60), hive.idle()).await.expect("all is handled in time")
        }
        let mut found = sums(&hives[1]).await;
        for _ in 0..100 {
            if found.0 == 0 && found.1 == found.2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            found = sums(&hives[1]).await
        }
        println!("{rounds} terms, {found:?}");
        assert!(found.0 == 0 && found.1 == found.2 && found.1 > 0, "{found:?}");
        let sent: i64 = (0..2 * PAYMENTS).map(|number| pay(number).amount).sum();
        assert_eq!(found.1, sent, "no payment is lost or handled twice");
        let leads = hives.each_ref().map(|hive| hive.under_way().logs);
        assert_eq!(leads.iter().sum::<usize>(), 2, "{leads:?}");
        let letters = hives.each_ref().map(|hive| hive.dead_letters().len());
        assert_eq!(letters, [0, 0]);
        for hive in hives {
            hive.stop(Duration::from_secs(10)).await;
        }
    });
}
