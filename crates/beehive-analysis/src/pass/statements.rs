//! Analyzes statements: `let` in all its forms, items, and expressions whose value is discarded.

use super::Pass;
use super::closures::yields_values;
use super::locals::scope::{Kind, Known};
use crate::faults::Fault;
use crate::known::types::is_frozen;
use crate::known::{MacroKind, macro_kind};
use crate::node::{Node, is_pure, touches_state};
use crate::syntax::{
    discards, is_quiet, is_self, last_name, names, pattern_name, peel, peel_references, self_field,
};
use crate::value::{Taint, Value, Why};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Block, Expr, Item, Local, Member, Pat, Stmt};

impl Pass<'_, '_> {
    pub(super) fn block(&mut self, b: &Block, statement: bool) -> (Vec<Node>, Value) {
        self.open_scope();
        let mut out = vec![];
        let value = self.statements(&b.stmts, &mut out, statement);
        self.close_scope();
        (out, value)
    }

    /// Analyzes a block's statements. `statement` is set if the value of the last expression is not used.
    pub(super) fn statements(&mut self, statements: &[Stmt], out: &mut Vec<Node>, statement: bool) -> Value {
        let mut tail = Value::default();
        let returned = std::mem::take(&mut self.tail);
        for (i, s) in statements.iter().enumerate() {
            let at_end = i + 1 == statements.len();
            let last = at_end && !statement;
            self.tail = returned && at_end && !matches!(s, Stmt::Expr(_, Some(_)));
            let before = out.len();

            match s {
                Stmt::Local(l) => self.local(l, out),
                Stmt::Item(item) => self.item(item, out),
                Stmt::Expr(e, None) if last => tail = self.expression(e, out),
                Stmt::Expr(e, _) => self.statement(e, out),
                Stmt::Macro(m) => {
                    let last = last && m.semi_token.is_none();
                    if std::mem::take(&mut self.tail) && m.semi_token.is_none() {
                        out.push(Node::Effect);
                    }

                    if last {
                        tail = self.macro_call(&m.mac, out, false);
                    } else {
                        self.macro_statement(&m.mac, out);
                    }
                }
            }

            if self.computing == 0 && std::mem::take(&mut self.logged) {
                // the map omits the logging and adds its effect before the statement, so that the effect counts
                // whichever branch is taken
                out.insert(before, Node::Effect)
            }
        }

        self.tail = returned;
        tail
    }

