//! Sends every message sample that a controller may send. The switch must accept it or refuse it with the
//! expected error.

use beehive_of::message::*;
use beehive_of::{Frame, Version};

use super::connection::{Connection, NICIRA, refusal};
use super::switch::Switch;

/// Expected errors: the start of the error, a part of the message's text, and the reason.
const EXPECTED: &[(&[&str], &str, &str)] = &[
    (&["bad_request bad_experimenter"], "body=", "nobody's extension"),
    (&["bad_action bad_experimenter"], "extension=999", "nobody's action"),
    (&["port_mod_failed"], "port_no=3", "there is no such port"),
    (&["queue_op_failed"], "queue", "there is no such queue"),
    (&["bad_action bad_out_group"], "group_id=", "there is no such group"),
    (&["meter_mod_failed"], "meter", "there is no such meter, or its band is one that the switch has not"),
    (&["bad_action match_inconsistent"], "type=packet_out", "the packet is none that it can be done with"),
    (&["flow_mod_failed unknown"], "extension=encap", "the packet has no room for it"),
    (&["group_mod_failed group_exists"], "group_id=4660", "it was made in the version before"),
    (&["bad_match bad_field"], "exp_00fedcba_99", "nobody's field"),
    (&["bundle_failed bad_message_xid"], "bundle_add_message", "what is inside has another number"),
    (&["bundle_failed bad_id"], "commit_request", "so there is no such bundle"),
    (&["experimenter 65535/2309"], "bundle_add_message", "what is inside has another number (in 1.3)"),
    (&["bad_instruction unknown_instruction"], "stat_trigger", "the switch has no such instruction"),
    (&["bad_request bad_multipart"], "controller_status", "the switch does not tell"),
    (&["bad_request bad_multipart"], "bundle_features", "the switch does not tell"),
    (&["bad_request bad_port"], "match=()", "1.5 wants the port that a packet is from"),
    (NICIRA, "type=packet_out", "the packet is none that it can be done with"),
    (
        &["bad_instruction unsupported_instruction"],
        "extension=write_metadata",
        "an instruction in all but form",
    ),
    (NICIRA, "ipfix_", "nothing is exported"),
    (NICIRA, "extension=tlv_table_mod", "the option has a number since the version before"),
    (NICIRA, "extension=resume", "there is no packet that waits"),
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
