//! Parses matches.

use alloc::vec::Vec;

use super::error::{Fault, Problem};
use super::field_names::named;
use super::subfield::Subfield;
use super::token::Token;
use super::value::{LENGTH_MAX, Value, ones, parse, parse_bytes, small};
use crate::encode::EncodeError;
use crate::oxm::{FieldId, FieldKind, Known, OxmField, class, experimenter};
use crate::schema::{Value as _, Writer};
use crate::version::Version;

/// The fields of a match that have been parsed so far.
#[derive(Default)]
pub(super) struct Fields<'t> {
    list: Vec<Entry<'t>>,
    /// Fields whose meaning depends on other fields; resolved by [`settle`](Self::settle).
    pending: Vec<Token<'t>>,
}

struct Entry<'t> {
    token: &'t str,
    id: FieldId,
    value: Value,
    /// For a tunnel option, its value and mask; `value` is then unused.
    option: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Names whose field depends on the other fields of the match, and names with a special notation.
const AMBIGUOUS: &[&str] = &[
    "nw_src",
    "nw_dst",
    "ip_src",
    "ip_dst",
    "nw_proto",
    "ip_proto",
    "tp_src",
    "tp_dst",
    "icmp_type",
    "icmp_code",
    "dl_vlan",
    "dl_vlan_pcp",
];

/// Keywords for an Ethernet type and a protocol.
const SHORTHANDS: &[(&str, u16, Option<u8>)] = &[
    ("ip", 0x0800, None),
    ("ipv4", 0x0800, None),
    ("ip4", 0x0800, None),
    ("icmp", 0x0800, Some(1)),
    ("tcp", 0x0800, Some(6)),
    ("udp", 0x0800, Some(17)),
    ("sctp", 0x0800, Some(132)),
    ("arp", 0x0806, None),
    ("rarp", 0x8035, None),
    ("ipv6", 0x86dd, None),
    ("ip6", 0x86dd, None),
    ("icmp6", 0x86dd, Some(58)),
    ("tcp6", 0x86dd, Some(6)),
    ("udp6", 0x86dd, Some(17)),
    ("sctp6", 0x86dd, Some(132)),
    ("mpls", 0x8847, None),
    ("mplsm", 0x8848, None),
];

/// Returns the most specific keyword for an Ethernet type and a protocol, and whether it includes the
/// protocol.
pub(super) fn shorthand(eth_type: u16, protocol: Option<u8>) -> Option<(&'static str, bool)> {
    let find = |wanted: Option<u8>| {
        SHORTHANDS.iter().find(|(_, known, protocol)| *known == eth_type && *protocol == wanted)
    };
    match protocol {
        Some(_) => {
            find(protocol).map(|found| (found.0, true)).or_else(|| find(None).map(|found| (found.0, false)))
        }
        None => find(None).map(|found| (found.0, false)),
    }
}

