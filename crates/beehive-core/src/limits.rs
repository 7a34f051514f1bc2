//! All limits of a hive in one place. Every queue, table and retry loop of this crate is bounded by one of
//! them.

pub use beehive_protocol::limits::{ENCODED_BYTES_MAX, RECORD_BYTES_MAX, SHAPE_DEPTH_MAX, SHAPE_STEPS_MAX};

use std::time::Duration;

/// Maximum number of cells that one message may map to. A handler that needs more should use `.whole()`.
/// A message that maps to more ends with an error of the kind [`Limit`](crate::ErrorKind::Limit).
pub const CELLS_PER_MESSAGE_MAX: usize = 4096;

/// Maximum number of loop iterations in the map of one message, all loops together. A message whose map takes
/// more ends with an error of the kind [`Limit`](crate::ErrorKind::Limit).
pub const STEPS_PER_MAP_MAX: u32 = 1 << 20;

/// Number of steps that a panic in a branch of a map counts as. A map may thus continue after 128 such
/// panics.
pub const STEPS_PER_PANIC: u32 = STEPS_PER_MAP_MAX / 128;

/// Default interval of [`Builder::verify_maps`](crate::Builder::verify_maps) in a build without debug
/// assertions. With them, and under test, every dropped message is verified.
pub const DROPS_PER_VERIFICATION: u32 = 256;

/// Maximum number of cell sets in one ownership proposal to the registry. A single request for more sets than
/// this is still sent as one proposal.
pub const CLAIMS_PER_PROPOSAL_MAX: usize = 1_024;

/// Maximum number of merges that messages of one sender wait for at the same time. Further merges start when
/// one of them has finished.
pub const MERGES_PER_SENDER_MAX: usize = 64;

/// Maximum number of blocked messages of one sender that are checked when a merge may have finished. Messages
/// behind them wait longer, and cost no time until then.
pub const BLOCKED_EXAMINED_MAX: usize = 4_096;

/// Maximum number of messages that one transaction may emit, timers included.
pub const EMITS_PER_TRANSACTION_MAX: usize = 65_536;

/// Maximum number of hops from the message that entered from outside to the last message it caused. A longer
/// chain is treated as a cycle and dropped.
pub const HOPS_PER_CAUSE_MAX: u16 = 1_024;

/// Maximum depth of stateless handlers that call one another on the same stack. Messages emitted at this
/// depth are routed after the stack has unwound, and before anything that their sender emits later.
pub const STATELESS_DEPTH_MAX: usize = 16;

/// Default number of messages from outside that one IO bee may have in flight (see [`Io`](crate::Io)).
pub const CREDITS_PER_IO_BEE: u32 = 4_096;

/// Maximum number of unread messages and answers in the inbox of one IO bee. Further ones are dropped.
pub const MAIL_UNREAD_MAX: usize = 1 << 16;

/// Maximum number of pending timers set by the handlers of one hive. A transaction that sets more fails.
pub const TIMERS_WAITING_MAX: usize = 1 << 20;

/// Minimum delay of a postponed message, so that postponing in a loop does not keep a hive busy.
pub const POSTPONE_MIN: Duration = Duration::from_millis(1);

/// Maximum number of empty queues that a thread keeps per app for reuse.
pub const QUEUES_KEPT_PER_THREAD: usize = 256;

/// Maximum number of dead letters that a hive keeps. When it is reached, the oldest is removed.
pub const DEAD_LETTERS_MAX: usize = 1_024;

/// Maximum size of all dead letters together, in bytes. When it is reached, the oldest are removed.
pub const DEAD_LETTERS_BYTES_MAX: usize = 4 << 20;

/// Maximum size in bytes of the message, and of the error text, of one dead letter. A larger message is left
/// out; a longer text is truncated.
pub const DEAD_LETTER_BYTES_MAX: usize = 64 << 10;

/// Maximum number of quarantined messages: messages that crashed the process and are not run again until a
/// committed record marks them as done.
pub const SET_ASIDE_MAX: usize = 1_024;

/// Maximum length of the rendered message in one dead letter, in bytes.
pub const DEAD_LETTER_WORDS_BYTES_MAX: usize = 1 << 10;

