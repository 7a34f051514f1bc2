//! Tests the learning switch on a simulated switch: hosts talk, move and disappear, and flows follow them.

use crate::harness::{Deciding, Host, Lab, host};
use beehive_nom::apps::LearningSwitch;
use beehive_nom::object::{
    Action, Actions, AddFlow, DelFlows, FlowMatch, FlowScope, Mac, NodeId, Owner, PortNo, Tag, Vlan,
};
use beehive_nom::parts::OwnsFlows;

#[tokio::test]
async fn hosts_talk_and_then_the_switch_forwards_alone() {
    let lab = Lab::learning("", true).await;
    let (a, b) = (host(1, 1), host(2, 2));
    assert_eq!(lab.send(a, b.mac).await, [2, 3, 4], "unknown: everywhere but back");
    assert_eq!(lab.send(b, a.mac).await, [1]);
    assert_eq!(lab.send(a, b.mac).await, [2]);

    let before = lab.packet_ins();
    for _ in 0..3 {
        assert!(lab.ping(a, b).await);
    }

    assert_eq!(lab.packet_ins(), before, "packets still come up");
    let flows = lab.flows();
    assert_eq!(flows.len(), 2);

    for flow in &flows {
        let FlowMatch { port, source, destination, tag, .. } = flow.matching;
        assert!(port.is_some() && source.is_some() && destination.is_some() && tag == Some(Tag::Untagged));
        assert_eq!((flow.idle_s, flow.hard_s, flow.owner), (60, 150, LearningSwitch::OWNER));
    }
}

#[tokio::test]
async fn a_host_that_moved_is_reachable_after_its_first_packet() {
    for knows_owners in [true, false] {
        let lab = Lab::learning("", knows_owners).await;
        let (a, b) = (host(1, 1), host(2, 2));
        assert!(lab.ping(a, b).await);
        // the old port stays up, and the host does not broadcast
        let moved = Host { port: PortNo(3), ..b };
        assert_eq!(lab.send(a, b.mac).await, [2], "nobody knows yet");
        assert_eq!(lab.send(moved, a.mac).await, [1]);
        assert_eq!(lab.send(a, b.mac).await, [3], "its first packet told");
        // and the host moves back: the flows of its previous port must not hide it
        assert_eq!(lab.send(b, a.mac).await, [1]);
        assert_eq!(lab.send(a, b.mac).await, [2]);
    }
}

#[tokio::test]
async fn a_dead_port_takes_its_flows_and_addresses_with_it() {
    let lab = Lab::learning("", true).await;
    let (a, b, c) = (host(1, 1), host(2, 2), host(3, 3));
    assert!(lab.ping(a, b).await && lab.ping(a, c).await);
    lab.switch.set_up(PortNo(2), false);
    lab.settled().await;

    let flows = lab.flows();
    assert_eq!(flows.len(), 2, "those between the others stay: {flows:?}");
    assert!(flows.iter().all(|f| !FlowScope::Through(PortNo(2)).contains(f)));
    assert_eq!(lab.send(a, b.mac).await, [3, 4], "not known any more");
    lab.switch.set_up(PortNo(2), true);
    lab.settled().await;

    assert!(lab.ping(a, b).await);
}

#[tokio::test]
async fn addresses_age_but_not_while_a_flow_leads_to_them() {
    let lab = Lab::learning("[learning-switch]\nage_s = 100\nidle_s = 1000", true).await;
    let (a, b) = (host(1, 1), host(2, 2));
    assert_eq!(lab.send(b, a.mac).await, [1, 3, 4]); // the last packet of b
    lab.pass(95).await;
    assert_eq!(lab.send(a, b.mac).await, [2]);

    // the flow lives for 50 seconds. So does the entry of b, although b has been silent for longer than the
    // maximum age
    lab.pass(40).await;
    let c = host(3, 3);
    assert_eq!(lab.send(c, b.mac).await, [2], "b is known as long as a flow leads to it");

    // b moves, and its first packet comes to the controller
    let moved = Host { port: PortNo(4), ..b };
    assert_eq!(lab.send(moved, c.mac).await, [3]);
    assert_eq!(lab.send(a, b.mac).await, [4]);
    lab.pass(130).await;
    assert!(lab.flows().is_empty());

    assert_eq!(lab.send(a, c.mac).await, [2, 3, 4], "c has not been heard for longer than its age");
}

#[tokio::test]
async fn vlans_are_apart() {
    let lab = Lab::learning("", true).await;
    let tagged = |port, number, vlan| Host { tag: Tag::Id(Vlan(vlan)), ..host(port, number) };
    // one address in two VLANs, on different ports
    let (first, second) = (tagged(1, 9, 10), tagged(2, 9, 20));
    let (of_first, of_second) = (tagged(3, 1, 10), tagged(4, 2, 20));

    assert!(lab.ping(first, of_first).await);
    assert!(lab.ping(second, of_second).await);
    assert!(lab.ping(first, of_first).await);
    assert_eq!(lab.send(of_first, first.mac).await, [1]);

    assert_eq!(lab.send(of_second, second.mac).await, [2]);
}

