//! Checks embedded messages: they must have the same version as the outer message, and are checked as
//! strictly as the outer message.

use beehive_of::message::*;
use beehive_of::{Answer, Error, ErrorKind, Frame, Version};
use bytes::BytesMut;

pub(crate) fn encoded(message: &Message<'_>, version: Version) -> Vec<u8> {
    let mut out = BytesMut::new();
    message.encode_into(version, 7, &mut out).unwrap_or_else(|error| panic!("{version} {error}"));
    out.to_vec()
}

pub(crate) fn strictly(bytes: &[u8]) -> Result<Message<'_>, Error> {
    Message::parse_strict(Frame::whole(bytes).unwrap())
}

/// Returns the messages of a version that can contain another message.
fn holders(inner: &[u8], version: Version) -> Vec<Vec<u8>> {
    let request = InnerMessage { bytes: inner, padded: false };
    let forward = RequestForward { request };
    let add = BundleAdd { bundle_id: 1, message: request, ..Default::default() };
    let onf = |message| Message::Experimenter(Extended::Onf(message));
    let messages = match version {
        Version::V1_3 => {
            vec![onf(OnfMessage::RequestForward(forward)), onf(OnfMessage::BundleAdd(add))]
        }
        _ => vec![Message::RequestForward(forward), Message::BundleAdd(add)],
    };

    messages.iter().map(|message| encoded(message, version)).collect()
}

#[test]
fn a_message_inside_of_another_one_has_its_version() {
    for version in [Version::V1_3, Version::V1_4, Version::V1_5] {
        let group = Message::GroupMod(GroupMod { group_id: GroupId(9), ..Default::default() });
        let inner = encoded(&group, version);
        for holder in holders(&inner, version) {
            let message = strictly(&holder).unwrap();
            assert_eq!(encoded(&message, version), holder);

            let at = holder.windows(inner.len()).position(|window| window == inner).unwrap();
            for wire in [0, 1, 7, version.wire() - 1, version.wire() ^ 1] {
                let mut bytes = holder.clone();
                bytes[at] = wire;
                let error = strictly(&bytes).unwrap_err();
                assert_eq!(
                    (error.kind(), error.offset() as usize),
                    (ErrorKind::Version, at),
                    "{version} {wire}"
                );
                assert_eq!(error.answer(version), Answer { error_type: 1, code: 0 });
                assert!(!error.is_framing());
            }
        }
    }
}

#[test]
fn what_is_strict_is_strict_about_a_message_inside() {
    let inner = encoded(&Message::FlowMod(FlowMod::default()), Version::V1_3);
    for holder in holders(&inner, Version::V1_3) {
        let mut bytes = holder.clone();
        *bytes.last_mut().unwrap() = 1;
        let error = strictly(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Padding);
        assert!(Message::parse(Frame::whole(&bytes).unwrap()).unwrap().check(Version::V1_3).is_ok());
    }
}

#[test]
fn a_bundles_message_that_is_cut_off_has_a_bad_length() {
    let inner = encoded(&Message::FlowMod(FlowMod::default()), Version::V1_4);
    let mut bytes = holders(&inner, Version::V1_4).remove(1);
    bytes[18] = 0xff;
    let error = strictly(&bytes).unwrap_err();
    assert_eq!(error.answer(Version::V1_4), Answer { error_type: 17, code: 8 });
}
