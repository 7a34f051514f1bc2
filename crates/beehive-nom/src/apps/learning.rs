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

use crate::apps::range::within;
use crate::object::{
    Action, Actions, AddFlow, AdoptFlows, DelFlows, FlowScope, FlowsFound, FoundFlow, NodeId, NodeJoined,
    NodeLeft, Owner, PacketIn, PacketOut, PathsChanged, PortDown, PortNo, Station,
};
use beehive::{App, Config, Ctx, Rows, Table, Time, handlers};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Learns where stations are, per switch and VLAN, and has the switches forward by themselves.
#[derive(App)]
#[app(name = "learning-switch", replication = 3)]
pub struct LearningSwitch {
    /// Which port a station is behind.
    macs: Table<NodeId, Station, PortNo>,
    /// Until when a station is remembered. Unknown after a fail-over, and then as if it had been heard just now.
    #[volatile]
    until: Table<NodeId, Station, Time>,
    /// Stations behind each port.
    crowds: Table<NodeId, PortNo, u32>,
    config: Config<LearningSettings>,
}

/// Settings of the learning switch: the table `[apps.learning-switch]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearningSettings {
    /// Seconds that an address is remembered without a packet from it. Default 300; 4 to 131 070. No flow lives for longer
    /// than half of that.
    #[serde(deserialize_with = "within::<_, _, 4, 131_070>")]
    pub age_s: u32,
    /// Seconds without a packet after which a flow goes. Default 60; 1 to 65 535.
    #[serde(deserialize_with = "within::<_, _, 1, 65_535>")]
    pub idle_s: u32,
    /// Whether flows are installed. Otherwise every packet comes up. Default true.
    pub flows: bool,
    /// Addresses that are learned behind one port of a switch; packets of others are forwarded, but the switch is taught
    /// nothing about them. So a host that forges addresses fills neither our memory nor the switch's tables, and other
    /// ports do not notice. Default 4 096; 1 to 1 000 000.
    #[serde(deserialize_with = "within::<_, _, 1, 1_000_000>")]
    pub stations_per_port_max: u32,
    /// Addresses that are learned at one switch. Default 65 536; 1 to 1 000 000.
    #[serde(deserialize_with = "within::<_, _, 1, 1_000_000>")]
    pub stations_per_node_max: u32,
}

impl Default for LearningSettings {
    fn default() -> Self {
        LearningSettings {
            age_s: 300,
            idle_s: 60,
            flows: true,
            stations_per_port_max: 4096,
            stations_per_node_max: 65_536,
        }
    }
}

impl LearningSettings {
    fn age(&self) -> Duration {
        Duration::from_secs(u64::from(self.age_s))
    }

    fn flow_idle(&self) -> Duration {
        Duration::from_secs(u64::from(self.idle_s))
    }

    fn flow_age(&self) -> Duration {
        self.age() / 2
    }
}

/// How exactly it is known until when a station is remembered: not every packet is worth a note.
const PRECISION: Duration = Duration::from_secs(1);

impl LearningSwitch {
    /// Whose flows the learning switch's are.
    pub const OWNER: Owner = Owner::named("learning-switch");
}

