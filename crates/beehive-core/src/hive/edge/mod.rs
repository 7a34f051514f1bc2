//! The edge of a hive: the interface for code outside handlers, namely IO bees, requests and reads of views.
//!
//! Input: batches flushed by IO bees, and single messages and requests from other tasks. They take credits
//! (`admission`), and the calling task routes them (`dispatch`, `route`). Output: mail, that is, messages and
//! answers in an IO bee's inbox (`message/inbox.rs`); answers to requests; and read access to committed
//! dictionaries.
//!
//! ```text
//!  socket ─► IO bee ─► emit .. flush ─► credits ─► route ─► bees
//!               ▲                                            │
//!               └── inbox ◄── messages and answers ──────────┘
//! ```
//!
//! Locks: each pending request and each inbox has its own mutex. No thread holds one of them while routing or
//! handling messages.
//!
//! Shutdown: `Io::stopping` completes first, so that IO bees can finish their work. Once the hive is over,
//! the tasks of the remaining IO bees are dropped, pending flushes discard their batches, and pending
//! requests end with `Unavailable`.

pub(crate) mod io_bee;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod supervise;
