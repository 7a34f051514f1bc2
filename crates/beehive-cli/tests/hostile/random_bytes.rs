//! Tests random bytes at every stage of a connection, with and without valid headers.

use crate::bystander::Bystander;
use crate::daemon::Daemon;
use crate::switch::Switch;
use crate::wire::{self, V1_0, V1_3};
use crate::{exclusive, is_long};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }

    fn message(&mut self, version: u8) -> Vec<u8> {
        let kind = if self.below(3) == 0 { wire::PACKET_IN } else { self.below(32) as u8 };
        let (xid, length) = (self.below(20) as u32, self.below(200));
        wire::message(version, kind, xid, &self.bytes(length))
    }
}

/// Opens connections that send random data until `end`. Returns the numbers of connections and of bytes.
fn send_random(controller: SocketAddr, seed: u64, end: Instant) -> (u64, u64) {
    let mut random = Random(seed | 1);
    let (mut connections, mut bytes) = (0, 0);
    while Instant::now() < end {
        connections += 1;
        let version = if random.below(2) == 0 { V1_0 } else { V1_3 };
        let mut switch = match random.below(3) {
            0 => Switch::connect(controller, version),
            1 => Switch::connect_greeted(controller, version).0,
            _ => Switch::connect_ready(controller, version, (seed << 32) + connections),
        };

        for _ in 0..1 + random.below(20) {
            let sent = match random.below(3) {
                0 => {
                    let length = random.below(4_000);
                    random.bytes(length)
                }
                _ => random.message(version),
            };

            bytes += sent.len() as u64;
            if !switch.send(&sent) {
                break;
            }
        }
    }

    (connections, bytes)
}

#[test]
fn random_bytes_harm_nobody_else() {
    let _exclusive = exclusive();
    let mut daemon = Daemon::start();
    let bystander = Bystander::start(daemon.switches);
    daemon.watch_memory();
    let end = Instant::now() + Duration::from_secs(if is_long() { 60 } else { 3 });
    let controller = daemon.switches;
    let makers: Vec<_> =
        (1..=3).map(|seed| std::thread::spawn(move || send_random(controller, seed, end))).collect();

    let (mut connections, mut bytes) = (0, 0);
    for maker in makers {
        let (some, sent) = maker.join().expect("is served until it makes noise");
        connections += some;
        bytes += sent;
    }

    bystander.end("random bytes");
    daemon.until("they are gone", Duration::from_secs(8), |daemon| daemon.metric("beehive_connections") == 0);
    let (grown, first) = daemon.memory_growth();
    println!("random bytes: {connections} connections, {bytes} bytes, memory of {first} grew by {grown}");
    assert!(connections > 50 && grown < 64 << 20, "{connections} connections, memory grew by {grown}");

    daemon.end()
}
