//! Flows that outlive their controller: correct flows are kept, the others are repaired, and no packets are lost
//! in the meantime.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use crate::harness::{Bridge, Controller, Host, Lab, Protocols, eventually};

tests! {
    no_packet_is_lost_by_a_crash_on_openflow_1_0,
    no_packet_is_lost_by_a_crash_on_openflow_1_3,
    a_flow_replaced_by_hand_is_put_right_on_openflow_1_0,
    a_flow_replaced_by_hand_is_put_right_on_openflow_1_3,
    the_flow_that_brings_packets_up_is_not_touched_by_a_restart_on_openflow_1_3,
    a_host_that_moved_while_there_was_no_controller_is_found_on_openflow_1_0,
    a_host_that_moved_while_there_was_no_controller_is_found_on_openflow_1_3,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

const ALICE_ETHERNET: &str = "02:00:00:00:00:0a";
const BOB_ETHERNET: &str = "02:00:00:00:00:0b";

/// Flows on the switch when its controller crashes.
const FLOWS: usize = 5_000;

/// Number of echo requests, 10 ms apart. They cover some seconds before the crash, the whole time without a
/// controller, and some seconds after the restart.
const REQUESTS: u32 = 1_500;

/// Time limit within which a host that has moved must be reachable once a controller is running again.
const FIND_LIMIT: Duration = Duration::from_secs(2);

/// Time limit for a repair of flows that a command requests.
const REPAIR_LIMIT: Duration = Duration::from_secs(5);

/// Time limit for a repair without a command: the controller reads the flows every minute, and a read takes some time.
const MINUTE: Duration = Duration::from_secs(62);

/// A flow that was added by hand. Its cookie does not mark it as a flow of this controller.
const FOREIGN: &str = "priority=7,dl_src=02:00:00:00:00:77,actions=drop";

fn no_packet_is_lost_by_a_crash_on_openflow_1_0() {
    crash_under_load("no_packet_is_lost_by_a_crash_on_openflow_1_0", Protocols::OpenFlow10);
}

fn no_packet_is_lost_by_a_crash_on_openflow_1_3() {
    crash_under_load("no_packet_is_lost_by_a_crash_on_openflow_1_3", Protocols::OpenFlow13);
}

fn crash_under_load(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let controller = Controller::start(&lab);
    let (bridge, alice, bob) = two_hosts(&lab, protocols);
    alice.ping(BOB).assert_answered(3);
    alice.know(BOB, BOB_ETHERNET);
    bob.know(ALICE, ALICE_ETHERNET);
    alice.ping(BOB).assert_answered(2);
    let before = flows(&bridge);
    let learned = before.iter().find(|flow| flow.contains("hard_timeout")).expect("a flow was learned");
    add_many(&lab, &bridge, field(learned, "cookie="));
    bridge.add_flow(FOREIGN);

    let mut returned = None;
    let mut touched_after = Duration::ZERO;
    std::thread::scope(|scope| {
        let count = REQUESTS.to_string();
        let (alice, to) = (&alice, BOB.to_string());
        let pinging = scope.spawn(move || {
            let words = ["ping", "-n", "-q", "-c", &count, "-i", "0.01", "-W", "2", &to];
            alice.lab().run(&alice.words(&words), Duration::from_secs(60)).output
        });
        std::thread::sleep(Duration::from_secs(3));
        let killed = Instant::now();
        controller.kill();
        bridge.wait_disconnected();
        if protocols != Protocols::OpenFlow10 {
            // remove the table-miss flow so that it is missing when the controller is running again
            lab.succeed(&[
                "ovs-ofctl",
                "-O",
                "OpenFlow13",
                "--strict",
                "del-flows",
                bridge.name(),
                "priority=0",
            ]);
        }
        returned = Some(Controller::start(&lab));
        bridge.wait_connected();
        let said = pinging.join().expect("ping ends");
        assert!(said.contains(&format!("{REQUESTS} packets transmitted, {REQUESTS} received")), "{said}");
        touched_after = killed.elapsed();
    });
    let mut controller = returned.expect("came back");

    // a modification of a flow resets its age
    let after = flows(&bridge);
    let ours: Vec<_> = after.iter().filter(|flow| flow.contains("hard_timeout")).collect();
    assert!(ours.len() >= FLOWS + 2, "{} flows are left", ours.len());
    for flow in ours {
        let age: f64 = field(flow, "duration=").trim_end_matches('s').parse().expect("a duration");
        assert!(age > touched_after.as_secs_f64(), "touched: {flow}");
    }
    assert!(after.iter().any(|flow| flow.contains("priority=7")), "the flow by hand is gone");
    let told = json(&lab, &[]);
    let list = told["flows"].as_array().expect("flows");
    let in_state = |state: &str| list.iter().filter(|flow| flow["state"] == state).count();
    assert_eq!((in_state("soft"), in_state("foreign")), (FLOWS + 2, 1));
    let learned = list.iter().find(|flow| flow["state"] == "soft").expect("learned");
    assert_eq!((&learned["app"], &learned["cause"]), (&"learning-switch".into(), &"PacketIn".into()));
    let drift = lab.run(&[&program(&lab), "flows", "--drift"], REPAIR_LIMIT);
    assert_eq!(drift.status.code(), Some(0), "others' flows are no drift: {}{}", drift.output, drift.error);
    assert!(
        drift.output.contains("foreign") && !drift.output.contains("learning-switch"),
        "{}",
        drift.output
    );
    if protocols != Protocols::OpenFlow10 {
        repairs(&lab, &bridge);
    }
    assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    controller.assert_running();
    controller.stop();
}

/// The table-miss flow, which is an intended flow like any other, is restored, no matter whether it was removed or
/// replaced and whether the switch reports this.
fn repairs(lab: &Lab, bridge: &Bridge<'_>) {
    let in_order =
        || flows(bridge).iter().any(|flow| flow.contains("priority=0") && flow.contains("CONTROLLER"));
    assert!(in_order(), "it was put back when the controller came back");
    lab.succeed(&["ovs-ofctl", "-O", "OpenFlow13", "--strict", "del-flows", bridge.name(), "priority=0"]);
    eventually("a flow that was deleted is back", REPAIR_LIMIT, || in_order().then_some(()));
    bridge.add_flow("priority=0,actions=drop");
    assert!(!in_order());
    let drift = lab.run(&[&program(lab), "flows", "--drift"], REPAIR_LIMIT);
    assert_eq!(drift.status.code(), Some(3), "{}{}", drift.output, drift.error);
    let different = json(lab, &["--drift"]);
    let list = different["flows"].as_array().expect("flows");
    assert!(list.iter().any(|flow| flow["state"] == "different" && flow["actions"] == "drop"), "{different}");
    let verified = lab.run(&[&program(lab), "flows", "--verify"], REPAIR_LIMIT);
    assert!(verified.error.contains("1 installed, 0 removed"), "{}", verified.error);
    assert!(in_order(), "{:?}", flows(bridge));
}

/// An intended flow that was replaced by hand, which the switch does not report. `--verify` repairs the flow at once.
/// Otherwise the controller repairs it within a minute, which is tested only with `BEEHIVE_LONG=1`.
fn replaced_by_hand(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start_with(&lab, "discovery,learning-switch", "");
    let (bridge, ..) = two_hosts(&lab, protocols);
    let in_order = || {
        let probes = flows(&bridge).into_iter().find(|flow| flow.contains("priority=60001"));
        probes.is_some_and(|flow| flow.contains("actions=CONTROLLER"))
    };
    eventually("probes are brought up", REPAIR_LIMIT, || in_order().then_some(()));
    let replace = || {
        bridge.add_flow("priority=60001,dl_type=0x88cc,actions=drop");
        assert!(!in_order(), "{:?}", flows(&bridge));
    };
    replace();
    let verified = lab.run(&[&program(&lab), "flows", "--verify"], REPAIR_LIMIT);
    assert!(verified.error.contains("1 installed, 0 removed"), "{}", verified.error);
    assert!(in_order(), "{:?}", flows(&bridge));
    if std::env::var_os("BEEHIVE_LONG").is_some() {
        replace();
        let ((), took) = eventually("it is put right", MINUTE, || in_order().then_some(()));
        println!("{test}: put right after {took:?}");
    }
    assert_eq!(bridge.refusals(), Vec::<String>::new(), "the switch refused messages");
    controller.assert_running();
    controller.stop();
}

fn a_flow_replaced_by_hand_is_put_right_on_openflow_1_0() {
    replaced_by_hand("a_flow_replaced_by_hand_is_put_right_on_openflow_1_0", Protocols::OpenFlow10);
}

fn a_flow_replaced_by_hand_is_put_right_on_openflow_1_3() {
    replaced_by_hand("a_flow_replaced_by_hand_is_put_right_on_openflow_1_3", Protocols::OpenFlow13);
}

fn the_flow_that_brings_packets_up_is_not_touched_by_a_restart_on_openflow_1_3() {
    let test = "the_flow_that_brings_packets_up_is_not_touched_by_a_restart_on_openflow_1_3";
    let Some(lab) = Lab::open(test) else { return };
    let controller = Controller::start(&lab);
    let bridge = Bridge::new(&lab, "br0", 1, Protocols::OpenFlow13);
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();
    let misses = || flows(&bridge).into_iter().find(|flow| flow.contains("CONTROLLER"));
    eventually("misses are brought up", REPAIR_LIMIT, misses);
    controller.stop();
    bridge.wait_disconnected();

    let away = Instant::now();
    // after this pause, a flow that is modified is younger than `away` by more than the rounding of ages
    std::thread::sleep(Duration::from_millis(500));
    let mut controller = Controller::start(&lab);
    bridge.wait_connected();
    // this returns when the controller has read the flows of the switch again
    let verified = lab.run(&[&program(&lab), "flows", "--verify"], REPAIR_LIMIT);
    assert!(verified.error.contains(": 1 kept, 0 installed, 0 removed"), "{}", verified.error);
    let touched_after = away.elapsed();
    let flow = misses().expect("it is there");
    let age: f64 = field(&flow, "duration=").trim_end_matches('s').parse().expect("a duration");
    assert!(age > touched_after.as_secs_f64(), "touched: {flow}");
    let switches = lab.succeed(&[&program(&lab), "switches", "--json"]);
    let switches: serde_json::Value = serde_json::from_str(&switches).expect("JSON");
    assert_eq!(switches["switches"][0]["flows_installed"], 0, "{switches}");
    controller.assert_running();
    controller.stop();
}

fn a_host_that_moved_while_there_was_no_controller_is_found_on_openflow_1_0() {
    moves_meanwhile(
        "a_host_that_moved_while_there_was_no_controller_is_found_on_openflow_1_0",
        Protocols::OpenFlow10,
    );
}

fn a_host_that_moved_while_there_was_no_controller_is_found_on_openflow_1_3() {
    moves_meanwhile(
        "a_host_that_moved_while_there_was_no_controller_is_found_on_openflow_1_3",
        Protocols::OpenFlow13,
    );
}

fn moves_meanwhile(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let controller = Controller::start(&lab);
    let (bridge, alice, bob) = two_hosts(&lab, protocols);
    let elsewhere = Host::wire(&bridge, "elsewhere", 3, BOB_ETHERNET);
    alice.ping(BOB).assert_answered(3);
    alice.know(BOB, BOB_ETHERNET);
    elsewhere.know(ALICE, ALICE_ETHERNET);
    controller.kill();
    bridge.wait_disconnected();
    bob.vacate("02:00:00:00:00:0c");
    elsewhere.add_address(&format!("{BOB}/24"));
    // the host's old port is up, and flows lead to it
    assert!(bridge.link_is_up(&bob.switch_interface()));
    assert!(!alice.ping(BOB).try_once());

    let mut controller = Controller::start(&lab);
    bridge.wait_connected();
    let took = elsewhere.ping(ALICE).until_answered(FIND_LIMIT);
    println!("{test}: heard after {took:?}");
    alice.ping(BOB).until_answered(FIND_LIMIT);
    alice.ping(BOB).assert_answered(3);
    controller.assert_running();
    controller.stop();
}

fn two_hosts<'lab>(lab: &'lab Lab, protocols: Protocols) -> (Bridge<'lab>, Host<'lab>, Host<'lab>) {
    let bridge = Bridge::new(lab, "br0", 1, protocols);
    bridge.point_at(Controller::PORT);
    let alice = Host::wire(&bridge, "alice", 1, ALICE_ETHERNET);
    let bob = Host::wire(&bridge, "bob", 2, BOB_ETHERNET);
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));
    bridge.wait_connected();
    (bridge, alice, bob)
}

