//! Nicira's `learn` actions and their specifications, which copy values from a packet to a new flow.

use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::message::number::{LearnFlags, TableId};
use crate::oxm::FieldId;
use crate::schema::{Adaptor, Hex, List, Reader, Scalar, Sink, Source, Value, Writer, structure};
use crate::version::Version;

structure! {
    /// Adds a flow with values from the packet.
    pub struct Learn<'a> in Action {
        idle_timeout: u16,
        hard_timeout: u16,
        priority: u16 = 0x8000,
        cookie: u64,
        flags: LearnFlags,
        table_id: TableId,
        fin_idle_timeout: u16,
        fin_hard_timeout: u16,
        specs: List<'a, LearnSpec<'a>>,
    }
    _ => [
        idle_timeout, hard_timeout, priority, cookie as Hex, flags, table_id, 1, fin_idle_timeout, fin_hard_timeout,
        specs as Specs
    ],
}

structure! {
    /// Adds a flow with values from the packet, up to a maximum number of flows.
    pub struct Learn2<'a> in Action {
        idle_timeout: u16,
        hard_timeout: u16,
        priority: u16 = 0x8000,
        cookie: u64,
        flags: LearnFlags,
        table_id: TableId,
        fin_idle_timeout: u16,
        fin_hard_timeout: u16,
        /// The maximum number of learned flows; 0 for no limit.
        limit: u32,
        /// The offset of the result bit, which tells whether the number of flows was within the limit.
        result_offset: u16,
        /// The field of the result bit, if the flags have [`LearnFlags::WRITE_RESULT`], and the
        /// specifications.
        rest: LearnRest<'a>,
    }
    _ => [
        idle_timeout, hard_timeout, priority, cookie as Hex, flags as Announcing, table_id, 1, fin_idle_timeout,
        fin_hard_timeout, limit, result_offset, 2, rest
    ],
}

/// The variable part at the end of a [`Learn2`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LearnRest<'a> {
    /// The field with the result; present exactly when the flags have [`LearnFlags::WRITE_RESULT`].
    pub result: Option<FieldId>,
    /// The specifications.
    pub specs: List<'a, LearnSpec<'a>>,
}

/// Reads the flags, and announces to [`LearnRest`] whether there is a field for the result.
pub(crate) struct Announcing;

impl Adaptor<'_, LearnFlags> for Announcing {
    fn read(reader: &mut Reader<'_>) -> Result<LearnFlags, Error> {
        let flags = LearnFlags::read(reader)?;
        reader.announce(usize::from(flags.contains(LearnFlags::WRITE_RESULT)));
        Ok(flags)
    }

    fn write(value: &LearnFlags, _field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        value.write(writer)
    }

    fn show(value: &LearnFlags, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        LearnFlags::parse(source).ok_or(EncodeError::Value { field })?.write(writer)
    }
}

impl<'a> Value<'a> for LearnRest<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let result = match reader.announcement() {
            0 => None,
            _ => Some(FieldId::read(reader.name("result"))?),
        };
        Ok(Self { result, specs: Specs::read(reader)? })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        if let Some(result) = self.result {
            result.write(writer)?;
        }
        self.specs.write(writer)
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        if let Some(result) = self.result {
            sink.key("result");
            result.show(version, sink);
        }
        sink.key("specs");
        self.specs.show(version, sink);
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        if let Some(result) = source.field("result") {
            FieldId::compose(result, writer)?;
        }
        match source.field("specs") {
            Some(specs) => List::<LearnSpec<'_>>::compose(specs, writer),
            None => Ok(()),
        }
    }
}

/// A specification of the new flow, which copies a number of bits from a source to a destination.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LearnSpec<'a> {
    /// Number of bits (at most 1023).
    pub bit_count: u16,
    /// The source of the bits.
    pub source: LearnSource<'a>,
    /// The destination of the bits.
    pub destination: LearnDestination,
}

/// The source of bits of a learned flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LearnSource<'a> {
    /// A field of the packet and a bit offset.
    Field(FieldId, u16),
    /// A constant, right-aligned in a multiple of 16 bits.
    Value(&'a [u8]),
}

/// The destination of bits of a learned flow.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum LearnDestination {
    /// A field of the match and a bit offset.
    Match(FieldId, u16),
    /// A field that an action sets and a bit offset.
    Load(FieldId, u16),
    /// The port of an output action.
    #[default]
    Output,
}

impl Default for LearnSource<'_> {
    fn default() -> Self {
        Self::Value(&[])
    }
}

/// Bits of the header of a specification.
const COUNT: u16 = 0x03ff;
const VALUE: u16 = 1 << 13;
const KIND: u16 = 3 << 11;
const LOAD: u16 = 1 << 11;
const OUTPUT: u16 = 2 << 11;

/// Returns the length of a constant of `bit_count` bits, in bytes.
fn value_length(bit_count: u16) -> usize {
    2 * usize::from(bit_count.div_ceil(16))
}