/// Default time after which the watchdog reports a message whose handler has not returned.
pub const STUCK_AFTER: Duration = Duration::from_secs(1);

/// Maximum length of the rendered message in a report of a stuck handler, in bytes.
pub const STUCK_WORDS_BYTES_MAX: usize = 256;

/// Size, in bytes, at which the log entry that collects what bees do is appended before their turn ends. A run that is
/// larger has an entry of its own.
pub const TURN_BYTES_MAX: usize = 1 << 20;

/// Maximum size of what the bees of a hive have handled without effect and no log entry says yet, in bytes. If there
/// is more, it is logged at once, and not only after 100 ms.
pub const CONSUMED_BYTES_MAX: usize = 256 << 10;

/// Size, in bytes, of the parts in which a bee moves to another log. A single row or message may be larger.
pub const STAGE_PART_BYTES_MAX: usize = 1 << 20;

/// Time after which a move is given up if the log that the bee moves to has not committed a copy of it. The bee handles
/// nothing meanwhile.
pub const MOVE_STAGED_AFTER_MAX: Duration = Duration::from_secs(10);

/// Number of runs of acknowledged messages that wait for an entry of the log. More are written at once.
pub const ACKED_RUNS_MAX: usize = 1024;

/// Maximum length of the text that an encoded message is rendered as, in bytes.
pub const WORDS_BYTES_MAX: usize = 64 << 10;

/// Maximum distance, in sequence numbers, between the oldest message of one outside sender that is not known
/// to be committed and its newest. Further messages wait at the sender, except those sent with
/// [`Io::flush_control`](crate::Io::flush_control).
pub const LANE_WINDOW_MAX: u64 = 4_096;

/// Maximum number of messages that stateless handlers handle within one log record. Further ones are treated
/// as a cycle and dropped.
pub const STATELESS_PER_RECORD_MAX: usize = 65_536;

/// Maximum number of cells that one log record of a sweep starts to visit.
pub const SWEEP_STEP_MAX: usize = 1_024;

/// Maximum number of cells of one sweep whose visit has started and is not committed.
pub const SWEEP_WINDOW_MAX: usize = 4_096;

/// Maximum number of threads that blocking or spinning handlers of one app may hold before its other cells
/// have to wait. That many handlers can wait for external resources at the same time, and two such apps still
/// leave threads for the others.
pub const HELD_THREADS_PER_APP_MAX: usize = 128;

/// Maximum number of threads that blocking handlers of all apps may hold together. Beyond it, an app that
/// holds none still gets one. This is half of tokio's default for blocking threads; the rest is for runners,
/// journals and files.
pub const HELD_THREADS_MAX: usize = 256;

/// Maximum number of messages that one worker handles before it yields to the scheduler.
pub const MESSAGES_PER_TURN_MAX: usize = 8_192;

/// Maximum number of steps of a hive on a virtual clock without the clock advancing; more is treated as a
/// cycle. For tests.
pub const STEPS_AT_ONE_MOMENT_MAX: usize = 1_000_000;

/// Number of senders that a bee counts separately in its traffic counters; all others are counted together.
pub const PEERS_PER_BEE_MAX: usize = 16;

/// Sampling interval of handler timing: one run of a bee is timed per this many messages.
pub const MESSAGES_PER_TIMED_RUN: u64 = 64;

/// Maximum number of changes to an app's dictionaries that wait to be published while nobody reads its views.
/// The thread that exceeds it publishes them.
pub const VIEW_CHANGES_PENDING_MAX: usize = 4_096;

/// How long a publisher waits for the readers of an old version. After that it leaves the old copy to them
/// and makes a new one.
pub const VIEW_PATIENCE: Duration = Duration::from_millis(50);

/// Maximum number of copies of an app's dictionaries that are left to slow readers, in addition to the copies
/// in use. When it is reached nothing is published, so views become older, until a reader releases a copy.
pub const VIEW_COPIES_HELD_MAX: usize = 4;

/// Default maximum age of a view that a handler reads. A dictionary may set its own with `#[shared(max_age =
/// "..")]`.
pub const VIEW_AGE_MAX: Duration = Duration::from_secs(10);
