//! Several hives that form a cluster: they replicate their logs and their registry with openraft, and take over from each other.
//!
//! Experimental. The hives of a cluster are fixed when it begins. Their logs are in memory, or in a folder for each hive.
//! One that has lost its logs is replaced.
//! [`Member`] says what follows.
//!
//! ```text
//!            hive ──► RaftJournal ──► group of a colony ─┐            ┌─ other hives
//!     lead ▲   └────► RaftRegistry ─► group of the ──────┼─ transport ┤
//!          └── follow: elected, deposed     registry     │            │
//!              detector: pings ─► elections ─────────────┘            └─
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `transport.rs`, `wire/` | the seam to the sockets; the sockets |
//! | `types.rs`, `frames.rs` | openraft's types; the calls as bytes |
//! | `log_store.rs`, `machine.rs`, `folds.rs` | the log of a group; its state machine; the states of colonies and registry |
//! | `disk/` | the logs of all groups of a hive in a folder |
//! | `fits.rs` | whether the program can read the logs of its hive |
//! | `greeting.rs`, `promises.rs` | which lives the hives have; what a hive that returns must remember |
//! | `network.rs`, `router.rs` | calls to the other members; calls and packets from them |
//! | `group.rs`, `journal.rs` | a group, and what happens when this hive is elected; the entries of the leader |
//! | `registry.rs` | the replica of the registry, and proposals |
//! | `detector.rs` | who is suspected, and who wants to lead then |
//! | `node.rs`, `options.rs`, `member.rs` | what they share; settings and errors; start and stop |
//! | `leave.rs` | a hive that stops hands over what it leads |
//! | `replace.rs` | a hive that has lost what it knew takes the place of its earlier life |
//! | `lost.rs` | apps learn that a hive is lost |
//! | `start.rs` | a start with a list of addresses and a token, over sockets |
//!
//! # Terms
//!
//! A term of a group is a term of the colony. openraft's first entry in a term is blank, and every replica begins the term in its
//! state when it applies this entry, at the same place of the log. The hive begins to lead when the entry is applied here.
//!
//! # Leases
//!
//! openraft's leader accepts entries only while a majority has confirmed it lately, and the members elect nobody else meanwhile.
//! So that groups without work are quiet, both times are long: a leader sends two heartbeats a second, and its lease lasts three
//! seconds. A takeover does not wait for that. The members ignore the lease of a leader that their own failure detector suspects,
//! and that of one that has asked to be elected in a later term: it has returned, and if its log is shorter than the others', it
//! never leads again.
//! This is safe: no answer depends on a lease, only whether an entry is accepted or an election begins.

mod detector;
mod disk;
mod fits;
mod folds;
mod frames;
mod greeting;
mod group;
mod journal;
mod leave;
mod log_store;
mod lost;
mod machine;
mod member;
mod network;
mod node;
mod options;
mod promises;
mod registry;
mod replace;
mod router;
#[cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "it starts hives on real sockets: a simulated cluster has another transport"
    )
)]
mod start;
pub mod transport;
mod types;
#[cfg_attr(
    not(test),
    expect(
        clippy::disallowed_methods,
        reason = "it exists for real sockets: a simulated cluster has another transport"
    )
)]
pub mod wire;

pub use member::Member;
pub use options::{ClusterError, ClusterOptions};
pub use start::{Cluster, ClusterHive};
