//! Discovery: which port is wired to which. A cell is one switch.
//!
//! Every port sends a probe each second. Whoever receives it checks the keyed hash and the age, and asks the sender's cell
//! whether that is its latest probe, and not yet answered: so a forged one, an old one and one that comes twice make no
//! link. What hashes cannot tell is a fresh probe that two hosts relay through a wire of their own: ports that have
//! hosts behind them at both ends make no link either.

mod probe;

pub use probe::{Key as ProbeKey, Probe, ProbeError};

use crate::limits;
use crate::object::{
    LLDP, Link, LinkDown, LinkUp, NodeId, NodeJoined, NodeLeft, PacketIn, PacketOut, PortDown, PortId,
    PortNo, PortUp, SendPacket,
};
use beehive::{Address, App, Config, Ctx, Dict, Message, Table, Time, handlers};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Finds the links between switches.
#[derive(App)]
#[app(name = "discovery", replication = 3)]
pub struct Discovery {
    drivers: Dict<NodeId, Address>,
    ports: Table<NodeId, PortNo, PortState>,
    /// Links that end here, by port: where they come from.
    links: Table<NodeId, PortNo, PortId>,
    /// When they were heard last. Unknown after a fail-over, and then as if that had been just now.
    #[volatile]
    last_heard: Table<NodeId, PortNo, Time>,
    #[volatile]
    probes: Table<NodeId, PortNo, ProbeState>,
    /// When links were last looked at.
    #[volatile]
    ticked: Dict<NodeId, Time>,
    config: Config<DiscoverySettings>,
}

/// Settings of discovery: the table `[apps.discovery]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoverySettings {
    /// What probes are signed with; the same on all hives, and known to nobody else. Without one nothing is found.
    pub secret: Secret,
}

/// A text that does not show in logs.
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
    /// Packets of hosts came in on it, and no link was ever there.
    hosted: bool,
    /// A link was there: whatever comes in while it is not heard comes from the other switch.
    linked: bool,
}

/// What goes out of a port, and comes in, since the last tick.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
struct ProbeState {
    /// The latest probes, the newest first, as far as they were not answered.
    nonces: [Option<u64>; limits::PROBES_UNANSWERED_MAX],
    /// When the port that is heard here heard this one last.
    mutual: Option<Time>,
    /// LLDP frames that came in.
    received: u32,
}

/// Asks the sender of a probe whether it is good.
#[derive(Message, Clone, Copy, Debug)]
struct Confirm {
    link: Link,
    nonce: u64,
    hosted: bool,
}

/// The sender says that it is.
#[derive(Message, Clone, Copy, Debug)]
struct Confirmed(Link);

/// The other end of a link is gone.
#[derive(Message, Clone, Copy, Debug)]
struct PeerLost(Link);

/// Older probes make no link. One that is there already is kept by any probe that is not older than [`LINK_TIMEOUT`]: on a machine
/// that has too much to do answers are late for seconds, and a tree that is in order must not be torn down for that.
const PROBE_AGE_MAX: Duration = Duration::from_secs(1);
/// A link that was not heard for so long is down.
const LINK_TIMEOUT: Duration = Duration::from_secs(4);
/// Later than this a tick is late.
const TICK_LATE: Duration = Duration::from_secs(2);
/// What comes in so soon after a port came up may be from a switch that is not known yet.
const SETTLE_TIME: Duration = Duration::from_secs(3);

#[handlers]
impl Discovery {
    #[rcv(sharded)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        if self.config.secret.0.is_empty() {
            tracing::error!("discovery finds nothing: [apps.discovery] secret is not set");
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
            return; // a newer one has it already
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
        // a pause of our own does not count against links: what came in meanwhile may be read after this
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
            Err(ProbeError::Forged) => return tracing::warn!(port = %to, "a forged probe came in"),
            Err(ProbeError::Foreign) => return,
        };
        let known = self.links.at(msg.node).get(&msg.port) == Some(&probe.from);
        if now.since(probe.at) > if known { LINK_TIMEOUT } else { PROBE_AGE_MAX }
            || probe.at > now + PROBE_AGE_MAX
        {
            return tracing::warn!(port = %to, "an old probe came in: somebody replays them, or we are behind");
        }
        let link = Link { from: probe.from, to };
        ctx.emit(Confirm { link, nonce: probe.nonce, hosted: state.hosted })
    }

    /// At the sender's cell.
    #[rcv(sharded)]
    fn confirm(&mut self, msg: &Confirm, ctx: &mut Ctx) {
        let Link { from, to } = msg.link;
        let Some(probes) = self.probes.at(from.node).get_mut(&from.port) else { return };
        let heard = self.links.at(from.node).get(&from.port);
        let known = heard == Some(&to);
        if known {
            probes.mutual = Some(ctx.now());
        } else if heard.is_some() && probes.mutual.is_some_and(|last| ctx.now().since(last) < LINK_TIMEOUT) {
            return tracing::debug!(link = %msg.link, "no link: another switch is behind that port");
        }
        let Some(nonce) = probes.nonces.iter_mut().find(|nonce| **nonce == Some(msg.nonce)) else {
            tracing::debug!(link = %msg.link, "a probe came a second time");
            return;
        };
        *nonce = None;
        let Some(state) = self.ports.at(from.node).get(&from.port) else { return };
        if state.hosted && msg.hosted && !known {
            tracing::warn!(link = %msg.link, "no link: hosts are behind both ports, so somebody relays probes");
            return;
        }
        ctx.emit(Confirmed(msg.link));
    }

    /// At the receiver's cell.
    #[rcv(sharded)]
    fn confirmed(&mut self, Confirmed(link): &Confirmed, ctx: &mut Ctx) {
        match self.ports.at(link.to.node).get_mut(&link.to.port) {
            Some(state) if !state.linked => state.linked = true,
            Some(_) => {}
            None => return, // down since
        }
        let links = self.links.at(link.to.node);
        if let Some(other) = links.get(&link.to.port).filter(|other| **other != link.from) {
            // the one that is there stays while it is heard: else links would change with every probe
            return tracing::warn!(%link, %other, "no link: more than one switch is behind that port");
        }
        self.last_heard.at(link.to.node).insert(link.to.port, ctx.now());
        if links.insert(link.to.port, link.from).is_some() {
            return;
        }
        tracing::info!(%link, "a link was found");
        ctx.emit(LinkUp(*link));
        self.probe(link.to.node, link.to.port, ctx); // the other direction need not wait for the next tick
    }

    #[rcv(sharded)]
    fn peer_lost(&mut self, PeerLost(link): &PeerLost, ctx: &mut Ctx) {
        let links = self.links.at(link.to.node);
        if links.get(&link.to.port) == Some(&link.from) {
            links.remove(&link.to.port);
            tracing::info!(%link, "a link is lost");
            ctx.emit(LinkDown(*link));
        }
    }

    fn link_lost(&mut self, link: Link, ctx: &mut Ctx) {
        tracing::info!(%link, "a link is lost");
        ctx.emit(LinkDown(link));
        ctx.emit(PeerLost(link.reversed()));
    }
}

impl DiscoverySettings {
    fn key(&self) -> ProbeKey {
        ProbeKey::of(&self.secret.0)
    }
}
