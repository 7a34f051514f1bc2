//! Writes the flows, matches and actions of decoded messages in the syntax of `ovs-ofctl`.

use beehive_of::Version;
use beehive_of::message::{Message, Multipart, ReplyBody};
use beehive_of::text::{show_actions, show_entry, show_fields, show_flow};
use beehive_of::tree::Node;

/// Flow-mod fields that the syntax of `ovs-ofctl` cannot express. They remain unchanged.
const BESIDE_FLOW: [&str; 5] = ["version", "type", "xid", "command", "buffer_id"];

/// Replaces each part of a message's tree that the syntax of `ovs-ofctl` can express with text in that
/// syntax.
pub(super) fn abbreviate(message: &Message<'_>, version: Version, tree: Node) -> Node {
    let Node::Record(mut fields) = tree else { return tree };
    let mut replace = |name: &str, value: Node| {
        if let Some((_, old)) = fields.iter_mut().find(|(known, _)| known == name) {
            *old = value
        }
    };
    match message {
        Message::FlowMod(flow) => {
            fields.retain(|(name, value)| {
                let is_unset = name == "buffer_id" && *value == Node::Text("none".into());
                BESIDE_FLOW.contains(&name.as_str()) && !is_unset
            });
            fields.push(("flow".into(), text(show_flow(flow, version))));
        }
        Message::FlowRemoved(flow) => replace("match", text(show_fields(&flow.match_fields, version))),
        Message::PacketIn(packet) => replace("match", text(show_fields(&packet.match_fields, version))),
        Message::PacketOut(packet) => {
            replace("match", text(show_fields(&packet.match_fields, version)));
            replace("actions", text(show_actions(&packet.actions, version)));
        }
        Message::MultipartReply(Multipart { body: ReplyBody::Flow(reply), .. }) => {
            let entries = reply.flows.iter().flatten().map(|entry| text(show_entry(&entry, version)));
            replace("flows", Node::List(entries.collect()));
        }
        _ => {}
    }
    Node::Record(fields)
}

fn text(shown: impl std::fmt::Display) -> Node {
    Node::Text(shown.to_string())
}
