//! Converts network objects to OpenFlow messages and back.

use crate::object::{
    Action, Actions, Cause, Conversation, Flow, FlowMatch, FlowRemovedReason, FlowScope, Mac, Owner,
    PacketInReason, PacketOut, Port, PortNo, Tag, Vlan, WithdrawFlows,
};
use beehive_of::any::{self, FlowFlags, FlowMod, PortConfig, VlanMatch};
use beehive_of::{EncodeError, MacAddress, Version};
use bytes::BytesMut;
use std::net::IpAddr;

/// Upper 16 bits of the cookie of every flow installed by Beehive. The owner (32 bits) and the cause (16 bits) follow.
const COOKIE_MARK: u64 = 0xbee1 << 48;
const COOKIE_MARK_MASK: u64 = 0xffff << 48;
const COOKIE_OWNER_MASK: u64 = 0xffff_ffff << 16;

const fn cookie(owner: Owner, cause: Cause) -> u64 {
    COOKIE_MARK | (owner.number() as u64) << 16 | cause.number() as u64
}

/// Returns the owner of the flow with this cookie, or `None` if Beehive did not install the flow.
pub(super) fn owner(cookie: u64) -> Option<Owner> {
    (cookie & COOKIE_MARK_MASK == COOKIE_MARK)
        .then(|| Owner::from_number(((cookie & COOKIE_OWNER_MASK) >> 16) as u32))
}

/// Returns the cause of the flow with this cookie, which must be one of Beehive's.
pub(super) fn cause(cookie: u64) -> Cause {
    Cause::from_number(cookie as u16)
}

#[inline]
pub(super) fn port_from(port: beehive_of::PortNo) -> PortNo {
    PortNo(port.0)
}

#[inline]
fn port_to(port: PortNo) -> beehive_of::PortNo {
    beehive_of::PortNo(port.0)
}

#[inline]
fn mac_to(mac: Mac) -> MacAddress {
    MacAddress(mac.0)
}

#[inline]
fn tag_to(tag: Tag) -> VlanMatch {
    match tag {
        Tag::Untagged => VlanMatch::Untagged,
        Tag::Id(vlan) => VlanMatch::Id(vlan.0),
    }
}

#[inline]
fn match_to(matching: &FlowMatch) -> any::Match {
    let ethernet = any::Match {
        in_port: matching.port.map(port_to),
        eth_src: matching.source.map(|mac| mac_to(mac).into()),
        eth_dst: matching.destination.map(|mac| mac_to(mac).into()),
        vlan: matching.tag.map(tag_to),
        eth_type: matching.ethertype,
        ..any::Match::ANY
    };

    match &matching.conversation {
        None => ethernet,
        Some(conversation) => in_conversation(conversation, ethernet),
    }
}

fn in_conversation(conversation: &Conversation, ethernet: any::Match) -> any::Match {
    let mut matching = any::Match {
        eth_type: Some(conversation.ethertype()),
        ip_protocol: Some(conversation.protocol),
        transport_src: Some(conversation.source_port),
        transport_dst: Some(conversation.destination_port),
        ..ethernet
    };

    match conversation.source {
        IpAddr::V4(source) => matching.ipv4_src = Some(source.into()),
        IpAddr::V6(source) => matching.ipv6_src = Some(source.into()),
    }

    match conversation.destination {
        IpAddr::V4(destination) => matching.ipv4_dst = Some(destination.into()),
        IpAddr::V6(destination) => matching.ipv6_dst = Some(destination.into()),
    }

    matching
}

/// Returns the conversation described by a match, if all five of its fields are present and the addresses are not
/// masked.
pub(super) fn conversation_from(matching: &any::Match) -> Option<Conversation> {
    let m = matching;
    let (source, destination) = match (m.ipv4_src, m.ipv4_dst, m.ipv6_src, m.ipv6_dst) {
        (Some(source), Some(destination), None, None) if source.is_exact() && destination.is_exact() => {
            (IpAddr::V4(source.value), IpAddr::V4(destination.value))
        }
        (None, None, Some(source), Some(destination)) if source.is_exact() && destination.is_exact() => {
            (IpAddr::V6(source.value), IpAddr::V6(destination.value))
        }
        _ => return None,
    };

    Some(Conversation {
        source,
        destination,
        protocol: m.ip_protocol?,
        source_port: m.transport_src?,
        destination_port: m.transport_dst?,
    })
}

