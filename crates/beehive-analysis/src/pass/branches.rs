//! Analyzes `if` in all its forms, lazy operators and blocks.
//!
//! A condition is split into its operands. Operands before the first state-dependent one remain conditions in
//! the map; from that one on, the map visits all sides. For `pure && state` the pure operand stays as a guard
//! around the branches. For `pure || state` it becomes a flag: where the flag is true, the map takes the same
//! side as the handler, so an exit is certain there.

use super::Pass;
use super::locals::scope::{Kind, Known};
use crate::emit::leave::{Certain, Control, way_out};
use crate::faults::Fault;
use crate::node::{Node, accumulate, is_pure};
use crate::syntax::{conjuncts, disjuncts, peel};
use crate::value::{Sources, Taint, Value};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned;
use syn::{Expr, ExprIf};

/// A run of consecutive operands of a condition, all pure or one that depends on state.
enum Segment {
    Pure(Vec<TokenStream>, Box<Value>),
    State(Vec<Node>),
}

impl Pass<'_, '_> {
    /// Analyzes control flow as a statement or as a value. The nodes of a statement always go to `out`; those
    /// of a value only if they do more than compute it.
    pub(super) fn control_flow(&mut self, e: &Expr, out: &mut Vec<Node>, statement: bool) -> Value {
        let mut nodes = vec![];
        self.computing += usize::from(!statement);
        let mut value = match e {
            Expr::If(i) => self.if_(i, &mut nodes, statement),
            Expr::Match(m) => self.match_(m, &mut nodes, statement),
            Expr::Block(b) => self.labeled_block(b, &mut nodes, statement),
            Expr::Unsafe(u) => self.unsafe_block(u, &mut nodes),
            Expr::ForLoop(f) => self.for_(f, &mut nodes),
            Expr::While(w) => self.while_(w, &mut nodes),
            Expr::Loop(l) => self.loop_(l, &mut nodes),
            _ => Value::default(),
        };
        self.computing -= usize::from(!statement);

        if statement {
            out.extend(nodes);
            return value;
        }

        if is_pure(&nodes) {
            accumulate(&nodes, &mut value);
        } else {
            out.extend(nodes);
            value.taint.get_or_insert_with(|| Self::together(e));
        }

        value
    }

