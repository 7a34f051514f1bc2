//! Checks that hostile bytes never cause panics, endless loops or reads beyond their container.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use beehive_of::any::{Hello, Message};
use beehive_of::{Error, ErrorKind, Frame, FrameBuffer, Frames, Part, Version, message};
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::corpus::{all, bytes, hex};
use crate::strategies::config;

/// Parses everything in a frame: the message, every element, and the answer to every error.
fn read(frame: Frame<'_>) -> Result<(), Error> {
    let result = Message::parse(frame).and_then(|message| {
        match message {
            Message::FeaturesReply(features) => bounded(features.ports.iter(), frame),
            Message::PacketOut(packet) => bounded(packet.actions.iter(), frame),
            Message::FlowMod(flow) => bounded(flow.actions.iter(), frame),
            Message::PortDescriptionReply(description) => bounded(description.ports.iter(), frame),
            Message::FlowStatisticsReply(statistics) => bounded(statistics.entries.iter(), frame),
            _ => {}
        }

        let mut out = BytesMut::new();
        for version in Version::ALL {
            // Encoding may fail, but must neither panic nor leave a partial message.
            if message.encode_into(version, frame.xid(), &mut out).is_err() {
                assert!(out.is_empty());
            }
            out.clear();
        }

        message.check_lists()
    });

    if let Err(error) = result {
        for version in Version::ALL {
            error.answer(version);
        }
        assert!(error.offset() as usize <= frame.bytes().len(), "{error:?} beyond the message");
    }

    read_complete(frame);
    result
}

/// Parses the complete message, shows it, checks it and encodes it in every version.
fn read_complete(frame: Frame<'_>) {
    let Ok(complete) = message::Message::parse(frame) else { return };
    let version = frame.version().unwrap_or(Version::V1_3);
    let text = complete.display(frame.header()).to_string();
    assert!(text.starts_with("version="), "{text}");
    if let Err(error) = complete.check_meaning(version) {
        error.answer(version);
    }

    let valid = complete.check(version);
    let _ = message::Message::parse_strict(frame);
    let mut out = BytesMut::new();
    for version in Version::ALL {
        if complete.encode_into(version, frame.xid(), &mut out).is_err() {
            assert!(out.is_empty(), "a partial message is left");
        } else if Some(version) == frame.version() && valid.is_ok() {
            let again = message::Message::parse(Frame::whole(&out).unwrap()).unwrap();
            assert_eq!(again.check(version), Ok(()), "{text}");
        }
        out.clear();
    }

    if let message::Message::FlowMod(flow) = complete {
        bounded(flow.match_fields.fields().0.iter(), frame);
        bounded(flow.instructions.iter(), frame);
        bounded(flow.actions.iter(), frame);
    }
}

/// Checks that an iterator ends, has no more elements than bytes, ends after an error, and is fused.
fn bounded<T>(mut elements: impl Iterator<Item = Result<T, Error>>, frame: Frame<'_>) {
    let mut count = 0;
    while let Some(element) = elements.next() {
        count += 1;
        assert!(count <= frame.bytes().len(), "more elements than bytes");
        if element.is_err() {
            assert!(elements.next().is_none(), "an element after an error");
        }
    }

    assert!(elements.next().is_none(), "not fused");
}

fn read_all(bytes: &[u8]) {
    for frame in Frames::new(bytes).flatten() {
        let _ = read(frame);
    }
}

/// Returns the message with the correct length in its header so that its contents are truncated instead of
/// the frame.
fn with_own_length(bytes: &[u8]) -> Vec<u8> {
    let mut message = bytes.to_vec();
    let length = (message.len() as u16).to_be_bytes();
    message[2..4].copy_from_slice(&length);
    message
}

#[test]
fn what_is_known_is_valid() {
    for message in all() {
        let frame = Frame::whole(&message).unwrap();
        read(frame).unwrap_or_else(|error| panic!("{error:?}: {}", hex(&message)));
        assert!(!format!("{:?}", Message::parse(frame)).is_empty());
    }
}

