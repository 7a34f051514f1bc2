//! Links to the other hives of a cluster: what they carry, and what they promise on top of an unreliable network.
//!
//! Input: bodies for other hives (messages to bees that live there, acknowledgments, refusals, reports for requesters),
//! and the packets that the network delivers. Output: packets for the network, and the bodies of other hives, each once
//! and in the order in which its hive sent them, to the [`Handle`](links::Handle) of the hive.
//!
//! ```text
//!  send ──► session: numbers, keeps until acknowledged ──► Network ──► session: order, duplicates ──► Handle
//!             ▲ sends again while nothing is acknowledged                │ acknowledges
//!             └──────────────────────────────────────────────────────────┘
//! ```
//!
//! A session lasts as long as the two incarnations of the hives at its ends. If one of them ends, so does the session,
//! and whoever has sent a message over it routes that message again (`Sent`).
//!
//! Locks: `sessions` and `sent`, of which no thread holds two at once. Neither is held while the network or the handle is
//! called.
//!
//! Shutdown: the links send nothing more once the hive has stopped. Nobody waits for the other hives.

pub(crate) mod frame;
#[allow(clippy::module_inception)] // the room is named for its main type
pub(crate) mod links;
pub(crate) mod network;
pub(crate) mod sent;
pub(crate) mod session;
