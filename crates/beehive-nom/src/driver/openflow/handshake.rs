//! Performs the handshake: hello, features, setup. An out-of-order message ends the connection.

use crate::driver::openflow::session::{Phase, Session, Step};
use crate::driver::openflow::wire;
use crate::driver::{Close, Counters, Events};
use crate::limits;
use crate::object::{NodeId, PortNo};
use beehive::Time;
use beehive_of::any::{Echo, ErrorMessage, Features, Hello, Message, PortDescription, SwitchConfig};
use beehive_of::{EncodeError, Frame, Version};
use bytes::BytesMut;

impl Session {
    /// Handles the next frame of a switch that has not completed the handshake.
    ///
    /// # Errors
    ///
    /// Returns an error if the switch supports no common version, does not speak OpenFlow, or sent a message out of
    /// order. `out` then contains the error message for the switch.
    pub fn handshake<E: Events>(
        &mut self,
        frame: Frame<'_>,
        now: Time,
        out: &mut BytesMut,
        events: &mut E,
    ) -> Result<Step, Close> {
        Counters::add(&self.counters.messages, 1);
        if self.phase == Phase::Hello {
            return self.handle_hello(frame, out);
        }
        if frame.header().version != self.version.wire() {
            return Err(self.wrong_version(frame, out));
        }

        let message = match Message::parse(frame).and_then(|m| m.check_lists().map(|()| m)) {
            Ok(message) => message,
            Err(error) => return Err(self.malformed(frame, error, out)),
        };
        match message {
            Message::EchoRequest(Echo { data }) => {
                // cannot fail, because the data came from a frame and therefore fits into one
                let _ = Echo { data }.encode_reply_into(self.version, frame.xid(), out);
            }
            Message::Error(error) => {
                Counters::add(&self.counters.errors, 1);
                self.setup_refused(frame.xid(), &error)?;
            }
            Message::FeaturesReply(features) => return self.features(&features, frame.xid()),
            Message::PortStatus(status) => {
                if self.early_port_status.len() < limits::PORTS_PER_NODE_MAX {
                    self.early_port_status.push(status)
                }
            }
            Message::PortDescriptionReply(description) => self.description(&description, frame.xid())?,
            Message::BarrierReply => {
                if let Phase::Setup { barrier, .. } = &mut self.phase
                    && *barrier == Some(frame.xid())
                {
                    *barrier = None
                }
            }
            Message::PacketIn(_) => Counters::add(&self.counters.packet_ins_early, 1),
            _ => Counters::add(&self.counters.messages_ignored, 1),
        }

        if let Phase::Setup { ports: None, barrier: None, .. } = self.phase {
            self.become_ready(now, events);
            return Ok(Step::Ready);
        }

        Ok(Step::Continue)
    }

    /// Checks the start of an incomplete first message. Bytes that do not begin like a hello are refused immediately.
    /// Otherwise the first bytes of HTTP or TLS would be taken for the header of a long message, and the controller
    /// would wait for it.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not the start of a hello.
    pub fn check_partial_frame(&mut self, start: &[u8], out: &mut BytesMut) -> Result<(), Close> {
        let [version, kind, high, low, ..] = *start else { return Ok(()) };

        let length = usize::from(u16::from_be_bytes([high, low]));
        let hello = version != 0 && kind <= 1 && length <= limits::HELLO_BYTES_MAX;
        if self.phase != Phase::Hello || hello {
            return Ok(());
        }

        // bad request, bad type (the same numbers in every version)
        let answer = beehive_of::Answer { error_type: 1, code: 1 };
        let _ = ErrorMessage::answering(answer, start).encode_into(self.version, 0, out);
        Err(Close::Malformed("the first message is not a hello".into()))
    }

    fn handle_hello(&mut self, frame: Frame<'_>, out: &mut BytesMut) -> Result<Step, Close> {
        let hello = match Message::parse(frame) {
            Ok(Message::Hello(hello)) => hello,
            Ok(Message::Error(error)) => {
                return Err(Close::Version(format!(
                    "the switch refused the hello: {}",
                    describe_error(&error)
                )));
            }
            Ok(_) => return Err(self.unexpected_message(frame, "the first message is not a hello", out)),
            Err(error) if frame.header().message_type == 0 => return Err(self.malformed(frame, error, out)),
            Err(_) => return Err(self.unexpected_message(frame, "the first message is not a hello", out)),
        };

        let Some(version) = hello.negotiate(self.settings.versions) else {
            return Err(self.no_version_in_common(&hello, frame.xid(), out));
        };

        self.version = version;
        let xid = self.xid();
        self.phase = Phase::Features { xid };
        encoded(Message::FeaturesRequest.encode_into(version, xid, out))?;

        Ok(Step::Continue)
    }

    #[cold]
    fn no_version_in_common(&mut self, hello: &Hello, xid: u32, out: &mut BytesMut) -> Close {
        let theirs = match hello.versions {
            Some(_) => "none of these versions, according to its version bitmap".to_string(),
            None => format!("at most wire version {}", hello.version),
        };
        // uses the version in the switch's hello if that version is known, and otherwise the lowest version
        self.version = Version::from_wire(hello.version).unwrap_or(Version::V1_0);
        let words = "Beehive supports OpenFlow 1.0 to 1.5; configure one of these versions at the switch \
            (Open vSwitch: ovs-vsctl set bridge BRIDGE protocols=OpenFlow13)";
        let _ = ErrorMessage::hello_failed(words).encode_into(self.version, xid, out);

        Close::Version(format!(
            "no common OpenFlow version: the controller supports 1.0 to 1.5, the switch {theirs}"
        ))
    }

