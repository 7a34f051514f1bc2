//! A controller that counts the packets of each switch and floods them. Try `cargo run -- --help`.

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

#[cfg(test)]
mod tests {
    use super::*;
    use beehive::nom::object::{PacketInReason, PortNo};
    use beehive::testing::Kit;

    #[test]
    fn packets_are_counted_and_flooded() {
        let frame: Vec<u8> = [&[2, 0, 0, 0, 0, 2][..], &[2, 0, 0, 0, 0, 1], &[8, 0], &[0; 46]].concat();
        let (node, port, length) = (NodeId(1), PortNo(1), frame.len() as u16);
        let reason = PacketInReason::Miss;
        let packet = PacketIn { node, port, reason, length, buffer: None, data: frame.into() };
        let mut kit = Kit::of::<Mine>().start();
        assert_eq!(kit.request(packet.clone()).unwrap(), packet.flood());
        assert_eq!(kit.look::<Mine, _>(|mine| mine.packets.get(&NodeId(1)).copied()), Some(1));
    }
}
