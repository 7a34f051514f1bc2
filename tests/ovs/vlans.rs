//! Separation of VLANs: the same Ethernet address exists in two VLANs, on different ports.
//!
//! Access switches in front of the switch under test tag the frames. The hosts have no 802.1Q interfaces, because
//! small kernels are built without them. The switch under test receives the same frames in both cases.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::harness::{Bridge, Controller, Host, Lab, Mirror, Protocols};

tests! {
    one_address_in_two_vlans_is_two_hosts_on_openflow_1_0,
    one_address_in_two_vlans_is_two_hosts_on_openflow_1_3,
}

const OFFICE: u16 = 10;
const PLANT: u16 = 20;

/// The Ethernet address of two machines in different VLANs. Only their IP addresses differ.
const CLONE_ETHERNET: &str = "02:00:00:00:00:0b";
const OFFICE_CLONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 10, 0, 2));
const PLANT_CLONE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 20, 0, 2));

/// Time during which no packet may reach the controller once flows are in place.
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

    // Port 1 is a trunk for both VLANs. One of the machines is behind port 2, the other one behind port 3.
    let access = ["trunk", "office", "plant"].map(|name| Bridge::access(&lab, name));
    for (number, switch) in (1..).zip(&access) {
        switch.join(9, &bridge, number);
    }
    let [trunk, office, plant] = &access;
    // The two callers also share one Ethernet address, so only the VLAN distinguishes the two pairs of hosts.
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
        // An address table that mixes the VLANs would take the two machines for one host that moves all the
        // time.
        mirror.no_packet_in_for(SILENCE).unwrap_or_else(|reason| panic!("between VLANs: {reason}"));
    });
    controller.assert_running();
    controller.stop();
}
