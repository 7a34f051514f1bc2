//! Which packets a flow is for.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::address::{MacAddress, Masked};
use crate::port_number::PortNo;

/// The fields that a packet must have; what is `None` may be anything.
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
    /// The port that the packet came in on.
    pub in_port: Option<PortNo>,
    /// The Ethernet source; masks from 1.1 on.
    pub eth_src: Option<Masked<MacAddress>>,
    /// The Ethernet destination; masks from 1.1 on.
    pub eth_dst: Option<Masked<MacAddress>>,
    /// The Ethernet type after VLAN tags.
    pub eth_type: Option<u16>,
    /// The outermost VLAN tag.
    pub vlan: Option<VlanMatch>,
    /// The priority in that tag (3 bits); needs a tag.
    pub vlan_priority: Option<u8>,
    /// The protocol of an IPv4 or IPv6 packet; 1.0 and 1.1 know IPv4's only.
    pub ip_protocol: Option<u8>,
    /// The differentiated services code point (6 bits) of an IP packet.
    pub ip_dscp: Option<u8>,
    /// The IPv4 source; any mask from 1.1 on, prefixes in 1.0.
    pub ipv4_src: Option<Masked<Ipv4Addr>>,
    /// The IPv4 destination; any mask from 1.1 on, prefixes in 1.0.
    pub ipv4_dst: Option<Masked<Ipv4Addr>>,
    /// The IPv6 source. 1.2 on.
    pub ipv6_src: Option<Masked<Ipv6Addr>>,
    /// The IPv6 destination. 1.2 on.
    pub ipv6_dst: Option<Masked<Ipv6Addr>>,
    /// The operation of an ARP packet (1.0 and 1.1: at most 255).
    pub arp_operation: Option<u16>,
    /// The sender's IPv4 address in an ARP packet.
    pub arp_sender: Option<Masked<Ipv4Addr>>,
    /// The target's IPv4 address in an ARP packet.
    pub arp_target: Option<Masked<Ipv4Addr>>,
    /// The source port of TCP, UDP or (1.1 on) SCTP.
    pub transport_src: Option<u16>,
    /// The destination port of TCP, UDP or (1.1 on) SCTP.
    pub transport_dst: Option<u16>,
    /// The type of an ICMP packet; ICMPv6's from 1.2 on.
    pub icmp_type: Option<u8>,
    /// The code of an ICMP packet; ICMPv6's from 1.2 on.
    pub icmp_code: Option<u8>,
    /// Fields of a decoded message that have no name here; not encoded.
    pub other: u16,
}

/// Which VLAN tag a packet must have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum VlanMatch {
    /// None.
    Untagged,
    /// Any. Not in 1.0.
    Tagged,
    /// One with this identifier (12 bits).
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
    /// With the tag that a priority alone asks for: 1.0 and 1.1 have no way to say so, lists have no way not to.
    #[cfg(feature = "text")]
    pub(crate) fn with_tag(self) -> Self {
        match (self.vlan, self.vlan_priority) {
            (None, Some(_)) => Self { vlan: Some(VlanMatch::Tagged), ..self },
            _ => self,
        }
    }

    /// Every packet.
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

    /// Whether a field above Ethernet counts: one that needs an Ethernet type, or one without a name here.
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
