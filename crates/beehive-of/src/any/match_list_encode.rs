//! Encodes a [`Match`] for 1.2 and later and checks the prerequisites of its fields (table 12).

use core::net::Ipv4Addr;

use bytes::{BufMut, BytesMut};

use super::match_fields::{ARP, ICMP, ICMPV6, IPV4, IPV6, Match, SCTP, TCP, UDP, VlanMatch};
use super::match_list::{VLAN_PRESENT, number};
use crate::address::{MacAddress, Masked};
use crate::encode::{EncodeError, pad_to_8, patch_length};
use crate::limits::{DSCP_MAX, VLAN_ID_MAX, VLAN_PRIORITY_MAX};
use crate::message::TYPE_OXM;
use crate::oxm::class;
use crate::version::Version;

/// Appends a match and its padding to a multiple of 8 bytes.
#[inline]
pub(super) fn write_fields(version: Version, fields: &Match, out: &mut BytesMut) -> Result<(), EncodeError> {
    let start = out.len();
    out.put_u32(u32::from(TYPE_OXM) << 16);
    if let Some(port) = fields.in_port {
        put(out, number::IN_PORT, port.0.to_be_bytes());
    }
    if let Some(address) = fields.eth_dst {
        ethernet(out, number::ETH_DST, address);
    }
    if let Some(address) = fields.eth_src {
        ethernet(out, number::ETH_SRC, address);
    }
    if let Some(eth_type) = fields.eth_type {
        put(out, number::ETH_TYPE, eth_type.to_be_bytes());
    }

    if fields.vlan.is_some() || fields.vlan_priority.is_some() {
        write_vlan(fields, out)?;
    }
    if fields.needs_ethernet_type() {
        write_upper(version, fields, out)?;
    }

    patch_length(out, start, start + 2)?;
    pad_to_8(out, start);
    Ok(())
}

/// Returns the header of a field: class, number, mask bit, and the length of the payload in bytes.
const fn header(field: u8, masked: bool, length: usize) -> u32 {
    (class::BASIC as u32) << 16 | (field as u32) << 9 | (masked as u32) << 8 | length as u32
}

#[inline]
pub(super) fn put<const N: usize>(out: &mut BytesMut, field: u8, value: [u8; N]) {
    out.put_u32(header(field, false, N));
    out.put_slice(&value);
}

fn put_masked<const N: usize>(out: &mut BytesMut, field: u8, value: [u8; N], mask: [u8; N]) {
    out.put_u32(header(field, true, 2 * N));
    out.put_slice(&value);
    out.put_slice(&mask);
}

#[inline]
fn ethernet(out: &mut BytesMut, field: u8, address: Masked<MacAddress>) {
    if address.is_exact() {
        put(out, field, address.value.0);
    } else {
        put_masked(out, field, address.value.0, address.mask.0);
    }
}

fn ipv4(out: &mut BytesMut, field: u8, address: Masked<Ipv4Addr>) {
    if address.is_exact() {
        put(out, field, address.value.octets());
    } else {
        put_masked(out, field, address.value.octets(), address.mask.octets());
    }
}

fn write_vlan(fields: &Match, out: &mut BytesMut) -> Result<(), EncodeError> {
    match fields.vlan {
        Some(VlanMatch::Untagged) => put(out, number::VLAN_VID, [0; 2]),
        Some(VlanMatch::Tagged) => {
            put_masked(out, number::VLAN_VID, VLAN_PRESENT.to_be_bytes(), VLAN_PRESENT.to_be_bytes());
        }
        Some(VlanMatch::Id(id)) if id <= VLAN_ID_MAX => {
            put(out, number::VLAN_VID, (VLAN_PRESENT | id).to_be_bytes());
        }
        Some(VlanMatch::Id(_)) => return Err(EncodeError::Value { field: "vlan" }),
        None => {}
    }
    match fields.vlan_priority {
        Some(priority) if priority > VLAN_PRIORITY_MAX => Err(EncodeError::Value { field: "vlan_priority" }),
        Some(_) if matches!(fields.vlan, None | Some(VlanMatch::Untagged)) => {
            Err(EncodeError::Prerequisite { field: "vlan_priority" })
        }
        Some(priority) => {
            put(out, number::VLAN_PCP, [priority]);
            Ok(())
        }
        None => Ok(()),
    }
}