/// Converts the match fields that network objects can express.
pub(super) fn match_from(matching: &any::Match) -> FlowMatch {
    let mac = |mac: beehive_of::Masked<MacAddress>| Mac(mac.value.0);
    let conversation = conversation_from(matching);
    FlowMatch {
        port: matching.in_port.map(port_from),
        source: matching.eth_src.map(mac),
        destination: matching.eth_dst.map(mac),
        tag: matching.vlan.and_then(|vlan| match vlan {
            VlanMatch::Untagged => Some(Tag::Untagged),
            VlanMatch::Id(id) => Some(Tag::Id(Vlan(id))),
            VlanMatch::Tagged => None,
        }),
        // a conversation implies the ethertype
        ethertype: matching.eth_type.filter(|_| conversation.is_none()),
        conversation: conversation.map(Box::new),
    }
}

#[inline]
fn action_to(action: &Action) -> any::Action {
    match *action {
        Action::Output(port) => any::Action::output(port_to(port)),
        Action::SetSource(mac) => any::Action::SetEthSrc(mac_to(mac)),
        Action::SetDestination(mac) => any::Action::SetEthDst(mac_to(mac)),
        Action::PopTag => any::Action::PopVlan,
    }
}

/// Converts an action, if network objects can express it.
pub(super) fn action_from(action: &any::Action) -> Option<Action> {
    Some(match *action {
        // an output to the controller that truncates the packet cannot
        // be expressed; for other ports, `max_len` has no meaning
        any::Action::Output { port, max_len }
            if max_len == u16::MAX || port != beehive_of::PortNo::CONTROLLER =>
        {
            Action::Output(port_from(port))
        }
        any::Action::SetEthSrc(mac) => Action::SetSource(Mac(mac.0)),
        any::Action::SetEthDst(mac) => Action::SetDestination(Mac(mac.0)),
        any::Action::PopVlan => Action::PopTag,
        _ => return None,
    })
}

