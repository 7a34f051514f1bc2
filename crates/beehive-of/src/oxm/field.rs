//! A match field on the wire: its header (`oxm_header`), value and mask.

use core::fmt;

use super::kind::FieldKind;
use super::registry::{Known, known, named_field};
use super::{class, experimenter};
use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::schema::{NAME_OF_FIELD, Reader, Sink, Source, Value, Writer, put_digits};
use crate::version::Version;

/// The identity of a field without its value: a 32-bit header, and the experimenter number for class 0xffff.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FieldId {
    /// The class.
    pub class: u16,
    /// The number in the class (7 bits).
    pub number: u8,
    /// Whether the field has a mask.
    pub masked: bool,
    /// The combined length of the value, the mask and the experimenter number, in bytes.
    pub length: u8,
    /// The experimenter, for class 0xffff.
    pub experimenter: u32,
}

impl FieldId {
    /// Returns the identity of a registered field, without a mask.
    pub const fn of(known: &Known) -> Self {
        let id = Self {
            class: known.class,
            number: known.number,
            masked: false,
            length: 0,
            experimenter: known.experimenter,
        };
        Self { length: known.kind.length() + id.overhead(), ..id }
    }

    /// Looks the field up in the registry.
    pub fn known(&self) -> Option<&'static Known> {
        match (self.class, self.number, self.value_length()) {
            // Nicira also uses this number for the cookie, which is longer.
            (class::NXM_NX, 30, 1) => named_field("mpls_ttl"),
            _ => known(self.class, self.number, self.experimenter),
        }
    }

    /// Returns whether both identify the same field, ignoring mask and length.
    pub(crate) const fn has_number_of(&self, other: &Self) -> bool {
        self.class == other.class && self.number == other.number && self.experimenter == other.experimenter
    }

    /// Returns the number of significant bits of the value, which can be less than its bytes hold.
    pub const fn bits(&self) -> u16 {
        match (self.class, self.number) {
            (class::BASIC, 6) => 13,
            (class::BASIC, 7 | 35) => 3,
            (class::BASIC, 8) => 6,
            (class::BASIC, 9) | (class::NXM_NX, 26 | 28) => 2,
            (class::BASIC, 28 | 34) | (class::NXM_NX, 27) => 20,
            (class::BASIC, 36) => 1,
            (class::BASIC, 42) | (class::NXM_NX, 34) => 12,
            (class::NXM_NX, 104) => 1,
            (class::EXPERIMENTER, number) => match (self.experimenter, number) {
                (experimenter::ONF, 42) => 12,
                (experimenter::NICIRA, 11) => 20,
                (experimenter::NICIRA, 12) => 4,
                (experimenter::NICIRA, 13) => 1,
                (experimenter::NICIRA, 14) => 6,
                (experimenter::NSH, 4) => 24,
                _ => 8 * self.value_length() as u16,
            },
            _ => 8 * self.value_length() as u16,
        }
    }

    /// Returns the length of the value without its mask, in bytes.
    pub const fn value_length(&self) -> u8 {
        self.length.saturating_sub(self.overhead()) >> self.masked as u8
    }

    /// Returns whether the field is a tunnel option. Its length is configured in the switch and may be 0.
    pub const fn is_option(&self) -> bool {
        self.class == class::NXM_NX && matches!(self.number, 40..=103)
    }

    /// Returns how many bytes of `length` the experimenter number takes.
    const fn overhead(&self) -> u8 {
        if self.class == class::EXPERIMENTER { 4 } else { 0 }
    }

    #[inline]
    pub(super) fn header(&self) -> u32 {
        u32::from(self.class) << 16
            | u32::from(self.number & 0x7f) << 9
            | u32::from(self.masked) << 8
            | u32::from(self.length)
    }

    #[inline]
    pub(super) fn read_header(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let header = reader.u32()?;
        Ok(Self {
            class: (header >> 16) as u16,
            number: (header >> 9 & 0x7f) as u8,
            masked: header & 0x100 != 0,
            length: header as u8,
            experimenter: 0,
        })
    }
}

impl fmt::Display for FieldId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(known) => formatter.write_str(known.name),
            None if self.class == class::EXPERIMENTER => {
                write!(formatter, "exp_{:08x}_{}", self.experimenter, self.number)
            }
            None => write!(formatter, "oxm_{:04x}_{}", self.class, self.number),
        }
    }
}

/// Parses a name in the notation in which [`FieldId`] displays it.
fn parse_name(name: &str) -> Option<(FieldId, Option<&'static Known>)> {
    if let Some(known) = named_field(name) {
        return Some((FieldId::of(known), Some(known)));
    }

    let (space, name) = name.split_once('_')?;
    let (group, number) = name.split_once('_')?;
    let number = number.parse().ok().filter(|number: &u8| *number < 0x80)?;
    let group = u32::from_str_radix(group, 16).ok()?;
    Some(match space {
        "oxm" => (FieldId { class: group.try_into().ok()?, number, ..FieldId::default() }, None),
        "exp" => {
            (FieldId { class: class::EXPERIMENTER, number, experimenter: group, ..FieldId::default() }, None)
        }
        _ => return None,
    })
}

