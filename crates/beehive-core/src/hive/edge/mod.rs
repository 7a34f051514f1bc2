//! The edge of a hive: what tasks outside of handlers use, that is, IO bees, requests and reads of views.
//!
//! Input: batches that IO bees flush, single messages and requests from other tasks. They take credits
//! (`admission`) and are routed on the calling task (`dispatch`, `route`). Output: mail, that is, messages
//! and answers in the inbox of an IO bee (`message/inbox.rs`); the answer of a request; copies of committed
//! dictionaries.
//!
//! ```text
//!  socket ─► IO bee ─► emit .. flush ─► credits ─► route ─► bees
//!               ▲                                            │
//!               └── inbox ◄── messages and answers ──────────┘
//! ```
//!
//! Locks: a pending request has a mutex of its own, and the inbox another one. Neither is held while
//! messages are routed or handled.
//!
//! Shutdown: `Io::stopping` completes first, so that IO bees can finish. Once the hive is over, the tasks
//! of the remaining IO bees are dropped, pending flushes discard their batches, and pending requests end
//! with `Unavailable`.

pub(crate) mod io_bee;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod supervise;
