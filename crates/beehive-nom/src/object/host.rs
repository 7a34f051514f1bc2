//! Hosts: where they are, and which addresses are theirs.

use crate::object::{NodeId, PortId, PortNo, Station};
use beehive::Message;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What is known of a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Host {
    /// Where it is.
    pub at: PortId,
    /// Its addresses, as it says; the latest is the last.
    pub addresses: Vec<IpAddr>,
}

impl Host {
    /// Addresses that are kept of one host.
    pub const ADDRESSES_MAX: usize = 8;

    /// A host at `at`, which may have said one address.
    pub fn new(at: PortId, address: Option<IpAddr>) -> Host {
        Host { at, addresses: address.into_iter().collect() }
    }

    /// Whether `address` is not one of its addresses, and there is room for it.
    pub fn has_room_for(&self, address: &IpAddr) -> bool {
        self.addresses.len() < Self::ADDRESSES_MAX && !self.addresses.contains(address)
    }

    /// Makes `address` its latest. Returns whether it is new, and those that are too many now.
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

/// A host that was not known is there.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostSeen {
    /// The host.
    pub station: Station,
    /// Where it is.
    pub at: PortId,
}

/// A host is in another place than before.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostMoved {
    /// The host.
    pub station: Station,
    /// Where it was.
    pub from: PortId,
    /// Where it is.
    pub at: PortId,
}

/// A host is gone, or has been silent for long.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostLost {
    /// The host.
    pub station: Station,
    /// Where it was.
    pub at: PortId,
}

/// Somebody says to be a host that is elsewhere, and answers there.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostContested {
    /// The host.
    pub station: Station,
    /// Where it is, and answers.
    pub at: PortId,
    /// Where somebody else says to be it.
    pub claimed: PortId,
}

/// Asks what is known of a host; nobody answers if it is not known.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Host)]
pub struct FindHost(pub Station);

/// Asks who was heard at a switch lately, and at which port. Some may be elsewhere by now: [`FindHost`] knows.
#[derive(Message, Clone, Copy, PartialEq, Eq, Debug)]
#[message(reply = Vec<(Station, PortNo)>)]
pub struct ListHosts(pub NodeId);

/// Asks which host has an address, as was said last; nobody answers if none has.
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
