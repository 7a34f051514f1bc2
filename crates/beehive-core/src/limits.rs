//! Every limit of a hive in one place: nothing in this crate grows without one of these.

pub use beehive_protocol::limits::{ENCODED_BYTES_MAX, RECORD_BYTES_MAX, SHAPE_DEPTH_MAX, SHAPE_STEPS_MAX};

use std::time::Duration;

/// Cells that one message may map to. A handler that needs more is centralised in disguise; use `.whole()`.
pub const CELLS_PER_MESSAGE_MAX: usize = 4096;

/// Sets of cells that one proposal to the registry asks owners for, unless somebody asks for more at once.
pub const CLAIMS_PER_PROPOSAL_MAX: usize = 1_024;

/// Merges that messages of one sender may wait for at the same time; further ones begin when one of them is done.
pub const MERGES_PER_SENDER_MAX: usize = 64;

/// Messages waiting at one sender for a merge that are looked at each time that one may have ended. Those behind them wait
/// longer, and cost nothing meanwhile.
pub const PARKED_LOOKED_AT_MAX: usize = 4_096;

/// Messages that one transaction may emit, timers included.
pub const EMITS_PER_TRANSACTION_MAX: usize = 65_536;

/// Hops from the message that came in from outside to the last one it caused. More is taken for a cycle.
pub const HOPS_PER_CAUSE_MAX: u16 = 1_024;

/// Stateless handlers that may run inside one another; what they emit beyond that is routed when the stack is free again,
/// and before what their sender emits later.
pub const STATELESS_DEPTH_MAX: usize = 16;

/// Messages from outside that one IO bee may have under way (see [`Io`](crate::Io)), unless it asks for another figure.
pub const CREDITS_PER_IO_BEE: u32 = 4_096;

/// Messages and answers that wait for one IO bee to read them. What comes beyond that is thrown away.
pub const MAIL_UNREAD_MAX: usize = 1 << 16;

/// Timers that handlers of one hive may have set and not seen fire. A transaction that asks for more fails.
pub const TIMERS_WAITING_MAX: usize = 1 << 20;

/// The shortest time for which a handler can put a message off: what is put off must not keep a hive busy.
pub const POSTPONE_MIN: Duration = Duration::from_millis(1);

/// Empty queues that a thread keeps for an app, to be used again.
pub const QUEUES_KEPT_PER_THREAD: usize = 256;

/// Letters kept of transactions that panicked; the oldest goes first.
pub const DEAD_LETTERS_MAX: usize = 1_024;

/// Bytes of all letters kept; the oldest goes first.
pub const DEAD_LETTERS_BYTES_MAX: usize = 4 << 20;

/// Bytes of the message, and of the error's text, of one letter: a larger message is left out, a longer text is cut.
pub const DEAD_LETTER_BYTES_MAX: usize = 64 << 10;

/// Messages that have ended the process and are kept from being run again until a record says that they are done.
pub const SET_ASIDE_MAX: usize = 1_024;

/// Bytes of what one dead letter says of its message in words.
pub const DEAD_LETTER_WORDS_BYTES_MAX: usize = 1 << 10;

/// A message that holds its handler for longer is named, unless something else is said.
pub const STUCK_AFTER: Duration = Duration::from_secs(1);

/// Bytes of what is said in words of a message that holds its handler.
pub const STUCK_WORDS_BYTES_MAX: usize = 256;

/// Bytes of what an encoded message is said to be in words.
pub const WORDS_BYTES_MAX: usize = 64 << 10;

/// Numbers of one lane from outside between the oldest message that is not known to be committed and the newest. More
/// waits at the sender. What must not wait (see [`Io::flush_control`](crate::Io::flush_control)) goes beyond it.
pub const LANE_WINDOW_MAX: u64 = 4_096;

/// Messages that stateless handlers may run for within one record; more are dropped, and taken for a cycle.
pub const STATELESS_PER_RECORD_MAX: usize = 65_536;

/// Cells whose turn at a sweep one record begins.
pub const SWEEP_STEP_MAX: usize = 1_024;

/// Cells of one sweep whose turn has begun and is not committed.
pub const SWEEP_WINDOW_MAX: usize = 4_096;

/// Threads that the handlers of one app may hold, by blocking or spinning, before its other cells have to wait for them.
/// So many handlers can wait for something outside at the same time, and two such apps leave threads to the others.
pub const HELD_THREADS_PER_APP_MAX: usize = 128;

/// Threads that the handlers of all apps may hold; beyond that an app that holds none gets one. Half of those that tokio
/// has for what blocks, unless it is told otherwise: the rest is for runners, journals and files.
pub const HELD_THREADS_MAX: usize = 256;

/// Messages that one worker handles for others before it lets the scheduler have a look.
pub const MESSAGES_PER_TURN_MAX: usize = 8_192;

/// Steps that a hive on a virtual clock may take without any time passing; more is taken for a cycle. For tests.
pub const STEPS_AT_ONE_MOMENT_MAX: usize = 1_000_000;

/// Senders that a bee tells apart in its traffic counters; the rest is counted together.
pub const PEERS_PER_BEE_MAX: usize = 16;

/// Of so many messages of a bee, one run is timed.
pub const MESSAGES_PER_TIMED_RUN: u64 = 64;

/// Changes of an app's dictionaries that wait to be published in its snapshots while nobody looks; whoever hands over more
/// publishes them.
pub const SNAPSHOT_CHANGES_WAITING_MAX: usize = 4_096;

/// How long a publisher waits for readers of an old version before it leaves that to them and makes another copy.
pub const SNAPSHOT_PATIENCE: Duration = Duration::from_millis(50);

/// Copies of an app's dictionaries that are left to readers who hold on to them, besides the few that are in use. With more
/// of them nothing is published, and what is read grows old.
pub const SNAPSHOT_COPIES_HELD_MAX: usize = 4;

/// How old a snapshot may be that is looked at, unless its dictionary says otherwise.
pub const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(10);
