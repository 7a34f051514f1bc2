//! Loop guard: decides which packets are accepted at which port.
//! It precedes all apps that answer packets. A cell is one switch.
//!
//! - A port that has come up is closed until discovery has had time to find a link on it.
//! - A port whose link would close a loop ([`PortRole::Blocked`], as computed by topology) accepts no flooded
//!   packets.
//! - Discovery cannot see some loops, for example loops through a switch that swallows probes. The loop guard detects
//!   them from the packets: the same frame repeatedly arrives at a different port. Such a port is closed for some time,
//!   and the loop is reported.
//! - An address that appears at two ports at once, but without such repeated frames, is bound to its first port.
//!
//! A closed port has a flow whose priority is below the priorities of forwarding apps and above the miss flow.
//! Therefore existing flows keep forwarding, but other packets are dropped. A port in quarantine has a flow whose
//! priority is above all others.

use crate::limits;
use crate::object::{
    Action, Actions, AddFlow, Cause, DelFlows, FlowMatch, FlowScope, LLDP, LoopDetected, MasterChanged,
    NodeId, NodeJoined, NodeLeft, PacketIn, PacketOut, PortDown, PortId, PortNo, PortRole, PortRoleChanged,
    PortUp, Station,
};
use crate::parts::OwnsFlows;
use beehive::{Address, App, Config, Ctx, Dict, Rows, Table, Time, handlers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// The priority of the flow that closes a port to packets not matched by any forwarding app's flow.
const CLOSED: u16 = 50;
/// The priority of the flow that closes a port to all packets.
const QUARANTINED: u16 = 60_000;
/// The priority of the flow that sends LLDP to the controller, even from closed ports.
const PROBES: u16 = 60_001;
/// If an address appears at two ports within this time, that does not count as a move.
const MOVE_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Blame points for a frame that has already arrived at a different port.
const BLAME_SAME: u32 = 3;
/// Blame points for an address that was at another port less than [`MOVE_INTERVAL_MIN`] ago.
const BLAME_MOVED: u32 = 1;

/// Keeps packets from circulating in loops.
#[derive(App, Debug)]
#[app(name = "loop-guard", replication = 3)]
pub struct LoopGuard {
    drivers: Dict<NodeId, Address>,
    port_states: Table<NodeId, PortNo, PortState>,
    #[volatile]
    sightings: Table<NodeId, Station, Sighting>,
    #[volatile]
    blame: Table<NodeId, PortNo, Blame>,
    config: Config<LoopGuardSettings>,
}

crate::settings! {
    /// Settings of the loop guard: the table `[apps.loop-guard]`.
    pub struct LoopGuardSettings {
        /// Milliseconds for which a port that has come up stays closed, so that its link is found first. Discovery
        /// sends one probe per second through each port. 0 opens ports immediately.
        pub settle_ms: u32 [0..=600_000] = 2_000,
        /// Seconds for which a port stays closed after a loop was detected on it.
        pub quarantine_s: u32 [1..=86_400] = 30,
        /// Number of blame points within a second at which a port is
        /// closed. A frame that arrived at two ports counts three points.
        pub blame_max: u32 [1..=1_000_000] = 6,
        /// Whether unicast packets are accepted at a blocked port. Apps that forward unicast packets along shortest
        /// paths, and do not flood them, need this.
        pub paths_on_blocked: bool = false,
    }
}

/// A port's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum PortState {
    /// Closed until this time, while links are discovered.
    Settling(Time),
    /// Closed until this time, because a loop was detected.
    Quarantined(Time),
    /// Open to the packets admitted by the port's role.
    Open(PortRole),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sighting {
    /// The port at which the address has stayed for longer than [`MOVE_INTERVAL_MIN`].
    home: PortNo,
    port: PortNo,
    since: Time,
    last: Time,
    /// Hash of the latest multicast frame from the address.
    frame: u64,
    /// Time until which the address is accepted only at `home`.
    held: Time,
}

#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
struct Blame {
    points: u32,
    since: Time,
}

#[handlers]
impl LoopGuard {
    #[rcv(sharded)]
    fn node_joined(&mut self, msg: &NodeJoined, ctx: &mut Ctx) {
        let lldp = FlowMatch { ethertype: Some(LLDP), ..FlowMatch::ANY };
        let up = Actions::One(Action::Output(PortNo::CONTROLLER));
        ctx.emit(AddFlow::new(msg.node, Self::OWNER, lldp, up).because::<NodeJoined>().priority(PROBES));
        self.drivers.put(msg.node, msg.driver);

        // discards the previous port states, because links are discovered again and ports stay closed until then
        for (port, state) in self.port_states.at(msg.node).take_if(|_, _| true) {
            reopen(msg.node, port, state, ctx);
        }

        for port in msg.ports.iter().filter(|port| port.up && port.number <= PortNo::MAX) {
            self.close(msg.node, port.number, Cause::of::<NodeJoined>(), ctx);
        }
    }

    /// Forgets the switch. Otherwise a peer that connects with a new id each time would fill the memory.
    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft, ctx: &mut Ctx) {
        if self.drivers.get(&msg.node) != Some(&msg.driver) {
            return; // a newer driver is already connected to the switch
        }
        self.drivers.remove(&msg.node);
        self.port_states.at(msg.node).clear();
        self.sightings.at(msg.node).clear();
        self.blame.at(msg.node).clear();
        ctx.emit(DelFlows { node: msg.node, owner: Self::OWNER, scope: FlowScope::All });
    }

    #[rcv(sharded)]
    fn port_up(&mut self, msg: &PortUp, ctx: &mut Ctx) {
        if msg.port.number <= PortNo::MAX {
            self.close(msg.node, msg.port.number, Cause::of::<PortUp>(), ctx);
        }
    }

    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown, ctx: &mut Ctx) {
        if let Some(state) = self.port_states.at(msg.node).remove(&msg.port) {
            reopen(msg.node, msg.port, state, ctx);
        }
        self.sightings.at(msg.node).retain(|_, seen| seen.port != msg.port && seen.home != msg.port);
        self.blame.at(msg.node).remove(&msg.port);
    }

    #[rcv(sharded)]
    fn role_changed(&mut self, msg: &PortRoleChanged, ctx: &mut Ctx) {
        let PortId { node, port } = msg.port;
        let port_states = self.port_states.at(node);
        let Some(state) = port_states.get(&port).copied() else { return };

        let quarantined = matches!(state, PortState::Quarantined(_));
        if msg.role == PortRole::Edge {
            // the port may now have a different link
            if !quarantined {
                self.close(node, port, Cause::of::<PortRoleChanged>(), ctx);
            }
            return;
        }

        if quarantined {
            ctx.emit(reopen_flow(node, port, QUARANTINED)); // the discovered link explains the loop
        }

        port_states.insert(port, PortState::Open(msg.role));
        match msg.role {
            PortRole::Blocked if !self.config.paths_on_blocked => {
                ctx.emit(close_flow(node, port, CLOSED, Cause::of::<PortRoleChanged>()))
            }
            _ => open_port(node, port, ctx),
        }

        // forgets the addresses at this port, so that their ports are learned again
        self.sightings.at(node).retain(|_, seen| seen.port != port && seen.home != port);
    }

    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> Option<PacketOut> {
        if !msg.is_learnable() {
            return None;
        }

        let role = match self.port_states.at(msg.node).get(&msg.port) {
            Some(PortState::Open(PortRole::Blocked))
                if !self.config.paths_on_blocked || msg.destination().mac().is_multicast() =>
            {
                return Some(msg.discard());
            }
            Some(PortState::Open(role)) => *role,
            Some(_) => return Some(msg.discard()),
            None => return None, // a packet from the switch's own network stack
        };

        if role == PortRole::Blocked || self.is_credible(msg, ctx) { None } else { Some(msg.discard()) }
    }

    /// Returns whether a packet's source is accepted at its input port. Blames a port for repeated conflicts.
    fn is_credible(&mut self, msg: &PacketIn, ctx: &mut Ctx) -> bool {
        let (now, source) = (ctx.now(), msg.source());
        let frame = if msg.destination().mac().is_multicast() { xxh3_64(&msg.data) } else { 0 };
        let seen = self.sightings.at(msg.node);

        if seen.len() >= limits::SIGHTINGS_PER_NODE_MAX {
            evict_fullest_port(seen, now)
        }

        let (port, since, last) = (msg.port, now, now);
        let Some(known) = seen.get_mut(&source) else {
            seen.insert(source, Sighting { home: port, port, since, last, frame, held: Time::ZERO });
            return true;
        };

        let before = *known;
        if port != before.home && now < before.held {
            return false;
        }
        if before.port == port {
            if before.home != port && now.since(before.since) >= MOVE_INTERVAL_MIN {
                known.home = port;
            }
            (known.last, known.frame) = (now, if frame == 0 { before.frame } else { frame });
            return true;
        }

        let same = frame != 0 && frame == before.frame;
        let quick = now.since(before.last) < MOVE_INTERVAL_MIN;
        let home = if quick || now < before.held { before.home } else { port };
        *known = Sighting { home, port, since, last, frame, ..before };

        if !quick {
            return true;
        }

        // does not blame a port with a link, because the cell of the switch behind the link finds the port to blame
        let port_states = self.port_states.at(msg.node);
        let at_edge = |port: PortNo| port_states.get(&port) == Some(&PortState::Open(PortRole::Edge));
        let mut suspects = [port, before.port].into_iter();
        let Some(suspect) = suspects.find(|port| *port != before.home && at_edge(*port)) else {
            return true;
        };

        let blame = self.blame.at(msg.node).entry(suspect).or_default();
        if now.since(blame.since) >= MOVE_INTERVAL_MIN {
            *blame = Blame { points: 0, since: now };
        }

        blame.points += if same { BLAME_SAME } else { BLAME_MOVED };
        let (points, node) = (blame.points, msg.node);
        let quarantine = Duration::from_secs(u64::from(self.config.quarantine_s));
        let at = PortId { node, port: suspect };

        if points >= self.config.blame_max && same {
            tracing::error!(port = %at, address = %source, ?quarantine,
                "loop detected: frames return through this port; closing it temporarily");
            ctx.emit(LoopDetected {
                port: at,
                why: format!("frames from {source} return through this port"),
            });
            self.port_states.at(node).insert(suspect, PortState::Quarantined(now + quarantine));
            self.blame.at(node).remove(&suspect);
            ctx.emit(close_flow(node, suspect, QUARANTINED, Cause::of::<PacketIn>()));
            return port != suspect;
        }

        if points >= self.config.blame_max {
            tracing::error!(port = %at, address = %source, "address seen at two ports at once; binding it to the first one");
            ctx.emit(LoopDetected {
                port: at,
                why: format!("{source} is active on another port at the same time"),
            });
            self.blame.at(node).remove(&suspect);
            if let Some(known) = self.sightings.at(node).get_mut(&source) {
                known.held = now + quarantine;
            }
            return port == before.home;
        }

        true
    }

    #[every("500ms", each = port_states)]
    fn tick(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let now = ctx.now();
        let over: Vec<_> = self.port_states.at(*node).iter().map(|(port, state)| (*port, *state)).collect();
        for (port, state) in over {
            match state {
                PortState::Settling(until) if until <= now => {
                    self.port_states.at(*node).insert(port, PortState::Open(PortRole::Edge));
                    open_port(*node, port, ctx);
                }
                PortState::Quarantined(until) if until <= now => {
                    ctx.emit(reopen_flow(*node, port, QUARANTINED));
                    self.close(*node, port, Cause::of::<LoopDetected>(), ctx);
                }
                _ => {}
            }
        }

        let seen = self.sightings.at(*node);
        seen.retain(|_, seen| now.since(seen.last) < limits::SIGHTING_AGE || now < seen.held);
    }

    #[rcv(sharded)]
    fn master_changed(&mut self, msg: &MasterChanged) {
        if let Some(driver) = self.drivers.get_mut(&msg.node) {
            *driver = msg.driver
        }
    }

    /// Closes a port for [`LoopGuardSettings::settle_ms`].
    fn close(&mut self, node: NodeId, port: PortNo, cause: Cause, ctx: &mut Ctx) {
        let until = ctx.now() + Duration::from_millis(u64::from(self.config.settle_ms));
        if until == ctx.now() {
            self.port_states.at(node).insert(port, PortState::Open(PortRole::Edge));
            return;
        }
        self.port_states.at(node).insert(port, PortState::Settling(until));
        ctx.emit(close_flow(node, port, CLOSED, cause));
    }
}

