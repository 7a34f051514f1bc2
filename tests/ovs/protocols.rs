//! The whole life of a small network, for each set of OpenFlow versions to which switches are commonly pinned.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use crate::harness::{Bridge, Controller, Host, Lab, Mirror, Protocols, eventually};

tests! {
    default_protocols,
    pinned_to_openflow_1_0,
    pinned_to_openflow_1_3,
    pinned_to_openflow_1_1,
    pinned_to_openflow_1_2,
    pinned_to_openflow_1_4,
    pinned_to_openflow_1_5,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const CAROL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

const ALICE_ETHERNET: &str = "02:00:00:00:00:0a";
const BOB_ETHERNET: &str = "02:00:00:00:00:0b";
const CAROL_ETHERNET: &str = "02:00:00:00:00:0c";

/// Time during which no packet may reach the controller once flows are in place.
const SILENCE: Duration = Duration::from_secs(5);

/// Time limit within which a host that has moved must be reachable after its first frame.
const MOVE_LIMIT: Duration = Duration::from_secs(2);

/// Time limit for a restarted controller to serve hosts again.
const RETURN_LIMIT: Duration = Duration::from_secs(10);

fn default_protocols() {
    life_of_a_network("default_protocols", Protocols::Default);
}

fn pinned_to_openflow_1_0() {
    life_of_a_network("pinned_to_openflow_1_0", Protocols::OpenFlow10);
}

fn pinned_to_openflow_1_3() {
    life_of_a_network("pinned_to_openflow_1_3", Protocols::OpenFlow13);
}

fn pinned_to_openflow_1_1() {
    life_of_a_network("pinned_to_openflow_1_1", Protocols::OpenFlow11);
}

fn pinned_to_openflow_1_2() {
    life_of_a_network("pinned_to_openflow_1_2", Protocols::OpenFlow12);
}

fn pinned_to_openflow_1_4() {
    life_of_a_network("pinned_to_openflow_1_4", Protocols::OpenFlow14);
}

fn pinned_to_openflow_1_5() {
    life_of_a_network("pinned_to_openflow_1_5", Protocols::OpenFlow15);
}

fn life_of_a_network(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start(&lab);
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();
    let mirror = Mirror::open(&bridge);

    let alice = Host::wire(&bridge, "alice", 1, ALICE_ETHERNET);
    let bob = Host::wire(&bridge, "bob", 2, BOB_ETHERNET);
    // The place to which Bob will move. Its port is up from the start, so no port-status message reveals the
    // move.
    let elsewhere = Host::wire(&bridge, "elsewhere", 3, BOB_ETHERNET);
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));

    hosts_reach_each_other(&mirror, &alice, protocols);
    the_controller_is_left_alone(&mirror, &alice, &elsewhere);
    a_host_moves_unannounced(&bridge, &alice, &bob, &elsewhere);
    assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    controller.assert_running();

    // From here on, Carol is at the place that Bob has left. She has not talked to any host yet.
    bob.add_address(&format!("{CAROL}/24"));
    let took = controller.stop();
    println!("{test}: the controller ended {took:?} after SIGTERM");
    alice.ping(CAROL).assert_unanswered(3);
    bridge.delete_flows();
    alice.ping(BOB).assert_unanswered(3);

    // The same hosts reach each other once a controller is running. This shows that the pings above failed
    // because there was no controller.
    bridge.wait_disconnected();
    let mut controller = Controller::start(&lab);
    bridge.wait_connected();
    let took = alice.ping(CAROL).until_answered(RETURN_LIMIT);
    println!("{test}: a new pair pinged {took:?} after the controller had come back");
    controller.assert_running();
}

/// Sends three pings between hosts that have never talked. The controller must forward them, using the expected
/// version.
fn hosts_reach_each_other(mirror: &Mirror, alice: &Host<'_>, protocols: Protocols) {
    let mark = mirror.mark();
    alice.ping(BOB).assert_answered(3);
    eventually("the mirror shows the first packets", Duration::from_secs(2), || {
        (mirror.packet_ins_since(mark) > 0).then_some(())
    });
    for message in mirror.messages() {
        assert_eq!(message.version, protocols.agreed(), "{}", message.line);
    }
}

/// While the two hosts continue to talk, flows forward all packets: there is no packet-in, and no other host
/// sees their frames.
fn the_controller_is_left_alone(mirror: &Mirror, alice: &Host<'_>, bystander: &Host<'_>) {
    let overheard = bystander.received_frames();
    std::thread::scope(|scope| {
        let talk = scope.spawn(|| alice.ping(BOB).assert_answered(25));
        mirror.no_packet_in_for(SILENCE).unwrap_or_else(|reason| panic!("after three pings: {reason}"));
        talk.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert_eq!(bystander.received_frames(), overheard, "frames between two known hosts were flooded");
}

/// Bob's addresses move to port 3 while port 2 stays up. Nothing announces the move, and no host sends an ARP
/// request.
fn a_host_moves_unannounced(bridge: &Bridge<'_>, alice: &Host<'_>, bob: &Host<'_>, elsewhere: &Host<'_>) {
    alice.know(BOB, BOB_ETHERNET);
    elsewhere.know(ALICE, ALICE_ETHERNET);
    // The flows that are about to become wrong are in use until the last moment.
    alice.ping(BOB).assert_answered(2);
    bob.vacate(CAROL_ETHERNET);
    elsewhere.add_address(&format!("{BOB}/24"));

    assert_eq!(elsewhere.sent_frames(), 0, "the host was to move without a word");
    alice.ping(BOB).assert_unanswered(2);
    assert_eq!(elsewhere.sent_frames(), 0, "the host was to move without a word");
    assert!(bridge.link_is_up(&bob.switch_interface()), "the old port was to stay up");

    let first_frame = Instant::now();
    let answered = elsewhere.ping(ALICE).try_once();
    assert!(elsewhere.sent_frames() > 0, "the host was to send a frame, and was answered: {answered}");
    let left = MOVE_LIMIT.saturating_sub(first_frame.elapsed());
    if alice.ping(BOB).answered_within(left).is_none() {
        panic!(
            "a moved host was not reachable within {MOVE_LIMIT:?} of its first frame; flows:\n{}",
            bridge.flows()
        );
    }
    println!("a moved host was reachable {:?} after its first frame", first_frame.elapsed());
    elsewhere.ping(ALICE).assert_answered(2);
    assert!(bridge.link_is_up(&bob.switch_interface()), "the old port was to stay up");
}
