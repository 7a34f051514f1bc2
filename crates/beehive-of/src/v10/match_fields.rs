//! The match of 1.0: a fixed structure with wildcard bits (5.2.3).

use core::net::Ipv4Addr;

use super::{port_to_wire, unsupported};
use crate::address::{MacAddress, Masked};
use crate::any::{self, VlanMatch};
use crate::encode::EncodeError;
use crate::field::{array, be8, be16, be32, getters, set_array, set8, set16, set32};
use crate::limits::{DSCP_MAX, VLAN_ID_MAX, VLAN_PRIORITY_MAX};
use crate::port_number::PortNo;

use crate::any::{ARP, ICMP, IPV4, TCP, UDP};

/// The length of a match, in bytes.
pub(super) const MATCH_LENGTH: usize = 40;

/// The value of `dl_vlan` for packets without a tag (`OFP_VLAN_NONE`).
const VLAN_NONE: u16 = 0xffff;

/// Wildcard bits (`ofp_flow_wildcards`).
mod wildcard {
    pub(super) const IN_PORT: u32 = 1;
    pub(super) const DL_VLAN: u32 = 1 << 1;
    pub(super) const DL_SRC: u32 = 1 << 2;
    pub(super) const DL_DST: u32 = 1 << 3;
    pub(super) const DL_TYPE: u32 = 1 << 4;
    pub(super) const NW_PROTO: u32 = 1 << 5;
    pub(super) const TP_SRC: u32 = 1 << 6;
    pub(super) const TP_DST: u32 = 1 << 7;
    pub(super) const NW_SRC_SHIFT: u32 = 8;
    pub(super) const NW_DST_SHIFT: u32 = 14;
    /// The six bits that count ignored address bits.
    pub(super) const NW_BITS: u32 = 0x3f;
    pub(super) const DL_VLAN_PCP: u32 = 1 << 20;
    pub(super) const NW_TOS: u32 = 1 << 21;
    /// Everything, with 32 ignored bits in both addresses.
    pub(super) const ALL: u32 = IN_PORT
        | DL_VLAN
        | DL_SRC
        | DL_DST
        | DL_TYPE
        | NW_PROTO
        | TP_SRC
        | TP_DST
        | 32 << NW_SRC_SHIFT
        | 32 << NW_DST_SHIFT
        | DL_VLAN_PCP
        | NW_TOS;
}

/// `ofp_match`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Match<'a> {
    fixed: &'a [u8; MATCH_LENGTH],
}

impl<'a> Match<'a> {
    #[inline]
    pub(crate) const fn new(fixed: &'a [u8; MATCH_LENGTH]) -> Self {
        Self { fixed }
    }

    getters! {
        /// The wildcard bits: those fields do not count.
        wildcards = be32 at 0 -> u32;
        /// The port that the packet came in on.
        in_port = be16 at 4 -> u16;
        /// The VLAN identifier, or 0xffff for no tag.
        dl_vlan = be16 at 18 -> u16;
        /// The VLAN priority.
        dl_vlan_pcp = be8 at 20 -> u8;
        /// The Ethernet type.
        dl_type = be16 at 22 -> u16;
        /// The IP type of service.
        nw_tos = be8 at 24 -> u8;
        /// The IP protocol, or the ARP operation.
        nw_proto = be8 at 25 -> u8;
        /// The IP source, or the ARP sender.
        nw_src = be32 at 28 -> u32;
        /// The IP destination, or the ARP target.
        nw_dst = be32 at 32 -> u32;
        /// The TCP or UDP source port, or the ICMP type.
        tp_src = be16 at 36 -> u16;
        /// The TCP or UDP destination port, or the ICMP code.
        tp_dst = be16 at 38 -> u16;
    }

    /// The Ethernet source.
    pub fn dl_src(&self) -> MacAddress {
        MacAddress(array::<6, 6, _>(self.fixed))
    }

    /// The Ethernet destination.
    pub fn dl_dst(&self) -> MacAddress {
        MacAddress(array::<12, 6, _>(self.fixed))
    }

