//! Tests messages that make no sense (S5): the controller ignores and counts them, and continues to serve the
//! switch.

use crate::peer::{Controller, encode, eventually, features, ports};
use beehive_nom::object::{AddFlow, DescribeNode, FlowMatch, FlowState, NodeId, Owner};
use beehive_of::any::{
    FlowRemoved, FlowRemovedReason, Match, Message, Port, PortName, PortReason, PortStatus,
};
use beehive_of::{MacAddress, PortNo, Version};
use std::time::Duration;

const BOTH: [Version; 2] = [Version::V1_0, Version::V1_3];

fn removed(cookie: u64) -> Message<'static> {
    Message::FlowRemoved(FlowRemoved {
        match_fields: Match::ANY,
        cookie,
        priority: 7,
        reason: FlowRemovedReason::IdleTimeout,
        table_id: 0,
        duration: Duration::from_secs(1),
        idle_timeout: 1,
        hard_timeout: 0,
        packet_count: 1,
        byte_count: 1,
    })
}

fn status(reason: PortReason, number: u32) -> Message<'static> {
    let port = Port::new(PortNo(number), MacAddress([2, 9, 0, 0, 9, 9]), PortName::from("eth"));
    Message::PortStatus(PortStatus { reason, port })
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_make_no_sense_are_ignored_and_counted() {
    for version in BOTH {
        let controller = Controller::start().await;
        let mut peer = controller.join(version, 1).await;
        let ours = 0xbee1 << 48 | u64::from(Owner::named("nobody").number()) << 16;
        // flow-removed messages for flows that no app tracks: flows of other controllers, and an unknown flow
        // of this controller
        let mut odd = vec![removed(0), removed(u64::MAX), removed(7)];
        // unknown ports, invalid port numbers, and an unknown reason
        odd.push(status(PortReason::Delete, 99));
        odd.push(status(PortReason::Add, 0xffff_fff8));
        odd.push(status(PortReason::Other(77), 1));
        let before = controller.directory.totals().messages_ignored;
        for message in &odd {
            peer.send(&encode(message, version, 5)).await
        }
        peer.send(&encode(&removed(ours), version, 5)).await;
        assert!(controller.serves(&mut peer).await);
        let ignored = || controller.directory.totals().messages_ignored - before;
        assert!(eventually(|| ignored() == odd.len() as u64).await, "{version:?}: {}", ignored());
        let told = controller.directory.status(controller.hive.now());
        assert_eq!(told[0].ports.len(), ports().len(), "{version:?}: {:?}", told[0].ports);
        assert_eq!(controller.hive.status().dead_letters, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_nobody_asked_for_change_nothing() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_3, 1).await;
    let before = controller.directory.totals().messages_ignored;

    // role replies: equal, master and slave, with increasing and decreasing generations
    for (role, generation) in [(1u32, 5u64), (2, 4), (3, u64::MAX), (3, 0), (1, 1)] {
        let body = [&role.to_be_bytes()[..], &[0; 4], &generation.to_be_bytes()].concat();
        peer.send(&[&[4, 25, 0, 24, 0, 0, 0, 9][..], &body].concat()).await
    }

    assert!(controller.serves(&mut peer).await);
    assert!(eventually(|| controller.directory.totals().messages_ignored - before == 5).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_flow_that_another_app_wants_does_not_end_it() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_3, 1).await;
    let flow = AddFlow::new(NodeId(1), Owner::named("acl"), FlowMatch::ANY, Default::default()).priority(7);
    controller.hive.request(flow).await.expect("is taken");
    let others = 0xbee1 << 48 | u64::from(Owner::named("nobody").number()) << 16;

    peer.send(&encode(&removed(others), Version::V1_3, 5)).await;
    assert!(controller.serves(&mut peer).await);
    let described = controller.hive.request(DescribeNode { node: NodeId(1) }).await.expect("is known");
    let state = described.flows.iter().find(|f| f.flow.priority == 7).map(|f| &f.state);

    assert!(matches!(state, Some(FlowState::Sent | FlowState::Confirmed)), "{state:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auxiliary_connection_of_another_protocol_or_of_nobody_is_refused() {
    let controller = Controller::start().await;
    let mut main = controller.join(Version::V1_3, 1).await;
    for (version, node) in [(Version::V1_4, 1), (Version::V1_3, 2)] {
        let mut auxiliary = controller.connect().await;
        let xid = auxiliary.greet(version).await.expect("asks for features");
        auxiliary.send(&features(version, node, 1, xid)).await;
        assert!(auxiliary.closed().await.is_some(), "{version:?} of {node} is told why");
        assert!(controller.serves(&mut main).await);
    }
}