impl<'a> Value<'a> for LearnSpec<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let outer = reader.enter(Part::Action);
        let start = reader.offset();
        let header = reader.name("learn specification").u16()?;
        let bit_count = header & COUNT;
        let wrong = |reader: &Reader<'_>| reader.error_at(ErrorKind::Value, start);
        let source = if header & VALUE == 0 {
            LearnSource::Field(FieldId::read(reader)?, reader.name("learn source offset").u16()?)
        } else {
            LearnSource::Value(reader.name("learn value").take(value_length(bit_count))?)
        };

        if bit_count == 0 || header & !(COUNT | VALUE | KIND) != 0 {
            return Err(wrong(reader));
        }

        let destination = match header & KIND {
            OUTPUT if header & VALUE == 0 => LearnDestination::Output,
            kind if kind & OUTPUT == 0 => {
                let field = FieldId::read(reader)?;
                let offset = reader.name("learn destination offset").u16()?;
                if kind == LOAD {
                    LearnDestination::Load(field, offset)
                } else {
                    LearnDestination::Match(field, offset)
                }
            }
            _ => return Err(wrong(reader)),
        };

        reader.enter(outer);
        Ok(Self { bit_count, source, destination })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.bit_count == 0 || self.bit_count > COUNT {
            return Err(EncodeError::Value { field: "bit_count" });
        }

        let from = if matches!(self.source, LearnSource::Value(_)) { VALUE } else { 0 };
        let to = match self.destination {
            LearnDestination::Match(..) => 0,
            LearnDestination::Load(..) => LOAD,
            LearnDestination::Output => OUTPUT,
        };

        if from == VALUE && to == OUTPUT {
            return Err(EncodeError::Value { field: "source" });
        }

        writer.put(&(self.bit_count | from | to).to_be_bytes());
        match self.source {
            LearnSource::Field(field, offset) => {
                field.write(writer)?;
                offset.write(writer)?;
            }
            LearnSource::Value(value) if value.len() == value_length(self.bit_count) => writer.put(value),
            LearnSource::Value(_) => return Err(EncodeError::Value { field: "value" }),
        }

        match self.destination {
            LearnDestination::Match(field, offset) | LearnDestination::Load(field, offset) => {
                field.write(writer)?;
                offset.write(writer)
            }
            LearnDestination::Output => Ok(()),
        }
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        sink.key("bit_count");
        sink.number(self.bit_count.into());
        match self.source {
            LearnSource::Field(field, offset) => {
                sink.key("source");
                field.show(version, sink);
                sink.key("source_offset");
                sink.number(offset.into());
            }
            LearnSource::Value(value) => {
                sink.key("value");
                sink.bytes(value);
            }
        }

        let (name, to) = match self.destination {
            LearnDestination::Match(field, offset) => ("match_field", Some((field, offset))),
            LearnDestination::Load(field, offset) => ("load", Some((field, offset))),
            LearnDestination::Output => ("output", None),
        };

        sink.key(name);
        match to {
            Some((field, offset)) => {
                field.show(version, sink);
                sink.key("destination_offset");
                sink.number(offset.into());
            }
            None => sink.flag(true),
        }

        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let number = |field: &'static str| match source.field(field) {
            Some(told) => u16::parse(told).ok_or(EncodeError::Value { field }),
            None => Ok(0),
        };
        let bit_count = number("bit_count")?;
        if bit_count == 0 || bit_count > COUNT {
            return Err(EncodeError::Value { field: "bit_count" });
        }

        let value = source.field("value");
        let destination = [("match_field", 0), ("load", LOAD), ("output", OUTPUT)]
            .into_iter()
            .find_map(|(name, bits)| source.field(name).map(|told| (told, bits)));
        let (to, bits) = destination.ok_or(EncodeError::Value { field: "output" })?;
        if bits == OUTPUT && to.flag() == Some(false) {
            return Err(EncodeError::Value { field: "output" });
        }

        writer.put(&(bit_count | if value.is_some() { VALUE } else { 0 } | bits).to_be_bytes());
        match value {
            Some(value) => {
                let start = writer.position();
                <&[u8] as Value<'_>>::compose(value, writer)?;
                if writer.position() - start != value_length(bit_count) || bits == OUTPUT {
                    return Err(EncodeError::Value { field: "value" });
                }
            }
            None => {
                FieldId::compose(
                    source.field("source").ok_or(EncodeError::Value { field: "source" })?,
                    writer,
                )?;
                number("source_offset")?.write(writer)?;
            }
        }

        if bits != OUTPUT {
            FieldId::compose(to, writer)?;
            number("destination_offset")?.write(writer)?;
        }

        Ok(())
    }
}

/// A list of specifications. It ends at a specification of zero bits or at the end of the action. The padding
/// after it is zero.
pub(crate) struct Specs;

impl Specs {
    fn read<'a>(reader: &mut Reader<'a>) -> Result<List<'a, LearnSpec<'a>>, Error> {
        let start = *reader;
        while reader.rest().first_chunk::<2>().is_some_and(|header| *header != [0; 2]) {
            LearnSpec::read(reader)?;
        }
        let specs = start.up_to(reader);
        reader.name("padding").fill()?;
        Ok(List::wire(specs))
    }
}

impl<'a> Adaptor<'a, List<'a, LearnSpec<'a>>> for Specs {
    fn read(reader: &mut Reader<'a>) -> Result<List<'a, LearnSpec<'a>>, Error> {
        Self::read(reader)
    }

    fn write(
        value: &List<'a, LearnSpec<'a>>,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        value.write(writer)
    }

    fn show(value: &List<'a, LearnSpec<'a>>, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(
        source: &dyn Source,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        List::<LearnSpec<'_>>::compose(source, writer)
    }
}