impl<'t> Fields<'t> {
    /// Parses a keyword or a field with its value. Returns `false` if the token is not part of a match.
    pub(super) fn take(&mut self, token: &Token<'t>) -> Result<bool, Fault<'t>> {
        let name = token.name;
        if token.value.is_none() {
            if name == "eth" {
                return Ok(true);
            }

            if let Some(id) = named(name).filter(FieldId::is_option) {
                // Match any packet that has the option, by comparing no bits of it. Without a mask, the value
                // of the option would have to be 0.
                self.put(token.whole, id, Value::default())?;
                self.last_option((Vec::from([0]), Some(Vec::from([0]))));
                return Ok(true);
            }

            let Some((_, eth_type, protocol)) = SHORTHANDS.iter().find(|(known, ..)| *known == name) else {
                // Report a missing value for known names, instead of an unknown name.
                let known = named(name).is_some() || name.ends_with(']') || AMBIGUOUS.contains(&name);
                return if known { Err(token.fault(Problem::MissingValue)) } else { Ok(false) };
            };

            self.put(token.whole, basic(5, 2), exact((*eth_type).into()))?;
            if let Some(protocol) = protocol {
                self.put(token.whole, basic(10, 1), exact((*protocol).into()))?;
            }

            return Ok(true);
        }

        match name {
            // For a tunnel option, `*` means that the option must be present, with any value.
            name if token.value == Some("*") && named(name).is_some_and(|id| id.is_option()) => {
                return self.take(&Token { value: None, ..*token });
            }
            // For other fields, `*` adds nothing to the match, as in Open vSwitch.
            name if token.value == Some("*")
                && (named(name).is_some() || matches!(name, "dl_vlan" | "dl_vlan_pcp")) => {}
            name if name.ends_with(']') => self.bits(name, token)?,
            name if AMBIGUOUS.contains(&name) && !name.starts_with("dl_vlan") => {
                token.want()?;
                self.pending.push(*token);
            }
            "dl_vlan" => {
                let id: u16 = small(token.want()?).ok_or(value_fault(token))?;
                let value = match id {
                    0xffff => 0,
                    id if id <= 0x0fff => 0x1000 | u128::from(id),
                    _ => return Err(value_fault(token)),
                };
                self.put(token.whole, basic(6, 2), exact(value))?;
            }
            "dl_vlan_pcp" => {
                let value: u8 = small(token.want()?).filter(|value| *value <= 7).ok_or(value_fault(token))?;
                self.put(token.whole, basic(7, 1), exact(value.into()))?;
            }
            "nw_tos" => {
                self.type_of_service(token)?;
            }
            name => {
                // Use the standard equivalent of the field, regardless of the class that its name implies, as
                // Open vSwitch does in matches.
                let Some(id) = named(name).map(FieldId::standard) else { return Ok(false) };
                // In text, ports of 1.0 have the same numbers as ports of later versions.
                let id = if (id.class, id.number) == (class::NXM_OF, 0) { basic(0, 4) } else { id };
                self.field(token, id)?;
            }
        }

        Ok(true)
    }

    /// Parses a type-of-service byte. Only its upper six bits are compared, as in Open vSwitch.
    fn type_of_service(&mut self, token: &Token<'t>) -> Result<(), Fault<'t>> {
        let value: u8 = small(token.want()?).ok_or(value_fault(token))?;
        self.put(token.whole, basic(8, 1), exact(u128::from(value >> 2)))
    }

    /// Parses `name[first..last]=value` and merges it with bits of the same field that were parsed before.
    fn bits(&mut self, name: &'t str, token: &Token<'t>) -> Result<(), Fault<'t>> {
        let part = Subfield::parse(name)?;
        let text = token.want()?;
        let wrong = Fault::new(text, Problem::Value);
        let id = part.field.standard();
        let known = id.known().ok_or(Fault::new(name, Problem::Name))?;
        if (id.class, id.number, part.count) == (class::NXM_OF, 0, 16) {
            return self.field(token, basic(0, 4));
        }
        if (id.class, id.number, part.count) == (class::NXM_OF, 5, 8) {
            return self.type_of_service(token);
        }

        // Some bits of a 16-bit port have no equivalent in a 32-bit port, and only the switch knows the
        // length of a tunnel option.
        if id.is_option() || (id.class, id.number) == (class::NXM_OF, 0) {
            return Err(Fault::new(name, Problem::Name));
        }
        if !maskable(known) && part.count < id.bits() {
            return Err(Fault::new(name, Problem::Mask));
        }

        let most = u128::MAX >> (128 - u32::from(part.count.clamp(1, 128)));
        let value = small(text).filter(|value: &u128| *value <= most).ok_or(wrong)? << part.offset;
        let mask = most << part.offset;
        let all = u128::MAX >> (128 - u32::from(id.bits().clamp(1, 128)));
        let same = |entry: &&mut Entry<'t>| entry.id.has_number_of(&id);
        if let Some(entry) = self.list.iter_mut().find(same) {
            let earlier = entry.value.mask.unwrap_or(all);
            if (earlier & mask) & (entry.value.value ^ value) != 0 {
                return Err(Fault::new(token.whole, Problem::Twice));
            }

            let mask = mask | earlier;
            entry.value = Value {
                value: entry.value.value & earlier | value,
                mask: Some(mask).filter(|mask| *mask != all),
            };

            return Ok(());
        }

        self.put(token.whole, id, Value { value, mask: Some(mask).filter(|mask| *mask != all) })
    }

    fn field(&mut self, token: &Token<'t>, id: FieldId) -> Result<(), Fault<'t>> {
        if id.is_option() {
            let text = token.want()?;
            let option = parse_bytes(text).ok_or(Fault::new(text, Problem::Value))?;
            self.put(token.whole, id, Value::default())?;
            self.last_option(option);
            return Ok(());
        }

        let known = id.known().ok_or(token.fault(Problem::Name))?;
        if matches!(known.kind, FieldKind::Bytes(_)) {
            return Err(token.fault(Problem::Name));
        }

        let text = token.want()?;
        let value = parse(id, known.kind, text).ok_or(Fault::new(text, Problem::Value))?;
        let most = most(id);
        if value.value > most || value.mask.is_some_and(|mask| mask > most && id.number != 6) {
            return Err(Fault::new(text, Problem::Value));
        }
        if known.kind == FieldKind::Port && text.contains('/') {
            return Err(Fault::new(text, Problem::Mask));
        }

        // A field with an all-zero mask matches any packet.
        if value.mask == Some(0) {
            return Ok(());
        }
        if value.mask.is_some() && !maskable(known) {
            return Err(Fault::new(text, Problem::Mask));
        }

        self.put(token.whole, id, value)
    }

    fn put(&mut self, token: &'t str, id: FieldId, value: Value) -> Result<(), Fault<'t>> {
        let all = most(id);
        let plain = |value: Value| (value.value & value.mask.unwrap_or(all), value.mask);
        match self.list.iter().find(|entry| entry.id.has_number_of(&id)) {
            // Accept a repeated field with the same value: `ip,tcp` has the Ethernet type twice.
            Some(entry) if !id.is_option() && plain(entry.value) == plain(value) => Ok(()),
            Some(_) => Err(Fault::new(token, Problem::Twice)),
            None => {
                self.list.push(Entry { token, id, value, option: None });
                Ok(())
            }
        }
    }

    fn last_option(&mut self, option: (Vec<u8>, Option<Vec<u8>>)) {
        if let Some(entry) = self.list.last_mut() {
            entry.option = Some(option);
        }
    }

    fn exact_value(&self, number: u8) -> Option<u128> {
        let entry =
            self.list.iter().find(|entry| entry.id.class == class::BASIC && entry.id.number == number)?;
        entry.value.mask.is_none().then_some(entry.value.value)
    }

    /// Returns the Ethernet type that packets must have.
    pub(super) fn eth_type(&self) -> Option<u16> {
        self.exact_value(5).and_then(|value| value.try_into().ok())
    }

    /// Returns the protocol that packets must have.
    pub(super) fn protocol(&self) -> Option<u8> {
        self.exact_value(10).and_then(|value| value.try_into().ok())
    }

    /// Returns whether packets must have a VLAN tag.
    pub(super) fn is_tagged(&self) -> bool {
        self.list.iter().any(|entry| match (entry.id.class, entry.id.number) {
            (class::BASIC, 6) | (class::NXM_OF, 4) => entry.value.value & 0x1000 != 0,
            (class::BASIC, 7) => true,
            _ => false,
        })
    }

    /// Resolves the pending fields, sorts all fields so that prerequisites come first, and checks for
    /// overlaps and missing prerequisites.
    pub(super) fn settle(&mut self) -> Result<(), Fault<'t>> {
        let pending = core::mem::take(&mut self.pending);

        // Resolve the protocol first, because the meaning of ports depends on it.
        let (first, then): (Vec<Token<'t>>, Vec<Token<'t>>) =
            pending.into_iter().partition(|token| token.name.ends_with("_proto"));
        for token in first.iter().chain(&then) {
            let arp = matches!(self.eth_type(), Some(0x0806 | 0x8035));
            let ip = self.eth_type() == Some(0x0800);
            let any_ip = ip || self.eth_type() == Some(0x86dd);

            // Open vSwitch supports ARP operations up to 255 only.
            if arp
                && token.name.ends_with("_proto")
                && token.value.is_some_and(|text| small::<u8>(text).is_none())
            {
                return Err(value_fault(token));
            }

            let id = match (token.name, self.protocol()) {
                ("nw_src" | "ip_src", _) if arp => basic(22, 4),
                ("nw_dst" | "ip_dst", _) if arp => basic(23, 4),
                ("nw_src" | "ip_src", _) if ip => basic(11, 4),
                ("nw_dst" | "ip_dst", _) if ip => basic(12, 4),
                ("nw_proto" | "ip_proto", _) if arp => basic(21, 2),
                ("nw_proto" | "ip_proto", _) if any_ip => basic(10, 1),
                ("tp_src", Some(6)) if any_ip => basic(13, 2),
                ("tp_dst", Some(6)) if any_ip => basic(14, 2),
                ("tp_src", Some(17)) if any_ip => basic(15, 2),
                ("tp_dst", Some(17)) if any_ip => basic(16, 2),
                ("tp_src", Some(132)) if any_ip => basic(17, 2),
                ("tp_dst", Some(132)) if any_ip => basic(18, 2),
                ("icmp_type" | "tp_src", Some(1)) if ip => basic(19, 1),
                ("icmp_code" | "tp_dst", Some(1)) if ip => basic(20, 1),
                ("icmp_type" | "tp_src", Some(58)) if any_ip && !ip => basic(29, 1),
                ("icmp_code" | "tp_dst", Some(58)) if any_ip && !ip => basic(30, 1),
                _ => return Err(token.fault(Problem::Prerequisite)),
            };

            self.field(token, id)?;
        }

        self.list.sort_by_key(|entry| (entry.id.class != class::BASIC, entry.id.class, entry.id.number));
        self.check_overlap()?;
        self.check_needs()
    }

    /// Fails if registers overlap or a VLAN tag is given by two fields.
    fn check_overlap(&self) -> Result<(), Fault<'t>> {
        for (index, entry) in self.list.iter().enumerate() {
            let (start, end) = words(entry.id);
            let overlaps = |earlier: &Entry<'_>| {
                let (first, last) = words(earlier.id);
                start < last && first < end
            };
            if self.list.iter().take(index).any(overlaps) {
                return Err(Fault::new(entry.token, Problem::Twice));
            }
        }
        Ok(())
    }

