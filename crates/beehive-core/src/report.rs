//! The map report: the result of the derivation for each handler, as data and as a table for people.

use crate::app::{AppOptions, COPIES};
use serde::Serialize;

/// The result of the derivation for one handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HandlerReport {
    /// The method's name.
    pub name: &'static str,
    /// The message type that the handler accepts, or the period of its timer.
    pub message: &'static str,
    /// The type of the answer; empty if the handler cannot answer.
    pub answer: &'static str,
    /// The kind of the map: `sharded`, `centralized`, `stateless`, `drop`, or `custom` if the map is written by
    /// hand.
    pub kind: &'static str,
    /// The cells that the handler may touch, in source notation; `-` if there are none.
    pub cells: &'static str,
    /// The cells that the handler's messages permanently join on one bee; empty if none.
    pub joins: &'static str,
    /// The dictionaries whose views the handler reads; empty if none.
    pub views: &'static str,
    /// The source file.
    pub file: &'static str,
    /// The line in the source file.
    pub line: u32,
    /// The reason why the handler is centralized; empty if it is not.
    pub reason: &'static str,
    /// The line that centralizes the handler; 0 if none.
    pub reason_line: u32,
    /// A way to avoid the centralization; empty if there is nothing to do.
    pub note: &'static str,
}

impl HandlerReport {
    /// Checks whether the map of a handler is written by hand.
    pub(crate) const fn is_written_by_hand(handlers: &[HandlerReport], handler: usize) -> bool {
        handler < handlers.len() && matches!(handlers[handler].kind.as_bytes(), b"custom")
    }
}

/// Renders the report of one app: a line if the app asks for more copies than there are, a line if it says where its
/// state is, and one row for each handler, with its notes below.
pub(crate) fn table(app: &str, options: AppOptions, handlers: &[HandlerReport]) -> String {
    let row = |r: &HandlerReport| {
        [r.name.into(), r.message.into(), r.kind.into(), r.cells.into(), r.line.to_string()]
    };
    let head = ["handler", "handles", "map", "cells", "line"].map(String::from);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(handlers.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut out = format!("{app}\n");

    if options.replication > COPIES {
        out += &format!("  replication: {COPIES} (asked for {})\n", options.replication)
    }
    if let Some(durability) = options.durability {
        out += &format!("  durability: {durability}\n")
    }
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(text, width)| format!("{text:<width$}")).collect();
        out += &format!("  {}\n", cells.join("  ").trim_end());
        let Some(handler) = at.checked_sub(1).and_then(|at| handlers.get(at)) else { continue };
        let looks = match handler.views {
            "" => String::new(),
            names => format!("views of {names}"),
        };

        for (mark, text) in [
            ("joins", handler.joins),
            ("reads", &looks),
            ("because", handler.reason),
            ("help:", handler.note),
        ] {
            if !text.is_empty() {
                out += &format!("{:1$}{mark} {text}\n", "", widths[0] + 4);
            }
        }
    }

    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::Durability;

    #[test]
    fn the_table_shows_notes_under_each_handler() {
        let plain = HandlerReport {
            name: "count",
            message: "Word",
            answer: "",
            kind: "sharded",
            cells: "counts[msg.word]",
            joins: "",
            views: "",
            file: "src/main.rs",
            line: 12,
            reason: "",
            reason_line: 0,
            note: "",
        };

        let all = HandlerReport {
            name: "report",
            message: "every 1s",
            kind: "centralized",
            cells: "counts[*]",
            joins: "a[x] with b[y]",
            views: "words, lines",
            line: 7,
            reason: "it uses all of `counts` (line 8)",
            reason_line: 8,
            note: "say so",
            ..plain
        };

        let want = "\
words
  handler  handles   map          cells             line
  count    Word      sharded      counts[msg.word]  12
  report   every 1s  centralized  counts[*]         7
           joins a[x] with b[y]
           reads views of words, lines
           because it uses all of `counts` (line 8)
           help: say so
";

        assert_eq!(table("words", AppOptions::DEFAULT, &[plain, all]), want);
        assert_eq!(
            table("nothing", AppOptions::DEFAULT, &[]),
            "nothing\n  handler  handles  map  cells  line\n"
        );
        let replicated = "nothing\n  replication: 1 (asked for 3)\n  handler  handles  map  cells  line\n";
        assert_eq!(table("nothing", AppOptions { replication: 3, ..AppOptions::DEFAULT }, &[]), replicated);
        let durable = "nothing\n  durability: memory\n  handler  handles  map  cells  line\n";
        let options = AppOptions { durability: Some(Durability::Memory), ..AppOptions::DEFAULT };
        assert_eq!(table("nothing", options, &[]), durable);
    }
}
