//! What was found, in words: the cells of a handler, what kind that makes it, and which cells it joins.

mod flow;
mod verdict;

use crate::value::Sources;
use crate::words::fill;
use proc_macro2::Ident;
use std::collections::BTreeSet;

pub(crate) use flow::{summarise, summary_of};
pub(crate) use verdict::{Verdict, verdicts};

/// So many cells are named for a handler; more help no reader.
const CELLS_MAX: usize = 32;

/// A cell, or a family of cells, that a function may touch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub field: Ident,
    /// `d[msg.a]`, with placeholders for parameters.
    pub words: String,
    /// ` for x in msg.items`, the same.
    pub loops: String,
    /// Equal for provably equal keys.
    pub identity: String,
    pub sources: Sources,
    /// There are several in one message.
    pub varies: bool,
}

impl Cell {
    /// The cell as a programmer would write it.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.words, self.loops)
    }

    /// The same key for every message.
    pub(crate) fn is_constant(&self) -> bool {
        !self.sources.message && self.sources.parameters.is_empty()
    }
}

/// What a function may touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub cells: Vec<Cell>,
    /// Cells (by index) that one message may touch together.
    pub together: BTreeSet<(usize, usize)>,
    /// Dictionaries that are used whole.
    pub whole: Vec<Ident>,
    /// Dictionaries whose snapshots are read.
    pub shared: Vec<Ident>,
    /// Whether something happens that is no access.
    pub effect: bool,
}

impl Summary {
    /// Adds a cell; returns its index, or `None` if there are too many.
    pub(crate) fn add(&mut self, cell: Cell) -> Option<usize> {
        if let Some(known) = self.cells.iter().position(|c| *c == cell) {
            return Some(known);
        }
        if self.cells.len() >= CELLS_MAX {
            return None;
        }
        self.cells.push(cell);
        Some(self.cells.len() - 1)
    }

    /// `d[msg.a], w[*]`, each once.
    pub(crate) fn text(&self) -> String {
        let mut out: Vec<String> = vec![];
        let cells = self.cells.iter().map(Cell::text);
        for text in cells.chain(self.whole.iter().map(|w| format!("{w}[*]"))) {
            if !out.contains(&text) {
                out.push(text)
            }
        }
        out.join(", ")
    }

    /// The dictionaries whose snapshots are read, each once: `links, nodes`.
    pub(crate) fn snapshots(&self) -> String {
        let mut out: Vec<String> = vec![];
        for name in self.shared.iter().map(Ident::to_string) {
            if !out.contains(&name) {
                out.push(name)
            }
        }
        out.join(", ")
    }

    pub(crate) fn constants(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|c| c.is_constant())
    }

    /// `sharded`, `centralised`, `stateless` or `drop`, for this function alone.
    pub(crate) fn kind(&self) -> &'static str {
        if !self.whole.is_empty() || self.constants().next().is_some() {
            "centralised"
        } else if !self.cells.is_empty() {
            "sharded"
        } else if self.effect {
            "stateless"
        } else {
            "drop"
        }
    }

    /// Which different keys one message ties together, in words; empty if none.
    pub(crate) fn joins(&self) -> String {
        const SHOWN_MAX: usize = 4;
        let mut out: Vec<String> = vec![];
        let mut add = |text: String| {
            if !out.contains(&text) {
                out.push(text)
            }
        };
        self.cells.iter().filter(|c| c.varies).for_each(|c| add(c.text()));
        for (a, b) in &self.together {
            let (Some(a), Some(b)) = (self.cells.get(*a), self.cells.get(*b)) else { continue };
            if a.identity != b.identity {
                match a.words == b.words {
                    true => add(format!("several values of {}", a.words)),
                    false => add(format!("{} with {}", a.words, b.words)),
                }
            }
        }
        for (whole, cell) in self.whole.iter().flat_map(|w| self.cells.iter().map(move |c| (w, c))) {
            if cell.field != *whole {
                add(format!("{whole}[*] with {}", cell.text()));
            }
        }
        let more = out.len().saturating_sub(SHOWN_MAX);
        out.truncate(SHOWN_MAX);
        if more > 0 {
            out.push(format!("and {more} more"));
        }
        out.join("; ")
    }
}

/// Puts an argument into a text; compound arguments in parentheses, unless they stand alone.
pub(crate) fn fill_words(template: &str, words: &dyn Fn(usize) -> String) -> String {
    let alone = template
        .chars()
        .filter(|c| (*c as u32) < 0xF_0000)
        .all(|c| c.is_alphanumeric() || "[]_#.(), ".contains(c));
    fill(template, &|i| {
        let argument = words(i);
        let compound = argument.contains(' ') && !argument.ends_with(')');
        match compound && !alone {
            true => format!("({argument})"),
            false => argument,
        }
    })
}
