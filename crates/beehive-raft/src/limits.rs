//! Limits of what lies on disk and waits for it.

use std::time::Duration;

/// The log begins a new segment when the current one is this long.
pub const SEGMENT_BYTES: u64 = 16 << 20;

/// Maximum number of bytes that wait to be written. An entry beyond it is refused, and the hive appends it again.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// Maximum length of a segment: a group that begins just below [`SEGMENT_BYTES`] may be as long as what waits, and its
/// last entry may exceed that. A longer file is not read.
pub const SEGMENT_BYTES_MAX: u64 =
    SEGMENT_BYTES + WAITING_BYTES_MAX as u64 + beehive_protocol::limits::ENCODED_BYTES_MAX as u64 + (1 << 20);

/// A checkpoint is made when the log behind the last one is this long, and at least as long as the last checkpoint.
pub const CHECKPOINT_AFTER_BYTES: u64 = 64 << 20;

/// A checkpoint is made at the latest when there are this many finished segments: each start begins one.
pub const SEGMENTS_MAX: usize = 64;

/// How long the witness waits after a commit before it records it.
pub const WITNESS_EVERY: Duration = Duration::from_millis(80);

/// Pause between two attempts to write when the disk is full.
pub const FULL_DISK_PAUSE: Duration = Duration::from_millis(50);

/// Pause between two refusals once the log has failed. Each refusal makes the hive run the refused messages again.
pub const FAILED_LOG_PAUSE: Duration = Duration::from_millis(500);

/// By how much a restore raises the term. The old hive may have been started this often since the backup.
pub const RESTORE_RAISES_TERMS: u64 = 1 << 16;

/// By how much a restore raises the ids of bees, and the numbers of messages on each lane. The old hive may have handed
/// out this many of each since the backup.
pub const RESTORE_RAISES_NUMBERS: u64 = 1 << 32;

/// Maximum number of logs (colonies) of one hive.
pub const LOGS_MAX: u16 = 1024;