    /// The match without its version. Fields that count only with a field that is absent (an address without the
    /// Ethernet type of IPv4, say) are in `other`.
    pub fn generalise(&self) -> any::Match {
        let wildcards = self.wildcards();
        let counts = |bit: u32| wildcards & bit == 0;
        let mut fields = any::Match::ANY;
        fields.in_port = counts(wildcard::IN_PORT).then(|| PortNo::from_v10(self.in_port()));
        fields.eth_src = counts(wildcard::DL_SRC).then(|| self.dl_src().into());
        fields.eth_dst = counts(wildcard::DL_DST).then(|| self.dl_dst().into());
        fields.eth_type = counts(wildcard::DL_TYPE).then(|| self.dl_type());
        fields.vlan = counts(wildcard::DL_VLAN).then(|| match self.dl_vlan() {
            VLAN_NONE => VlanMatch::Untagged,
            id => VlanMatch::Id(id & VLAN_ID_MAX),
        });
        // A packet without a tag has no priority; many controllers leave the bit clear all the same.
        fields.vlan_priority = (counts(wildcard::DL_VLAN_PCP) && fields.vlan != Some(VlanMatch::Untagged))
            .then(|| self.dl_vlan_pcp() & VLAN_PRIORITY_MAX);
        let source = network(self.nw_src(), wildcards >> wildcard::NW_SRC_SHIFT);
        let destination = network(self.nw_dst(), wildcards >> wildcard::NW_DST_SHIFT);
        let protocol = counts(wildcard::NW_PROTO).then(|| self.nw_proto());
        let dscp = counts(wildcard::NW_TOS).then(|| self.nw_tos() >> 2);
        let ports = (
            counts(wildcard::TP_SRC).then(|| self.tp_src()),
            counts(wildcard::TP_DST).then(|| self.tp_dst()),
        );
        match fields.eth_type {
            Some(IPV4) => {
                (fields.ipv4_src, fields.ipv4_dst) = (source, destination);
                (fields.ip_protocol, fields.ip_dscp) = (protocol, dscp);
            }
            Some(ARP) => {
                (fields.arp_sender, fields.arp_target) = (source, destination);
                fields.arp_operation = protocol.map(u16::from);
                fields.other += u16::from(dscp.is_some());
            }
            _ => {
                let present = [source.is_some(), destination.is_some(), protocol.is_some(), dscp.is_some()];
                fields.other += present.iter().map(|present| u16::from(*present)).sum::<u16>();
            }
        }
        match (fields.ip_protocol, ports) {
            (Some(TCP | UDP), _) => (fields.transport_src, fields.transport_dst) = ports,
            (Some(ICMP), (kind, code)) if kind.max(code) <= Some(0xff) => {
                // Both fit in a byte: the guard says so.
                (fields.icmp_type, fields.icmp_code) =
                    (kind.map(|kind| kind as u8), code.map(|code| code as u8));
            }
            (_, (source, destination)) => {
                fields.other += u16::from(source.is_some()) + u16::from(destination.is_some());
            }
        }
        fields
    }
}

/// An address of which the last `ignored` bits do not count; 32 and more ignore it.
fn network(address: u32, ignored: u32) -> Option<Masked<Ipv4Addr>> {
    let ignored = ignored & wildcard::NW_BITS;
    (ignored < 32).then(|| Masked::<Ipv4Addr>::network(Ipv4Addr::from_bits(address), 32 - ignored))
}

/// The 40 bytes of a match.
#[inline]
pub(crate) fn encode_match(fields: &any::Match) -> Result<[u8; MATCH_LENGTH], EncodeError> {
    let mut bytes = [0; MATCH_LENGTH];
    let mut wildcards = wildcard::ALL;
    if let Some(port) = fields.in_port {
        wildcards &= !wildcard::IN_PORT;
        set16::<4, _>(&mut bytes, port_to_wire(port, "in_port above 0xff00")?);
    }
    if let Some(address) = fields.eth_src {
        wildcards &= !wildcard::DL_SRC;
        set_array::<6, 6, _>(&mut bytes, unmasked(address, "a mask of eth_src")?);
    }
    if let Some(address) = fields.eth_dst {
        wildcards &= !wildcard::DL_DST;
        set_array::<12, 6, _>(&mut bytes, unmasked(address, "a mask of eth_dst")?);
    }
    if let Some(eth_type) = fields.eth_type {
        wildcards &= !wildcard::DL_TYPE;
        set16::<22, _>(&mut bytes, eth_type);
    }
    if let Some(vlan) = fields.vlan {
        wildcards &= !wildcard::DL_VLAN;
        let id = match vlan {
            VlanMatch::Untagged => VLAN_NONE,
            VlanMatch::Tagged => return Err(unsupported("a match on any VLAN tag")),
            VlanMatch::Id(id) if id <= VLAN_ID_MAX => id,
            VlanMatch::Id(_) => return Err(EncodeError::Value { field: "vlan" }),
        };
        set16::<18, _>(&mut bytes, id);
    }
    if let Some(priority) = fields.vlan_priority {
        if priority > VLAN_PRIORITY_MAX {
            return Err(EncodeError::Value { field: "vlan_priority" });
        }
        if fields.vlan == Some(VlanMatch::Untagged) {
            return Err(EncodeError::Prerequisite { field: "vlan_priority" });
        }
        wildcards &= !wildcard::DL_VLAN_PCP;
        set8::<20, _>(&mut bytes, priority);
    }
    if fields.needs_ethernet_type() {
        let (counting, ignored) = encode_upper(fields, &mut bytes)?;
        wildcards = wildcards & !counting | ignored;
    }
    set32::<0, _>(&mut bytes, wildcards);
    Ok(bytes)
}

