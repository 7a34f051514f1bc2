//! Decodes the match of 1.2 and later, a list of type-length-value fields, into a [`Match`] (1.3.5, 7.2.3).

use core::net::{Ipv4Addr, Ipv6Addr};

use super::match_fields::{Match, VlanMatch};
use crate::address::{MacAddress, Masked};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be32, bounded, fixed};
use crate::limits::VLAN_ID_MAX;
use crate::oxm::{OxmField, OxmFields, class};
use crate::port_number::PortNo;

/// The bit of a VLAN identifier that is set if the packet has a tag (`OFPVID_PRESENT`).
pub(super) const VLAN_PRESENT: u16 = 0x1000;

/// The numbers of the standard fields that [`Match`] models (7.2.3.7).
pub(super) mod number {
    pub(crate) const IN_PORT: u8 = 0;
    pub(crate) const ETH_DST: u8 = 3;
    pub(crate) const ETH_SRC: u8 = 4;
    pub(crate) const ETH_TYPE: u8 = 5;
    pub(crate) const VLAN_VID: u8 = 6;
    pub(crate) const VLAN_PCP: u8 = 7;
    pub(crate) const IP_DSCP: u8 = 8;
    pub(crate) const IP_PROTO: u8 = 10;
    pub(crate) const IPV4_SRC: u8 = 11;
    pub(crate) const IPV4_DST: u8 = 12;
    pub(crate) const TCP_SRC: u8 = 13;
    pub(crate) const TCP_DST: u8 = 14;
    pub(crate) const UDP_SRC: u8 = 15;
    pub(crate) const UDP_DST: u8 = 16;
    pub(crate) const SCTP_SRC: u8 = 17;
    pub(crate) const SCTP_DST: u8 = 18;
    pub(crate) const ICMPV4_TYPE: u8 = 19;
    pub(crate) const ICMPV4_CODE: u8 = 20;
    pub(crate) const ARP_OP: u8 = 21;
    pub(crate) const ARP_SPA: u8 = 22;
    pub(crate) const ARP_TPA: u8 = 23;
    pub(crate) const IPV6_SRC: u8 = 26;
    pub(crate) const IPV6_DST: u8 = 27;
    pub(crate) const ICMPV6_TYPE: u8 = 29;
    pub(crate) const ICMPV6_CODE: u8 = 30;
}

/// Converts a list of fields to a [`Match`]. Its `other` counts the fields that it does not model.
pub(crate) fn from_fields(fields: &OxmFields<'_>) -> Result<Match, Error> {
    let mut to = Match::ANY;
    let Some(reader) = fields.0.reader() else {
        for field in fields.0 {
            assign(&mut to, &Located { field: &field?, offset: 0 })?;
        }
        return Ok(to);
    };

    // Fast path: parse the fields of a decoded message in place, because most messages have several fields.
    let (mut rest, mut offset) = (reader.rest(), reader.offset());
    while !rest.is_empty() {
        let (head, payload) = fixed::<4>(rest, Part::Match, offset, "match field")?;
        let header = be32::<0, _>(head);
        let length = usize::from(header as u8);
        let class = (header >> 16) as u16;
        let least = if class == class::EXPERIMENTER { 4 } else { 1 };
        let (payload, next) = bounded(payload, length, least, Part::Match, offset + 3, "match field length")?;
        let (value, mask) = if header & 0x100 == 0 {
            (payload, None)
        } else {
            let (value, mask) = payload.split_at_checked(payload.len() / 2).unwrap_or((payload, &[]));
            if value.len() != mask.len() {
                return Err(Error::new(
                    ErrorKind::LengthWrong,
                    Part::Match,
                    offset + 3,
                    "match field length",
                ));
            }

            (value, Some(mask))
        };
        let number = (header >> 9 & 0x7f) as u8;

        // Do not read the experimenter number, because [`Match`] models no experimenter fields.
        let field = OxmField { class, number, experimenter: 0, value, mask };
        assign(&mut to, &Located { field: &field, offset })?;
        offset += 4 + length;
        rest = next;
    }

    Ok(to)
}

/// A field and its offset in the message.
struct Located<'f, 'a> {
    field: &'f OxmField<'a>,
    offset: usize,
}

/// Returns the value of `field`, which must be `N` bytes long.
pub(super) fn value<const N: usize>(field: &OxmField<'_>, offset: usize) -> Result<[u8; N], Error> {
    field
        .value
        .try_into()
        .map_err(|_| Error::new(ErrorKind::LengthWrong, Part::Match, offset + 3, "match field length"))
}

impl Located<'_, '_> {
    fn value<const N: usize>(&self) -> Result<[u8; N], Error> {
        value(self.field, self.offset)
    }

