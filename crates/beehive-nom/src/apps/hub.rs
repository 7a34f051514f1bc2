//! Hub: floods every packet. It has no state, so it needs no cell and no bee.

use crate::object::{PacketIn, PacketOut};
use beehive::{App, handlers};

/// Floods every packet and stores nothing.
#[derive(App, Debug)]
#[app(name = "hub")]
pub struct Hub {}

#[handlers]
impl Hub {
    #[rcv(stateless)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        // does not forward frames addressed to the bridge itself (LLDP, spanning tree)
        if msg.is_learnable() { Some(msg.flood()) } else { None }
    }
}