    /// Analyzes a macro call whose value is not used. Its changes are kept: `pure!(keys.swap(0, 1));`.
    fn macro_statement(&mut self, m: &syn::Macro, out: &mut Vec<Node>) {
        let mut nodes = vec![];
        let value = self.macro_call(m, &mut nodes, true);
        let clean = Self::is_clean(&value, &nodes);
        out.extend(nodes);
        if !clean {
            self.dropped(&value, &m.path);
        } else if !value.changes.is_empty() {
            out.push(Node::Effect);
            out.push(Node::Pure { tokens: quote!(#m;), value });
        }
    }

    fn item(&mut self, item: &Item, out: &mut Vec<Node>) {
        match item {
            Item::Macro(m) => {
                let mut mentioned = vec![];
                names(m.mac.tokens.clone(), &mut mentioned);
                let uses_state = mentioned.iter().any(|n| n == "self" || self.is_field_alias(n));

                self.own_macros.extend(m.ident.as_ref().map(|name| name.to_string()));
                if m.mac.path.is_ident("macro_rules") && !uses_state {
                    out.push(Node::Item(m.to_token_stream()))
                } else {
                    self.error(
                        &m.mac.path,
                        "state is used inside a macro, which Beehive cannot see into\n\
                         help: write a method of this impl block instead",
                    );
                }
            }
            Item::Use(_) => {
                // the import may give a macro's name a different meaning
                names(item.to_token_stream(), &mut self.own_macros);
                out.push(Node::Item(item.to_token_stream()))
            }
            Item::Fn(f) => {
                self.nested_function(f);
                out.push(Node::Item(item.to_token_stream()))
            }
            // the map declares its own copy of the type, and no value of the handler has that type
            Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Trait(_) => {
                let name = match item {
                    Item::Struct(i) => &i.ident,
                    Item::Enum(i) => &i.ident,
                    Item::Union(i) => &i.ident,
                    Item::Trait(i) => &i.ident,
                    _ => return,
                };
                self.own_types.push(name.clone());
                let attributes = match item {
                    Item::Struct(i) => &i.attrs[..],
                    Item::Enum(i) => &i.attrs[..],
                    Item::Union(i) => &i.attrs[..],
                    _ => &[],
                };
                if !attributes.iter().any(derives_clone) {
                    self.uncloned_types.push(name.clone());
                }
                out.push(Node::Item(item.to_token_stream()))
            }
            Item::Impl(i) if self.is_own_type(&i.self_ty) => {
                if i.trait_.as_ref().is_some_and(|t| last_name(&t.0) == "Clone") {
                    let of = i.self_ty.to_token_stream().to_string();
                    self.uncloned_types.retain(|name| *name != of);
                }
                out.push(Node::Item(item.to_token_stream()))
            }
            // a trait of the function for any type, or a trait for a type made of one of the function's
            Item::Impl(i) if self.mentions_own_type(i) => out.push(Node::Item(item.to_token_stream())),
            Item::Const(_) | Item::Static(_) | Item::Type(_) => out.push(Node::Item(item.to_token_stream())),
            // if both are declared outside the function, a copy of the impl would conflict with the original
            _ => {}
        }
    }

    fn is_own_type(&self, ty: &syn::Type) -> bool {
        matches!(ty, syn::Type::Path(p) if p.path.segments.len() == 1
            && p.path.segments.first().is_some_and(|s| self.own_types.contains(&s.ident)))
    }

    fn mentions_own_type(&self, i: &syn::ItemImpl) -> bool {
        let mut mentioned = vec![];
        names(i.self_ty.to_token_stream(), &mut mentioned);
        i.trait_.iter().for_each(|(path, _)| names(path.to_token_stream(), &mut mentioned));
        self.own_types.iter().any(|of| mentioned.iter().any(|name| of == name))
    }

    pub(super) fn is_field_alias(&self, name: &str) -> bool {
        self.find_name(name).is_some_and(|id| matches!(self.variable(id).kind, Kind::Field(_)))
    }

    pub(super) fn statement(&mut self, e: &Expr, out: &mut Vec<Node>) {
        match peel(e) {
            Expr::If(_)
            | Expr::Match(_)
            | Expr::ForLoop(_)
            | Expr::While(_)
            | Expr::Loop(_)
            | Expr::Block(_)
            | Expr::Unsafe(_) => {
                self.control_flow(peel(e), out, true);
            }
            Expr::Return(r) => {
                if let Some(x) = &r.expr {
                    let value = self.expression(x, out);
                    self.dropped(&value, &x);
                }
                self.exit(is_quiet(r.expr.as_deref()), out);
            }
            Expr::MethodCall(c) if c.method == "for_each" && self.for_each(c, out) => {}
            Expr::Macro(m) if macro_kind(&m.mac.path) == MacroKind::Diverge => {
                self.macro_statement(&m.mac, out)
            }
            Expr::MethodCall(c) if self.only_emits(c) => self.logged = true,
            e @ (Expr::Break(_) | Expr::Continue(_)) => {
                self.expression(e, out);
            }
            e => {
                let mut nodes = vec![];
                let value = self.unordered(e, &mut nodes);
                if !Self::is_clean(&value, &nodes) {
                    self.dropped(&value, &e);
                    out.extend(nodes);
                    out.push(if value.exits { Node::Maybe } else { Node::Gap });
                    return;
                }

                // in a function without state, changes to locals are the only effects
                let within = (self.closures > 0 || self.is_free()) && !value.changes.is_empty();
                let discards = discards(e) && !within;
                if discards && self.computing > 0 && self.closures == 0 && !value.changes.is_empty() {
                    // the map repeats the change inside the value
                    self.logged = true
                } else if discards || (self.tail && !is_quiet(Some(e))) {
                    // the expression is called for its effect, or is the function's answer
                    out.push(Node::Effect);
                }

                if value.exits && value.changes.is_empty() && is_inferred(e) {
                    // the map lacks the code that determines the type
                    out.push(Node::Effect);
                    out.push(Node::Maybe);
                } else if value.exits || !value.changes.is_empty() || self.computing > 0 {
                    // the map repeats the expression inside the value, so it declares the locals mentioned in the
                    // expression
                    let tokens = self.printed(e);
                    out.push(Node::Pure { tokens: quote!(#tokens;), value });
                }
                self.sorted(e);
                self.called_for_its_effect(e);
            }
        }
    }

    /// Checks whether a call on the context, inside an expression that computes a value, can be left out of the
    /// map: `None => { ctx.emit(Unknown(msg.id)); return }`. Its arguments must touch no state and change nothing.
    fn only_emits(&mut self, c: &syn::ExprMethodCall) -> bool {
        let Expr::Path(p) = peel(&c.receiver) else { return false };
        if self.computing == 0
            || self.closures > 0
            || !p.path.get_ident().is_some_and(|i| self.is_envelope(i))
        {
            return false;
        }

        c.args.iter().all(|e| {
            let mut nodes = vec![];
            let value = self.expression(e, &mut nodes);
            !touches_state(&nodes) && is_pure(&nodes) && !value.exits && value.changes.is_empty()
        })
    }

    fn local(&mut self, l: &Local, out: &mut Vec<Node>) {
        let Some(init) = &l.init else {
            let defines = self.bind(&l.pat, &Kind::Known(Known::default()), false);
            defines.iter().for_each(|id| self.scopes.variables[*id].late = true);
            let pattern = &l.pat;
            out.push(Node::Let { tokens: quote!(let #pattern;), defines, value: Value::default() });
            return;
        };

        let pattern = match &l.pat {
            Pat::Type(t) => &*t.pat,
            p => p,
        };

        if self.names_fields(pattern, &init.expr) {
            return;
        }

        if let (Pat::Tuple(ps), Expr::Tuple(es), None) = (pattern, peel(&init.expr), &init.diverge)
            && ps.elems.len() == es.elems.len()
            && !ps.elems.iter().any(|p| matches!(p, Pat::Rest(_)))
        {
            if !matches!(l.pat, Pat::Type(_)) && are_apart(ps, es) {
                // binds the parts one by one, so that the map keeps only those that it needs
                for (p, e) in ps.elems.iter().zip(&es.elems) {
                    if !self.names_fields(p, e) {
                        self.ordinary_local(p, p, e, None, out)
                    }
                }
                return;
            }
            if self.tuple(ps, es, out) {
                return;
            }
        }

        let diverge = init.diverge.as_ref().map(|(_, diverge)| &**diverge);
        self.ordinary_local(&l.pat, pattern, &init.expr, diverge, out)
    }

    /// Recognizes aliases of fields: `let stats = &mut self.stats;` and
    /// `let Self { stats, matrix, .. } = self;`.
    fn names_fields(&mut self, pattern: &Pat, initial: &Expr) -> bool {
        if Self::is_field_name(pattern, initial)
            && let Some(f) = self_field(initial)
        {
            self.bind(pattern, &Kind::Field(f.clone()), false);
            return true;
        }

        let Pat::Struct(s) = pattern else { return false };
        if !is_self(peel_references(initial)) {
            return false;
        }

        for f in &s.fields {
            if let Member::Named(name) = &f.member {
                self.bind(&f.pat, &Kind::Field(name.clone()), false);
            }
        }

        true
    }

    fn is_field_name(pattern: &Pat, initial: &Expr) -> bool {
        matches!((pattern, peel(initial)), (Pat::Ident(_), Expr::Reference(_)))
            && self_field(initial).is_some()
    }

    /// Keeps the pure part of `let (a, b) = (pure, state);`. Returns `false`, without adding nodes, if all
    /// parts are pure.
    fn tuple(&mut self, patterns: &syn::PatTuple, values: &syn::ExprTuple, out: &mut Vec<Node>) -> bool {
        let parts: Vec<(Vec<Node>, Value)> = values
            .elems
            .iter()
            .zip(&patterns.elems)
            .map(|(e, p)| {
                let mut nodes = vec![];
                let value = match Self::is_field_name(p, e) {
                    true => Value { taint: Some(Self::together(e)), ..Value::default() },
                    false => {
                        let mut value = self.expression(e, &mut nodes);
                        self.moves(e, &mut value);
                        value
                    }
                };
                (nodes, value)
            })
            .collect();

        if parts.iter().all(|(nodes, value)| Self::is_clean(value, nodes)) {
            return false;
        }

        let (mut left, mut right, mut all, mut bindings) = (vec![], vec![], Value::default(), vec![]);
        for ((nodes, value), (p, e)) in parts.into_iter().zip(patterns.elems.iter().zip(&values.elems)) {
            if self.names_fields(p, e) {
                left.push(quote!(_));
                right.push(quote!(()));
            } else if Self::is_clean(&value, &nodes) {
                left.push(p.to_token_stream());
                right.push(self.printed_owned(e));
                let alias = if matches!(p, Pat::Ident(i) if i.mutability.is_none()) {
                    self.alias(e, &value)
                } else {
                    None
                };

                let known = Known {
                    sources: value.sources.clone(),
                    varies: value.varies.clone(),
                    alias,
                    unordered: None,
                };
                bindings.push((p, self.bound_views(p, e), Kind::Known(known)));
                all.and(value);
            } else {
                self.dropped(&value, &e);
                out.extend(nodes);
                out.push(Node::Gap);
                left.push(quote!(_));
                right.push(quote!(()));
                bindings.push((p, self.bound_views(p, e), Kind::Tainted(value.taint_or_together(&e))));
            }
        }

        let mut defines = Default::default();
        for (p, views, kind) in bindings {
            let mut bound = self.bind_views(p, views, &kind, false);
            std::mem::swap(&mut defines, &mut bound);
            defines.extend(bound);
        }

        out.push(Node::Let { tokens: quote!(let (#(#left),*) = (#(#right),*);), defines, value: all });
        true
    }

    /// Analyzes a local; `pattern` is the declared pattern without its type.
    fn ordinary_local(
        &mut self,
        declared: &Pat,
        pattern: &Pat,
        initial: &Expr,
        diverge: Option<&Expr>,
        out: &mut Vec<Node>,
    ) {
        let refutable = diverge.is_some();
        let mut nodes = vec![];
        let one = pattern_name(declared).is_some() && !refutable;
        let mut value = match held_closure(initial) {
            // the captured locals change where the closure is called
            Some(closure) if one => self.closure(closure, true, &mut nodes),
            _ if one => self.unordered(initial, &mut nodes),
            _ => self.expression(initial, &mut nodes),
        };
        self.moves(initial, &mut value);
        self.declared_order(declared, initial, &mut value);
        if !one {
            Self::decide(&mut value);
        }
        let clean = Self::is_clean(&value, &nodes);

        if !clean {
            self.dropped(&value, &initial);
            out.extend(nodes);
            out.push(if value.exits { Node::Maybe } else { Node::Gap });
        }

        let otherwise = diverge.map(|diverge| {
            if !clean {
                self.under();
            }

            let mut nodes = vec![];
            self.conditions.push(value.sources.clone());
            self.statement(diverge, &mut nodes);
            self.conditions.pop();
            if ends_in_macro(diverge) {
                // whichever macro it is, the code after it does not run
                self.exit(false, &mut nodes);
            } else if clean
                && !jumps(diverge)
                && !matches!(nodes.last(), Some(Node::Exit { certain: true, .. }))
            {
                // applies even if state decides how the block ends
                self.exit(true, &mut nodes);
            }
            if !clean {
                self.control.pop();
            }

            nodes
        });

        if !clean {
            let taint = value.taint_or_together(&initial);
            self.bind_view(declared, initial, &Kind::Tainted(taint), refutable);
            if let Some(otherwise) = otherwise {
                out.push(Node::Either(self.control.len() + 1, vec![otherwise]));
            }
            return;
        }

        if self.unit.faults.has(Fault::ResultsHideChanges) {
            value.changes.clear();
        }

        let alias = match pattern {
            Pat::Ident(i) if i.mutability.is_none() => self.alias(initial, &value),
            _ => None,
        };

        let known = Kind::Known(Known {
            sources: value.sources.clone(),
            varies: value.varies.clone(),
            alias,
            unordered: value.unordered.clone(),
        });
        let printed_initial = match pattern_name(declared) {
            Some(_) => self.printed_owned(initial),
            None => self.printed_matched(initial),
        };

        let views = self.bound_views(declared, initial);
        let owner = self.owner(declared, initial);
        let defines = self.with_owner(owner, |pass| pass.bind_views(declared, views, &known, refutable));
        self.declared_plain(declared, initial, &defines);
        if let Expr::Closure(closure) = peel(initial)
            && yields_values(closure)
        {
            defines.iter().for_each(|id| self.scopes.variables[*id].yields_values = true);
        }
        if one && is_option(declared, initial) {
            defines.iter().for_each(|id| self.scopes.variables[*id].is_option = true);
        }
        let printed = declared.to_token_stream();

        // in a function without state, changes to locals are the only effects
        let within = (self.closures > 0 || self.is_free()) && !value.changes.is_empty();
        if matches!(pattern, Pat::Wild(_)) && discards(initial) && !within {
            out.push(Node::Effect);
        }

        value.open = !matches!(declared, Pat::Type(_)) && is_inferred(initial);
        out.push(match otherwise {
            Some(otherwise) => {
                Node::LetElse { pattern: printed, initial: printed_initial, defines, value, otherwise }
            }
            None => Node::Let { tokens: quote!(let #printed = #printed_initial;), defines, value },
        });
    }

    pub(super) fn exit(&mut self, quiet: bool, out: &mut Vec<Node>) {
        if self.closures > 0 {
            return;
        }
        let tokens = crate::emit::leave::leave(quiet, &self.control, self.unit.faults);
        out.push(Node::Exit { quiet, certain: self.control.is_empty(), ends: self.ends_stop(), tokens });
    }

    /// Returns the taint of a result that depends on state although no single value causes this.
    pub(super) fn together(e: &impl Spanned) -> Taint {
        Taint::new(Why::Together, e.span())
    }
}

/// Checks that no initial value mentions a name bound by the patterns, as in `let (a, b) = (b, a)`.
fn are_apart(patterns: &syn::PatTuple, values: &syn::ExprTuple) -> bool {
    let (mut bound, mut mentioned) = (vec![], vec![]);
    names(patterns.elems.to_token_stream(), &mut bound);
    names(values.elems.to_token_stream(), &mut mentioned);
    !bound.iter().any(|name| mentioned.contains(name))
}

/// Checks for an expression whose type may follow only from how its value is used, such as `text.parse()?`.
fn is_inferred(e: &Expr) -> bool {
    match peel(e) {
        Expr::MethodCall(c) => match c.method.to_string().as_str() {
            "parse" | "into" | "try_into" | "collect" | "sum" | "product" | "unwrap_or_default" => {
                c.turbofish.is_none()
            }
            "ok" | "err" | "map_err" | "ok_or" | "ok_or_else" | "unwrap_or" | "unwrap_or_else" | "unwrap"
            | "expect" | "copied" | "cloned" => is_inferred(&c.receiver),
            _ => false,
        },
        Expr::Try(t) => is_inferred(&t.expr),
        Expr::Call(c) => {
            c.args.iter().any(is_inferred)
                || matches!(peel(&c.func), Expr::Path(p) if last_name(&p.path) == "default")
        }
        Expr::Tuple(t) => t.elems.iter().any(is_inferred),
        _ => false,
    }
}

/// Checks whether a local is an `Option`, by its type or by its value.
fn is_option(declared: &Pat, initial: &Expr) -> bool {
    match (declared, peel(initial)) {
        (Pat::Type(t), _) => {
            is_frozen(&t.ty) && matches!(&*t.ty, syn::Type::Path(p) if last_name(&p.path) == "Option")
        }
        (_, Expr::Call(c)) => matches!(peel(&c.func), Expr::Path(p) if p.path.is_ident("Some")),
        (_, Expr::Path(p)) => p.path.is_ident("None"),
        _ => false,
    }
}

/// Returns the closure created by an expression, possibly inside a box.
fn held_closure(e: &Expr) -> Option<&syn::ExprClosure> {
    match peel(e) {
        Expr::Closure(closure) => Some(closure),
        Expr::Call(c) if c.args.len() == 1 => {
            let boxes = matches!(peel(&c.func), Expr::Path(p) if p.path.segments.len() == 2
                && p.path.segments.first().is_some_and(|s| s.ident == "Box") && last_name(&p.path) == "new");
            match c.args.first().map(peel) {
                Some(Expr::Closure(closure)) if boxes => Some(closure),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Checks for `break` or `continue` in an expression.
fn jumps(e: &Expr) -> bool {
    let mut mentioned = vec![];
    names(e.to_token_stream(), &mut mentioned);
    mentioned.iter().any(|n| n == "break" || n == "continue")
}

/// Checks for a block that ends in a macro call.
fn ends_in_macro(e: &Expr) -> bool {
    matches!(peel(e), Expr::Block(b)
        if matches!(b.block.stmts.last(), Some(Stmt::Macro(_) | Stmt::Expr(Expr::Macro(_), _))))
}

fn derives_clone(a: &syn::Attribute) -> bool {
    let mut derived = vec![];
    if a.path().is_ident("derive") {
        names(a.meta.to_token_stream(), &mut derived);
    }
    derived.iter().any(|name| name == "Clone")
}
