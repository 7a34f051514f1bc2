//! Learning switch: learns which port a station is behind, and installs flows between stations that it knows.
//!
//! Flows match the port that the packet came in on, its source, destination and tag. So a host that moved is seen again
//! with its first packet, whether or not its old port went down and whether or not it broadcasts. Then the flows *to*
//! it go, for they lead to its old port; and those *from* its old port, for otherwise it could move back unseen.
//!
//! No flow outlives the address that it leads to: an address is kept while a flow to it may live. Else the host could
//! move after its address is forgotten, and nobody would know that flows lead to where it was.
//!
//! That holds for flows of an earlier life too: switches keep them while we are away. A flow says where both of its
//! stations were, so these are learned from it as from a packet; what contradicts something heard since is withdrawn. So
//! good flows go on forwarding, and a host that moved meanwhile is seen with its first packet, as ever.

use crate::object::{
    AddFlow, AdoptFlows, DelFlows, FlowScope, FlowsFound, NodeId, NodeJoined, NodeLeft, PacketIn, PacketOut,
    PathsChanged, PortDown, PortNo, Station,
};
use crate::parts::{Learned, OwnsFlows, StationLimits, StationTable, seconds};
use beehive::{App, Config, Ctx, Table, Time, handlers};

/// Learns where stations are, per switch and VLAN, and has the switches forward by themselves.
#[derive(App)]
#[app(name = "learning-switch", replication = 3)]
pub struct LearningSwitch {
    /// Which port a station is behind.
    macs: Table<NodeId, Station, PortNo>,
    /// Until when a station is remembered. Unknown after a fail-over, and then as if it had been heard just now.
    #[volatile]
    until: Table<NodeId, Station, Time>,
    /// StationTable behind each port.
    port_counts: Table<NodeId, PortNo, u32>,
    config: Config<LearningSettings>,
}

crate::settings! {
    /// Settings of the learning switch: the table `[apps.learning-switch]`.
    pub struct LearningSettings {
        /// Seconds that an address is remembered without a packet from it. No flow lives for longer than half of that.
        pub age_s: u32 [4..=131_070] = 300,
        /// Seconds without a packet after which a flow goes.
        pub idle_s: u32 [1..=65_535] = 60,
        /// Whether flows are installed. Otherwise every packet comes up.
        pub flows: bool = true,
        /// Addresses that are learned behind one port of a switch; packets of others are forwarded, but the switch is
        /// taught nothing about them. So a host that forges addresses fills neither our memory nor the switch's tables,
        /// and other ports do not notice.
        pub stations_per_port_max: u32 [1..=1_000_000] = 4096,
        /// Addresses that are learned at one switch.
        pub stations_per_node_max: u32 [1..=1_000_000] = 65_536,
    }
}

#[handlers]
impl LearningSwitch {
    #[rcv(sharded)]
    #[allow(clippy::question_mark)] // what a guard turns away is dropped by the map, what `?` ends is not
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> Option<PacketOut> {
        // no LLDP, reserved groups, multicast sources
        let Some((source, destination)) = msg.stations() else { return None };
        let LearningSettings { idle_s, age_s, flows, .. } = *self.config;
        let mut stations = self.stations(msg.node, ctx.now());
        let learned = stations.learn(source, msg.port);
        if let Learned::Moved { from, .. } = learned {
            // what leads to its old port goes, and what it could use there unseen
            ctx.emit(DelFlows::towards(Self::OWNER, msg.node, source));
            ctx.emit(DelFlows::from(Self::OWNER, msg.node, source, from));
        }
        let Some(port) = stations.port(destination) else { return Some(msg.flood()) };
        if port == msg.port {
            return Some(msg.discard()); // it has been there already
        }
        if learned.is_known() && flows {
            stations.keep_at_least(destination, seconds(age_s / 2));
            ctx.emit(AddFlow::between(Self::OWNER, msg, port).idle(seconds(idle_s)).hard(seconds(age_s / 2)));
        }
        Some(msg.forward(port))
    }

    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown, ctx: &mut Ctx) {
        self.stations(msg.node, ctx.now()).forget_port(msg.port);
        ctx.emit(DelFlows::through(Self::OWNER, msg.node, msg.port));
    }

    #[rcv(stateless)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        self.config.flows.then(|| ctx.emit(AdoptFlows { node: msg.node, owner: Self::OWNER }));
    }

    /// Learns from flows that are in the switch already, and withdraws those that lead elsewhere than is known.
    #[rcv(sharded)]
    fn flows_found(&mut self, msg: &FlowsFound, ctx: &mut Ctx) {
        let mut stations = self.stations(msg.node, ctx.now());
        for found in msg.flows.iter().filter(|_| msg.owner == Self::OWNER) {
            if !stations.adopt(found) {
                ctx.emit(DelFlows::exactly(Self::OWNER, msg.node, found.key()));
            }
        }
    }

    /// What was learned is of no use when the switch comes back: it may be wired differently. Its flows tell again.
    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft, ctx: &mut Ctx) {
        self.stations(msg.node, ctx.now()).clear();
    }

    /// StationTable may be behind other ports now, though these are still up.
    #[rcv(sharded)]
    fn paths_changed(&mut self, msg: &PathsChanged, ctx: &mut Ctx) {
        self.stations(msg.node, ctx.now()).clear();
        ctx.emit(DelFlows { node: msg.node, owner: Self::OWNER, scope: FlowScope::All });
    }

    #[every("10s", each = macs)]
    fn age(&mut self, node: &NodeId, ctx: &mut Ctx) {
        self.stations(*node, ctx.now()).expire();
    }

    fn stations(&mut self, node: NodeId, now: Time) -> StationTable<'_> {
        let LearningSettings { age_s, stations_per_port_max, stations_per_node_max, .. } = *self.config;
        let limits = StationLimits::of(age_s, stations_per_port_max, stations_per_node_max);
        StationTable::new(self.macs.at(node), self.until.at(node), self.port_counts.at(node), limits, now)
    }
}
