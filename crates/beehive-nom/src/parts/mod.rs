//! What apps are made of besides objects: the address table of a bridge, tables with a limit for each
//! port, deadlines, settings with ranges, the mark on an app's flows.
//!
//! They are plain data and functions over [`Rows`](beehive::Rows): an app keeps its dictionaries, so its map is derived as
//! ever, and hands the rows of one cell over.

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
