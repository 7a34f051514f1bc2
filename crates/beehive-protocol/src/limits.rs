//! Limits of the protocol: nothing that is encoded, decoded or traced grows without one of these.

/// Types inside one another that a shape goes into.
pub const SHAPE_DEPTH_MAX: usize = 128;

/// Fields and the like that a shape describes; what comes beyond that is not known.
pub const SHAPE_STEPS_MAX: usize = 10_000;

/// Bytes of one encoded key, row, value or message.
pub const ENCODED_BYTES_MAX: usize = 64 << 20;

/// Bytes that one record of a log may hold besides what describes them, and so one value: a run that changes or emits more
/// is recorded message by message, and a message that does so by itself fails.
pub const RECORD_BYTES_MAX: usize = ENCODED_BYTES_MAX / 2;
