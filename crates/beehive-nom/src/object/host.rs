//! Defines the messages about hosts, their locations and their addresses.

use crate::object::{NodeId, PortId, PortNo, Station};
use beehive::Message;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The location and the addresses of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Host {
    /// The port at which the host is.
    pub at: PortId,
    /// The IP addresses announced by the host, most recent last.
    pub addresses: Vec<IpAddr>,
}

impl Host {
    /// Maximum number of addresses kept per host.
    pub const ADDRESSES_MAX: usize = 8;

    /// Creates a host at `at`, with its announced address, if any.
    pub fn new(at: PortId, address: Option<IpAddr>) -> Host {
        Host { at, addresses: address.into_iter().collect() }
    }

    /// Returns whether `address` is new and there is room for it.
    pub fn has_room_for(&self, address: &IpAddr) -> bool {
        self.addresses.len() < Self::ADDRESSES_MAX && !self.addresses.contains(address)
    }

    /// Makes `address` the most recent address. Returns whether it is new, and the addresses removed to make room for
    /// it.
    pub fn add_address(&mut self, address: IpAddr) -> (bool, Vec<IpAddr>) {
        let place = self.addresses.iter().position(|other| *other == address);
        if let Some(place) = place {
            self.addresses.remove(place);
        }
        self.addresses.push(address);
        let surplus = self.addresses.len().saturating_sub(Self::ADDRESSES_MAX);
        (place.is_none(), self.addresses.drain(..surplus).collect())
    }
}

/// A new host was seen.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostSeen {
    /// The host.
    pub station: Station,
    /// The port at which the host is.
    pub at: PortId,
}

/// A host has moved to another port.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMoved {
    /// The host.
    pub station: Station,
    /// The host's previous port.
    pub from: PortId,
    /// The host's new port.
    pub at: PortId,
}

/// A host is gone: its port is down, or it has been silent for too long.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostLost {
    /// The host.
    pub station: Station,
    /// The host's last port.
    pub at: PortId,
}

/// Packets with a host's address are arriving at another port, while the host still answers at its own port.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostContested {
    /// The host.
    pub station: Station,
    /// The port at which the host answers.
    pub at: PortId,
    /// The port at which the other packets arrived.
    pub claimed: PortId,
}

/// Requests the location and the addresses of a host. There is no reply if the host is unknown.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Host)]
pub struct FindHost(pub Station);

/// Requests the hosts recently seen at a switch, with their ports. Some hosts may have moved since then; [`FindHost`]
/// returns the current location.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Vec<(Station, PortNo)>)]
pub struct ListHosts(pub NodeId);

/// Requests the host that has most recently announced an address. There is no reply if no host has announced it.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Station)]
pub struct FindAddress(pub IpAddr);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::PortNo;

    #[test]
    fn the_latest_addresses_are_kept() {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let mut host = Host::new(PortId { node: NodeId(1), port: PortNo(1) }, Some(address(1)));
        for last in 2..=8 {
            assert_eq!(host.add_address(address(last)), (true, vec![]));
        }

        assert_eq!(host.add_address(address(1)), (false, vec![]));
        assert_eq!(host.add_address(address(9)), (true, vec![address(2)]));
        assert_eq!(host.addresses.len(), Host::ADDRESSES_MAX);
        assert_eq!(host.addresses.last(), Some(&address(9)));
    }
}