    /// Fails if a field lacks its prerequisite.
    fn check_needs(&self) -> Result<(), Fault<'t>> {
        for entry in &self.list {
            let needs = entry.id.known().map_or(&[][..], |known| known.needs);
            let met = needs.iter().any(|need| match need.value {
                Some(wanted) => self.exact_value(need.number) == Some(wanted.into()),
                // A VLAN priority implies a tag, unless the match requires that there is none.
                None => !self.list.iter().any(|entry| is_vlan(entry.id) && entry.value.value & 0x1000 == 0),
            });
            let types = types(entry.id);
            let of_type = self.eth_type().is_some_and(|eth_type| types.contains(&eth_type));
            if (!needs.is_empty() && !met) || (!types.is_empty() && !of_type) {
                return Err(Fault::new(entry.token, Problem::Prerequisite));
            }
        }
        Ok(())
    }

    /// Appends the fields as a list in the writer's version.
    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), Fault<'t>> {
        let version = writer.version();
        let tag_missing = self.exact_value(7).is_some() && !self.list.iter().any(|entry| is_vlan(entry.id));
        for entry in &self.list {
            if version == Version::V1_1 && !fits_1_1(entry) {
                let error = EncodeError::Unsupported { version, field: "this field" };
                return Err(Fault::new(entry.token, Problem::Version(error)));
            }
            if tag_missing && entry.id.class == class::BASIC && entry.id.number == 7 {
                let present = Value { value: 0x1000, mask: Some(0x1000) };
                write(basic(6, 2), present, writer).map_err(|error| fault(entry, error))?;
            }

            let written = match &entry.option {
                Some((value, mask)) => option(entry.id, value, mask.as_deref()).write(writer),
                None => write(in_match(entry), entry.value, writer),
            };

            written.map_err(|error| fault(entry, error))?;
        }

        Ok(())
    }
}

