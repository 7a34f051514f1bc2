//! Experimenters' (1.0: vendors') extensions, kept as they are.

use super::number::ExperimenterId;
use crate::schema::structure;

structure! {
    /// An experimenter's property or instruction.
    pub struct Experimenter<'a> in Message {
        experimenter: ExperimenterId,
        body: &'a [u8],
    }
    _ => [experimenter, body],
}

structure! {
    /// An experimenter's band of a meter.
    pub struct ExperimenterBand<'a> in Meter {
        rate: u32,
        burst_size: u32,
        experimenter: ExperimenterId,
        body: &'a [u8],
    }
    _ => [rate, burst_size, experimenter, body],
}

structure! {
    /// An experimenter's property of a queue before 1.4.
    pub struct ExperimenterQueue<'a> in Queue {
        experimenter: ExperimenterId,
        body: &'a [u8],
    }
    _ => [4, experimenter, 4, body],
}
