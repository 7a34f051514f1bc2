//! Tests the node controller on a simulated switch: what it does with the flows of a switch that reconnects.

use crate::harness::{Host, Lab, host};
use beehive_nom::apps::{LearningSwitch, NodeController};
use beehive_nom::limits;
use beehive_nom::object::{
    Action, Actions, AddFlow, DelFlows, DescribeNode, Flow, FlowMatch, FlowScope, FlowState, FlowsRead,
    FoundFlow, Mac, NodeDescription, NodeId, Owner, PacketIn, PacketInReason, PacketOut, PortNo, Reading,
    SendPacket, VerifyFlows,
};
use beehive_nom::parts::OwnsFlows;
use beehive_nom::sim::{Behavior, frame};
use std::time::Duration;

const NODE: NodeId = NodeId(1);

fn wall(number: u16) -> AddFlow {
    let [high, low] = number.to_be_bytes();
    let matching = FlowMatch { source: Some(Mac([2, 0, 0, 0x66, high, low])), ..FlowMatch::ANY };
    AddFlow::new(NODE, Owner::named("firewall"), matching, Actions::None).priority(900)
}

/// Returns a flow as the learning switch makes it, without timeouts.
fn learned(from: Host, to: Host) -> AddFlow {
    let data = frame(to.mac, from.mac, from.tag, b"");
    let packet = PacketIn {
        node: NODE,
        port: from.port,
        reason: PacketInReason::Miss,
        length: data.len() as u16,
        buffer: None,
        data,
    };
    AddFlow::between(LearningSwitch::OWNER, &packet, to.port)
}

impl Lab {
    async fn want(&self, flow: &AddFlow) {
        self.hive.request(flow.clone()).await.expect("is taken");
        self.settled().await
    }

    async fn described(&self) -> NodeDescription {
        self.hive.request(DescribeNode { node: NODE }).await.expect("is known")
    }

    async fn reading(&self) -> Reading {
        Reading { number: 0, ..self.described().await.reading }
    }

    async fn states(&self) -> Vec<FlowState> {
        self.described().await.flows.into_iter().map(|flow| flow.state).collect()
    }

    async fn verify(&self) {
        self.hive.request(VerifyFlows { node: NODE }).await.expect("is there");
        self.settled().await
    }

    async fn away(&self) {
        self.switch.disconnect();
        self.settled().await
    }

    async fn back(&self) {
        self.switch.connect();
        self.settled().await
    }
}

#[tokio::test]
async fn who_comes_back_touches_nothing_that_is_right() {
    for knows_owners in [true, false] {
        let lab = Lab::learning("", knows_owners).await;
        let (a, b) = (host(1, 1), host(2, 2));
        assert!(lab.ping(a, b).await);
        lab.want(&wall(1)).await;
        lab.want(&wall(2)).await;
        assert_eq!(lab.states().await, [FlowState::Confirmed, FlowState::Confirmed]);
        lab.away().await;
        assert_eq!(lab.states().await, [FlowState::Waiting, FlowState::Waiting]);

        let by_hand = wall(77).priority(7).flow;
        lab.switch.install_foreign(&by_hand);
        let forgotten = wall(78).flow;
        lab.switch.install_leftover(&forgotten);
        let of_an_app_that_is_gone = Flow { idle_s: 60, hard_s: 150, ..wall(79).flow };

        lab.switch.install_leftover(&of_an_app_that_is_gone);
        assert!(lab.switch.remove_silently(wall(2).flow.key()));
        lab.pass(5).await;
        lab.back().await;
        let expected =
            Reading { complete: true, kept: 1, soft: 3, installed: 1, withdrawn: 0, foreign: 1, number: 0 };

        assert_eq!(lab.reading().await, expected);
        assert!(lab.flows().contains(&of_an_app_that_is_gone), "it has a timeout");
        assert!(lab.flows().contains(&forgotten), "its app may be about to want it");
        lab.pass(2).await;
        let expected = Reading { kept: 2, installed: 0, withdrawn: 1, ..expected };

        assert_eq!(lab.reading().await, expected);
        let flows = lab.flows();
        assert_eq!(flows.len(), 6, "{flows:?}");
        assert!([&wall(1).flow, &wall(2).flow, &by_hand].iter().all(|flow| flows.contains(flow)));
        assert!(!flows.contains(&forgotten) && flows.contains(&of_an_app_that_is_gone));
        assert_eq!(lab.states().await, [FlowState::Confirmed, FlowState::Confirmed]);

        let before = lab.packet_ins();
        assert!(lab.ping(a, b).await);
        assert_eq!(lab.packet_ins(), before, "good flows go on");

        // and a second reconciliation has nothing to do
        lab.hive.request(VerifyFlows { node: NODE }).await.expect("is there");
        lab.settled().await;
        let expected = Reading { withdrawn: 0, ..expected };
        assert_eq!(lab.reading().await, expected);
    }
}

