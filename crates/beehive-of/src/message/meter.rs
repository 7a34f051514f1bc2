//! Meters (since 1.3; 1.3.5, 7.3.4.5 and 7.3.5.13).

use super::experimenter::ExperimenterBand;
use super::number::{BandTypes, MeterCapabilities, MeterCommand, MeterFlags, MeterId};
use crate::encode::EncodeError;
use crate::error::Error;
use crate::schema::{Adaptor, List, Reader, Sink, Source, Value, Writer, structure, tagged};
use crate::version::Version;

structure! {
    /// Changes a meter.
    pub struct MeterMod<'a> in Meter {
        command: MeterCommand,
        flags: MeterFlags,
        meter_id: MeterId,
        bands: Bands<'a>,
    }
    3.. => [command, flags, meter_id, bands],
}

tagged! {
    /// A meter band: the treatment of packets above a rate.
    pub enum Band<'a> in Meter, "meter band length", padded false, minimum 16 {
        /// Drops the packets.
        Drop(DropBand) "drop" = [1 in 3..],
        /// Increases the drop precedence in the DSCP field of the packets.
        DscpRemark(DscpRemarkBand) "dscp_remark" = [2 in 3..],
        /// An experimenter band.
        Experimenter(ExperimenterBand<'a>) "experimenter" = [0xffff in 3..],
    }
}

/// A list of bands, in order.
pub type Bands<'a> = List<'a, Band<'a>>;

structure! {
    /// Drops packets above a rate, in kbit/s or packets per second.
    pub struct DropBand in Meter {
        rate: u32,
        burst_size: u32,
    }
    _ => [rate, burst_size, 4],
}

structure! {
    /// Increases the drop precedence of packets above a rate.
    pub struct DscpRemarkBand in Meter {
        rate: u32,
        burst_size: u32,
        /// The number of levels by which to increase the drop precedence.
        prec_level: u8,
    }
    _ => [rate, burst_size, prec_level, 3],
}

structure! {
    /// Requests a meter, or all meters.
    pub struct MeterRequest in Meter { meter_id: MeterId = MeterId::ALL }
    3.. => [meter_id, 4],
}

structure! {
    /// The counters of a meter.
    pub struct MeterStatistics<'a> in Meter {
        meter_id: MeterId,
        /// Number of flows that use the meter.
        flow_count: u32,
        packet_in_count: u64,
        byte_in_count: u64,
        duration_sec: u32,
        duration_nsec: u32,
        bands: List<'a, BandCounter>,
    }
    3.. => [
        meter_id, len, 6, flow_count, packet_in_count, byte_in_count, duration_sec, duration_nsec, bands
    ],
}

structure! {
    /// The counters of a band.
    pub struct BandCounter in Meter {
        packet_band_count: u64,
        byte_band_count: u64,
    }
    _ => [packet_band_count, byte_band_count],
}

structure! {
    /// The configuration of a meter.
    pub struct MeterConfig<'a> in Meter {
        flags: MeterFlags,
        meter_id: MeterId,
        bands: Bands<'a>,
    }
    3.. => [len, flags, meter_id, bands],
}

/// The last number of a structure and its padding, both of which Open vSwitch omits.
struct Trailing;

impl Adaptor<'_, u32> for Trailing {
    fn read(reader: &mut Reader<'_>) -> Result<u32, Error> {
        if reader.is_empty() {
            return Ok(0);
        }
        let value = reader.u32()?;
        reader.skip(4)?;
        Ok(value)
    }

    fn write(value: &u32, _field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        writer.put(&value.to_be_bytes());
        writer.zeros(4);
        Ok(())
    }

    fn show(value: &u32, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(source: &dyn Source, field: &'static str, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let number = source.number().and_then(|number| number.try_into().ok());
        Self::write(&number.ok_or(EncodeError::Value { field })?, field, writer)
    }
}

structure! {
    /// The meter features.
    pub struct MeterFeatures in Meter {
        max_meter: u32,
        band_types: BandTypes,
        capabilities: MeterCapabilities,
        max_bands: u8,
        max_color: u8,
        /// Present since 1.5.
        features: u32,
    }
    3..=4 => [max_meter, band_types, capabilities, max_bands, max_color, 2],
    5.. => [max_meter, band_types, capabilities, max_bands, max_color, 2, features as Trailing],
}
