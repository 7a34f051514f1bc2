//! Test tools for apps: a hive on a virtual clock, and re-runs of a scenario with different distributions of cells
//! over bees.
//!
//! A [`Kit`] runs one or several apps in the test's own thread, on the same hive code as in production. Only the
//! platform below the hive differs: time stands still until [`Kit::advance`] moves it, and randomness comes from a
//! seed.
//!
//! ```
//! # extern crate beehive_core as beehive;
//! use beehive::testing::Kit;
//! # use beehive::{App, Ctx, Dict, Message, handlers};
//! use std::time::Duration;
//!
//! #[derive(Message, PartialEq, Debug)]
//! struct Beat(u64);
//! #[derive(Message, PartialEq, Debug)]
//! struct Missed(u64);
//!
//! /// Reports every sender that has been silent for two ticks.
//! #[derive(App)]
//! struct Watch {
//!     silent: Dict<u64, u32>,
//! }
//!
//! #[handlers]
//! impl Watch {
//!     #[rcv]
//!     fn beat(&mut self, msg: &Beat) {
//!         self.silent.put(msg.0, 0);
//!     }
//!     #[every("10s", each = silent)]
//!     fn tick(&mut self, who: &u64, ctx: &mut Ctx) {
//!         let silent = self.silent.entry(*who).or_default();
//!         *silent += 1;
//!         if *silent == 2 {
//!             ctx.emit(Missed(*who))
//!         }
//!     }
//! }
//!
//! let mut kit = Kit::of::<Watch>().start();
//! kit.emit_all([Beat(1), Beat(2)]).advance(Duration::from_secs(16)).emit(Beat(2));
//! assert!(kit.sent::<Missed>().is_empty());
//! kit.advance(Duration::from_secs(10));
//! assert_eq!(kit.sent::<Missed>(), [Missed(1)]);
//! assert_eq!(kit.map::<Watch, _>(&Beat(7)).words, ["silent[7]"]);
//! assert_eq!(kit.look::<Watch, _>(|watch| watch.silent.get(&2).copied()), Some(1));
//! ```
//!
//! # Limits of a single run
//!
//! A hive handles one sender's messages to one cell in order, but guarantees no order between messages from different
//! senders. A test that sends one message after another always sees the same order, so an app that relies on that order
//! passes the test. [`Setup::check`] runs a scenario with one bee for all cells, with one bee per cell, and with bees
//! that merge at random while they work. It compares the answers, the messages sent, and the final state.
//!
//! In this example, the app keeps the temperature of a room that was *reported last*, but the reports of two sensors
//! race:
//!
//! ```
//! # extern crate beehive_core as beehive;
//! # use beehive::testing::Kit;
//! # use beehive::{App, Ctx, Dict, Message, handlers};
//! #[derive(Message)]
//! struct Reading { sensor: u64, room: u64, degrees: i64, number: u64 }
//! #[derive(Message)]
//! struct Report { room: u64, degrees: i64, number: u64 }
//!
//! #[derive(App)]
//! struct Climate {
//!     offset: Dict<u64, i64>,
//!     room: Dict<u64, (u64, i64)>,
//! }
//!
//! #[handlers]
//! impl Climate {
//!     #[rcv]
//!     fn reading(&mut self, msg: &Reading, ctx: &mut Ctx) {
//!         let offset = self.offset.get(&msg.sensor).copied().unwrap_or(0);
//!         ctx.emit(Report { room: msg.room, degrees: msg.degrees - offset, number: msg.number })
//!     }
//!     #[rcv]
//!     fn report(&mut self, msg: &Report) {
//!         self.room.put(msg.room, (msg.number, msg.degrees)); // the last report to arrive
//!     }
//! }
//!
//! fn two_sensors(kit: &mut Kit) {
//!     let reading = |sensor, degrees, number| Reading { sensor, room: 7, degrees, number };
//!     kit.emit_all([reading(1, 20, 1), reading(2, 21, 2)]);
//! }
//! // Passes every time:
//! let mut kit = Kit::of::<Climate>().start();
//! two_sensors(&mut kit);
//! assert_eq!(kit.look::<Climate, _>(|app| app.room.get(&7).copied()), Some((2, 21)));
//! // But the order depends on how the cells are distributed:
//! let found = Kit::of::<Climate>().compare(two_sensors).unwrap_err();
//! assert_eq!(found.together, ["room[7] = [2,21]"]);
//! assert_eq!(found.spread_out, ["room[7] = [1,20]"]);
//! ```
//!
//! If the message contains the number of the reading, the handler can keep the reading with the highest number rather
//! than the one that arrives last:
//!
//! ```
//! # extern crate beehive_core as beehive;
//! # use beehive::testing::Kit;
//! # use beehive::{App, Ctx, Dict, Message, handlers};
//! # #[derive(Message)]
//! # struct Reading { sensor: u64, room: u64, degrees: i64, number: u64 }
//! # #[derive(Message)]
//! # struct Report { room: u64, degrees: i64, number: u64 }
//! # #[derive(App)]
//! # struct Climate {
//! #     offset: Dict<u64, i64>,
//! #     room: Dict<u64, (u64, i64)>,
//! # }
//! # #[handlers]
//! # impl Climate {
//! #     #[rcv]
//! #     fn reading(&mut self, msg: &Reading, ctx: &mut Ctx) {
//! #         let offset = self.offset.get(&msg.sensor).copied().unwrap_or(0);
//! #         ctx.emit(Report { room: msg.room, degrees: msg.degrees - offset, number: msg.number })
//! #     }
//! #[rcv]
//! fn report(&mut self, msg: &Report) {
//!     let room = self.room.entry(msg.room).or_default();
//!     *room = (*room).max((msg.number, msg.degrees));
//! }
//! # }
//! # fn two_sensors(kit: &mut Kit) {
//! #     let reading = |sensor, degrees, number| Reading { sensor, room: 7, degrees, number };
//! #     kit.emit_all([reading(1, 20, 1), reading(2, 21, 2)]);
//! # }
//! Kit::of::<Climate>().check(two_sensors);
//! ```
//!
//! # Crashes
//!
//! A [`Cluster`] runs several hives on one virtual clock, and lets them crash, pause, lose packets, and lose their logs to one another.
//! [`ClusterSetup::check`] runs a scenario with many seeds, and shows the command that repeats a failure.
//!
//! # A hive on all cores
//!
//! A [`History`] records the execution of a hive running as in production, and checks whether a single bee would have
//! produced the same results.
//!
//! The module [`maps`] compares the cells named by a map with those touched by its handler. [`TestJournal`] is a
//! journal that commits late, refuses entries and stops.

pub(crate) mod cluster;
mod history;
mod hooks;
mod journal;
mod kit;
pub mod maps;
mod platform;
mod rerun;
mod setup;
mod spread;
mod state_copy;

#[doc(hidden)]
pub use crate::hive::UnderWay;
pub use crate::mutant::Mutant;
pub use cluster::{Cluster, ClusterSetup, Explored, FailedSeed, FaultKind, Faults, NetworkFaults, Trace};
#[doc(hidden)]
pub use history::Fault;
pub use history::{Deviation, History, HistorySummary, Shaking, merge_two, move_one, shake};
pub use journal::TestJournal;
pub use kit::Kit;
#[cfg(test)]
pub(crate) use platform::Chance;
pub use platform::VirtualPlatform;
pub use rerun::Difference;
pub use setup::Setup;
pub use spread::Spread;
pub use state_copy::StateCopy;
