//! Replaces the `FLOOD` port with a list of ports for switches that do not support `FLOOD`.
//!
//! Since OpenFlow 1.3, `FLOOD` is optional (specification 1.3.5, 4.5), and a switch may refuse it. If so, every flooded
//! packet lists its output ports, according to the rules that the switch would apply. The list does not contain the
//! input port, ports that are down or have no link, or ports that the administrator has excluded.

use crate::driver::openflow::session::Session;
use crate::object::{Action, Actions, PacketOut, PortNo};
use beehive_of::any::ErrorMessage;

/// Message type of a packet-out, in all versions.
const PACKET_OUT: u8 = 13;
/// Error type and code of an action with an invalid output port. The numbers are the same in all versions.
const BAD_OUT_PORT: (u16, u16) = (2, 4);

impl Session {
    /// Checks whether an error means that the switch does not support `FLOOD`. If so, uses port lists from then on.
    pub(super) fn check_flood_refused(&mut self, error: &ErrorMessage<'_>) {
        let refused =
            (error.error_type, error.code) == BAD_OUT_PORT && error.data.get(1) == Some(&PACKET_OUT);
        if refused && self.flooded && !self.floods_by_port_list {
            tracing::info!(node = %self.node, "switch does not support the FLOOD port; using port lists");
            self.floods_by_port_list = true
        }
    }

    /// Returns a packet's actions with `FLOOD` replaced by one output per port.
    #[cold]
    pub(super) fn flood_to_ports(&self, packet: &PacketOut) -> Actions {
        let mut actions = Vec::new();
        for action in packet.actions.as_slice() {
            if *action != Action::Output(PortNo::FLOOD) {
                actions.push(*action);
                continue;
            }
            let ports = self.ports.values().filter(|port| port.is_flooded() && port.number != packet.port);
            actions.extend(ports.map(|port| Action::Output(port.number)));
        }

        actions.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Counters;
    use crate::driver::openflow::session::SessionSettings;
    use crate::object::{Mac, NodeId, Payload, Port};
    use beehive::Time;
    use beehive_of::any::{self, Message};
    use beehive_of::{Frames, Version};
    use bytes::{Bytes, BytesMut};
    use std::sync::Arc;

    fn port(number: PortNo) -> Port {
        Port { number, address: Mac::ZERO, name: String::new(), up: true, floods: true, forwards: true }
    }

    fn session() -> Session {
        let mut out = BytesMut::new();
        let counters = Arc::new(Counters::default());
        let mut session = Session::new(SessionSettings::default(), counters, Time::ZERO, &mut out);
        session.version = Version::V1_3;
        for number in [1, 2, 3, 4, 5].map(PortNo).into_iter().chain([PortNo::LOCAL]) {
            session.ports.insert(number, port(number));
        }
        session
    }

    fn flood(session: &mut Session) -> Vec<u32> {
        let data = Bytes::from_static(&[0; 60]);
        let actions = Actions::One(Action::Output(PortNo::FLOOD));
        let packet = PacketOut { node: NodeId(1), port: PortNo(2), payload: Payload::Whole(data), actions };
        let mut out = BytesMut::new();
        session.send(&packet, &mut out);

        let Some(Ok(frame)) = Frames::new(&out).next() else { return Vec::new() };
        let Ok(Message::PacketOut(sent)) = Message::parse(frame) else { panic!("no packet-out") };

        let out_of = |action: any::Action| match action {
            any::Action::Output { port, .. } => port.0,
            other => panic!("{other:?}"),
        };
        sent.actions.iter().map(|action| out_of(action.unwrap())).collect()
    }

    fn refusal(session: &mut Session, code: u16) {
        let quoted = [4, PACKET_OUT, 0, 8, 0, 0, 0, 1];
        session.check_flood_refused(&ErrorMessage { error_type: 2, code, data: &quoted });
    }

    #[test]
    fn a_switch_that_refuses_to_flood_is_told_the_ports() {
        let mut session = session();
        refusal(&mut session, 4);
        assert_eq!(flood(&mut session), [PortNo::FLOOD.0], "nothing was flooded before");
        refusal(&mut session, 5);
        assert_eq!(flood(&mut session), [PortNo::FLOOD.0], "the error had another code");
        refusal(&mut session, 4);
        assert_eq!(flood(&mut session), [1, 3, 4, 5, PortNo::LOCAL.0]);
    }

    #[test]
    fn ports_that_are_down_or_take_no_part_are_left_out() {
        let mut session = session();
        flood(&mut session);
        refusal(&mut session, 4);
        session.ports.insert(PortNo(1), Port { up: false, ..port(PortNo(1)) });
        session.ports.insert(PortNo(3), Port { floods: false, ..port(PortNo(3)) });
        session.ports.insert(PortNo(4), Port { forwards: false, ..port(PortNo(4)) });
        assert_eq!(flood(&mut session), [5, PortNo::LOCAL.0]);
        session.ports.retain(|number, _| *number == PortNo(2));

        assert_eq!(flood(&mut session), [0u32; 0], "no port is left");
    }
}
