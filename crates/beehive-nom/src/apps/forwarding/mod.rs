//! Reactive forwarding: the first packet between two hosts installs flows along a shortest path.
//!
//! The app receives the events about hosts, links and port roles, and makes its decisions in a single cell, because a
//! path spans the whole network. Packets to unknown hosts and to groups are flooded along the tree. It needs the apps
//! discovery, topology, loop guard (with `paths_on_blocked`) and hosts.
//!
//! The flow at the first switch of a path expires before the flows at later switches. Therefore no packet arrives in
//! the middle of a path at a switch whose flow has already expired.

mod paths;

pub use paths::shortest;

use crate::limits;
use crate::object::{
    Action, Actions, AddFlow, AdoptFlows, DelFlows, FlowMatch, FlowScope, FlowsFound, HostLost, HostMoved,
    HostSeen, Link, LinkDown, LinkUp, NodeId, NodeJoined, NodeLeft, PacketIn, PacketOut, PortId, PortNo,
    PortRole, PortRoleChanged, Station,
};
use crate::parts::OwnsFlows;
use beehive::{App, Config, Ctx, Key, Rows, Table, handlers};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Forwards packets along shortest paths.
#[derive(App, Debug)]
#[app(name = "forwarding", replication = 3)]
pub struct Forwarding {
    links: Table<Map, Link, ()>,
    blocked: Table<Map, PortId, ()>,
    hosts: Table<Map, Station, PortId>,
    /// The switches with flows to each host.
    flows: Table<Map, (Station, NodeId), ()>,
    config: Config<ForwardingSettings>,
}

/// The only key: there is one map of the network.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Map;

crate::settings! {
    /// Settings of reactive forwarding: the table `[apps.forwarding]`.
    pub struct ForwardingSettings {
        /// Idle timeout of flows in seconds.
        pub idle_s: u16 [1..=65_535] = 30,
        /// Hard timeout of flows in seconds. After it, the next packet installs the flow again.
        pub age_s: u16 [1..=65_535] = 300,
    }
}

/// Additional lifetime of the flows at the switches after the first one.
const LATER: Duration = Duration::from_secs(5);

#[handlers]
impl Forwarding {
    #[rcv(centralized)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> Option<PacketOut> {
        if !msg.is_learnable() {
            return None;
        }

        let (here, destination) = (PortId { node: msg.node, port: msg.port }, msg.destination());
        let target = self.hosts.at(Map).get(&destination).copied();
        let path = target.and_then(|target| {
            let links: BTreeSet<Link> = self.links.at(Map).keys().copied().collect();
            shortest(&links, msg.node, target.node).map(|path| (target, path))
        });
        let Some((target, path)) = path else {
            // there is no path, so floods the packet along the tree
            let blocked = self.blocked.at(Map).contains(&here);
            return Some(if blocked { msg.discard() } else { msg.flood() });
        };

        if target == here {
            return Some(msg.discard()); // the destination is at the input port
        }

        let ways_in = std::iter::once(here).chain(path.iter().map(|link| link.to));
        let ways_out = path.iter().map(|link| link.from.port).chain([target.port]);
        let hops: Vec<_> = ways_in.zip(ways_out).collect();
        let (idle, age) =
            (Duration::from_secs(self.config.idle_s.into()), Duration::from_secs(self.config.age_s.into()));
        let flows = self.flows.at(Map);

        for (number, (way_in, way_out)) in hops.iter().enumerate().rev() {
            if flows.len() < limits::INTENDED_FLOWS_PER_NODE_MAX {
                flows.insert((destination, way_in.node), ());
            } else if !flows.contains(&(destination, way_in.node)) {
                continue; // without an entry, the flow could not be withdrawn later
            }
            let later = if number == 0 { Duration::ZERO } else { LATER };
            let matching = FlowMatch { port: Some(way_in.port), ..FlowMatch::like(msg) };
            let flow = AddFlow::new(way_in.node, Self::OWNER, matching, output(way_in.port, *way_out));
            ctx.emit(flow.because::<PacketIn>().idle(idle + later).hard(age + later));
        }

