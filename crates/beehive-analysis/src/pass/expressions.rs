//! Analyzes expressions: determines the origin of each value, and refuses syntax that the analysis does not support.

use super::Pass;
use super::locals::scope::Kind;
use crate::errors::diagnostics::{ESCAPE, SYNCHRONOUS};
use crate::faults::Fault;
use crate::known::{Callee, callee_of, is_upper};
use crate::node::Node;
use crate::syntax::{
    find_name, is_quiet, is_self, last_name, names, path_in_words, peel, peel_references, single_name,
};
use crate::value::{Taint, Value, VariableId, Why};
use proc_macro2::Ident;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, Member};

impl Pass<'_, '_> {
    pub(super) fn all<'e>(&mut self, es: impl Iterator<Item = &'e Expr>, out: &mut Vec<Node>) -> Value {
        let mut value = Value::default();
        let open = std::mem::take(&mut self.order_open);
        for e in es {
            self.order_open = open;
            let next = self.expression(e, out);
            value.and(next);
        }
        value
    }

    pub(super) fn expression(&mut self, e: &Expr, out: &mut Vec<Node>) -> Value {
        // the tail of a block inside a larger expression is not the function's return value
        let tail = std::mem::take(&mut self.tail);
        let open = std::mem::take(&mut self.order_open);
        self.order_open = open && passes_order_on(e);
        let mut value = self.value(e, out);
        self.moves_operands(e, &mut value);
        self.order_open = false;
        if !open {
            Self::decide(&mut value);
        }

        self.tail = tail;
        value
    }

    fn value(&mut self, e: &Expr, out: &mut Vec<Node>) -> Value {
        match e {
            Expr::Lit(_) | Expr::Const(_) | Expr::Infer(_) => Value::default(),
            Expr::Paren(p) => self.expression(&p.expr, out),
            Expr::Group(p) => self.expression(&p.expr, out),
            Expr::Path(p) => self.path(p, out),
            Expr::Field(f) => self.field(f, out),
            Expr::MethodCall(c) => self.method_call(c, out),
            Expr::Call(c) => self.call(c, out),
            Expr::Macro(m) => self.macro_call(&m.mac, out, false),
            Expr::Binary(b) => self.binary(b, out),
            Expr::Assign(a) => self.assign(&a.left, &a.right, false, out),
            Expr::Unary(u) => {
                let mut value = self.expression(&u.expr, out);
                value.panics |= matches!(u.op, syn::UnOp::Neg(_)) && !matches!(peel(&u.expr), Expr::Lit(_));
                value
            }
            Expr::Cast(c) => self.expression(&c.expr, out),
            Expr::Reference(r) => self.expression(&r.expr, out),
            Expr::Tuple(t) => self.all(t.elems.iter(), out),
            Expr::Array(t) => self.all(t.elems.iter(), out),
            Expr::Repeat(r) => {
                let mut value = self.expression(&r.expr, out);
                let length = self.expression(&r.len, out);
                value.and(length);
                value
            }
            Expr::Struct(s) => {
                let fields = || s.fields.iter().map(|f| &f.expr).chain(s.rest.as_deref());
                let mut value = self.all(fields(), out);
                self.changed_by_destructor(&s.path, fields(), &mut value);
                value
            }
            Expr::Index(i) => {
                let mut value = match self.named_field(&i.expr) {
                    // the compiler refuses an index into a dictionary; a configuration may be indexed
                    Some(field) => {
                        out.push(Node::Effect);
                        Value::tainted(Why::Field(field.to_string()), field.span())
                    }
                    None => self.expression(&i.expr, out),
                };

                let index = self.expression(&i.index, out);
                value.and(index);
                value.panics = !self.unit.faults.has(Fault::PanicsEndTheMap);
                value
            }
            Expr::Range(r) => self.all(r.start.as_deref().into_iter().chain(r.end.as_deref()), out),
            Expr::Closure(c) => self.closure(c, false, out),
            Expr::Try(t) => {
                let mut value = self.expression(&t.expr, out);
                if self.closures == 0 {
                    if value.taint.is_some() {
                        out.push(Node::Maybe);
                    } else {
                        value.exits = true;
                    }
                }

                value
            }
            Expr::Return(r) => {
                if let Some(x) = &r.expr {
                    let value = self.expression(x, out);
                    self.dropped(&value, &x);
                }
                self.exit(is_quiet(r.expr.as_deref()), out);
                Value { exits: self.closures == 0, ..Value::default() }
            }
            Expr::Break(b) => self.break_(b, out),
            Expr::Continue(c) => self.jump(c.label.as_ref(), c.to_token_stream(), c, false, out),
            Expr::If(_)
            | Expr::Match(_)
            | Expr::Block(_)
            | Expr::Unsafe(_)
            | Expr::ForLoop(_)
            | Expr::While(_)
            | Expr::Loop(_) => self.control_flow(e, out, false),
            Expr::Let(l) => {
                let value = self.expression(&l.expr, out);
                self.bind_view(&l.pat, &l.expr, &Kind::Tainted(value.taint_or_together(&l)), true);
                Value { taint: Some(value.taint_or_together(&l)), ..value }
            }
            Expr::Await(_) | Expr::Async(_) => {
                self.error(e, SYNCHRONOUS);
                Value::tainted(Why::Refused, e.span())
            }
            other => {
                match find_name(other.to_token_stream(), "self") {
                    Some(span) => self.error_at(span, ESCAPE),
                    None => self.error(
                        other,
                        "Beehive does not know this syntax, so it cannot tell which cells are touched\nhelp: write it with `if`, `match`, loops and calls",
                    ),
                }

                out.push(Node::Effect);
                Value::tainted(Why::Refused, other.span())
            }
        }
    }

    fn path(&mut self, p: &syn::ExprPath, out: &mut Vec<Node>) -> Value {
        let Some(i) = single_name(&p.path) else { return self.function_value(p, out) };
        if i == "self" {
            self.error(p, ESCAPE);
            return Value::tainted(Why::Refused, i.span());
        }
        let Some(id) = self.find(i) else { return self.function_value(p, out) };
        if let Some(value) = self.read(id) {
            return value;
        }

        match self.variable(id).kind.clone() {
            Kind::Field(f) => {
                // the alias is used as a value, which is allowed only if the field is not a dictionary
                self.plain.push(Ident::new(&f.to_string(), i.span()));
                Value::tainted(Why::Field(f.to_string()), i.span())
            }
            _ => {
                out.push(Node::Effect);
                Value::tainted(Why::Context, i.span())
            }
        }
    }

    /// Analyzes a path that is not a local: a constant, or a function that may be called later with values from the
    /// message.
    fn function_value(&mut self, p: &syn::ExprPath, out: &mut Vec<Node>) -> Value {
        let last = crate::syntax::last_name(&p.path);
        if is_upper(&last) || self.trust > 0 {
            return Value::default();
        }

        let pure = match callee_of(p, &self.unit.trusted) {
            Callee::Pure => true,
            Callee::Own(name) => self.own_function_is_pure(&name),
            Callee::Unknown => false,
        };

        if pure {
            return Value::default();
        }

        out.push(Node::Effect);
        let why = match p.path.get_ident() {
            Some(name) => Why::Name(name.to_string(), self.similar(name)),
            None => Why::Call(path_in_words(&p.path)),
        };

        Value::tainted(why, p.span())
    }

    fn field(&mut self, f: &syn::ExprField, out: &mut Vec<Node>) -> Value {
        if is_self(peel_references(&f.base))
            && let Member::Named(name) = &f.member
        {
            self.plain.push(name.clone());
            out.push(Node::Effect);
            return Value::tainted(Why::Field(name.to_string()), name.span());
        }
        self.expression(&f.base, out)
    }

    fn binary(&mut self, b: &syn::ExprBinary, out: &mut Vec<Node>) -> Value {
        use syn::BinOp::*;

        match b.op {
            AddAssign(_) | SubAssign(_) | MulAssign(_) | DivAssign(_) | RemAssign(_) | BitXorAssign(_)
            | BitAndAssign(_) | BitOrAssign(_) | ShlAssign(_) | ShrAssign(_) => {
                let mut value = self.assign(&b.left, &b.right, true, out);
                value.panics |= !matches!(b.op, BitXorAssign(_) | BitAndAssign(_) | BitOrAssign(_));
                value
            }
            And(_) | Or(_) => self.lazy(b, out),
            _ => {
                let mut value = self.expression(&b.left, out);
                let right = self.expression(&b.right, out);
                value.and(right);
                value.panics |= match b.op {
                    // a division by a literal zero panics in every handler
                    Div(_) | Rem(_) => !self.is_constant(&b.right),
                    Add(_) | Sub(_) | Mul(_) | Shl(_) | Shr(_) => true,
                    _ => false,
                };

                value
            }
        }
    }

    /// Checks for a literal or a constant: division by it either always panics or never does.
    fn is_constant(&self, e: &Expr) -> bool {
        match peel(e) {
            Expr::Lit(_) => true,
            Expr::Path(p) => p.path.get_ident().is_none_or(|i| self.find(i).is_none()),
            Expr::Cast(c) => self.is_constant(&c.expr),
            _ => false,
        }
    }

    /// Analyzes an expression lent to a call or a loop, where the borrow `&mut local` ends with the call or the loop.
    /// The call or the loop records the changes made through the borrow, so the local does not become unknown.
    pub(super) fn lent(&mut self, e: &Expr, out: &mut Vec<Node>) -> Value {
        match peel(e) {
            Expr::Reference(r) if r.mutability.is_some() && self.place(&r.expr).is_some() => {
                self.unordered(&r.expr, out)
            }
            _ => self.unordered(e, out),
        }
    }

    fn assign(&mut self, left: &Expr, right: &Expr, compound: bool, out: &mut Vec<Node>) -> Value {
        let mut value = self.expression(right, out);
        if matches!(peel(left), Expr::Infer(_)) {
            return value;
        }

        if let Some(root) = self.root(left)
            && !matches!(self.variable(root).kind, Kind::Field(_))
        {
            let place = matches!(peel(left), Expr::Path(_));
            let of = self.expression(left, out);
            let tainted = of.taint.clone();
            // the map declares the local even if it is unknown from here on
            value.uses.extend(tainted.is_none().then_some(root));
            if compound || !place {
                // an index or a receiver that depends on state taints the assigned local
                value.and(of);
            }

            match place && !compound {
                // the assignment changes the view, not the local into which it was a view
                true => self.changed_itself(root, &mut value, left.span()),
                false => self.changed(root, &mut value, left.span()),
            }
            let views = self.views(right);
            self.stores(root, views);
            value.taint = tainted.or(value.taint).or_else(|| self.lost_before_its_value(root));
            return value;
        }

        if matches!(peel(left), Expr::Tuple(_) | Expr::Array(_) | Expr::Struct(_) | Expr::Call(_)) {
            // a destructuring assignment: every local it names may change
            let mut mentioned = vec![];
            names(left.to_token_stream(), &mut mentioned);
            let ids: Vec<_> = mentioned.iter().filter_map(|n| self.find_name(n)).collect();
            // if one of the locals is unknown, the map lacks that local and cannot assign the others together with it
            let unknown = ids.iter().find_map(|id| self.read(*id)?.taint);
            value.taint = value.taint.or(unknown);
            value.uses.extend(&ids);
            for id in &ids {
                self.changed(*id, &mut value, left.span());
            }
            value.taint = value.taint.or_else(|| ids.iter().find_map(|id| self.lost_before_its_value(*id)));
            if find_name(left.to_token_stream(), "self").is_none() {
                return value;
            }
        }

        let of = self.expression(left, out);
        let of_self = find_name(left.to_token_stream(), "self").is_some();
        value.and(of);

        // an assignment through the result of a call: `*max(&mut a, &mut b) = 1`
        if !of_self && !self.reaches_global(left) {
            for id in self.views(left) {
                self.changed(id, &mut value, left.span())
            }
            if value.taint.is_none() && !value.changes.is_empty() {
                return value;
            }
        }

        out.push(Node::Effect);
        value
    }

    /// Returns the taint of a local declared without a value. If state decides which assignment gives the local its
    /// value, the map would run all of these assignments, which the compiler does not allow.
    fn lost_before_its_value(&self, id: VariableId) -> Option<Taint> {
        self.read(id).filter(|_| self.variable(id).late)?.taint
    }
}

/// Checks whether an expression merely passes on the order of its parts. All other expressions need parts
/// whose order is known.
fn passes_order_on(e: &Expr) -> bool {
    match peel(e) {
        Expr::MethodCall(_) | Expr::Reference(_) | Expr::Tuple(_) | Expr::Array(_) | Expr::Struct(_) => true,
        Expr::Call(c) => matches!(peel(&c.func), Expr::Path(p) if is_upper(&last_name(&p.path))),
        _ => matches!(e, Expr::Paren(_) | Expr::Group(_)),
    }
}
