//! Analyzes loops and jumps.
//!
//! A loop over the message is a loop of the map. If state decides how the loop continues (a `break` under a
//! condition on state, or a loop condition that depends on state), the loop is *undecided*: locals assigned
//! in it are poisoned from its first iteration on, and the map visits the body for every iteration that the
//! message allows. If state even decides whether there are any iterations, the map visits the body once.
//! A function that would be refused for an undecided loop is analyzed again as [`super::stops`] describes.

use super::locals::scope::{Kind, Known};
use super::{Enclosing, Pass};
use crate::faults::Fault;
use crate::node::{Node, may_leave};
use crate::syntax::{conjuncts, is_endless, peel_references, self_field};
use crate::value::{Site, Sources, Value, Why};
use crate::words::plain_words;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Pat};

/// Error for a loop over a dictionary. A call to one of the dictionary's iterating methods is refused with the same
/// text, by the dictionary's type.
const ALL_CELLS: &str = "this needs all cells of a dictionary, and each may be owned by a different bee\n\
    note: to read all cells without changing them, use `self.dictionary.shared()`, a read-only view with `iter` and `keys`; reading it joins no bees\n\
    note: to have one bee own all cells, use `self.dictionary.whole()`, which has `iter` and `keys`\n\
    note: to process each cell on the bee that owns it, write a handler that runs once for every cell: `#[rcv(each = dictionary)]`, or `#[every(\"10s\", each = dictionary)]`\n\
    note: data that belongs together can be stored in the rows of one cell of a `Table`: `self.table.at(key).iter()`";

const ONLY_STATE_ENDS: &str = "only state ends this loop, so the map would never end\n\
    help: bound the loop by the message, for example with `.take(n)`";

impl Pass<'_, '_> {
    /// Handles a loop that only state ends: as the loop of a search it cannot be followed, so its control flow is undecided;
    /// otherwise it is an error.
    fn ends_by_state_only(&mut self, site: Site, at: Span) {
        match self.is_stopped(site) {
            true => self.undecide(site),
            false => self.error_at(at, ONLY_STATE_ENDS),
        }
    }

    /// Checks whether a loop in the map can end other than by its condition. A closure's body is printed unchanged, so
    /// a `return` in it also ends the loop in the map.
    fn may_end(&self, body: &[Node]) -> bool {
        self.closures > 0 || may_leave(body)
    }

    pub(super) fn is_undecided(&self, site: Site) -> bool {
        self.facts.undecided.contains(&site)
    }

    pub(super) fn undecide(&mut self, site: Site) {
        if !self.is_undecided(site) {
            self.learned.undecided.insert(site);
        }
    }

    /// Enters a loop or a labeled block. `depth` is the number of conditions on state around it.
    pub(super) fn enter(&mut self, site: Site, label: Option<&syn::Label>, is_loop: bool, depth: usize) {
        let label = label.map(|l| l.name.ident.to_string());
        self.enclosing.push(Enclosing {
            site,
            label,
            depth,
            is_loop,
            is_value: self.computing > 0,
            yields: Value::default(),
            decided_by: Sources::default(),
            conditions: self.conditions.len(),
        });
    }

    /// Records that the number of iterations of the innermost loop depends on these sources.
    fn decided_by(&mut self, sources: &Sources) {
        if let Some(innermost) = self.enclosing.last_mut() {
            innermost.decided_by.and(sources)
        }
    }

    /// Leaves a loop or a labeled block. Returns the merged properties of the values given by `break`.
    pub(super) fn leave(&mut self) -> Value {
        let Some(left) = self.enclosing.pop() else { return Value::default() };

        // only the locals that change in the loop need the sources
        let mut varying = self.facts.varying.values().chain(self.learned.varying.values());
        if varying.any(|loops| loops.contains(&left.site)) {
            let facts = [&self.facts.decided_by, &self.learned.decided_by];
            if !facts.iter().any(|known| known.get(&left.site).is_some_and(|k| k.covers(&left.decided_by))) {
                self.learned.decided_by.entry(left.site).or_default().and(&left.decided_by);
            }
        }
        left.yields
    }

    fn target(&self, label: Option<&syn::Lifetime>) -> Option<usize> {
        self.enclosing.iter().rposition(|l| match label {
            Some(x) => l.label.as_deref() == Some(&x.ident.to_string()),
            None => l.is_loop,
        })
    }

