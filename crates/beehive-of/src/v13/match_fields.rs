//! The match of 1.3: a list of type-length-value fields (7.2.3).

use core::iter::FusedIterator;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::address::{MacAddress, Masked};
use crate::any::{self, VlanMatch};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, bounded, fixed, padded};
use crate::limits::VLAN_ID_MAX;
use crate::port_number::PortNo;

/// The match type of such a list (`OFPMT_OXM`).
pub(super) const TYPE_OXM: u16 = 1;
/// The class of the specification's own fields (`OFPXMC_OPENFLOW_BASIC`).
pub(super) const CLASS_BASIC: u16 = 0x8000;
/// The bit of a VLAN identifier that says that there is a tag (`OFPVID_PRESENT`).
pub(super) const VLAN_PRESENT: u16 = 0x1000;

/// The numbers of the specification's own fields that have a name in [`any::Match`] (7.2.3.7).
#[allow(missing_docs)]
pub mod match_field {
    pub const IN_PORT: u8 = 0;
    pub const ETH_DST: u8 = 3;
    pub const ETH_SRC: u8 = 4;
    pub const ETH_TYPE: u8 = 5;
    pub const VLAN_VID: u8 = 6;
    pub const VLAN_PCP: u8 = 7;
    pub const IP_DSCP: u8 = 8;
    pub const IP_PROTO: u8 = 10;
    pub const IPV4_SRC: u8 = 11;
    pub const IPV4_DST: u8 = 12;
    pub const TCP_SRC: u8 = 13;
    pub const TCP_DST: u8 = 14;
    pub const UDP_SRC: u8 = 15;
    pub const UDP_DST: u8 = 16;
    pub const SCTP_SRC: u8 = 17;
    pub const SCTP_DST: u8 = 18;
    pub const ICMPV4_TYPE: u8 = 19;
    pub const ICMPV4_CODE: u8 = 20;
    pub const ARP_OP: u8 = 21;
    pub const ARP_SPA: u8 = 22;
    pub const ARP_TPA: u8 = 23;
    pub const IPV6_SRC: u8 = 26;
    pub const IPV6_DST: u8 = 27;
    pub const ICMPV6_TYPE: u8 = 29;
    pub const ICMPV6_CODE: u8 = 30;
}

/// `ofp_match`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Match<'a> {
    fields: &'a [u8],
    offset: usize,
}

impl<'a> Match<'a> {
    /// The match that starts `bytes`, at `offset` of their message, and what follows its padding.
    #[inline]
    pub(crate) fn read(bytes: &'a [u8], offset: usize) -> Result<(Self, &'a [u8]), Error> {
        let (head, _) = fixed::<4>(bytes, Part::Match, offset, "match")?;
        if be16::<0, _>(head) != TYPE_OXM {
            return Err(Error::new(ErrorKind::Value, Part::Match, offset, "match type"));
        }
        let length = usize::from(be16::<2, _>(head));
        let (whole, _) = bounded(bytes, length, 4, Part::Match, offset + 2, "match length")?;
        let Some(rest) = bytes.get(padded(length)..) else {
            return Err(Error::new(ErrorKind::Truncated, Part::Match, offset + bytes.len(), "match padding"));
        };
        Ok((Self { fields: whole.get(4..).unwrap_or(&[]), offset: offset + 4 }, rest))
    }

    /// The fields in order; the first malformed one ends them.
    #[inline]
    pub const fn fields(&self) -> MatchFields<'a> {
        MatchFields { rest: self.fields, offset: self.offset }
    }

    /// The match without its version; fields without a name there are counted in `other`.
    ///
    /// # Errors
    ///
    /// A field is malformed or present twice.
    pub fn generalise(&self) -> Result<any::Match, Error> {
        let mut fields = any::Match::ANY;
        for field in self.fields() {
            assign(&mut fields, &field?)?;
        }
        Ok(fields)
    }
}

/// One field of a match (`oxm_header` and what follows it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatchField<'a> {
    /// The class; 0x8000 is the specification's own.
    pub class: u16,
    /// The field in its class.
    pub field: u8,
    /// The value.
    pub value: &'a [u8],
    /// The bits of the value that count, if not all; as long as the value.
    pub mask: Option<&'a [u8]>,
    /// Where the field starts in the message.
    pub(super) offset: usize,
}

impl<'a> MatchField<'a> {
    /// The first field of `bytes` and its length.
    #[inline]
    pub(super) fn read(bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        let (head, rest) = fixed::<4>(bytes, Part::Match, offset, "match field")?;
        let field = be8::<2, _>(head);
        let length = usize::from(be8::<3, _>(head));
        let (payload, _) = bounded(rest, length, 1, Part::Match, offset + 3, "match field length")?;
        let (value, mask) = if field & 1 == 0 {
            (payload, None)
        } else {
            let (value, mask) = payload.split_at_checked(length / 2).unwrap_or((payload, &[]));
            if value.len() != mask.len() {
                return Err(wrong_length(offset));
            }
            (value, Some(mask))
        };
        Ok((Self { class: be16::<0, _>(head), field: field >> 1, value, mask, offset }, 4 + length))
    }

    /// The value as so many bytes.
    #[inline]
    pub(super) fn value<const N: usize>(&self) -> Result<[u8; N], Error> {
        match self.value.first_chunk::<N>() {
            Some(value) if self.value.len() == N => Ok(*value),
            _ => Err(wrong_length(self.offset)),
        }
    }

