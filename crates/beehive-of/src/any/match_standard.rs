//! Converts between [`Match`] and the fixed-size matches of 1.0 (5.2.3) and 1.1 (A.2.3).

use core::net::Ipv4Addr;

use super::match_fields::{ARP, ICMP, IPV4, IPV6, Match, SCTP, TCP, UDP, VlanMatch};
use super::match_list_encode::write_fields;
use crate::address::{MacAddress, Masked};
use crate::encode::EncodeError;
use crate::limits::{DSCP_MAX, VLAN_ID_MAX, VLAN_PRIORITY_MAX};
use crate::message::{StandardMatch10, StandardMatch11, wildcard};
use crate::port_number::PortNo;
use crate::schema::{Value, Writer};
use crate::version::Version;

/// The value of `dl_vlan` for packets without a tag (`OFP_VLAN_NONE`, `OFPVID_NONE`).
const VLAN_NONE: u16 = 0xffff;
/// The value of 1.1's `dl_vlan` for packets with any tag (`OFPVID_ANY`).
const VLAN_ANY: u16 = 0xfffe;

/// Appends a match in the format of the writer's version.
#[inline]
pub(crate) fn write_match(fields: &Match, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    match writer.version() {
        Version::V1_0 => encode_10(fields)?.write(writer),
        Version::V1_1 => encode_11(fields)?.write(writer),
        version => write_fields(version, fields, writer.buffer()),
    }
}

/// The fields above Ethernet that are not wildcarded. Their meaning depends on the Ethernet type and the IP
/// protocol.
#[derive(Default)]
struct Upper {
    nw_src: Option<Masked<Ipv4Addr>>,
    nw_dst: Option<Masked<Ipv4Addr>>,
    nw_proto: Option<u8>,
    dscp: Option<u8>,
    tp_src: Option<u16>,
    tp_dst: Option<u16>,
}

impl Upper {
    /// Assigns the fields to the corresponding fields of `to`, which depend on the Ethernet type of `to`.
    /// Fields whose prerequisite is absent (an address without the Ethernet type of IPv4, for example) are
    /// counted in `other`.
    fn generalize(self, sctp: bool, to: &mut Match) {
        match to.eth_type {
            Some(IPV4) => {
                (to.ipv4_src, to.ipv4_dst) = (self.nw_src, self.nw_dst);
                (to.ip_protocol, to.ip_dscp) = (self.nw_proto, self.dscp);
            }
            Some(ARP) => {
                (to.arp_sender, to.arp_target) = (self.nw_src, self.nw_dst);
                to.arp_operation = self.nw_proto.map(u16::from);
                to.other += u16::from(self.dscp.is_some());
            }
            _ => {
                let present = [
                    self.nw_src.is_some(),
                    self.nw_dst.is_some(),
                    self.nw_proto.is_some(),
                    self.dscp.is_some(),
                ];
                to.other += present.iter().map(|present| u16::from(*present)).sum::<u16>();
            }
        }
        match (to.ip_protocol, self.tp_src, self.tp_dst) {
            (Some(TCP | UDP), source, destination) => {
                (to.transport_src, to.transport_dst) = (source, destination);
            }
            (Some(SCTP), source, destination) if sctp => {
                (to.transport_src, to.transport_dst) = (source, destination);
            }
            (Some(ICMP), kind, code) if kind.max(code) <= Some(0xff) => {
                // The guard ensures that both values fit in a byte.
                (to.icmp_type, to.icmp_code) = (kind.map(|kind| kind as u8), code.map(|code| code as u8));
            }
            (_, source, destination) => {
                to.other += u16::from(source.is_some()) + u16::from(destination.is_some());
            }
        }
    }

