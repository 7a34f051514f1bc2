//! Every message as a tree of named values.

use beehive_of::any::*;
use beehive_of::{
    Error, Frame, PortNo, Version, VersionSet, error_code_name, error_type_name, message_type_name,
};

use super::node::Node;

type Fields = Vec<(&'static str, Node)>;

/// What a message says: its version, its type, its transaction identifier and its own fields.
///
/// # Errors
///
/// A list of the message is malformed.
pub(super) fn describe(frame: Frame<'_>, message: &Message<'_>) -> Result<Node, Error> {
    let header = frame.header();
    // The types of hello, error and echo are the same in every version.
    let version = frame.version().unwrap_or(Version::V1_3);
    let mut fields: Fields = vec![
        ("version", version_name(header.version)),
        (
            "type",
            message_type_name(version, header.message_type)
                .map_or_else(|| Node::text(format_args!("unknown_{}", header.message_type)), Node::from),
        ),
        ("xid", header.xid.into()),
    ];
    fields.extend(body(version, message)?);
    Ok(Node::Record(fields))
}

fn body(version: Version, message: &Message<'_>) -> Result<Fields, Error> {
    Ok(match message {
        Message::Hello(hello) => vec![("versions", hello.versions.map_or(Node::Nothing, versions))],
        Message::Error(error) => describe_error(version, error),
        Message::EchoRequest(echo) | Message::EchoReply(echo) => vec![("data", Node::bytes(echo.data))],
        Message::FeaturesReply(features) => vec![
            ("datapath_id", Node::text(format_args!("{:016x}", features.datapath_id))),
            ("buffers", features.buffers.into()),
            ("tables", features.tables.into()),
            ("auxiliary_id", features.auxiliary_id.into()),
            ("capabilities", Node::hex(features.capabilities.0.into())),
            ("actions", Node::hex(features.actions.into())),
            ("ports", ports(&features.ports)?),
        ],
        Message::GetConfigReply(config) | Message::SetConfig(config) => {
            vec![("flags", config.flags.into()), ("miss_send_len", config.miss_send_len.into())]
        }
        Message::PacketIn(packet) => vec![
            ("buffer_id", Node::optional(packet.buffer_id)),
            ("total_len", packet.total_len.into()),
            ("in_port", port_number(packet.in_port)),
            ("reason", packet_in_reason(packet.reason)),
            ("table_id", packet.table_id.into()),
            ("cookie", packet.cookie.map_or(Node::Nothing, Node::hex)),
            ("data", Node::bytes(packet.data)),
        ],
        Message::PacketOut(packet) => vec![
            ("buffer_id", Node::optional(packet.buffer_id)),
            ("in_port", port_number(packet.in_port)),
            ("actions", actions(&packet.actions)?),
            ("data", Node::bytes(packet.data)),
        ],
        Message::FlowMod(flow) => describe_flow_mod(flow)?,
        Message::FlowRemoved(flow) => vec![
            ("match", describe_match(&flow.match_fields)),
            ("cookie", Node::hex(flow.cookie)),
            ("priority", flow.priority.into()),
            ("reason", flow_removed_reason(flow.reason)),
            ("table_id", flow.table_id.into()),
            ("duration_s", seconds(flow.duration)),
            ("idle_timeout", flow.idle_timeout.into()),
            ("hard_timeout", flow.hard_timeout.into()),
            ("packet_count", flow.packet_count.into()),
            ("byte_count", flow.byte_count.into()),
        ],
        Message::PortStatus(status) => {
            vec![("reason", port_reason(status.reason)), ("port", describe_port(&status.port))]
        }
        Message::PortDescriptionRequest => vec![("multipart", "port_description".into())],
        Message::PortDescriptionReply(description) => vec![
            ("multipart", "port_description".into()),
            ("more", description.more.into()),
            ("ports", ports(&description.ports)?),
        ],
        Message::FlowStatisticsRequest(request) => vec![
            ("multipart", "flow".into()),
            ("table_id", request.table_id.into()),
            ("out_port", port_number(request.out_port)),
            ("out_group", Node::optional(request.out_group)),
            ("cookie", Node::hex(request.cookie)),
            ("cookie_mask", Node::hex(request.cookie_mask)),
            ("match", describe_match(&request.match_fields)),
        ],
        Message::FlowStatisticsReply(statistics) => {
            let entries: Result<Vec<Node>, Error> =
                statistics.entries.iter().map(|entry| describe_entry(&entry?)).collect();
            vec![
                ("multipart", "flow".into()),
                ("more", statistics.more.into()),
                ("flows", Node::List(entries?)),
            ]
        }
        Message::MultipartRequest(multipart) | Message::MultipartReply(multipart) => vec![
            ("multipart", multipart_kind(multipart.kind)),
            ("flags", multipart.flags.into()),
            ("body", Node::bytes(multipart.body)),
        ],
        Message::RoleRequest(role) | Message::RoleReply(role) => vec![
            (
                "role",
                Node::from(match role.role {
                    Role::NoChange => "no_change",
                    Role::Equal => "equal",
                    Role::Master => "master",
                    Role::Slave => "slave",
                }),
            ),
            ("generation_id", Node::hex(role.generation_id)),
        ],
        Message::Unknown(unknown) => vec![("body", Node::bytes(unknown.body))],
        // Requests and barriers have no fields; kinds of messages that are added later show theirs once named here.
        _ => vec![],
    })
}

/// The name of a wire version.
fn version_name(wire: u8) -> Node {
    match wire {
        1..=6 => Node::text(format_args!("1.{}", wire - 1)),
        other => Node::text(format_args!("unknown_{other}")),
    }
}

fn versions(set: VersionSet) -> Node {
    Node::List((0..32).filter(|wire| set.contains(*wire)).map(version_name).collect())
}

fn port_number(port: PortNo) -> Node {
    port.name().map_or(Node::Number(port.0.into()), Node::from)
}

fn seconds(duration: std::time::Duration) -> Node {
    Node::text(format_args!("{}.{:09}", duration.as_secs(), duration.subsec_nanos()))
}

fn other(value: u8) -> Node {
    Node::text(format_args!("unknown_{value}"))
}

/// The name of a kind of statistics or multipart message; the two versions give no number to different kinds.
fn multipart_kind(kind: u16) -> Node {
    const NAMES: [&str; 14] = [
        "description",
        "flow",
        "aggregate",
        "table",
        "port",
        "queue",
        "group",
        "group_description",
        "group_features",
        "meter",
        "meter_config",
        "meter_features",
        "table_features",
        "port_description",
    ];
    match NAMES.get(usize::from(kind)) {
        Some(name) => Node::from(*name),
        None if kind == 0xffff => "experimenter".into(),
        None => Node::text(format_args!("unknown_{kind}")),
    }
}

fn describe_error(version: Version, error: &ErrorMessage<'_>) -> Fields {
    let number = |value: u16| Node::text(format_args!("unknown_{value}"));
    let error_type = error_type_name(version, error.error_type);
    let code = error_code_name(version, error.error_type, error.code);
    let data = if error.error_type == ErrorMessage::HELLO_FAILED {
        ("text", Node::text(error.data.escape_ascii()))
    } else {
        ("data", Node::bytes(error.data))
    };
    vec![
        ("error_type", error_type.map_or_else(|| number(error.error_type), Node::from)),
        ("code", code.map_or_else(|| number(error.code), Node::from)),
        data,
    ]
}

fn packet_in_reason(reason: PacketInReason) -> Node {
    match reason {
        PacketInReason::NoMatch => "no_match".into(),
        PacketInReason::Action => "action".into(),
        PacketInReason::InvalidTtl => "invalid_ttl".into(),
        PacketInReason::Other(value) => other(value),
        reason => Node::text(format_args!("{reason:?}")),
    }
}

fn flow_removed_reason(reason: FlowRemovedReason) -> Node {
    match reason {
        FlowRemovedReason::IdleTimeout => "idle_timeout".into(),
        FlowRemovedReason::HardTimeout => "hard_timeout".into(),
        FlowRemovedReason::Delete => "delete".into(),
        FlowRemovedReason::GroupDelete => "group_delete".into(),
        FlowRemovedReason::Other(value) => other(value),
        reason => Node::text(format_args!("{reason:?}")),
    }
}

fn port_reason(reason: PortReason) -> Node {
    match reason {
        PortReason::Add => "add".into(),
        PortReason::Delete => "delete".into(),
        PortReason::Modify => "modify".into(),
        PortReason::Other(value) => other(value),
        reason => Node::text(format_args!("{reason:?}")),
    }
}

fn flow_flags(flags: FlowFlags) -> Node {
    const NAMES: [(FlowFlags, &str); 5] = [
        (FlowFlags::SEND_FLOW_REMOVED, "send_flow_removed"),
        (FlowFlags::CHECK_OVERLAP, "check_overlap"),
        (FlowFlags::RESET_COUNTS, "reset_counts"),
        (FlowFlags::NO_PACKET_COUNTS, "no_packet_counts"),
        (FlowFlags::NO_BYTE_COUNTS, "no_byte_counts"),
    ];
    let mut names: Vec<Node> =
        NAMES.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| Node::from(*name)).collect();
    let named = NAMES.iter().fold(0, |bits, (flag, _)| bits | flag.0);
    if flags.0 & !named != 0 {
        names.push(Node::hex((flags.0 & !named).into()));
    }
    Node::List(names)
}