    /// The value and the mask as so many bytes; a missing mask is all ones.
    fn masked<const N: usize>(&self) -> Result<([u8; N], [u8; N]), Error> {
        let value = self.value::<N>()?;
        // The mask is as long as the value.
        Ok((value, self.mask.and_then(|mask| mask.first_chunk::<N>()).copied().unwrap_or([0xff; N])))
    }
}

fn wrong_length(offset: usize) -> Error {
    Error::new(ErrorKind::LengthWrong, Part::Match, offset + 3, "match field length")
}

/// The fields of a match in order; fused.
#[derive(Clone, Debug)]
pub struct MatchFields<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for MatchFields<'a> {
    type Item = Result<MatchField<'a>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = MatchField::read(self.rest, self.offset);
        let length = read.as_ref().map_or(self.rest.len(), |(_, length)| *length);
        self.rest = self.rest.get(length..).unwrap_or(&[]);
        self.offset += length;
        Some(read.map(|(field, _)| field))
    }
}

impl FusedIterator for MatchFields<'_> {}

/// Puts a value in its place, which must be free.
fn put<T>(place: &mut Option<T>, value: T, field: &MatchField<'_>) -> Result<(), Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => {
            Err(Error::new(ErrorKind::Value, Part::Match, field.offset, "match field (present twice)"))
        }
    }
}

fn assign(to: &mut any::Match, field: &MatchField<'_>) -> Result<(), Error> {
    use match_field as number;
    if field.class != CLASS_BASIC {
        to.other += 1;
        return Ok(());
    }
    match field.field {
        number::ETH_DST => put(&mut to.eth_dst, ethernet(field)?, field),
        number::ETH_SRC => put(&mut to.eth_src, ethernet(field)?, field),
        number::IPV4_SRC => put(&mut to.ipv4_src, ipv4(field)?, field),
        number::IPV4_DST => put(&mut to.ipv4_dst, ipv4(field)?, field),
        number::ARP_SPA => put(&mut to.arp_sender, ipv4(field)?, field),
        number::ARP_TPA => put(&mut to.arp_target, ipv4(field)?, field),
        number::IPV6_SRC => put(&mut to.ipv6_src, ipv6(field)?, field),
        number::IPV6_DST => put(&mut to.ipv6_dst, ipv6(field)?, field),
        number::VLAN_VID => match vlan(field)? {
            Some(vlan) => put(&mut to.vlan, vlan, field),
            None => {
                to.other += 1;
                Ok(())
            }
        },
        // The specification allows no mask for the rest of those that have a name here (table 12).
        _ if field.mask.is_some() => {
            to.other += 1;
            Ok(())
        }
        number::IN_PORT => put(&mut to.in_port, PortNo(u32::from_be_bytes(field.value()?)), field),
        number::ETH_TYPE => put(&mut to.eth_type, u16::from_be_bytes(field.value()?), field),
        number::VLAN_PCP => put(&mut to.vlan_priority, u8::from_be_bytes(field.value()?), field),
        number::IP_DSCP => put(&mut to.ip_dscp, u8::from_be_bytes(field.value()?), field),
        number::IP_PROTO => put(&mut to.ip_protocol, u8::from_be_bytes(field.value()?), field),
        number::ARP_OP => put(&mut to.arp_operation, u16::from_be_bytes(field.value()?), field),
        number::TCP_SRC | number::UDP_SRC | number::SCTP_SRC => {
            put(&mut to.transport_src, u16::from_be_bytes(field.value()?), field)
        }
        number::TCP_DST | number::UDP_DST | number::SCTP_DST => {
            put(&mut to.transport_dst, u16::from_be_bytes(field.value()?), field)
        }
        number::ICMPV4_TYPE | number::ICMPV6_TYPE => {
            put(&mut to.icmp_type, u8::from_be_bytes(field.value()?), field)
        }
        number::ICMPV4_CODE | number::ICMPV6_CODE => {
            put(&mut to.icmp_code, u8::from_be_bytes(field.value()?), field)
        }
        _ => {
            to.other += 1;
            Ok(())
        }
    }
}

fn ethernet(field: &MatchField<'_>) -> Result<Masked<MacAddress>, Error> {
    let (value, mask) = field.masked::<6>()?;
    Ok(Masked { value: MacAddress(value), mask: MacAddress(mask) })
}

fn ipv4(field: &MatchField<'_>) -> Result<Masked<Ipv4Addr>, Error> {
    let (value, mask) = field.masked::<4>()?;
    Ok(Masked { value: Ipv4Addr::from(value), mask: Ipv4Addr::from(mask) })
}

fn ipv6(field: &MatchField<'_>) -> Result<Masked<Ipv6Addr>, Error> {
    let (value, mask) = field.masked::<16>()?;
    Ok(Masked { value: Ipv6Addr::from(value), mask: Ipv6Addr::from(mask) })
}

/// What the VLAN field says; `None` for a mask of some of the identifier's bits.
fn vlan(field: &MatchField<'_>) -> Result<Option<VlanMatch>, Error> {
    let (value, mask) = field.masked::<2>()?;
    let (value, mask) = (u16::from_be_bytes(value), u16::from_be_bytes(mask));
    Ok(match mask & (VLAN_PRESENT | VLAN_ID_MAX) {
        VLAN_PRESENT if value & VLAN_PRESENT != 0 => Some(VlanMatch::Tagged),
        0x1fff if value == 0 => Some(VlanMatch::Untagged),
        0x1fff if value & VLAN_PRESENT != 0 => Some(VlanMatch::Id(value & VLAN_ID_MAX)),
        _ => None,
    })
}
