//! What a switch does with a packet.

use core::net::Ipv4Addr;

use bytes::BytesMut;

use super::list::{Element, List};
use crate::address::MacAddress;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::port_number::PortNo;
use crate::version::Version;
use crate::{v10, v13};

/// An action of either version. A packet without actions is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Action {
    /// Sends the packet out of a port; [`Action::output`] makes the usual one.
    Output {
        /// Where to.
        port: PortNo,
        /// How many bytes to send to the controller, when the port is that; 0xffff is all of it, unbuffered.
        max_len: u16,
    },
    /// Sets the VLAN identifier (12 bits). 1.0 adds a tag where there is none; 1.3 wants one there (`PushVlan`).
    SetVlanId(u16),
    /// Sets the VLAN priority (3 bits).
    SetVlanPriority(u8),
    /// Removes the outermost VLAN tag.
    PopVlan,
    /// Adds a VLAN tag with this Ethernet type (0x8100 or 0x88a8). 1.3 only.
    PushVlan(u16),
    /// Sets the Ethernet source.
    SetEthSrc(MacAddress),
    /// Sets the Ethernet destination.
    SetEthDst(MacAddress),
    /// Sets the IPv4 source.
    SetIpv4Src(Ipv4Addr),
    /// Sets the IPv4 destination.
    SetIpv4Dst(Ipv4Addr),
    /// Sets the differentiated services code point (6 bits) of an IP packet.
    SetIpDscp(u8),
    /// Processes the packet by a group. 1.3 only.
    Group(u32),
    /// An action of this type, which has no name here: only decoded, never encoded in another version.
    Other(u16),
}

/// The actions of a message.
pub type Actions<'a> = List<'a, Action>;

impl Action {
    /// All of the packet, out of `port`.
    #[inline]
    pub const fn output(port: PortNo) -> Self {
        Self::Output { port, max_len: 0xffff }
    }
}

impl<'a> Element<'a> for Action {
    #[inline]
    fn read(version: Version, bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        match version {
            Version::V1_0 => {
                let (action, length) = v10::Action::read(bytes, offset)?;
                Ok((action.generalise(), length))
            }
            Version::V1_3 => {
                let (action, length) = v13::Action::read(bytes, offset)?;
                Ok((action.generalise()?, length))
            }
        }
    }

    #[inline]
    fn write(&self, version: Version, out: &mut BytesMut) -> Result<(), EncodeError> {
        match version {
            Version::V1_0 => v10::write_action(self, out),
            Version::V1_3 => v13::write_action(self, out),
        }
    }
}