#[handlers]
impl LearningSwitch {
    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> Option<PacketOut> {
        if !msg.is_learnable() {
            return None; // LLDP, reserved groups, multicast sources
        }
        let (source, destination) = (msg.source(), msg.destination());
        let (now, age) = (ctx.now(), self.config.age());
        let macs = self.macs.at(msg.node);
        let old = macs.get(&source).copied();
        let mut known = old == Some(msg.port);
        if !known {
            let crowds = self.crowds.at(msg.node);
            let crowd = crowds.get(&msg.port).copied().unwrap_or(0);
            let room = crowd < self.config.stations_per_port_max
                && (old.is_some() || (macs.len() as u32) < self.config.stations_per_node_max);
            if let Some(old) = old {
                // it has moved: what leads to its old port goes, and what it could use there unseen
                ctx.emit(DelFlows::towards(Self::OWNER, msg.node, source));
                ctx.emit(DelFlows::from(Self::OWNER, msg.node, source, old));
                leave(crowds, old);
                macs.remove(&source);
            }
            if room {
                macs.insert(source, msg.port);
                *crowds.entry(msg.port).or_default() += 1;
                known = true;
            }
        }
        let until = self.until.at(msg.node);
        if known && until.get(&source).is_none_or(|t| *t < now + age - PRECISION) {
            until.insert(source, now + age);
        }
        let Some(port) = macs.get(&destination).copied() else { return Some(msg.flood()) };
        if port == msg.port {
            return Some(msg.discard()); // it has been there already
        }
        if known && self.config.flows {
            let gone = now + self.config.flow_age() + PRECISION;
            if until.get(&destination).is_none_or(|t| *t < gone) {
                until.insert(destination, gone);
            }
            let flow = AddFlow::between(Self::OWNER, msg, port);
            ctx.emit(flow.idle(self.config.flow_idle()).hard(self.config.flow_age()));
        }
        Some(msg.forward(port))
    }

    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown, ctx: &mut Ctx) {
        let until = self.until.at(msg.node);
        for (station, _) in self.macs.at(msg.node).take_if(|_, port| *port == msg.port) {
            until.remove(&station);
        }
        self.crowds.at(msg.node).remove(&msg.port);
        ctx.emit(DelFlows::through(Self::OWNER, msg.node, msg.port));
    }

    #[rcv(stateless)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        if self.config.flows {
            ctx.emit(AdoptFlows { node: msg.node, owner: Self::OWNER })
        }
    }

    /// Learns from flows that are in the switch already, and withdraws those that lead elsewhere than is known.
    #[rcv(sharded)]
    fn flows_found(&mut self, msg: &FlowsFound, ctx: &mut Ctx) {
        if msg.owner != Self::OWNER {
            return;
        }
        let (macs, crowds) = (self.macs.at(msg.node), self.crowds.at(msg.node));
        let until = self.until.at(msg.node);
        for found in &msg.flows {
            let stations = stations(found);
            let good = stations.is_some_and(|both| {
                both.into_iter().all(|(station, port)| is_at(station, port, macs, crowds, &self.config))
            });
            if !good {
                ctx.emit(DelFlows::exactly(Self::OWNER, msg.node, found.key()));
                continue;
            }
            // it may have been made with other settings
            let left =
                Duration::from_secs(u64::from(found.hard_s).saturating_sub(found.age_s.into())) + PRECISION;
            for (station, _) in stations.into_iter().flatten() {
                let until = until.entry(station).or_insert(ctx.now() + self.config.age());
                *until = (*until).max(ctx.now() + left);
            }
        }
    }

    /// What was learned is of no use when the switch comes back: it may be wired differently. Its flows tell again.
    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft) {
        self.macs.at(msg.node).clear();
        self.until.at(msg.node).clear();
        self.crowds.at(msg.node).clear();
    }

    /// Stations may be behind other ports now, though these are still up.
    #[rcv(sharded)]
    fn paths_changed(&mut self, msg: &PathsChanged, ctx: &mut Ctx) {
        self.macs.at(msg.node).clear();
        self.until.at(msg.node).clear();
        self.crowds.at(msg.node).clear();
        ctx.emit(DelFlows { node: msg.node, owner: Self::OWNER, scope: FlowScope::All });
    }

    #[every("10s", each = macs)]
    fn age(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let (now, age) = (ctx.now(), self.config.age());
        let until = self.until.at(*node);
        let crowds = self.crowds.at(*node);
        let old = self.macs.at(*node).take_if(|station, _| *until.entry(*station).or_insert(now + age) < now);
        for (station, port) in old {
            until.remove(&station);
            leave(crowds, port);
        }
    }
}

/// Where a flow of ours says that its stations are: the one that it takes packets from, and the one that it leads to.
fn stations(found: &FoundFlow) -> Option<[(Station, PortNo); 2]> {
    let (m, Actions::One(Action::Output(out))) = (&found.matching, &found.actions) else { return None };
    let vlan = m.tag?.vlan();
    let both = [(Station::new(vlan, m.source?), m.port?), (Station::new(vlan, m.destination?), *out)];
    (m.ethertype.is_none() && m.conversation.is_none() && found.hard_s != 0).then_some(both)
}

/// Whether `station` is behind `port`, as far as is known; learned if nothing is.
fn is_at(
    station: Station,
    port: PortNo,
    macs: &mut Rows<Station, PortNo>,
    crowds: &mut Rows<PortNo, u32>,
    settings: &LearningSettings,
) -> bool {
    if let Some(known) = macs.get(&station) {
        return *known == port;
    }
    let crowd = crowds.get(&port).copied().unwrap_or(0);
    if crowd >= settings.stations_per_port_max || macs.len() as u32 >= settings.stations_per_node_max {
        return false;
    }
    macs.insert(station, port);
    crowds.insert(port, crowd + 1);
    true
}

/// One station less behind `port`.
fn leave(crowds: &mut Rows<PortNo, u32>, port: PortNo) {
    match crowds.get(&port).copied() {
        Some(0 | 1) => drop(crowds.remove(&port)),
        Some(crowd) => drop(crowds.insert(port, crowd - 1)),
        None => {}
    }
}
