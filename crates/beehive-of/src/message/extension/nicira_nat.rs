//! Nicira's `nat` action. A bit set states which bounds of the ranges are present.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::encode::EncodeError;
use crate::error::{Error, Part};
use crate::message::number::{NatFlags, NatRange};
use crate::schema::{Reader, Scalar, Sink, Source, Value, Writer};
use crate::version::Version;

/// Translates addresses and ports. Nested in a [`ConnectionTracking`](super::ConnectionTracking) action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nat {
    /// The options: which end of the connection to translate, and how to choose a port.
    pub flags: NatFlags,
    /// The first IPv4 address of the range.
    pub ipv4_min: Option<Ipv4Addr>,
    /// The last IPv4 address of the range.
    pub ipv4_max: Option<Ipv4Addr>,
    /// The first IPv6 address of the range.
    pub ipv6_min: Option<Ipv6Addr>,
    /// The last IPv6 address of the range.
    pub ipv6_max: Option<Ipv6Addr>,
    /// The first port of the range.
    pub port_min: Option<u16>,
    /// The last port of the range.
    pub port_max: Option<u16>,
}

fn read<'a, T: Value<'a>>(
    present: NatRange,
    bit: NatRange,
    reader: &mut Reader<'a>,
) -> Result<Option<T>, Error> {
    if present.contains(bit) { T::read(reader.name("nat range")).map(Some) } else { Ok(None) }
}

fn write<'a, T: Value<'a>>(value: &Option<T>, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
    value.map_or(Ok(()), |value| value.write(writer))
}

fn show<'a, T: Value<'a>>(name: &str, value: &Option<T>, version: Version, sink: &mut dyn Sink) {
    if let Some(value) = value {
        sink.key(name);
        value.show(version, sink);
    }
}

fn told<T: Scalar>(source: &dyn Source, field: &'static str) -> Result<Option<T>, EncodeError> {
    match source.field(field) {
        Some(told) => T::parse(told).map(Some).ok_or(EncodeError::Value { field }),
        None => Ok(None),
    }
}

impl Nat {
    fn present(&self) -> NatRange {
        [
            (self.ipv4_min.is_some(), NatRange::IPV4_MIN),
            (self.ipv4_max.is_some(), NatRange::IPV4_MAX),
            (self.ipv6_min.is_some(), NatRange::IPV6_MIN),
            (self.ipv6_max.is_some(), NatRange::IPV6_MAX),
            (self.port_min.is_some(), NatRange::PORT_MIN),
            (self.port_max.is_some(), NatRange::PORT_MAX),
        ]
        .into_iter()
        .filter(|(present, _)| *present)
        .fold(NatRange::default(), |set, (_, bit)| set.with(bit))
    }

    pub(crate) fn show_fields(&self, version: Version, sink: &mut dyn Sink) {
        sink.key("flags");
        self.flags.show(version, sink);
        show("ipv4_min", &self.ipv4_min, version, sink);
        show("ipv4_max", &self.ipv4_max, version, sink);
        show("ipv6_min", &self.ipv6_min, version, sink);
        show("ipv6_max", &self.ipv6_max, version, sink);
        show("port_min", &self.port_min, version, sink);
        show("port_max", &self.port_max, version, sink);
    }
}

impl<'a> Value<'a> for Nat {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let outer = reader.enter(Part::Action);
        reader.name("padding").skip(2)?;
        let flags = NatFlags::read(reader.name("flags"))?;
        let present = NatRange::read(reader.name("nat range"))?;
        let nat = Self {
            flags,
            ipv4_min: read(present, NatRange::IPV4_MIN, reader)?,
            ipv4_max: read(present, NatRange::IPV4_MAX, reader)?,
            ipv6_min: read(present, NatRange::IPV6_MIN, reader)?,
            ipv6_max: read(present, NatRange::IPV6_MAX, reader)?,
            port_min: read(present, NatRange::PORT_MIN, reader)?,
            port_max: read(present, NatRange::PORT_MAX, reader)?,
        };

        if nat.present() != present {
            return Err(reader.error(crate::error::ErrorKind::Value));
        }

        reader.name("padding").fill()?;
        reader.enter(outer);
        Ok(nat)
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.zeros(2);
        self.flags.write(writer)?;
        self.present().write(writer)?;
        write(&self.ipv4_min, writer)?;
        write(&self.ipv4_max, writer)?;
        write(&self.ipv6_min, writer)?;
        write(&self.ipv6_max, writer)?;
        write(&self.port_min, writer)?;
        write(&self.port_max, writer)
    }

    fn show(&self, version: Version, sink: &mut dyn Sink) {
        sink.open_record();
        self.show_fields(version, sink);
        sink.close_record();
    }

    fn compose(source: &dyn Source, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        Self {
            flags: told(source, "flags")?.unwrap_or_default(),
            ipv4_min: told(source, "ipv4_min")?,
            ipv4_max: told(source, "ipv4_max")?,
            ipv6_min: told(source, "ipv6_min")?,
            ipv6_max: told(source, "ipv6_max")?,
            port_min: told(source, "port_min")?,
            port_max: told(source, "port_max")?,
        }
        .write(writer)
    }
}
