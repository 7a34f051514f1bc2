//! Renders the controller's answers as tables.

use crate::api::{DeadLetters, Flow, Flows, Hosts, Links, Ports, Refused, Resent, Switches, Verified};
use crate::table::Table;
use std::fmt::Write;

/// Formats a value, or `-` if it is missing.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_string(), |value| value.to_string())
}

pub(super) fn switches(answer: &Switches) -> String {
    let mut table = Table::new([
        "SWITCH",
        "ADDRESS",
        "PROTOCOL",
        "STATE",
        "SECONDS",
        "PORTS",
        "UP",
        "IN",
        "SHED",
        "OUT",
        "FLOWS-SENT",
        "ERRORS",
    ]);
    for s in &answer.switches {
        let state = match (s.ready, s.auxiliary) {
            (false, _) => "handshake",
            (true, true) => "auxiliary",
            (true, false) => "ready",
        };

        table.row([
            or_dash(s.switch.as_ref()),
            s.address.clone(),
            s.protocol.clone(),
            state.to_string(),
            s.connected_seconds.to_string(),
            s.ports.to_string(),
            s.ports_up.to_string(),
            s.packet_ins.to_string(),
            s.packet_ins_shed.to_string(),
            s.packet_outs.to_string(),
            s.flows_installed.to_string(),
            s.errors.to_string(),
        ])
    }
    table.text()
}

pub(super) fn ports(answer: &Ports) -> String {
    let mut table = Table::new(["SWITCH", "PORT", "NAME", "ADDRESS", "LINK"]);
    for p in &answer.ports {
        let link = if p.up { "up" } else { "down" }.to_string();
        table.row([p.switch.clone(), p.port.clone(), p.name.clone(), p.address.clone(), link])
    }
    table.text()
}

pub(super) fn links(answer: &Links) -> String {
    let mut table = Table::new(["SWITCH", "PORT", "SWITCH", "PORT", "WORKS", "FLOODED"]);
    for l in &answer.links {
        let works = if l.both_ways { "both ways" } else { "one way" }.to_string();
        let flooded = if l.flooded { "yes" } else { "no" }.to_string();
        let (one, other) =
            ((l.switch.clone(), l.port.clone()), (l.other_switch.clone(), l.other_port.clone()));
        table.row([one.0, one.1, other.0, other.1, works, flooded])
    }
    table.text()
}

pub(super) fn hosts(answer: &Hosts) -> String {
    let mut table = Table::new(["HOST", "VLAN", "SWITCH", "PORT", "ADDRESSES"]);
    for h in &answer.hosts {
        let addresses = h.internet_addresses.join(", ");
        table.row([h.address.clone(), or_dash(h.vlan), h.switch.clone(), h.port.clone(), addresses])
    }
    let mut text = table.text();
    if answer.truncated {
        text.push_str("the list of hosts is incomplete: query one switch at a time (--switch)\n")
    }
    text
}

pub(super) fn flows(answer: &Flows) -> String {
    let mut table = Table::new([
        "SWITCH", "TABLE", "STATE", "APP", "CAUSE", "PRIORITY", "MATCH", "ACTIONS", "IDLE", "HARD", "AGE",
        "PACKETS", "BYTES", "WHY",
    ]);
    // the controller uses only table 0, so the column matters only if there are foreign flows in other tables
    if answer.flows.iter().all(|flow| flow.table == 0) {
        table.hide(1)
    }
    answer.flows.iter().for_each(|flow| table.row(flow_row(flow)));
    let mut text = table.text();
    if !answer.refused.is_empty() {
        let mut table = Table::new(["SWITCH", "REFUSED", "APP", "CAUSE", "PRIORITY", "MATCH", "WHY"]);
        answer.refused.iter().for_each(|refused| table.row(refused_row(refused)));
        let _ = write!(text, "\n{}", table.text());
    }
    for switch in &answer.unread {
        let _ = writeln!(text, "{switch} did not report its flows in time");
    }
    if answer.truncated {
        text.push_str("the list of flows is incomplete: query one switch at a time (--switch)\n")
    }
    text
}

