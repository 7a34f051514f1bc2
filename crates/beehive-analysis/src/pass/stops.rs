//! Loops that state may end early but cannot prolong: `while k < n { if self.d.contains(&k) { break; } k += 1; }`.
//!
//! Up to the point where the handler leaves such a loop, each of its iterations is like the map's. So what changes in the
//! loop is a function of the message inside the loop, and unknown after it. The map runs the loop to its own end, as one
//! branch: an exit that would leave an outer construct leaves only this loop, because the handler may have left it before, and
//! continued after it.
//!
//! A map that follows such a loop takes as many steps as the message allows, rather than one, and it may name more cells.
//! Therefore this is done only for a function that would otherwise be refused.

use super::Pass;
use crate::emit::leave::Control;
use crate::node::Node;
use crate::value::{Site, Taint, Value, VariableId, Why};
use proc_macro2::Span;
use std::collections::BTreeMap;
use syn::spanned::Spanned;

/// A loop around the current point that the handler may leave earlier than the map.
pub(super) struct Stop {
    /// Number of loops and labeled blocks around it.
    nesting: usize,
    /// The locals declared outside of it that change in it, with the first such change.
    changed: BTreeMap<VariableId, Span>,
}

impl Pass<'_, '_> {
    pub(super) fn is_stopped(&self, site: Site) -> bool {
        self.facts.stopped.contains(&site) && !self.is_undecided(site)
    }

    /// Records that state may end the loops inside the loop or block with this index, and that loop itself if it `is_break`;
    /// otherwise state decides its control flow. Returns `false` if loops are not followed.
    pub(super) fn stops_from(&mut self, target: usize, is_break: bool) -> bool {
        if !self.facts.follows_stops {
            return false;
        }
        let mut stopped: Vec<Site> = vec![];
        for (index, l) in self.enclosing.iter().enumerate().skip(target) {
            if index == target && !(is_break && l.is_loop) {
                let site = l.site;
                if !self.is_undecided(site) {
                    self.learned.undecided.insert(site);
                }
            } else if l.is_loop && !self.facts.stopped.contains(&l.site) {
                stopped.push(l.site)
            }
        }
        self.learned.stopped.extend(stopped);
        true
    }

    /// Analyzes a loop. If state may end it, the value is tainted.
    pub(super) fn stopping(
        &mut self,
        site: Site,
        at: &impl Spanned,
        out: &mut Vec<Node>,
        run: impl FnOnce(&mut Self, &mut Vec<Node>) -> Value,
    ) -> Value {
        if !self.is_stopped(site) {
            return run(self, out);
        }

        let depth = self.control.len();
        self.control.push(Control { certain: None, stop: true });
        self.stops.push(Stop { nesting: self.enclosing.len(), changed: BTreeMap::new() });
        let mut nodes = vec![];
        let mut value = run(self, &mut nodes);
        self.control.pop();
        out.push(Node::Either(depth + 1, vec![nodes]));

        for (id, span) in self.stops.pop().map(|stop| stop.changed).unwrap_or_default() {
            let why = Why::Assigned(self.variable(id).name.clone());
            self.poison(id, Taint::new(why, span));
        }
        value.taint.get_or_insert(Self::together(at));
        value
    }

    /// Records that a local changes in the loops around this point that are inside its scope.
    pub(super) fn changed_until_stop(&mut self, id: VariableId, span: Span) {
        let nesting = self.variable(id).nesting;
        for stop in self.stops.iter_mut().filter(|stop| nesting <= stop.nesting) {
            stop.changed.entry(id).or_insert(span);
        }
    }

    /// Checks whether the map leaves a loop that the handler may leave earlier where the handler leaves more.
    pub(super) fn ends_stop(&self) -> bool {
        self.control.last().is_some_and(|c| c.stop)
    }
}
