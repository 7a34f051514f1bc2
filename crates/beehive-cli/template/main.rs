//! A controller: it counts packets at each switch, and floods them. `cargo run`, or `cargo run -- --help`.

use beehive::controller::Controller;
use beehive::nom::object::{NodeId, PacketIn, PacketOut};
use beehive::prelude::*;

#[derive(App)]
struct Mine {
    packets: Dict<NodeId, u64>,
}

#[handlers]
impl Mine {
    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        *self.packets.entry(msg.node).or_default() += 1;
        if msg.is_learnable() { Some(msg.flood()) } else { None }
    }
}

fn main() -> std::process::ExitCode {
    Controller::new().app::<Mine>().run()
}