        hops.first().map(|(way_in, way_out)| msg.answer(output(way_in.port, *way_out)))
    }

    #[rcv(centralized)]
    fn host_seen(&mut self, msg: &HostSeen, ctx: &mut Ctx) {
        let hosts = self.hosts.at(Map);
        if hosts.len() < limits::HOSTS_MAX {
            hosts.insert(msg.station, msg.at);
        }
        withdraw(self.flows.at(Map), msg.station, ctx);
    }

    #[rcv(centralized)]
    fn host_moved(&mut self, msg: &HostMoved, ctx: &mut Ctx) {
        if let Some(at) = self.hosts.at(Map).get_mut(&msg.station) {
            *at = msg.at;
        }
        withdraw(self.flows.at(Map), msg.station, ctx);
        // with these flows, the host could move back unnoticed
        ctx.emit(DelFlows::from(Self::OWNER, msg.from.node, msg.station, msg.from.port));
    }

    #[rcv(centralized)]
    fn host_lost(&mut self, msg: &HostLost, ctx: &mut Ctx) {
        self.hosts.at(Map).remove(&msg.station);
        withdraw(self.flows.at(Map), msg.station, ctx);
        ctx.emit(DelFlows::from(Self::OWNER, msg.at.node, msg.station, msg.at.port));
    }

    #[rcv(centralized)]
    fn role_changed(&mut self, msg: &PortRoleChanged) {
        let blocked = self.blocked.at(Map);
        match msg.role {
            PortRole::Blocked => drop(blocked.insert(msg.port, ())),
            _ => drop(blocked.remove(&msg.port)),
        }
    }

    #[rcv(centralized)]
    fn link_up(&mut self, LinkUp(link): &LinkUp) {
        let links = self.links.at(Map);
        if links.len() < limits::LINKS_MAX {
            links.insert(*link, ());
        }
    }

    /// Withdraws all flows, because packets on a path over the lost link would have to turn back halfway. The next
    /// packets then install flows along new paths.
    #[rcv(centralized)]
    fn link_down(&mut self, LinkDown(link): &LinkDown, ctx: &mut Ctx) {
        if self.links.at(Map).remove(link).is_none() {
            return;
        }
        let gone = self.flows.at(Map).take_if(|_, _| true);
        let nodes: BTreeSet<NodeId> = gone.into_iter().map(|((_, node), ())| node).collect();
        for node in nodes {
            ctx.emit(DelFlows { node, owner: Self::OWNER, scope: FlowScope::All });
        }
    }

    #[rcv(stateless)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        ctx.emit(AdoptFlows { node: msg.node, owner: Self::OWNER });
    }

    /// Withdraws flows from an earlier connection, and flows that do not follow a current shortest path.
    #[rcv(centralized)]
    fn flows_found(&mut self, msg: &FlowsFound, ctx: &mut Ctx) {
        if msg.owner != Self::OWNER {
            return;
        }

        let links: BTreeSet<Link> = self.links.at(Map).keys().copied().collect();
        let (hosts, flows) = (self.hosts.at(Map), self.flows.at(Map));
        let mut ways_out: BTreeMap<PortId, BTreeSet<PortNo>> = BTreeMap::new();

        for found in &msg.flows {
            let FlowMatch { port: Some(way_in), destination: Some(mac), tag: Some(tag), .. } = found.matching
            else {
                continue; // this app does not install such flows
            };
            let station = Station::new(tag.vlan(), mac);
            let target = hosts.get(&station).filter(|_| flows.contains(&(station, msg.node)));
            let good = target.is_some_and(|target| {
                let ways = ways_out.entry(*target).or_insert_with(|| ways_to(&links, msg.node, *target));
                ways.iter().any(|way_out| found.actions == output(way_in, *way_out))
            });

            if !good {
                ctx.emit(DelFlows::exactly(Self::OWNER, msg.node, found.key()));
            }
        }
    }

    #[rcv(centralized)]
    fn node_left(&mut self, msg: &NodeLeft) {
        self.flows.at(Map).retain(|(_, node), ()| *node != msg.node);
        self.blocked.at(Map).retain(|port, ()| port.node != msg.node);
    }

    /// Removes the flow entries of hosts that are no longer known.
    #[every("60s", each = hosts)]
    fn forget(&mut self, map: &Map) {
        let hosts = self.hosts.at(*map);
        self.flows.at(*map).retain(|(station, _), ()| hosts.contains(station));
    }
}

/// Returns the action that sends a packet out of a port, even if that port is the input port.
fn output(way_in: PortNo, way_out: PortNo) -> Actions {
    Actions::One(Action::Output(if way_in == way_out { PortNo::IN_PORT } else { way_out }))
}

/// Returns the ports of the switch `node` at which shortest paths to `target` begin.
fn ways_to(links: &BTreeSet<Link>, node: NodeId, target: PortId) -> BTreeSet<PortNo> {
    if node == target.node {
        return BTreeSet::from([target.port]);
    }
    let distance = |from| shortest(links, from, target.node).map(|path| path.len());
    let Some(here) = distance(node) else { return BTreeSet::new() };
    let nearer = |link: &&Link| distance(link.to.node).is_some_and(|there| there < here);
    let outgoing = links.iter().filter(|link| link.from.node == node && links.contains(&link.reversed()));
    outgoing.filter(nearer).map(|link| link.from.port).collect()
}

/// Withdraws all flows to a host.
fn withdraw(flows: &mut Rows<(Station, NodeId), ()>, station: Station, ctx: &mut Ctx) {
    let first = (station, NodeId(0));
    let of_station = |key: &(Station, NodeId)| key.0 == station;
    let nodes: Vec<_> = flows.range(first..).map(|(key, ())| *key).take_while(of_station).collect();
    for (station, node) in nodes {
        flows.remove(&(station, node));
        ctx.emit(DelFlows::towards(Forwarding::OWNER, node, station));
    }
}
