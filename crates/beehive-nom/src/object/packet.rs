//! Defines the messages that carry packets from a switch to the apps and back.

use crate::object::{Action, Actions, Ethernet, NodeId, PortNo, Station, Traffic, Vlan};
use beehive::Message;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The id of a packet buffered by the switch. The id can be used once, on the connection that reported it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BufferId(pub u32);

/// The reason why a switch sent a packet to the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PacketInReason {
    /// No flow matched.
    Miss,
    /// The packet was sent by a flow's action.
    Action,
    /// Another reason.
    Other,
}

/// A packet that a switch sent to the controller. The first app
/// that answers decides what the switch does with the packet.
#[derive(Message, Clone, PartialEq, Eq, Debug)]
#[message(reply = PacketOut)]
pub struct PacketIn {
    /// The switch.
    pub node: NodeId,
    /// The port at which the packet arrived.
    pub port: PortNo,
    /// The reason why the switch sent the packet to the controller.
    pub reason: PacketInReason,
    /// Length of the packet in bytes. `data` may contain only the start of the packet.
    pub length: u16,
    /// The id under which the switch buffers the packet, or `None` if it does not buffer it.
    pub buffer: Option<BufferId>,
    /// The packet, beginning with its Ethernet header, or only the start of the packet.
    pub data: Bytes,
}

impl PacketIn {
    /// Returns the Ethernet header, or `None` if the packet is too short.
    #[inline]
    pub fn ethernet(&self) -> Option<Ethernet> {
        Ethernet::read(&self.data)
    }

    /// Classifies the packet's content; for example, returns the addresses, the protocol and the ports of its
    /// conversation.
    #[inline]
    pub fn traffic(&self) -> Traffic {
        Traffic::read(&self.data)
    }

    /// Returns whether a bridge may learn from the packet and forward it. This is not so if the packet is too short,
    /// has a multicast source, is LLDP or addressed to a reserved group, or has no valid input port.
    #[inline]
    pub fn is_learnable(&self) -> bool {
        self.port.is_single() && self.ethernet().is_some_and(|header| header.is_bridged())
    }

    /// Returns the source and the destination of the packet, or `None` if [`PacketIn::is_learnable`] is false.
    #[inline]
    pub fn stations(&self) -> Option<(Station, Station)> {
        let header = self.ethernet().filter(|header| self.port.is_single() && header.is_bridged())?;
        let vlan = header.tag.vlan();
        Some((Station::new(vlan, header.source), Station::new(vlan, header.destination)))
    }

    /// Returns the source of the packet. Returns the zero station if the packet is too short, in which case
    /// [`PacketIn::is_learnable`] is false.
    #[inline]
    pub fn source(&self) -> Station {
        self.ethernet().map_or(Station::new(Vlan::NONE, crate::object::Mac::ZERO), |h| {
            Station::new(h.tag.vlan(), h.source)
        })
    }

    /// Returns the destination of the packet. Short packets are treated as in [`PacketIn::source`].
    #[inline]
    pub fn destination(&self) -> Station {
        self.ethernet().map_or(Station::new(Vlan::NONE, crate::object::Mac::ZERO), |h| {
            Station::new(h.tag.vlan(), h.destination)
        })
    }

    /// Returns whether the packet can be forwarded, because `data` contains all of it or the switch buffers it.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.buffer.is_some() || self.data.len() >= usize::from(self.length)
    }

    /// Returns the answer that floods the packet.
    #[inline]
    pub fn flood(&self) -> PacketOut {
        self.forward(PortNo::FLOOD)
    }

    /// Returns the answer that sends the packet out of `port`.
    #[inline]
    pub fn forward(&self, port: PortNo) -> PacketOut {
        self.answer(Actions::One(Action::Output(port)))
    }

    /// Returns the answer that drops the packet and frees its buffer in the switch.
    #[inline]
    pub fn discard(&self) -> PacketOut {
        self.answer(Actions::None)
    }

    /// Returns the answer that applies `actions` to the packet.
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

/// The content of a packet-out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Payload {
    /// The packet buffered by the switch under this id.
    Buffered(BufferId),
    /// This packet, beginning with its Ethernet header.
    Whole(Bytes),
    /// A packet that the switch truncated and did not buffer. It cannot be forwarded, so no packet-out is sent.
    CutOff,
}

/// A packet for a switch to send.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PacketOut {
    /// The switch.
    pub node: NodeId,
    /// The input port assumed by the switch: [`PortNo::CONTROLLER`] for a packet created by the controller.
    pub port: PortNo,
    /// The packet.
    pub payload: Payload,
    /// The actions to apply to the packet. [`Actions::None`] drops it.
    pub actions: Actions,
}

impl PacketOut {
    /// Creates a packet-out that sends a packet created by the controller out of `port`.
    pub fn new(node: NodeId, port: PortNo, data: Bytes) -> PacketOut {
        let actions = Actions::One(Action::Output(port));
        PacketOut { node, port: PortNo::CONTROLLER, payload: Payload::Whole(data), actions }
    }
}

/// Sends a packet through the driver of the switch. An app sends
/// this message to the node app, which passes it on to the driver.
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
