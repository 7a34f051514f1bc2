//! Walks the nodes of a map and records the cells, and which of them one message may touch together.

use super::{Cell, Summary, fill_words};
use crate::emit::needed::{keeps, needed};
use crate::node::{FunctionMap, HelperCall, Node};
use crate::value::{Sources, Variables};
use crate::words::{fill, placeholder};
use std::collections::BTreeSet;

/// Indices of the cells touched on a path to a point.
type Path = BTreeSet<usize>;

/// Returns the cells that a function may touch. Computed once, because many callers may share the function.
pub(crate) fn summary_of(map: &FunctionMap) -> &Summary {
    let start = || Summary { shared: map.shared.clone(), ..Summary::default() };
    map.summary.get_or_init(|| summarize(&map.nodes, start()))
}

/// Adds to `start` the cells that `nodes` may touch.
pub(crate) fn summarize(nodes: &[Node], start: Summary) -> Summary {
    let path = (0..start.cells.len()).collect();
    let needs = needed(nodes);
    let mut walk = Walk { out: start, needs: &needs, touched: vec![] };
    walk.nodes(nodes, "", path);
    walk.out
}

struct Walk<'n> {
    out: Summary,
    needs: &'n Variables,
    /// Indices of the touched cells in walking order, with repetitions.
    touched: Vec<usize>,
}

impl Walk<'_> {
    /// Returns the cells touched on the paths through `nodes`, or `None` if no path gets past them.
    fn nodes(&mut self, nodes: &[Node], loops: &str, mut path: Path) -> Option<Path> {
        for n in nodes.iter().filter(|n| keeps(n, self.needs)) {
            path = self.node(n, loops, path)?;
        }
        Some(path)
    }

    fn node(&mut self, n: &Node, loops: &str, path: Path) -> Option<Path> {
        match n {
            Node::Access(a) => {
                let cell = Cell {
                    field: a.field.clone(),
                    words: a.words.clone(),
                    loops: loops.into(),
                    identity: a.identity.clone(),
                    sources: a.value.sources.clone(),
                    varies: a.varies,
                };

                self.out.effect |= a.value.exits;
                return Some(self.touch(cell, path));
            }
            Node::Whole { field } => self.out.whole.push(field.clone()),
            Node::Effect => self.out.effect = true,
            Node::Exit { quiet, certain, .. } => {
                self.out.effect |= !quiet;
                if *certain {
                    return None;
                }
            }
            Node::Let { value, .. } | Node::Pure { value, .. } => self.out.effect |= value.exits,
            Node::LetElse { value, otherwise, .. } => {
                self.out.effect |= value.exits;
                self.nodes(otherwise, loops, path.clone());
            }
            Node::Condition { then, otherwise, .. } => {
                let a = self.nodes(then, loops, path.clone());
                let b = self.nodes(otherwise, loops, path);
                return either(a, b);
            }
            Node::Match { arms, .. } => {
                let after = arms.iter().map(|a| self.nodes(&a.1, loops, path.clone())).collect::<Vec<_>>();
                return after.into_iter().fold(None, either);
            }
            Node::Arms { arms, .. } => return Some(self.all(arms.iter().map(|a| &a.1[..]), loops, path)),
            Node::OrElse { state, then, otherwise, .. } => {
                let parts = [&state[..], std::slice::from_ref(then), std::slice::from_ref(otherwise)];
                return Some(self.all(parts.into_iter(), loops, path));
            }
            Node::Either(_, branches) => return Some(self.all(branches.iter().map(|b| &b[..]), loops, path)),
            Node::For { words, body, .. } => {
                return Some(self.rounds(body, &format!(" {words}{loops}"), path));
            }
            Node::While { body, .. } | Node::Loop { body, .. } => {
                return Some(self.rounds(body, loops, path));
            }
            Node::Block { body, .. } => {
                // a `break` out of the block is also a path past it
                let before = path.clone();
                return Some(self.nodes(body, loops, path).unwrap_or(before));
            }
            Node::Helper(h) => return Some(self.helper(h, loops, path)),
            Node::Item(_) | Node::Maybe | Node::Gap | Node::Jump(_) => {}
        }

        Some(path)
    }

    fn touch(&mut self, cell: Cell, mut path: Path) -> Path {
        if let Some(index) = self.out.add(cell) {
            for other in path.iter().filter(|p| **p != index) {
                self.out.together.insert(((*other).min(index), (*other).max(index)));
            }
            path.insert(index);
            self.touched.push(index);
        }
        path
    }

    /// Walks all branches in turn, because state decides which of them run.
    fn all<'b>(&mut self, branches: impl Iterator<Item = &'b [Node]>, loops: &str, mut path: Path) -> Path {
        for b in branches {
            if let Some(after) = self.nodes(b, loops, path.clone()) {
                path = after;
            }
        }
        path
    }

    /// Walks the body of a loop. All iterations happen within one message, so an iteration's cells are
    /// touched together with all cells touched by the previous one. The body is walked only once: with two
    /// walks, a nest of loops would take time exponential in its depth.
    fn rounds(&mut self, body: &[Node], loops: &str, path: Path) -> Path {
        let before = self.touched.len();
        let first = self.nodes(body, loops, path.clone()).unwrap_or_default();
        let all: Path = path.union(&first).copied().collect();
        let again: Path = self.touched.iter().skip(before).copied().collect();

        for cell in &again {
            for other in all.iter().filter(|other| *other != cell) {
                self.out.together.insert((*other.min(cell), *other.max(cell)));
            }
        }

        all
    }

    fn helper(&mut self, h: &HelperCall, loops: &str, mut path: Path) -> Path {
        let of = summary_of(&h.map);
        self.out.effect |= of.effect || h.arguments.iter().any(|a| a.value.exits);
        self.out.whole.extend(of.whole.iter().cloned());
        self.out.shared.extend(of.shared.iter().cloned());
        let argument = |i: usize| h.arguments.get(i);
        let words = |i: usize| argument(i).map(|a| a.words.clone()).unwrap_or_default();

        let before = path.clone();
        let mut indices = vec![];
        for c in &of.cells {
            let mut sources = Sources { message: c.sources.message, parameters: BTreeSet::new() };
            let mut varies = c.varies;
            for a in c.sources.parameters.iter().filter_map(|i| argument(*i)) {
                sources.and(&a.value.sources);
                varies |= a.varies;
            }

            let identity_of = |i: usize| argument(i).map(|a| a.identity.clone()).unwrap_or_default();
            let mut identity = fill(&c.identity, &identity_of);

            // a key made from a helper's local differs between calls with different arguments, so the
            // arguments become part of its identity
            let named = |i: &usize| c.identity.contains(&placeholder(*i));
            for i in c.sources.parameters.iter().filter(|i| !named(i)) {
                identity += &format!(" of {}", identity_of(*i));
            }

            let cell = Cell {
                field: c.field.clone(),
                words: fill_words(&c.words, &words),
                loops: format!("{}{loops}", fill_words(&c.loops, &words)),
                identity,
                sources,
                varies,
            };

            let after = self.touch(cell.clone(), before.clone());
            indices.push(self.out.cells.iter().position(|k| *k == cell));
            path.extend(after);
        }

        for (a, b) in &of.together {
            if let (Some(Some(a)), Some(Some(b))) = (indices.get(*a), indices.get(*b)) {
                self.out.together.insert((*a.min(b), *a.max(b)));
            }
        }

        path
    }
}

fn either(a: Option<Path>, b: Option<Path>) -> Option<Path> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.union(&b).copied().collect()),
        (a, b) => a.or(b),
    }
}
