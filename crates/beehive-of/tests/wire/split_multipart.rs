//! Checks that messages that are too long are either split into several messages or refused.

use beehive_of::limits::MESSAGE_LENGTH_MAX;
use beehive_of::message::*;
use beehive_of::{EncodeError, Frames, PortNo, Version};
use bytes::BytesMut;

fn reply(body: ReplyBody<'_>) -> Message<'_> {
    Message::MultipartReply(Multipart { flags: MultipartFlags::default(), body })
}

#[test]
fn a_long_reply_is_several_messages_with_every_element_once() {
    for version in Version::ALL {
        let ports: Vec<PortStatistics<'_>> =
            (1..2_000).map(|port| PortStatistics { port_no: PortNo(port), ..Default::default() }).collect();
        let message = reply(ReplyBody::Port(PortStatisticsList { ports: (&ports[..]).into() }));
        let mut out = BytesMut::from(&b"before"[..]);
        assert_eq!(message.encode_into(version, 9, &mut out), Err(EncodeError::TooLong));
        let count = message.encode_parts_into(version, 9, &mut out).unwrap();
        assert!(count > 1);
        assert_eq!(&out[..6], b"before");
        let mut numbers = Vec::new();
        let mut more = Vec::new();
        for frame in Frames::new(&out[6..]) {
            let frame = frame.unwrap();
            assert_eq!(frame.xid(), 9);
            let Message::MultipartReply(part) = Message::parse(frame).unwrap() else { panic!() };
            let ReplyBody::Port(list) = part.body else { panic!() };
            numbers.extend(list.ports.iter().map(|port| port.unwrap().port_no.0));
            more.push(part.flags.contains(MultipartFlags::MORE));
        }
        assert_eq!(numbers, (1..2_000).collect::<Vec<_>>());
        assert_eq!(more.len(), count);
        assert!(more[..count - 1].iter().all(|more| *more) && !more[count - 1]);
        // Each part is as full as possible: one more element would not fit.
        let first = Frames::new(&out[6..]).next().unwrap().unwrap().bytes().len();
        assert!(first + 200 > MESSAGE_LENGTH_MAX, "{first}");
    }
}

#[test]
fn a_message_that_fits_is_one_and_one_that_cannot_be_split_is_refused() {
    let mut out = BytesMut::new();
    let short = reply(ReplyBody::Port(PortStatisticsList::default()));
    assert_eq!(short.encode_parts_into(Version::V1_3, 1, &mut out), Ok(1));
    out.clear();
    let data = vec![0; MESSAGE_LENGTH_MAX];
    let echo = Message::EchoRequest(Echo { data: &data });
    assert_eq!(echo.encode_parts_into(Version::V1_3, 1, &mut out), Err(EncodeError::TooLong));
    assert!(out.is_empty());

    // The actions of this flow are longer than a message can be.
    let actions = vec![Action::Output(Output::default()); 5_000];
    let apply = [Instruction::ApplyActions(ActionList { actions: (&actions[..]).into() })];
    let flow = FlowEntry { instructions: (&apply).into(), ..Default::default() };
    let flows = [FlowEntry::default(), flow];
    let long = reply(ReplyBody::Flow(Flows { flows: (&flows).into() }));
    assert_eq!(long.encode_parts_into(Version::V1_3, 1, &mut out), Err(EncodeError::TooLong));
    assert!(out.is_empty());
    assert!(long.encode_parts_into(Version::V1_0, 1, &mut out).is_err());
    assert!(out.is_empty());
}

#[test]
fn requests_for_tables_are_split_too() {
    let tables = vec![TableFeatures::default(); 1_100];
    let body = RequestBody::TableFeatures(TableFeaturesList { tables: (&tables[..]).into() });
    let message = Message::MultipartRequest(Multipart { flags: MultipartFlags::default(), body });
    let mut out = BytesMut::new();
    assert_eq!(message.encode_parts_into(Version::V1_3, 1, &mut out), Ok(2));
    assert_eq!(Frames::new(&out).count(), 2);
}
