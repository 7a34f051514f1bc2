//! Hub: floods every packet. It has no state, so it runs on the worker thread at which the packet arrives.

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
        // do not forward frames that are addressed to the bridge itself (LLDP, spanning tree)
        if msg.is_learnable() { Some(msg.flood()) } else { None }
    }
}
