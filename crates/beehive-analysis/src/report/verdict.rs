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
    /// It is centralised, but does not say `whole` itself.
    pub accidental: bool,
}

/// `handlers`: names and summaries. `also_whole`: dictionaries that hand-written maps use whole.
pub(crate) fn verdicts(handlers: &[(&str, &Summary)], also_whole: &[Ident]) -> Vec<Verdict> {
    let owner_of = |field: &Ident| {
        let user = handlers.iter().find(|(_, s)| s.whole.iter().any(|w| w == field)).map(|(name, _)| *name);
        user.or_else(|| also_whole.iter().any(|w| w == field).then_some("a hand-written map"))
    };
    let verdict = |(_, summary): &(&str, &Summary)| {
        let cells = match summary.text() {
            text if text.is_empty() => "-".to_string(),
            text => text,
        };
        let constant = summary.constants().next().map(|c| c.words.clone());
        let merged = summary.cells.iter().find_map(|c| owner_of(&c.field).map(|by| (by, c.field.clone())));
        let own = !summary.whole.is_empty();
        let kind = if merged.is_some() { "centralised" } else { summary.kind() };
        let reason = match (&constant, &merged) {
            (Some(c), _) => format!("the key of `{c}` is the same for every message"),
            (None, Some((by, field))) if !own => {
                format!("`{by}` owns all of `{field}`, so every cell of `{field}` is on one bee")
            }
            _ => format!("its map is `{cells}`"),
        };
        Verdict {
            kind,
            cells,
            joins: summary.joins(),
            reason,
            accidental: kind == "centralised" && (constant.is_some() || !own),
        }
    };
    handlers.iter().map(verdict).collect()
}
