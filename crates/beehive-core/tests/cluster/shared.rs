//! Views of the cells of all hives, while bees move and hives crash.

use beehive_core::cluster::Incarnation;
use beehive_core::testing::{Cluster, ClusterSetup, Faults};
use beehive_core::{App, BeeId, Dict, Hive, HiveId, Message, Table, handlers};
use std::collections::BTreeMap;
use std::time::Duration;

/// Increments a counter, and adds a row to its log.
#[derive(Message)]
#[message(reply = u64)]
struct Step(u64);

/// Reads a counter in a view.
#[derive(Message)]
#[message(reply = (u64, u64, u64))]
struct Seen(u64);

/// Removes a counter.
#[derive(Message)]
#[message(reply = bool)]
struct Remove(u64);

/// Increments two counters in one transaction, which joins them.
#[derive(Message)]
#[message(reply = u64)]
struct Both(u64, u64);

#[derive(App)]
#[app(name = "steps")]
struct Steps {
    #[shared]
    steps: Dict<u64, u64>,
    #[shared]
    taken: Table<u64, u64, ()>,
}

#[handlers]
impl Steps {
    #[rcv]
    fn step(&mut self, msg: &Step) -> u64 {
        self.taken.at(msg.0).insert(0, ());
        self.steps.update(msg.0, |steps| {
            *steps += 1;
            *steps
        })
    }

    #[rcv]
    fn remove(&mut self, msg: &Remove) -> bool {
        self.steps.remove(&msg.0).is_some()
    }

    #[rcv(joins)]
    fn both(&mut self, msg: &Both) -> u64 {
        self.steps.update(msg.0, |steps| *steps += 1);
        self.steps.update(msg.1, |steps| {
            *steps += 1;
            *steps
        })
    }

    /// Reads the same counter twice, and the version.
    #[rcv(stateless)]
    fn seen(&mut self, msg: &Seen) -> (u64, u64, u64) {
        let first = self.steps.shared().get(&msg.0).copied().unwrap_or_default();
        let again = self.steps.shared().get(&msg.0).copied().unwrap_or_default();
        (first, again, self.taken.shared().at(msg.0).len() as u64)
    }
}

fn steps() -> ClusterSetup {
    Cluster::of::<Steps>().followers_late(Duration::from_millis(10))
}

fn shown(hive: &Hive) -> BTreeMap<u64, u64> {
    hive.read(|app: &Steps| app.steps.shared().iter().map(|(key, steps)| (*key, *steps)).collect()).unwrap()
}

#[track_caller]
fn step(cluster: &mut Cluster, hive: usize, key: u64) -> u64 {
    let hive = cluster.hive(hive).clone();
    cluster.drive(hive.request(Step(key))).unwrap()
}

/// Lets time pass, and checks all the time that no hive that runs shows less than before, for keys that nothing removes.
struct Watch(Vec<BTreeMap<u64, u64>>, Vec<Option<Incarnation>>);

impl Watch {
    fn new(cluster: &Cluster) -> Watch {
        let nothing = (0..cluster.hives()).map(|_| BTreeMap::new()).collect();
        Watch(nothing, vec![None; cluster.hives()])
    }

    #[track_caller]
    fn look(&mut self, cluster: &Cluster) {
        for (hive, seen) in self.0.iter_mut().enumerate() {
            let incarnation =
                cluster.registry(|view| view.hive(HiveId(hive as u32)).map(|entry| entry.incarnation));
            // the views of the next process begin anew; it may have started since the last look
            if std::mem::replace(&mut self.1[hive], incarnation) != incarnation || !cluster.is_running(hive) {
                seen.clear()
            }
            if !cluster.is_running(hive) {
                continue;
            }
            let now = shown(cluster.hive(hive));
            for (key, steps) in &*seen {
                let shown = now.get(key);
                assert!(shown >= Some(steps), "hive {hive} shows {shown:?} for key {key} after {steps}")
            }
            *seen = now
        }
    }

    #[track_caller]
    fn advance(&mut self, cluster: &mut Cluster, milliseconds: u32) {
        for _ in 0..milliseconds * 4 {
            cluster.advance(Duration::from_micros(250));
            self.look(cluster)
        }
    }
}

fn bee_of(cluster: &mut Cluster) -> BeeId {
    let bees = cluster.bees("steps");
    assert_eq!(bees.len(), 1, "{bees:?}");
    bees[0].0
}

#[test]
fn a_view_shows_what_the_bees_of_other_hives_have_committed() {
    let mut cluster = steps().start(1);
    for key in 0..9 {
        step(&mut cluster, key as usize % 3, key);
    }
    for (key, hive) in [(0u64, 0), (4, 1), (8, 2)] {
        // at once on the hive that has answered
        assert_eq!(shown(cluster.hive(hive)).get(&key), Some(&1));
    }
    cluster.advance(Duration::from_millis(200));
    let all: BTreeMap<u64, u64> = (0..9).map(|key| (key, 1)).collect();
    for hive in 0..3 {
        assert_eq!(shown(cluster.hive(hive)), all, "hive {hive}");
        let hive = cluster.hive(hive).clone();
        assert_eq!(cluster.drive(hive.request(Seen(4))), Ok((1, 1, 1)));
    }
    let hive = cluster.hive(0).clone();
    assert_eq!(cluster.drive(hive.request(Remove(5))), Ok(true));
    cluster.advance(Duration::from_millis(200));
    for hive in 0..3 {
        assert_eq!(shown(cluster.hive(hive)).get(&5), None, "hive {hive}")
    }
}