/// Returns whether the field can have a mask in a match. This includes the fields of TCP and UDP ports and of
/// neighbor discovery, for which Nicira has maskable fields, but not those of SCTP ports.
fn maskable(field: &Known) -> bool {
    field.maskable || (field.class == class::BASIC && matches!(field.number, 13..=16 | 31..=33))
}

/// Returns the field to encode in a match. The standard fields of ports and neighbor discovery do not
/// support masks (1.3.5, table 12), but Nicira's equivalents do.
fn in_match(entry: &Entry<'_>) -> FieldId {
    let id = entry.id;
    if entry.value.mask.is_none() || id.class != class::BASIC {
        return id;
    }

    match id.number {
        13..=16 => FieldId { class: class::NXM_OF, number: id.number - 4, ..id },
        31..=33 => FieldId { class: class::NXM_NX, number: id.number - 8, ..id },
        _ => id,
    }
}

/// Returns the Ethernet types that a Nicira field requires; empty if there is no requirement.
fn types(id: FieldId) -> &'static [u16] {
    match (id.class, id.number) {
        (class::NXM_NX, 26 | 29) => &[0x0800, 0x86dd],
        // The cookie field has the same number as `mpls_ttl`, but is longer.
        (class::NXM_NX, 30) if id.length == 1 => &[0x8847, 0x8848],
        (class::EXPERIMENTER, _) if id.experimenter == experimenter::NSH => &[0x894f],
        _ => &[],
    }
}

