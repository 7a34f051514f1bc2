//! What every hive of a cluster must agree on, as data and pure functions.
//!
//! The crate has no threads, no locks, no clock and no I/O: every function computes its result from its arguments.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
pub mod codec;
mod crash_marker;
mod dedup;
mod hash;
mod ids;
mod image;
pub mod lane;
pub mod limits;
mod log_state;
mod ownership;
mod record;
mod settings;
mod shape;
mod shapes;
mod time;

pub use address::Address;
pub use codec::DecodeError;
pub use crash_marker::{Mark, Suspect};
pub use dedup::Seen;
pub use hash::CellHasher;
pub use ids::{BeeId, CellId, CellSet, Fact, HiveId, PlaceId};
pub use image::{CellImage, EncodedCells, Op};
pub use lane::Numbers;
pub use log_state::{BeeImage, Colony, Sweep, Waiting};
pub use ownership::{Decision, Ownership, Proposal};
pub use record::{Emit, Entry, Input, Record, SWEEP_PARTS, Visited, Work, sweep_order};
pub use settings::LoggedSettings;
pub use shape::Shape;
pub use shapes::{AppShapes, Shapes};
pub use time::Time;
