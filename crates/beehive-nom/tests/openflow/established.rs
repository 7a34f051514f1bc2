//! Tests how the controller serves a switch whose setup is complete.

use crate::peer::{Controller, encode, eventually, frame_between, output};
use beehive_of::any::{Echo, FlowCommand, Message};
use beehive_of::{PortNo, Version};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn packets_are_answered_and_flows_installed() {
    let controller = Controller::start().await;
    for version in Version::ALL {
        let mut peer = controller.join(version, version.wire().into()).await;
        let (there, back) = (frame_between(1, 2), frame_between(2, 1));
        peer.packet_in(1, &there).await;
        assert_eq!(peer.packet_out().await, Some((PortNo::FLOOD, there)));
        peer.packet_in(2, &back).await;
        let mut flow = None;
        let mut packet = None;
        while flow.is_none() || packet.is_none() {
            let (f, p) = peer
                .until(|m, _| match m {
                    Message::FlowMod(f) if f.command == FlowCommand::Add => {
                        Some((Some((f.match_fields.in_port, output(&f.actions), f.hard_timeout)), None))
                    }
                    Message::PacketOut(p) => Some((None, Some((output(&p.actions), p.data.to_vec())))),
                    _ => None,
                })
                .await
                .unwrap();
            flow = flow.or(f);
            packet = packet.or(p);
        }
        assert_eq!(flow, Some((Some(PortNo(2)), PortNo(1), 150)));
        assert_eq!(packet, Some((PortNo(1), back)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_packet_is_used_and_a_cut_off_one_is_not_sent_on() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_0, 1).await;
    let frame = frame_between(1, 2);
    peer.packet_in_of(1, &frame, 1500, None).await;
    peer.packet_in_of(1, &frame, 1500, Some(77)).await;

    let first = peer.until(|m, _| match m {
        Message::PacketOut(p) => Some((p.buffer_id, p.data.len())),
        _ => None,
    });
    assert_eq!(first.await, Some((Some(77), 0)), "only what the switch keeps can be sent");
    assert!(eventually(|| controller.directory.totals().packet_outs_cut_off == 1).await);
}

/// The largest message has 65 535 bytes. A packet that fills a packet-in also fits into a packet-out from
/// OpenFlow 1.3 on. In 1.0, a packet-out has more overhead, so the controller counts the packet instead of
/// sending it, and continues to serve the switch.
#[tokio::test(flavor = "multi_thread")]
async fn packets_of_up_to_64_kib_are_sent_on() {
    let controller = Controller::start().await;
    for (version, words_up, words_down) in [(Version::V1_0, 18, 24), (Version::V1_3, 42, 40)] {
        let node = version.wire().into();
        let mut peer = controller.join(version, node).await;
        let largest = usize::from(u16::MAX) - words_up.max(words_down);
        let frame = [&frame_between(1, 2)[..], &vec![7; largest - 60]].concat();
        peer.packet_in(1, &frame).await;

        let (_, sent) = peer.packet_out().await.expect("is flooded");
        assert!(sent == frame, "{version:?}: {} bytes of {largest}", sent.len());
        if words_down > words_up {
            let refused = controller.directory.totals().commands_refused;
            peer.packet_in(1, &[&frame[..], &[7; 6]].concat()).await;
            let counted = || controller.directory.totals().commands_refused == refused + 1;
            assert!(eventually(counted).await, "{version:?}");
        }

        assert!(controller.serves(&mut peer).await, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn echoes_are_answered_with_their_data() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_3, 1).await;
    let request = encode(&Message::EchoRequest(Echo { data: b"are you there" }), Version::V1_3, 9);
    peer.send(&request).await;
    let answer = peer.until(|m, xid| match m {
        Message::EchoReply(Echo { data }) => Some((xid, data.to_vec())),
        _ => None,
    });

    assert_eq!(answer.await, Some((9, b"are you there".to_vec())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_switch_is_given_up() {
    let controller = Controller::impatient().await;
    let mut peer = controller.join(Version::V1_0, 1).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        // read for a while: the peer's answers keep the connection alive
        let _ = tokio::time::timeout(Duration::from_millis(20), peer.until(|_, _| None::<()>)).await;
    }

    assert_eq!(controller.directory.nodes(), 1);
    assert!(eventually(|| controller.directory.is_empty()).await, "nobody answers, and it is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hive_stops_while_switches_are_connected() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_3, 1).await;
    let before = std::time::Instant::now();
    controller.hive.stop(Duration::from_secs(3)).await;
    assert!(before.elapsed() < Duration::from_secs(2));
    peer.closed().await;
}
