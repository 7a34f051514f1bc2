//! Hub: floods every packet. It has no state, so it runs on whichever worker the packet arrives at.

use crate::object::{PacketIn, PacketOut};
use beehive::{App, handlers};

/// Floods every packet and stores nothing.
#[derive(App)]
#[app(name = "hub")]
pub struct Hub {}

#[handlers]
impl Hub {
    #[rcv(stateless)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        // frames to the bridge itself (LLDP, spanning tree) are not forwarded
        if msg.is_learnable() { Some(msg.flood()) } else { None }
    }
}
