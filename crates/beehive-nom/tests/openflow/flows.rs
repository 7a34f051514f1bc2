//! Tests flows over OpenFlow: the controller reads them in parts, installs them, and handles confirmations
//! and refusals.

use crate::peer::{Controller, Peer, encode, eventually, features};
use beehive_nom::apps::{LearningSwitch, NodeController};
use beehive_nom::object::{
    Actions as Done, AddFlow, DescribeNode, FlowMatch, FlowState, Mac, NodeDescription, NodeId, Owner,
    VerifyFlows,
};
use beehive_nom::parts::OwnsFlows;
use beehive_of::any::{
    Action, Actions, ErrorMessage, FlowCommand, FlowEntry, FlowFlags, FlowMod, FlowStatistics, Match, Message,
};
use beehive_of::{PortNo, Version};
use bytes::BytesMut;
use std::time::Duration;

const BOTH: [Version; 2] = [Version::V1_0, Version::V1_3];

fn wall(node: NodeId, number: u8) -> AddFlow {
    let matching = FlowMatch { source: Some(Mac([2, 0, 0, 0, 0x66, number])), ..FlowMatch::ANY };
    AddFlow::new(node, Owner::named("firewall"), matching, Done::None).because::<VerifyFlows>()
}

async fn described(controller: &Controller, node: NodeId) -> NodeDescription {
    controller.hive.request(DescribeNode { node }).await.expect("is known")
}

/// Returns the flow as a switch reports it.
fn entry<'a>(flow: &FlowMod<'a>) -> FlowEntry<'a> {
    FlowEntry {
        table_id: 0,
        duration: Duration::from_secs(3),
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: FlowFlags::NONE,
        cookie: flow.cookie,
        packet_count: 1,
        byte_count: 64,
        match_fields: flow.match_fields,
        actions: flow.actions,
        goto_table: None,
        other_instructions: 0,
    }
}

