//! All of a hive's limits in one place. Every queue, table and retry loop in this crate is bounded by one of them.

pub use beehive_protocol::limits::{ENCODED_BYTES_MAX, RECORD_BYTES_MAX, SHAPE_DEPTH_MAX, SHAPE_STEPS_MAX};

use std::time::Duration;

/// Maximum number of cells to which one message may map. A message that maps to more fails with an error of kind
/// [`Limit`](crate::ErrorKind::Limit). A handler that needs more cells should use `.whole()`.
pub const CELLS_PER_MESSAGE_MAX: usize = beehive_protocol::limits::CLAIM_CELLS_MAX;

/// Maximum number of loop iterations in the map of one message, counted over all its loops. A message whose map takes
/// more fails with an error of kind [`Limit`](crate::ErrorKind::Limit).
pub const STEPS_PER_MAP_MAX: u32 = 1 << 20;

/// Number of steps charged to a map for a panic in one of its branches. The 128th such panic ends the map at the
/// latest.
pub const STEPS_PER_PANIC: u32 = STEPS_PER_MAP_MAX / 128;

/// Default interval of [`Builder::verify_maps`](crate::Builder::verify_maps) in a build without debug
/// assertions. In a build with debug assertions, and under test, the hive verifies every dropped message.
///
/// It is a prime number, so that a repeating pattern of messages cannot evade the sampling. With an interval of 256,
/// for example, a pattern of 100 messages would be sampled at only 25 of its positions.
pub const DROPS_PER_VERIFICATION: u32 = 509;

/// Maximum number of cell sets in one ownership proposal to the registry. A single request for more sets is
/// still sent as one proposal.
pub const CLAIMS_PER_PROPOSAL_MAX: usize = 1_024;

/// Maximum number of merges for which one sender's messages wait at the same time. Further merges start as others
/// finish.
pub const MERGES_PER_SENDER_MAX: usize = 64;
/// The time after which a merge no longer counts towards [`MERGES_PER_SENDER_MAX`]: it waits for something, which must not hold
/// up the others.
pub const MERGE_COUNTED_FOR_MAX: Duration = Duration::from_millis(10);

/// Maximum number of one sender's blocked messages that are checked when a merge may have finished. The messages behind
/// them wait longer, but cost nothing until they are checked.
pub const BLOCKED_EXAMINED_MAX: usize = 4_096;

/// How long a message that runs alone after a crash keeps others waiting while its log does not commit the marker that names
/// it. Then the others go first. Each time that this happens to a message, it may take twice as long.
pub const SUSPECT_TURN_MAX: Duration = Duration::from_secs(1);

/// Number of threads that may wait for the crash marker of one log, before quarantined messages run. When it is reached, further
/// bees with such messages wait without a thread.
pub const MARKER_WAITERS_PER_LOG_MAX: usize = 8;

/// How far the hive's time may leap at the start, from the latest time in its logs towards the clock of the machine. It is
/// longer than a restart takes, and shorter than what the apps' settings let expire.
pub const CLOCK_JUMP_MAX: Duration = Duration::from_secs(30);

/// The hive's time differs from the clock of the machine if the difference was large at the start. It then runs faster or
/// slower by one part in this many.
pub const CLOCK_CORRECTION: u64 = 8;

/// Interval at which a hive with a log logs its time. Every record of a run contains the time, so this matters only for a
/// hive that was idle when it crashed: its time, and its timers, may then be late by as much. It is long because an idle hive
/// should hardly write.
pub const TIME_LOGGED_EVERY: Duration = Duration::from_secs(600);

/// Maximum number of messages that one transaction may emit, timers included.
pub const EMITS_PER_TRANSACTION_MAX: usize = 65_536;

/// Maximum number of hops from a message that entered from outside to the last message it caused. A longer chain is
/// treated as a cycle: a handler of its last message that emits fails, and is undone like any other. A timer begins a
/// new chain.
pub const HOPS_PER_CAUSE_MAX: u16 = 1_024;

/// Maximum depth of stateless handlers that call one another on the same stack. Messages emitted at this
/// depth are routed after the stack has unwound, and before anything that their sender emits later.
pub const STATELESS_DEPTH_MAX: usize = 16;

/// Default number of messages from outside that one IO bee may have in flight (see [`Io`](crate::Io)).
pub const CREDITS_PER_IO_BEE: u32 = 4_096;

/// Maximum number of unread messages and answers in the inbox of one IO bee. Further mail is dropped.
pub const MAIL_UNREAD_MAX: usize = 1 << 16;

/// Maximum number of pending timers set by the handlers of one hive. A transaction that sets more fails.
pub const TIMERS_WAITING_MAX: usize = 1 << 20;

