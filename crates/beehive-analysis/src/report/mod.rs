//! Describes the result in words: a handler's cells, its kind, and the cells it joins.

mod flow;
mod verdict;

use crate::value::Sources;
use crate::words::fill;
use proc_macro2::Ident;
use std::collections::BTreeSet;

pub(crate) use flow::{summarize, summary_of};
pub(crate) use verdict::{Verdict, verdicts};

/// Maximum number of cells recorded for a function; a longer list would not help a reader.
const CELLS_MAX: usize = 32;

/// A cell, or a family of cells, that a function may touch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub field: Ident,
    /// The access `d[msg.a]`, with placeholders for parameters.
    pub words: String,
    /// The loops around it, ` for x in msg.items`, with placeholders for parameters.
    pub loops: String,
    /// A text that two cells share only if their keys are provably equal.
    pub identity: String,
    pub sources: Sources,
    /// Whether one message may touch several cells of this family.
    pub varies: bool,
}

impl Cell {
    /// Returns the cell as a programmer would write it.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.words, self.loops)
    }

    /// Checks whether the key is the same for every message.
    pub(crate) fn is_constant(&self) -> bool {
        !self.sources.message && self.sources.parameters.is_empty()
    }
}

/// The cells that a function may touch, and its effects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub cells: Vec<Cell>,
    /// Pairs of cells, by index, that one message may touch together.
    pub together: BTreeSet<(usize, usize)>,
    /// Dictionaries that are used as a whole.
    pub whole: Vec<Ident>,
    /// Dictionaries whose shared views are read.
    pub shared: Vec<Ident>,
    /// Whether the function has an effect other than accesses.
    pub effect: bool,
}

impl Summary {
    /// Adds a cell and returns its index, or `None` if there are already [`CELLS_MAX`].
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

    /// Lists the cells, each once: `d[msg.a], w[*]`.
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

    /// Lists the dictionaries whose shared views are read, each once: `links, nodes`.
    pub(crate) fn views(&self) -> String {
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

    /// Returns `sharded`, `centralized`, `stateless` or `drop`, considering this function alone.
    pub(crate) fn kind(&self) -> &'static str {
        if !self.whole.is_empty() || self.constants().next().is_some() {
            "centralized"
        } else if !self.cells.is_empty() {
            "sharded"
        } else if self.effect {
            "stateless"
        } else {
            "drop"
        }
    }

    /// Lists the different keys needed together by one message; empty if none.
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

/// Replaces the placeholders in `template`. A compound argument gets parentheses unless it stands alone.
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