fn describe_flow_mod(flow: &FlowMod<'_>) -> Result<Fields, Error> {
    let command = match flow.command {
        FlowCommand::Add => "add",
        FlowCommand::Modify => "modify",
        FlowCommand::ModifyStrict => "modify_strict",
        FlowCommand::Delete => "delete",
        FlowCommand::DeleteStrict => "delete_strict",
    };
    Ok(vec![
        ("command", command.into()),
        ("table_id", flow.table_id.into()),
        ("priority", flow.priority.into()),
        ("idle_timeout", flow.idle_timeout.into()),
        ("hard_timeout", flow.hard_timeout.into()),
        ("cookie", Node::hex(flow.cookie)),
        ("cookie_mask", Node::hex(flow.cookie_mask)),
        ("buffer_id", Node::optional(flow.buffer_id)),
        ("out_port", port_number(flow.out_port)),
        ("out_group", Node::optional(flow.out_group)),
        ("flags", flow_flags(flow.flags)),
        ("match", describe_match(&flow.match_fields)),
        ("actions", actions(&flow.actions)?),
        ("goto_table", Node::optional(flow.goto_table)),
        ("other_instructions", flow.other_instructions.into()),
    ])
}

fn describe_entry(entry: &FlowEntry<'_>) -> Result<Node, Error> {
    Ok(Node::Record(vec![
        ("table_id", entry.table_id.into()),
        ("duration_s", seconds(entry.duration)),
        ("priority", entry.priority.into()),
        ("idle_timeout", entry.idle_timeout.into()),
        ("hard_timeout", entry.hard_timeout.into()),
        ("flags", flow_flags(entry.flags)),
        ("cookie", Node::hex(entry.cookie)),
        ("packet_count", entry.packet_count.into()),
        ("byte_count", entry.byte_count.into()),
        ("match", describe_match(&entry.match_fields)),
        ("actions", actions(&entry.actions)?),
        ("goto_table", Node::optional(entry.goto_table)),
        ("other_instructions", entry.other_instructions.into()),
    ]))
}