/// Adds flows like those of the learning switch, between a hundred stations behind one port and fifty behind another
/// port.
fn add_many(lab: &Lab, bridge: &Bridge<'_>, cookie: &str) {
    let mut text = String::new();
    for number in 0..FLOWS {
        let (source, destination) = (number % 100, number / 100);
        text += &format!(
            "cookie={cookie},idle_timeout=60,hard_timeout=150,priority=100,in_port=1,dl_vlan=0xffff,\
             dl_src=02:00:00:00:01:{source:02x},dl_dst=02:00:00:00:02:{destination:02x},actions=output:2\n"
        );
    }
    let file = lab.file("flows");
    std::fs::write(&file, text).expect("writes");
    let file = file.to_string_lossy().into_owned();
    lab.succeed(&["ovs-ofctl", "-O", "OpenFlow10,OpenFlow13", "add-flows", bridge.name(), &file]);
}

fn flows(bridge: &Bridge<'_>) -> Vec<String> {
    bridge.flows().lines().filter(|line| line.contains("actions=")).map(str::to_owned).collect()
}

/// Returns the text that follows `name` in the text of a flow, up to the next comma.
fn field<'a>(flow: &'a str, name: &str) -> &'a str {
    let from = flow.find(name).map(|at| at + name.len()).unwrap_or_else(|| panic!("no {name} in {flow}"));
    flow[from..].split([',', ' ']).next().unwrap_or_default()
}

fn program(lab: &Lab) -> String {
    lab.controller().to_string_lossy().into_owned()
}

fn json(lab: &Lab, more: &[&str]) -> serde_json::Value {
    let program = program(lab);
    let words = [&[program.as_str(), "flows", "--json"], more].concat();
    let finished = lab.run(&words, REPAIR_LIMIT);
    serde_json::from_str(&finished.output)
        .unwrap_or_else(|error| panic!("{error}:\n{}{}", finished.output, finished.error))
}
