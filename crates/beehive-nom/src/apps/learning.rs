//! Learning switch: learns behind which port each station is, and installs flows between known stations.
//!
//! Flows match the input port, the source, the destination and the VLAN tag. Therefore the first packet from a host
//! that has moved comes to the controller, whether or not the old port went down and whether or not the host
//! broadcasts. The app then withdraws the flows *to* the host, which lead to its old port. It also withdraws the host's
//! flows *from* its old port, because with them the host could move back unnoticed.
//!
//! No flow outlives the table entry of its destination, because the app keeps an
//! entry for as long as a flow to its station may live. Otherwise a host could
//! move after its entry was forgotten, and flows would still lead to its old port.
//!
//! The same is true for flows from before a restart, which switches keep while the controller is away. Such a flow
//! contains the locations of both stations, so the app learns from it as from a packet, and withdraws flows that
//! contradict what it has learned since. Valid flows therefore keep forwarding, and the first packet from a host that
//! has moved meanwhile comes to the controller as usual.

use crate::object::{
    AddFlow, AdoptFlows, DelFlows, FlowScope, FlowsFound, NodeId, NodeJoined, NodeLeft, PacketIn, PacketOut,
    PathsChanged, PortDown, PortNo, Station,
};
use crate::parts::{Learned, OwnsFlows, StationLimits, StationTable, seconds};
use beehive::{App, Config, Ctx, Table, Time, handlers};

/// Learns the ports of stations per switch and VLAN, and installs flows between them.
#[derive(App, Debug)]
#[app(name = "learning-switch", replication = 3)]
pub struct LearningSwitch {
    /// The port behind which each station is located.
    macs: Table<NodeId, Station, PortNo>,
    /// The time until which each station is remembered. A fail-over loses these times; stations are then treated as
    /// if they had just been seen.
    #[volatile]
    until: Table<NodeId, Station, Time>,
    /// Number of stations behind each port.
    port_counts: Table<NodeId, PortNo, u32>,
    config: Config<LearningSettings>,
}

crate::settings! {
    /// Settings of the learning switch: the table `[apps.learning-switch]`.
    pub struct LearningSettings {
        /// Seconds for which an address is remembered after its latest
        /// packet. No flow lives longer than half of this time.
        pub age_s: u32 [4..=131_070] = 300,
        /// Idle timeout of flows in seconds.
        pub idle_s: u32 [1..=65_535] = 60,
        /// Whether flows are installed. Without flows, every packet comes to the controller.
        pub flows: bool = true,
        /// Maximum number of addresses learned behind one port of a switch. Packets from further addresses are
        /// forwarded but cause no table entries or flows. A host that forges addresses therefore fills neither the
        /// memory nor the switch's flow table, and does not affect other ports.
        pub stations_per_port_max: u32 [1..=1_000_000] = 4096,
        /// Maximum number of addresses learned at one switch.
        pub stations_per_node_max: u32 [1..=1_000_000] = 65_536,
    }
}

#[handlers]
impl LearningSwitch {
    #[rcv(sharded)]
    // the derived map drops messages rejected by a `let ... else` guard, but not those rejected by `?`
    #[allow(clippy::question_mark)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> Option<PacketOut> {
        // `stations` excludes LLDP, reserved groups and multicast sources
        let Some((source, destination)) = msg.stations() else { return None };

        let LearningSettings { idle_s, age_s, flows, .. } = *self.config;
        let mut stations = self.stations(msg.node, ctx.now());
        let learned = stations.learn(source, msg.port);

        if let Learned::Moved { from, .. } = learned {
            // withdraws the flows to the host's old port, and the flows that the host could use there unnoticed
            ctx.emit(DelFlows::towards(Self::OWNER, msg.node, source));
            ctx.emit(DelFlows::from(Self::OWNER, msg.node, source, from));
        }

        let Some(port) = stations.port(destination) else { return Some(msg.flood()) };
        if port == msg.port {
            return Some(msg.discard()); // the destination is at the input port
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
        ctx.emit(AdoptFlows { node: msg.node, owner: Self::OWNER });
    }

    /// Learns from flows already in the switch and withdraws those that contradict the table. If the setting `flows` is
    /// false, withdraws all flows.
    #[rcv(sharded)]
    fn flows_found(&mut self, msg: &FlowsFound, ctx: &mut Ctx) {
        let (flows, mut stations) = (self.config.flows, self.stations(msg.node, ctx.now()));
        for found in msg.flows.iter().filter(|_| msg.owner == Self::OWNER) {
            if !flows || !stations.adopt(found) {
                ctx.emit(DelFlows::exactly(Self::OWNER, msg.node, found.key()));
            }
        }
    }

    /// Clears the table, because the switch may be wired differently
    /// when it comes back. The app then learns from its flows again.
    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft, ctx: &mut Ctx) {
        self.stations(msg.node, ctx.now()).clear();
    }

    /// Clears the table, because stations may now be behind other ports, although all ports are still up.
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
