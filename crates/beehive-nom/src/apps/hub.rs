//! Hub: every packet out of every other port. No state, so it runs wherever the packet arrived.

use crate::object::{PacketIn, PacketOut};
use beehive::{App, handlers};

/// Sends every packet out of every other port, and remembers nothing.
#[derive(App)]
#[app(name = "hub")]
pub struct Hub {}

#[handlers]
impl Hub {
    #[rcv(stateless)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        if msg.is_learnable() {
            return Some(msg.flood());
        }
        None // for the bridge itself: LLDP, spanning tree
    }
}