/// Forgets the addresses at the port that has the most addresses, which are probably forged. Addresses at other ports
/// are kept, because otherwise an attacker could evict them and then use them at its own port.
fn evict_fullest_port(seen: &mut Rows<Station, Sighting>, now: Time) {
    let mut port_counts: BTreeMap<PortNo, usize> = BTreeMap::new();
    for one in seen.values() {
        *port_counts.entry(one.port).or_default() += 1
    }

    let fullest = port_counts.into_iter().max_by_key(|(_, addresses)| *addresses);
    let Some((fullest, _)) = fullest else { return };

    seen.retain(|_, one| one.port != fullest || now < one.held);
    if seen.len() >= limits::SIGHTINGS_PER_NODE_MAX {
        seen.clear() // all remaining addresses are bound to their ports
    }
}

fn from_port(port: PortNo) -> FlowMatch {
    FlowMatch { port: Some(port), ..FlowMatch::ANY }
}

fn close_flow(node: NodeId, port: PortNo, priority: u16, cause: Cause) -> AddFlow {
    AddFlow::new(node, LoopGuard::OWNER, from_port(port), Actions::None).priority(priority).caused_by(cause)
}

fn reopen_flow(node: NodeId, port: PortNo, priority: u16) -> DelFlows {
    DelFlows { node, owner: LoopGuard::OWNER, scope: FlowScope::Exactly(priority, from_port(port)) }
}

fn open_port(node: NodeId, port: PortNo, ctx: &mut Ctx) {
    ctx.emit(reopen_flow(node, port, CLOSED));
}

/// Withdraws the flow that closes a port in this state.
fn reopen(node: NodeId, port: PortNo, state: PortState, ctx: &mut Ctx) {
    match state {
        PortState::Quarantined(_) => ctx.emit(reopen_flow(node, port, QUARANTINED)),
        _ => open_port(node, port, ctx),
    }
}
