//! Extensions of experimenters (1.0: vendors), preserved as bytes.

use super::number::ExperimenterId;
use crate::schema::structure;

structure! {
    /// An experimenter property or instruction.
    pub struct Experimenter<'a> in Message {
        experimenter: ExperimenterId,
        body: &'a [u8],
    }
    _ => [experimenter, body],
}

structure! {
    /// An experimenter meter band.
    pub struct ExperimenterBand<'a> in Meter {
        rate: u32,
        burst_size: u32,
        experimenter: ExperimenterId,
        body: &'a [u8],
    }
    _ => [rate, burst_size, experimenter, body],
}

structure! {
    /// An experimenter queue property, before 1.4.
    pub struct ExperimenterQueue<'a> in Queue {
        experimenter: ExperimenterId,
        body: &'a [u8],
    }
    _ => [4, experimenter, 4, body],
}
