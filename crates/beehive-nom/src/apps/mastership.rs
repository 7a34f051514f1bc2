//! Mastership: decides which driver controls a switch that is connected to several hives. A cell is one switch, or one hive.
//!
//! The first driver of a switch becomes the master. Another one takes over when the master has lost its connection, or when its own
//! hive suspects that of the master. A suspicion may be wrong. That costs a change of masters, and no more: the new generation is
//! higher, and the switch obeys only the driver with the highest one.
//!
//! Each driver confirms each decision, and is told again until it has. A hive may die after it has committed a decision, and before
//! it has told anybody. A driver that does not confirm for long is removed, and asked whether it is still there.
//!
//! Other apps learn from the cell of the switch, in the order of its decisions, that it has joined, and has left with its
//! last driver. When another driver takes over, they learn its address and which ports have changed meanwhile, and keep what
//! they know of the switch.

use crate::object::{
    BecomeMaster, DriverConnected, DriverLeft, MasterAccepted, MasterChanged, MasterRefused, MasterReports,
    MasterSuspected, NodeId, NodeJoined, NodeLeft, Port, PortChanged, PortDown, PortEvent, PortNo, PortUp,
    SayConnected, StandBy, StoodBy,
};
use beehive::cluster::HiveLost;
use beehive::{Address, App, Ctx, Dict, HiveId, Message, Table, handlers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of ticks for which a driver may not confirm, before it is removed.
const TICKS_UNCONFIRMED_MAX: u8 = 5;

/// Maximum distance of a generation that a switch reports from those of this cluster. A higher one is taken for none: generations
/// are nanoseconds, and those of Open vSwitch before the first role request are all ones.
const AHEAD_MAX: u64 = 1 << 62;

/// Decides which driver controls each switch.
#[derive(App, Debug)]
#[app(name = "mastership", replication = 3)]
pub struct Mastership {
    switches: Dict<NodeId, Switch>,
    /// The ports of each switch, as its masters have reported them.
    ports: Table<NodeId, PortNo, Port>,
    /// The drivers of each hive.
    of_hive: Table<HiveId, NodeId, Address>,
}

/// A switch and its drivers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Switch {
    /// The drivers, in the order in which they connected, at most one of each hive. Never empty.
    drivers: Vec<Member>,
    /// One of them.
    master: Address,
    /// The number of the latest decision. It is higher than that of each earlier one, also before a restart of the cluster.
    generation: u64,
    /// Whether the switch has refused a generation since the latest tick.
    is_refused: bool,
    /// The driver that the apps know.
    joined: Option<Address>,
}

/// A driver of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Member {
    driver: Address,
    /// Number of ticks for which it has not confirmed the latest decision. `None` if it has.
    unconfirmed: Option<u8>,
    /// Whether another driver has taken its place since the latest tick, because it was suspected. Until then it does not take it
    /// back: two hives that suspect each other would go on without end.
    is_displaced: bool,
}

/// The driver of a hive is connected to a switch, or no longer.
#[derive(Message, Clone, Copy, Debug)]
struct Located {
    hive: HiveId,
    node: NodeId,
    driver: Address,
    is_connected: bool,
}

/// The hive of a driver was declared dead, or an earlier life of it was.
#[derive(Message, Clone, Copy, Debug)]
struct DriverLost {
    node: NodeId,
    driver: Address,
}

#[handlers]
impl Mastership {
    #[rcv(sharded)]
    fn driver_connected(&mut self, msg: &DriverConnected, ctx: &mut Ctx) {
        let DriverConnected { node, driver, newest } = *msg;
        let Some(hive) = hive_of(driver) else { return };
        let Some(mut switch) = self.switches.remove(&node) else {
            let switch = Switch::new(driver, ctx.now().as_nanoseconds().max(newest.wrapping_add(1)));
            switch.tell(driver, ctx);
            self.switches.put(node, switch);
            return ctx.emit(Located { hive, node, driver, is_connected: true });
        };
        // an earlier process of the same hive has ended with its drivers, although nobody has declared it dead
        switch.drivers.retain(|member| member.driver == driver || hive_of(member.driver) != Some(hive));
        if !switch.drivers.iter().any(|member| member.driver == driver) {
            switch.drivers.push(Member::new(driver));
            ctx.emit(Located { hive, node, driver, is_connected: true })
        }
        let has_master = switch.drivers.iter().any(|member| member.driver == switch.master);
        match has_master {
            true if newest <= switch.generation => switch.tell(driver, ctx),
            true => switch.appoint(node, switch.master, newest, ctx),
            false => switch.appoint(node, driver, newest, ctx),
        }
        self.switches.put(node, switch);
    }

