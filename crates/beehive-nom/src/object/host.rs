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
