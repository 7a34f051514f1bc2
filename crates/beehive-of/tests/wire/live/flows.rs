//! Checks that the switch reports flows, with every action, as they were installed.

use beehive_of::message::*;
use beehive_of::oxm::OxmFields;
use beehive_of::schema::List;
use beehive_of::text::Flow;
use beehive_of::{Frame, Version};

use super::connection::{Connection, refusal};
use super::switch::Switch;
use crate::text::FLOWS;

/// The canonical forms of a flow's match and actions.
type Compared = (Canonical, Canonical);

fn of_mod(message: &Message<'_>, version: Version) -> Compared {
    let (fields, actions, instructions) = match message {
        Message::FlowMod(flow) => (flow.match_fields, flow.actions, flow.instructions),
        Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(flow))) => {
            (Match::Fields(flow.match_fields), flow.actions, flow.instructions)
        }
        other => panic!("not a flow-mod: {other:?}"),
    };
    (
        Canonical::of_match(&fields).unwrap(),
        Canonical::of_instructions(&actions, &instructions, version).unwrap(),
    )
}

/// Returns the request for all flows. In 1.0, this is Nicira's request, because its reply has all fields.
fn question(version: Version) -> RequestBody<'static> {
    match version {
        Version::V1_0 => {
            RequestBody::Experimenter(Extended::Nicira(NiciraRequest::Flow(NiciraFlowRequest::default())))
        }
        _ => RequestBody::Flow(FlowRequest::default()),
    }
}

/// Returns all flows of the switch with their text.
fn installed(connection: &mut Connection, version: Version) -> Vec<(Compared, String)> {
    let request = Multipart { flags: MultipartFlags::default(), body: question(version) };
    let mut flows = Vec::new();
    for answer in connection.succeed(&Message::MultipartRequest(request)) {
        let frame = Frame::whole(&answer).unwrap();
        let Ok(Message::MultipartReply(reply)) = Message::parse(frame) else { continue };
        let mut put = |fields: Match<'_>, actions: Actions<'_>, instructions: Instructions<'_>| {
            let flow = FlowMod { match_fields: fields, actions, instructions, ..Default::default() };
            let text = beehive_of::text::show_flow(&flow, version).to_string();
            flows.push((of_mod(&Message::FlowMod(flow), version), text));
        };

        match reply.body {
            ReplyBody::Flow(list) => {
                for flow in list.flows.iter().map(Result::unwrap) {
                    put(flow.match_fields, flow.actions, flow.instructions);
                }
            }
            ReplyBody::Experimenter(Extended::Nicira(NiciraReply::Flow(list))) => {
                for flow in list.flows.iter().map(Result::unwrap) {
                    let fields = OxmFields(flow.match_fields.0);
                    put(Match::Fields(fields), flow.actions, Instructions::default());
                }
            }
            other => panic!("not a list of flows: {other:?}"),
        }
    }

    flows
}

/// Creates the groups and the meter that the flows refer to.
fn what_flows_refer_to(connection: &mut Connection, version: Version) {
    if version >= Version::V1_1 {
        let every = GroupMod { command: GroupCommand::DELETE, group_id: GroupId::ALL, ..Default::default() };
        connection.succeed(&Message::GroupMod(every));
        for group_id in [GroupId(5), GroupId(7)] {
            let add = GroupMod { command: GroupCommand::ADD, group_id, ..Default::default() };
            connection.succeed(&Message::GroupMod(add));
        }
    }
    if version >= Version::V1_3 {
        let meter_id = MeterId(5);
        let delete = MeterMod { command: MeterCommand::DELETE, meter_id, ..Default::default() };
        connection.succeed(&Message::MeterMod(delete));
        let bands = [Band::Drop(DropBand { rate: 1000, burst_size: 0 })];
        let (command, flags) = (MeterCommand::ADD, MeterFlags::KBPS);
        let add = MeterMod { command, flags, meter_id, bands: (&bands).into() };
        connection.succeed(&Message::MeterMod(add));
    }
}

/// Maps the tunnel options that the flows use, and removes other mappings.
fn options(connection: &mut Connection) {
    let option =
        |index: u16, option_len| TlvMap { option_class: 0xffff, option_type: index as u8, option_len, index };
    // Option 0 is longer than the loaded bits, because otherwise the switch would report it without a mask.
    let maps = [option(0, 8), option(1, 4), option(2, 4), option(3, 4), option(7, 24), option(63, 4)];
    for (command, maps) in [(TlvTableCommand::CLEAR, List::EMPTY), (TlvTableCommand::ADD, List::new(&maps))] {
        let change = NiciraMessage::TlvTableMod(TlvTableMod { command, maps });
        connection.succeed(&Message::Experimenter(Extended::Nicira(change)));
    }
}

/// Parts of the text of flows that the switch is expected to refuse, each with the error and the reason.
const REFUSED: &[(&str, &str, &str)] =
    &[("recirc_id=", "bad_request permission", "only the switch can match recirculation identifiers")];

#[test]
fn flows_with_every_action_are_what_the_switch_says_it_has() {
    let Some(switch) = Switch::start() else { return };
    let mut disagreements = String::new();
    let mut count = 0;
    for version in Version::ALL {
        let mut connection = Connection::open(&switch, version);
        what_flows_refer_to(&mut connection, version);
        if version == Version::V1_0 {
            options(&mut connection);
        }
        for (text, _) in FLOWS.iter().filter(|(_, versions)| versions.contains(&version.minor())) {
            // 1.1 cannot address all tables at once, so delete from the tables that the flows use.
            let tables: &[&str] = if version == Version::V1_1 { &["table=0", "table=3"] } else { &[""] };
            for table in tables {
                let all = Flow::parse_deletion(table, version, false).unwrap();
                connection.succeed(&all.message());
            }

            let flow = Flow::parse(text, version).unwrap();
            let refused: Vec<String> =
                connection.ask(&flow.message()).iter().filter_map(|answer| refusal(answer)).collect();
            let expected = REFUSED.iter().find(|(part, ..)| text.contains(part));
            if let Some((_, refusal, _)) = expected
                && refused == [*refusal]
            {
                continue;
            }

            if !refused.is_empty() || expected.is_some() {
                disagreements += &format!("{version} {text}\n    refused: {refused:?}\n");
                continue;
            }

            let sent = of_mod(&flow.message(), version);
            let flows = installed(&mut connection, version);
            let [(there, told)] = &flows[..] else {
                disagreements += &format!("{version} {text}\n    found {} flows: {flows:?}\n", flows.len());
                continue;
            };

            if *there != sent {
                disagreements += &format!("{version} {text}\n    sent     {flow}\n    reported {told}\n");
            }

            count += 1;
        }
    }

    assert!(disagreements.is_empty(), "\n{disagreements}");
    assert!(count > 250, "only {count} flows");
}