/// Returns `value`, or an error if it is set and its prerequisite is not `present`.
fn wanting<T>(value: Option<T>, present: bool, field: &'static str) -> Result<Option<T>, EncodeError> {
    if value.is_some() && !present { Err(EncodeError::Prerequisite { field }) } else { Ok(value) }
}

/// Appends the fields above Ethernet, in the order of the specification.
fn write_upper(version: Version, fields: &Match, out: &mut BytesMut) -> Result<(), EncodeError> {
    if fields.other != 0 {
        return Err(EncodeError::unsupported(version, "unknown match fields of a decoded message"));
    }

    let over_ipv4 = fields.eth_type == Some(IPV4);
    let over_ipv6 = fields.eth_type == Some(IPV6);
    let over_arp = fields.eth_type == Some(ARP);
    let over_ip = over_ipv4 || over_ipv6;
    if let Some(dscp) = wanting(fields.ip_dscp, over_ip, "ip_dscp")? {
        if dscp > DSCP_MAX {
            return Err(EncodeError::Value { field: "ip_dscp" });
        }
        put(out, number::IP_DSCP, [dscp]);
    }
    if let Some(protocol) = wanting(fields.ip_protocol, over_ip, "ip_protocol")? {
        put(out, number::IP_PROTO, [protocol]);
    }
    if let Some(address) = wanting(fields.ipv4_src, over_ipv4, "ipv4_src")? {
        ipv4(out, number::IPV4_SRC, address);
    }
    if let Some(address) = wanting(fields.ipv4_dst, over_ipv4, "ipv4_dst")? {
        ipv4(out, number::IPV4_DST, address);
    }

    // The check of `ip_protocol` above ensures that the packet is IPv4 or IPv6.
    let ports = match fields.ip_protocol {
        Some(TCP) => Some((number::TCP_SRC, number::TCP_DST)),
        Some(UDP) => Some((number::UDP_SRC, number::UDP_DST)),
        Some(SCTP) => Some((number::SCTP_SRC, number::SCTP_DST)),
        _ => None,
    };
    let icmp = match fields.ip_protocol {
        Some(ICMP) if over_ipv4 => Some((number::ICMPV4_TYPE, number::ICMPV4_CODE)),
        Some(ICMPV6) if over_ipv6 => Some((number::ICMPV6_TYPE, number::ICMPV6_CODE)),
        _ => None,
    };
    let (source, destination) = ports.unwrap_or_default();
    if let Some(port) = wanting(fields.transport_src, ports.is_some(), "transport_src")? {
        put(out, source, port.to_be_bytes());
    }
    if let Some(port) = wanting(fields.transport_dst, ports.is_some(), "transport_dst")? {
        put(out, destination, port.to_be_bytes());
    }
    if let Some(operation) = wanting(fields.arp_operation, over_arp, "arp_operation")? {
        put(out, number::ARP_OP, operation.to_be_bytes());
    }
    if let Some(address) = wanting(fields.arp_sender, over_arp, "arp_sender")? {
        ipv4(out, number::ARP_SPA, address);
    }
    if let Some(address) = wanting(fields.arp_target, over_arp, "arp_target")? {
        ipv4(out, number::ARP_TPA, address);
    }

    for (address, field, name) in
        [(fields.ipv6_src, number::IPV6_SRC, "ipv6_src"), (fields.ipv6_dst, number::IPV6_DST, "ipv6_dst")]
    {
        match wanting(address, over_ipv6, name)? {
            Some(address) if address.is_exact() => put(out, field, address.value.octets()),
            Some(address) => put_masked(out, field, address.value.octets(), address.mask.octets()),
            None => {}
        }
    }

    let (kind, code) = icmp.unwrap_or_default();
    if let Some(value) = wanting(fields.icmp_type, icmp.is_some(), "icmp_type")? {
        put(out, kind, [value]);
    }
    if let Some(value) = wanting(fields.icmp_code, icmp.is_some(), "icmp_code")? {
        put(out, code, [value]);
    }

    Ok(())
}
