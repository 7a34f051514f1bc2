//! A controller that crashes and restarts while the switch keeps running.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Mirror, Protocols, eventually};

tests! {
    a_crashed_controller_serves_impatient_hosts_again_on_openflow_1_0,
    a_crashed_controller_serves_impatient_hosts_again_on_openflow_1_3,
}

const ALICE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const BOB: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Time limit, from the start of the controller, within which hosts that keep trying must reach each other: the
/// switch's back-off, the handshake and one packet.
const RETURN_LIMIT: Duration = Duration::from_secs(8);

/// Maximum delay of the mirror.
const MIRROR_LIMIT: Duration = Duration::from_secs(10);

/// With 1.0, no flow sends unknown packets to the controller, and while there is no controller, Open vSwitch drops
/// such packets and caches this decision. Hosts that never pause keep the cached decision alive, unless the new
/// controller changes the flow table.
fn a_crashed_controller_serves_impatient_hosts_again_on_openflow_1_0() {
    crashes_and_returns(
        "a_crashed_controller_serves_impatient_hosts_again_on_openflow_1_0",
        Protocols::OpenFlow10,
    );
}

fn a_crashed_controller_serves_impatient_hosts_again_on_openflow_1_3() {
    crashes_and_returns(
        "a_crashed_controller_serves_impatient_hosts_again_on_openflow_1_3",
        Protocols::Default,
    );
}

fn crashes_and_returns(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    // The switch starts first, as after a power failure, so it must find a controller that starts later.
    bridge.point_at(Controller::PORT);
    let alice = Host::wire(&bridge, "alice", 1, "02:00:00:00:00:0a");
    let bob = Host::wire(&bridge, "bob", 2, "02:00:00:00:00:0b");
    alice.add_address(&format!("{ALICE}/24"));
    bob.add_address(&format!("{BOB}/24"));

    for round in 1..=3 {
        // The second controller finds the flows of the first one. The third controller finds none.
        if round != 2 {
            bridge.delete_flows();
            alice.ping(BOB).assert_unanswered(3);
        }
        let mut controller = Controller::start(&lab);
        let took = alice.ping(BOB).until_answered(RETURN_LIMIT);
        println!("{test}: round {round}: reachable after {took:?}");
        bridge.wait_connected();
        let mirror = Mirror::open(&bridge);
        let mark = mirror.mark();
        // A host that has forgotten the other one sends a broadcast, for which there is no flow.
        alice.forget_neighbors();
        bob.forget_neighbors();
        alice.ping(BOB).assert_answered(3);
        eventually(&format!("round {round}: the mirror shows who asks the controller"), MIRROR_LIMIT, || {
            (mirror.packet_ins_since(mark) > 0).then_some(())
        });
        controller.assert_running();
        controller.kill();
        bridge.wait_disconnected();
    }
}