/// Minimum delay of a postponed message, so that postponing in a loop does not keep a hive busy.
pub const POSTPONE_MIN: Duration = Duration::from_millis(1);

/// Maximum number of empty queues kept by a thread per app, for reuse.
pub const QUEUES_KEPT_PER_THREAD: usize = 256;

/// Maximum number of dead letters kept by a hive. When it is reached, the oldest is removed.
pub const DEAD_LETTERS_MAX: usize = 1_024;

/// Maximum size of all dead letters together, in bytes. When it is reached, the oldest are removed.
pub const DEAD_LETTERS_BYTES_MAX: usize = 4 << 20;

/// Maximum size, in bytes, of the message and of the error text in one dead letter. A larger message is left out; a
/// longer text is truncated.
pub const DEAD_LETTER_BYTES_MAX: usize = 64 << 10;

/// Maximum number of messages that are set aside and not run again, because two processes ended while they were running alone. A
/// message leaves the list when a committed record marks it as done.
pub const SET_ASIDE_MAX: usize = 1_024;

/// Maximum length of the rendered message in one dead letter, in bytes.
pub const DEAD_LETTER_WORDS_BYTES_MAX: usize = 1 << 10;

/// Default time after which the watchdog reports a message whose handler has not yet returned.
pub const STUCK_AFTER: Duration = Duration::from_secs(1);

/// Maximum length of the rendered message in a report of a stuck handler, in bytes.
pub const STUCK_WORDS_BYTES_MAX: usize = 256;

/// Maximum size, in bytes, of the open entry, which collects the runs of bees during a turn. If a run does not fit, the
/// open entry is appended and another one is started. A larger run gets an entry of its own.
pub const TURN_BYTES_MAX: usize = 1 << 20;

/// Maximum size, in bytes, of the pending notes about messages handled without effect. When a log's notes exceed it,
/// they are logged immediately rather than after 100 ms.
pub const CONSUMED_BYTES_MAX: usize = 256 << 10;

/// Maximum number of visits without effect that are noted for a later entry. When a log's notes exceed it, they are
/// logged immediately rather than after 100 ms.
pub const VISITS_NOTED_MAX: usize = 32_768;

/// Maximum size, in bytes, of each part in which a bee's state is copied to another log. A larger row or message is a
/// part of its own.
pub const STAGE_PART_BYTES_MAX: usize = 1 << 20;

/// Maximum number of such parts that wait to be committed by the other log. The next one is appended when the oldest is
/// committed.
pub const STAGE_PARTS_UNDECIDED_MAX: usize = 4;

/// Maximum number of statements of other hives about bees that move, such as parts of their copies, that wait to be handled.
/// Further ones are dropped; they are said again.
pub const MOVE_STATEMENTS_MAX: usize = 256;

/// Time after which a bee's move is abandoned if the destination log has committed no further part of the bee's copy. The bee
/// handles no messages during the move.
pub const MOVE_STAGED_AFTER_MAX: Duration = Duration::from_secs(10);

/// Time for which a change of settings waits for the logs of the changed apps. When it has passed, the caller gets an error, and
/// the change takes effect when the logs commit it.
pub const SETTINGS_COMMITTED_AFTER_MAX: Duration = Duration::from_secs(10);

/// Time for which a bee that is about to merge waits, frozen, for something that may wait for another log: for the other bee
/// while that one is moving or has moved, or for a stateless handler that runs for a message of the bee, and its record.
/// When it has passed, the bee handles messages again, and the merge begins again later.
pub const FROZEN_BEE_AWAITED_MAX: Duration = Duration::from_secs(1);

/// Maximum number of colonies that a hive in a cluster leads at the same time, besides those with which it started.
pub const COLONIES_TAKEN_MAX: usize = 64;

/// Number of bees that a hive has taken over, and whose rows it shows in the views at once, before other tasks of its runtime
/// run.
pub(crate) const BEES_SHOWN_AT_ONCE: usize = 64;

/// Maximum number of pending runs of acknowledged messages. When it is reached, they are logged immediately.
pub const ACKED_RUNS_MAX: usize = 1024;

/// Maximum length, in bytes, of the text that represents an encoded message.
pub const WORDS_BYTES_MAX: usize = 64 << 10;

/// Maximum distance, in sequence numbers, between an outside sender's oldest message not known to be committed and its
/// newest one. Further messages wait at the sender, except those sent with
/// [`Io::flush_control`](crate::Io::flush_control).
pub const LANE_WINDOW_MAX: u64 = 4_096;

