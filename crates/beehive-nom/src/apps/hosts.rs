//! Hosts: tracks the location and the addresses of each host. It observes packets but never forwards them.
//!
//! A switch's cell sees every packet and reports news to the host's cell, which decides where the host is. If a host
//! appears at another port while its old port is up, the app first probes the old port. If the host answers there, its
//! location remains the old port, and the app reports the claim from the other port.

use crate::object::claim;
use crate::object::{
    FindAddress, FindHost, Host, HostContested, HostLost, HostMoved, HostSeen, LinkDown, LinkUp, ListHosts,
    NodeId, NodeLeft, PacketIn, PacketOut, PortDown, PortId, PortNo, SendPacket, Station,
};
use crate::parts::{AtPort, PortQuota, QuotaTable};
use beehive::{App, Config, Ctx, Dict, Key, Message, Table, Time, handlers};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;

/// Tracks hosts.
#[derive(App, Debug)]
#[app(name = "hosts", replication = 3)]
pub struct Hosts {
    /// Ports with a link to another switch. No host is *at* such a port.
    links: Table<NodeId, PortNo, ()>,
    /// The hosts recently seen at each port of a switch.
    recent: Table<NodeId, Station, Recent>,
    port_counts: Table<NodeId, PortNo, u32>,
    hosts: Dict<Station, Known>,
    addresses: Dict<HostAddress, Station>,
    config: Config<HostsSettings>,
}

/// The IP address of a host.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostAddress(pub IpAddr);

