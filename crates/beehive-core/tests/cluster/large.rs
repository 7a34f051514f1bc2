//! A bee with many megabytes moves in parts while messages arrive.

use crate::directed::QUIET;
use beehive_core::testing::{Cluster, NetworkFaults};
use beehive_core::{App, Message, Table, handlers};
use std::time::Duration;

const ROWS: u64 = 200;
const ROW_BYTES: usize = 100 << 10;

#[derive(Message)]
struct Fill(u64);

#[derive(Message)]
struct Add(u64);

/// Asks for the number of rows, of bytes, and of additions.
#[derive(Message)]
#[message(reply = (u64, u64, u64))]
struct Sizes(u64);

#[derive(App)]
#[app(name = "stores")]
struct Stores {
    rows: Table<u64, u64, String>,
    added: Table<u64, u64, u64>,
}

#[handlers]
impl Stores {
    #[rcv]
    fn fill(&mut self, msg: &Fill) {
        let rows = self.rows.at(msg.0);
        let next = rows.len() as u64;
        rows.insert(next, char::from(b'a' + (next % 26) as u8).to_string().repeat(ROW_BYTES));
    }

    #[rcv]
    fn add(&mut self, msg: &Add) {
        let added = self.added.at(msg.0);
        let so_far = added.get(&0).copied().unwrap_or_default();
        added.insert(0, so_far + 1);
    }

    #[rcv]
    fn sizes(&mut self, msg: &Sizes) -> (u64, u64, u64) {
        let (mut count, mut bytes) = (0, 0);
        for (at, row) in self.rows.at(msg.0).iter() {
            let letter = char::from(b'a' + (*at % 26) as u8);
            assert!(row.starts_with(letter) && row.ends_with(letter));
            count += 1;
            bytes += row.len() as u64
        }
        (count, bytes, self.added.at(msg.0).get(&0).copied().unwrap_or_default())
    }
}

fn filled(faults: NetworkFaults, seed: u64) -> Cluster {
    let mut cluster = Cluster::of::<Stores>().network(faults).start(seed);
    for _ in 0..ROWS {
        cluster.hive(0).try_emit(Fill(7)).unwrap();
        cluster.advance(Duration::from_millis(2))
    }
    cluster
}

fn sizes(cluster: &mut Cluster, hive: usize) -> (u64, u64, u64) {
    let hive = cluster.hive(hive).clone();
    cluster.drive(hive.request(Sizes(7))).unwrap()
}

/// Lets all hives that run send a message every millisecond while the bee moves to hive 1. Returns the number of messages.
fn send_until_moved(cluster: &mut Cluster, then: &mut dyn FnMut(&mut Cluster, u64)) -> u64 {
    let mut sent = 0;
    for step in 0..5_000 {
        if cluster.bees("stores").iter().all(|(_, hive)| *hive == 1) {
            return sent;
        }
        then(cluster, step);
        for hive in (0..3).filter(|hive| cluster.is_running(*hive)).collect::<Vec<_>>() {
            sent += u64::from(cluster.hive(hive).try_emit(Add(7)).is_ok())
        }
        cluster.advance(Duration::from_millis(1))
    }
    panic!("the bee has not moved")
}

#[test]
fn a_bee_of_twenty_megabytes_moves_in_parts_while_messages_arrive() {
    let mut cluster = filled(NetworkFaults { delay_max: Duration::from_millis(2), ..QUIET }, 1);
    assert_eq!(sizes(&mut cluster, 2), (ROWS, ROWS * ROW_BYTES as u64, 0));
    let (bee, _) = cluster.bees("stores")[0];
    assert!(cluster.aim(bee, 1));
    let sent = send_until_moved(&mut cluster, &mut |_, _| {});
    assert!(sent > 50, "{sent} messages arrived meanwhile");
    assert!(cluster.largest_packet() < 2 << 20, "{} bytes", cluster.largest_packet());
    cluster.advance(Duration::from_secs(1));
    for hive in 0..3 {
        assert_eq!(sizes(&mut cluster, hive), (ROWS, ROWS * ROW_BYTES as u64, sent))
    }
}

/// The target crashes when it has some parts, and later the source does.
#[test]
fn a_large_bee_moves_although_both_hives_crash() {
    let mut cluster = filled(NetworkFaults::default(), 2);
    assert_eq!(sizes(&mut cluster, 2), (ROWS, ROWS * ROW_BYTES as u64, 0));
    let (bee, _) = cluster.bees("stores")[0];
    assert!(cluster.aim(bee, 1));
    let mut staged = Vec::new();
    send_until_moved(&mut cluster, &mut |cluster, step| {
        let parts = |cluster: &mut Cluster| -> u32 {
            cluster
                .log_states(1)
                .iter()
                .flat_map(|state| state.staged.values())
                .map(|staged| staged.parts)
                .sum()
        };
        for (at, hive) in [(40, 1), (90, 0)] {
            if step == at {
                staged.push(parts(cluster));
                cluster.crash(hive)
            }
            if step == at + 20 {
                cluster.restart(hive)
            }
        }
    });
    assert!(
        staged.iter().all(|parts| (1..20).contains(parts)),
        "{staged:?} parts were staged at the crashes"
    );
    (0..3).for_each(|hive| cluster.restart(hive));
    cluster.advance(Duration::from_secs(1));
    let (rows, bytes, _) = sizes(&mut cluster, 0);
    assert_eq!((rows, bytes), (ROWS, ROWS * ROW_BYTES as u64))
}

/// The target commits a few parts in three seconds. The move takes longer than a bee without progress waits.
#[test]
fn a_bee_moves_as_long_as_there_is_progress() {
    let mut cluster = filled(QUIET, 3);
    let (bee, _) = cluster.bees("stores")[0];
    cluster.stall(1, true);
    assert!(cluster.aim(bee, 1));
    let mut seconds = 0;
    while cluster.bees("stores") == [(bee, 0)] {
        cluster.advance(Duration::from_secs(3));
        seconds += 3;
        cluster.stall(1, false);
        cluster.advance(Duration::from_millis(1));
        cluster.stall(1, true);
        assert!(seconds < 100, "the bee has not moved")
    }
    assert!(seconds > 15, "it took {seconds} seconds");
    assert_eq!(
        cluster.registry(|view| view.bee(bee).map(|entry| entry.epoch.0)),
        Some(1),
        "it has moved once"
    );
    cluster.stall(1, false);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(sizes(&mut cluster, 2).0, ROWS)
}
