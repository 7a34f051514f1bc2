//! Simulates switches in memory, with a second implementation of the driver trait.
//!
//! A simulated switch forwards packets according to a flow table with priorities, matches, actions and timeouts. It
//! sends packets without a matching flow to the controller, and records the frames sent by each port. It uses the
//! hive's clock, so a test that controls the clock controls the timeouts.

mod driver;
mod flow_table;
mod frame;
mod switch;
mod wire;

pub use driver::SimulatedDriver;
pub use flow_table::{FlowTable, Gone};
pub use frame::{frame, packet};
pub use switch::{Behavior, SimulatedSwitch};
pub use wire::Wire;