    #[rcv(sharded)]
    fn driver_left(&mut self, msg: &DriverLeft, ctx: &mut Ctx) {
        self.remove(msg.node, msg.driver, ctx)
    }

    #[rcv(sharded)]
    fn driver_lost(&mut self, msg: &DriverLost, ctx: &mut Ctx) {
        self.remove(msg.node, msg.driver, ctx);
        // if an earlier life of the hive was meant, and this is its driver now, it says so
        ctx.send(msg.driver, SayConnected)
    }

    #[rcv(sharded)]
    fn master_suspected(&mut self, msg: &MasterSuspected, ctx: &mut Ctx) {
        let Some(switch) = self.switches.get_mut(&msg.node) else { return };
        let claimant = switch.drivers.iter().find(|member| member.driver == msg.driver);
        match claimant {
            // the driver does not know the latest decision
            Some(_) if switch.master != msg.master => switch.tell(msg.driver, ctx),
            // it is told again at the next tick, and then claims again
            Some(claimant) if claimant.is_displaced => {}
            Some(_) => {
                let master = switch.drivers.iter_mut().find(|member| member.driver == msg.master);
                master.into_iter().for_each(|member| member.is_displaced = true);
                switch.appoint(msg.node, msg.driver, 0, ctx)
            }
            None => {}
        }
    }

    #[rcv(sharded)]
    fn stood_by(&mut self, msg: &StoodBy) {
        if let Some(switch) = self.switches.get_mut(&msg.node)
            && switch.generation == msg.generation
        {
            switch.confirm(msg.driver)
        }
    }

    #[rcv(sharded)]
    fn master_accepted(&mut self, msg: &MasterAccepted, ctx: &mut Ctx) {
        let MasterAccepted { generation, joined } = msg;
        let (node, driver) = (joined.node, joined.driver);
        let Some(switch) = self.switches.get_mut(&node).filter(|switch| switch.generation == *generation)
        else {
            return;
        };
        switch.confirm(driver);
        let before = switch.joined.replace(driver);
        let ports = self.ports.at(node);
        let old: BTreeMap<PortNo, Port> = ports.take_if(|_, _| true).into_iter().collect();
        for port in &joined.ports {
            ports.insert(port.number, port.clone());
        }
        if before.is_none() {
            return ctx.emit(joined.clone());
        }
        if before != Some(driver) {
            let NodeJoined { knows_owners, drops_misses, .. } = *joined;
            ctx.emit(MasterChanged { node, driver, knows_owners, drops_misses })
        }
        // what has happened while nobody was the master
        let new: BTreeMap<PortNo, &Port> = joined.ports.iter().map(|port| (port.number, port)).collect();
        for port in old.keys().copied().filter(|port| !new.contains_key(port)) {
            ctx.emit(PortDown { node, port, removed: true })
        }
        for (number, port) in new {
            let was = old.get(&number);
            match (was.is_some_and(|was| was.up), port.up) {
                (false, true) => ctx.emit(PortUp { node, port: port.clone() }),
                (true, false) => ctx.emit(PortDown { node, port: number, removed: false }),
                (_, _) if was != Some(port) => ctx.emit(PortChanged { node, port: port.clone() }),
                (_, _) => {}
            }
        }
    }

    /// Passes on what the master reports. What a former one has said is dropped: the present one has reported all ports since.
    #[rcv(sharded)]
    fn master_reports(&mut self, msg: &MasterReports, ctx: &mut Ctx) {
        if self.switches.get(&msg.node).is_none_or(|switch| switch.generation != msg.generation) {
            return;
        }
        let ports = self.ports.at(msg.node);
        match &msg.change {
            PortEvent::Up(event) => {
                ports.insert(event.port.number, event.port.clone());
                ctx.emit(event.clone())
            }
            PortEvent::Down(event) => {
                match event.removed {
                    true => drop(ports.remove(&event.port)),
                    false => {
                        ports.entry(event.port).and_modify(|port| port.up = false);
                    }
                }
                ctx.emit(*event)
            }
            PortEvent::Changed(event) => {
                ports.insert(event.port.number, event.port.clone());
                ctx.emit(event.clone())
            }
        }
    }

    #[rcv(sharded)]
    fn master_refused(&mut self, msg: &MasterRefused, ctx: &mut Ctx) {
        let MasterRefused { node, generation, newest } = *msg;
        let Some(switch) = self.switches.get_mut(&node).filter(|switch| switch.generation == generation)
        else {
            return;
        };
        let is_ahead = (1..AHEAD_MAX).contains(&newest.wrapping_sub(generation));
        tracing::debug!(%node, generation, newest, "the switch knows a newer master than this cluster does");
        switch.generation = if is_ahead { newest.wrapping_add(1) } else { generation.wrapping_add(1) };
        switch.drivers.iter_mut().for_each(|member| member.unconfirmed = Some(0));
        // a switch that always refuses is asked at the next tick
        if !std::mem::replace(&mut switch.is_refused, true) {
            switch.tell(switch.master, ctx)
        }
    }

