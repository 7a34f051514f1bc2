//! Tests of the harness itself: each of its checks passes when it should and fails when it should.
//!
//! The controller here is `ovs-testcontroller`, in modes that violate what the other tests check.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Mirror, Protocols};

tests! {
    packets_through_the_controller_are_seen,
    silence_is_told_from_blindness,
    a_flow_to_a_left_port_is_seen,
    nothing_passes_without_a_controller,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const BOB_ETHERNET: &str = "02:00:00:00:00:0b";

const SILENCE: Duration = Duration::from_secs(5);

/// Returns a switch that is connected to the test controller, and two hosts at this switch that have
/// addresses.
fn network<'lab>(lab: &'lab Lab, protocols: Protocols) -> (Bridge<'lab>, Host<'lab>, Host<'lab>) {
    let bridge = Bridge::new(lab, "br0", 1, protocols);
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();
    let alice = Host::wire(&bridge, "alice", 1, "02:00:00:00:00:0a");
    let bob = Host::wire(&bridge, "bob", 2, BOB_ETHERNET);
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));
    (bridge, alice, bob)
}

/// The mirror reveals a controller that forwards every packet itself, although all pings are answered.
fn packets_through_the_controller_are_seen() {
    let Some(lab) = Lab::open_for_peer("packets_through_the_controller_are_seen") else { return };
    let mut controller = Controller::start_peer(&lab, &["--noflow"]);
    let (bridge, alice, _bob) = network(&lab, Protocols::OpenFlow13);
    let mirror = Mirror::open(&bridge);
    alice.ping(BOB).assert_answered(3);
    std::thread::scope(|scope| {
        scope.spawn(|| alice.ping(BOB).assert_answered(5));
        let Err(reason) = mirror.no_packet_in_for(SILENCE) else { panic!("packet-ins were overlooked") };
        assert!(reason.contains("PACKET_IN"), "{reason}");
    });
    assert!(mirror.messages().iter().all(|message| message.version == "OF1.3"));
    controller.assert_running();
}

/// The mirror reports that a silent network is silent. If the controller has been stopped, it reports instead
/// that it has seen no messages at all.
fn silence_is_told_from_blindness() {
    let Some(lab) = Lab::open_for_peer("silence_is_told_from_blindness") else { return };
    let controller = Controller::start_peer(&lab, &[]);
    let (bridge, _alice, _bob) = network(&lab, Protocols::OpenFlow10);
    let mirror = Mirror::open(&bridge);
    assert_eq!(mirror.no_packet_in_for(SILENCE), Ok(()));
    assert!(mirror.messages().iter().all(|message| message.version == "OF1.0"));
    controller.kill();
    bridge.wait_disconnected();
    let outcome = mirror.no_packet_in_for(SILENCE);
    assert!(outcome.as_ref().is_err_and(|reason| reason.contains("blind")), "{outcome:?}");
}

/// A flow that leads to the old port of a host keeps the host unreachable, and the harness detects this. Without
/// that flow, the same host is reachable at the same port, with the same neighbor entries.
fn a_flow_to_a_left_port_is_seen() {
    let Some(lab) = Lab::open_for_peer("a_flow_to_a_left_port_is_seen") else { return };
    let mut controller = Controller::start_peer(&lab, &[]);
    let (bridge, alice, bob) = network(&lab, Protocols::OpenFlow10);
    let elsewhere = Host::wire(&bridge, "elsewhere", 3, BOB_ETHERNET);
    alice.ping(BOB).assert_answered(2);
    alice.know(BOB, BOB_ETHERNET);
    elsewhere.know(ALICE, "02:00:00:00:00:0a");
    let stale = format!("priority=60000,dl_dst={BOB_ETHERNET},actions=output:2");
    bridge.add_flow(&stale);
    bob.vacate("02:00:00:00:00:0c");
    elsewhere.add_address(&format!("{BOB}/24"));
    assert_eq!(elsewhere.sent_frames(), 0, "a host that moves is silent");
    assert!(bridge.link_is_up(&bob.switch_interface()));

    assert!(!elsewhere.ping(ALICE).try_once());
    assert!(elsewhere.sent_frames() > 0);
    assert_eq!(alice.ping(BOB).answered_within(Duration::from_secs(2)), None, "the flow leads astray");
    bridge.delete_flows();
    assert!(elsewhere.ping(ALICE).answered_within(Duration::from_secs(2)).is_some());
    assert!(alice.ping(BOB).answered_within(Duration::from_secs(2)).is_some());
    controller.assert_running();
}

/// Without a controller, no packet passes a switch with `fail-mode=secure`. With one, unicast packets between known
/// hosts are not flooded.
fn nothing_passes_without_a_controller() {
    let Some(lab) = Lab::open_for_peer("nothing_passes_without_a_controller") else { return };
    let controller = Controller::start_peer(&lab, &[]);
    let (bridge, alice, bob) = network(&lab, Protocols::Default);
    let bystander = Host::wire(&bridge, "bystander", 3, "02:00:00:00:00:0c");
    alice.ping(BOB).assert_answered(3);
    let overheard = bystander.received_frames();
    assert!(overheard > 0, "the first frames were to be flooded");
    alice.ping(BOB).assert_answered(3);
    assert_eq!(bystander.received_frames(), overheard);
    controller.kill();
    bridge.wait_disconnected();
    bridge.delete_flows();
    alice.ping(BOB).assert_unanswered(2);
    bob.ping(ALICE).assert_unanswered(2);
}