/// Renders the flows as input for `ovs-ofctl`, and everything else as comments.
pub(super) fn ofctl(answer: &Flows) -> String {
    let mut text = String::new();
    let mut switch = None;
    for flow in &answer.flows {
        if switch != Some(&flow.switch) {
            switch = Some(&flow.switch);
            let _ = writeln!(text, "# switch {}", flow.switch);
        }

        let words = [Some(flow.state.name()), flow.app.as_deref(), flow.cause.as_deref()];
        let words = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let _ = match &flow.ofctl {
            Some(ofctl) => writeln!(text, "{ofctl}  # {words}"),
            None => writeln!(
                text,
                "# not expressible: table={},priority={},{} actions={}  # {words}",
                flow.table, flow.priority, flow.matching, flow.actions
            ),
        };
    }
    for switch in &answer.unread {
        let _ = writeln!(text, "# {switch} did not report its flows in time");
    }
    if answer.truncated {
        text.push_str("# the list of flows is incomplete: query one switch at a time (--switch)\n")
    }
    text
}

fn flow_row(flow: &Flow) -> [String; 14] {
    let timeout = |seconds: u16| or_dash((seconds != 0).then_some(seconds));
    [
        flow.switch.clone(),
        flow.table.to_string(),
        flow.state.name().to_string(),
        or_dash(flow.app.as_ref()),
        or_dash(flow.cause.as_ref()),
        flow.priority.to_string(),
        if flow.matching.is_empty() { "any".to_string() } else { flow.matching.clone() },
        flow.actions.clone(),
        timeout(flow.idle_s),
        timeout(flow.hard_s),
        or_dash(flow.age_s),
        flow.packets.to_string(),
        flow.bytes.to_string(),
        flow.why.clone().unwrap_or_default(),
    ]
}

fn refused_row(refused: &Refused) -> [String; 7] {
    [
        refused.switch.clone(),
        format!("{} s ago", refused.seconds_ago),
        or_dash(refused.app.as_ref()),
        or_dash(refused.cause.as_ref()),
        or_dash(refused.priority),
        or_dash(refused.matching.as_ref()),
        refused.why.clone(),
    ]
}

pub(super) fn verified(answer: &Verified) -> String {
    let mut text = String::new();
    for r in &answer.switches {
        let _ = writeln!(
            text,
            "{}: {} kept, {} installed, {} removed, {} soft, {} foreign",
            r.switch, r.kept, r.installed, r.withdrawn, r.soft, r.foreign
        );
    }
    for switch in &answer.unread {
        let _ = writeln!(text, "{switch} did not report its flows in time");
    }
    text
}

/// Maximum number of characters of a message or an error in a table row.
const EXCERPT: usize = 60;

/// Returns the first [`EXCERPT`] characters of a text.
fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(EXCERPT).collect();
    if short.len() < text.len() {
        short.push('…')
    }
    short
}

pub(super) fn dead_letters(answer: &DeadLetters) -> String {
    let head = ["NUMBER", "AGE", "APP", "HANDLER", "MESSAGE", "ERROR", "CHAIN"];
    let mut table = Table::new(head);
    for letter in &answer.letters {
        let name = letter.message.rsplit("::").next().unwrap_or(&letter.message);
        let kept = if letter.can_be_sent_again { "" } else { " (not stored)" };
        table.row([
            letter.number.to_string(),
            letter.seconds_ago.to_string(),
            letter.app.clone(),
            letter.handler.clone(),
            format!("{name} {}{kept}", excerpt(&letter.words)),
            format!("{}: {}", letter.error_kind, excerpt(&letter.error)),
            letter.chain.clone(),
        ])
    }
    let mut text = if answer.letters.is_empty() { String::new() } else { table.text() };
    let _ = match (answer.total, answer.dropped) {
        (0, _) => writeln!(text, "no dead letters since the start"),
        (total, 0) => writeln!(text, "{} of {total} since the start", answer.letters.len()),
        (total, dropped) => {
            writeln!(text, "{} of {total} since the start; {dropped} were evicted", answer.letters.len())
        }
    };
    text
}

