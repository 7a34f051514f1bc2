//! The version-independent match of a flow.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::address::{MacAddress, Masked};
use crate::port_number::PortNo;

/// The header fields that a packet must have to match; a field that is `None` matches any value.
///
/// ```
/// use beehive_of::any::Match;
/// use beehive_of::{MacAddress, PortNo};
///
/// let from_a_host = Match {
///     in_port: Some(PortNo(3)),
///     eth_src: Some(MacAddress([2, 0, 0, 0, 0, 1]).into()),
///     ..Match::ANY
/// };
/// assert_ne!(from_a_host, Match::ANY);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Match {
    /// The port that received the packet.
    pub in_port: Option<PortNo>,
    /// The Ethernet source. 1.0 does not support a mask.
    pub eth_src: Option<Masked<MacAddress>>,
    /// The Ethernet destination. 1.0 does not support a mask.
    pub eth_dst: Option<Masked<MacAddress>>,
    /// The Ethernet type after any VLAN tags.
    pub eth_type: Option<u16>,
    /// The outermost VLAN tag, or its absence.
    pub vlan: Option<VlanMatch>,
    /// The priority in the outermost VLAN tag (3 bits). Except in 1.0, [`vlan`](Self::vlan) must require a
    /// tag.
    pub vlan_priority: Option<u8>,
    /// The protocol of an IPv4 packet or, from 1.2 on, also of an IPv6 packet.
    pub ip_protocol: Option<u8>,
    /// The differentiated services code point (6 bits) of an IP packet.
    pub ip_dscp: Option<u8>,
    /// The IPv4 source; in 1.0 its mask must be a prefix.
    pub ipv4_src: Option<Masked<Ipv4Addr>>,
    /// The IPv4 destination; in 1.0 its mask must be a prefix.
    pub ipv4_dst: Option<Masked<Ipv4Addr>>,
    /// The IPv6 source. Since 1.2.
    pub ipv6_src: Option<Masked<Ipv6Addr>>,
    /// The IPv6 destination. Since 1.2.
    pub ipv6_dst: Option<Masked<Ipv6Addr>>,
    /// The operation of an ARP packet (1.0 and 1.1: at most 255).
    pub arp_operation: Option<u16>,
    /// The sender's IPv4 address in an ARP packet.
    pub arp_sender: Option<Masked<Ipv4Addr>>,
    /// The target's IPv4 address in an ARP packet.
    pub arp_target: Option<Masked<Ipv4Addr>>,
    /// The source port of TCP, UDP or (since 1.1) SCTP.
    pub transport_src: Option<u16>,
    /// The destination port of TCP, UDP or (since 1.1) SCTP.
    pub transport_dst: Option<u16>,
    /// The type of an ICMP packet or, from 1.2 on, also of an ICMPv6 packet.
    pub icmp_type: Option<u8>,
    /// The code of an ICMP packet or, from 1.2 on, also of an ICMPv6 packet.
    pub icmp_code: Option<u8>,
    /// Number of fields in a decoded message that this structure does not model. Encoding fails unless it is
    /// 0.
    pub other: u16,
}

/// The VLAN tag that a packet must have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VlanMatch {
    /// No tag.
    Untagged,
    /// Any tag. Not in 1.0.
    Tagged,
    /// A tag with this identifier (12 bits).
    Id(u16),
}

/// The Ethernet type of IPv4.
pub(crate) const IPV4: u16 = 0x0800;
/// The Ethernet type of ARP.
pub(crate) const ARP: u16 = 0x0806;
/// The Ethernet type of IPv6.
pub(crate) const IPV6: u16 = 0x86dd;
/// IP protocol numbers.
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const SCTP: u8 = 132;

impl Match {
    /// Adds "any VLAN tag" to a match that specifies a VLAN priority but no tag. In 1.0 and 1.1, the tag is
    /// implicit; from 1.2 on, the match must state it.
    #[cfg(feature = "text")]
    pub(crate) fn with_tag(self) -> Self {
        match (self.vlan, self.vlan_priority) {
            (None, Some(_)) => Self { vlan: Some(VlanMatch::Tagged), ..self },
            _ => self,
        }
    }

    /// The match that every packet satisfies.
    pub const ANY: Self = Self {
        in_port: None,
        eth_src: None,
        eth_dst: None,
        eth_type: None,
        vlan: None,
        vlan_priority: None,
        ip_protocol: None,
        ip_dscp: None,
        ipv4_src: None,
        ipv4_dst: None,
        ipv6_src: None,
        ipv6_dst: None,
        arp_operation: None,
        arp_sender: None,
        arp_target: None,
        transport_src: None,
        transport_dst: None,
        icmp_type: None,
        icmp_code: None,
        other: 0,
    };

    /// Returns whether the match has a field that requires an Ethernet type, or a field that this structure
    /// does not model.
    #[inline]
    pub(crate) const fn needs_ethernet_type(&self) -> bool {
        self.ip_protocol.is_some()
            || self.ip_dscp.is_some()
            || self.ipv4_src.is_some()
            || self.ipv4_dst.is_some()
            || self.ipv6_src.is_some()
            || self.ipv6_dst.is_some()
            || self.arp_operation.is_some()
            || self.arp_sender.is_some()
            || self.arp_target.is_some()
            || self.transport_src.is_some()
            || self.transport_dst.is_some()
            || self.icmp_type.is_some()
            || self.icmp_code.is_some()
            || self.other != 0
    }
}
