//! **Beehive**: write what looks like a single-threaded program, message handlers over dictionaries, and run it sharded,
//! exclusive and transactional.
//!
//! A procedural macro reads the handlers' bodies and derives which cells of which dictionaries each message touches. Every
//! cell has exactly one owner, so there is nothing to lock; every message is one transaction, so there is nothing to clean
//! up.
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
//! The [guide] goes on from here: keys and maps, transactions, questions, time, sockets, testing, and
//! [a page for each error](guide::errors).
//!
//! The crate is a facade: the programming model and one hive are in `beehive-core`, network objects and the OpenFlow
//! driver in `beehive-nom` (feature `nom`), the OpenFlow codec in `beehive-of`. Feature `controller` is the whole controller,
//! for apps of one's own. Feature `testing` is the test kit, module `testing`; tests turn it on.

pub mod guide;

pub use beehive_core::*;

#[cfg(feature = "nom")]
pub use {beehive_nom as nom, beehive_of as of};

/// The whole controller daemon, with apps of one's own.
#[cfg(feature = "controller")]
pub mod controller {
    pub use beehive_cli::Controller;
}

/// What nearly every program needs.
pub mod prelude {
    // for `App::map_report()`
    pub use beehive_core::Handlers as _;
    pub use beehive_core::{
        Address, App, Config, Ctx, Dict, Error, Hive, HiveId, Key, Message, Result, Rows,
    };
    pub use beehive_core::{Table, Time, attempt, every, handlers, pure, rcv};
    pub use std::time::Duration;
}

/// The README's code is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
