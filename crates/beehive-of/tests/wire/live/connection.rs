//! A controller connection to the switch that decodes every message strictly and checks that it is encoded
//! unchanged.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use beehive_of::message::{ErrorMessage, Message};
use beehive_of::{Frame, FrameBuffer, Version, VersionSet, any};
use bytes::BytesMut;

use super::switch::Switch;
use crate::corpus::hex;

/// Maximum time for the switch to answer. It is generous, because the machine may be under load.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A connection that uses one version.
pub(super) struct Connection {
    stream: UnixStream,
    received: FrameBuffer,
    version: Version,
    xid: u32,
    /// Number of messages that were received and checked.
    pub(super) count: usize,
}

impl Connection {
    /// Connects and negotiates exactly this version.
    pub(super) fn open(switch: &Switch, version: Version) -> Self {
        let stream = UnixStream::connect(switch.socket()).unwrap();
        stream.set_read_timeout(Some(ANSWER_LIMIT)).unwrap();
        let mut connection = Self { stream, received: FrameBuffer::new(), version, xid: 0x100, count: 0 };
        let mut hello = BytesMut::new();
        let versions = any::Hello::new(VersionSet::only(version));
        any::Message::Hello(versions).encode_into(version, 0, &mut hello).unwrap();
        connection.stream.write_all(&hello).unwrap();
        let answer = connection.receive();
        assert_eq!(answer[1], 0, "not a hello: {}", hex(&answer));
        connection
    }

    /// Sends a message. Returns its transaction identifier.
    pub(super) fn send(&mut self, message: &Message<'_>) -> u32 {
        self.xid += 1;
        let mut out = BytesMut::new();
        message
            .encode_into(self.version, self.xid, &mut out)
            .unwrap_or_else(|error| panic!("{error}: {message:?}"));
        self.stream.write_all(&out).unwrap();
        self.xid
    }

    /// Returns the transaction identifier of the next message.
    pub(super) fn next_xid(&self) -> u32 {
        self.xid + 1
    }

    /// Sends an encoded message with the next transaction identifier.
    pub(super) fn send_bytes(&mut self, message: &[u8]) -> u32 {
        self.xid += 1;
        let mut message = message.to_vec();
        message[4..8].copy_from_slice(&self.xid.to_be_bytes());
        self.stream.write_all(&message).unwrap();
        self.xid
    }

    /// Returns the next message. Answers and skips echo requests of the switch.
    pub(super) fn receive(&mut self) -> Vec<u8> {
        loop {
            match self.received.next_frame().unwrap() {
                Some(frame) if frame.bytes()[1] == 2 => {
                    let mut answer = frame.bytes().to_vec();
                    answer[1] = 3;
                    self.stream.write_all(&answer).unwrap();
                    continue;
                }
                Some(frame) => {
                    goes_round(frame);
                    self.count += 1;
                    return frame.bytes().to_vec();
                }
                None => {}
            }

            let mut buffer = [0; 65_536];
            let length = self.stream.read(&mut buffer).expect("the switch answers");
            assert!(length > 0, "the switch has closed the connection");
            self.received.read_target().extend_from_slice(&buffer[..length]);
        }
    }

    /// Sends a barrier and returns all messages that arrive before its reply.
    pub(super) fn settle(&mut self) -> Vec<Vec<u8>> {
        let barrier = self.send(&Message::BarrierRequest(Default::default()));
        let mut messages = Vec::new();
        loop {
            let message = self.receive();
            let frame = Frame::whole(&message).unwrap();
            if frame.xid() == barrier {
                assert!(matches!(Message::parse(frame), Ok(Message::BarrierReply(_))), "{}", hex(&message));
                return messages;
            }
            messages.push(message);
        }
    }

    /// Sends a message. Returns all messages that it causes.
    pub(super) fn ask(&mut self, message: &Message<'_>) -> Vec<Vec<u8>> {
        self.send(message);
        self.settle()
    }

