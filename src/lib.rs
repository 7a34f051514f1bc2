//! **Beehive**: write message handlers over dictionaries as if your program had one thread, and run them on all cores.
//!
//! A procedural macro reads the bodies of the handlers and derives which cells of which dictionaries each message can
//! touch. Every cell has exactly one owner, so your code needs no locks. Every message is one transaction, so there is
//! nothing to clean up after an error or a panic.
//!
//! A hive is one process with its state in memory, or with every change on disk before it takes effect (feature `data`, module
//! `data`). Replication is not there yet, except for an experimental beginning (feature `cluster`, module `cluster`).
//!
//! ```
//! use beehive::prelude::*;
//!
//! #[derive(Message)]
//! #[message(reply = u64)]
//! struct Hello(String);
//!
//! #[derive(App)]
//! struct Greeter {
//!     count: Dict<String, u64>,
//! }
//!
//! #[handlers]
//! impl Greeter {
//!     #[rcv]
//!     fn hello(&mut self, Hello(name): &Hello) -> u64 {
//!         self.count.update(name.clone(), |count| {
//!             *count += 1;
//!             *count
//!         })
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hive = Hive::builder().app::<Greeter>().start()?;
//! assert_eq!(hive.request(Hello("world".into())).await?, 1);
//! assert_eq!(hive.request(Hello("world".into())).await?, 2);
//! # hive.stop(std::time::Duration::from_secs(1)).await;
//! # Ok(())
//! # }
//! ```
//!
//! The [guide] continues from here: keys and maps, transactions, questions, time, sockets, testing, and
//! [a page for each error](guide::errors).
//!
//! This crate is a facade. The programming model and the runtime of one hive are in `beehive-core`. The network objects and
//! the OpenFlow driver are in `beehive-nom`, and the OpenFlow codec is in `beehive-of` (feature `nom` for both). The feature
//! `controller` adds the complete controller, which you can run with your own apps. The feature `testing`, which is meant
//! for tests, adds the test kit in the module `testing`.

pub mod guide;

pub use beehive_core::*;

// Named, so that the compiler names the feature if it is off.
#[cfg(feature = "testing")]
pub use beehive_core::testing;

// Inlined, so the documentation of this crate contains the pages of these two crates.
#[cfg(feature = "nom")]
#[doc(inline)]
pub use beehive_nom as nom;
#[cfg(feature = "nom")]
#[doc(inline)]
pub use beehive_of as of;

// The compiler names items by these paths when it suggests an import.
#[cfg(feature = "nom")]
#[doc(hidden)]
pub use {beehive_nom, beehive_of};

/// A folder in which a hive keeps its state, which is otherwise in memory only: the crate `beehive-raft`.
#[cfg(feature = "data")]
#[doc(inline)]
pub use beehive_raft as data;

/// Several hives that form a cluster. Experimental: [`Cluster`](cluster::Cluster) starts hives that replicate each other's state
/// over sockets, in memory or in a folder each. Without the feature `cluster`, this module has only the interface for programs that bring
/// consensus and a network of their own.
///
/// docs/cluster.md is the guide. The documentation of the same module in the crate `beehive_core` describes what hives of a
/// cluster promise each other, and lists what a cluster does not do yet: [`beehive_core::cluster`].
#[cfg(feature = "cluster")]
pub mod cluster {
    // in memory, unless a hive has a folder
    pub use beehive_core::cluster::*;
    pub use beehive_raft::cluster::*;
}

/// The complete controller daemon, which you can run with your own apps.
#[cfg(feature = "controller")]
pub mod controller {
    pub use beehive_cli::Controller;
}

/// The names that almost every program needs.
pub mod prelude {
    // The trait that provides `App::map_report()`.
    pub use beehive_core::Handlers as _;
    pub use beehive_core::{
        Address, App, Config, Ctx, Dict, Error, Hive, HiveId, Key, Message, Result, Rows,
    };
    pub use beehive_core::{Table, Time, attempt, every, handlers, pure, rcv};
    pub use std::time::Duration;
}

/// Compiles and runs the code of the README as doctests. `tests/readme` checks the output that the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
