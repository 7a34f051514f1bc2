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
        // what is for the bridge itself (LLDP, spanning tree) goes no further
        if msg.is_learnable() { Some(msg.flood()) } else { None }
    }
}