    /// Sets `place` to `value`. Fails if `place` is already set.
    fn put<T>(&self, place: &mut Option<T>, value: T) -> Result<(), Error> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(Error::new(ErrorKind::Duplicate, Part::Match, self.offset, "match field")),
        }
    }
}

/// Returns the value and the mask as `N` bytes each; an absent mask is all ones.
fn masked<const N: usize>(field: &Located<'_, '_>) -> Result<([u8; N], [u8; N]), Error> {
    // The mask is as long as the value, and the next line checks the length of the value.
    let mask = field.field.mask.and_then(|mask| mask.try_into().ok()).unwrap_or([0xff; N]);
    Ok((field.value()?, mask))
}

fn assign(to: &mut Match, field: &Located<'_, '_>) -> Result<(), Error> {
    let mut other = || {
        to.other += 1;
        Ok(())
    };

    if field.field.class != class::BASIC {
        return other();
    }

    match field.field.number {
        number::ETH_DST => field.put(&mut to.eth_dst, ethernet(field)?),
        number::ETH_SRC => field.put(&mut to.eth_src, ethernet(field)?),
        number::IPV4_SRC => field.put(&mut to.ipv4_src, ipv4(field)?),
        number::IPV4_DST => field.put(&mut to.ipv4_dst, ipv4(field)?),
        number::ARP_SPA => field.put(&mut to.arp_sender, ipv4(field)?),
        number::ARP_TPA => field.put(&mut to.arp_target, ipv4(field)?),
        number::IPV6_SRC => field.put(&mut to.ipv6_src, ipv6(field)?),
        number::IPV6_DST => field.put(&mut to.ipv6_dst, ipv6(field)?),
        number::VLAN_VID => match vlan(field)? {
            Some(vlan) => field.put(&mut to.vlan, vlan),
            None => other(),
        },
        // The specification allows no mask for the remaining fields (table 12).
        _ if field.field.mask.is_some() => other(),
        number::IN_PORT => field.put(&mut to.in_port, PortNo(u32::from_be_bytes(field.value()?))),
        number::ETH_TYPE => field.put(&mut to.eth_type, u16::from_be_bytes(field.value()?)),
        number::VLAN_PCP => field.put(&mut to.vlan_priority, u8::from_be_bytes(field.value()?)),
        number::IP_DSCP => field.put(&mut to.ip_dscp, u8::from_be_bytes(field.value()?)),
        number::IP_PROTO => field.put(&mut to.ip_protocol, u8::from_be_bytes(field.value()?)),
        number::ARP_OP => field.put(&mut to.arp_operation, u16::from_be_bytes(field.value()?)),
        number::TCP_SRC | number::UDP_SRC | number::SCTP_SRC => {
            field.put(&mut to.transport_src, u16::from_be_bytes(field.value()?))
        }
        number::TCP_DST | number::UDP_DST | number::SCTP_DST => {
            field.put(&mut to.transport_dst, u16::from_be_bytes(field.value()?))
        }
        number::ICMPV4_TYPE | number::ICMPV6_TYPE => {
            field.put(&mut to.icmp_type, u8::from_be_bytes(field.value()?))
        }
        number::ICMPV4_CODE | number::ICMPV6_CODE => {
            field.put(&mut to.icmp_code, u8::from_be_bytes(field.value()?))
        }
        _ => other(),
    }
}

fn ethernet(field: &Located<'_, '_>) -> Result<Masked<MacAddress>, Error> {
    let (value, mask) = masked::<6>(field)?;
    Ok(Masked { value: MacAddress(value), mask: MacAddress(mask) })
}

fn ipv4(field: &Located<'_, '_>) -> Result<Masked<Ipv4Addr>, Error> {
    let (value, mask) = masked::<4>(field)?;
    Ok(Masked { value: Ipv4Addr::from(value), mask: Ipv4Addr::from(mask) })
}

fn ipv6(field: &Located<'_, '_>) -> Result<Masked<Ipv6Addr>, Error> {
    let (value, mask) = masked::<16>(field)?;
    Ok(Masked { value: Ipv6Addr::from(value), mask: Ipv6Addr::from(mask) })
}

/// Decodes the VLAN field. Returns `None` if its mask covers only some bits of the identifier.
fn vlan(field: &Located<'_, '_>) -> Result<Option<VlanMatch>, Error> {
    let (value, mask) = masked::<2>(field)?;
    let (value, mask) = (u16::from_be_bytes(value), u16::from_be_bytes(mask));
    Ok(match mask & (VLAN_PRESENT | VLAN_ID_MAX) {
        VLAN_PRESENT if value & VLAN_PRESENT != 0 => Some(VlanMatch::Tagged),
        0x1fff if value == 0 => Some(VlanMatch::Untagged),
        0x1fff if value & VLAN_PRESENT != 0 => Some(VlanMatch::Id(value & VLAN_ID_MAX)),
        _ => None,
    })
}