/// A field without a value, as in the lists of table features.
impl<'a> Value<'a> for FieldId {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let mut id = Self::read_header(reader.name("match field"))?;
        if id.class == class::EXPERIMENTER {
            id.experimenter = reader.u32()?;
        }
        Ok(id)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.put(&self.header().to_be_bytes());
        if self.class == class::EXPERIMENTER {
            writer.put(&self.experimenter.to_be_bytes());
        }
        Ok(())
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        let plain = self.known().is_some_and(|known| match known.kind {
            FieldKind::Bytes(_) => false,
            kind => self.length == (kind.length() << u8::from(self.masked)) + self.overhead(),
        });
        match (plain, self.masked) {
            (true, false) => sink.text(format_args!("{self}")),
            (true, true) => sink.text(format_args!("{self}/mask")),
            (false, false) => sink.text(format_args!("{self}:{}", self.length)),
            (false, true) => sink.text(format_args!("{self}:{}/mask", self.length)),
        }
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        Self::told(source)?.write(writer)
    }
}

impl FieldId {
    /// Parses the field from a source.
    pub(super) fn told(source: &dyn Source) -> Result<Self, EncodeError> {
        let wrong = EncodeError::Value { field: "match field" };
        let text = source.text().ok_or(wrong)?;
        let (text, masked) = text.strip_suffix("/mask").map_or((text, false), |text| (text, true));
        let (name, length) = text.split_once(':').map_or((text, None), |(name, length)| (name, Some(length)));
        let (mut id, _) = parse_name(name).ok_or(wrong)?;
        id.masked = masked;
        id.length = match length {
            Some(length) => length.parse().map_err(|_| wrong)?,
            None => (id.length.saturating_sub(id.overhead()) << u8::from(masked)) + id.overhead(),
        };

        Ok(id)
    }
}

/// A field with its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OxmField<'a> {
    /// The class; 0x8000 is the standard class.
    pub class: u16,
    /// The number in the class.
    pub number: u8,
    /// The experimenter, for class 0xffff.
    pub experimenter: u32,
    /// The value.
    pub value: &'a [u8],
    /// The bits of the value to compare, as long as the value; `None` compares all.
    pub mask: Option<&'a [u8]>,
}

impl<'a> OxmField<'a> {
    /// Creates a field of the standard class without a mask.
    pub const fn basic(number: u8, value: &'a [u8]) -> Self {
        Self { class: class::BASIC, number, experimenter: 0, value, mask: None }
    }

    /// Returns the identity of the field.
    pub fn id(&self) -> FieldId {
        let experimenter = if self.class == class::EXPERIMENTER { 4 } else { 0 };
        let length = (self.value.len() << usize::from(self.mask.is_some())) + experimenter;
        FieldId {
            class: self.class,
            number: self.number,
            masked: self.mask.is_some(),
            length: length as u8,
            experimenter: self.experimenter,
        }
    }

    /// Returns the kind of the value, or raw bytes if the length of the value does not fit the registered
    /// kind.
    fn kind(&self) -> FieldKind {
        match self.id().known() {
            Some(known) if known.kind.allows(self.value.len()) => known.kind,
            _ => FieldKind::Bytes(255),
        }
    }

    /// Returns whether the value has the length that its name implies.
    fn has_usual_length(&self) -> bool {
        let usual = self.id().known().map_or(FieldKind::Bytes(VALUE_LENGTH_MAX), |known| known.kind);
        usual.allows(self.value.len())
    }

    /// Writes the field to a sink as an entry of a record. If the length of the field is not the one that its
    /// name implies, the key contains the length.
    pub(crate) fn show_entry(&self, sink: &mut dyn Sink) {
        let (mut name, id) = (Short::default(), self.id());
        let _ = match self.has_usual_length() {
            true => fmt::Write::write_fmt(&mut name, format_args!("{id}")),
            false => fmt::Write::write_fmt(&mut name, format_args!("{id}:{}", id.length)),
        };
        sink.key(name.as_str());
        sink.text(format_args!("{}", Shown(self)));
    }

