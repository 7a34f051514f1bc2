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

/// Size of the parts of a snapshot that one hive sends to another.
#[cfg(feature = "cluster")]
pub const CHUNK_BYTES: usize = 1 << 20;

/// How long a part of a snapshot may take. If the connection is silent, the transfer begins again after this time.
#[cfg(feature = "cluster")]
pub const CHUNK_WITHIN: Duration = Duration::from_secs(2);

/// Number of bytes of entries that one call carries. A larger entry has a call of its own.
#[cfg(feature = "cluster")]
pub const CALL_BYTES: usize = 1 << 20;

/// Maximum size of a snapshot that a hive accepts from another.
#[cfg(feature = "cluster")]
pub const SNAPSHOT_BYTES_MAX: usize = 4 << 30;

/// How long a proposal to the registry is repeated before it fails.
#[cfg(feature = "cluster")]
pub const PROPOSE_WITHIN: Duration = Duration::from_secs(2);

/// How long one attempt to reach the leader of the registry takes.
#[cfg(feature = "cluster")]
pub const ATTEMPT_WITHIN: Duration = Duration::from_millis(500);

/// How long a hive that is to replace its earlier life goes on to ask although that one is heard, because it may just have ended.
/// And how long a leader takes it for present after it has asked.
#[cfg(feature = "cluster")]
pub const HEARD_FOR: Duration = Duration::from_secs(1);

/// How often a hive asks the others to replace its earlier life.
#[cfg(feature = "cluster")]
pub const REPLACED_EVERY: Duration = Duration::from_millis(50);

/// Pause between two attempts of anything that waits for another hive.
#[cfg(feature = "cluster")]
pub const RETRY: Duration = Duration::from_millis(10);

/// How long an election may take before a member begins the next one.
#[cfg(feature = "cluster")]
pub const ELECTION_WITHIN: Duration = Duration::from_millis(100);

/// By how much each further member of a group lets the ones before it try to become the leader.
#[cfg(feature = "cluster")]
pub const ELECTION_STAGGER: Duration = Duration::from_millis(40);

/// A leader hands a group over only to a member that has all entries of its log but this many.
#[cfg(feature = "cluster")]
pub const HANDED_OVER_BEHIND: u64 = 64;

/// How long a leader that hands a group over waits until what it has proposed is committed.
#[cfg(feature = "cluster")]
pub const HANDED_OVER_WITHIN: Duration = Duration::from_millis(100);

/// How long a hive that stops goes on without a majority.
#[cfg(feature = "cluster")]
pub const CUT_OFF_FOR: Duration = Duration::from_secs(1);

/// How long a hive that stops hands over what it leads.
#[cfg(feature = "cluster")]
pub const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// How long a hive that stops hands over the registry before it hands over the colonies, too.
#[cfg(feature = "cluster")]
pub const REGISTRY_FIRST_FOR: Duration = Duration::from_millis(300);

/// How long a hive that stops waits until another one leads a group that it hands over, before it tries a third one.
#[cfg(feature = "cluster")]
pub const HEIR_WITHIN: Duration = Duration::from_millis(200);

/// How long the groups of a hive that ends may still write into its folder before this closes.
#[cfg(feature = "cluster")]
pub const END_WITHIN: Duration = Duration::from_secs(1);

/// How long a member whose log is shorter than that of another one leaves elections to the other.
#[cfg(feature = "cluster")]
pub const BEHIND_FOR: Duration = Duration::from_millis(500);

/// Maximum number of hives in a cluster. Each of them has a copy of everything.
#[cfg(feature = "cluster")]
pub const CLUSTER_HIVES_MAX: usize = 16;

/// How often a hive that starts looks whether the others fit.
#[cfg(feature = "cluster")]
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a hive that starts and does not fit stays, so that the others connect and say so, too: longer than their pause
/// between two attempts.
#[cfg(feature = "cluster")]
pub const MISFIT_FOR: Duration = Duration::from_millis(1500);

/// When a hive that starts logs first which other hives it waits for, and the pause between two such lines.
#[cfg(feature = "cluster")]
pub const WAITING_LOGGED_EVERY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Limits of the connections between the hives of a cluster.
#[cfg(feature = "cluster")]
pub mod wire {
    use std::time::Duration;