crate::settings! {
    /// Settings of the hosts app: the table `[apps.hosts]`.
    pub struct HostsSettings {
        /// Seconds without a packet to the controller after which a host is forgotten.
        pub age_s: u32 [60..=604_800] = 900,
        /// Maximum number of hosts behind one port. Further hosts are not tracked.
        pub hosts_per_port_max: u32 [1..=1_000_000] = 1_024,
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Recent {
    port: PortNo,
    /// Time from which the next packet of the host is reported.
    report_after: Time,
    address: Option<IpAddr>,
}

impl AtPort for Recent {
    fn port(&self) -> PortNo {
        self.port
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    host: Host,
    seen: Time,
    moved: Time,
    /// The other port at which packets with this address arrive, until the outcome of the probe is known.
    claimed: Option<PortId>,
}

/// Reports that a host sent a packet or has an address.
#[derive(Message, Clone, Copy, Debug)]
struct Sighting {
    station: Station,
    at: Option<PortId>,
    address: Option<IpAddr>,
}
#[derive(Message, Clone, Copy, Debug)]
struct HostGone(Station, PortId);
/// Makes a switch's cell report a host's packets from a given time on, even if one was reported recently.
#[derive(Message, Clone, Copy, Debug)]
struct ReportFrom(NodeId, Station, Time);
#[derive(Message, Clone, Copy, Debug)]
struct ProbeExpired(Station);
#[derive(Message, Clone, Copy, Debug)]
struct AddressChange {
    address: IpAddr,
    station: Station,
    assigned: bool,
}

/// Interval at which a host's packets are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);
/// Time within which a host must answer a probe at its old port.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
/// Minimum time between two moves of a host.
const MOVE_INTERVAL_MIN: Duration = Duration::from_secs(1);

#[handlers]
impl Hosts {
    #[rcv(sharded, observes)]
    fn packet_in(&mut self, msg: &PacketIn, ctx: &mut Ctx) {
        if !msg.is_learnable() {
            return;
        }
        if self.links.at(msg.node).contains(&msg.port) || msg.source().mac() == claim::PROBE_SOURCE {
            return;
        }

        let (station, now) = (msg.source(), ctx.now());
        let claim = claim::read(&msg.data);
        let address = claim.filter(|(who, _)| *who == station).map(|(_, address)| address);

        if let Some((who, address)) = claim.filter(|(who, _)| *who != station) {
            ctx.emit(Sighting { station: who, at: None, address: Some(address) }); // an address that DHCP has granted
        }

        let recent = self.recent.at(msg.node);
        let old = recent.get(&station).copied();
        if old.is_some_and(|old| {
            old.port == msg.port && now < old.report_after && (address.is_none() || address == old.address)
        }) {
            return;
        }

        let address = address.or(old.and_then(|old| old.address));
        let seen = Recent { port: msg.port, report_after: now + REPORT_INTERVAL, address };
        let quota = PortQuota { per_port_max: self.config.hosts_per_port_max, per_node_max: u32::MAX };

        if QuotaTable::new(recent, self.port_counts.at(msg.node)).put(station, seen, quota) {
            ctx.emit(Sighting { station, at: Some(PortId { node: msg.node, port: msg.port }), address });
        }
    }

    #[rcv(sharded)]
    fn sighting(&mut self, msg: &Sighting, ctx: &mut Ctx) {
        let (station, now) = (msg.station, ctx.now());
        let Some(known) = self.hosts.get_mut(&station) else {
            let Some(at) = msg.at else { return };
            let host = Host::new(at, msg.address);
            msg.address
                .into_iter()
                .for_each(|address| ctx.emit(AddressChange { address, station, assigned: true }));
            self.hosts.put(station, Known { host, seen: now, moved: Time::ZERO, claimed: None });
            return ctx.emit(HostSeen { station, at });
        };

        // the packet may be forged, so an address from another port does not displace addresses announced by the host
        // itself
        let own = msg.at == Some(known.host.at);
        if let Some(address) = msg.address.filter(|address| own || known.host.has_room_for(address)) {
            let (new, surplus) = known.host.add_address(address);
            if new {
                ctx.emit(AddressChange { address, station, assigned: true });
            }
            surplus
                .into_iter()
                .for_each(|address| ctx.emit(AddressChange { address, station, assigned: false }));
        }

        let Some(at) = msg.at else { return };

        if known.host.at == at {
            known.seen = now;
            if let Some(claimed) = known.claimed.take() {
                tracing::warn!(%station, %at, %claimed, "possible spoofing: packets with this host's address arrived at another port, but the host still answers at its own port");
                ctx.emit(HostContested { station, at, claimed });
                // the host may still move to that port later
                ctx.emit(ReportFrom(claimed.node, station, now + MOVE_INTERVAL_MIN));
            }
        } else if known.claimed.replace(at).is_none() {
            let PortId { node, port } = known.host.at;
            ctx.emit(ReportFrom(node, station, now));
            let addresses = known.host.addresses.iter();
            for question in addresses.filter_map(|address| claim::address_probe(station, *address)) {
                ctx.emit(SendPacket(PacketOut::new(node, port, question)));
            }
            ctx.after(
                PROBE_TIMEOUT.max(MOVE_INTERVAL_MIN.saturating_sub(now.since(known.moved))),
                ProbeExpired(station),
            );
        }
    }

    /// Moves the host, because it has not answered the probe at its old port.
    #[rcv(sharded)]
    fn probe_expired(&mut self, ProbeExpired(station): &ProbeExpired, ctx: &mut Ctx) {
        let Some(known) = self.hosts.get_mut(station) else { return };
        let Some(at) = known.claimed.take() else { return };
        let from = std::mem::replace(&mut known.host.at, at);
        (known.seen, known.moved) = (ctx.now(), ctx.now());
        tracing::info!(%station, %from, %at, "host moved");
        ctx.emit(HostMoved { station: *station, from, at });
    }

    #[rcv(sharded)]
    fn report_from(&mut self, ReportFrom(node, station, from): &ReportFrom) {
        if let Some(recent) = self.recent.at(*node).get_mut(station) {
            recent.report_after = *from;
        }
    }

    #[rcv(sharded)]
    fn address_change(&mut self, msg: &AddressChange) {
        let old = self.addresses.get(&HostAddress(msg.address)).copied();
        if msg.assigned {
            self.addresses.put(HostAddress(msg.address), msg.station);
        } else if old == Some(msg.station) {
            self.addresses.remove(&HostAddress(msg.address));
        }
    }

    #[rcv(sharded)]
    fn link_up(&mut self, LinkUp(link): &LinkUp, ctx: &mut Ctx) {
        self.links.at(link.to.node).insert(link.to.port, ());
        self.clear(link.to.node, Some(link.to.port), ctx);
    }

    #[rcv(sharded)]
    fn link_down(&mut self, LinkDown(link): &LinkDown) {
        self.links.at(link.to.node).remove(&link.to.port);
    }

    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown, ctx: &mut Ctx) {
        self.clear(msg.node, Some(msg.port), ctx);
    }

    #[rcv(sharded)]
    fn node_left(&mut self, msg: &NodeLeft, ctx: &mut Ctx) {
        self.clear(msg.node, None, ctx);
    }

    /// Forgets the hosts at a port, or at all ports of a switch.
    fn clear(&mut self, node: NodeId, port: Option<PortNo>, ctx: &mut Ctx) {
        let mut table = QuotaTable::new(self.recent.at(node), self.port_counts.at(node));
        for (station, Recent { port, .. }) in table.take_if(|_, r| port.is_none_or(|port| port == r.port)) {
            ctx.emit(HostGone(station, PortId { node, port }));
        }
    }

    #[rcv(sharded)]
    fn host_gone(&mut self, HostGone(station, at): &HostGone, ctx: &mut Ctx) {
        if self.hosts.get(station).is_none_or(|known| known.host.at != *at) {
            return;
        }
        let Some(Known { host, claimed, .. }) = self.hosts.remove(station) else { return };

        ctx.emit(HostLost { station: *station, at: *at });
        for address in host.addresses {
            ctx.emit(AddressChange { address, station: *station, assigned: false });
        }

        if claimed.is_some() {
            ctx.emit(Sighting { station: *station, at: claimed, address: None });
        }
    }

    #[every("30s", each = recent)]
    fn forget(&mut self, node: &NodeId, ctx: &mut Ctx) {
        let (now, age) = (ctx.now(), Duration::from_secs(self.config.age_s.into()));
        let mut table = QuotaTable::new(self.recent.at(*node), self.port_counts.at(*node));
        for (station, Recent { port, .. }) in table.take_if(|_, recent| now.since(recent.report_after) >= age)
        {
            ctx.emit(HostGone(station, PortId { node: *node, port }));
        }
    }

    #[rcv(sharded)]
    fn list(&mut self, ListHosts(node): &ListHosts) -> Vec<(Station, PortNo)> {
        self.recent.at(*node).iter().map(|(station, recent)| (*station, recent.port)).collect()
    }

    #[rcv(sharded)]
    fn find(&mut self, FindHost(station): &FindHost) -> Option<Host> {
        self.hosts.get(station).map(|known| known.host.clone())
    }

    #[rcv(sharded)]
    fn find_address(&mut self, FindAddress(address): &FindAddress) -> Option<Station> {
        self.addresses.get(&HostAddress(*address)).copied()
    }
}