    /// Collects the fields above Ethernet and checks their prerequisites.
    fn of(fields: &Match, version: Version) -> Result<Self, EncodeError> {
        let unsupported = |field| Err(EncodeError::unsupported(version, field));
        let prerequisite = |field| Err(EncodeError::Prerequisite { field });
        if fields.other != 0 {
            return unsupported("unknown match fields of a decoded message");
        }
        if fields.ipv6_src.is_some() || fields.ipv6_dst.is_some() {
            return unsupported("IPv6 addresses in a match");
        }

        let ip = fields.eth_type == Some(IPV4);
        let arp = fields.eth_type == Some(ARP);
        for (present, over_ipv6, alone) in [
            (fields.ip_protocol.is_some(), "ip_protocol of IPv6", "ip_protocol"),
            (fields.ip_dscp.is_some(), "ip_dscp of IPv6", "ip_dscp"),
        ] {
            match fields.eth_type {
                Some(IPV4) => {}
                Some(IPV6) if present => return unsupported(over_ipv6),
                _ if present => return prerequisite(alone),
                _ => {}
            }
        }

        if fields.ip_dscp.is_some_and(|dscp| dscp > DSCP_MAX) {
            return Err(EncodeError::Value { field: "ip_dscp" });
        }

        let sctp = version == Version::V1_1 && fields.ip_protocol == Some(SCTP);
        let transport = ip && (sctp || matches!(fields.ip_protocol, Some(TCP | UDP)));
        let ports = fields.transport_src.is_some() || fields.transport_dst.is_some();
        if version == Version::V1_0 && ip && ports && fields.ip_protocol == Some(SCTP) {
            return unsupported("SCTP ports");
        }

        let icmp = ip && fields.ip_protocol == Some(ICMP);
        for (lacks, field) in [
            (fields.arp_operation.is_some() && !arp, "arp_operation"),
            (fields.ipv4_src.is_some() && !ip, "ipv4_src"),
            (fields.ipv4_dst.is_some() && !ip, "ipv4_dst"),
            (fields.arp_sender.is_some() && !arp, "arp_sender"),
            (fields.arp_target.is_some() && !arp, "arp_target"),
            (fields.transport_src.is_some() && !transport, "transport_src"),
            (fields.transport_dst.is_some() && !transport, "transport_dst"),
            (fields.icmp_type.is_some() && !icmp, "icmp_type"),
            (fields.icmp_code.is_some() && !icmp, "icmp_code"),
        ] {
            if lacks {
                return prerequisite(field);
            }
        }

        let operation = match fields.arp_operation.map(u8::try_from) {
            Some(Err(_)) => return unsupported("arp_operation above 255"),
            Some(Ok(operation)) => Some(operation),
            None => None,
        };

        Ok(Self {
            nw_src: fields.ipv4_src.or(fields.arp_sender),
            nw_dst: fields.ipv4_dst.or(fields.arp_target),
            nw_proto: fields.ip_protocol.or(operation),
            dscp: fields.ip_dscp,
            tp_src: fields.transport_src.or(fields.icmp_type.map(u16::from)),
            tp_dst: fields.transport_dst.or(fields.icmp_code.map(u16::from)),
        })
    }
}

/// Decodes `dl_vlan`.
fn vlan(version: Version, id: u16) -> VlanMatch {
    match id {
        VLAN_NONE => VlanMatch::Untagged,
        VLAN_ANY if version == Version::V1_1 => VlanMatch::Tagged,
        id => VlanMatch::Id(id & VLAN_ID_MAX),
    }
}

/// Returns the values of `dl_vlan` and `dl_vlan_pcp`; `None` is a wildcard.
fn encode_vlan(fields: &Match, version: Version) -> Result<(Option<u16>, Option<u8>), EncodeError> {
    let id = match fields.vlan {
        Some(VlanMatch::Untagged) => Some(VLAN_NONE),
        Some(VlanMatch::Tagged) if version == Version::V1_1 => Some(VLAN_ANY),
        Some(VlanMatch::Tagged) => return Err(EncodeError::unsupported(version, "a match on any VLAN tag")),
        Some(VlanMatch::Id(id)) if id <= VLAN_ID_MAX => Some(id),
        Some(VlanMatch::Id(_)) => return Err(EncodeError::Value { field: "vlan" }),
        None => None,
    };
    match fields.vlan_priority {
        Some(priority) if priority > VLAN_PRIORITY_MAX => Err(EncodeError::Value { field: "vlan_priority" }),
        Some(_) if fields.vlan == Some(VlanMatch::Untagged) => {
            Err(EncodeError::Prerequisite { field: "vlan_priority" })
        }
        priority => Ok((id, priority)),
    }
}

