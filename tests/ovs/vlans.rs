//! VLANs kept apart: one Ethernet address lives in two of them, on different ports.
//!
//! Tagging is done by access switches in front of the switch under test, not by 802.1Q sub-interfaces of the hosts:
//! small kernels are built without those, and for the switch under test the frames are the same.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Mirror, Protocols};

tests! {
    one_address_in_two_vlans_is_two_hosts_on_openflow_1_0,
    one_address_in_two_vlans_is_two_hosts_on_openflow_1_3,
}

const OFFICE: u16 = 10;
const PLANT: u16 = 20;

/// The two machines with one Ethernet address: clones in different VLANs. The IP addresses differ in nothing else.
const CLONE_ETHERNET: &str = "02:00:00:00:00:0b";
const OFFICE_CLONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 10, 0, 2));
const PLANT_CLONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 20, 0, 2));

/// How long nothing may reach the controller once flows are in place.
const SILENCE: Duration = Duration::from_secs(5);

fn one_address_in_two_vlans_is_two_hosts_on_openflow_1_0() {
    clones_in_two_vlans("one_address_in_two_vlans_is_two_hosts_on_openflow_1_0", Protocols::OpenFlow10);
}

fn one_address_in_two_vlans_is_two_hosts_on_openflow_1_3() {
    clones_in_two_vlans("one_address_in_two_vlans_is_two_hosts_on_openflow_1_3", Protocols::OpenFlow13);
}

fn clones_in_two_vlans(test: &str, protocols: Protocols) {
    let Some(lab) = Lab::open(test) else { return };
    let mut controller = Controller::start(&lab);
    let bridge = Bridge::new(&lab, "br0", 1, protocols);
    bridge.point_at(Controller::PORT);
    bridge.wait_connected();

    // Port 1 is a trunk of both VLANs; behind port 2 is one clone, behind port 3 the other.
    let access = ["trunk", "office", "plant"].map(|name| Bridge::access(&lab, name));
    for (number, switch) in (1..).zip(&access) {
        switch.join(9, &bridge, number);
    }
    let [trunk, office, plant] = &access;
    // The two callers have one Ethernet address too: only the VLAN tells a pair of hosts from the other.
    let caller = "02:00:00:00:00:0a";
    let office_caller = Host::wire_to_vlan(trunk, "office-call", 1, caller, OFFICE);
    let plant_caller = Host::wire_to_vlan(trunk, "plant-call", 2, caller, PLANT);
    let office_clone = Host::wire_to_vlan(office, "office-host", 1, CLONE_ETHERNET, OFFICE);
    let plant_clone = Host::wire_to_vlan(plant, "plant-host", 1, CLONE_ETHERNET, PLANT);
    office_caller.add_address("10.10.0.1/24");
    plant_caller.add_address("10.20.0.1/24");
    office_clone.add_address(&format!("{OFFICE_CLONE}/24"));
    plant_clone.add_address(&format!("{PLANT_CLONE}/24"));

    let mirror = Mirror::open(&bridge);
    let mark = mirror.mark();
    let both = |count: u32| {
        std::thread::scope(|scope| {
            scope.spawn(|| office_caller.ping(OFFICE_CLONE).assert_answered(count));
            scope.spawn(|| plant_caller.ping(PLANT_CLONE).assert_answered(count));
        });
    };
    both(3);
    assert!(mirror.packet_ins_since(mark) > 0, "nobody asked the controller");
    let tagged = |vlan: u16| mirror.shows(mark, &format!("dl_vlan={vlan},"));
    assert!(tagged(OFFICE) && tagged(PLANT), "the frames were to be tagged");
    std::thread::scope(|scope| {
        scope.spawn(|| both(25));
        // A table that mixes the VLANs takes the clone for a host that moves all the time.
        mirror.no_packet_in_for(SILENCE).unwrap_or_else(|reason| panic!("between VLANs: {reason}"));
    });
    controller.assert_running();
    controller.stop();
}
