//! Limits of the protocol: each bounds something that is encoded, decoded or traced.

/// Maximum nesting depth of named types that the tracer follows when it derives a [`Shape`](crate::Shape).
pub const SHAPE_DEPTH_MAX: usize = 128;

/// Maximum number of levels of a shape. Decoding recurses once for each level, so it refuses bytes with more
/// levels, and the tracer cuts a deeper shape at this level.
pub const SHAPE_LEVELS_MAX: usize = 256;

/// Maximum number of fields, elements and variants that one shape describes; the tracer leaves the rest
/// unknown.
pub const SHAPE_STEPS_MAX: usize = 10_000;

/// Maximum size of one encoded record, image of a bee, key, row, value or message, in bytes.
pub const ENCODED_BYTES_MAX: usize = 64 << 20;

/// Maximum size of the changes and messages in one record, and so of one value, in bytes. A run that changes
/// or emits more is recorded message by message; a single message that exceeds the limit fails.
pub const RECORD_BYTES_MAX: usize = ENCODED_BYTES_MAX / 2;