#[inline]
fn with_actions<R>(actions: &Actions, then: impl FnOnce(any::Actions<'_>) -> R) -> R {
    match actions {
        Actions::None => then(any::Actions::EMPTY),
        Actions::One(action) => then(any::Actions::new(&[action_to(action)])),
        Actions::Several(actions) => {
            let actions: Vec<_> = actions.iter().map(action_to).collect();
            then(any::Actions::new(&actions))
        }
    }
}

/// Appends a packet-out, either for the packet that the switch buffers as `buffer_id`, or with the packet `data`.
#[inline]
pub(super) fn packet_out(
    packet: &PacketOut,
    buffer_id: Option<u32>,
    data: &[u8],
    version: Version,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    with_actions(&packet.actions, |actions| {
        any::PacketOut { buffer_id, in_port: port_to(packet.port), actions, data }
            .encode_into(version, xid, out)
    })
}

/// Appends a flow-mod that installs a flow. The switch reports only the removal of intended flows, because the node app
/// does not track soft flows.
///
/// # Errors
///
/// Returns an error if the version cannot express one of the flow's ports.
#[inline]
pub fn install(flow: &Flow, version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
    let matching = match_to(&flow.matching);
    let flags = if flow.is_soft() { FlowFlags::NONE } else { FlowFlags::SEND_FLOW_REMOVED };
    with_actions(&flow.actions, |actions| {
        FlowMod {
            idle_timeout: flow.idle_s,
            hard_timeout: flow.hard_s,
            cookie: cookie(flow.owner, flow.cause),
            flags,
            ..FlowMod::add(flow.priority, matching, actions)
        }
        .encode_into(version, xid, out)
    })
}

/// Appends the flow-mods that withdraw flows.
///
/// An OpenFlow 1.0 switch cannot select flows by cookie, so it removes the flows of all owners in the scope. The node
/// app takes this into account and reinstalls the other owners' flows.
pub(super) fn withdraw(
    flows: &WithdrawFlows,
    version: Version,
    xid: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let (cookie, cookie_mask) = match (version, flows.owner) {
        (Version::V1_0, _) => (0, 0),
        (_, Some(owner)) => (cookie(owner, Cause::UNKNOWN), COOKIE_MARK_MASK | COOKIE_OWNER_MASK),
        (_, None) => (COOKIE_MARK, COOKIE_MARK_MASK),
    };
    let mut delete =
        |flow_mod: FlowMod<'_>| FlowMod { cookie, cookie_mask, ..flow_mod }.encode_into(version, xid, out);
    match &flows.scope {
        FlowScope::All => delete(FlowMod::delete(any::Match::ANY)),
        FlowScope::Towards(station) => in_vlan(station.vlan(), |tag| {
            let eth_dst = Some(mac_to(station.mac()).into());
            delete(FlowMod::delete(any::Match { eth_dst, vlan: Some(tag_to(tag)), ..any::Match::ANY }))
        }),
        FlowScope::From(station, port) => in_vlan(station.vlan(), |tag| {
            let (eth_src, in_port) = (Some(mac_to(station.mac()).into()), Some(port_to(*port)));
            delete(FlowMod::delete(any::Match {
                in_port,
                eth_src,
                vlan: Some(tag_to(tag)),
                ..any::Match::ANY
            }))
        }),
        FlowScope::Through(port) => {
            delete(FlowMod { out_port: port_to(*port), ..FlowMod::delete(any::Match::ANY) })?;
            delete(FlowMod::delete(any::Match { in_port: Some(port_to(*port)), ..any::Match::ANY }))
        }
        FlowScope::Exactly(priority, matching) => {
            delete(FlowMod::delete_strict(*priority, match_to(matching)))
        }
    }
}

/// Calls `each` with every tag that belongs to a VLAN. VLAN 0 has two: no tag and a priority tag.
fn in_vlan<E>(vlan: Vlan, mut each: impl FnMut(Tag) -> Result<(), E>) -> Result<(), E> {
    if vlan == Vlan::NONE {
        each(Tag::Untagged)?;
    }
    each(Tag::Id(vlan))
}

/// Appends a flow-mod that has no effect: it deletes a flow for packets from a port that does not exist.
///
/// While a switch has no controller, it may cache the decision to drop packets. Any change to the flow table makes the
/// switch look packets up again. With OpenFlow 1.0 there may be no other change, because that version has no table-miss
/// flow.
pub(super) fn touch(version: Version, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
    let nowhere = any::Match { in_port: Some(beehive_of::PortNo(NOWHERE)), ..any::Match::ANY };
    FlowMod::delete_strict(0, nowhere).encode_into(version, xid, out)
}

/// The highest ordinary port number in OpenFlow 1.0, which no switch uses.
const NOWHERE: u32 = 0xfeff;

pub(super) fn port(port: &any::Port) -> Port {
    Port {
        number: port_from(port.number),
        address: Mac(port.address.0),
        name: port.name.to_string(),
        up: port.is_up(),
        floods: port.config.0 & PortConfig::NO_FLOOD == 0,
        forwards: port.config.0 & PortConfig::NO_FORWARD == 0,
    }
}

#[inline]
pub(super) fn packet_in_reason(reason: any::PacketInReason) -> PacketInReason {
    match reason {
        any::PacketInReason::NoMatch => PacketInReason::Miss,
        any::PacketInReason::Action => PacketInReason::Action,
        _ => PacketInReason::Other,
    }
}

pub(super) fn flow_removed_reason(reason: any::FlowRemovedReason) -> FlowRemovedReason {
    match reason {
        any::FlowRemovedReason::IdleTimeout => FlowRemovedReason::Idle,
        any::FlowRemovedReason::HardTimeout => FlowRemovedReason::Hard,
        any::FlowRemovedReason::Delete | any::FlowRemovedReason::GroupDelete => FlowRemovedReason::Withdrawn,
        _ => FlowRemovedReason::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{AddFlow, NodeId, Station};
    use beehive_of::Frames;
    use beehive_of::any::Message;

    fn flow_mods(bytes: &[u8]) -> Vec<FlowMod<'_>> {
        Frames::new(bytes)
            .map(|frame| match Message::parse(frame.unwrap()).unwrap() {
                Message::FlowMod(flow_mod) => flow_mod,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn reserved_ports_have_the_names_of_the_protocol() {
        use beehive_of::PortNo as Reserved;
        let all = [
            Reserved::IN_PORT,
            Reserved::TABLE,
            Reserved::NORMAL,
            Reserved::FLOOD,
            Reserved::ALL,
            Reserved::CONTROLLER,
            Reserved::LOCAL,
        ];

        for port in all {
            assert_eq!(Some(port_from(port).to_string().as_str()), port.name());
        }
    }

    #[test]
    fn cookies_name_owners() {
        let owner_of = Owner::named("learning-switch");
        let made_for = Cause::named("PacketIn");
        assert_eq!(owner(cookie(owner_of, made_for)), Some(owner_of));
        assert_eq!(cause(cookie(owner_of, made_for)), made_for);
        assert_eq!(owner(0), None);
    }

    #[test]
    fn vlan_0_is_untagged_or_priority_tagged() {
        let station = Station::new(Vlan::NONE, Mac([2, 0, 0, 0, 0, 1]));
        for version in Version::ALL {
            let mut out = BytesMut::new();
            let flows = WithdrawFlows { owner: Some(Owner::named("x")), scope: FlowScope::Towards(station) };
            withdraw(&flows, version, 1, &mut out).unwrap();
            let vlans: Vec<_> = flow_mods(&out).iter().map(|f| f.match_fields.vlan).collect();
            assert_eq!(vlans, [Some(VlanMatch::Untagged), Some(VlanMatch::Id(0))]);
            assert_eq!(flow_mods(&out)[0].cookie_mask != 0, version != Version::V1_0);
        }
    }

    #[test]
    fn a_conversation_comes_back_as_it_went() {
        let conversation = |source, destination| Conversation {
            source,
            destination,
            protocol: Conversation::TCP,
            source_port: 40_000,
            destination_port: 80,
        };

        let four = conversation([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let six = conversation([1; 16].into(), [2; 16].into());
        for (conversation, version) in [(four, Version::V1_0), (four, Version::V1_3), (six, Version::V1_3)] {
            let matching = FlowMatch {
                port: Some(PortNo(3)),
                tag: Some(Tag::Untagged),
                conversation: Some(conversation.into()),
                ..FlowMatch::ANY
            };
            let mut out = BytesMut::new();
            let flow = AddFlow::new(NodeId(1), Owner::named("x"), matching.clone(), Actions::None).flow;
            install(&flow, version, 1, &mut out).unwrap();
            assert_eq!(match_from(&flow_mods(&out)[0].match_fields), matching);
        }
    }

    #[test]
    fn a_port_takes_flows_both_ways_with_it() {
        let mut out = BytesMut::new();
        let flows = WithdrawFlows { owner: None, scope: FlowScope::Through(PortNo(7)) };
        withdraw(&flows, Version::V1_3, 1, &mut out).unwrap();
        let mods = flow_mods(&out);
        assert_eq!(mods[0].out_port, beehive_of::PortNo(7));
        assert_eq!(mods[1].match_fields.in_port, Some(beehive_of::PortNo(7)));
        assert!(mods.iter().all(|f| f.cookie == COOKIE_MARK && f.cookie_mask == COOKIE_MARK_MASK));
    }
}