/// The fields that count, and no others.
fn describe_match(fields: &Match) -> Node {
    fn text<T: std::fmt::Display>(value: Option<T>) -> Option<Node> {
        value.map(Node::text)
    }
    fn number<T: Into<Node>>(value: Option<T>) -> Option<Node> {
        value.map(Into::into)
    }
    let vlan = fields.vlan.map(|vlan| match vlan {
        VlanMatch::Untagged => "untagged".into(),
        VlanMatch::Tagged => "tagged".into(),
        VlanMatch::Id(id) => Node::from(id),
    });
    let all = [
        ("in_port", fields.in_port.map(port_number)),
        ("eth_src", text(fields.eth_src)),
        ("eth_dst", text(fields.eth_dst)),
        ("eth_type", fields.eth_type.map(|value| Node::text(format_args!("{value:#06x}")))),
        ("vlan", vlan),
        ("vlan_priority", number(fields.vlan_priority)),
        ("ip_protocol", number(fields.ip_protocol)),
        ("ip_dscp", number(fields.ip_dscp)),
        ("ipv4_src", text(fields.ipv4_src)),
        ("ipv4_dst", text(fields.ipv4_dst)),
        ("ipv6_src", text(fields.ipv6_src)),
        ("ipv6_dst", text(fields.ipv6_dst)),
        ("arp_operation", number(fields.arp_operation)),
        ("arp_sender", text(fields.arp_sender)),
        ("arp_target", text(fields.arp_target)),
        ("transport_src", number(fields.transport_src)),
        ("transport_dst", number(fields.transport_dst)),
        ("icmp_type", number(fields.icmp_type)),
        ("icmp_code", number(fields.icmp_code)),
        ("other", (fields.other != 0).then(|| fields.other.into())),
    ];
    Node::Record(all.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect())
}

