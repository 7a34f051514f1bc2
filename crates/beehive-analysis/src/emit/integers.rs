//! Finds integers whose type the compiler can infer in the handler but not in its map.
//!
//! The type of `let mut n = 0;` follows from how `n` is used. A map repeats only some of these uses. If it lacks the
//! use that decides the type, the compiler assumes that `n` is an `i32`, or cannot infer the type at all where a
//! method of `n` is called. This module reads both the handler and the map in the order in which the compiler infers
//! types. If a type is undecided only in the map, it reports an error that asks the user to write the type.

use crate::diagnostics::extent;
use crate::syntax::{bound_by, pattern_name, peel};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use std::collections::BTreeMap;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Error, Expr, Lit, Local, Pat, Stmt, Token, UnOp};

/// Largest value of `i32`, the type that the compiler assumes for an integer of unknown type.
const FALLBACK_MAX: u128 = i32::MAX as u128;

/// Returns an error for an integer whose type is known in the body of a handler but not in its map.
pub(crate) fn undetermined(map: &TokenStream, body: &Block) -> Vec<Error> {
    // this always parses, because the map consists of code that was parsed before
    compared(body, || syn::parse2(quote!({ #map })).ok())
}

/// Like [`undetermined`], for the map function of a helper.
pub(crate) fn undetermined_in_helper(function: &TokenStream, body: &Block) -> Vec<Error> {
    compared(body, || Some(*syn::parse2::<syn::ItemFn>(function.clone()).ok()?.block))
}

fn compared(body: &Block, map: impl FnOnce() -> Option<Block>) -> Vec<Error> {
    let handler = Integers::read(body);
    if handler.locals == 0 {
        return vec![];
    }
    let Some(map) = map() else { return vec![] };

    let known = handler.undetermined();
    let known: Vec<_> = known.iter().map(|u| extent(u.span)).collect();
    let mut of_map = Integers::read(&map).undetermined().into_iter();
    // report only the first one, because the others may be consequences of it
    of_map.find(|u| !known.contains(&extent(u.span))).map(|u| u.error()).into_iter().collect()
}

/// A use of an integer for which its type matters.
#[derive(Clone)]
struct Use {
    span: Span,
    /// The local, if the used expression is just a local.
    name: Option<String>,
    /// The method that is called on the integer; `None` for an operator or a literal.
    method: Option<String>,
    class: Class,
    /// Whether the type has to be known before this point.
    at_once: bool,
}

impl Use {
    fn error(&self) -> Error {
        let name = self.name.as_ref().map_or("this integer".into(), |n| format!("`{n}`"));
        let effect = match &self.method {
            Some(method) => format!("and the map calls `.{method}()` on it"),
            None => "and what the map computes from it depends on the type".into(),
        };
        let help = match &self.name {
            Some(n) => format!("write it where `{n}` is declared: `let {n}: u64 = ..`"),
            None => {
                "write it where the integer is declared: `let n: u64 = ..`, or at the literal: `1u64`".into()
            }
        };
        Error::new(
            self.span,
            format!("the type of {name} follows from code that the map leaves out, {effect}\nhelp: {help}"),
        )
    }
}

/// Identifies a class of integers that have the same type.
type Class = usize;

/// The part of an expression's type that matters here.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    /// Anything other than an integer of unknown type.
    Known,
    /// An integer whose type is not known yet.
    Open(Class),
    /// A container of such integers: an array, a range, an iterator or an option.
    Many(Class),
    /// The expression does not end.
    Never,
}

#[derive(Default)]
struct Integers {
    scopes: Vec<BTreeMap<String, Type>>,
    /// For each class, a class that it was united with, or itself.
    united: Vec<Class>,
    known: Vec<bool>,
    /// For each loop and labeled block around the current point, the type of the values that `break` gives
    /// it.
    yields: Vec<(Option<String>, Type)>,
    uses: Vec<Use>,
    /// Number of locals whose type was unknown where they were declared.
    locals: usize,
}

impl Integers {
    fn read(body: &Block) -> Integers {
        let mut found = Integers::default();
        found.block(body);
        found
    }

    fn undetermined(&self) -> Vec<Use> {
        self.uses.iter().filter(|u| u.at_once || !self.known[self.class(u.class)]).cloned().collect()
    }

    fn open(&mut self) -> Class {
        self.united.push(self.united.len());
        self.known.push(false);
        self.united.len() - 1
    }

    fn class(&self, mut class: Class) -> Class {
        while self.united[class] != class {
            class = self.united[class];
        }
        class
    }

    fn settled(&self, of: Type) -> Type {
        match of {
            Type::Open(c) | Type::Many(c) if self.known[self.class(c)] => Type::Known,
            other => other,
        }
    }

    fn determine(&mut self, of: Type) {
        if let Type::Open(c) | Type::Many(c) = of {
            let class = self.class(c);
            self.known[class] = true;
        }
    }

    /// Records that two expressions have the same type, and returns that type.
    fn unite(&mut self, a: Type, b: Type) -> Type {
        let before = a;
        match (self.settled(a), self.settled(b)) {
            (Type::Never, other) | (other, Type::Never) => other,
            (Type::Open(a), Type::Open(b)) | (Type::Many(a), Type::Many(b)) => {
                let a_is_many = matches!(self.settled(before), Type::Many(_));
                let (a, b) = (self.class(a), self.class(b));
                self.united[a] = b;
                if a_is_many { Type::Many(b) } else { Type::Open(b) }
            }
            (a, b) => {
                self.determine(a);
                self.determine(b);
                Type::Known
            }
        }
    }

    fn uses(&mut self, e: &Expr, span: Span, method: Option<String>, of: Type) {
        if let Type::Open(class) = self.settled(of) {
            let name = match peel(e) {
                Expr::Path(p) => p.path.get_ident().map(ToString::to_string),
                _ => None,
            };
            let at_once = method.is_some();
            self.uses.push(Use { span, name, method, class, at_once });
        }
    }

    fn bind(&mut self, p: &Pat, of: Type) {
        let of = self.settled(of);
        match (p, of) {
            (Pat::Type(t), _) => {
                self.determine(of);
                self.bind(&t.pat, Type::Known)
            }
            (Pat::Paren(t), _) => self.bind(&t.pat, of),
            (Pat::Reference(t), _) => self.bind(&t.pat, of),
            (Pat::Ident(i), _) if i.subpat.is_none() => {
                self.locals += usize::from(matches!(of, Type::Open(_)));
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(i.ident.to_string(), of);
                }
            }
            _ => {
                self.determine(of);
                if let Some(scope) = self.scopes.last_mut() {
                    scope.extend(bound_by(p).into_iter().map(|name| (name, Type::Known)));
                }
            }
        }
    }

    fn scoped<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(BTreeMap::new());
        let out = run(self);
        self.scopes.pop();
        out
    }

    fn block(&mut self, b: &Block) -> Type {
        self.scoped(|this| {
            let mut last = Type::Known;
            for s in &b.stmts {
                last = match s {
                    Stmt::Local(l) => {
                        this.local(l);
                        Type::Known
                    }
                    Stmt::Expr(e, semicolon) => match (this.of(e), semicolon) {
                        (Type::Never, _) => Type::Never,
                        (of, None) => of,
                        _ => Type::Known,
                    },
                    Stmt::Macro(m) => this.of_macro(&m.mac),
                    Stmt::Item(_) => Type::Known,
                };
            }
            last
        })
    }

    fn local(&mut self, l: &Local) {
        let Some(init) = &l.init else {
            let of = Type::Open(self.open());
            if pattern_name(&l.pat).is_some() && !matches!(l.pat, Pat::Type(_)) {
                // the value may have any type; the type is open only if an integer is assigned
                self.bind(&l.pat, of);
            } else {
                self.bind(&l.pat, Type::Known);
            }
            return;
        };

        match (&l.pat, peel(&init.expr)) {
            (Pat::Tuple(ps), Expr::Tuple(es)) if ps.elems.len() == es.elems.len() => {
                let all: Vec<Type> = es.elems.iter().map(|e| self.of(e)).collect();
                ps.elems.iter().zip(all).for_each(|(p, of)| self.bind(p, of));
            }
            _ => {
                let of = self.of(&init.expr);
                if let Some((_, diverge)) = &init.diverge {
                    self.of(diverge);
                }
                self.bind(&l.pat, of)
            }
        }
    }

    fn given(&mut self, label: Option<&syn::Lifetime>, of: Type) {
        let label = label.map(|l| l.ident.to_string());
        let at = self.yields.iter().rposition(|y| label.is_none() || y.0 == label);
        if let Some(at) = at {
            let before = self.yields[at].1;
            self.yields[at].1 = self.unite(before, of)
        }
    }

    /// Analyzes a loop or a labeled block by calling `run`. Returns the type of the values that `break` gives
    /// it.
    fn yielding(&mut self, label: Option<&syn::Label>, run: impl FnOnce(&mut Self) -> Type) -> Type {
        self.yields.push((label.map(|l| l.name.ident.to_string()), Type::Never));
        let of = run(self);
        let given = self.yields.pop().map_or(Type::Never, |y| y.1);
        self.unite(of, given)
    }

    fn all<'e>(&mut self, es: impl IntoIterator<Item = &'e Expr>) -> Type {
        let mut all = Type::Never;
        for e in es {
            let of = self.of(e);
            all = self.unite(all, of);
        }
        match all {
            Type::Open(c) => Type::Many(c),
            _ => Type::Known,
        }
    }

    /// Determines the types of arguments that are passed to a place whose type is known.
    fn passed<'e>(&mut self, es: impl IntoIterator<Item = &'e Expr>) {
        for e in es {
            let of = self.of(e);
            self.determine(of);
        }
    }

    fn binary(&mut self, b: &syn::ExprBinary) -> Type {
        let (left, right) = (self.of(&b.left), self.of(&b.right));
        let span = b.op.span();
        match b.op {
            BinOp::And(_) | BinOp::Or(_) => Type::Known,
            BinOp::Shl(_) | BinOp::ShlAssign(_) => {
                self.uses(&b.left, span, None, left);
                left
            }
            BinOp::Shr(_) | BinOp::ShrAssign(_) => left,
            op => {
                if matches!(op, BinOp::Mul(_) | BinOp::MulAssign(_)) {
                    self.uses(&b.left, span, None, left);
                }
                let of = self.unite(left, right);
                let compares = matches!(
                    op,
                    BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
                );
                if compares { Type::Known } else { of }
            }
        }
    }

    /// Returns the type of the result of a method that is called on an expression of type `of`.
    fn of_method(&mut self, c: &syn::ExprMethodCall, method: &str, of: Type) -> Type {
        let inferred = c.turbofish.is_none() && !matches!(of, Type::Open(_) | Type::Many(_));
        match (of, method) {
            (_, "parse") if inferred => Type::Many(self.open()),
            (_, "sum" | "product") if inferred => Type::Open(self.open()),
            // the argument has the type of the receiver
            (
                Type::Open(_),
                "cmp" | "partial_cmp" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "max" | "min",
            ) if c.args.len() == 1 => {
                let other = c.args.first().map_or(Type::Known, |a| self.of(a));
                let both = self.unite(of, other);
                if matches!(method, "max" | "min") { both } else { Type::Known }
            }
            (Type::Many(class), "unwrap_or") => {
                let default = self.all(&c.args);
                match self.unite(Type::Many(class), default) {
                    Type::Many(class) => Type::Open(class),
                    _ => Type::Known,
                }
            }
            (Type::Many(class), "unwrap" | "expect" | "unwrap_or_default") => {
                self.passed(&c.args);
                Type::Open(class)
            }
            (
                Type::Many(_),
                "iter" | "into_iter" | "copied" | "cloned" | "rev" | "skip" | "take" | "step_by" | "ok"
                | "filter" | "min" | "max" | "first" | "last" | "next",
            ) => {
                self.passed(&c.args);
                of
            }
            _ => {
                self.passed(&c.args);
                Type::Known
            }
        }
    }

    fn of_macro(&mut self, m: &syn::Macro) -> Type {
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let list = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(m.tokens.clone());
        let Ok(list) = list else { return Type::Known };
        match name.as_str() {
            "vec" => self.all(&list),
            "dbg" | "pure" if list.len() == 1 => list.first().map_or(Type::Known, |e| self.of(e)),
            "panic" | "unreachable" | "todo" | "unimplemented" => Type::Never,
            "assert_eq" | "assert_ne" => {
                let of: Vec<Type> = list.iter().take(2).map(|e| self.of(e)).collect();
                if let [a, b] = of[..] {
                    self.unite(a, b);
                }
                Type::Known
            }
            _ => {
                for e in &list {
                    self.of(e);
                }
                Type::Known
            }
        }
    }

    /// Returns what is known about the type of an expression after all code before it.
    fn of(&mut self, e: &Expr) -> Type {
        let of = self.found(e);
        self.settled(of)
    }

    fn found(&mut self, e: &Expr) -> Type {
        match e {
            Expr::Lit(l) => match &l.lit {
                Lit::Int(i) if i.suffix().is_empty() => {
                    let of = Type::Open(self.open());
                    if i.base10_parse::<u128>().is_ok_and(|n| n > FALLBACK_MAX) {
                        self.uses(e, i.span(), None, of)
                    }
                    of
                }
                _ => Type::Known,
            },
            Expr::Path(p) => {
                let Some(name) = p.path.get_ident().map(ToString::to_string) else { return Type::Known };
                let known = self.scopes.iter().rev().find_map(|s| s.get(&name).copied());
                known.unwrap_or(Type::Known)
            }
            Expr::Paren(p) => self.of(&p.expr),
            Expr::Group(p) => self.of(&p.expr),
            Expr::Reference(r) => self.of(&r.expr),
            Expr::Unary(u) => {
                let of = self.of(&u.expr);
                if matches!(u.op, UnOp::Not(_)) {
                    self.uses(&u.expr, u.op.span(), None, of)
                }
                of
            }
            Expr::Binary(b) => self.binary(b),
            Expr::Assign(a) => {
                let (left, right) = (self.of(&a.left), self.of(&a.right));
                self.unite(left, right);
                Type::Known
            }
            Expr::Cast(c) => {
                self.of(&c.expr);
                Type::Known
            }
            Expr::Array(a) => self.all(&a.elems),
            Expr::Repeat(r) => {
                let length = self.of(&r.len);
                self.determine(length);
                self.all([&*r.expr])
            }
            Expr::Range(r) => self.all(r.start.as_deref().into_iter().chain(r.end.as_deref())),
            Expr::Tuple(t) => {
                self.passed(&t.elems);
                Type::Known
            }
            Expr::Struct(s) => {
                self.passed(s.fields.iter().map(|f| &f.expr));
                Type::Known
            }
            Expr::Index(i) => {
                let of = self.of(&i.expr);
                let index = self.of(&i.index);
                self.determine(index);
                match of {
                    Type::Many(c) => Type::Open(c),
                    _ => Type::Known,
                }
            }
            Expr::MethodCall(c) => {
                let of = self.of(&c.receiver);
                let method = c.method.to_string();
                self.uses(&c.receiver, c.method.span(), Some(method.clone()), of);
                self.of_method(c, &method, of)
            }
            Expr::Try(t) => match self.of(&t.expr) {
                Type::Many(c) => Type::Open(c),
                _ => Type::Known,
            },
            Expr::Call(c) => {
                self.of(&c.func);
                self.passed(&c.args);
                Type::Known
            }
            Expr::Macro(m) => self.of_macro(&m.mac),
            Expr::Closure(c) => {
                self.scoped(|this| {
                    c.inputs.iter().for_each(|p| this.bind(p, Type::Known));
                    this.of(&c.body)
                });
                Type::Known
            }
            Expr::Block(b) if b.label.is_some() => {
                self.yielding(b.label.as_ref(), |this| this.block(&b.block))
            }
            Expr::Block(b) => self.block(&b.block),
            Expr::Unsafe(b) => self.block(&b.block),
            Expr::Let(l) => {
                let of = self.of(&l.expr);
                self.bind(&l.pat, of);
                Type::Known
            }
            Expr::If(i) => self.scoped(|this| {
                this.of(&i.cond);
                let then = this.block(&i.then_branch);
                let Some((_, otherwise)) = &i.else_branch else { return Type::Known };
                let otherwise = this.of(otherwise);
                this.unite(then, otherwise)
            }),
            Expr::Match(m) => {
                let of = self.of(&m.expr);
                let mut all = Type::Never;
                for a in &m.arms {
                    let arm = self.scoped(|this| {
                        // a literal in a pattern does not decide a type
                        match &a.pat {
                            Pat::Ident(_) => this.bind(&a.pat, of),
                            p => this.bind(p, Type::Known),
                        }
                        if let Pat::Guard(g) = &a.pat {
                            this.of(&g.guard);
                        }
                        this.of(&a.body)
                    });
                    all = self.unite(all, arm);
                }
                all
            }
            Expr::ForLoop(f) => {
                let of = match self.of(&f.expr) {
                    Type::Many(c) => Type::Open(c),
                    _ => Type::Known,
                };
                self.yielding(f.label.as_ref(), |this| {
                    this.scoped(|this| {
                        this.bind(&f.pat, of);
                        this.block(&f.body)
                    });
                    Type::Known
                })
            }
            Expr::While(w) => self.yielding(w.label.as_ref(), |this| {
                this.scoped(|this| {
                    this.of(&w.cond);
                    this.block(&w.body)
                });
                Type::Known
            }),
            Expr::Loop(l) => self.yielding(l.label.as_ref(), |this| {
                this.block(&l.body);
                Type::Never
            }),
            Expr::Break(b) => {
                if let Some(e) = &b.expr {
                    let of = self.of(e);
                    self.given(b.label.as_ref(), of)
                }
                Type::Never
            }
            Expr::Continue(_) => Type::Never,
            Expr::Return(r) => {
                self.passed(r.expr.as_deref());
                Type::Never
            }
            other => {
                visit::visit_expr(self, other);
                Type::Known
            }
        }
    }
}

impl<'ast> Visit<'ast> for Integers {
    fn visit_expr(&mut self, e: &'ast Expr) {
        self.of(e);
    }

    fn visit_block(&mut self, b: &'ast Block) {
        self.block(b);
    }
}
