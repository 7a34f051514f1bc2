//! Tests hostile switches: their own connections end within bounded time, and other switches are still
//! served.

use crate::peer::{Controller, Peer, encode, eventually, features, frame_between};
use beehive_core::Time;
use beehive_nom::driver::openflow::{ListenerSettings, Session, SessionSettings};
use beehive_nom::driver::{Event, Events};
use beehive_nom::object::PacketIn;
use beehive_of::any::{Echo, Message};
use beehive_of::{Frame, Frames, Version};
use bytes::{Bytes, BytesMut};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

/// The point up to which a hostile switch follows the protocol.
#[derive(Clone, Copy, Debug)]
enum After {
    Nothing,
    Hello,
    Join,
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_malformed_ends_its_own_connection_only() {
    let controller = Controller::start().await;
    let mut bystander = controller.join(Version::V1_3, 1000).await;
    let cases: &[(&str, After, &[u8])] = &[
        ("hello element of length zero", After::Nothing, &[4, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0]),
        ("hello element that is cut off", After::Nothing, &[4, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 8]),
        ("length 0", After::Nothing, &[1, 0, 0, 0, 0, 0, 0, 0]),
        ("length 7", After::Nothing, &[1, 0, 0, 7, 0, 0, 0, 0]),
        ("version 0", After::Nothing, &[0, 0, 0, 8, 0, 0, 0, 0]),
        ("a message before hello", After::Nothing, &[1, 2, 0, 8, 0, 0, 0, 0]),
        ("features before hello", After::Nothing, &[1, 6, 0, 8, 0, 0, 0, 0]),
        ("HTTP", After::Nothing, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("TLS", After::Nothing, &[0x16, 3, 1, 0, 8, 1, 0, 0, 0, 0, 0, 0, 0]),
        ("wrong version after hello", After::Hello, &[1, 10, 0, 8, 0, 0, 0, 0]),
        ("features that are cut off", After::Hello, &[4, 6, 0, 12, 0, 0, 0, 2, 0, 0, 0, 0]),
        ("length 3 later", After::Join, &[4, 2, 0, 3, 0, 0, 0, 0]),
        ("wrong version later", After::Join, &[1, 2, 0, 8, 0, 0, 0, 0]),
        ("version 255 later", After::Join, &[255, 2, 0, 8, 0, 0, 0, 0]),
        ("a packet-in that is cut off", After::Join, &[4, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("a match of length zero", After::Join, &{
            let mut bytes = [0; 40];
            bytes[..4].copy_from_slice(&[4, 10, 0, 40]);
            bytes
        }),
        ("a port that is cut off", After::Join, &[4, 12, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("an error that is cut off", After::Join, &[4, 1, 0, 9, 0, 0, 0, 0, 0]),
        ("a removed flow that is cut off", After::Join, &[4, 11, 0, 9, 0, 0, 0, 0, 0]),
    ];

    for (at, (name, after, bytes)) in cases.iter().enumerate() {
        let mut peer = controller.connect().await;
        match after {
            After::Nothing => {}
            After::Hello => drop(peer.greet(Version::V1_3).await),
            After::Join => peer.join(Version::V1_3, 2000 + at as u64).await,
        }
        let began = Instant::now();
        peer.send(bytes).await;
        let error = peer.closed().await;
        assert!(error.is_some(), "{name}: no OpenFlow error before closing");
        assert!(began.elapsed() < Duration::from_secs(1), "{name}: {:?}", began.elapsed());
        assert!(controller.serves(&mut bystander).await, "after {name}");
    }

    assert!(eventually(|| controller.directory.len() == 1).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_messages_are_counted_and_ignored() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_3, 1).await;
    for kind in [4, 30, 31, 99, 255] {
        peer.send(&[4, kind, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await;
    }

    // requests that only a controller sends, and an unsolicited barrier reply
    peer.send(&encode(&Message::FeaturesRequest, Version::V1_3, 0)).await;
    peer.send(&encode(&Message::BarrierReply, Version::V1_3, 7)).await;
    assert!(controller.serves(&mut peer).await);
    assert!(controller.directory.totals().messages_ignored >= 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_and_drips_are_given_up() {
    let controller = Controller::impatient().await;
    let mut mute = controller.connect().await;
    let mut drip = controller.connect().await;
    let mut stuck = controller.connect().await;
    stuck.greet(Version::V1_0).await.unwrap();

    let began = Instant::now();
    for byte in [1, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] {
        let _ = drip.stream.write_all(&[byte]).await;
        tokio::time::sleep(Duration::from_millis(30)).await
    }

    mute.closed().await;
    drip.closed().await;
    stuck.closed().await;
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_half_open_connections_keep_nobody_out() {
    let settings =
        ListenerSettings { half_open_max: 50, connections_max: 200, ..ListenerSettings::default() };
    let controller = Controller::with(settings).await;
    let mut bystander = controller.join(Version::V1_0, 1).await;
    let mut open = Vec::new();

    for _ in 0..400 {
        open.push(controller.connect().await);
    }

    let mut newcomer = controller.join(Version::V1_3, 2).await;
    assert!(controller.serves(&mut newcomer).await && controller.serves(&mut bystander).await);
    assert!(eventually(|| controller.directory.len() <= 52).await, "{}", controller.directory.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_does_not_read_costs_a_bounded_amount_of_memory() {
    let controller = Controller::start().await;
    let mut bystander = controller.join(Version::V1_0, 1).await;
    let mut deaf = controller.join(Version::V1_0, 2).await;
    let mut burst = BytesMut::new();
    let data = [frame_between(1, 2), vec![0; 1000]].concat();

    for _ in 0..2_000 {
        let packet = beehive_of::any::PacketIn {
            buffer_id: None,
            total_len: data.len() as u16,
            in_port: beehive_of::PortNo(1),
            reason: beehive_of::any::PacketInReason::NoMatch,
            table_id: 0,
            cookie: None,
            data: &data,
        };
        packet.encode_into(Version::V1_0, 0, &mut burst).unwrap();
    }

    // send 40 MB of packet-ins, and do not read the answers
    for _ in 0..20 {
        let sent = tokio::time::timeout(Duration::from_secs(2), deaf.stream.write_all(&burst)).await;
        assert!(sent.is_ok(), "the driver has stopped reading");
    }

    assert!(controller.serves(&mut bystander).await);
    assert!(eventually(|| controller.directory.totals().packet_ins > 39_000).await);
    assert!(controller.directory.totals().packet_outs_dropped > 1_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_do_no_harm() {
    let controller = Controller::start().await;
    let mut bystander = controller.join(Version::V1_3, 1).await;
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;

    for round in 0..100 {
        let mut peer: Peer = controller.connect().await;
        match round % 3 {
            0 => {}
            1 => drop(peer.greet(Version::V1_0).await),
            _ => peer.join(Version::V1_3, 100 + round).await,
        }

        let bytes: Vec<u8> = (0..600)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 56) as u8
            })
            .collect();

        peer.send(&bytes).await;
    }

    assert!(controller.serves(&mut bystander).await);
}

/// Counts the events of a session.
#[derive(Default)]
struct Seen(usize);

impl Events for Seen {
    fn packet_in(&mut self, _: PacketIn) {
        self.0 += 1
    }
    fn event(&mut self, _: Event) {
        self.0 += 1
    }
}

fn ready(version: Version) -> Session {
    let (mut out, mut seen) = (BytesMut::new(), Seen::default());
    let mut session = Session::new(SessionSettings::default(), Default::default(), Time::ZERO, &mut out);
    let mut feed = |session: &mut Session, bytes: &[u8]| {
        let frame = Frame::whole(bytes).unwrap();
        session.handshake(frame, Time::ZERO, &mut out, &mut seen).unwrap();
    };
    feed(&mut session, &[version.wire(), 0, 0, 8, 0, 0, 0, 1]);
    feed(&mut session, &features(version, 1, u8::from(version >= Version::V1_3), 2));

    let mut setup = BytesMut::new();
    session.admit(Time::ZERO, &mut setup).unwrap();
    let barrier = Frames::new(&setup).map(|f| f.unwrap().xid()).last().unwrap();
    feed(&mut session, &encode(&Message::BarrierReply, version, barrier));
    assert!(session.is_ready());

    session
}

#[test]
fn every_truncation_and_every_changed_byte_is_survived() {
    for version in Version::ALL {
        let ports = crate::peer::ports();
        let packet = beehive_of::any::PacketIn {
            buffer_id: Some(3),
            total_len: 60,
            in_port: beehive_of::PortNo(1),
            reason: beehive_of::any::PacketInReason::NoMatch,
            table_id: 0,
            cookie: None,
            data: &frame_between(1, 2),
        };
        let status =
            beehive_of::any::PortStatus { reason: beehive_of::any::PortReason::Modify, port: ports[0] };
        let messages = [
            encode(&Message::PacketIn(packet), version, 0),
            encode(&Message::PortStatus(status), version, 0),
            encode(&Message::EchoRequest(Echo { data: b"abc" }), version, 5),
            features(version, 7, 0, 9),
        ];
        for message in messages {
            let mut seen = Seen::default();
            for at in 0..message.len() {
                for change in [0x01, 0x80, 0xff] {
                    let mut bytes = message.to_vec();
                    bytes[at] ^= change;
                    serve(version, &bytes, &mut seen);
                }
                // adapt the length field in the header to the truncation
                let mut bytes = message[..at].to_vec();
                if let Some(length) = bytes.get_mut(2..4) {
                    length.copy_from_slice(&(at as u16).to_be_bytes());
                }
                serve(version, &bytes, &mut seen);
            }

            let before = seen.0;
            serve(version, &message, &mut seen);
            assert!(before > 0 || seen.0 >= before);
        }
    }
}

/// Passes complete frames to a session, as a connection does.
fn serve(version: Version, bytes: &[u8], seen: &mut Seen) {
    let mut session = ready(version);
    let mut frames = Frames::new(bytes);
    frames.by_ref().for_each(drop);
    let chunk = Bytes::copy_from_slice(&bytes[..frames.consumed()]);
    let mut out = BytesMut::new();
    let closed = session.serve(&chunk, Time::ZERO, &mut out, seen).is_err();
    assert!(!closed || !out.is_empty(), "closed without an error message");
}