#[tokio::test]
async fn the_flow_that_brings_packets_up_is_kept_by_a_controller_that_knows_nothing_of_it() {
    for knows_owners in [true, false] {
        let earlier = Lab::learning("", knows_owners).await;
        earlier.switch.set_drops_misses(true);
        assert_eq!(earlier.send(host(1, 1), Mac::BROADCAST).await, [0u32; 0], "nothing comes up");
        earlier.away().await;
        earlier.back().await;

        let installed = Reading { complete: true, installed: 1, ..Reading::default() };
        assert_eq!(earlier.reading().await, installed);
        let [miss]: [Flow; 1] = earlier.flows().try_into().expect("one flow");
        assert_eq!((miss.owner, miss.priority), (NodeController::OWNER, 0));
        assert_eq!(earlier.send(host(1, 1), Mac::BROADCAST).await, [2, 3, 4]);

        let lab = Lab::learning("", knows_owners).await;
        lab.away().await;
        lab.switch.set_drops_misses(true);
        lab.switch.install_leftover(&miss);
        let told = lab.switch.counters().now();

        lab.back().await;
        let kept = Reading { complete: true, kept: 1, ..Reading::default() };
        assert_eq!(lab.reading().await, kept);
        assert_eq!(lab.states().await, [FlowState::Confirmed]);
        let now = lab.switch.counters().now();

        assert_eq!(
            (now.flows_installed, now.flows_withdrawn),
            (told.flows_installed, told.flows_withdrawn),
            "the switch was told something about its flows"
        );
        assert_eq!(lab.flows(), [miss]);
        assert_eq!(lab.send(host(1, 1), Mac::BROADCAST).await, [2, 3, 4]);

        // nothing is stored for a disconnected switch, unless an app has requested flows for it
        lab.away().await;
        assert!(lab.hive.request(DescribeNode { node: NODE }).await.is_err(), "it is known still");
    }
}

#[tokio::test]
async fn a_host_that_moved_while_nobody_looked_is_found_by_its_first_packet() {
    for knows_owners in [true, false] {
        let lab = Lab::learning("", knows_owners).await;
        let (a, b) = (host(1, 1), host(2, 2));
        assert!(lab.ping(a, b).await);
        lab.away().await;
        let moved = Host { port: PortNo(3), ..b };
        assert_eq!(lab.send(moved, a.mac).await, [0u32; 0], "nobody hears it, and its old port is up");
        lab.back().await;
        assert_eq!(lab.send(a, b.mac).await, [2], "the old flow leads to its old port");
        assert_eq!(lab.send(moved, a.mac).await, [1]);
        assert_eq!(lab.send(a, b.mac).await, [3], "its first packet told");
        assert!(lab.ping(a, moved).await);
        assert!(lab.flows().iter().all(|flow| !FlowScope::Through(PortNo(2)).contains(flow)));
    }
}

#[tokio::test]
async fn what_was_heard_since_goes_before_what_a_flow_says() {
    let lab = Lab::learning("", true).await;
    let (a, b) = (host(1, 1), host(2, 2));
    assert!(lab.ping(a, b).await);
    let old = lab.flows();
    let moved = Host { port: PortNo(3), ..b };

    assert!(lab.ping(moved, a).await);
    // reinstall the old flows, as if their withdrawal had been lost
    old.iter().for_each(|flow| lab.switch.install_leftover(flow));
    lab.verify().await;
    assert_eq!(lab.reading().await.soft, 3);
    assert_eq!(lab.send(a, b.mac).await, [3]);

    assert!(lab.flows().iter().all(|flow| !FlowScope::Through(PortNo(2)).contains(flow)));
}

