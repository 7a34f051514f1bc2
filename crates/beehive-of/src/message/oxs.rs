//! OXS: counters as a list of fields (1.5.1, 7.2.4).

use crate::encode::EncodeError;
use crate::error::{Error, ErrorKind, Part};
use crate::schema::{List, Reader, Sink, Source, Value, Writer, put_digits};
use crate::version::Version;

/// The class of the specification's own counters (`OFPXSC_OPENFLOW_BASIC`).
const CLASS: u16 = 0x8002;

const NAMES: [(u8, &str, usize); 5] = [
    (0, "duration", 8),
    (1, "idle_time", 8),
    (3, "flow_count", 4),
    (4, "packet_count", 8),
    (5, "byte_count", 8),
];

/// A counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counter<'a> {
    /// The class.
    pub class: u16,
    /// The number in the class.
    pub number: u8,
    /// The value. A duration consists of seconds and nanoseconds, 32 bits each.
    pub value: &'a [u8],
}

impl<'a> Counter<'a> {
    fn name(&self) -> Option<&'static str> {
        NAMES
            .iter()
            .find(|(number, _, length)| {
                self.class == CLASS && *number == self.number && *length == self.value.len()
            })
            .map(|(_, name, _)| *name)
    }

    fn show_entry(&self, sink: &mut dyn Sink) {
        let number = self.value.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        match self.name() {
            Some(name) if self.number <= 1 => {
                sink.key(name);
                sink.text(format_args!("{}.{:09}", number >> 32, number & 0xffff_ffff));
            }
            Some(name) => {
                sink.key(name);
                sink.number(number);
            }
            None => {
                sink.key("counter");
                let header = u32::from(self.class) << 16 | u32::from(self.number) << 9;
                sink.text(format_args!("{:08x}{}", header | self.value.len() as u32, Hex(self.value)));
            }
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl<'a> Value<'a> for Counter<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let start = reader.offset();
        let header = reader.name("counter").u32()?;
        if reader.is_strict() && header & 0x100 != 0 {
            return Err(reader.name("reserved bit of a counter").error_at(ErrorKind::Padding, start + 2));
        }

        let length = (header & 0xff) as usize;
        let mut inner = reader.inner(length, 0, start + 3, "counter length")?;
        Ok(Self {
            class: (header >> 16) as u16,
            number: (header >> 9 & 0x7f) as u8,
            value: inner.take_rest(),
        })
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let length = u8::try_from(self.value.len()).map_err(|_| EncodeError::Value { field: "counter" })?;
        let [high, low] = self.class.to_be_bytes();
        writer.put(&[high, low, self.number << 1, length]);
        writer.put(self.value);
        Ok(())
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_entry(sink);
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match source.entry(0) {
            Some((name, value)) => compose_entry(name, value, writer),
            None => Err(EncodeError::Value { field: "counter" }),
        }
    }
}

fn compose_entry(name: &str, source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    let wrong = EncodeError::Value { field: "counter" };
    if name == "counter" {
        return put_digits(source.text().ok_or(wrong)?, writer);
    }

    let (number, _, length) = NAMES.into_iter().find(|(_, named, _)| *named == name).ok_or(wrong)?;
    let value = match source.number() {
        Some(value) if number > 1 => value,
        Some(seconds) => seconds << 32,
        None => {
            let (seconds, nanoseconds) = source.text().and_then(|text| text.split_once('.')).ok_or(wrong)?;
            let part = |text: &str| text.parse::<u32>().map_err(|_| wrong);
            u64::from(part(seconds)?) << 32 | u64::from(part(nanoseconds)?)
        }
    };
    let bytes = value.to_be_bytes();
    let value = bytes.get(8 - length..).ok_or(wrong)?;
    Counter { class: CLASS, number, value }.write(writer)
}

/// The counters of a flow, or the thresholds of a trigger (`ofp_stats`).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FlowCounters<'a>(pub List<'a, Counter<'a>>);

impl<'a> FlowCounters<'a> {
    /// Returns the value of the counter with this number in the standard class; `None` if it is absent.
    ///
    /// # Errors
    ///
    /// Fails if an earlier counter is malformed.
    pub fn get(&self, number: u8) -> Result<Option<u64>, Error> {
        for counter in self.0 {
            let counter = counter?;
            if counter.class == CLASS && counter.number == number {
                return Ok(Some(
                    counter.value.iter().take(8).fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte)),
                ));
            }
        }
        Ok(None)
    }
}

impl<'a> Value<'a> for FlowCounters<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let outer = reader.enter(Part::Statistics);
        let start = reader.offset();
        reader.name("reserved").skip(2)?;
        let length = usize::from(reader.name("counters length").u16()?);
        let mut inner = reader.inner(length, 4, start + 2, "counters length")?;
        let list = List::read(&mut inner)?;
        reader.name("padding").skip(crate::field::padded(length) - length)?;
        reader.enter(outer);
        Ok(Self(list))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        framed(writer, |writer| self.0.write(writer))
    }

    fn show(&self, _version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        for counter in self.0 {
            match counter {
                Ok(counter) => counter.show_entry(sink),
                Err(error) => sink.error(error),
            }
        }
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        framed(writer, |writer| {
            let mut index = 0;
            while let Some((name, value)) = source.entry(index) {
                compose_entry(name, value, writer)?;
                index += 1;
            }
            Ok(())
        })
    }
}

fn framed(
    writer: &mut Writer<'_>,
    body: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = writer.position();
    writer.zeros(2);
    let at = writer.reserve();
    body(writer)?;
    writer.patch(at, start)?;
    writer.pad_to_8(start);
    Ok(())
}

/// A list of counters, in order.
pub type Counters<'a> = List<'a, Counter<'a>>;
