//! Tests the version negotiation, with messages of real switches, and the setup of a switch.

use crate::peer::{Controller, encode, eventually, features, ports};
use beehive_of::any::{FlowCommand, Hello, Message, PortReason, PortState, PortStatus};
use beehive_of::{PortNo, Version, VersionSet};
use bytes::BytesMut;

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_agreed_upon_as_switches_expect() {
    let controller = Controller::start().await;
    let bits = |wire: &[u8]| Some(VersionSet::from_bits(wire.iter().map(|w| 1 << w).sum()));
    let cases = [
        ("Open vSwitch by default", 6, None, Some(Version::V1_5)),
        ("Open vSwitch pinned to 1.0", 1, None, Some(Version::V1_0)),
        ("Open vSwitch pinned to 1.3", 4, bits(&[4]), Some(Version::V1_3)),
        ("Open vSwitch pinned to 1.5", 6, bits(&[6]), Some(Version::V1_5)),
        ("all versions in a bitmap", 6, bits(&[1, 2, 3, 4, 5, 6]), Some(Version::V1_5)),
        ("1.0 in a bitmap", 4, bits(&[1]), Some(Version::V1_0)),
        ("1.1 only", 2, None, Some(Version::V1_1)),
        ("1.2 only", 3, None, Some(Version::V1_2)),
        ("a version of the future only", 7, bits(&[7]), None),
    ];

    for (name, version, versions, expected) in cases {
        let mut peer = controller.connect().await;
        let mut hello = BytesMut::new();
        Hello { version, versions }.encode_into(1, &mut hello).unwrap();
        peer.send(&hello).await;
        let ours = peer.next().await.unwrap();

        assert_eq!(ours[..16], [6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x7e], "our hello");
        match expected {
            Some(version) => assert_eq!(peer.next().await.unwrap()[..2], [version.wire(), 5], "{name}"),
            None => {
                let (kind, code, words) = peer.closed().await.expect(name);
                assert_eq!((kind, code), (0, 0), "{name}");
                assert!(words.contains("OpenFlow 1.0 to 1.5"), "{name}: {words}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_is_set_up() {
    let controller = Controller::start().await;
    for (version, node) in Version::ALL.into_iter().zip(10..) {
        let mut peer = controller.connect().await;
        let xid = peer.greet(version).await.unwrap();
        peer.send(&features(version, node, 0, xid)).await;
        let length = peer.until(|m, _| match m {
            Message::SetConfig(config) => Some(config.miss_send_len),
            _ => None,
        });

        assert_eq!(length.await, Some(0xffff), "whole packets");
        if version >= Version::V1_3 {
            let miss = peer.until(|m, _| match m {
                Message::FlowMod(f) if f.command == FlowCommand::Add => {
                    Some((f.priority, crate::peer::output(&f.actions)))
                }
                _ => None,
            });
            assert_eq!(miss.await, Some((0, PortNo::CONTROLLER)));
        } else {
            peer.settle().await;
        }

        assert!(eventually(|| controller.directory.nodes() > 0).await);
        let status = controller.directory.status(controller.hive.now());
        let node = status.iter().find(|s| s.node == Some(format!("{node:016x}"))).expect("is listed");
        assert_eq!((node.ports.len(), node.ready), (4, true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_changes_during_the_handshake_is_not_lost() {
    let controller = Controller::start().await;
    let mut peer = controller.connect().await;
    let xid = peer.greet(Version::V1_3).await.unwrap();
    let mut down = ports()[1];
    down.state = PortState(PortState::LINK_DOWN);

    let status = Message::PortStatus(PortStatus { reason: PortReason::Modify, port: down });
    peer.send(&features(Version::V1_3, 5, 0, xid)).await;
    peer.send(&encode(&status, Version::V1_3, 0)).await;
    peer.settle().await;
    let up = |controller: &Controller| -> Vec<bool> {
        controller.directory.status(controller.hive.now())[0].ports.iter().map(|p| p.up).collect()
    };

    assert!(eventually(|| up(&controller) == [true, false, true, true]).await, "{:?}", up(&controller));
}