    #[cold]
    fn unexpected_message(&mut self, frame: Frame<'_>, why: &str, out: &mut BytesMut) -> Close {
        // bad request, bad type (the same numbers in every version)
        let answer = beehive_of::Answer { error_type: 1, code: 1 };
        let _ = ErrorMessage::answering(answer, frame.bytes()).encode_into(self.version, frame.xid(), out);
        Close::Malformed(why.into())
    }

    #[cold]
    pub(super) fn wrong_version(&mut self, frame: Frame<'_>, out: &mut BytesMut) -> Close {
        // bad request, bad version (the same numbers in every version)
        let answer = beehive_of::Answer { error_type: 1, code: 0 };
        let _ = ErrorMessage::answering(answer, frame.bytes()).encode_into(self.version, frame.xid(), out);
        let (was, agreed) = (frame.header().version, self.version.wire());
        Close::Malformed(format!(
            "received a message of wire version {was} after negotiating version {agreed}"
        ))
    }

    fn features(&mut self, features: &Features<'_>, xid: u32) -> Result<Step, Close> {
        if self.phase != (Phase::Features { xid }) {
            Counters::add(&self.counters.messages_ignored, 1);
            return Ok(Step::Continue);
        }

        self.node = NodeId(features.datapath_id);
        self.auxiliary = features.auxiliary_id != 0;
        // cannot fail, because the list was checked when the message was parsed
        features.ports.iter().flatten().for_each(|port| self.add_port(&port));
        self.phase = Phase::Identified;

        Ok(Step::Identified { node: self.node, auxiliary: self.auxiliary })
    }

    /// Admits the switch and sends the setup messages.
    ///
    /// # Errors
    ///
    /// Currently never returns an error, because every setup message can be encoded in every version.
    pub fn admit(&mut self, now: Time, out: &mut BytesMut) -> Result<(), Close> {
        let version = self.version;
        let config = SwitchConfig { flags: 0, miss_send_len: u16::MAX };
        encoded(config.encode_set_into(version, self.xid(), out))?;
        let mut ports = None;

        if version >= Version::V1_3 && !self.auxiliary {
            let xid = self.xid();
            encoded(PortDescription::encode_request_into(version, xid, out))?;
            ports = Some(xid);
        }

        if version == Version::V1_0 {
            encoded(wire::touch(version, self.xid(), out))?;
        }

        let barrier = self.xid();
        encoded(Message::BarrierRequest.encode_into(version, barrier, out))?;
        self.phase = Phase::Setup { ports, barrier: Some(barrier), parts: 0, since: now };
        Ok(())
    }

    fn description(&mut self, description: &PortDescription<'_>, xid: u32) -> Result<(), Close> {
        let Phase::Setup { ports, parts, .. } = &mut self.phase else {
            Counters::add(&self.counters.messages_ignored, 1);
            return Ok(());
        };
        if *ports != Some(xid) {
            Counters::add(&self.counters.messages_ignored, 1);
            return Ok(());
        }

        *parts += 1;
        if *parts > limits::DESCRIPTION_PARTS_MAX {
            return Err(Close::Malformed("the port description reply has too many parts".into()));
        }

        if !description.more {
            *ports = None
        }

        description.ports.iter().flatten().for_each(|port| self.add_port(&port));
        Ok(())
    }

    fn add_port(&mut self, port: &beehive_of::any::Port) {
        let number = wire::port_from(port.number);
        if PortNo::is_single(number) && self.ports.len() < limits::PORTS_PER_NODE_MAX {
            self.ports.insert(number, wire::port(port));
        }
    }

    /// Handles an error in reply to a setup message. If possible, the switch is served anyway.
    fn setup_refused(&mut self, xid: u32, error: &ErrorMessage<'_>) -> Result<(), Close> {
        match &mut self.phase {
            Phase::Features { xid: asked } if *asked == xid => {
                return Err(Close::Malformed(format!(
                    "the switch refused the features request: {}",
                    describe_error(error)
                )));
            }
            Phase::Setup { ports, .. } if *ports == Some(xid) => *ports = None,
            Phase::Setup { barrier, .. } if *barrier == Some(xid) => *barrier = None,
            _ => {}
        }

        tracing::warn!(node = %self.node, error = describe_error(error), "switch refused a setup message");
        Ok(())
    }
}

/// Converts an encoding error. Handshake messages have only fixed parts, so an error is a bug in this crate.
fn encoded(result: Result<(), EncodeError>) -> Result<(), Close> {
    result.map_err(|error| Close::Malformed(format!("cannot encode a handshake message: {error}")))
}

/// Describes an error message from the switch.
pub(super) fn describe_error(error: &ErrorMessage<'_>) -> String {
    let words = error.data.get(..limits::ERROR_TEXT_BYTES_MAX).unwrap_or(error.data);
    if error.error_type == ErrorMessage::HELLO_FAILED && !words.is_empty() {
        return words.escape_ascii().to_string();
    }
    format!("error type {} code {}", error.error_type, error.code)
}
