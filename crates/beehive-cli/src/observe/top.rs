//! `beehive top`: shows the busiest bees, the handlers that merge
//! bees, and the pairs of bees that exchange the most messages.

use super::Source;
use super::status::{Bee, Peer, Status};
use crate::table::{Table, percent};
use clap::Args;
use serde::Serialize;
use utoipa::ToSchema;

/// Shows the busiest bees, and the pairs of bees that exchange the most messages
///
/// An app whose busiest bee handles most of its messages does not scale with the number of cores; `beehive maps`
/// names the source line that causes this. A handler whose messages often wait to merge combines the owners of its
/// cells into one bee.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(super) source: Source,

    /// Maximum number of bees, and of pairs of bees, to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) most: usize,

    /// Also show the encoded size of each bee's state, in bytes; each bee is blocked while its state is encoded
    #[arg(long)]
    pub(super) sizes: bool,
}

/// The busiest apps, handlers, bees and pairs of bees.
#[derive(Serialize, ToSchema)]
pub(crate) struct Top {
    hive: u32,
    seconds: u64,
    io_bees: u64,
    dead_letters: u64,
    apps: Vec<AppRow>,
    handlers: Vec<HandlerRow>,
    bees: Vec<BeeRow>,
    pairs: Vec<PairRow>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct AppRow {
    app: String,
    /// Number of hives that keep a copy of the app's state.
    replication: u32,
    /// Number of hives that should keep a copy, as requested by the app.
    replication_asked: u32,
    bees: u64,
    bees_merged: u64,
    messages: u64,
    /// Number of messages handled by the app's busiest bee.
    busiest_messages: u64,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct HandlerRow {
    app: String,
    handler: String,
    upon: String,
    messages: u64,
    dropped: u64,
    errors: u64,
    panics: u64,
    waited: u64,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct BeeRow {
    bee: u64,
    app: String,
    messages: u64,
    waiting: u64,
    cells: u64,
    nanoseconds_per_message: Option<u64>,
    state_bytes: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct PairRow {
    from: Option<u64>,
    from_app: Option<String>,
    to: u64,
    to_app: String,
    messages: u64,
}

impl Top {
    /// Collects all apps, all handlers, and at most `most` bees and pairs of bees, the busiest first.
    pub(crate) fn of(status: &Status, most: usize) -> Top {
        let mut top = Top {
            hive: status.hive,
            seconds: status.uptime_seconds,
            io_bees: status.io_bees,
            dead_letters: status.dead_letters,
            apps: Vec::new(),
            handlers: Vec::new(),
            bees: Vec::new(),
            pairs: Vec::new(),
        };
        for app in &status.apps {
            top.apps.push(AppRow {
                app: app.name.clone(),
                replication: app.replication,
                replication_asked: app.replication_asked,
                bees: app.bees,
                bees_merged: app.bees_merged,
                messages: app.handlers.iter().map(|h| h.messages).sum(),
                busiest_messages: app.busiest.iter().map(|b| b.messages).max().unwrap_or(0),
            });

            top.handlers.extend(app.handlers.iter().map(|h| HandlerRow {
                app: app.name.clone(),
                handler: h.name.clone(),
                upon: h.message.clone(),
                messages: h.messages,
                dropped: h.dropped,
                errors: h.errors,
                panics: h.panics,
                waited: h.waited,
            }));

            for known in &app.busiest {
                let (Bee { bee, from, .. }, app) = (known.clone(), app.name.clone());
                let pair = |peer: &Peer| PairRow {
                    from: peer.bee,
                    from_app: peer.app.clone(),
                    to: bee,
                    to_app: app.clone(),
                    messages: peer.messages,
                };

                top.pairs.extend(from.iter().filter(|p| p.messages > 0).map(pair));
                top.bees.push(BeeRow {
                    bee,
                    app,
                    messages: known.messages,
                    waiting: known.waiting,
                    cells: known.cells,
                    nanoseconds_per_message: known.nanoseconds_per_message,
                    state_bytes: known.state_bytes,
                });
            }
        }
        top.handlers.sort_by_key(|h| std::cmp::Reverse(h.messages));
        top.bees.sort_by_key(|b| std::cmp::Reverse((b.messages, b.waiting)));
        top.pairs.sort_by_key(|p| std::cmp::Reverse(p.messages));
        top.bees.truncate(most);
        top.pairs.truncate(most);
        top
    }

    /// Renders the tables.
    pub(super) fn text(&self) -> String {
        let text = |t: &str| t.to_string();
        let number = |n: u64| n.to_string();
        let mut out = format!(
            "hive {}, {} s: {} IO bees, {} dead letters\n\n",
            self.hive, self.seconds, self.io_bees, self.dead_letters
        );
        let apps: Vec<_> = self
            .apps
            .iter()
            .map(|a| {
                let busiest = percent(a.busiest_messages, a.messages);
                let copies = copies(a.replication, a.replication_asked);
                [text(&a.app), number(a.messages), number(a.bees), number(a.bees_merged), busiest, copies]
            })
            .collect();
        out += &Table::with_rows(["app", "messages", "bees", "merged", "busiest bee", "replication"], apps)
            .text();
        let handlers: Vec<_> = self
            .handlers
            .iter()
            .map(|h| {
                let counts = [h.messages, h.dropped, h.errors, h.panics, h.waited].map(number);
                let [messages, dropped, errors, panics, waited] = counts;
                [
                    format!("{}::{}", h.app, h.handler),
                    text(&h.upon),
                    messages,
                    dropped,
                    errors,
                    panics,
                    waited,
                ]
            })
            .collect();
        out.push('\n');
        out += &Table::with_rows(
            ["handler", "upon", "messages", "dropped", "errors", "panics", "waited to merge"],
            handlers,
        )
        .text();
        let bees: Vec<_> = self
            .bees
            .iter()
            .map(|b| {
                let known = |figure: Option<u64>| figure.map_or_else(|| "-".into(), number);
                let [messages, waiting, cells] = [b.messages, b.waiting, b.cells].map(number);
                let (took, bytes) = (known(b.nanoseconds_per_message), known(b.state_bytes));
                [number(b.bee), text(&b.app), messages, took, waiting, cells, bytes]
            })
            .collect();
        out.push('\n');
        out += &Table::with_rows(["bee", "app", "messages", "ns each", "waiting", "cells", "bytes"], bees)
            .text();
        let pairs: Vec<_> = self
            .pairs
            .iter()
            .map(|p| {
                let from = match (p.from, &p.from_app) {
                    (_, None) => text("outside"),
                    (Some(bee), Some(app)) => format!("bee {bee} of {app}"),
                    (None, Some(app)) => format!("a stateless handler of {app}"),
                };
                [from, format!("bee {} of {}", p.to, p.to_app), number(p.messages)]
            })
            .collect();
        out.push('\n');
        out += &Table::with_rows(["from", "to", "messages"], pairs).text();
        out
    }
}

/// Formats the number of copies of an app's state. If the app requests more copies than there are, the text also states
/// that number.
fn copies(replication: u32, asked: u32) -> String {
    if asked > replication { format!("{replication} (asked for {asked})") } else { replication.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::status::{App, Handler};
    use super::*;

    #[test]
    fn the_busiest_come_first() {
        let bee = |bee, messages, from| Bee {
            bee,
            messages,
            cells: 1,
            nanoseconds_per_message: Some(250),
            from,
            ..Bee::default()
        };

        let from = |bee, app: Option<&str>, messages| Peer { bee, app: app.map(String::from), messages };
        let app = |name: &str, replication_asked, busiest| App {
            name: name.into(),
            replication: 1,
            replication_asked,
            bees: 2,
            handlers: vec![Handler {
                name: "h".into(),
                message: "M".into(),
                messages: 40,
                ..Handler::default()
            }],
            busiest,
            ..App::default()
        };

        let status = Status {
            hive: 1,
            uptime_seconds: 5,
            apps: vec![
                app("a", 1, vec![bee(1, 10, vec![from(None, None, 10)])]),
                app("b", 3, vec![bee(2, 30, vec![from(Some(1), Some("a"), 25), from(None, Some("a"), 5)])]),
            ],
            ..Status::default()
        };

        let want = "\
hive 1, 5 s: 0 IO bees, 0 dead letters

app  messages  bees  merged  busiest bee  replication
a          40     2       0         25 %  1
b          40     2       0         75 %  1 (asked for 3)

handler  upon  messages  dropped  errors  panics  waited to merge
a::h     M           40        0       0       0                0
b::h     M           40        0       0       0                0

bee  app  messages  ns each  waiting  cells  bytes
  2  b          30      250        0      1  -
  1  a          10      250        0      1  -

from                      to          messages
bee 1 of a                bee 2 of b        25
outside                   bee 1 of a        10
a stateless handler of a  bee 2 of b         5
";
        let text = Top::of(&status, 10).text();
        assert_eq!(text, want, "{text}");
        assert_eq!(Top::of(&status, 1).pairs.len(), 1);
    }
}