#[test]
fn every_truncation() {
    for message in all() {
        for length in 0..message.len() {
            let cut = &message[..length];
            assert_eq!(Frame::split(cut).map(|frame| frame.is_some()), Ok(false), "{}", hex(cut));
            if length >= 8 {
                let cut = with_own_length(cut);
                let _ = read(Frame::whole(&cut).unwrap());
            }
        }
    }
}

/// With `BEEHIVE_LONG=1`, the test tries every value at every byte of short messages, and every edge value at
/// every byte of longer messages. By default, it does so only for the shortest message of each type; it tries
/// four edge values in the shortest message of each type and version, and one edge value in all other
/// messages. This breaks the same structures at the same places in a third of the time.
#[test]
fn every_change_of_one_byte() {
    let long = std::env::var_os("BEEHIVE_LONG").is_some_and(|value| value == "1");
    let edges = [0, 1, 3, 4, 7, 8, 9, 15, 16, 24, 0x7f, 0x80, 0xfe, 0xff];
    let mut messages = all();
    messages.sort_by_key(Vec::len);
    let (mut types, mut kinds) = (HashSet::new(), HashSet::new());
    for message in messages {
        // The kind of a multipart message is in two further bytes.
        let of = message.get(8..10).filter(|_| matches!(message[1], 16..=19)).map(<[u8]>::to_vec);
        let first_of_type = types.insert((message[1], of.clone()));
        let first_of_kind = kinds.insert((message[0], message[1], of));

        // Long messages are repetitive, so edge values of lengths and types suffice for them.
        let values: Vec<u8> = if (long || first_of_type) && message.len() <= 48 {
            (0..=255).collect()
        } else if long || first_of_type {
            edges.to_vec()
        } else if first_of_kind {
            vec![0, 7, 8, 0xff]
        } else {
            vec![0xff]
        };
        let mut changed = message.clone();
        for at in 0..message.len() {
            for value in &values {
                changed[at] = *value;
                read_all(&changed);
            }
            changed[at] = message[at];
        }
    }
}

#[test]
fn a_length_of_zero_is_an_error() {
    // Each message has one element whose length is zero. Such elements have caused endless loops in other
    // controllers.
    let header = |version: u8, message_type: u8, body: &str| {
        let mut message = vec![version, message_type, 0, 0, 0, 0, 0, 1];
        message.extend(bytes(body));
        with_own_length(&message)
    };
    let zeros = |count: usize| "00".repeat(count);
    let empty_match = "0001000400000000";
    let table = [
        ("hello element", header(4, 0, "00010000"), Part::Hello),
        ("hello element of 1.5", header(6, 0, "0001000000000012"), Part::Hello),
        ("1.0 action of packet-out", header(1, 13, "ffffffff ffff 0008 0000000000000000"), Part::Action),
        ("1.0 action of flow-mod", header(1, 14, &(zeros(64) + "0000000000000000")), Part::Action),
        ("1.0 flow entry", header(1, 17, &("00010000".to_owned() + &zeros(88))), Part::Statistics),
        (
            "1.0 action of flow entry",
            header(1, 17, &("00010000".to_owned() + "0060" + &zeros(86) + "0000000000000000")),
            Part::Action,
        ),
        ("1.3 match", header(4, 14, &(zeros(40) + "0001000000000000")), Part::Match),
        ("1.3 match field", header(4, 14, &(zeros(40) + "0001000880000000")), Part::Match),
        (
            "1.3 instruction",
            header(4, 14, &(zeros(40) + empty_match + "0004000000000000")),
            Part::Instruction,
        ),
        (
            "1.3 action",
            header(4, 14, &(zeros(40) + empty_match + "0004001000000000" + "0000000000000000")),
            Part::Action,
        ),
        (
            "1.3 set-field",
            header(4, 14, &(zeros(40) + empty_match + "0004001000000000" + "0019000880000a00")),
            Part::Match,
        ),
        (
            "1.3 action of packet-out",
            header(4, 13, "ffffffff 00000001 0008 000000000000 0000000000000000"),
            Part::Action,
        ),
        ("1.3 flow entry", header(4, 19, &("0001000000000000".to_owned() + &zeros(56))), Part::Statistics),
        (
            "1.3 match of packet-in",
            header(4, 10, &("ffffffff000000000000000000000000".to_owned() + "0001000000000000" + "0000")),
            Part::Match,
        ),
    ];

    for (name, message, part) in table {
        let start = Instant::now();
        let error = read(Frame::whole(&message).unwrap()).expect_err(name);
        assert_eq!((error.kind(), error.part()), (ErrorKind::LengthTooSmall, part), "{name}: {error:?}");
        assert!(start.elapsed() < Duration::from_millis(100), "{name} took {:?}", start.elapsed());
    }
}