/// Returns the range of a field in a space that overlapping fields share: first the registers, in 32-bit
/// words, then the VLAN tag.
fn words(id: FieldId) -> (u8, u8) {
    match (id.class, id.number) {
        (class::NXM_NX, number @ 0..=15) => (number, number + 1),
        (class::PACKET_REGISTERS, number @ 0..=7) => (2 * number, 2 * number + 2),
        (class::NXM_NX, number @ 111..=114) => (4 * (number - 111), 4 * (number - 110)),
        (class::BASIC, 6) => (16, 17),
        (class::BASIC, 7) => (17, 18),
        (class::NXM_OF, 4) => (16, 18),
        _ => (0, 0),
    }
}

fn is_vlan(id: FieldId) -> bool {
    matches!((id.class, id.number), (class::BASIC, 6) | (class::NXM_OF, 4))
}

fn fault<'t>(entry: &Entry<'t>, error: EncodeError) -> Fault<'t> {
    Fault::new(entry.token, Problem::Version(error))
}

fn value_fault<'t>(token: &Token<'t>) -> Fault<'t> {
    Fault::new(token.value.unwrap_or(token.whole), Problem::Value)
}

/// Returns whether the fixed match of 1.1 can express the field.
fn fits_1_1(entry: &Entry<'_>) -> bool {
    entry.id.class == class::BASIC
        && matches!(entry.id.number, 0 | 3..=8 | 10..=23)
        && (entry.value.mask.is_none() || matches!(entry.id.number, 3 | 4 | 6 | 11 | 12 | 22 | 23))
}

/// Returns the largest value of a field, given its number of bits.
pub(super) fn most(id: FieldId) -> u128 {
    match id.bits() {
        bits @ 0..128 => (1 << bits) - 1,
        _ => u128::MAX,
    }
}

fn exact(value: u128) -> Value {
    Value { value, mask: None }
}

pub(super) fn basic(number: u8, length: u8) -> FieldId {
    FieldId { class: class::BASIC, number, length, ..FieldId::default() }
}

/// Appends a field with a value. Bits outside of the mask are cleared.
pub(super) fn write(id: FieldId, value: Value, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    with_field(id, value, |field| field.write(writer))
}

/// Creates a tunnel option field.
pub(super) fn option<'v>(id: FieldId, value: &'v [u8], mask: Option<&'v [u8]>) -> OxmField<'v> {
    OxmField { class: id.class, number: id.number, experimenter: 0, value, mask }
}

/// Calls `then` with the field that has this value.
pub(super) fn with_field<T>(id: FieldId, value: Value, then: impl FnOnce(OxmField<'_>) -> T) -> T {
    let length = usize::from(id.value_length()).min(LENGTH_MAX);
    let mask = value.mask.unwrap_or(ones(length));
    let (bytes, mask) = ((value.value & mask).to_be_bytes(), mask.to_be_bytes());
    then(OxmField {
        class: id.class,
        number: id.number,
        experimenter: id.experimenter,
        value: bytes.get(16 - length..).unwrap_or(&bytes),
        mask: value.mask.map(|_| mask.get(16 - length..).unwrap_or(&mask)),
    })
}