    /// Analyzes `break` with or without a value.
    pub(super) fn break_(&mut self, b: &syn::ExprBreak, out: &mut Vec<Node>) -> Value {
        let mut value = Value::default();
        if let Some(x) = &b.expr {
            let target = self.target(b.label.as_ref()).filter(|_| self.closures == 0);
            if target.is_none_or(|l| !self.enclosing[l].is_value) {
                // the value may be the function's answer
                out.push(Node::Effect)
            }

            value = self.expression(x, out);
            if let Some(target) = target {
                self.enclosing[target].yields.and(value.clone());
                if !self.enclosing[target].is_value && (value.exits || !value.changes.is_empty()) {
                    self.dropped(&value, &x)
                }
            }
        }

        let label = &b.label;
        let jump = self.jump(b.label.as_ref(), quote!(break #label), b, true, out);
        value.and(jump);
        value
    }

    /// Marks all enclosing loops and blocks as undecided: the handler may leave any of them at a point where the map
    /// does not.
    pub(super) fn undecide_all(&mut self) {
        if self.closures == 0 {
            self.undecide_from(0);
        }
    }

    fn undecide_from(&mut self, index: usize) {
        for site in self.enclosing.iter().skip(index).map(|l| l.site).collect::<Vec<_>>() {
            self.undecide(site);
        }
    }

    /// Analyzes `break` or `continue`. The value of a certain jump is not tainted, so that an expression
    /// around it may be printed unchanged. `printed` is the jump without the value that it may carry.
    pub(super) fn jump(
        &mut self,
        label: Option<&syn::Lifetime>,
        printed: TokenStream,
        e: &impl Spanned,
        is_break: bool,
        out: &mut Vec<Node>,
    ) -> Value {
        if self.closures > 0 {
            return Value::default();
        }

        let Some(target) = self.target(label) else { return Value::default() };

        let certain = self.enclosing.get(target).is_some_and(|l| self.control.len() <= l.depth);
        if certain || self.unit.faults.has(Fault::JumpsUnderStateIgnored) {
            for l in self.enclosing.iter_mut().skip(target) {
                let between = self.conditions.iter().skip(l.conditions);
                between.for_each(|sources| l.decided_by.and(sources));
            }
            out.push(Node::Jump(printed));
            return Value { exits: true, jumps: true, ..Value::default() };
        }

        let tokens = if self.stops_from(target, is_break) {
            // if the handler is certain to be here, the map leaves as much
            crate::emit::leave::way_out(&self.control, self.unit.faults)
        } else {
            self.undecide_from(target);
            crate::emit::leave::leave_branch(&self.control, self.unit.faults)
        };
        out.push(Node::Exit { quiet: true, certain: false, ends: self.ends_stop(), tokens });
        Value { taint: Some(Self::together(e)), ..Value::default() }
    }

    pub(super) fn for_(&mut self, f: &syn::ExprForLoop, out: &mut Vec<Node>) -> Value {
        let mut head = vec![];
        let mut value = match self_field(peel_references(&f.expr)) {
            Some(field) => {
                self.error(&f.expr, ALL_CELLS);
                head.push(Node::Effect);
                Value::tainted(Why::Refused, field.span())
            }
            None => {
                let mut value = self.lent(&f.expr, &mut head);
                self.moves(&f.expr, &mut value);
                self.visits_itself(&f.expr, &mut value);
                Self::decide(&mut value);
                value
            }
        };

        let site = Site::of(f);
        if Self::is_clean(&value, &head) {
            let changes = Value { changes: value.changes.clone(), ..Value::default() };
            let stops = self.stopping(site, &f.expr, out, |this, out| {
                this.for_loop(site, f.label.as_ref(), &f.pat, &f.expr, value, &f.body, out);
                Value::default()
            });
            if stops.taint.is_some() {
                // the handler may stop partway, so the remaining state of the iterator is unknown
                self.dropped(&changes, &f.expr);
            }
            return Value::default();
        }

        self.drawn_from(&f.expr, &mut value);
        self.dropped(&value, &f.expr);
        out.extend(head);
        let taint = value.taint_or_together(&f.expr);
        self.open_scope();
        let depth = self.control.len();

        self.under();
        self.enter(site, f.label.as_ref(), true, depth);
        self.bind_view(&f.pat, &f.expr, &Kind::Tainted(taint), false);
        let (body, _) = self.block(&f.body, true);
        self.leave();
        self.control.pop();

        self.close_scope();
        out.push(Node::Either(depth + 1, vec![body]));
        Value::default()
    }

    /// Handles a loop that advances another iterator: after `let rest = it.by_ref();`, a loop over `rest`
    /// advances `it`.
    fn drawn_from(&mut self, over: &Expr, value: &mut Value) {
        for id in self.handed_views(over) {
            self.changed(id, value, over.span())
        }
    }

    /// Analyzes a loop over a function of the message.
    #[allow(clippy::too_many_arguments)]
    fn for_loop(
        &mut self,
        site: Site,
        label: Option<&syn::Label>,
        pattern: &Pat,
        over: &Expr,
        mut value: Value,
        body: &Block,
        out: &mut Vec<Node>,
    ) {
        self.drawn_from(over, &mut value);
        let iterator = self.printed_owned(over);
        let words = format!("for {} in {}", plain_words(pattern.to_token_stream()), self.words(over));
        let undecided = self.is_undecided(site);

        if undecided {
            // the handler may stop partway, so the remaining state of the iterator is unknown
            self.dropped(&value, &over);
        }

        self.open_scope();
        let depth = self.control.len();
        if undecided {
            self.under();
        }

        let mut varies = value.varies.clone();
        varies.insert(site);
        let known =
            Kind::Known(Known { sources: value.sources.clone(), varies, alias: None, unordered: None });

        // declares the bindings before entering the loop, so that changes to them count as varying in this
        // loop
        self.bind_view(pattern, over, &known, false);
        self.enter(site, label, true, depth);
        self.decided_by(&value.sources);
        let errors = self.errors.len();
        let (mut nodes, _) = self.block(body, true);
        self.leave();
        if self.errors.len() == errors {
            if !undecided && self.is_stopped(site) {
                if is_endless(over, true) && !self.may_end(&nodes) {
                    self.undecide(site)
                }
            } else if self.never_ends(over, undecided, &nodes) {
                self.error(over, ONLY_STATE_ENDS)
            }
        }

        if undecided {
            self.control.pop();
        }

        self.close_scope();
        if self.unit.faults.has(Fault::LoopBodyLost) {
            nodes.clear();
        }

        let body = if undecided { vec![Node::Either(depth + 1, vec![nodes])] } else { nodes };
        let label = label.map(|l| l.to_token_stream());
        out.push(Node::For { label, pattern: pattern.to_token_stream(), iterator, words, value, body });
    }

    /// Checks whether the map of a loop may not end although the handler's loop does, or whether neither of them ends.
    fn never_ends(&self, over: &Expr, undecided: bool, body: &[Node]) -> bool {
        match undecided {
            true if self.unit.faults.has(Fault::EndlessLoopsAreAllowed) => false,
            true => is_endless(over, true),
            false => is_endless(over, false) && !self.may_end(body),
        }
    }

    /// Analyzes `iterator.for_each(|x| body)` as a loop. Returns `false` if the call cannot be treated as a loop.
    pub(super) fn for_each(&mut self, c: &syn::ExprMethodCall, out: &mut Vec<Node>) -> bool {
        let (Some(Expr::Closure(closure)), 1) = (c.args.first(), c.args.len()) else { return false };
        let (Some(pattern), 1) = (closure.inputs.first(), closure.inputs.len()) else { return false };

        struct HasReturn(bool);

        impl<'ast> Visit<'ast> for HasReturn {
            fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
                self.0 = true
            }
            fn visit_expr_try(&mut self, _: &'ast syn::ExprTry) {
                self.0 = true
            }
        }

        let mut found = HasReturn(false);
        found.visit_expr(&closure.body);
        if found.0 || closure.asyncness.is_some() || self_field(&c.receiver).is_some() {
            return false;
        }

        let mut head = vec![];
        let mut value = self.expression(&c.receiver, &mut head);
        self.moves(&c.receiver, &mut value);
        if !Self::is_clean(&value, &head) {
            return false;
        }

        let body = self.unit.arena.body(closure);
        self.for_loop(Site::of(c), None, pattern, &c.receiver, value, &body, out);
        true
    }

    pub(super) fn while_(&mut self, w: &syn::ExprWhile, out: &mut Vec<Node>) -> Value {
        self.stopping(Site::of(w), &w.cond, out, |this, out| this.while_loop(w, out));
        Value::default()
    }

    fn while_loop(&mut self, w: &syn::ExprWhile, out: &mut Vec<Node>) -> Value {
        let site = Site::of(w);
        let mut undecided = self.is_undecided(site);
        self.open_scope();
        let depth = self.control.len();

        // the condition is evaluated in every iteration, so it is part of the loop
        self.enter(site, w.label.as_ref(), true, depth);
        // prints the condition before its patterns bind names, which may shadow the locals they destructure
        let printed = self.printed(&w.cond);
        let (mut all, mut first, mut later) = (Value::default(), vec![], vec![]);

        for c in conjuncts(&w.cond) {
            let operand = match c {
                Expr::Let(l) => &*l.expr,
                c => c,
            };

            let mut head = vec![];
            let mut value = self.expression(operand, &mut head);
            if matches!(c, Expr::Let(_)) {
                self.moves(operand, &mut value);
            }
            let clean = Self::is_clean(&value, &head);

            if undecided || !clean {
                // the handler evaluates the condition in every iteration, the map only once
                let mut all = value.clone();
                crate::node::accumulate(&head, &mut all);
                self.dropped(&Value { jumps: false, ..all }, &c);
            }

            // the operands after a state-dependent one are evaluated only if that operand is true
            let under = self.control.len() > depth;
            if under { &mut later } else { &mut first }.extend(head);

            if !clean {
                self.undecide(site);
                undecided = true;
                if !under {
                    self.under();
                }
            }

            if undecided {
                self.dropped(&value, &c);
            }

            if let Expr::Let(l) = c {
                let kind = if undecided {
                    Kind::Tainted(value.taint_or_together(&c))
                } else {
                    let mut varies = value.varies.clone();
                    varies.insert(site);
                    Kind::Known(Known {
                        sources: value.sources.clone(),
                        varies,
                        alias: None,
                        unordered: None,
                    })
                };

                self.bind_view(&l.pat, &l.expr, &kind, true);
            }

            all.and(value);
        }

        if undecided && self.control.len() == depth {
            self.under();
        }

        self.decided_by(&all.sources);
        let errors = self.errors.len();
        let (mut body, _) = self.block(&w.body, true);
        self.leave();
        if self.unit.faults.has(Fault::LoopBodyLost) {
            body.clear();
        }

        if undecided {
            self.control.pop();
            for (nodes, conditional) in [(&mut first, false), (&mut later, true)] {
                nodes.retain(|n| !crate::node::is_pure(std::slice::from_ref(n)));
                match conditional {
                    false => out.append(nodes),
                    true => out.push(Node::Either(depth + 1, vec![std::mem::take(nodes)])),
                }
            }

            out.push(Node::Either(depth + 1, vec![body]));
        } else {
            let always = matches!(&*w.cond, Expr::Lit(l) if matches!(&l.lit, syn::Lit::Bool(b) if b.value));
            if always && !self.may_end(&body) && self.errors.len() == errors {
                self.ends_by_state_only(site, w.while_token.span())
            }
            let label = w.label.as_ref().map(|l| l.to_token_stream());
            out.push(Node::While { label, condition: printed, value: all, body });
        }

        self.close_scope();
        Value::default()
    }

    pub(super) fn loop_(&mut self, l: &syn::ExprLoop, out: &mut Vec<Node>) -> Value {
        self.stopping(Site::of(l), &l.loop_token, out, |this, out| this.endless_loop(l, out))
    }

    fn endless_loop(&mut self, l: &syn::ExprLoop, out: &mut Vec<Node>) -> Value {
        let site = Site::of(l);
        let undecided = self.is_undecided(site);
        let depth = self.control.len();
        if undecided {
            self.under();
        }

        self.enter(site, l.label.as_ref(), true, depth);
        let errors = self.errors.len();
        let (body, _) = self.block(&l.body, true);
        let mut value = self.leave();
        if !undecided && !self.may_end(&body) && self.errors.len() == errors {
            self.ends_by_state_only(site, l.loop_token.span())
        }

        if undecided {
            self.control.pop();
            value.taint.get_or_insert_with(|| Self::together(l));
            out.push(Node::Either(depth + 1, vec![body]));
        } else {
            out.push(Node::Loop { label: l.label.as_ref().map(|l| l.to_token_stream()), body });
        }

        value
    }
}
