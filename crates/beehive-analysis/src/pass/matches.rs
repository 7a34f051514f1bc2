//! Analyzes `match`.

use super::Pass;
use super::locals::scope::{Kind, Known};
use crate::emit::leave::{Keeping, Use};
use crate::node::{Node, is_pure};
use crate::syntax::{conjuncts, peel};
use crate::value::{Site, Value};
use proc_macro2::Ident;
use quote::{ToTokens, quote};
use syn::{Expr, ExprMatch, Pat};

impl Pass<'_, '_> {
    pub(super) fn match_(&mut self, m: &ExprMatch, out: &mut Vec<Node>, statement: bool) -> Value {
        let mut head = vec![];
        let mut scrutinee = self.expression(&m.expr, &mut head);
        let site = Site::of(m);
        let state_guard = self.is_undecided(site);
        match state_guard {
            true => self.moves_for_each_arm(&m.expr, &mut scrutinee),
            false => self.moves(&m.expr, &mut scrutinee),
        }

        // with a guard on state, the map evaluates the scrutinee once per arm, so the scrutinee must not
        // change anything
        let repeatable = scrutinee.changes.is_empty() && !scrutinee.exits;
        if Self::is_clean(&scrutinee, &head) && (repeatable || !state_guard) {
            return self.match_on_message(m, scrutinee, state_guard, out, statement);
        }

        self.dropped(&scrutinee, &m.expr);
        out.extend(head);
        if scrutinee.exits {
            out.push(Node::Maybe);
        }

        let taint = scrutinee.taint_or_together(&m.expr);
        let mut value = Value { sources: scrutinee.sources, ..Value::default() };
        let depth = self.control.len();
        self.under();
        let mut arms = vec![];

        for a in &m.arms {
            self.open_scope();
            self.bind_view(&a.pat, &m.expr, &Kind::Tainted(taint.clone()), true);
            let mut nodes = vec![];
            if let Pat::Guard(g) = &a.pat {
                let guard = self.guard(&g.guard, true, &mut nodes);
                self.dropped(&guard, &g.guard);
            }

            value.and(self.branch_body(&a.body, &mut nodes, statement));
            self.close_scope();
            arms.push(nodes);
        }

        self.control.truncate(depth);
        out.push(Node::Either(depth + 1, arms));
        value.taint = Some(taint);
        value
    }

    /// Analyzes the guard of an arm, which may bind names: `Some(a) if let Some(b) = a.next`. The map prints
    /// no guards (and so none of these names) if `on_state` is set, because state then decides between the
    /// arms.
    fn guard(&mut self, guard: &Expr, on_state: bool, out: &mut Vec<Node>) -> Value {
        let mut all = Value::default();
        for c in conjuncts(guard) {
            let Expr::Let(l) = c else {
                let value = self.expression(c, out);
                all.and(value);
                continue;
            };

            let before = out.len();
            let value = self.expression(&l.expr, out);
            let kind = match Self::is_clean(&value, &out[before..]) && !on_state {
                true => Kind::Known(Known {
                    sources: value.sources.clone(),
                    varies: value.varies.clone(),
                    alias: None,
                    unordered: None,
                }),
                false => Kind::Tainted(value.taint_or_together(&l)),
            };

            self.bind_view(&l.pat, &l.expr, &kind, true);
            all.and(value);
        }

        all
    }

    /// Returns how the map keeps a local that it matches once for each arm.
    fn kept_for_each_arm(&self, name: &Ident) -> Keeping {
        match self.find(name) {
            Some(id) if matches!(self.variable(id).kind, Kind::Known(_)) => self.kept(id),
            _ => Keeping::Moved,
        }
    }

    /// Taints a scrutinee that is moved when it is matched: the map would have to match it again for each arm.
    fn moves_for_each_arm(&self, e: &Expr, value: &mut Value) {
        let keeping = |name: &Ident| self.kept_for_each_arm(name);
        match peel(e) {
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.moves_by(e, value, &keeping)),
            e => self.moves_by(e, value, &keeping),
        }
    }

    fn match_on_message(
        &mut self,
        m: &ExprMatch,
        scrutinee: Value,
        state_guard: bool,
        out: &mut Vec<Node>,
        statement: bool,
    ) -> Value {
        let site = Site::of(m);
        let depth = self.control.len();
        if state_guard {
            self.under();
        }

        let mut value = Value {
            sources: scrutinee.sources.clone(),
            varies: scrutinee.varies.clone(),
            ..Value::default()
        };

        let mut guards = Value::default();
        let mut arms = vec![];
        self.conditions.push(scrutinee.sources.clone());
        for a in &m.arms {
            self.open_scope();
            let known = Known {
                sources: scrutinee.sources.clone(),
                varies: scrutinee.varies.clone(),
                alias: None,
                unordered: None,
            };
            self.bind_view(&a.pat, &m.expr, &Kind::Known(known), true);
            let mut nodes = vec![];
            let mut pattern = a.pat.to_token_stream();

            if let Pat::Guard(g) = &a.pat {
                let guard = self.guard(&g.guard, state_guard, &mut nodes);
                self.dropped(&guard, &g.guard);
                if guard.taint.is_some() || !is_pure(&nodes) {
                    self.undecide(site);
                    pattern = g.pat.to_token_stream();
                } else if state_guard {
                    // the map visits the arm in any case
                    nodes.clear();
                    pattern = g.pat.to_token_stream();
                } else {
                    nodes.clear();
                    let (p, condition) = (g.pat.to_token_stream(), self.printed(&g.guard));
                    self.conditions.iter_mut().last().into_iter().for_each(|c| c.and(&guard.sources));
                    pattern = quote!(#p if #condition);
                    guards.and(guard);
                }
            }

            value.and(self.branch_body(&a.body, &mut nodes, statement));
            self.close_scope();
            arms.push((pattern, nodes));
        }

        self.conditions.pop();
        self.control.truncate(depth);
        value.sources.and(&guards.sources);
        let mut all = scrutinee;
        all.and(guards);
        let scrutinee = match state_guard {
            // the map matches the scrutinee once for each arm, and each match may move it
            true => self.printed_keeping(&m.expr, Use::Matched, &|name| self.kept_for_each_arm(name)),
            false => self.printed_matched(&m.expr),
        };

        if state_guard {
            value.taint = Some(Self::together(&m.expr));
            let arms = arms.into_iter().map(|(p, n)| (p, vec![Node::Either(depth + 1, vec![n])])).collect();
            out.push(Node::Arms { scrutinee, value: all, arms });
        } else {
            out.push(Node::Match { scrutinee, value: all, arms });
        }

        value
    }
}