impl StandardMatch10 {
    /// Converts this match to the version-independent match.
    pub fn generalize(&self) -> Match {
        let counts = |bit: u32| self.wildcards & bit == 0;
        let mut to = Match::ANY;
        to.in_port = counts(wildcard::IN_PORT).then_some(self.in_port);
        to.eth_src = counts(wildcard::DL_SRC).then(|| self.dl_src.into());
        to.eth_dst = counts(wildcard::DL_DST).then(|| self.dl_dst.into());
        to.eth_type = counts(wildcard::DL_TYPE).then_some(self.dl_type);
        to.vlan = counts(wildcard::DL_VLAN).then(|| vlan(Version::V1_0, self.dl_vlan));

        // A packet without a tag has no priority, but many controllers leave the priority's wildcard bit
        // clear anyway.
        to.vlan_priority = (counts(wildcard::DL_VLAN_PCP) && to.vlan != Some(VlanMatch::Untagged))
            .then_some(self.dl_vlan_pcp & VLAN_PRIORITY_MAX);
        let upper = Upper {
            nw_src: network(self.nw_src, self.wildcards >> wildcard::NW_SRC_SHIFT),
            nw_dst: network(self.nw_dst, self.wildcards >> wildcard::NW_DST_SHIFT),
            nw_proto: counts(wildcard::NW_PROTO).then_some(self.nw_proto),
            dscp: counts(wildcard::NW_TOS).then_some(self.nw_tos >> 2),
            tp_src: counts(wildcard::TP_SRC).then_some(self.tp_src),
            tp_dst: counts(wildcard::TP_DST).then_some(self.tp_dst),
        };

        upper.generalize(false, &mut to);
        to
    }
}

/// Returns the network of `address` without its last `ignored` bits; `None` if 32 or more bits are ignored.
fn network(address: Ipv4Addr, ignored: u32) -> Option<Masked<Ipv4Addr>> {
    let ignored = ignored & wildcard::NW_BITS;
    (ignored < 32).then(|| Masked::<Ipv4Addr>::network(address, 32 - ignored))
}

/// Returns the number of trailing bits that the mask ignores. Fails if the mask is not a prefix.
fn ignored_bits(address: Masked<Ipv4Addr>) -> Result<u32, EncodeError> {
    address
        .prefix()
        .map(|prefix| 32 - prefix)
        .ok_or_else(|| EncodeError::unsupported(Version::V1_0, "an IPv4 mask that is not a prefix"))
}

fn encode_10(fields: &Match) -> Result<StandardMatch10, EncodeError> {
    let version = Version::V1_0;
    let mut to = StandardMatch10::default();
    let mut counting = 0;
    if let Some(port) = fields.in_port {
        counting |= wildcard::IN_PORT;
        if port.to_v10().is_none() {
            return Err(EncodeError::unsupported(version, "in_port above 0xff00"));
        }
        to.in_port = port;
    }
    if let Some(address) = fields.eth_src {
        counting |= wildcard::DL_SRC;
        to.dl_src = unmasked(address, "a mask of eth_src")?;
    }
    if let Some(address) = fields.eth_dst {
        counting |= wildcard::DL_DST;
        to.dl_dst = unmasked(address, "a mask of eth_dst")?;
    }
    if let Some(eth_type) = fields.eth_type {
        counting |= wildcard::DL_TYPE;
        to.dl_type = eth_type;
    }

    let (id, priority) = encode_vlan(fields, version)?;
    if let Some(id) = id {
        counting |= wildcard::DL_VLAN;
        to.dl_vlan = id;
    }
    if let Some(priority) = priority {
        counting |= wildcard::DL_VLAN_PCP;
        to.dl_vlan_pcp = priority;
    }

    if fields.needs_ethernet_type() {
        let upper = Upper::of(fields, version)?;
        for (address, place, shift) in [
            (upper.nw_src, &mut to.nw_src, wildcard::NW_SRC_SHIFT),
            (upper.nw_dst, &mut to.nw_dst, wildcard::NW_DST_SHIFT),
        ] {
            if let Some(address) = address {
                *place = address.value;
                to.wildcards = to.wildcards & !(wildcard::NW_BITS << shift) | ignored_bits(address)? << shift;
            }
        }

        let mut set = |present: bool, bit: u32| counting |= if present { bit } else { 0 };
        set(upper.nw_proto.is_some(), wildcard::NW_PROTO);
        set(upper.dscp.is_some(), wildcard::NW_TOS);
        set(upper.tp_src.is_some(), wildcard::TP_SRC);
        set(upper.tp_dst.is_some(), wildcard::TP_DST);
        to.nw_proto = upper.nw_proto.unwrap_or(0);
        to.nw_tos = upper.dscp.unwrap_or(0) << 2;
        to.tp_src = upper.tp_src.unwrap_or(0);
        to.tp_dst = upper.tp_dst.unwrap_or(0);
    }

    to.wildcards &= !counting;
    Ok(to)
}

fn unmasked(address: Masked<MacAddress>, field: &'static str) -> Result<MacAddress, EncodeError> {
    if address.is_exact() { Ok(address.value) } else { Err(EncodeError::unsupported(Version::V1_0, field)) }
}

/// Inverts a mask: a set bit means "ignore" in 1.1, but "compare" in [`Masked`].
fn inverse(mask: MacAddress) -> MacAddress {
    MacAddress(mask.0.map(|byte| !byte))
}

