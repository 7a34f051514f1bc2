//! A switch that exists in memory only, and speaks network objects: the second driver.
//!
//! It forwards by a flow table with priorities, matches, actions and timeouts, brings up what no flow takes, and keeps
//! what it sends out of each port for whoever looks. Time is the hive's, so a test that owns the clock owns the timeouts.

mod driver;
mod flow_table;
mod frame;
mod switch;
mod wire;

pub use driver::SimulatedDriver;
pub use flow_table::{FlowTable, Gone};
pub use frame::frame;
pub use switch::{Behavior, SimulatedSwitch};
pub use wire::Wire;
