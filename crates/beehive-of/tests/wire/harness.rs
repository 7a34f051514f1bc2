//! The properties that the fuzzers and the mutation test check for hostile bytes and text: no panics, no
//! endless loops, no reads beyond a container, no partial messages.

use beehive_of::text::{Flow, show_flow};
use beehive_of::{Error, Frame, FrameBuffer, Frames, Version, any, message};
use bytes::BytesMut;

/// Calls `body` with `bytes`, and then again with the correct length in the header, because otherwise most
/// inputs would fail at the header.
pub(crate) fn framed(bytes: &[u8], body: fn(&[u8])) {
    body(bytes);
    let Ok(length) = u16::try_from(bytes.len()) else { return };
    if bytes.len() >= 8 && bytes[2..4] != length.to_be_bytes() {
        let mut whole = bytes.to_vec();
        whole[2..4].copy_from_slice(&length.to_be_bytes());
        body(&whole);
    }
}

/// Parses the messages in `bytes` in every possible way.
pub(crate) fn parse(bytes: &[u8]) {
    for frame in Frames::new(bytes).flatten() {
        let version = frame.version().unwrap_or(Version::V1_3);
        if let Ok(message) = any::Message::parse(frame) {
            let _ = message.check_lists();
        }

        let _ = message::Message::parse_strict(frame);
        match message::Message::parse(frame) {
            Ok(message) => {
                let _ = message.check_meaning(version);
                assert!(message.display(frame.header()).to_string().starts_with("version="));
                if let message::Message::FlowMod(flow) = message {
                    let _ = show_flow(&flow, version).to_string();
                }
            }
            Err(error) => answered(error, frame),
        }
    }
}

fn answered(error: Error, frame: Frame<'_>) {
    for version in Version::ALL {
        error.answer(version);
    }
    assert!(error.offset() as usize <= frame.bytes().len(), "{error:?} beyond the message");
}

/// Checks that a valid decoded message is encoded unchanged in its version, except for padding and reserved
/// bits. In other versions, encoding must either succeed or return an error.
pub(crate) fn round_trip(bytes: &[u8]) {
    let Ok(Some((frame, _))) = Frame::split(bytes) else { return };
    let Ok(message) = message::Message::parse(frame) else { return };
    let mut out = BytesMut::new();
    for version in Version::ALL {
        out.clear();
        let own = Some(version) == frame.version();
        match message.encode_into(version, frame.xid(), &mut out) {
            Err(_) => assert!(out.is_empty(), "a partial message is left"),
            Ok(()) if own && message.check(version).is_ok() => {
                let once = out.to_vec();
                let again = message::Message::parse(Frame::whole(&once).expect("ours")).expect("ours");
                assert_eq!(again.check(version), Ok(()));
                out.clear();
                again.encode_into(version, frame.xid(), &mut out).expect("encoding succeeded before");
                assert_eq!(&out[..], &once[..]);
                if let Ok(strict) = message::Message::parse_strict(frame) {
                    out.clear();
                    strict.encode_into(version, frame.xid(), &mut out).expect("encoding succeeded before");
                    let tree = strict.tree(frame.header()).expect("the message was checked");
                    out.clear();
                    message::Message::compose(&tree, &mut out)
                        .unwrap_or_else(|error| panic!("{error}: {tree}"));

                    // If the padding is zero, the tree contains everything with two exceptions: the
                    // wildcarded fields in the fixed matches of 1.0 and 1.1, and whether the sender omitted
                    // the final padding.
                    if version >= Version::V1_2 && out.len() == once.len() {
                        assert_eq!(&out[..], &once[..], "{tree}");
                    }

                    let composed = Frame::whole(&out).expect("ours");
                    let again = message::Message::parse(composed).expect("ours");
                    assert_eq!(again.tree(composed.header()).expect("ours"), tree);
                }
            }
            Ok(()) => {}
        }
    }

    if let Ok(message) = any::Message::parse(frame) {
        for version in Version::ALL {
            out.clear();
            if message.encode_into(version, frame.xid(), &mut out).is_err() {
                assert!(out.is_empty(), "a partial message is left");
            }
        }
    }
}

/// Checks that segmenting a stream does not change its messages. The first byte is the segment length.
pub(crate) fn stream_split(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else { return };
    let mut whole = Vec::new();
    let mut failed = None;
    for frame in Frames::new(stream) {
        match frame {
            Ok(frame) => whole.push(frame.bytes().to_vec()),
            Err(error) => failed = Some(error),
        }
    }

    let mut buffer = FrameBuffer::new();
    let mut pieces = Vec::new();
    let mut ended = None;
    'stream: for piece in stream.chunks(usize::from(*piece) + 1) {
        buffer.read_target().extend_from_slice(piece);
        loop {
            match buffer.next_frame() {
                Ok(Some(frame)) => pieces.push(frame.bytes().to_vec()),
                Ok(None) => break,
                Err(error) => {
                    ended = Some(error);
                    break 'stream;
                }
            }
        }
    }

    assert_eq!(pieces, whole);
    assert_eq!(ended.is_some(), failed.is_some());
}

/// Checks that a flow parsed from text can be encoded, and that its displayed form parses to the same flow.
/// The first byte selects the version.
pub(crate) fn text(bytes: &[u8]) {
    let Some((first, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let version = Version::ALL[usize::from(*first) % Version::ALL.len()];
    let _ = Flow::parse_deletion(text, version, first & 0x80 != 0);
    let flow = match Flow::parse(text, version) {
        Ok(flow) => flow,
        Err(error) => {
            assert!(error.position() <= text.chars().count() + 1, "{error}");
            assert!(text.contains(error.token()));
            return;
        }
    };
    let mut out = BytesMut::new();
    if flow.message().encode_into(version, 1, &mut out).is_err() {
        return;
    }

    let message = message::Message::parse(Frame::whole(&out).expect("ours")).expect("ours");
    message.check(version).expect("ours");
    let shown = flow.to_string();
    let again = Flow::parse(&shown, version).unwrap_or_else(|error| panic!("{text}\n{shown}\n{error}"));
    let mut second = BytesMut::new();
    again.message().encode_into(version, 1, &mut second).expect("encoding succeeded before");
    assert_eq!(second, out, "{text}\n{shown}");
}