pub(super) fn resent(answer: &Resent) -> String {
    let mut text = format!("{} resent\n", answer.resent.len());
    for failed in &answer.not_resent {
        let _ = writeln!(text, "{} cannot be resent: {}", failed.number, failed.why);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::FlowState;

    #[test]
    fn the_table_column_is_shown_if_there_are_several() {
        let flow = |table| Flow {
            switch: "1".into(),
            state: FlowState::Foreign,
            app: None,
            cause: None,
            table,
            priority: 5,
            matching: String::new(),
            actions: "output:normal".into(),
            idle_s: 0,
            hard_s: 0,
            age_s: Some(7),
            packets: 0,
            bytes: 0,
            cookie: None,
            why: None,
            ofctl: None,
        };

        let words = |tables: &[u8]| {
            let text =
                flows(&Flows { flows: tables.iter().copied().map(flow).collect(), ..Flows::default() });
            let last = text.lines().last().unwrap_or_default();
            (text.contains("TABLE"), last.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
        };

        assert_eq!(words(&[0]), (false, "1 foreign -".into()));
        assert_eq!(words(&[0, 1]), (true, "1 1 foreign".into()));
    }

    #[test]
    fn lists_for_ovs_ofctl_have_everything_else_in_comments() {
        let flow = |switch: &str, ofctl: Option<&str>| Flow {
            switch: switch.into(),
            state: FlowState::Intended,
            app: Some("hosts".into()),
            cause: None,
            table: 0,
            priority: 5,
            matching: "in_port=1,ip_dscp=4".into(),
            actions: "drop".into(),
            idle_s: 0,
            hard_s: 0,
            age_s: None,
            packets: 0,
            bytes: 0,
            cookie: None,
            why: None,
            ofctl: ofctl.map(String::from),
        };

        let text = "priority=5,in_port=1 actions=drop";
        let listed = ofctl(&Flows {
            flows: vec![flow("1", Some(text)), flow("1", None), flow("2", Some(text))],
            unread: vec!["3".into()],
            ..Flows::default()
        });

        let expected = "\
# switch 1
priority=5,in_port=1 actions=drop  # intended, hosts
# not expressible: table=0,priority=5,in_port=1,ip_dscp=4 actions=drop  # intended, hosts
# switch 2
priority=5,in_port=1 actions=drop  # intended, hosts
# 3 did not report its flows in time
";
        assert_eq!(listed, expected);
    }

    #[test]
    fn dead_letters_take_one_line_each() {
        let letter = crate::api::Letter {
            number: 7,
            seconds_ago: 61,
            app: "hosts".into(),
            handler: "seen".into(),
            message: "nom::HostSeen".into(),
            can_be_sent_again: false,
            bytes: None,
            error_kind: "panicked".into(),
            error: "two\nlines".into(),
            chain: "00000000000000ff".into(),
            hops: 1,
            sender: "outside".into(),
            words: "x".repeat(100),
        };

        let text = dead_letters(&DeadLetters { letters: vec![letter], total: 9, dropped: 8 });
        let message = format!("HostSeen {}… (not stored)", "x".repeat(60));
        let row = format!("     7   61  hosts  seen     {message}  panicked: two?lines  00000000000000ff");
        assert_eq!(text.lines().nth(1), Some(row.as_str()), "{text}");
        assert_eq!(text.lines().nth(2), Some("1 of 9 since the start; 8 were evicted"));

        assert_eq!(dead_letters(&DeadLetters::default()), "no dead letters since the start\n");
    }
}
