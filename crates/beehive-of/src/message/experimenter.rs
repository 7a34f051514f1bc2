//! Experimenters' (1.0: vendors') extensions, kept as they are.

use super::number::ExperimenterId;
use crate::schema::structure;

structure! {
    /// An experimenter's property, instruction or action.
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

structure! {
    /// An experimenter's message or multipart body: what the experimenter's own number means is the experimenter's.
    pub struct ExperimenterMessage<'a> in Message {
        experimenter: ExperimenterId,
        experimenter_type: u32,
        body: &'a [u8],
    }
    0 => [experimenter, body],
    1.. => [experimenter, experimenter_type, body],
}
