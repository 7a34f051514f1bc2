//! Limits of the protocol. Each one bounds something that is encoded, decoded or traced.

/// Maximum nesting depth of named types that the tracer follows when it derives a [`Shape`](crate::Shape).
pub const SHAPE_DEPTH_MAX: usize = 128;

/// Maximum number of levels of a shape. Decoding recurses once per level, so the decoder refuses bytes with more
/// levels, and the tracer cuts deeper shapes off at this level.
pub const SHAPE_LEVELS_MAX: usize = 256;

/// Maximum number of fields, elements and variants described by one shape. The tracer leaves all others unknown.
pub const SHAPE_STEPS_MAX: usize = 10_000;

/// Maximum size, in bytes, of anything that is encoded: a record, a bee's image, a key, a row, a value or a message.
pub const ENCODED_BYTES_MAX: usize = 64 << 20;

/// Maximum size, in bytes, of the changes and messages in one record, and therefore of one value. A run that changes or
/// emits more is recorded message by message. A single message that exceeds the limit fails.
pub const RECORD_BYTES_MAX: usize = ENCODED_BYTES_MAX / 2;

/// Highest number that the registry assigns to a bee or a lane. The layout of lanes has 47 bits for it, and the 2^32 highest
/// numbers stand for the stateless handlers of an app, in one colony each.
pub const REGISTRY_NUMBER_MAX: u64 = (u64::MAX >> 17) - (1 << 32);

/// Maximum number of reserved ids that a colony has not used yet.
pub const RESERVED_IDS_MAX: u32 = 4096;

/// Maximum number of cells in one claim. It is the number of cells to which one message may map. Bytes with more cells are not
/// decoded: to find the owners of a claim, the registry compares its cells with one another.
pub const CLAIM_CELLS_MAX: usize = 4096;

/// Maximum number of messages that one [`Record::Admit`](crate::Record::Admit) consumes. Bytes with more are not decoded: the
/// log remembers each of them by itself, however few bytes name them.
pub const ADMITTED_MESSAGES_MAX: u32 = 1;

/// Maximum number of hives in a colony. Bytes with more members are not decoded.
pub const COLONY_MEMBERS_MAX: usize = 64;
