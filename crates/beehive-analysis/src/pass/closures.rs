//! Analyzes closures. The map does not know when or how often a closure runs, so a closure may not access state, and
//! the locals it assigns are poisoned unless the closure is a method argument.

use super::Pass;
use super::locals::scope::{Kind, Known};
use super::locals::views::EXCLUSIVE;
use crate::known::methods::keeps_sharing;
use crate::known::owns_its_result;
use crate::known::types::{is_frozen, mentions_mutable_views};
use crate::node::{Node, accumulate, is_pure, touches_state};
use crate::syntax::peel;
use crate::value::{Site, Sources, Taint, Value, Variables, Why};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, ExprClosure, ItemFn, Pat, ReturnType, Stmt};

/// Checks, by a closure's form, whether its result is an owned value.
pub(super) fn yields_values(closure: &ExprClosure) -> bool {
    if let ReturnType::Type(_, ty) = &closure.output {
        return is_frozen(ty) && !mentions_mutable_views(ty.to_token_stream());
    }

    let mut result = peel(&closure.body);
    while let Expr::Block(b) = result {
        match b.block.stmts.last() {
            Some(Stmt::Expr(e, None)) => result = peel(e),
            _ => return true,
        }
    }

    match result {
        Expr::Binary(_) | Expr::Lit(_) | Expr::Cast(_) | Expr::Assign(_) => true,
        Expr::MethodCall(c) => {
            let method = c.method.to_string();
            owns_its_result(&method) && !keeps_sharing(&method)
        }
        _ => false,
    }
}

impl Pass<'_, '_> {
    /// Analyzes a closure whose parameters are assumed to depend on the message. A closure is `direct` if it is an
    /// argument of a method: if the map runs the call, such a closure runs exactly as in the handler, so its changes to
    /// locals are changes made by the call.
    pub(super) fn closure(&mut self, c: &ExprClosure, direct: bool, out: &mut Vec<Node>) -> Value {
        let known = Kind::Known(Known { sources: Sources::message(), ..Known::default() });
        self.direct_closures += direct as usize;
        let diverged = std::mem::take(&mut self.diverged);
        let (nodes, mut value) = self.closure_body(c, &known);
        let of_state = touches_state(&nodes);
        value.panics |= std::mem::replace(&mut self.diverged, diverged);
        self.direct_closures -= direct as usize;
        if of_state {
            self.error(
                c,
                "state is accessed inside a closure, so Beehive cannot tell which keys it uses\n\
                 help: use a `for` loop, `if let` or `match` instead of a combinator",
            );
        }

        // includes the changes made by a closure with side effects
        accumulate(&nodes, &mut value);
        value.exits = false;
        value.jumps = false;
        if of_state {
            value.taint = Some(Taint::new(Why::Refused, c.span()));
        }
        if !is_pure(&nodes) {
            out.push(Node::Effect);
            value.taint.get_or_insert(Taint::new(Why::Other("its closure has side effects"), c.span()));
        }

        value
    }

    fn closure_body(&mut self, c: &ExprClosure, parameters: &Kind) -> (Vec<Node>, Value) {
        let ordered = std::mem::take(&mut self.scopes.ordered);
        self.open_scope();
        self.closures += 1;
        self.under();
        for p in &c.inputs {
            let mut views = self.scopes.views.clone();
            if let Pat::Type(t) = p
                && mentions_mutable_views(t.ty.to_token_stream())
            {
                views.insert(EXCLUSIVE);
            }
            let defines = self.bind_views(p, views, parameters, false);
            if ordered {
                self.ordered.extend(defines)
            }
        }

        let mut nodes = vec![];
        let value = self.expression(&c.body, &mut nodes);
        self.control.pop();
        self.closures -= 1;
        self.close_scope();

        (nodes, value)
    }

    /// Analyzes a function declared in the body. If it is a function of its arguments, its name denotes a known local.
    pub(super) fn nested_function(&mut self, f: &ItemFn) {
        let known = Kind::Known(Known { sources: Sources::message(), ..Known::default() });
        self.open_scope();
        self.closures += 1;
        self.under();
        for input in &f.sig.inputs {
            if let syn::FnArg::Typed(typed) = input {
                let exclusive = mentions_mutable_views(typed.ty.to_token_stream());
                let views = exclusive.then_some(EXCLUSIVE).into_iter().collect();
                self.bind_views(&typed.pat, views, &known, false);
            }
        }

        let mut nodes = vec![];
        let value = self.statements(&f.block.stmts, &mut nodes, false);
        self.control.pop();
        self.closures -= 1;
        self.close_scope();

        if Self::is_clean(&value, &nodes) && f.sig.asyncness.is_none() {
            let (name, kind) = (&f.sig.ident, Kind::Known(Known::default()));
            self.declare(&name.to_string(), Site::of(name), &kind, false, &mut Variables::new());
        }
    }

    /// Analyzes an argument of which the map needs only the accesses, not the value. If the argument is a closure, its
    /// parameters depend on state; `of` is the taint of the value on which the closure operates.
    pub(super) fn value_argument(&mut self, e: &Expr, of: Option<&Taint>, out: &mut Vec<Node>) -> Value {
        let Expr::Closure(c) = peel(e) else { return self.expression(e, out) };

        let view = || Taint::new(Why::Other("it is computed from state in a closure"), c.span());
        let taint = of.cloned().unwrap_or_else(view);
        let (nodes, value) = self.closure_body(c, &Kind::Tainted(taint));
        if touches_state(&nodes) {
            out.push(Node::Either(self.control.len() + 1, vec![nodes]));
        } else if !is_pure(&nodes) {
            out.push(Node::Effect);
        }

        Value { taint: value.taint, ..Value::default() }
    }
}