#[tokio::test]
async fn flows_through_a_port_that_died_meanwhile_go() {
    let lab = Lab::learning("", true).await;
    let (a, b, c) = (host(1, 1), host(2, 2), host(3, 3));
    assert!(lab.ping(a, b).await && lab.ping(a, c).await);
    lab.away().await;
    lab.switch.set_up(PortNo(2), false);
    lab.back().await;

    let flows = lab.flows();
    assert_eq!(flows.len(), 2, "{flows:?}");
    assert!(flows.iter().all(|flow| !FlowScope::Through(PortNo(2)).contains(flow)));
    assert_eq!(lab.send(a, b.mac).await, [3, 4]);
}

#[tokio::test]
async fn an_address_is_kept_as_long_as_a_flow_that_was_found_may_live() {
    let lab = Lab::learning("[learning-switch]\nage_s = 20", true).await;
    let (a, b, c) = (host(1, 1), host(2, 2), host(3, 3));
    // these flows were made with other settings
    for (from, to) in [(a, b), (b, a)] {
        lab.switch.install_leftover(&learned(from, to).hard(Duration::from_secs(100)).flow);
    }

    lab.away().await;
    lab.back().await;
    lab.pass(95).await;
    assert_eq!(lab.send(a, b.mac).await, [2], "the flow lives");
    assert_eq!(lab.send(c, b.mac).await, [2], "and so does the address");

    // a flow of this system without a hard timeout cannot be adopted
    let endless = Flow { hard_s: 0, idle_s: 60, ..lab.flows()[0].clone() };
    lab.switch.install_leftover(&endless);
    lab.verify().await;
    assert!(!lab.flows().contains(&endless));
}

#[tokio::test]
async fn what_is_taken_away_is_back_within_the_minute_or_at_once() {
    let lab = Lab::learning("", true).await;
    lab.want(&wall(1)).await;
    assert!(lab.switch.remove_silently(wall(1).flow.key()));
    lab.pass(5).await;
    assert!(lab.flows().is_empty(), "nobody told");
    lab.pass(60).await;
    assert_eq!(lab.flows(), [wall(1).flow]);

    // another controller has replaced the flow
    lab.switch.install_foreign(&Flow { actions: Actions::One(Action::Output(PortNo(2))), ..wall(1).flow });
    lab.verify().await;
    assert_eq!(lab.flows(), [wall(1).flow]);
    assert_eq!(lab.reading().await.installed, 1);
}

#[tokio::test]
async fn a_flow_that_is_refused_is_reported_and_offered_again() {
    let lab = Lab::learning("", true).await;
    lab.switch.set_behavior(Behavior::Full);
    lab.want(&wall(1)).await;
    let why = "flow_mod_failed: TABLE_FULL".to_string();
    assert_eq!(lab.states().await, [FlowState::Refused { why: why.clone(), times: 1 }]);

    let failures = lab.described().await.failures;
    assert_eq!(failures.len(), 1);
    let failure = &failures[0];
    assert_eq!((failure.owner, failure.flow.clone()), (Owner::named("firewall"), Some(wall(1).flow.key())));
    lab.pass(61).await;
    assert_eq!(lab.states().await, [FlowState::Refused { why: why.clone(), times: 2 }]);
    lab.switch.set_behavior(Behavior::Normal);
    lab.pass(61).await;

    assert_eq!(lab.states().await, [FlowState::Confirmed]);
    // a refused soft flow is reported, too, and the number of stored failures is limited
    lab.switch.set_behavior(Behavior::Full);
    for number in 0..limits::FAILURES_PER_NODE_MAX as u16 + 5 {
        lab.hive.request(wall(number).idle(Duration::from_secs(9))).await.expect("is taken");
    }

    lab.settled().await;
    let failures = lab.described().await.failures;
    assert_eq!(failures.len(), limits::FAILURES_PER_NODE_MAX);
    let last = wall(limits::FAILURES_PER_NODE_MAX as u16 + 4).flow.key();

    assert_eq!(failures.last().and_then(|failure| failure.flow.clone()), Some(last));
}

