//! **Beehive**: write message handlers over dictionaries as if your program had one thread, and run them on all cores.
//!
//! A procedural macro reads the handlers' bodies and derives which cells of which dictionaries each message can touch. Every
//! cell has exactly one owner, so your code needs no locks. Every message is one transaction, so there is nothing to clean up
//! after an error or a panic.
//!
//! A hive is one process with its state in memory. Replication and persistence are not there yet.
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
//! This crate is a facade. The programming model and the runtime of one hive are in `beehive-core`, network objects and the
//! OpenFlow driver in `beehive-nom` (feature `nom`), the OpenFlow codec in `beehive-of`. The feature `controller` adds the
//! complete controller, to be run with apps of your own. The feature `testing` adds the test kit, module `testing`; tests turn
//! it on.

pub mod guide;

pub use beehive_core::*;

// inlined, so that the documentation of this crate has the pages of these two
#[cfg(feature = "nom")]
#[doc(inline)]
pub use beehive_nom as nom;
#[cfg(feature = "nom")]
#[doc(inline)]
pub use beehive_of as of;

/// The complete controller daemon, to be run with apps of your own.
#[cfg(feature = "controller")]
pub mod controller {
    pub use beehive_cli::Controller;
}

/// The names that nearly every program needs.
pub mod prelude {
    // the trait of `App::map_report()`
    pub use beehive_core::Handlers as _;
    pub use beehive_core::{
        Address, App, Config, Ctx, Dict, Error, Hive, HiveId, Key, Message, Result, Rows,
    };
    pub use beehive_core::{Table, Time, attempt, every, handlers, pure, rcv};
    pub use std::time::Duration;
}

/// Compiles and runs the README's code as doctests; `tests/readme` checks the output that README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
