//! Runs the controller's apps with different distributions of their cells over bees: answers, messages and
//! state must be equal.

extern crate beehive_core as beehive;

use beehive::testing::{Kit, Setup};
use beehive_nom::apps::{Hub, LearningSwitch, NodeController};
use beehive_nom::object::{NodeId, NodeJoined, NodeLeft, PacketIn, PacketInReason, PortDown, PortNo};
use std::time::Duration;

/// A small random number generator with a seed.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

fn packet(node: u64, port: u64, from: u64, to: u64) -> PacketIn {
    let address = |n: u64| [2, 0, 0, 0, 0, n as u8];
    let data: Vec<u8> = [&address(to)[..], &address(from), &[8, 0], &[0; 50]].concat();
    PacketIn {
        node: NodeId(node),
        port: PortNo(port as u32),
        reason: PacketInReason::Miss,
        length: data.len() as u16,
        buffer: None,
        data: data.into(),
    }
}

/// Simulates hosts that talk at several switches, move, and fall silent, while ports and switches go down and
/// come back.
fn traffic(kit: &mut Kit, seed: u64) {
    let mut chance = SeededRng(seed);
    let driver = kit.address();
    for node in 0..6 {
        kit.emit(NodeJoined {
            node: NodeId(node),
            driver,
            ports: Vec::new(),
            knows_owners: node % 2 == 0,
            drops_misses: true,
        });
    }

    for _ in 0..30 {
        let burst: Vec<PacketIn> = (0..20)
            .map(|_| packet(chance.below(6), 1 + chance.below(4), chance.below(12), chance.below(12)))
            .collect();
        kit.emit_all(burst);
        let node = NodeId(chance.below(6));

        match chance.below(8) {
            0 => drop(kit.emit(PortDown { node, port: PortNo(1), removed: false })),
            1 => drop(kit.emit(NodeLeft { node, driver })),
            2 => drop(kit.emit(NodeJoined {
                node,
                driver,
                ports: Vec::new(),
                knows_owners: true,
                drops_misses: true,
            })),
            3 => drop(kit.advance(Duration::from_secs(chance.below(200)))),
            _ => {}
        }
    }
}

fn check(setup: Setup) {
    for seed in 0..3 {
        setup.clone().merging_runs(4).check(|kit| traffic(kit, seed))
    }
}

#[test]
fn the_learning_switch_does_not_notice() {
    check(Kit::of::<NodeController>().app::<LearningSwitch>())
}

#[test]
fn the_hub_does_not_notice() {
    check(Kit::of::<NodeController>().app::<Hub>())
}