#[tokio::test]
async fn what_is_for_the_bridge_is_neither_learned_nor_forwarded() {
    let lab = Lab::learning("", true).await;
    let a = host(1, 1);
    assert_eq!(lab.send(a, Mac([0x01, 0x80, 0xc2, 0, 0, 0x0e])).await, [0u32; 0]);
    let multicast = Host { mac: Mac([3, 0, 0, 0, 0, 1]), ..host(2, 0) };
    assert_eq!(lab.send(multicast, a.mac).await, [0u32; 0]);
    assert_eq!(
        lab.send(host(3, 3), a.mac).await,
        [1, 2, 4],
        "nothing was learned of the frame to the bridge"
    );

    assert_eq!(lab.send(a, Mac::BROADCAST).await, [2, 3, 4]);
}

#[tokio::test]
async fn forged_addresses_fill_neither_memory_nor_the_flow_table() {
    let settings = "[learning-switch]\nstations_per_port_max = 5\nstations_per_node_max = 8";
    let lab = Lab::learning(settings, true).await;
    let (a, b) = (host(1, 1), host(2, 2));
    assert!(lab.ping(a, b).await);

    for number in 10..60 {
        assert_eq!(lab.send(host(3, number), a.mac).await, [1], "its packets pass all the same");
    }

    assert_eq!(lab.flows().len(), 2 + 5, "flows for those that were learned only");
    assert!(lab.ping(a, b).await, "other ports do not notice");
    assert!(lab.ping(host(4, 4), a).await, "and learn as ever");

    // the learned addresses expire
    lab.pass(320).await;
    assert!(lab.ping(host(3, 200), host(1, 1)).await);
    assert!(lab.flows().iter().any(|f| f.matching.source == Some(host(3, 200).mac)));
}

#[tokio::test]
async fn a_switch_that_comes_back_starts_with_what_it_should_have() {
    let lab = Lab::learning("", true).await;
    let (a, b) = (host(1, 1), host(2, 2));
    assert!(lab.ping(a, b).await);
    let firewall = Owner::named("firewall");
    let matching = FlowMatch { source: Some(Mac([2, 0, 0, 0, 0, 0x66])), ..FlowMatch::ANY };
    let wall = AddFlow::new(NodeId(1), firewall, matching, Actions::None).priority(900);

    lab.hive.request(wall.clone()).await.unwrap();
    // the request is answered at the commit; the switch receives the flow afterwards
    lab.settled().await;
    assert_eq!(lab.flows().len(), 3);
    lab.switch.disconnect();
    lab.settled().await;
    lab.switch.connect();
    lab.settled().await;

    assert_eq!(lab.flows().len(), 3, "what was good is still there");
    let before = lab.packet_ins();
    assert!(lab.ping(a, b).await);
    assert_eq!(lab.packet_ins(), before, "no packet has to come up");
    lab.hive.request(DelFlows { node: NodeId(1), owner: firewall, scope: FlowScope::All }).await.unwrap();
    lab.settled().await;

    assert!(lab.flows().iter().all(|f| f.owner == LearningSwitch::OWNER) && lab.flows().len() == 2);
}

#[tokio::test]
async fn withdrawing_at_a_switch_that_knows_no_owners_spares_the_others() {
    let lab = Lab::learning("", false).await;
    let (a, b) = (host(1, 1), host(2, 2));
    let mirror = Owner::named("mirror");
    let to_b = FlowMatch { destination: Some(b.mac), ..FlowMatch::ANY };
    let actions = Actions::One(Action::Output(PortNo(4)));
    let kept = AddFlow::new(NodeId(1), mirror, to_b, actions).priority(1);

    lab.hive.request(kept.clone()).await.unwrap();
    // b moves, so flows to it are withdrawn, including the mirror's, which is installed again
    assert_eq!(lab.send(b, a.mac).await, [1, 3, 4]);
    let moved = Host { port: PortNo(3), ..b };
    assert_eq!(lab.send(moved, a.mac).await, [1, 2, 4]);

    assert!(lab.flows().contains(&kept.flow));
}

#[tokio::test]
async fn the_hub_floods() {
    let lab = Lab::new(Deciding::Hub, "", true).await;
    let (a, b) = (host(1, 1), host(2, 2));
    assert_eq!(lab.send(a, b.mac).await, [2, 3, 4]);
    assert_eq!(lab.send(b, a.mac).await, [1, 3, 4]);
    assert_eq!(lab.send(a, Mac([0x01, 0x80, 0xc2, 0, 0, 0])).await, [0u32; 0]);
    assert!(lab.flows().is_empty());
}

#[test]
fn maps_are_one_cell_of_one_switch() {
    use beehive_core::testing::maps::describe;
    use beehive_nom::object::PortDown;
    let message = PortDown { node: NodeId(7), port: PortNo(1), removed: false };
    let mapped = describe::<LearningSwitch, PortDown>(&message);
    assert_eq!(mapped.cells.len(), 1, "all columns of a switch are one cell: {:?}", mapped.words);
}
