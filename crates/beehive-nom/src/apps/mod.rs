//! The apps of the controller, each small enough to read in one sitting.

pub mod firewall;
mod hub;
mod learning;
mod node;

pub use firewall::Firewall;
pub use hub::Hub;
pub use learning::{LearningSettings, LearningSwitch};
pub use node::{NodeController, ReadingOverdue};
