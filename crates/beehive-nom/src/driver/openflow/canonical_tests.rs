//! Checks the driver's comparison of flows against the codec's
//! canonical forms, which are independent of network objects.

use super::wire;
use crate::object::{Action, Actions, Cause, Conversation, Flow, FlowMatch, Mac, Owner, PortNo, Tag, Vlan};
use beehive_of::any as general;
use beehive_of::message::{Canonical, Message};
use beehive_of::text::{self, show_flow};
use beehive_of::{Frame, Version};
use bytes::BytesMut;
use proptest::prelude::*;
use std::net::IpAddr;

fn mac() -> impl Strategy<Value = Mac> {
    (0..3u8).prop_map(|last| Mac([2, 0, 0, 0, 0, last]))
}

fn tag() -> impl Strategy<Value = Tag> {
    prop_oneof![Just(Tag::Untagged), (1..3u16).prop_map(|vlan| Tag::Id(Vlan(vlan)))]
}

fn conversation() -> impl Strategy<Value = Box<Conversation>> {
    let addresses = prop_oneof![
        (0..2u8, 0..2u8).prop_map(|(s, d)| (IpAddr::from([10, 0, 0, s]), IpAddr::from([10, 0, 1, d]))),
        (0..2u16, 0..2u16).prop_map(|(s, d)| {
            (IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, s]), IpAddr::from([0xfd, 0, 0, 0, 0, 0, 1, d]))
        }),
    ];
    let ports = (prop_oneof![Just(6u8), Just(17)], 1..3u16, 1..3u16);
    (addresses, ports).prop_map(|((source, destination), (protocol, source_port, destination_port))| {
        Box::new(Conversation { source, destination, protocol, source_port, destination_port })
    })
}

fn matching() -> impl Strategy<Value = FlowMatch> {
    use prop::option::of;
    let upper = prop_oneof![
        2 => Just((None, None)),
        1 => prop_oneof![Just(0x0800u16), Just(0x0806), Just(0x86dd)].prop_map(|kind| (Some(kind), None)),
        2 => conversation().prop_map(|conversation| (None, Some(conversation))),
    ];
    (of((1..4u32).prop_map(PortNo)), of(mac()), of(mac()), of(tag()), upper).prop_map(
        |(port, source, destination, tag, (ethertype, conversation))| FlowMatch {
            port,
            source,
            destination,
            tag,
            ethertype,
            conversation,
        },
    )
}

fn actions() -> impl Strategy<Value = Actions> {
    let action = prop_oneof![
        3 => (1..4u32).prop_map(|port| Action::Output(PortNo(port))),
        1 => mac().prop_map(Action::SetSource),
        1 => mac().prop_map(Action::SetDestination),
        1 => Just(Action::PopTag),
    ];
    prop::collection::vec(action, 0..4).prop_map(Actions::from)
}

prop_compose! {
    fn flow()(matching in matching(), actions in actions(), priority in 1..3u16) -> Flow {
        let (owner, cause) = (Owner::named("app"), Cause::named("Message"));
        Flow { owner, cause, priority, matching, actions, idle_s: 0, hard_s: 0 }
    }
}

/// Returns the encoded flow, or `None` if the version cannot express it.
fn encoded(flow: &Flow, version: Version) -> Option<BytesMut> {
    let mut bytes = BytesMut::new();
    wire::install(flow, version, 1, &mut bytes).ok().map(|()| bytes)
}

/// Returns the canonical forms of the match and of the actions in an encoded flow.
fn canonical(bytes: &[u8], version: Version) -> (Canonical, Canonical) {
    let message = Message::parse(Frame::whole(bytes).unwrap()).unwrap();
    let Message::FlowMod(flow) = message else { panic!("{message:?}") };
    let program = Canonical::of_instructions(&flow.actions, &flow.instructions, version);
    (Canonical::of_match(&flow.match_fields).unwrap(), program.unwrap())
}

/// Returns the match and the actions of an encoded flow, converted in the same way as flows read from a switch by the
/// driver.
fn read(bytes: &[u8]) -> (FlowMatch, Actions) {
    let message = general::Message::parse(Frame::whole(bytes).unwrap()).unwrap();
    let general::Message::FlowMod(flow) = message else { panic!("{message:?}") };
    let actions = flow.actions.iter().map(|action| wire::action_from(&action.unwrap()).unwrap());
    (wire::match_from(&flow.match_fields), actions.collect::<Vec<_>>().into())
}

/// Returns the actions as a canonical form treats them: the order of consecutive set actions does not matter, and if
/// several of them set the same field, the last one counts.
fn meaning(actions: &Actions) -> Vec<(Option<Mac>, Option<Mac>, Option<Action>)> {
    let mut steps = vec![(None, None, None)];
    for action in actions.as_slice() {
        let Some(step) = steps.last_mut() else { continue };
        match action {
            Action::SetSource(mac) => step.0 = Some(*mac),
            Action::SetDestination(mac) => step.1 = Some(*mac),
            other => {
                step.2 = Some(*other);
                steps.push((None, None, None));
            }
        }
    }
    steps
}

/// Generates two flows that often agree in their match, their actions, or both.
fn similar() -> impl Strategy<Value = (Flow, Flow)> {
    (flow(), flow(), any::<bool>(), any::<bool>()).prop_map(|(one, mut other, same_match, same_actions)| {
        if same_match {
            other.matching = one.matching.clone()
        }
        if same_actions {
            other.actions = one.actions.clone()
        }
        (one, other)
    })
}

proptest! {
    /// Otherwise, the node app would leave a wrong flow in a switch, or replace a correct one.
    #[test]
    fn two_flows_are_the_same_object_exactly_if_their_canonical_forms_are_equal((one, other) in similar()) {
        for version in Version::ALL {
            let (Some(a), Some(b)) = (encoded(&one, version), encoded(&other, version)) else { continue };
            let (a, b) = (canonical(&a, version), canonical(&b, version));
            prop_assert_eq!(one.matching == other.matching, a.0 == b.0, "matches in {}", version);
            let same = meaning(&one.actions) == meaning(&other.actions);
            prop_assert_eq!(same, a.1 == b.1, "actions in {}", version);
        }
    }

    /// A switch may report a flow in a different notation from the one in which it was sent. This test uses the
    /// notation of `ovs-ofctl`.
    #[test]
    fn a_flow_is_recognized_in_another_notation(flow in flow()) {
        for version in Version::ALL {
            let Some(bytes) = encoded(&flow, version) else { continue };
            prop_assert_eq!(read(&bytes), (flow.matching.clone(), flow.actions.clone()), "{}", version);

            let message = Message::parse(Frame::whole(&bytes).unwrap()).unwrap();
            let Message::FlowMod(told) = message else { panic!("{message:?}") };
            let text = show_flow(&told, version).to_string();
            let again = text::Flow::parse(&text, version).unwrap();
            let mut notation = BytesMut::new();
            again.encode_into(1, &mut notation).unwrap();
            prop_assert_eq!(canonical(&notation, version), canonical(&bytes, version), "{} {}", version, text);
            prop_assert_eq!(read(&notation), (flow.matching.clone(), flow.actions.clone()), "{} {}", version, text);
        }
    }
}