#[test]
fn lengths_that_lie() {
    let flow_mod = |tail: &str| {
        let mut message = vec![4, 14, 0, 0, 0, 0, 0, 1];
        message.extend([0; 40]);
        message.extend(bytes(tail));
        with_own_length(&message)
    };
    for (name, message, kind) in [
        ("match beyond the message", flow_mod("0001002000000000"), ErrorKind::LengthTooLarge),
        ("match shorter than its header", flow_mod("0001000300000000"), ErrorKind::LengthTooSmall),
        ("match without its padding", flow_mod("0001000a80000a020800"), ErrorKind::Truncated),
        ("field beyond the match", flow_mod("0001000880000a04 0000000000000000"), ErrorKind::LengthTooLarge),
        (
            "ethernet type of three bytes",
            flow_mod("0001000b80000a03 0800000000000000"),
            ErrorKind::LengthWrong,
        ),
        ("mask that is half a byte", flow_mod("0001000980000b01 0800000000000000"), ErrorKind::LengthWrong),
        ("field present twice", flow_mod("0001001080000a02 080080000a020800"), ErrorKind::Duplicate),
        ("match of another type", flow_mod("0000000400000000"), ErrorKind::Value),
        (
            "instruction beyond the message",
            flow_mod("0001000400000000 0004001800000000"),
            ErrorKind::LengthTooLarge,
        ),
        (
            "instruction of nine bytes",
            flow_mod("0001000400000000 000400090000000000"),
            ErrorKind::LengthWrong,
        ),
        (
            "action beyond the instruction",
            flow_mod("0001000400000000 0004001000000000 0000001000000001"),
            ErrorKind::LengthTooLarge,
        ),
        (
            "output of eight bytes",
            flow_mod("0001000400000000 0004001000000000 0000000800000001"),
            ErrorKind::LengthWrong,
        ),
        (
            "half an action",
            flow_mod("0001000400000000 000400100000 0000 00120008"),
            ErrorKind::LengthTooLarge,
        ),
    ] {
        let error = read(Frame::whole(&message).unwrap()).expect_err(name);
        assert_eq!(error.kind(), kind, "{name}: {error:?}");
    }
}

#[test]
fn actions_of_1_0_with_another_ones_length() {
    for (name, action, kind) in [
        ("output of sixteen bytes", "0000001000010000 0000000000000000", ErrorKind::LengthWrong),
        ("output of twelve bytes", "0000000c00010000 00000000", ErrorKind::LengthWrong),
        ("Ethernet source of eight bytes", "0004000802000000", ErrorKind::LengthWrong),
        ("enqueue of eight bytes", "000b000800010000", ErrorKind::LengthWrong),
        ("vendor action of twelve bytes", "ffff000c00002320 00000000", ErrorKind::LengthWrong),
        ("half an action", "00000008", ErrorKind::Truncated),
        ("beyond the message", "0000001800010000", ErrorKind::LengthTooLarge),
    ] {
        let mut message = vec![1, 14, 0, 0, 0, 0, 0, 1];
        message.extend([0; 64]);
        message.extend(bytes(action));
        let message = with_own_length(&message);
        let error = read(Frame::whole(&message).unwrap()).expect_err(name);
        assert_eq!((error.kind(), error.part()), (kind, Part::Action), "{name}: {error:?}");
        assert!(error.offset() >= 72, "{name}: {error:?}");
    }
}