#[tokio::test]
async fn a_switch_that_does_not_tell_starts_with_what_it_should_have() {
    let lab = Lab::learning("", true).await;
    let (a, b) = (host(1, 1), host(2, 2));
    assert!(lab.ping(a, b).await);
    lab.want(&wall(1)).await;
    lab.switch.set_behavior(Behavior::Silent);
    lab.away().await;
    lab.back().await;
    assert_eq!(lab.flows().len(), 3);

    lab.pass(4).await;
    assert_eq!(lab.flows(), [wall(1).flow]);
    assert!(lab.ping(a, b).await);
}

#[tokio::test]
async fn many_missing_flows_go_in_instalments() {
    let lab = Lab::learning("", true).await;
    let count = limits::FLOWS_PER_BATCH_MAX as u16 * 2 + 100;
    for number in 0..count {
        lab.hive.request(wall(number)).await.expect("is taken");
    }

    lab.settled().await;
    lab.away().await;
    for number in 0..count {
        assert!(lab.switch.remove_silently(wall(number).flow.key()));
    }

    lab.back().await;
    assert_eq!(lab.flows().len(), usize::from(count));
    assert!(lab.states().await.iter().all(|state| *state == FlowState::Confirmed));
}

#[tokio::test]
async fn what_waits_goes_on_waiting_until_the_first_reading_is_over() {
    let lab = Lab::learning("", true).await;
    for number in 0..50 {
        lab.want(&wall(number)).await;
    }

    lab.switch.set_behavior(Behavior::Silent);
    lab.away().await;
    lab.back().await;
    let installed = || u32::try_from(lab.switch.counters().now().flows_installed).expect("not so many");
    let (before, count) = (installed(), limits::FLOWS_PER_BATCH_MAX as u16 + 1_000);
    let mut io = lab.hive.io();

    (100..100 + count).for_each(|number| io.emit(wall(number)));
    io.flush().await;
    lab.settled().await;

    // by now the switch has confirmed the first batch, but the rest must keep waiting: flows from before the reconnect
    // may already be in the switch as intended, which only the first read can tell
    assert_eq!(installed() - before, limits::FLOWS_PER_BATCH_MAX);
    lab.pass(4).await;
    assert_eq!(lab.flows().len(), 50 + usize::from(count));
    assert!(lab.states().await.iter().all(|state| *state == FlowState::Confirmed));
}

/// More commands arrive than the inbox of a driver can hold. The excess commands are lost, but the switch
/// ends up with the correct flows.
#[tokio::test]
async fn commands_that_were_lost_leave_nothing_wrong() {
    for knows_owners in [true, false] {
        let lab = Lab::learning("", knows_owners).await;
        let (a, b) = (host(1, 1), host(2, 2));
        assert!(lab.ping(a, b).await);

        for number in 1..=3 {
            lab.want(&wall(number)).await
        }

        lab.switch.set_behavior(Behavior::Busy);
        // fill the inbox with packets, from a sender that is not subject to back-pressure
        let to_nobody = PacketOut::new(NODE, PortNo(3), bytes::Bytes::from_static(&[0; 60]));
        let mut pusher = lab.hive.io();

        for _ in 0..=beehive_core::limits::MAIL_UNREAD_MAX / 1_000 {
            (0..1_000).for_each(|_| pusher.emit(SendPacket(to_nobody.clone())));
            pusher.flush_control();
            lab.hive.idle().await
        }

        // commands from now on are lost: an intended flow, the withdrawal of another flow, and the withdrawal
        // of the flows to a host that moves
        lab.hive.request(wall(4)).await.expect("is taken");
        let AddFlow { flow, .. } = wall(1);
        let scope = FlowScope::Exactly(flow.priority, flow.matching);
        lab.hive.request(DelFlows { node: NODE, owner: flow.owner, scope }).await.expect("is taken");
        let moved = Host { port: PortNo(3), ..b };

        lab.switch.receive(moved.port, frame(a.mac, moved.mac, moved.tag, b"I am here now"));
        lab.hive.idle().await;
        let before = lab.flows();
        lab.switch.set_behavior(Behavior::Normal);
        lab.settled().await;
        assert!(lab.switch.counters().now().commands_lost >= 3, "nothing was lost: nothing is shown");
        assert_ne!(lab.flows(), before);

        let has = |number| lab.flows().contains(&wall(number).flow);
        assert_eq!([1, 2, 3, 4].map(has), [false, true, true, true], "knows owners: {knows_owners}");
        assert_eq!(lab.states().await, vec![FlowState::Confirmed; 3]);
        let leads_astray = lab.flows().into_iter().find(|flow| {
            flow.matching.destination == Some(b.mac) && flow.actions == Actions::One(Action::Output(b.port))
        });

        assert_eq!(leads_astray, None, "knows owners: {knows_owners}");
        assert!(lab.ping(a, moved).await);
    }
}

