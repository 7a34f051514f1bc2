//! Limits of the protocol: nothing that is encoded, decoded or traced grows without one of these.

/// Named types inside one another that the tracer follows when it derives a [`Shape`](crate::Shape).
pub const SHAPE_DEPTH_MAX: usize = 128;

/// Levels of a shape that are decoded. Decoding recurses once for each level, so deeper bytes are refused, and a shape
/// that is traced is cut there.
pub const SHAPE_LEVELS_MAX: usize = 256;

/// Fields, elements and variants that one shape describes; the tracer leaves the rest unknown.
pub const SHAPE_STEPS_MAX: usize = 10_000;

/// Bytes of one encoded record, image of a bee, key, row, value or message.
pub const ENCODED_BYTES_MAX: usize = 64 << 20;

/// Bytes of changes and messages in one record, and so of one value. A run that changes or emits more is recorded message
/// by message; a single message that exceeds the limit fails.
pub const RECORD_BYTES_MAX: usize = ENCODED_BYTES_MAX / 2;
