//! The apps of the controller. Each app is small enough to be read in one sitting.

pub mod discovery; // links between switches, found with LLDP probes
pub mod firewall; // which conversations are allowed
pub mod forwarding; // flows along shortest paths
pub mod hosts; // where each host is, and its addresses
mod hub; // floods every packet
mod learning; // a learning switch
mod loop_guard; // which packets are accepted at which port
mod mastership; // which driver controls a switch that is connected to several hives
mod node; // each switch's intended flows: installs, reads and repairs them
pub mod topology; // the spanning tree for flooded packets

pub use discovery::{Discovery, DiscoverySettings};
pub use firewall::Firewall;
pub use forwarding::{Forwarding, ForwardingSettings};
pub use hosts::{Hosts, HostsSettings};
pub use hub::Hub;
pub use learning::{LearningSettings, LearningSwitch};
pub use loop_guard::{LoopGuard, LoopGuardSettings};
pub use mastership::Mastership;
pub use node::{NodeController, ReadingOverdue};
pub use topology::Topology;