/// The periodic read and a requested one may come before the switch has reported any flow.
#[tokio::test]
async fn a_switch_that_does_not_tell_is_set_up_whoever_asks_again_meanwhile() {
    let lab = Lab::learning("", true).await;
    lab.want(&wall(1)).await;
    lab.switch.set_behavior(Behavior::Silent);

    // at any phase of the periodic sweep
    for second in 0..45 {
        lab.away().await;
        assert!(lab.switch.remove_silently(wall(1).flow.key()), "second {second}");
        lab.back().await;
        lab.pass(7).await;
        assert_eq!(lab.flows(), [wall(1).flow], "second {second}");
    }

    lab.away().await;
    assert!(lab.switch.remove_silently(wall(1).flow.key()));
    lab.back().await;

    for _ in 0..8 {
        lab.verify().await;
        lab.pass(1).await;
    }

    assert_eq!(lab.flows(), [wall(1).flow]);
}

/// Apps receive `NodeJoined` at the same time as the node controller, and may be slower than the switch is to
/// report its flows. Until then, a flow that blocks packets must not be missing.
#[tokio::test]
async fn what_an_app_wants_late_is_not_taken_away_meanwhile() {
    let lab = Lab::learning("", true).await;
    lab.away().await;
    lab.switch.install_leftover(&wall(1).flow);
    lab.back().await;
    assert_eq!(lab.flows(), [wall(1).flow]);
    lab.want(&wall(1)).await;
    lab.pass(60).await;
    assert_eq!(lab.flows(), [wall(1).flow]);

    assert_eq!(lab.switch.counters().now().flows_withdrawn, 0);
}

impl Lab {
    /// Starts a controller that does not know the flow that its switch already has.
    async fn restarted_over(settings: &str, knows_owners: bool, flow: &Flow) -> Lab {
        let lab = Lab::learning(settings, knows_owners).await;
        lab.away().await;
        lab.switch.install_leftover(flow);
        lab.back().await;
        lab
    }
}

/// Returns a flow that drops the packets that arrive at port 3. No app adopts it.
fn ban() -> AddFlow {
    let matching = FlowMatch { port: Some(PortNo(3)), ..FlowMatch::ANY };
    AddFlow::new(NODE, Owner::named("guard"), matching, Actions::None)
}

#[tokio::test]
async fn a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_over_a_reconnect() {
    for knows_owners in [true, false] {
        let lab = Lab::learning("", knows_owners).await;
        let hard = ban().hard(Duration::from_secs(150));
        let idle = ban().priority(99).idle(Duration::from_secs(120));
        lab.want(&hard).await;
        lab.want(&idle).await;

        // wait longer than the interval between two reads of the flows
        lab.pass(70).await;
        lab.away().await;
        lab.pass(5).await;
        lab.back().await;
        lab.pass(44).await;
        assert_eq!(lab.flows(), [hard.flow.clone(), idle.flow]);
        lab.pass(1).await;
        assert_eq!(lab.flows(), std::slice::from_ref(&hard.flow), "the idle timeout of 120 s");

        lab.pass(29).await;
        assert_eq!(lab.flows(), [hard.flow]);
        lab.pass(1).await;
        assert!(lab.flows().is_empty(), "the hard timeout of 150 s");
        assert_eq!(lab.switch.counters().now().flows_withdrawn, 0);
    }
}