impl StandardMatch11 {
    /// Converts this match to the version-independent match, whose `other` counts the metadata and MPLS
    /// fields.
    pub fn generalize(&self) -> Match {
        use wildcard::v11 as bit;
        let counts = |bit: u32| self.wildcards & bit == 0;
        let ethernet = |value: MacAddress, ignored: MacAddress| {
            (ignored != MacAddress::BROADCAST).then(|| Masked { value, mask: inverse(ignored) })
        };
        let ipv4 = |value: Ipv4Addr, ignored: Ipv4Addr| {
            (ignored != Ipv4Addr::BROADCAST).then(|| Masked { value, mask: !ignored })
        };
        let mut to = Match::ANY;
        to.in_port = counts(bit::IN_PORT).then_some(self.in_port);
        to.eth_src = ethernet(self.dl_src, self.dl_src_mask);
        to.eth_dst = ethernet(self.dl_dst, self.dl_dst_mask);
        to.eth_type = counts(bit::DL_TYPE).then_some(self.dl_type);
        to.vlan = counts(bit::DL_VLAN).then(|| vlan(Version::V1_1, self.dl_vlan));
        to.vlan_priority = (counts(bit::DL_VLAN_PCP) && to.vlan != Some(VlanMatch::Untagged))
            .then_some(self.dl_vlan_pcp & VLAN_PRIORITY_MAX);
        let upper = Upper {
            nw_src: ipv4(self.nw_src, self.nw_src_mask),
            nw_dst: ipv4(self.nw_dst, self.nw_dst_mask),
            nw_proto: counts(bit::NW_PROTO).then_some(self.nw_proto),
            dscp: counts(bit::NW_TOS).then_some(self.nw_tos >> 2),
            tp_src: counts(bit::TP_SRC).then_some(self.tp_src),
            tp_dst: counts(bit::TP_DST).then_some(self.tp_dst),
        };

        upper.generalize(true, &mut to);
        to.other += u16::from(counts(bit::MPLS_LABEL))
            + u16::from(counts(bit::MPLS_TC))
            + u16::from(self.metadata_mask != u64::MAX);

        to
    }
}

fn encode_11(fields: &Match) -> Result<StandardMatch11, EncodeError> {
    use wildcard::v11 as bit;
    let version = Version::V1_1;
    let mut to = StandardMatch11::default();
    let mut counting = 0;
    let mut set = |present: bool, bit: u32| counting |= if present { bit } else { 0 };
    set(fields.in_port.is_some(), bit::IN_PORT);
    to.in_port = fields.in_port.unwrap_or(PortNo(0));
    if let Some(address) = fields.eth_src {
        (to.dl_src, to.dl_src_mask) = (address.value, inverse(address.mask));
    }
    if let Some(address) = fields.eth_dst {
        (to.dl_dst, to.dl_dst_mask) = (address.value, inverse(address.mask));
    }

    set(fields.eth_type.is_some(), bit::DL_TYPE);
    to.dl_type = fields.eth_type.unwrap_or(0);
    let (id, priority) = encode_vlan(fields, version)?;
    set(id.is_some(), bit::DL_VLAN);
    to.dl_vlan = id.unwrap_or(0);

    // 1.1 compares the priority only if the identifier is not wildcarded.
    if priority.is_some() && id.is_none() {
        return Err(EncodeError::Prerequisite { field: "vlan_priority" });
    }

    set(priority.is_some(), bit::DL_VLAN_PCP);
    to.dl_vlan_pcp = priority.unwrap_or(0);
    if fields.needs_ethernet_type() {
        let upper = Upper::of(fields, version)?;
        if let Some(address) = upper.nw_src {
            (to.nw_src, to.nw_src_mask) = (address.value, !address.mask);
        }
        if let Some(address) = upper.nw_dst {
            (to.nw_dst, to.nw_dst_mask) = (address.value, !address.mask);
        }

        set(upper.nw_proto.is_some(), bit::NW_PROTO);
        set(upper.dscp.is_some(), bit::NW_TOS);
        set(upper.tp_src.is_some(), bit::TP_SRC);
        set(upper.tp_dst.is_some(), bit::TP_DST);
        to.nw_proto = upper.nw_proto.unwrap_or(0);
        to.nw_tos = upper.dscp.unwrap_or(0) << 2;
        to.tp_src = upper.tp_src.unwrap_or(0);
        to.tp_dst = upper.tp_dst.unwrap_or(0);
    }

    to.wildcards &= !counting;
    Ok(to)
}
