//! Discovery: finds out which switch ports are wired to each other. A cell is one switch.
//!
//! Every port sends an LLDP probe each second. The cell of the receiving switch checks the keyed hash and the age of
//! the probe, and asks the cell of the sending switch whether this is one of its recent, unanswered probes. Therefore
//! forged, old and duplicated probes do not form a link. A hash cannot reveal that two hosts are relaying fresh probes
//! over their own wire, so two ports that both have hosts behind them do not form a link either.

mod probe;

pub use probe::{Key as ProbeKey, Probe, ProbeError};

use crate::limits;
use crate::object::{
    LLDP, Link, LinkDown, LinkUp, MasterChanged, NodeId, NodeJoined, NodeLeft, PacketIn, PacketOut, PortDown,
    PortId, PortNo, PortUp, SendPacket,
};
use beehive::{Address, App, Config, Ctx, Dict, Message, Table, Time, handlers};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Finds the links between switches.
#[derive(App, Debug)]
#[app(name = "discovery", replication = 3)]
pub struct Discovery {
    drivers: Dict<NodeId, Address>,
    ports: Table<NodeId, PortNo, PortState>,
    /// The sending port of each link that ends at the switch, by receiving port.
    links: Table<NodeId, PortNo, PortId>,
    /// Time of the latest probe over each link. A fail-over loses these times; links are then treated as if they had
    /// just been probed.
    #[volatile]
    last_heard: Table<NodeId, PortNo, Time>,
    #[volatile]
    probes: Table<NodeId, PortNo, ProbeState>,
    /// Time of the latest tick.
    #[volatile]
    ticked: Dict<NodeId, Time>,
    config: Config<DiscoverySettings>,
}

/// Settings of discovery: the table `[apps.discovery]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoverySettings {
    /// The secret with which probes are signed. All hives share it, and nobody else may know it. Without it, no links
    /// are found.
    pub secret: Secret,
}

/// Text hidden in debug output.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "(secret)" })
    }
}

/// A port that is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct PortState {
    since: Time,
    /// Whether packets from hosts have arrived at the port before it ever had a link.
    hosted: bool,
    /// Whether the port has ever had a link. If so, all packets come from the other switch, even those that arrive
    /// while the link is lost.
    linked: bool,
}

/// The probes of a port since the last tick.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
struct ProbeState {
    /// Nonces of the latest probes, newest first. The nonce of an answered probe is `None`.
    nonces: [Option<u64>; limits::PROBES_UNANSWERED_MAX],
    /// Time at which the port whose probes arrive at this port last received a probe from this port.
    mutual: Option<Time>,
    /// Number of received LLDP frames.
    received: u32,
}

/// Asks the sender's cell to confirm a probe.
#[derive(Message, Clone, Copy, Debug)]
struct Confirm {
    link: Link,
    nonce: u64,
    hosted: bool,
}

/// The sender's cell confirms the probe.
#[derive(Message, Clone, Copy, Debug)]
struct Confirmed(Link);

/// The reverse direction of a link was lost.
#[derive(Message, Clone, Copy, Debug)]
struct PeerLost(Link);

/// Maximum age of a probe that forms a new link. Any probe younger than [`LINK_TIMEOUT`] keeps an existing link alive:
/// on an overloaded machine, replies are seconds late, which must not change the topology.
const PROBE_AGE_MAX: Duration = Duration::from_secs(1);
/// Time without a probe after which a link is down.
const LINK_TIMEOUT: Duration = Duration::from_secs(4);
/// Time between two ticks above which the second tick counts as late.
const TICK_LATE: Duration = Duration::from_secs(2);
/// Time after a port comes up during which its packets may come from a switch that has not been discovered yet.
const SETTLE_TIME: Duration = Duration::from_secs(3);

