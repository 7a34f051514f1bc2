//! Packets on their way from a switch to the apps and back.

use crate::object::{Action, Actions, Ethernet, NodeId, PortNo, Station, Vlan};
use beehive::Message;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A packet that the switch keeps until told what to do with it. Good for one use, on the connection that named it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BufferId(pub u32);

/// Why a packet came up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PacketInReason {
    /// No flow matched.
    Miss,
    /// A flow sent it.
    Action,
    /// Another reason.
    Other,
}

/// A packet that a switch does not know what to do with. The first app that answers decides.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
#[message(reply = PacketOut)]
pub struct PacketIn {
    /// The switch.
    pub node: NodeId,
    /// The port that it came in on.
    pub port: PortNo,
    /// Why it came up.
    pub reason: PacketInReason,
    /// Length of the packet in bytes; `data` may be only its start.
    pub length: u16,
    /// Where the switch keeps it, if it does.
    pub buffer: Option<BufferId>,
    /// The packet from its Ethernet header on, or its start.
    pub data: Bytes,
}

impl PacketIn {
    /// The Ethernet header, unless the packet is too short for one.
    #[inline]
    pub fn ethernet(&self) -> Option<Ethernet> {
        Ethernet::read(&self.data)
    }

    /// Whether a bridge may learn from it and forward it. Not so: what is too short, multicast sources, LLDP and the
    /// reserved groups, and what no single port brought in.
    #[inline]
    pub fn is_learnable(&self) -> bool {
        self.port.is_single() && self.ethernet().is_some_and(|header| header.is_bridged())
    }

    /// Who says to have sent it, and who it is for; none if a bridge may not learn from it and forward it, as
    /// [`PacketIn::is_learnable`] tells.
    #[inline]
    pub fn stations(&self) -> Option<(Station, Station)> {
        let header = self.ethernet().filter(|header| self.port.is_single() && header.is_bridged())?;
        let vlan = header.tag.vlan();
        Some((Station::new(vlan, header.source), Station::new(vlan, header.destination)))
    }

    /// Who says to have sent it. The zero station if the packet is too short, which [`PacketIn::is_learnable`] tells.
    #[inline]
    pub fn source(&self) -> Station {
        self.ethernet().map_or(Station::new(Vlan::NONE, crate::object::Mac::ZERO), |h| {
            Station::new(h.tag.vlan(), h.source)
        })
    }

    /// Who it is for, as [`PacketIn::source`].
    #[inline]
    pub fn destination(&self) -> Station {
        self.ethernet().map_or(Station::new(Vlan::NONE, crate::object::Mac::ZERO), |h| {
            Station::new(h.tag.vlan(), h.destination)
        })
    }

    /// Whether all of the packet is here or at the switch, so that it can be sent on.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.buffer.is_some() || self.data.len() >= usize::from(self.length)
    }

    /// The answer that sends it out of all other ports.
    #[inline]
    pub fn flood(&self) -> PacketOut {
        self.forward(PortNo::FLOOD)
    }

    /// The answer that sends it out of `port`.
    #[inline]
    pub fn forward(&self, port: PortNo) -> PacketOut {
        self.answer(Actions::One(Action::Output(port)))
    }

    /// The answer that ends it here, and frees its place in the switch.
    #[inline]
    pub fn discard(&self) -> PacketOut {
        self.answer(Actions::None)
    }

    /// The answer that does `actions` to it.
    #[inline]
    pub fn answer(&self, actions: Actions) -> PacketOut {
        let payload = match self.buffer {
            Some(buffer) => Payload::Buffered(buffer),
            None if self.is_whole() => Payload::Whole(self.data.clone()),
            None => Payload::CutOff,
        };
        PacketOut { node: self.node, port: self.port, payload, actions }
    }
}

/// What is sent out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Payload {
    /// The packet that the switch keeps.
    Buffered(BufferId),
    /// This packet, from its Ethernet header on.
    Whole(Bytes),
    /// A packet of which only the start came up and nothing was kept: it cannot be sent on, and is not.
    CutOff,
}

/// A packet for a switch to send.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PacketOut {
    /// The switch.
    pub node: NodeId,
    /// The port that it came in on, or is held to; [`PortNo::CONTROLLER`] for one made here.
    pub port: PortNo,
    /// The packet.
    pub payload: Payload,
    /// What to do with it; nothing drops it.
    pub actions: Actions,
}

impl PacketOut {
    /// A packet made here, out of `port`.
    pub fn new(node: NodeId, port: PortNo, data: Bytes) -> PacketOut {
        let actions = Actions::One(Action::Output(port));
        PacketOut { node, port: PortNo::CONTROLLER, payload: Payload::Whole(data), actions }
    }
}

/// Sends a packet by way of the switch's driver: to the node app from anywhere, and from it to the driver.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
pub struct SendPacket(pub PacketOut);

#[cfg(test)]
mod tests {
    use super::*;

    fn packet_in(length: u16, buffer: Option<BufferId>) -> PacketIn {
        let data = Bytes::from_static(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 1, 2, 3, 4]);
        PacketIn { node: NodeId(1), port: PortNo(1), reason: PacketInReason::Miss, length, buffer, data }
    }

    #[test]
    fn a_cut_off_packet_is_never_sent_on_as_if_it_were_whole() {
        assert!(matches!(packet_in(18, None).flood().payload, Payload::Whole(_)));
        assert_eq!(packet_in(19, None).flood().payload, Payload::CutOff);
        assert_eq!(packet_in(19, Some(BufferId(7))).flood().payload, Payload::Buffered(BufferId(7)));
    }

    #[test]
    fn what_is_too_short_is_not_learnable() {
        let mut short = packet_in(18, None);
        assert!(short.is_learnable());
        assert_eq!(short.stations(), Some((short.source(), short.destination())));
        short.data.truncate(13);
        assert!(!short.is_learnable());
        let mut nowhere = packet_in(18, None);
        nowhere.port = PortNo::CONTROLLER;
        assert!(!nowhere.is_learnable() && nowhere.stations().is_none());
    }
}
