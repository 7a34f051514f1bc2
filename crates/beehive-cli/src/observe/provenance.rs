//! `beehive provenance`: shows which messages cause which other messages.

use super::Source;
use super::status::Status;
use crate::table::{Table, percent};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;

/// Shows which messages cause which other messages, and in which handlers
#[derive(Args, Debug)]
pub(crate) struct ProvenanceArgs {
    #[command(flatten)]
    pub(super) source: Source,
}

/// The messages produced by handlers, and what caused them.
#[derive(Serialize)]
pub(super) struct Provenance {
    seconds: u64,
    causes: Vec<Cause>,
}

/// One handler that produces messages of one type.
#[derive(Clone, Serialize)]
struct Cause {
    /// Type of the message produced by the handler.
    message: String,
    /// Whether the message is the handler's answer. If not, the handler emits it.
    answer: bool,
    app: String,
    handler: String,
    upon: String,
    count: u64,
    /// Number of messages of this type from all handlers.
    of: u64,
}

/// Returns a type name without its crate and modules.
fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

impl Provenance {
    /// Collects the causes from a status in descending order of frequency, first of the message type, then of the
    /// cause.
    pub(super) fn of(status: &Status) -> Provenance {
        let emitted = status.emits.iter().map(|e| Cause {
            message: short(&e.message).into(),
            answer: false,
            app: e.app.clone(),
            handler: e.handler.clone(),
            upon: e.upon.clone(),
            count: e.count,
            of: 0,
        });
        let answered = status.apps.iter().flat_map(|app| {
            app.handlers.iter().filter(|h| !h.answer.is_empty()).map(|h| Cause {
                message: short(&h.answer).into(),
                answer: true,
                app: app.name.clone(),
                handler: h.name.clone(),
                upon: h.message.clone(),
                count: h.answered,
                of: 0,
            })
        });
        let mut causes: Vec<Cause> = emitted.chain(answered).filter(|c| c.count > 0).collect();
        let mut totals: BTreeMap<String, u64> = BTreeMap::new();
        for cause in &causes {
            *totals.entry(cause.message.clone()).or_default() += cause.count;
        }
        for cause in &mut causes {
            cause.of = totals.get(&cause.message).copied().unwrap_or(0);
        }
        causes.sort_by(|a, b| {
            (b.of, &a.message, b.count, &a.handler).cmp(&(a.of, &b.message, a.count, &b.handler))
        });
        Provenance { seconds: status.uptime_seconds, causes }
    }

    /// Renders one sentence per message type, then the table.
    pub(super) fn text(&self) -> String {
        if self.causes.is_empty() {
            return format!("no handler emitted or answered a message in {} s\n", self.seconds);
        }
        let mut out = String::new();
        let mut last = None;
        for cause in &self.causes {
            if last.replace(&cause.message) == Some(&cause.message) {
                continue;
            }
            let some = if cause.count == cause.of { "all" } else { "most" };
            out += &format!("{some} {} come from {} on {}\n", cause.message, cause.app, cause.upon);
        }
        let rows: Vec<_> = self
            .causes
            .iter()
            .map(|c| {
                let kind = if c.answer { "answer" } else { "emit" };
                let by = format!("{}::{}", c.app, c.handler);
                [
                    c.message.clone(),
                    kind.into(),
                    by,
                    c.upon.clone(),
                    c.count.to_string(),
                    percent(c.count, c.of),
                ]
            })
            .collect();
        out.push('\n');
        out += &Table::with_rows(["message", "as", "made by", "upon", "count", "share"], rows).text();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::status::{App, Emit, Handler};
    use super::*;

    #[test]
    fn answers_and_emitted_messages_are_grouped_by_type() {
        let handler = Handler {
            name: "packet_in".into(),
            message: "PacketIn".into(),
            answer: "PacketOut".into(),
            answered: 90,
            ..Handler::default()
        };

        let emit = |handler: &str, upon: &str, message: &str, count| Emit {
            app: "hosts".into(),
            handler: handler.into(),
            upon: upon.into(),
            message: message.into(),
            count,
        };

        let status = Status {
            apps: vec![App { name: "switch".into(), handlers: vec![handler], ..App::default() }],
            emits: vec![
                emit("probe", "every 1s", "nom::PacketOut", 10),
                emit("arp", "PacketIn", "nom::HostSeen", 5),
                emit("never", "PacketIn", "nom::Other", 0),
            ],
            ..Status::default()
        };

        let text = Provenance::of(&status).text();
        let want = "\
most PacketOut come from switch on PacketIn
all HostSeen come from hosts on PacketIn

message    as      made by            upon      count  share
PacketOut  answer  switch::packet_in  PacketIn     90   90 %
PacketOut  emit    hosts::probe       every 1s     10   10 %
HostSeen   emit    hosts::arp         PacketIn      5  100 %
";
        assert_eq!(text, want, "{text}");
    }
}