#[handlers]
impl Discovery {
    #[rcv(sharded)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        if self.config.secret.0.is_empty() {
            tracing::error!("discovery is inactive: `secret` is not set in [apps.discovery]");
        }

        self.drivers.put(msg.node, msg.driver);
        let ports = self.ports.at(msg.node);
        ports.clear();

        for port in msg.ports.iter().filter(|port| port.up) {
            ports.insert(port.number, PortState { since: ctx.now(), hosted: false, linked: false });
        }
        self.probe_all(msg.node, ctx);
    }

    #[rcv(sharded)]
    fn port_up(&mut self, msg: &PortUp, ctx: &mut Ctx) {
        self.ports
            .at(msg.node)
            .insert(msg.port.number, PortState { since: ctx.now(), hosted: false, linked: false });
        self.probe(msg.node, msg.port.number, ctx);
    }

    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown, ctx: &mut Ctx) {
        self.ports.at(msg.node).remove(&msg.port);
        self.probes.at(msg.node).remove(&msg.port);
        if let Some(from) = self.links.at(msg.node).remove(&msg.port) {
            self.link_lost(Link { from, to: PortId { node: msg.node, port: msg.port } }, ctx);
        }
    }

    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft, ctx: &mut Ctx) {
        if self.drivers.get(&msg.node) != Some(&msg.driver) {
            return; // a newer driver is already connected to the switch
        }

        self.drivers.remove(&msg.node);
        self.ports.at(msg.node).clear();
        self.probes.at(msg.node).clear();
        self.last_heard.at(msg.node).clear();
        self.ticked.remove(&msg.node);

        for (port, from) in self.links.at(msg.node).take_if(|_, _| true) {
            self.link_lost(Link { from, to: PortId { node: msg.node, port } }, ctx);
        }
    }

    #[every("1s", each = ports)]
    fn tick(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let now = ctx.now();
        let heard = self.last_heard.at(*node);
        // does not count a pause of this process against the links, because probes that arrived during the pause may be
        // processed after this tick
        let last = self.ticked.entry(*node).or_insert(now);
        let pause = now.since(*last).saturating_sub(TICK_LATE);

        *last = now;
        if pause > Duration::ZERO {
            for port in self.links.at(*node).keys() {
                heard.entry(*port).and_modify(|heard| *heard = now.min(*heard + pause));
            }
        }

        let silent = self
            .links
            .at(*node)
            .take_if(|port, _| now.since(*heard.entry(*port).or_insert(now)) >= LINK_TIMEOUT);
        for (port, from) in silent {
            self.link_lost(Link { from, to: PortId { node: *node, port } }, ctx);
        }

        self.probe_all(*node, ctx);
    }

    fn probe_all(&mut self, node: NodeId, ctx: &mut Ctx) {
        let ports: Vec<_> = self.ports.at(node).keys().copied().filter(|port| *port <= PortNo::MAX).collect();
        for port in ports {
            self.probe(node, port, ctx);
        }
    }

    fn probe(&mut self, node: NodeId, port: PortNo, ctx: &mut Ctx) {
        if self.config.secret.0.is_empty() {
            return;
        }

        let nonce = ctx.rng().next_u64();
        let probes = self.probes.at(node).entry(port).or_default();
        probes.nonces.rotate_right(1);
        probes.nonces[0] = Some(nonce);
        probes.received = 0;

        let from = PortId { node, port };
        let frame =
            Probe { from, at: ctx.now(), nonce }.frame(&self.config.key(), LINK_TIMEOUT.as_secs() as u16);
        ctx.emit(SendPacket(PacketOut::new(node, port, frame)));
    }

    #[rcv(sharded)]
    fn master_changed(&mut self, msg: &MasterChanged) {
        if let Some(driver) = self.drivers.get_mut(&msg.node) {
            *driver = msg.driver
        }
    }

    #[rcv(sharded, observes)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) {
        let now = ctx.now();
        let Some(state) = self.ports.at(msg.node).get_mut(&msg.port) else { return };
        if msg.ethernet().is_none_or(|header| header.ethertype != LLDP) {
            if !state.hosted && !state.linked && now.since(state.since) >= SETTLE_TIME {
                state.hosted = true;
            }
            return;
        }

        let probes = self.probes.at(msg.node).entry(msg.port).or_default();
        probes.received += 1;
        if probes.received > limits::PROBES_PER_PORT_MAX || self.config.secret.0.is_empty() {
            return;
        }

        let to = PortId { node: msg.node, port: msg.port };
        let probe = match Probe::read(&msg.data, &self.config.key()) {
            Ok(probe) => probe,
            Err(ProbeError::Forged) => return tracing::warn!(port = %to, "ignored a forged probe"),
            Err(ProbeError::Foreign) => return,
        };
        let known = self.links.at(msg.node).get(&msg.port) == Some(&probe.from);
        if now.since(probe.at) > if known { LINK_TIMEOUT } else { PROBE_AGE_MAX }
            || probe.at > now + PROBE_AGE_MAX
        {
            return tracing::warn!(port = %to, "ignored an old probe: it was replayed, or the hive is overloaded");
        }

        let link = Link { from: probe.from, to };
        ctx.emit(Confirm { link, nonce: probe.nonce, hosted: state.hosted })
    }

    /// Checks a probe. Runs in the cell of the sending switch.
    #[rcv(sharded)]
    fn confirm(&mut self, msg: &Confirm, ctx: &mut Ctx) {
        let Link { from, to } = msg.link;
        let Some(probes) = self.probes.at(from.node).get_mut(&from.port) else { return };

        let heard = self.links.at(from.node).get(&from.port);
        let known = heard == Some(&to);
        if known {
            probes.mutual = Some(ctx.now());
        } else if heard.is_some() && probes.mutual.is_some_and(|last| ctx.now().since(last) < LINK_TIMEOUT) {
            return tracing::debug!(link = %msg.link, "rejected a link: another switch is behind the sending port");
        }

        let Some(nonce) = probes.nonces.iter_mut().find(|nonce| **nonce == Some(msg.nonce)) else {
            tracing::debug!(link = %msg.link, "ignored a duplicate or outdated probe");
            return;
        };

        *nonce = None;
        let Some(state) = self.ports.at(from.node).get(&from.port) else { return };
        if state.hosted && msg.hosted && !known {
            tracing::warn!(link = %msg.link, "rejected a link: hosts are behind both ports, so probes are being relayed");
            return;
        }

        ctx.emit(Confirmed(msg.link));
    }

    /// Adds or refreshes a link. Runs in the cell of the receiving switch.
    #[rcv(sharded)]
    fn confirmed(&mut self, Confirmed(link): &Confirmed, ctx: &mut Ctx) {
        match self.ports.at(link.to.node).get_mut(&link.to.port) {
            Some(state) if !state.linked => state.linked = true,
            Some(_) => {}
            None => return, // the port went down meanwhile
        }

        let links = self.links.at(link.to.node);
        if let Some(other) = links.get(&link.to.port).filter(|other| **other != link.from) {
            // keeps the existing link while its probes arrive, because otherwise the link would change with every probe
            return tracing::warn!(%link, %other, "rejected a link: more than one switch is behind the receiving port");
        }

        self.last_heard.at(link.to.node).insert(link.to.port, ctx.now());
        if links.insert(link.to.port, link.from).is_some() {
            return;
        }

        tracing::info!(%link, "link up");
        ctx.emit(LinkUp(*link));
        self.probe(link.to.node, link.to.port, ctx); // the other direction need not wait for the next tick
    }

    #[rcv(sharded)]
    fn peer_lost(&mut self, PeerLost(link): &PeerLost, ctx: &mut Ctx) {
        let links = self.links.at(link.to.node);
        if links.get(&link.to.port) == Some(&link.from) {
            links.remove(&link.to.port);
            tracing::info!(%link, "link down");
            ctx.emit(LinkDown(*link));
        }
    }

    fn link_lost(&mut self, link: Link, ctx: &mut Ctx) {
        tracing::info!(%link, "link down");
        ctx.emit(LinkDown(link));
        ctx.emit(PeerLost(link.reversed()));
    }
}

impl DiscoverySettings {
    fn key(&self) -> ProbeKey {
        ProbeKey::of(&self.secret.0)
    }
}
