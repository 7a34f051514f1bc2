//! Decides the kind of each handler, considering the whole app: if one handler uses a dictionary as a whole,
//! its cells belong to one bee for all handlers.

use super::Summary;
use proc_macro2::Ident;

/// The result for one handler.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// `sharded`, `centralized`, `stateless` or `drop`.
    pub kind: &'static str,
    pub cells: String,
    /// Different keys needed together by one message, so that their owners merge; empty if none.
    pub joins: String,
    /// The reason for its kind.
    pub reason: String,
    /// Line of the code that centralizes it; zero if it is not centralized.
    pub line: usize,
    /// Whether it is centralized by a constant key or by another handler, rather than by its own `whole`.
    pub accidental: bool,
}

/// Returns a verdict for each of `handlers` (names and summaries). `also_whole` lists the dictionaries used
/// as a whole by hand-written maps.
pub(crate) fn verdicts(handlers: &[(&str, &Summary)], also_whole: &[Ident]) -> Vec<Verdict> {
    // the first handler that uses a dictionary as a whole, with the line of that use
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
        let kind = if merged.is_some() { "centralized" } else { summary.kind() };
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
                (format!("`{by}` owns all cells of `{field}` (line {line})"), line)
            }
            (None, None, None) => (format!("its map is `{cells}`"), 0),
        };

        Verdict {
            kind,
            cells,
            joins: summary.joins(),
            reason,
            line,
            accidental: kind == "centralized" && (constant.is_some() || own.is_none()),
        }
    };

    handlers.iter().map(verdict).collect()
}

/// Returns the line of an access, which is the line of the dictionary's name.
fn line_of(field: &Ident) -> usize {
    field.span().start().line
}