    #[every("1s", each = switches)]
    fn tell_again(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let Some(switch) = self.switches.get(node) else { return };
        if switch.drivers.iter().all(|member| member.unconfirmed.is_none() && !member.is_displaced) {
            return;
        }
        let is_silent = |member: &&Member| member.unconfirmed >= Some(TICKS_UNCONFIRMED_MAX);
        if let Some(Member { driver, .. }) = switch.drivers.iter().find(is_silent).copied() {
            tracing::warn!(%node, ?driver, "a driver of a switch does not answer the hives; it is removed until it does");
            self.remove(*node, driver, ctx);
            return ctx.send(driver, SayConnected);
        }
        let Some(switch) = self.switches.get_mut(node) else { return };
        switch.is_refused = false;
        let mut again = Vec::new();
        for member in &mut switch.drivers {
            let was_displaced = std::mem::take(&mut member.is_displaced);
            member.unconfirmed = member.unconfirmed.map(|ticks| ticks + 1);
            if was_displaced || member.unconfirmed.is_some() {
                again.push(member.driver)
            }
        }
        again.into_iter().for_each(|driver| switch.tell(driver, ctx))
    }

    #[rcv(sharded)]
    fn located(&mut self, msg: &Located) {
        let drivers = self.of_hive.at(msg.hive);
        if msg.is_connected {
            drivers.insert(msg.node, msg.driver);
        } else if drivers.get(&msg.node) == Some(&msg.driver) {
            drivers.remove(&msg.node);
        }
    }

    #[rcv(sharded)]
    fn hive_lost(&mut self, msg: &HiveLost, ctx: &mut Ctx) {
        for (node, driver) in self.of_hive.at(msg.hive).iter() {
            ctx.emit(DriverLost { node: *node, driver: *driver })
        }
    }

    /// Removes a driver of a switch. If it was the master, another one is appointed; if it was the last one, the switch has left.
    fn remove(&mut self, node: NodeId, driver: Address, ctx: &mut Ctx) {
        let Some(switch) = self.switches.get_mut(&node) else { return };
        let Some(at) = switch.drivers.iter().position(|member| member.driver == driver) else { return };
        switch.drivers.remove(at);
        if let Some(hive) = hive_of(driver) {
            ctx.emit(Located { hive, node, driver, is_connected: false })
        }
        match switch.drivers.first().map(|member| member.driver) {
            Some(next) if switch.master == driver => switch.appoint(node, next, 0, ctx),
            Some(_) => {}
            None => {
                if let Some(driver) = switch.joined {
                    ctx.emit(NodeLeft { node, driver })
                }
                self.switches.remove(&node);
                self.ports.at(node).clear()
            }
        }
    }
}

fn hive_of(driver: Address) -> Option<HiveId> {
    match driver {
        Address::Io(hive, _) => Some(hive),
        Address::App(_) | Address::Outside => None,
    }
}

impl Member {
    /// A driver that has not been told anything.
    fn new(driver: Address) -> Member {
        Member { driver, unconfirmed: Some(0), is_displaced: false }
    }
}

impl Switch {
    /// A switch with one driver, which is the master.
    fn new(master: Address, generation: u64) -> Switch {
        Switch { drivers: vec![Member::new(master)], master, generation, is_refused: false, joined: None }
    }

    /// Makes a driver the master. `newest` is a generation that one of the drivers knows.
    fn appoint(&mut self, node: NodeId, driver: Address, newest: u64, ctx: &mut Ctx) {
        self.master = driver;
        // also higher than those of a cluster that kept its state in memory, and has ended
        self.generation = self.generation.max(newest).wrapping_add(1).max(ctx.now().as_nanoseconds());
        tracing::info!(%node, ?driver, generation = self.generation, "another driver becomes the master");
        self.drivers.iter_mut().for_each(|member| member.unconfirmed = Some(0));
        self.drivers.iter().for_each(|member| self.tell(member.driver, ctx))
    }

    /// A driver has confirmed the latest decision.
    fn confirm(&mut self, driver: Address) {
        if let Some(member) = self.drivers.iter_mut().find(|member| member.driver == driver) {
            member.unconfirmed = None
        }
    }

    /// Tells a driver the latest decision.
    fn tell(&self, driver: Address, ctx: &mut Ctx) {
        let generation = self.generation;
        match driver == self.master {
            true => ctx.send(driver, BecomeMaster { generation }),
            false => ctx.send(driver, StandBy { master: self.master, generation }),
        }
    }
}
