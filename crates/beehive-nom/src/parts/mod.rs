//! Building blocks of apps: a bridge's address table, tables with a quota for each port, deadlines, settings with
//! ranges, and the owner of an app's flows.
//!
//! The building blocks are plain data and functions over [`Rows`](beehive::Rows). An app keeps its own dictionaries, so
//! its map is derived as usual, and passes one cell's rows to the building blocks.

mod deadline;
mod owner;
mod quota_table;
#[doc(hidden)]
pub mod settings;
mod station_table;

pub use crate::settings;
pub use deadline::{extend, seconds};
pub use owner::OwnsFlows;
pub use quota_table::{AtPort, PortQuota, QuotaTable};
pub use station_table::{Learned, StationLimits, StationTable};