    fn if_(&mut self, i: &ExprIf, out: &mut Vec<Node>, statement: bool) -> Value {
        let alternatives = disjuncts(&i.cond);
        if alternatives.len() > 1
            && let Some(value) = self.if_or(i, &alternatives, out, statement)
        {
            return value;
        }

        let depth = self.control.len();
        self.open_scope();
        let (segments, why) = self.condition(&i.cond);
        let mut sources = Sources::default();
        for s in &segments {
            if let Segment::Pure(_, value) = s {
                sources.and(&value.sources)
            }
        }

        self.conditions.push(sources);
        let (then, mut value) = self.block(&i.then_branch, statement);
        self.close_scope();
        let (otherwise, other_value) = self.otherwise(i, statement);

        self.conditions.pop();
        self.control.truncate(depth);
        value.and(other_value);
        let Some(taint) = why else {
            let (mut tokens, mut condition) = (vec![], Value::default());
            for s in segments {
                if let Segment::Pure(t, v) = s {
                    tokens.extend(t);
                    condition.and(*v);
                }
            }

            value.sources.and(&condition.sources);
            value.varies.extend(condition.varies.iter().copied());
            out.push(Node::Condition { condition: quote!(#(#tokens)&&*), value: condition, then, otherwise });
            return value;
        };

        // builds from the inside out: operands before the first one on state become a certain guard
        let first = segments.iter().position(|s| matches!(s, Segment::State(_)));
        let mut body = then;

        for (at, s) in segments.into_iter().enumerate().rev() {
            body = match s {
                Segment::State(mut nodes) if Some(at) == first => {
                    nodes.push(Node::Either(depth + 1, vec![body]));
                    nodes
                }
                Segment::State(mut nodes) => {
                    nodes.extend(body);
                    nodes
                }
                Segment::Pure(tokens, value) => {
                    vec![Node::Condition {
                        condition: quote!(#(#tokens)&&*),
                        value: *value,
                        then: body,
                        otherwise: vec![],
                    }]
                }
            };
        }

        out.extend(body);
        if !otherwise.is_empty() {
            out.push(Node::Either(depth + 1, vec![otherwise]));
        }

        value.taint = Some(taint);
        value
    }

    /// Analyzes the operands of a chain of `&&`. Everything after the first state-dependent operand is analyzed as code
    /// under that condition.
    fn condition(&mut self, condition: &Expr) -> (Vec<Segment>, Option<Taint>) {
        let mut segments: Vec<Segment> = vec![];
        let mut why: Option<Taint> = None;
        for c in conjuncts(condition) {
            let mut nodes = vec![];
            let operand = match c {
                Expr::Let(l) => &*l.expr,
                c => c,
            };

            let mut value = self.expression(operand, &mut nodes);
            if matches!(c, Expr::Let(_)) {
                self.moves(operand, &mut value);
            }
            let kind = if Self::is_clean(&value, &nodes) {
                let kind = Kind::Known(Known {
                    sources: value.sources.clone(),
                    varies: value.varies.clone(),
                    alias: None,
                    unordered: None,
                });

                let tokens = self.printed(c);
                match segments.last_mut() {
                    Some(Segment::Pure(all, v)) => {
                        all.push(tokens);
                        v.and(value);
                    }
                    _ => segments.push(Segment::Pure(vec![tokens], Box::new(value))),
                }

                kind
            } else {
                self.dropped(&value, &c);
                let taint = value.taint_or_together(&c);
                segments.push(Segment::State(nodes));
                if why.is_none() {
                    self.under();
                    why = Some(taint.clone());
                }

                Kind::Tainted(taint)
            };

            if let Expr::Let(l) = c {
                self.bind_view(&l.pat, &l.expr, &kind, true);
            }
        }

        (segments, why)
    }

    fn otherwise(&mut self, i: &ExprIf, statement: bool) -> (Vec<Node>, Value) {
        let mut nodes = vec![];
        let value = match &i.else_branch {
            None => Value::default(),
            Some((_, e)) if statement => {
                self.statement(e, &mut nodes);
                Value::default()
            }
            Some((_, e)) => self.expression(e, &mut nodes),
        };

        if self.unit.faults.has(Fault::ElseBranchLost) {
            nodes.clear();
        }

        (nodes, value)
    }

    /// Analyzes `if pure || state { .. }`. Returns `None` if the first operand depends on state, or if none
    /// does.
    fn if_or(
        &mut self,
        i: &ExprIf,
        operands: &[&Expr],
        out: &mut Vec<Node>,
        statement: bool,
    ) -> Option<Value> {
        let depth = self.control.len();
        let (mut tokens, mut pure) = (vec![], Value::default());
        let mut operands = operands.iter();
        let (mut state, taint) = loop {
            let operand = operands.next()?;
            let mut nodes = vec![];
            let value = self.expression(operand, &mut nodes);

            if Self::is_clean(&value, &nodes) {
                tokens.push(self.printed(operand));
                pure.and(value);
            } else if tokens.is_empty() {
                return None;
            } else {
                self.dropped(&value, &operand);
                break (nodes, value.taint_or_together(&operand));
            }
        };

        // whether these are evaluated depends on the state operand before them
        self.under();
        let mut later = vec![];
        for operand in operands {
            let value = self.expression(operand, &mut later);
            self.dropped(&value, &operand);
        }

        self.control.pop();
        if !is_pure(&later) {
            state.push(Node::Either(depth + 1, vec![later]));
        }

        self.flags += 1;
        let flag = format_ident!("__certain{}", self.flags, span = Span::mixed_site());
        let left = format_ident!("__left{}", self.flags, span = Span::mixed_site());
        let leave = way_out(&self.control, self.unit.faults);
        let certain = Some(Certain { flag: flag.clone(), left: left.clone() });
        self.control.push(Control { certain, stop: false });
        let (then, mut value) = self.block(&i.then_branch, statement);
        self.control.pop();
        self.under();

        let (otherwise, other_value) = self.otherwise(i, statement);
        self.control.pop();
        value.and(other_value);
        value.taint = Some(taint);
        out.push(Node::OrElse {
            flag,
            left,
            leave,
            condition: quote!(#(#tokens)||*),
            value: pure,
            state,
            then: Box::new(Node::Either(depth + 1, vec![then])),
            otherwise: Box::new(Node::Either(depth + 1, vec![otherwise])),
        });

        Some(value)
    }

    /// Analyzes `left && right` and `left || right` as values.
    pub(super) fn lazy(&mut self, b: &syn::ExprBinary, out: &mut Vec<Node>) -> Value {
        let mut left_nodes = vec![];
        let mut value = self.expression(&b.left, &mut left_nodes);
        let left_clean = Self::is_clean(&value, &left_nodes);
        let mut right_nodes = vec![];
        if !left_clean {
            // whether the right side is evaluated depends on state
            self.under();
        }

        let right = self.expression(&b.right, &mut right_nodes);
        if !left_clean {
            self.control.pop();
        }

        out.extend(left_nodes);
        if !left_clean {
            out.push(Node::Either(self.control.len() + 1, vec![right_nodes]));
        } else if !right_nodes.is_empty() {
            let left = self.printed(&b.left);
            let condition = match b.op {
                syn::BinOp::Or(_) => quote!(!(#left)),
                _ => quote!((#left)),
            };

            let guard = Value { taint: None, ..value.clone() };
            out.push(Node::Condition { condition, value: guard, then: right_nodes, otherwise: vec![] });
        }

        value.and(right);
        value
    }

    fn labeled_block(&mut self, b: &syn::ExprBlock, out: &mut Vec<Node>, statement: bool) -> Value {
        let site = crate::value::Site::of(b);
        // the map visits the whole attempt, and a `?` in it leaves the attempt, not the function
        let attempt = crate::rewrite::attempts::is_label(b.label.as_ref());
        let undecided = self.is_undecided(site) || attempt;
        let depth = self.control.len();
        if undecided {
            self.under();
        }

        self.enter(site, b.label.as_ref(), false, depth);
        let (body, mut value) = self.block(&b.block, statement);
        value.and(self.leave());
        if undecided {
            value.taint.get_or_insert_with(|| Self::together(b));
        }
        if attempt {
            let yielded = crate::value::Why::Other("it is the result of an attempt");
            value = Value::tainted(yielded, b.label.span());
            // the value of the attempt may be the function's answer
            out.push(Node::Effect);
        }

        if undecided {
            self.control.pop();
            out.push(Node::Either(depth + 1, vec![body]));
        } else {
            out.push(Node::Block { label: b.label.as_ref().map(|l| l.to_token_stream()), body });
        }

        value
    }

    /// Analyzes an unsafe block: its accesses count, but the value it computes is not trusted.
    fn unsafe_block(&mut self, u: &syn::ExprUnsafe, out: &mut Vec<Node>) -> Value {
        let taint = Taint::new(crate::value::Why::Other("it is computed in an unsafe block"), u.span());
        self.under();
        let (body, _) = self.block(&u.block, true);
        self.control.pop();
        out.push(Node::Effect);
        out.push(Node::Either(self.control.len() + 1, vec![body]));
        Value { taint: Some(taint), ..Value::default() }
    }

    pub(super) fn branch_body(&mut self, e: &Expr, out: &mut Vec<Node>, statement: bool) -> Value {
        match peel(e) {
            Expr::Block(b) if b.label.is_none() => {
                let (nodes, value) = self.block(&b.block, statement);
                out.extend(nodes);
                value
            }
            e if statement => {
                self.statement(e, out);
                Value::default()
            }
            e => self.expression(e, out),
        }
    }
}