/// Maximum distance, in sequence numbers, between a bee's oldest message that is not acknowledged and its newest one. When it is
/// exceeded, those outside whose messages make the bee send more get no credits back until the distance is half as long. This
/// bounds what receivers have to remember while one log of the hive commits nothing. A message that has begun a sweep counts from the
/// sweep's last step. Timers, postponed messages and what is sent in the same run as a postponed one do not count: while they wait,
/// receivers of the bee's other messages to the same app remember them. What a timer makes the bee send is not held back.
pub const BEE_LANE_WINDOW_MAX: u64 = 65_536;

/// Maximum number of messages handled by stateless handlers within one log record. Further messages are treated as a cycle
/// and dropped.
pub const STATELESS_PER_RECORD_MAX: usize = 65_536;

/// Maximum number of cells whose visits are started by one of a sweep's log records.
pub const SWEEP_STEP_MAX: usize = 1_024;

/// Maximum number of cells of one sweep whose visits have started but are not committed, apart for each log of the visited app.
pub const SWEEP_WINDOW_MAX: usize = 4_096;

/// If an app has several logs: maximum number of cells of one sweep whose visits wait because their logs do not commit earlier
/// ones. The sweep goes on in the other logs meanwhile. When this number is reached, it waits for all logs.
pub const SWEEP_CELLS_KEPT_BACK_MAX: usize = 65_536;

/// Maximum number of threads that one app's blocking or spinning handlers may hold before the app's other cells have to
/// wait. This many handlers can wait for external resources at the same time, and two such apps fit within
/// [`HELD_THREADS_MAX`].
pub const HELD_THREADS_PER_APP_MAX: usize = 128;

/// Maximum number of threads that the blocking handlers of all apps together may hold. When it is reached, an app that
/// holds no thread still gets one. This is half of tokio's default number of blocking threads; the rest is for runners,
/// journals and files.
pub const HELD_THREADS_MAX: usize = 256;

/// Maximum number of messages that a worker handles before it yields to the scheduler.
pub const MESSAGES_PER_TURN_MAX: usize = 8_192;

/// For tests: maximum number of steps that a hive on a virtual clock takes before the clock advances. More steps
/// are treated as a cycle.
pub const STEPS_AT_ONE_MOMENT_MAX: usize = 1_000_000;

/// For tests: longest virtual time for which a simulated cluster waits for a future.
pub const CLUSTER_WAIT_MAX: Duration = Duration::from_secs(600);

/// Number of senders whose traffic a bee counts separately. All other senders are counted together.
pub const PEERS_PER_BEE_MAX: usize = 16;

/// Sampling interval of handler timing: one run of a bee is timed per this many messages.
pub const MESSAGES_PER_TIMED_RUN: u64 = 64;

/// Maximum number of changes to an app's dictionaries that may be waiting for publication while nobody reads the app's
/// views. The thread whose change exceeds it publishes all pending changes.
pub const VIEW_CHANGES_PENDING_MAX: usize = 4_096;

/// Maximum time for which changes stay pending because readers hold an old version. After that, the publisher leaves
/// the old copy to these readers and makes a new one.
pub const VIEW_PATIENCE: Duration = Duration::from_millis(50);

/// Maximum number of copies of an app's dictionaries that are left to slow readers, in addition to the copies in use.
/// When it is reached, nothing is published and views grow older until a reader releases a copy.
pub const VIEW_COPIES_HELD_MAX: usize = 4;

/// Size of the changes of rows, in bytes, that may wait to be decoded for an app's views. The replica that exceeds it decodes them.
/// Whole bees, which move or are restored, do not count.
pub const VIEW_FOLLOWED_BYTES_MAX: usize = 1 << 20;

/// Time for which the changes that replicas report are collected before they are decoded for the views, unless a reader comes
/// first.
pub const VIEW_FOLLOWED_LINGER: Duration = Duration::from_millis(1);

/// Time between two looks at the bees that have left a colony, and have not arrived in another one, as far as the views know.
pub const VIEW_MOVES_CHECKED_EVERY: Duration = Duration::from_millis(100);

/// Time for which the views show the rows of a bee that has left a colony and that the registry does not know any more.
pub const VIEW_LEFT_PATIENCE: Duration = Duration::from_secs(10);

/// Number of bees that have moved and ended, and that an app's views remember, because a replica that is behind may still have
/// them.
pub const BEES_ENDED_REMEMBERED_MAX: usize = 4_096;

/// Number of removed cells that an app's views remember, because a replica that is behind may still have them.
pub const CELLS_REMOVED_REMEMBERED_MAX: usize = 4_096;

/// Default maximum age of a view read by a handler. A dictionary may set its own with `#[shared(max_age = "..")]`.
pub const VIEW_AGE_MAX: Duration = Duration::from_secs(10);