fn actions(actions: &Actions<'_>) -> Result<Node, Error> {
    let described: Result<Vec<Node>, Error> =
        actions.iter().map(|action| Ok(describe_action(&action?))).collect();
    described.map(Node::List)
}

fn describe_action(action: &Action) -> Node {
    let (name, mut fields): (&str, Fields) = match action {
        Action::Output { port, max_len } => {
            ("output", vec![("port", port_number(*port)), ("max_len", (*max_len).into())])
        }
        Action::SetVlanId(id) => ("set_vlan_id", vec![("value", (*id).into())]),
        Action::SetVlanPriority(priority) => ("set_vlan_priority", vec![("value", (*priority).into())]),
        Action::PopVlan => ("pop_vlan", vec![]),
        Action::PushVlan(eth_type) => {
            ("push_vlan", vec![("eth_type", Node::text(format_args!("{eth_type:#06x}")))])
        }
        Action::SetEthSrc(address) => ("set_eth_src", vec![("value", Node::text(address))]),
        Action::SetEthDst(address) => ("set_eth_dst", vec![("value", Node::text(address))]),
        Action::SetIpv4Src(address) => ("set_ipv4_src", vec![("value", Node::text(address))]),
        Action::SetIpv4Dst(address) => ("set_ipv4_dst", vec![("value", Node::text(address))]),
        Action::SetIpDscp(dscp) => ("set_ip_dscp", vec![("value", (*dscp).into())]),
        Action::Group(group) => ("group", vec![("group", (*group).into())]),
        Action::Other(kind) => ("other", vec![("code", (*kind).into())]),
        action => ("other", vec![("text", Node::text(format_args!("{action:?}")))]),
    };
    fields.insert(0, ("type", name.into()));
    Node::Record(fields)
}

fn ports(ports: &Ports<'_>) -> Result<Node, Error> {
    let described: Result<Vec<Node>, Error> = ports.iter().map(|port| Ok(describe_port(&port?))).collect();
    described.map(Node::List)
}

fn describe_port(port: &Port) -> Node {
    Node::Record(vec![
        ("number", port_number(port.number)),
        ("address", Node::text(port.address)),
        ("name", Node::text(port.name)),
        ("up", port.is_up().into()),
        ("config", Node::hex(port.config.0.into())),
        ("state", Node::hex(port.state.0.into())),
        ("current", Node::hex(port.current.0.into())),
        ("advertised", Node::hex(port.advertised.0.into())),
        ("supported", Node::hex(port.supported.0.into())),
        ("peer", Node::hex(port.peer.0.into())),
        ("current_speed_kbps", port.current_speed_kbps.into()),
        ("max_speed_kbps", port.max_speed_kbps.into()),
    ])
}