fn unmasked(address: Masked<MacAddress>, field: &'static str) -> Result<[u8; 6], EncodeError> {
    if address.is_exact() { Ok(address.value.0) } else { Err(unsupported(field)) }
}

/// Writes the fields above Ethernet; returns the wildcard bits of those that count, and how many bits of the addresses
/// among them to ignore.
fn encode_upper(fields: &any::Match, bytes: &mut [u8; MATCH_LENGTH]) -> Result<(u32, u32), EncodeError> {
    let mut counting = 0;
    let prerequisite = |field| Err(EncodeError::Prerequisite { field });
    if fields.other != 0 {
        return Err(unsupported("match fields that were decoded without a name"));
    }
    if fields.ipv6_src.is_some() || fields.ipv6_dst.is_some() {
        return Err(unsupported("IPv6 addresses in a match"));
    }
    let ip = fields.eth_type == Some(IPV4);
    let arp = fields.eth_type == Some(ARP);
    if let Some(protocol) = fields.ip_protocol {
        match fields.eth_type {
            Some(IPV4) => {}
            Some(any::IPV6) => return Err(unsupported("ip_protocol of IPv6")),
            _ => return prerequisite("ip_protocol"),
        }
        counting |= wildcard::NW_PROTO;
        set8::<25, _>(bytes, protocol);
    }
    if let Some(dscp) = fields.ip_dscp {
        match fields.eth_type {
            Some(IPV4) => {}
            Some(any::IPV6) => return Err(unsupported("ip_dscp of IPv6")),
            _ => return prerequisite("ip_dscp"),
        }
        if dscp > DSCP_MAX {
            return Err(EncodeError::Value { field: "ip_dscp" });
        }
        counting |= wildcard::NW_TOS;
        set8::<24, _>(bytes, dscp << 2);
    }
    if let Some(operation) = fields.arp_operation {
        if !arp {
            return prerequisite("arp_operation");
        }
        let operation = u8::try_from(operation).map_err(|_| unsupported("arp_operation above 255"))?;
        counting |= wildcard::NW_PROTO;
        set8::<25, _>(bytes, operation);
    }
    for (address, present, field) in [
        (fields.ipv4_src, ip, "ipv4_src"),
        (fields.ipv4_dst, ip, "ipv4_dst"),
        (fields.arp_sender, arp, "arp_sender"),
        (fields.arp_target, arp, "arp_target"),
    ] {
        if address.is_some() && !present {
            return prerequisite(field);
        }
    }
    let mut ignored = 0;
    if let Some(address) = fields.ipv4_src.or(fields.arp_sender) {
        counting |= wildcard::NW_BITS << wildcard::NW_SRC_SHIFT;
        ignored |= ignored_bits(address)? << wildcard::NW_SRC_SHIFT;
        set32::<28, _>(bytes, address.value.to_bits());
    }
    if let Some(address) = fields.ipv4_dst.or(fields.arp_target) {
        counting |= wildcard::NW_BITS << wildcard::NW_DST_SHIFT;
        ignored |= ignored_bits(address)? << wildcard::NW_DST_SHIFT;
        set32::<32, _>(bytes, address.value.to_bits());
    }
    let transport = ip && matches!(fields.ip_protocol, Some(TCP | UDP));
    let icmp = ip && fields.ip_protocol == Some(ICMP);
    for (value, present, field) in [
        (fields.transport_src, transport, "transport_src"),
        (fields.transport_dst, transport, "transport_dst"),
        (fields.icmp_type.map(u16::from), icmp, "icmp_type"),
        (fields.icmp_code.map(u16::from), icmp, "icmp_code"),
    ] {
        if value.is_some() && !present {
            return prerequisite(field);
        }
    }
    if let Some(value) = fields.transport_src.or(fields.icmp_type.map(u16::from)) {
        counting |= wildcard::TP_SRC;
        set16::<36, _>(bytes, value);
    }
    if let Some(value) = fields.transport_dst.or(fields.icmp_code.map(u16::from)) {
        counting |= wildcard::TP_DST;
        set16::<38, _>(bytes, value);
    }
    Ok((counting, ignored))
}

/// How many trailing bits of a prefix do not count.
fn ignored_bits(address: Masked<Ipv4Addr>) -> Result<u32, EncodeError> {
    address.prefix().map(|prefix| 32 - prefix).ok_or_else(|| unsupported("an IPv4 mask that is no prefix"))
}