    /// Appends the field composed from a name and a value.
    pub(crate) fn compose_entry(
        name: &str,
        source: &dyn Source,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        let wrong = EncodeError::Value { field: "match field" };
        let nameless = EncodeError::Value { field: NAME_OF_FIELD };
        if let Some((name, length)) = name.split_once(':') {
            let (id, _) = parse_name(name).ok_or(nameless)?;
            let id = FieldId { length: length.parse().map_err(|_| wrong)?, ..id };
            return compose_digits(id, source.text().ok_or(wrong)?, writer);
        }

        let (mut id, known) = parse_name(name).ok_or(nameless)?;
        let kind = known.map_or(FieldKind::Bytes(VALUE_LENGTH_MAX), |known| known.kind);
        let (mut value, mut mask) = ([0; 128], [0; 128]);
        let (value_length, masked) = match (source.text(), source.number()) {
            (Some(text), _) => {
                let (text, mask_text) =
                    text.split_once('/').map_or((text, None), |(text, mask)| (text, Some(mask)));
                let length = kind.parse(text, &mut value).ok_or(wrong)?;
                if let Some(text) = mask_text
                    && kind.parse(text, &mut mask) != Some(length)
                {
                    return Err(wrong);
                }
                (length, mask_text.is_some())
            }
            (None, Some(number)) => {
                let bytes = number.to_be_bytes();
                let length = usize::from(kind.length());
                let start = 8usize.checked_sub(length).ok_or(wrong)?;
                let (above, used) = bytes.split_at_checked(start).ok_or(wrong)?;
                if above.iter().any(|byte| *byte != 0) {
                    return Err(wrong);
                }
                value.get_mut(128 - length..).ok_or(wrong)?.copy_from_slice(used);
                (length, false)
            }
            _ => return Err(wrong),
        };
        let experimenter = if id.class == class::EXPERIMENTER { 4 } else { 0 };
        id.masked = masked;
        id.length = ((value_length << usize::from(masked)) + experimenter).try_into().map_err(|_| wrong)?;
        id.write(writer)?;
        writer.put(value.get(128 - value_length..).ok_or(wrong)?);
        if masked {
            writer.put(mask.get(128 - value_length..).ok_or(wrong)?);
        }

        Ok(())
    }
}

/// Maximum length of the value of a field with a mask and an experimenter, in bytes. Unregistered fields up
/// to this length are shown without their length.
const VALUE_LENGTH_MAX: u8 = 124;

/// Appends a field whose key contains its length and whose value is hexadecimal digits.
fn compose_digits(id: FieldId, text: &str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    let wrong = EncodeError::Value { field: "match field" };
    let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
    FieldId { masked: mask.is_some(), ..id }.write(writer)?;
    let mut put = |text: &str| {
        let start = writer.position();
        put_digits(text.strip_prefix("0x").ok_or(wrong)?, writer)?;
        Ok::<usize, EncodeError>(writer.position() - start)
    };
    let length = put(value)?;
    let masked = mask.map(put).transpose()?;
    let told = usize::from(id.length).checked_sub(usize::from(id.overhead())).ok_or(wrong)?;
    if masked.is_some_and(|masked| masked != length) || length + masked.unwrap_or(0) != told {
        return Err(wrong);
    }

    Ok(())
}

/// Displays the value of a field, and its mask after a slash.
struct Shown<'f, 'a>(&'f OxmField<'a>);

impl fmt::Display for Shown<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.0.kind();
        kind.format(self.0.value, formatter)?;
        match self.0.mask {
            Some(mask) => {
                formatter.write_str("/")?;
                // A mask is not a port number, even if the value is.
                match kind {
                    FieldKind::Port => FieldKind::Hex(4).format(mask, formatter),
                    kind => kind.format(mask, formatter),
                }
            }
            None => Ok(()),
        }
    }
}

/// A short string without an allocation. Text that does not fit is dropped.
#[derive(Default)]
struct Short {
    bytes: [u8; 32],
    length: usize,
}

impl Short {
    fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or("field")
    }
}

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let to = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        to.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

impl<'a> Value<'a> for OxmField<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let outer = reader.enter(Part::Match);
        let start = reader.offset();
        let id = FieldId::read_header(reader.name("match field"))?;
        let length = usize::from(id.length);
        let mut inner = reader.inner(length, 0, start + 3, "match field length")?;
        let mut experimenter = 0;
        if id.class == class::EXPERIMENTER {
            experimenter = inner.u32()?;
        }

        let payload = inner.take_rest();
        let wrong = |kind| Error::new(kind, Part::Match, start + 3, "match field length");
        let (value, mask) = if id.masked {
            let (value, mask) = payload.split_at_checked(payload.len() / 2).unwrap_or((payload, &[]));
            if value.len() != mask.len() {
                return Err(wrong(ErrorKind::LengthWrong));
            }
            (value, Some(mask))
        } else {
            (payload, None)
        };

        if value.is_empty() && id.class != class::EXPERIMENTER && !id.is_option() {
            return Err(wrong(ErrorKind::LengthTooSmall));
        }

        reader.enter(outer);
        Ok(Self { class: id.class, number: id.number, experimenter, value, mask })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let wrong = EncodeError::Value { field: "match field" };
        let id = self.id();
        let mask = self.mask.map_or(0, <[u8]>::len);
        let length = usize::from(id.overhead()) + self.value.len() + mask;
        if (self.mask.is_some() && mask != self.value.len()) || length > usize::from(u8::MAX) {
            return Err(wrong);
        }

        id.write(writer)?;
        writer.put(self.value);
        writer.put(self.mask.unwrap_or(&[]));
        Ok(())
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_entry(sink);
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match source.entry(0) {
            Some((name, value)) => Self::compose_entry(name, value, writer),
            None => put_digits(source.text().unwrap_or(""), writer),
        }
    }
}

impl fmt::Display for OxmField<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.id(), Shown(self))
    }
}