#[tokio::test]
async fn a_soft_flow_that_no_app_adopts_lives_as_long_as_it_was_given_over_a_restart_of_the_controller() {
    for knows_owners in [true, false] {
        let flow = ban().hard(Duration::from_secs(150)).flow;
        let lab = Lab::restarted_over("", knows_owners, &flow).await;
        lab.pass(2).await;
        // it applies again when its port is up again
        lab.away().await;
        lab.switch.set_up(PortNo(3), false);
        lab.back().await;
        lab.pass(147).await;
        assert_eq!(lab.flows(), std::slice::from_ref(&flow));

        lab.pass(1).await;
        assert!(lab.flows().is_empty());
        assert_eq!(lab.switch.counters().now().flows_withdrawn, 0);
    }
}

#[tokio::test]
async fn a_learning_switch_that_installs_no_flows_withdraws_those_of_its_earlier_run() {
    let flow = learned(host(1, 1), host(2, 2)).hard(Duration::from_secs(150)).flow;
    let lab = Lab::restarted_over("", true, &flow).await;
    assert_eq!(lab.flows(), std::slice::from_ref(&flow));

    let lab = Lab::restarted_over("[learning-switch]\nflows = false", true, &flow).await;
    assert!(lab.flows().is_empty());
}

#[tokio::test]
async fn a_soft_flow_replaces_the_intended_one_of_its_app_for_good() {
    let lab = Lab::learning("", true).await;
    lab.want(&ban()).await;
    let soft = ban().hard(Duration::from_secs(100));
    lab.want(&soft).await;
    lab.pass(99).await;
    assert_eq!(lab.flows(), [soft.flow]);
    lab.pass(62).await;
    assert!(lab.flows().is_empty(), "the intended flow is back");

    // the intended flow of another app stays
    lab.want(&wall(1)).await;
    let of_another = Flow { owner: Owner::named("guard"), ..wall(1).hard(Duration::from_secs(100)).flow };
    lab.want(&AddFlow { node: NODE, flow: of_another }).await;
    lab.pass(62).await;
    assert_eq!(lab.flows(), [wall(1).flow]);
}

/// The switch reports its flows, then an app replaces one of them by a soft flow with the same match, and then the
/// report arrives. The soft flow stays.
#[tokio::test]
async fn a_soft_flow_is_not_withdrawn_by_a_report_from_before_it() {
    for sent_meanwhile in [1, limits::RENEWED_FLOWS_PER_NODE_MAX as u16 + 1] {
        let lab = Lab::learning("", true).await;
        lab.want(&wall(sent_meanwhile)).await;
        lab.switch.set_behavior(Behavior::Silent);
        lab.verify().await;
        let reading = lab.described().await.reading;
        assert!(!reading.complete, "the report is on its way");

        for number in 1..=sent_meanwhile {
            lab.hive.request(wall(number).hard(Duration::from_secs(100))).await.expect("is taken");
        }
        lab.settled().await;
        let soft = lab.flows();

        let reported = [reported(&wall(sent_meanwhile).flow), reported(&wall(sent_meanwhile + 1).flow)];
        let report = FlowsRead { node: NODE, reading: reading.number, last: true, flows: reported.to_vec() };
        lab.hive.request(report).await.expect("is taken");
        lab.settled().await;
        assert!(lab.reading().await.complete);
        assert_eq!(lab.flows(), soft);

        // flows that no app has requested are withdrawn, unless the controller no longer knows which flows it
        // has sent in the meantime
        let known = u64::from(usize::from(sent_meanwhile) < limits::RENEWED_FLOWS_PER_NODE_MAX);
        assert_eq!(lab.reading().await.withdrawn, known);
    }
}

/// Returns the flow as a switch reports it.
fn reported(flow: &Flow) -> FoundFlow {
    FoundFlow {
        table: 0,
        owner: Some(flow.owner),
        cause: flow.cause,
        cookie: 0,
        priority: flow.priority,
        matching: flow.matching.clone(),
        actions: flow.actions.clone(),
        more: None,
        idle_s: flow.idle_s,
        hard_s: flow.hard_s,
        flags: None,
        age_s: 5,
        packets: 0,
        bytes: 0,
    }
}
