//! Loop guard: what may come in on which port. It stands in front of all apps that answer packets; a cell is one switch.
//!
//! - A port that came up is closed until discovery had time to find a link on it.
//! - A port whose link would close a loop takes nothing that is flooded: [`PortRole::Blocked`], as topology says.
//! - What discovery cannot see (a loop through a switch that swallows probes) shows in the packets: the same frame comes in
//!   on another port, again and again. Then that port is closed for a while, and everybody is told.
//! - An address that is on two ports at once without that is held to the port where it was first.
//!
//! A closed port has a flow below those of apps that forward, and above that which brings packets up: what is forwarded
//! already goes on, nothing new comes in. One that packets ran in a circle through has it above all others.

use crate::limits;
use crate::object::{
    Action, Actions, AddFlow, Cause, DelFlows, FlowMatch, FlowScope, LLDP, LoopDetected, NodeId, NodeJoined,
    NodeLeft, PacketIn, PacketOut, PortDown, PortId, PortNo, PortRole, PortRoleChanged, PortUp, Station,
};
use crate::parts::OwnsFlows;
use beehive::{Address, App, Config, Ctx, Dict, Rows, Table, Time, handlers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// The priority of the flow that closes a port to what no app forwards yet.
const CLOSED: u16 = 50;
/// The priority of the flow that closes a port to everything.
const QUARANTINED: u16 = 60_000;
/// The priority of the flow that brings LLDP up from closed ports too.
const PROBES: u16 = 60_001;
/// Two sightings on different ports within this time are no move.
const MOVE_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// The blame for a frame that came in before on another port.
const BLAME_SAME: u32 = 3;
/// The blame for an address that was on another port a moment ago.
const BLAME_MOVED: u32 = 1;

/// Keeps packets from running in circles.
#[derive(App)]
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
        /// Milliseconds that a port that came up stays closed, so that links are found first. Discovery sends a probe each
        /// second. 0: ports are open at once.
        pub settle_ms: u32 [0..=600_000] = 2_000,
        /// Seconds that a port stays closed after packets ran in a circle through it.
        pub quarantine_s: u32 [1..=86_400] = 30,
        /// Blame within a second at which a port is closed: three for a frame that came in on two ports.
        pub blame_max: u32 [1..=1_000_000] = 6,
        /// Whether single hosts' packets may come in on a blocked port: an app that forwards on shortest paths, and floods
        /// none of them, wants that.
        pub paths_on_blocked: bool = false,
    }
}

/// What may come in on a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum PortState {
    /// Nothing until then.
    Settling(Time),
    /// Nothing until then: packets ran in a circle through it.
    Quarantined(Time),
    /// What its role lets in.
    Open(PortRole),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sighting {
    /// Where it was for longer than a moment.
    home: PortNo,
    port: PortNo,
    since: Time,
    last: Time,
    /// Of its latest frame to a group.
    frame: u64,
    /// Until when it is believed at home only.
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
        // whatever was known of its links: they are found anew, and until then nothing new comes in
        for (port, state) in self.port_states.at(msg.node).take_if(|_, _| true) {
            reopen(msg.node, port, state, ctx);
        }
        for port in msg.ports.iter().filter(|port| port.up && port.number <= PortNo::MAX) {
            self.close(msg.node, port.number, Cause::of::<NodeJoined>(), ctx);
        }
    }

    /// Nothing is kept of a switch that may have come once: a new number each time would fill the memory.
    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft, ctx: &mut Ctx) {
        if self.drivers.get(&msg.node) != Some(&msg.driver) {
            return; // a newer one has it already
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
            // another link may be behind it
            if !quarantined {
                self.close(node, port, Cause::of::<PortRoleChanged>(), ctx);
            }
            return;
        }
        if quarantined {
            ctx.emit(reopen_flow(node, port, QUARANTINED)); // a link that explains it was found
        }
        port_states.insert(port, PortState::Open(msg.role));
        match msg.role {
            PortRole::Blocked if !self.config.paths_on_blocked => {
                ctx.emit(close_flow(node, port, CLOSED, Cause::of::<PortRoleChanged>()))
            }
            _ => open_port(node, port, ctx),
        }
        // where addresses are is seen anew
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
            None => return None, // the switch's own stack
        };
        if role == PortRole::Blocked || self.is_credible(msg, ctx) { None } else { Some(msg.discard()) }
    }

    /// Whether the source of a packet may be where it came in. Blames the port if that goes on.
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
        // a switch's link brings in what others let in: they see who is to blame
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
                "a loop: frames come back through this port, which is closed for a while");
            ctx.emit(LoopDetected { port: at, why: format!("frames of {source} come back through it") });
            self.port_states.at(node).insert(suspect, PortState::Quarantined(now + quarantine));
            self.blame.at(node).remove(&suspect);
            ctx.emit(close_flow(node, suspect, QUARANTINED, Cause::of::<PacketIn>()));
            return port != suspect;
        }
        if points >= self.config.blame_max {
            tracing::error!(port = %at, address = %source, "an address is on two ports at once: it is held to the first");
            ctx.emit(LoopDetected { port: at, why: format!("{source} is on another port at the same time") });
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

    /// Closes a port for as long as discovery takes.
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

/// Forgets the addresses that were seen last behind the port that has most of them: forged ones. Those behind other ports
/// stay, or whoever forges enough of them could be where he likes.
fn evict_fullest_port(seen: &mut Rows<Station, Sighting>, now: Time) {
    let mut port_counts: BTreeMap<PortNo, usize> = BTreeMap::new();
    for one in seen.values() {
        *port_counts.entry(one.port).or_default() += 1
    }
    let fullest = port_counts.into_iter().max_by_key(|(_, addresses)| *addresses);
    let Some((fullest, _)) = fullest else { return };
    seen.retain(|_, one| one.port != fullest || now < one.held);
    if seen.len() >= limits::SIGHTINGS_PER_NODE_MAX {
        seen.clear() // all of them are held
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

/// Takes back whatever closes a port at this state.
fn reopen(node: NodeId, port: PortNo, state: PortState, ctx: &mut Ctx) {
    match state {
        PortState::Quarantined(_) => ctx.emit(reopen_flow(node, port, QUARANTINED)),
        _ => open_port(node, port, ctx),
    }
}