#[test]
fn versions_that_nobody_speaks() {
    for version in [0u8, 7, 128, 255] {
        let message = [version, 5, 0, 8, 0, 0, 0, 1];
        let error = Message::parse(Frame::whole(&message).unwrap()).unwrap_err();
        assert_eq!((error.kind(), error.is_framing()), (ErrorKind::Version, false));
        // A hello is valid in every version except 0.
        let hello = [version, 0, 0, 8, 0, 0, 0, 1];
        assert_eq!(Message::parse(Frame::whole(&hello).unwrap()).is_ok(), version != 0);
    }
}

#[test]
fn a_hello_of_1_0_may_have_anything_after_its_header() {
    let hello = bytes("0100000c00000001 00010000");
    let Message::Hello(hello) = Message::parse(Frame::whole(&hello).unwrap()).unwrap() else {
        panic!("not a hello")
    };
    assert_eq!(hello, Hello { version: 1, versions: None });
}

#[test]
fn the_longest_lists_take_linear_time() {
    // A packet-out of 65 535 bytes that consists of the smallest actions: 8 000 elements.
    for (version, head) in [(1u8, "ffffffff ffff fff0"), (4, "ffffffff 00000001 ffe0 000000000000")] {
        let mut message = vec![version, 13, 0, 0, 0, 0, 0, 1];
        message.extend(bytes(head));
        let room = (65_535 - message.len()) / 8;
        let strip: &[u8] = if version == 1 { &[0, 3, 0, 8, 0, 0, 0, 0] } else { &[0, 18, 0, 8, 0, 0, 0, 0] };
        message.extend(strip.repeat(room));

        // Set the length of the actions to the actual length.
        let at = if version == 1 { 14 } else { 16 };
        message[at..at + 2].copy_from_slice(&((room * 8) as u16).to_be_bytes());
        let message = with_own_length(&message);
        let start = Instant::now();
        let decoded = Message::parse(Frame::whole(&message).unwrap()).unwrap();
        decoded.check_lists().unwrap();
        assert!(start.elapsed() < Duration::from_millis(50), "{:?}", start.elapsed());
    }
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        for frame in Frames::new(&bytes).flatten() {
            assert!(!format!("{:?}", Message::parse(frame)).is_empty());
        }
    }

    #[test]
    fn random_bodies(version in 1..=6u8, message_type in 0..37u8, body in vec(any::<u8>(), 0..200)) {
        let mut message = vec![version, message_type, 0, 0, 0, 0, 0, 0];
        message.extend(body);
        read_all(&with_own_length(&message));
    }

    #[test]
    fn random_changes(
        which in any::<prop::sample::Index>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let messages = all();
        let mut message = which.get(&messages).clone();
        for (at, value) in changes {
            let at = at.index(message.len());
            message[at] = value;
        }
        message.truncate(8 + cut.index(message.len()));
        read_all(&with_own_length(&message));
    }

    #[test]
    fn a_stream_in_any_pieces(cuts in vec(1..80usize, 1..100)) {
        let messages = all();
        let stream: Vec<u8> = messages.concat();
        let mut received = FrameBuffer::new();
        let mut count = 0;
        let mut rest = &stream[..];
        for cut in cuts.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }

            let (piece, after) = rest.split_at(cut.min(rest.len()));
            rest = after;
            received.read_target().extend_from_slice(piece);
            while let Some(frame) = received.next_frame().unwrap() {
                prop_assert_eq!(frame.bytes(), &messages[count][..]);
                count += 1;
            }
        }

        prop_assert_eq!(count, messages.len());
    }
}
