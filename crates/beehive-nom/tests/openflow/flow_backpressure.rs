//! Requests more flows at once than a switch can accept: no flow is lost, no switch that reads its output is
//! disconnected, and the pending output is bounded.

use crate::peer::{Controller, Peer, eventually, no_flows};
use beehive_nom::driver::Directory;
use beehive_nom::limits;
use beehive_nom::object::{Action, AddFlow, DelFlows, FlowMatch, FlowScope, Mac, NodeId, Owner, PortNo, Tag};
use beehive_of::Version;
use beehive_of::any::{ErrorMessage, FlowCommand, Message};
use bytes::BytesMut;
use std::cell::Cell;
use std::time::Duration;

const ALL: u32 = limits::INTENDED_FLOWS_PER_NODE_MAX as u32;

/// Returns a flow whose encoded message is large.
fn flow(node: u64, number: u32) -> AddFlow {
    let [a, b, c, d] = number.to_be_bytes();
    let matching = FlowMatch {
        port: Some(PortNo(1)),
        source: Some(Mac([2, 0, a, b, c, d])),
        destination: Some(Mac([2, 1, a, b, c, d])),
        tag: Some(Tag::Untagged),
        ..FlowMatch::ANY
    };

    let actions = vec![
        Action::SetSource(Mac([2, 9, 0, 0, 0, 1])),
        Action::SetDestination(Mac([2, 9, 0, 0, 0, 2])),
        Action::Output(PortNo(2)),
    ];
    AddFlow::new(NodeId(node), Owner::named("acl"), matching, actions.into())
}

async fn want(controller: &Controller, flows: impl Iterator<Item = AddFlow>) {
    let mut io = controller.hive.io();
    flows.for_each(|flow| io.emit(flow));
    io.flush().await
}

/// Reads until `count` flows with the priority of [`flow`] have arrived. Returns the maximum number of flows
/// without a barrier in between.
async fn put_in_place(peer: &mut Peer, count: u32) -> Option<u32> {
    let (came, burst, most) = (Cell::new(0), Cell::new(0u32), Cell::new(0));
    let want = |message: &Message<'_>, _| {
        match message {
            Message::FlowMod(f) if f.command == FlowCommand::Add && f.priority == 100 => {
                came.set(came.get() + 1);
                burst.set(burst.get() + 1);
                most.set(most.get().max(burst.get()))
            }
            Message::BarrierRequest => burst.set(0),
            _ => {}
        }
        (came.get() >= count).then_some(())
    };

    peer.until(want).await.map(|()| most.get())
}

fn nothing_was_lost(controller: &Controller) {
    let status = controller.hive.status();
    assert_eq!((status.dead_letters, status.mail_shed), (0, 0), "{:?}", controller.hive.dead_letters());
}

/// Connects a switch with a small receive buffer.
async fn slow(controller: &Controller, version: Version, node: u64) -> Peer {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(64 * 1024).expect("is set");
    let mut peer = Peer::of(socket.connect(controller.address).await.expect("accepts"));
    peer.join(version, node).await;
    peer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_joins_gets_as_many_flows_as_are_kept() {
    let controller = Controller::start().await;
    for version in [Version::V1_0, Version::V1_3] {
        let node = u64::from(version.wire());
        want(&controller, (0..ALL).map(|number| flow(node, number))).await;
        controller.hive.idle().await;
        let mut peer = controller.connect().await;
        peer.introduce(version, node).await;
        peer.tell(no_flows()).await;

        let most = put_in_place(&mut peer, ALL).await.expect("stays connected");
        assert!(most <= 2 * limits::FLOWS_PER_BATCH_MAX, "{most} flows without a barrier");
        nothing_was_lost(&controller);

        if version == Version::V1_0 {
            // a switch of 1.0 removes all flows in the scope, so all of them must be installed again, in
            // batches
            let (node, owner) = (NodeId(node), Owner::named("somebody else"));
            let withdrawn = DelFlows { node, owner, scope: FlowScope::All };
            controller.hive.request(withdrawn).await.expect("is done");
            put_in_place(&mut peer, ALL).await.expect("stays connected");
            nothing_was_lost(&controller);
        }

        // one more flow is refused, and the requester gets an error
        let one_more = controller.hive.request(flow(node, ALL)).await;
        assert!(
            one_more.is_err() || version == Version::V1_0,
            "{version:?}: room is for the flow that brings packets up"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_that_are_wanted_at_once_wait_until_the_switch_has_confirmed_others() {
    let controller = Controller::start().await;
    let mut peer = slow(&controller, Version::V1_3, 1).await;
    let count = ALL - 1; // the miss flow is the last one
    want(&controller, (0..count).map(|number| flow(1, number))).await;
    tokio::time::sleep(Duration::from_millis(200)).await;

    let installed = controller.directory.totals().flows_installed;
    assert!(installed <= u64::from(limits::FLOWS_PER_BATCH_MAX) + 1, "{installed}");
    let most = put_in_place(&mut peer, count).await.expect("stays connected");
    assert!(most <= 2 * limits::FLOWS_PER_BATCH_MAX, "{most} flows without a barrier");

    nothing_was_lost(&controller);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_that_is_slow_to_read_is_not_cut_off_and_what_waits_is_bounded() {
    let controller = Controller::start().await;
    let mut peer = slow(&controller, Version::V1_3, 1).await;
    let mut bystander = controller.join(Version::V1_0, 2).await;
    let count = 60_000;

    // soft flows need no confirmation
    want(&controller, (0..count).map(|number| flow(1, number).idle(Duration::from_secs(60)))).await;
    let settled = |directory: &Directory| directory.totals().flows_installed;
    assert!(eventually(|| settled(&controller.directory) > 10_000).await);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (installed, written) = (settled(&controller.directory), controller.directory.totals().written_bytes);

    assert!(installed < u64::from(count), "all of it was put together at once");
    assert!(controller.serves(&mut bystander).await);
    put_in_place(&mut peer, count).await.expect("stays connected");
    let bytes = controller.directory.totals().written_bytes;
    assert!(bytes - written > limits::BACKLOG_BYTES_MAX as u64, "{bytes}: more than may wait");
    assert_eq!(controller.directory.len(), 2);
    nothing_was_lost(&controller);

    // and the switch is served as before
    assert!(controller.serves(&mut peer).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_without_barriers_gets_all_of_its_flows() {
    let controller = Controller::start().await;
    let mut peer = controller.join(Version::V1_3, 1).await;
    let count = 3 * limits::FLOWS_PER_BATCH_MAX;
    want(&controller, (0..count).map(|number| flow(1, number))).await;
    let came = Cell::new(0);

    while came.get() < count {
        let barrier = peer.until(|message, xid| match message {
            Message::BarrierRequest => Some(Some(xid)),
            Message::FlowMod(_) => {
                came.set(came.get() + 1);
                (came.get() == count).then_some(None)
            }
            _ => None,
        });

        if let Some(barrier) = barrier.await.expect("stays connected") {
            let error = ErrorMessage { error_type: 1, code: 1, data: &[] };
            let mut out = BytesMut::new();
            error.encode_into(Version::V1_3, barrier, &mut out).expect("an error");
            peer.send(&out).await
        }
    }
}