/// Connects a switch and returns it with the flow that it received: transaction id, cookie, priority and
/// match.
async fn with_a_wall(controller: &Controller, version: Version) -> (Peer, u32, u64, u16, Match) {
    let node = NodeId(version.wire().into());
    let mut peer = controller.join(version, node.0).await;
    controller.hive.request(wall(node, 1)).await.expect("is taken");
    let added = peer.until(|message, xid| match message {
        Message::FlowMod(f) if f.command == FlowCommand::Add && f.priority == 100 => {
            Some((xid, f.cookie, f.priority, f.match_fields))
        }
        _ => None,
    });

    let (xid, cookie, priority, matching) = added.await.expect("is told");
    (peer, xid, cookie, priority, matching)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intended_flow_is_confirmed_by_a_barrier() {
    let controller = Controller::start().await;
    for version in BOTH {
        let (mut peer, ..) = with_a_wall(&controller, version).await;
        let node = NodeId(version.wire().into());
        let state =
            |d: &NodeDescription| d.flows.iter().find(|f| f.flow.priority == 100).map(|f| f.state.clone());
        assert_eq!(state(&described(&controller, node).await), Some(FlowState::Sent));
        let barrier =
            peer.until(|m, xid| matches!(m, Message::BarrierRequest).then_some(xid)).await.expect("asks");
        peer.send(&encode(&Message::BarrierReply, version, barrier)).await;
        let mut confirmed = false;
        for _ in 0..100 {
            confirmed |= state(&described(&controller, node).await) == Some(FlowState::Confirmed);
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        assert!(confirmed, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_tied_to_its_flow_by_its_number() {
    let controller = Controller::start().await;
    for (version, error_type, code, name) in [
        (Version::V1_0, 3, 0, "flow_mod_failed: ALL_TABLES_FULL"),
        (Version::V1_0, 3, 2, "flow_mod_failed: EPERM"),
        (Version::V1_3, 5, 1, "flow_mod_failed: TABLE_FULL"),
        (Version::V1_3, 4, 8, "bad_match: BAD_MASK"),
    ] {
        let (mut peer, xid, ..) = with_a_wall(&controller, version).await;
        let node = NodeId(version.wire().into());
        // the error quotes nothing of the message, so only the transaction id identifies the flow
        let error = ErrorMessage { error_type, code, data: &[] };
        let mut out = BytesMut::new();

        error.encode_into(version, xid, &mut out).expect("an error");
        peer.send(&out).await;
        let _ = peer.until(|m, _| matches!(m, Message::BarrierRequest).then_some(())).await;
        let mut failure = None;

        for _ in 0..100 {
            failure = described(&controller, node).await.failures.last().cloned();
            if failure.as_ref().is_some_and(|f| f.why == name) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }

        let failure = failure.expect("is reported");
        let wanted = wall(node, 1).flow;
        assert_eq!(
            (failure.why.as_str(), failure.owner, failure.flow),
            (name, wanted.owner, Some(wanted.key()))
        );
        assert_eq!(failure.cause, wanted.cause);
        drop(peer);

        assert!(eventually(|| controller.directory.is_empty()).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_that_are_right_are_not_touched_whatever_parts_they_come_in() {
    let controller = Controller::start().await;
    for version in BOTH {
        let (peer, _, cookie, priority, match_fields) = with_a_wall(&controller, version).await;
        let node = version.wire().into();
        drop(peer);
        assert!(eventually(|| controller.directory.is_empty()).await);
        let mut peer = controller.connect().await;
        let xid = peer.greet(version).await.expect("asks for features");
        peer.send(&features(version, node, 0, xid)).await;
        let asked = peer.until(|m, xid| matches!(m, Message::FlowStatisticsRequest(_)).then_some(xid));
        let asked = asked.await.expect("reads flows");

        let up = [Action::output(PortNo::CONTROLLER)];
        let own = entry(&FlowMod { cookie, ..FlowMod::add(priority, match_fields, Actions::EMPTY) });
        let strange = Match { eth_type: Some(0x800), ip_protocol: Some(6), ..Match::ANY };
        let foreign = entry(&FlowMod { cookie, ..FlowMod::add(5, strange, Actions::EMPTY) });
        let theirs = entry(&FlowMod { cookie: 7, ..FlowMod::add(6, Match::ANY, Actions::new(&up)) });
        let stray = entry(&FlowMod { cookie, ..FlowMod::add(8, Match::ANY, Actions::EMPTY) });
        let parts = [vec![own, foreign], vec![theirs], vec![stray]];
        let tell = async |peer: &mut Peer, asked: u32| {
            for (at, entries) in parts.iter().enumerate() {
                let told = FlowStatistics { more: at + 1 < parts.len(), entries: entries.as_slice().into() };
                // a part with an unknown transaction id is ignored
                peer.send(&encode(&Message::FlowStatisticsReply(told), version, asked + 100)).await;
                peer.send(&encode(&Message::FlowStatisticsReply(told), version, asked)).await;
            }
        };
        tell(&mut peer, asked).await;
        // an unclaimed flow may be requested in a moment, so the flows are read again
        let again = peer.until(|m, xid| match m {
            Message::FlowStatisticsRequest(_) => Some(Some(xid)),
            Message::FlowMod(f) if f.command == FlowCommand::DeleteStrict => Some(None),
            _ => None,
        });
        let again = again.await.expect("reads flows again").expect("withdraws nothing before");
        tell(&mut peer, again).await;
        let mut told: Vec<(FlowCommand, u16)> = Vec::new();
        // the table-miss flow, which only 1.3 has, comes last
        let last = if version == Version::V1_3 { FlowCommand::Add } else { FlowCommand::DeleteStrict };
        while told.last().is_none_or(|(command, ..)| *command != last) {
            let next = peer.until(|m, _| match m {
                Message::FlowMod(f) => Some((f.command, f.priority)),
                _ => None,
            });
            told.push(next.await.expect("is told"))
        }
        let mut expected = vec![(FlowCommand::DeleteStrict, 8)];
        if version == Version::V1_3 {
            expected.push((FlowCommand::Add, 0))
        }
        assert_eq!(told, expected, "{version:?}");
        let reading = described(&controller, NodeId(node)).await.reading;
        assert_eq!((reading.complete, reading.kept, reading.withdrawn, reading.foreign), (true, 1, 1, 2));
        drop(peer);
        assert!(eventually(|| controller.directory.is_empty()).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_say_whose_they_are_and_what_for() {
    assert_ne!(NodeController::OWNER, LearningSwitch::OWNER);
    let controller = Controller::start().await;
    let (_peer, _, cookie, ..) = with_a_wall(&controller, Version::V1_0).await;
    let wanted = wall(NodeId(1), 1).flow;
    let expected = 0xbee1 << 48 | u64::from(wanted.owner.number()) << 16 | u64::from(wanted.cause.number());
    assert_eq!(cookie, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_flows_that_does_not_end_ends_the_connection() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_0, 1).await;
    controller.hive.request(VerifyFlows { node: NodeId(1) }).await.expect("is there");
    let asked = peer.until(|m, xid| matches!(m, Message::FlowStatisticsRequest(_)).then_some(xid));
    let asked = asked.await.expect("reads flows");
    let endless = FlowStatistics { more: true, entries: [].as_slice().into() };
    let part = encode(&Message::FlowStatisticsReply(endless), Version::V1_0, asked);
    let many = part.repeat(beehive_nom::limits::READING_PARTS_MAX as usize + 1);

    peer.send(&many).await;
    peer.closed().await;
    assert!(eventually(|| controller.directory.is_empty()).await);
}
