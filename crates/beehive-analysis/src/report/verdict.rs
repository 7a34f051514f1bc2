//! What kind of handler each is, given all of the app: a dictionary that one handler uses whole is one cell for all.

use super::Summary;
use proc_macro2::Ident;

/// The finding about one handler.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// `sharded`, `centralised`, `stateless` or `drop`.
    pub kind: &'static str,
    pub cells: String,
    /// Which different keys one message ties together; empty if none.
    pub joins: String,
    /// Why it is of that kind.
    pub reason: String,
    /// The line that centralises it; zero if it is not centralised.
    pub line: usize,
    /// It is centralised, but does not say `whole` itself.
    pub accidental: bool,
}

/// `handlers`: names and summaries. `also_whole`: dictionaries that hand-written maps use whole.
pub(crate) fn verdicts(handlers: &[(&str, &Summary)], also_whole: &[Ident]) -> Vec<Verdict> {
    // who uses a dictionary whole, and in which line
    let owner_of = |field: &Ident| {
        let users = handlers.iter().flat_map(|(name, s)| s.whole.iter().map(move |w| (*name, w)));
        let by_hand = also_whole.iter().map(|w| ("a hand-written map", w));
        users.chain(by_hand).find(|(_, w)| *w == field).map(|(name, w)| (name, line_of(w)))
    };
    let verdict = |(_, summary): &(&str, &Summary)| {
        let cells = match summary.text() {
            text if text.is_empty() => "-".to_string(),
            text => text,
        };
        let constant = summary.constants().next();
        let merged = summary.cells.iter().find_map(|c| owner_of(&c.field).map(|by| (by, &c.field)));
        let own = summary.whole.first();
        let kind = if merged.is_some() { "centralised" } else { summary.kind() };
        let (reason, line) = match (constant, own, merged) {
            (Some(c), _, _) => {
                let line = line_of(&c.field);
                (format!("the key of `{}` (line {line}) is the same for every message", c.words), line)
            }
            (None, Some(field), _) => {
                let line = line_of(field);
                (format!("it uses all of `{field}` (line {line})"), line)
            }
            (None, None, Some(((by, line), field))) => {
                (format!("`{by}` owns all of `{field}` (line {line}), with every cell of it"), line)
            }
            (None, None, None) => (format!("its map is `{cells}`"), 0),
        };
        Verdict {
            kind,
            cells,
            joins: summary.joins(),
            reason,
            line,
            accidental: kind == "centralised" && (constant.is_some() || own.is_none()),
        }
    };
    handlers.iter().map(verdict).collect()
}

/// The line of an access, which is that of the name of its dictionary.
fn line_of(field: &Ident) -> usize {
    field.span().start().line
}
