//! The apps of the controller. Each app is small enough to be read in one sitting.

pub mod discovery;
pub mod firewall;
pub mod forwarding;
pub mod hosts;
mod hub;
mod learning;
mod loop_guard;
mod node;
pub mod topology;

pub use discovery::{Discovery, DiscoverySettings};
pub use firewall::Firewall;
pub use forwarding::{Forwarding, ForwardingSettings};
pub use hosts::{Hosts, HostsSettings};
pub use hub::Hub;
pub use learning::{LearningSettings, LearningSwitch};
pub use loop_guard::{LoopGuard, LoopGuardSettings};
pub use node::{NodeController, ReadingOverdue};
pub use topology::Topology;