    /// Maximum length of a packet, a call or an answer: the largest log entry, and what a call says about it. A longer one
    /// is refused by its sender.
    pub const MESSAGE_BYTES_MAX: usize = beehive_protocol::limits::ENCODED_BYTES_MAX + (64 << 10);

    /// Maximum length of a packet or a call of the failure detector.
    pub const DETECTOR_BYTES_MAX: usize = 64 << 10;

    /// Calls of the consensus groups that are longer than this have a lane of their own, so that votes and heartbeats do not
    /// wait behind snapshots.
    pub const SMALL_BYTES_MAX: usize = 64 << 10;

    /// A message is cut into parts of this length, which are the frames of the wire.
    pub const PART_BYTES: usize = 128 << 10;

    /// Maximum length of a frame: a part and its header. A longer frame breaks the connection.
    pub const FRAME_BYTES_MAX: usize = PART_BYTES + 64;

    /// Maximum length of a frame before the other side has shown that it belongs to the cluster.
    pub const HELLO_BYTES_MAX: usize = 4 << 10;

    /// Maximum length of a cluster's name, in bytes.
    pub const CLUSTER_NAME_BYTES_MAX: usize = 256;

    /// Minimum length of a join token, in bytes. A shorter one could be guessed by trying.
    pub const TOKEN_BYTES_MIN: usize = 16;

    /// Maximum number of bytes that wait in one lane to one hive. A packet beyond it is dropped, and a call waits. A single
    /// message may be longer, if nothing else waits.
    pub const WAITING_BYTES_MAX: usize = 16 << 20;

    /// What a waiting message counts in addition to its bytes.
    pub const WAITING_MESSAGE_BYTES: usize = 128;

    /// Maximum number of calls that are served at once in one lane for one hive. The others wait unread.
    pub const CALLS_SERVED_MAX: usize = 64;

    /// Maximum number of bytes of the calls that are served at once in one lane for one hive. A single call may be longer.
    pub const SERVED_BYTES_MAX: usize = 16 << 20;

    /// Maximum number of calls of which a hive remembers that their caller no longer waits, before they arrive.
    pub const FORGOTTEN_MAX: usize = 1024;

    /// Maximum number of connections that have not shown yet that they belong to the cluster. One more closes the oldest.
    pub const STRANGERS_MAX: usize = 64;

    /// Maximum number of hives that a wire knows.
    pub const PEERS_MAX: usize = 256;

    /// A connection that has not finished its handshake after this time is closed.
    pub const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);

    /// How long a refused hive has to read why.
    pub const PARTING_TIME_MAX: Duration = Duration::from_secs(1);

    /// A connection that is made this time after the last look at the files with the certificates looks whether they have changed.
    pub const CERTIFICATES_LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

    /// Maximum time for a TCP connection to be established.
    pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

    /// Pause before the second attempt to connect. It doubles with each further attempt, up to [`BACKOFF_MAX`].
    pub const BACKOFF_MIN: Duration = Duration::from_millis(50);

    /// Maximum pause between two attempts to connect.
    pub const BACKOFF_MAX: Duration = Duration::from_secs(1);

    /// A connection that has carried nothing for this time is probed.
    pub const PROBE_EVERY: Duration = Duration::from_secs(1);

    /// A connection whose probe is not answered in this time is broken.
    pub const PROBE_TIME_MAX: Duration = Duration::from_secs(3);

    /// How long a stop waits for answers and for what is still to be sent.
    pub const DRAIN_TIME_MAX: Duration = Duration::from_millis(500);

    /// Maximum number of bytes under way in one lane that the receiver has not taken yet.
    pub const LANE_WINDOW_BYTES: u32 = 1 << 20;

    /// Maximum number of bytes under way in one connection. The windows of all lanes together are smaller, so no lane can
    /// take the room of another one.
    pub const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

    /// Maximum number of bytes of the names and values of a stream's headers.
    pub const HEADERS_BYTES_MAX: u32 = 4 << 10;

    /// The same refusal is logged again after this time.
    pub const REFUSAL_LOGGED_EVERY: Duration = Duration::from_secs(60);

    /// Pause between two log lines about connections that have not shown that they belong to the cluster.
    pub const STRANGER_LOGGED_EVERY: Duration = Duration::from_secs(1);
}