    /// Returns the first message for which `is` returns true. The message may be in `came`, or may be
    /// received later, because asynchronous messages can arrive after the barrier reply.
    ///
    /// # Panics
    ///
    /// Panics with the received messages if no such message arrives in time.
    pub(super) fn wait_for(&mut self, came: &[Vec<u8>], is: impl Fn(&Message<'_>) -> bool) -> Vec<u8> {
        let right = |bytes: &[u8]| is(&Message::parse(Frame::whole(bytes).unwrap()).unwrap());
        if let Some(found) = came.iter().find(|bytes| right(bytes)) {
            return found.clone();
        }

        let start = Instant::now();
        let mut others: Vec<String> = came.iter().map(|message| hex(message)).collect();
        while start.elapsed() < ANSWER_LIMIT {
            // The switch answers a barrier immediately, so this never waits for the read timeout.
            for message in self.settle() {
                if right(&message) {
                    return message;
                }
                others.push(hex(&message));
            }
            std::thread::sleep(Duration::from_millis(2));
        }

        panic!("{}: the message did not arrive; received: {others:#?}", self.version)
    }

    /// Sends a message that the switch must not refuse. Returns all messages that it causes.
    pub(super) fn succeed(&mut self, message: &Message<'_>) -> Vec<Vec<u8>> {
        let answers = self.ask(message);
        for answer in &answers {
            if let Some(error) = refusal(answer) {
                panic!("{} refuses {message:?}: {error}", self.version);
            }
        }
        answers
    }
}

/// The names of Nicira's error type: before 1.2, and from 1.2 on.
pub(super) const NICIRA: &[&str] = &["nicira", "experimenter"];

/// Returns the names of an error message's type and code; `None` for other messages.
pub(super) fn refusal(message: &[u8]) -> Option<String> {
    let frame = Frame::whole(message).unwrap();
    match Message::parse(frame) {
        Ok(Message::Error(ErrorMessage { error_type, code, .. })) => {
            let version = frame.version()?;
            let kind = match error_type {
                // 1.0 and 1.1 have no error type for experimenters; Open vSwitch uses this number.
                0xb0c2 => "nicira",
                known => beehive_of::error_type_name(version, known).unwrap_or("unknown"),
            };

            Some(match beehive_of::error_code_name(version, error_type, code) {
                Some(code) => format!("{kind} {code}"),
                None => format!("{kind} {error_type}/{code}"),
            })
        }
        _ => None,
    }
}

/// Corrects a message that deviates from the specification: the switch sends the meter features of 1.5 in the
/// format of 1.3, which is eight bytes shorter.
fn as_specified(sent: &[u8]) -> Vec<u8> {
    let mut bytes = sent.to_vec();
    if let [6, 19, 0, 32, _, _, _, _, 0, 11, ..] = sent {
        bytes[3] = 40;
        bytes.extend([0; 8]);
    }
    bytes
}

/// Checks that a message of the switch is valid, is encoded unchanged, and survives the conversion to a tree
/// and back.
fn goes_round(frame: Frame<'_>) {
    let version = frame.version().unwrap();
    let digits = || hex(&as_specified(frame.bytes()));
    let message = Message::parse_strict(frame).unwrap_or_else(|error| panic!("{error}: {}", digits()));
    let structure = format!("{message:?}");
    assert!(!structure.contains("Unknown"), "an unknown element in {structure}: {}", digits());
    message.check_meaning(version).unwrap_or_else(|error| panic!("{error}: {}", digits()));
    let told = message.display(frame.header()).to_string();
    let mut out = BytesMut::new();
    message.encode_into(version, frame.xid(), &mut out).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(hex(&out), digits(), "{told}");

    let tree = message.tree(frame.header()).unwrap();
    let mut composed = BytesMut::new();
    Message::compose(&tree, &mut composed).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(hex(&composed), digits(), "{told}");

    let general = any::Message::parse(frame).unwrap_or_else(|error| panic!("{error}: {told}"));
    general.check_lists().unwrap_or_else(|error| panic!("{error}: {told}"));
}
