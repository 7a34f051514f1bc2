//! Writes flows in the syntax of `ovs-ofctl`, so that they can be compared with the output of `ovs-ofctl
//! dump-flows`.

use beehive_nom::driver::openflow::encode_flow;
use beehive_nom::object::{Flow, FlowFlags, FoundFlow, Owner};
use beehive_of::message::{FlowMod, FlowModFlags, Message, TableId};
use beehive_of::text::show_flow;
use beehive_of::{Frame, Version};
use bytes::BytesMut;

/// Returns the version in a connection's protocol name, such as `OpenFlow 1.3`.
pub(super) fn version(protocol: &str) -> Version {
    let names = ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5"];
    let known = names.into_iter().zip(Version::ALL).find(|(name, _)| protocol.contains(name));
    known.map_or(Version::V1_3, |(_, version)| version)
}

/// Writes an intended flow. Returns `None` if the version cannot express it.
pub(super) fn intended(flow: &Flow, version: Version) -> Option<String> {
    render(flow, version, |_| {})
}

/// Writes a flow reported by a switch. Returns `None` if some of its parts cannot be expressed by network
/// objects.
pub(super) fn found(found: &FoundFlow, version: Version) -> Option<String> {
    if found.more.is_some() {
        return None;
    }

    let flow = Flow {
        owner: found.owner.unwrap_or(Owner::from_number(0)),
        cause: found.cause,
        priority: found.priority,
        matching: found.matching.clone(),
        actions: found.actions.clone(),
        idle_s: found.idle_s,
        hard_s: found.hard_s,
    };

    render(&flow, version, |flow_mod| {
        flow_mod.cookie = found.cookie;
        flow_mod.table_id = TableId(found.table);
        match found.flags {
            Some(flags) => flow_mod.flags = flags_to(flags),
            // the switch does not report flags, so only the flags of this controller's flows are known
            None if found.owner.is_none() => flow_mod.flags = FlowModFlags::default(),
            None => {}
        }
    })
}

fn flags_to(flags: FlowFlags) -> FlowModFlags {
    let all = [
        (flags.reports_removal, FlowModFlags::SEND_FLOW_REMOVED),
        (flags.checks_overlap, FlowModFlags::CHECK_OVERLAP),
        (flags.resets_counts, FlowModFlags::RESET_COUNTS),
        (flags.counts_no_packets, FlowModFlags::NO_PACKET_COUNTS),
        (flags.counts_no_bytes, FlowModFlags::NO_BYTE_COUNTS),
    ];

    let set = all.into_iter().filter(|(is_set, _)| *is_set);
    set.fold(FlowModFlags::default(), |flags, (_, flag)| flags.with(flag))
}

/// Encodes the flow in the same way as the driver, so that the text shows exactly the flow that is sent.
fn render(flow: &Flow, version: Version, change: impl FnOnce(&mut FlowMod<'_>)) -> Option<String> {
    let mut bytes = BytesMut::new();
    encode_flow(flow, version, 0, &mut bytes).ok()?;
    let Ok(Message::FlowMod(mut flow_mod)) = Message::parse(Frame::whole(&bytes).ok()?) else { return None };
    change(&mut flow_mod);
    Some(show_flow(&flow_mod, version).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_nom::object::{Action, Actions, Cause, FlowMatch, PortNo, Tag, Vlan};

    fn flow() -> Flow {
        Flow {
            owner: Owner::from_number(0x0102_0304),
            cause: Cause::from_number(5),
            priority: 100,
            matching: FlowMatch { port: Some(PortNo(1)), tag: Some(Tag::Id(Vlan(7))), ..FlowMatch::ANY },
            actions: Actions::One(Action::Output(PortNo(2))),
            idle_s: 0,
            hard_s: 0,
        }
    }

    #[test]
    fn a_flow_is_written_in_every_version_so_that_ovs_ofctl_reads_it() {
        let text =
            "cookie=0xbee1010203040005,send_flow_rem,priority=100,in_port=1,dl_vlan=7 actions=output:2";
        for version in Version::ALL {
            let written = intended(&flow(), version).expect("can be expressed");
            assert_eq!(written, text, "{version}");
            assert!(beehive_of::text::Flow::parse(&written, version).is_ok(), "{version}");
        }
    }

    #[test]
    fn flows_of_others_keep_their_cookie_and_table() {
        let Flow { cause, priority, matching, actions, .. } = flow();
        let foreign = FoundFlow {
            table: 3,
            owner: None,
            cause,
            cookie: 0x77,
            priority,
            matching,
            actions,
            more: None,
            idle_s: 9,
            hard_s: 0,
            flags: None,
            age_s: 1,
            packets: 2,
            bytes: 3,
        };

        let text = "cookie=0x77,table=3,idle_timeout=9,priority=100,in_port=1,dl_vlan=7 actions=output:2";
        assert_eq!(found(&foreign, Version::V1_3).as_deref(), Some(text));

        let flags = FlowFlags { reports_removal: true, counts_no_bytes: true, ..FlowFlags::default() };
        let flagged = FoundFlow { flags: Some(flags), ..foreign.clone() };
        let text = text.replace("priority", "send_flow_rem,no_byte_counts,priority");
        assert_eq!(found(&flagged, Version::V1_3).as_deref(), Some(text.as_str()));
        assert_eq!(found(&FoundFlow { more: Some("ip_dscp=4".into()), ..foreign }, Version::V1_3), None);
    }

    #[test]
    fn the_version_is_read_from_the_name_of_the_protocol() {
        assert_eq!(version("OpenFlow 1.0"), Version::V1_0);
        assert_eq!(version("OpenFlow 1.5 over TLS"), Version::V1_5);
        assert_eq!(version(""), Version::V1_3);
    }
}
