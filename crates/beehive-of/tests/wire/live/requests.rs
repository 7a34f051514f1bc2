//! Sends every message sample that a controller may send. The switch must accept it or refuse it with the
//! expected error.

use beehive_of::message::*;
use beehive_of::{Frame, Version};

use super::connection::{Connection, NICIRA, refusal};
use super::switch::Switch;

/// Expected errors: the possible starts of the error, a part of the message's text, and the reason.
const EXPECTED: &[(&[&str], &str, &str)] = &[
    (&["bad_request bad_experimenter"], "body=", "the experimenter is unknown"),
    (&["bad_action bad_experimenter"], "extension=999", "the experimenter action is unknown"),
    (&["port_mod_failed"], "port_no=3", "there is no such port"),
    (&["queue_op_failed"], "queue", "there is no such queue"),
    (&["bad_action bad_out_group"], "group_id=", "there is no such group"),
    (&["meter_mod_failed"], "meter", "there is no such meter, or the switch does not support its band"),
    (&["bad_action match_inconsistent"], "type=packet_out", "the action does not apply to the packet"),
    (&["flow_mod_failed unknown"], "extension=encap", "the packet has no room for the header"),
    (&["group_mod_failed group_exists"], "group_id=4660", "an earlier version added the group"),
    (&["bad_match bad_field"], "exp_00fedcba_99", "the experimenter field is unknown"),
    (&["bundle_failed bad_message_xid"], "bundle_add_message", "the embedded message has a different xid"),
    (&["bundle_failed bad_id"], "commit_request", "there is no such bundle"),
    (&["experimenter 65535/2309"], "bundle_add_message", "the embedded message has a different xid (in 1.3)"),
    (&["bad_instruction unknown_instruction"], "stat_trigger", "the switch has no such instruction"),
    (&["bad_request bad_multipart"], "controller_status", "the switch does not support the request"),
    (&["bad_request bad_multipart"], "bundle_features", "the switch does not support the request"),
    (&["bad_request bad_port"], "match=()", "1.5 requires the ingress port of the packet"),
    (NICIRA, "type=packet_out", "the action does not apply to the packet"),
    (
        &["bad_instruction unsupported_instruction"],
        "extension=write_metadata",
        "the switch treats the action as an instruction",
    ),
    (NICIRA, "ipfix_", "no IPFIX exporter is configured"),
    (NICIRA, "extension=tlv_table_mod", "an earlier version mapped the option"),
    (NICIRA, "extension=resume", "no packet is paused"),
];

/// Returns whether a controller may send this message to a switch.
fn is_request(message: &Message<'_>) -> bool {
    use NiciraMessage as N;
    use OnfMessage as O;
    match message {
        Message::Hello(_)
        | Message::Error(_)
        | Message::EchoReply(_)
        | Message::FeaturesReply(_)
        | Message::GetConfigReply(_)
        | Message::PacketIn(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::MultipartReply(_)
        | Message::BarrierReply(_)
        | Message::QueueConfigReply(_)
        | Message::RoleReply(_)
        | Message::GetAsyncReply(_)
        | Message::RoleStatus(_)
        | Message::TableStatus(_)
        | Message::RequestForward(_)
        | Message::ControllerStatus(_) => false,
        Message::BundleControl(control) => control.control_type.0 % 2 == 0,
        Message::Experimenter(Extended::Nicira(message)) => !matches!(
            message,
            N::RoleReply(_)
                | N::FlowRemoved(_)
                | N::PacketIn(_)
                | N::PacketIn2(_)
                | N::FlowMonitorPaused(_)
                | N::FlowMonitorResumed(_)
                | N::TlvTableReply(_)
                | N::RequestForward(_)
        ),
        Message::Experimenter(Extended::Onf(message)) => match message {
            O::BundleControl(control) => control.control_type.0 % 2 == 0,
            other => !matches!(
                other,
                O::FlowMonitorPaused(_) | O::FlowMonitorResumed(_) | O::RoleStatus(_) | O::RequestForward(_)
            ),
        },
        _ => true,
    }
}

#[test]
fn the_switch_takes_what_we_encode() {
    let Some(switch) = Switch::start() else { return };
    let mut surprises = String::new();
    let (mut sent, mut refused) = (0, 0);
    for version in Version::ALL {
        let mut connection = Connection::open(&switch, version);
        let ours = crate::corpus::ours(version).into_iter().map(|(_, bytes)| bytes);
        let complete = crate::message_samples::complete(version).into_iter().map(|(bytes, _)| bytes);
        for bytes in ours.chain(complete) {
            let frame = Frame::whole(&bytes).unwrap();

            // Some samples are invalid on purpose.
            let Ok(message) = Message::parse_strict(frame) else { continue };
            if !is_request(&message) {
                continue;
            }

            let text = message.display(frame.header()).to_string();
            connection.send_bytes(&bytes);
            sent += 1;
            for error in connection.settle().iter().filter_map(|answer| refusal(answer)) {
                refused += 1;
                let expected = EXPECTED.iter().any(|(errors, words, _)| {
                    errors.iter().any(|begin| error.starts_with(begin)) && text.contains(words)
                });
                if !expected {
                    surprises += &format!("{error} | {version} | {text}\n");
                }
            }
        }
    }

    assert!(surprises.is_empty(), "\n{surprises}");
    assert!(sent > 300 && refused < sent / 3, "{refused} of {sent} refused");
    println!("{sent} messages sent, {refused} refused as expected");
}