#[test]
fn the_acknowledged_is_shown_at_once_where_its_bee_is() {
    let mut cluster = steps().followers_late(Duration::from_secs(5)).start(2);
    for count in 1..20 {
        assert_eq!(step(&mut cluster, 0, 7), count);
        assert_eq!(shown(cluster.hive(0)).get(&7), Some(&count));
    }
    let bee = bee_of(&mut cluster);
    // the replica of the new colony at the old hive is late, and that of the old one at the new hive
    assert_eq!(cluster.move_bee(bee, 1), Ok(()));
    assert_eq!(shown(cluster.hive(0)).get(&7), Some(&19));
    assert_eq!(step(&mut cluster, 1, 7), 20);
    assert_eq!(shown(cluster.hive(1)).get(&7), Some(&20));
}

#[test]
fn after_a_hive_has_died_its_cells_are_still_shown_and_never_missing() {
    for seed in 0..5 {
        let mut cluster = steps().start(seed);
        (0..6).for_each(|key| assert_eq!(step(&mut cluster, 0, key), 1));
        cluster.advance(Duration::from_millis(200));
        let mut watch = Watch::new(&cluster);
        watch.look(&cluster);
        assert_eq!((watch.0[1].len(), watch.0[2].len()), (6, 6));
        cluster.crash(0);
        watch.advance(&mut cluster, 20);
        cluster.take_over(0, 1);
        watch.advance(&mut cluster, 20);
        (0..6).for_each(|key| assert_eq!(step(&mut cluster, 2, key), 2));
        assert_eq!(shown(cluster.hive(1)).values().copied().collect::<Vec<_>>(), [2; 6]);
        // the second leader loses them again
        let colonies = cluster.led_colonies();
        colonies.into_iter().for_each(|colony| cluster.depose(colony, 2));
        watch.advance(&mut cluster, 20);
        (0..6).for_each(|key| assert_eq!(step(&mut cluster, 1, key), 3));
        watch.advance(&mut cluster, 100);
        assert_eq!(
            (watch.0[1].clone(), watch.0[2].clone()),
            ((0..6).map(|key| (key, 3)).collect(), (0..6).map(|key| (key, 3)).collect())
        );
    }
}

#[test]
fn a_counter_whose_bee_moves_under_load_never_goes_back_on_any_hive() {
    for seed in 0..6 {
        let mut cluster =
            steps().followers_late(Duration::from_millis([1, 10, 100][seed as usize % 3])).start(seed);
        assert_eq!(step(&mut cluster, 0, 7), 1);
        let (bee, mut watch) = (bee_of(&mut cluster), Watch::new(&cluster));
        let mut counted = 1;
        for round in 0..30 {
            cluster.aim(bee, round % 3);
            for _ in 0..5 {
                let hive = cluster.hive((round + 1) % 3).clone();
                let asked = hive.request(Step(7));
                counted += 1;
                assert_eq!(cluster.drive(asked), Ok(counted));
                watch.look(&cluster)
            }
            watch.advance(&mut cluster, 5)
        }
        watch.advance(&mut cluster, 1000);
        for hive in 0..3 {
            assert_eq!(shown(cluster.hive(hive)).get(&7), Some(&counted), "hive {hive}");
            let hive = cluster.hive(hive).clone();
            assert_eq!(cluster.drive(hive.request(Seen(7))), Ok((counted, counted, 1)))
        }
    }
}

/// Runs the test of random faults with `seeds` seeds.
fn at_random(seeds: u64) {
    let faults = Faults::every(Duration::from_millis(15));
    steps().faults(faults).check(seeds, |cluster| {
        let mut watch = Watch::new(cluster);
        for round in 0..60 {
            let (one, other) = (cluster.random(6), cluster.random(6));
            match cluster.random(8) {
                0 => drop(cluster.request(Both(one, other))),
                _ => drop(cluster.request(Step(one))),
            }
            watch.look(cluster);
            if round % 3 == 0 {
                watch.advance(cluster, 2)
            }
        }
        cluster.heal();
        watch.advance(cluster, 1000);
        let mut truth = BTreeMap::new();
        for key in 0..6 {
            truth.insert(key, cluster.request(Step(key)).unwrap());
        }
        watch.advance(cluster, 500);
        for hive in 0..cluster.hives() {
            assert_eq!(shown(cluster.hive(hive)), truth, "hive {hive}")
        }
    });
}

#[test]
fn with_faults_no_hive_shows_less_than_before_and_in_the_end_all_show_the_same() {
    at_random(15)
}

/// The same with many seeds.
#[test]
#[ignore = "takes minutes"]
fn with_faults_and_many_seeds() {
    at_random(1_000)
}

#[test]
fn a_hive_that_is_cut_off_shows_what_it_knew() {
    let mut cluster = steps().start(4);
    assert_eq!(step(&mut cluster, 0, 7), 1);
    cluster.advance(Duration::from_millis(200));
    cluster.partition(&[2]);
    assert_eq!(step(&mut cluster, 0, 7), 2);
    cluster.advance(Duration::from_millis(200));
    assert_eq!((shown(cluster.hive(1))[&7], shown(cluster.hive(2))[&7]), (2, 1));
    cluster.partition(&[]);
    cluster.advance(Duration::from_millis(200));
    assert_eq!(shown(cluster.hive(2))[&7], 2);
}
