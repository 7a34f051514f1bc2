//! A network in memory that loses, doubles, delays and cuts off packets at random.

use super::NetworkFaults;
use crate::cell::HiveId;
use crate::hive::links::network::{Network, Packets};
use crate::seams::Platform;
use crate::testing::VirtualPlatform;
use crate::testing::cluster::trace::{Kind, Log};
use crate::testing::platform::{Chance, Owner};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The network between all hives of a cluster.
pub(super) struct SimulatedNetwork {
    platform: VirtualPlatform,
    log: Arc<Log>,
    state: Mutex<State>,
}

struct State {
    chance: Chance,
    faults: NetworkFaults,
    /// The receivers of the hives that run, each with the number of its connection.
    receivers: BTreeMap<HiveId, (u64, Option<Arc<dyn Packets>>)>,
    connections: u64,
    /// The pairs of hives whose connection is cut.
    cut: BTreeSet<(HiveId, HiveId)>,
    /// Numbers of packets: sent, lost, doubled, cut off.
    counts: [u64; 4],
    /// Size of the largest packet, in bytes.
    largest: usize,
}

impl State {
    fn hits(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.chance.next().is_multiple_of(one_in)
    }
}

fn pair(one: HiveId, other: HiveId) -> (HiveId, HiveId) {
    (one.min(other), one.max(other))
}

impl SimulatedNetwork {
    pub(super) fn new(
        platform: VirtualPlatform,
        faults: NetworkFaults,
        log: Arc<Log>,
    ) -> Arc<SimulatedNetwork> {
        let chance = Chance::new(platform.random());
        let state = State {
            chance,
            faults,
            receivers: BTreeMap::new(),
            connections: 0,
            cut: BTreeSet::new(),
            counts: [0; 4],
            largest: 0,
        };
        Arc::new(SimulatedNetwork { platform, log, state: Mutex::new(state) })
    }

    /// Connects a hive. Its earlier connection ends.
    pub(super) fn connect(self: &Arc<Self>, hive: HiveId) -> Arc<dyn Network> {
        let mut state = self.state.lock();
        state.connections += 1;
        let number = state.connections;
        state.receivers.insert(hive, (number, None));
        Arc::new(Connection { network: Arc::downgrade(self), hive, number })
    }

    /// Ends the connection of a hive.
    pub(super) fn disconnect(&self, hive: HiveId) {
        let gone = self.state.lock().receivers.remove(&hive);
        drop(gone)
    }

    pub(super) fn cut(&self, one: HiveId, other: HiveId, is_cut: bool) {
        let mut state = self.state.lock();
        match is_cut {
            true => state.cut.insert(pair(one, other)),
            false => state.cut.remove(&pair(one, other)),
        };
    }

    /// Cuts all connections between one of these hives and one of the others. Repairs all other connections.
    pub(super) fn partition(&self, hives: &[HiveId], others: &[HiveId]) {
        let pairs = hives.iter().flat_map(|one| others.iter().map(move |other| pair(*one, *other)));
        self.state.lock().cut = pairs.collect()
    }

    pub(super) fn heal(&self) {
        let mut state = self.state.lock();
        state.cut.clear();
        (state.faults.lose_one_in, state.faults.double_one_in) = (0, 0)
    }

    pub(super) fn largest_packet(&self) -> usize {
        self.state.lock().largest
    }

    pub(super) fn traffic(&self) -> String {
        let [sent, lost, doubled, cut] = self.state.lock().counts;
        format!("{sent} packets, {lost} lost, {doubled} doubled, {cut} cut off")
    }

    fn send(self: Arc<Self>, from: (HiveId, u64), to: HiveId, packet: Vec<u8>) {
        let mut state = self.state.lock();
        // a hive that is down sends nothing
        if state.receivers.get(&from.0).is_none_or(|(number, _)| *number != from.1) {
            return;
        }
        let tell = |fate: &str| {
            let text = format_args!("to {to}, {} bytes{fate}", packet.len());
            self.log.add(Kind::Packet, Some(from.0), None, text)
        };
        state.counts[0] += 1;
        state.largest = state.largest.max(packet.len());
        if state.cut.contains(&pair(from.0, to)) {
            state.counts[3] += 1;
            tell(": cut off");
            return;
        }
        let (lose, double) = (state.faults.lose_one_in, state.faults.double_one_in);
        if state.hits(lose) {
            state.counts[1] += 1;
            tell(": lost");
            return;
        }
        let copies = if state.hits(double) { 2 } else { 1 };
        state.counts[2] += copies - 1;
        tell(if copies == 2 { ": doubled" } else { "" });
        for _ in 0..copies {
            let delay_max = state.faults.delay_max.as_nanos() as u64;
            let delay = Duration::from_nanos(state.chance.next() % delay_max.max(1));
            let (network, packet) = (self.clone(), packet.clone());
            // a hive that is paused takes nothing
            let arrival = Box::pin(async move {
                network.platform.sleep(delay).await;
                let receiver = {
                    let state = network.state.lock();
                    // a packet to a hive that is down is lost; one to its next process is not
                    state.receivers.get(&to).and_then(|(_, receiver)| receiver.clone())
                };
                if let Some(receiver) = receiver {
                    let text = format_args!("from {}, {} bytes", from.0, packet.len());
                    network.log.add(Kind::Arrive, Some(to), None, text);
                    receiver.arrived(from.0, &packet)
                }
            });
            self.platform.spawn_as(Owner(to.0), arrival)
        }
    }
}

/// A hive's access to the network.
struct Connection {
    network: Weak<SimulatedNetwork>,
    hive: HiveId,
    number: u64,
}

impl Network for Connection {
    fn send(&self, to: HiveId, packet: Vec<u8>) {
        if let Some(network) = self.network.upgrade() {
            network.send((self.hive, self.number), to, packet)
        }
    }

    fn attach(&self, receiver: Arc<dyn Packets>) {
        let Some(network) = self.network.upgrade() else { return };
        let mut state = network.state.lock();
        if let Some((number, attached)) = state.receivers.get_mut(&self.hive)
            && *number == self.number
        {
            *attached = Some(receiver)
        }
    }
}
