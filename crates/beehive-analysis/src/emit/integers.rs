//! Finds the integers of a map whose type the compiler may not be able to infer from the map alone.
//!
//! The type of `let mut n = 0;` follows from the uses of `n`. A map repeats only some of these uses. Without the use
//! that determines the type, the compiler takes `n` for an `i32`, or, where a method of `n` is called, knows no type at
//! all. This file reads the code in the order in which the compiler infers types. If it is not certain that the
//! compiler knows a type, the type is treated as unknown; [`super::typed`] then makes it known.

use super::integer_types::{Class, OF_OTHER_TYPE, Type, Types};
use crate::errors::diagnostics::extent;
use crate::syntax::peel;
use proc_macro2::Span;
use std::collections::BTreeMap;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Lit, Local, Pat, Stmt, Token, UnOp};

/// Largest value of `i32`, the compiler's default for an integer of unknown type.
const FALLBACK_MAX: u128 = i32::MAX as u128;

/// Functions that return an empty collection or a default value, whose type follows from its later uses.
const EMPTY: &[&str] = &["new", "with_capacity", "default"];

/// The source position of a local's declaration: the start and the end of its name, as lines and columns.
pub(super) type Place = (usize, usize, usize, usize);

/// A use of an integer for which the type matters.
#[derive(Clone)]
pub(super) struct Use {
    pub span: Span,
    /// The name of the local, if the use consists of a local alone.
    pub name: Option<String>,
    /// The method that is called on the integer; `None` for an operator or a literal.
    pub method: Option<String>,
    pub class: Class,
    /// Whether the type has to be known before this point.
    at_once: bool,
}

/// The types of a function's integers, after the whole function has been read.
#[derive(Default)]
pub(super) struct Integers {
    scopes: Vec<BTreeMap<String, Type>>,
    types: Types,
    /// The values of `break`, for each loop and labeled block around the current point.
    yields: Vec<(Option<String>, Type)>,
    uses: Vec<Use>,
    /// Whether an argument's type is known once the argument has been passed to a method of some other value.
    arguments_decide: bool,
    /// The locals whose types may be unknown where they are declared.
    locals: Vec<(Place, Class)>,
    /// Names of the block's functions that have type parameters.
    generic: Vec<String>,
}

impl Integers {
    /// Reads a body that contains all uses from which types are inferred.
    pub(super) fn of_handler(body: &Block, generic: &[String]) -> Integers {
        Integers::read(body, generic, true)
    }

    /// Reads the body of a map. Does not assume that an argument of a method has a known type.
    pub(super) fn of_map(body: &Block, generic: &[String]) -> Integers {
        Integers::read(body, generic, false)
    }

    fn read(body: &Block, generic: &[String], arguments_decide: bool) -> Integers {
        let generic = generic.to_vec();
        let mut found = Integers { arguments_decide, generic, ..Integers::default() };
        found.block(body);
        found
    }

    /// Checks whether the type of any local may be unknown where it is declared.
    pub(super) fn any(&self) -> bool {
        !self.locals.is_empty()
    }

    /// Returns the uses before which the compiler may not know the type of the integer.
    pub(super) fn undetermined(&self) -> Vec<&Use> {
        self.uses.iter().filter(|u| u.at_once || !self.types.is_known(u.class)).collect()
    }

    /// Returns the locals of the same type as the integers in these uses.
    pub(super) fn locals_of(&self, uses: &[&Use]) -> Vec<Place> {
        let wanted: Vec<Class> = uses.iter().map(|u| self.types.class(u.class)).collect();
        self.locals
            .iter()
            .filter(|(_, c)| wanted.contains(&self.types.class(*c)))
            .map(|(place, _)| *place)
            .collect()
    }

    fn uses(&mut self, e: &Expr, span: Span, method: Option<String>, of: Type) {
        if let Type::Open(class) = self.types.settled(of) {
            let name = match peel(e) {
                Expr::Path(p) => p.path.get_ident().map(ToString::to_string),
                _ => None,
            };
            let at_once = method.is_some();
            self.uses.push(Use { span, name, method, class, at_once });
        }
    }

    fn bind(&mut self, p: &Pat, of: Type) {
        let of = self.types.settled(of);
        match (p, of) {
            (Pat::Type(t), _) => {
                self.types.determine(of);
                self.bind(&t.pat, Type::Known)
            }
            (Pat::Paren(t), _) => self.bind(&t.pat, of),
            (Pat::Reference(t), _) => self.bind(&t.pat, of),
            (Pat::Ident(i), _) => {
                if let Type::Open(class) | Type::Many(class) = of {
                    self.locals.push((extent(i.ident.span()), class))
                }
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(i.ident.to_string(), of);
                }
                if let Some((_, inner)) = &i.subpat {
                    self.bind(inner, of)
                }
            }
            (Pat::Or(t), _) => t.cases.iter().for_each(|p| self.bind(p, of)),
            (Pat::Tuple(t), Type::Parts(parts)) => {
                let parts = self.types.tuples[parts].clone().into_iter();
                let all = parts.chain(std::iter::repeat(Type::Known));
                t.elems.iter().zip(all).for_each(|(p, of)| self.bind(p, of))
            }
            // an iterator over pairs, such as `enumerate`
            (Pat::Tuple(t), Type::Open(_)) => t.elems.iter().for_each(|p| self.bind(p, of)),
            (Pat::Tuple(t), _) => t.elems.iter().for_each(|p| self.bind(p, Type::Known)),
            (Pat::TupleStruct(t), _) => {
                let item = self.types.item(of);
                t.elems.iter().for_each(|p| self.bind(p, item))
            }
            (Pat::Slice(t), _) => {
                let item = self.types.item(of);
                t.elems.iter().for_each(|p| match p {
                    Pat::Ident(i) if i.subpat.is_some() => self.bind(p, of),
                    p => self.bind(p, item),
                })
            }
            (Pat::Struct(t), _) => t.fields.iter().for_each(|f| self.bind(&f.pat, Type::Known)),
            (Pat::Guard(t), _) => {
                self.bind(&t.pat, of);
                self.of(&t.guard);
            }
            _ => {}
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
            // the local may be of any type; the type stays open only if an integer is assigned to the local
            let of = Type::Open(self.types.open());
            return self.bind(&l.pat, of);
        };

        let of = self.of(&init.expr);
        if let Some((_, diverge)) = &init.diverge {
            self.of(diverge);
        }
        self.bind(&l.pat, of)
    }

    fn given(&mut self, label: Option<&syn::Lifetime>, of: Type) {
        let label = label.map(|l| l.ident.to_string());
        let at = self.yields.iter().rposition(|y| label.is_none() || y.0 == label);
        if let Some(at) = at {
            let before = self.yields[at].1;
            self.yields[at].1 = self.types.unite(before, of)
        }
    }

    /// Analyzes a loop or a labeled block by calling `run`. Returns the type of the values given by `break`.
    fn yielding(&mut self, label: Option<&syn::Label>, run: impl FnOnce(&mut Self) -> Type) -> Type {
        self.yields.push((label.map(|l| l.name.ident.to_string()), Type::Never));
        let of = run(self);
        let given = self.yields.pop().map_or(Type::Never, |y| y.1);
        self.types.unite(of, given)
    }

    fn all<'e>(&mut self, es: impl IntoIterator<Item = &'e Expr>) -> Type {
        let mut all = Type::Never;
        for e in es {
            let of = self.of(e);
            all = self.types.unite(all, of);
        }
        self.types.many(all)
    }

    /// Marks the types of arguments as known, because the parameters have known types.
    fn passed<'e>(&mut self, es: impl IntoIterator<Item = &'e Expr>) {
        for e in es {
            let of = self.of(e);
            self.types.determine(of);
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
                let of = self.types.unite(left, right);
                let compares = matches!(
                    op,
                    BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
                );
                if compares { Type::Known } else { of }
            }
        }
    }

    /// Returns a closure's return type, given the types of its parameters.
    fn closure(&mut self, c: &syn::ExprClosure, of: &[Type]) -> Type {
        let of = of.iter().copied().chain(std::iter::repeat(Type::Known));
        self.scoped(|this| {
            c.inputs.iter().zip(of).for_each(|(p, of)| this.bind(p, of));
            this.of(&c.body)
        })
    }

    /// Returns the return type of a method, called on an expression of type `of`.
    fn of_method(&mut self, c: &syn::ExprMethodCall, method: &str, of: Type) -> Type {
        let inferred = c.turbofish.is_none();
        let item = match of {
            Type::Open(_) => of,
            of => self.types.item(of),
        };
        let (mut given, mut runs) = (vec![], false);
        for a in &c.args {
            given.push(match (peel(a), given.first()) {
                (Expr::Closure(f), Some(first)) if matches!(method, "fold" | "rfold" | "try_fold") => {
                    let first: Type = *first;
                    let body = self.closure(f, &[first, item]);
                    self.types.unite(first, body)
                }
                (Expr::Closure(f), _) => {
                    runs = true;
                    self.closure(f, &[item, item])
                }
                (e, _) => self.of(e),
            })
        }
        let last = given.last().copied().unwrap_or(Type::Known);
        if self.arguments_decide
            && of == Type::Known
            && !runs
            && !matches!(method, "fold" | "map_or" | "then_some")
        {
            given.iter().for_each(|of| self.types.determine(*of))
        }

        match (of, method) {
            (_, name) if OF_OTHER_TYPE.contains(&name) => Type::Known,
            (Type::Known, "parse") if inferred => Type::Many(self.types.open()),
            (_, "sum" | "product") if inferred => Type::Open(self.types.open()),
            (_, "fold" | "rfold") => last,
            // the argument has the type of the receiver
            (
                Type::Open(_),
                "cmp" | "partial_cmp" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "max" | "min",
            ) if given.len() == 1 => {
                let both = self.types.unite(of, last);
                if matches!(method, "max" | "min") { both } else { Type::Known }
            }
            (Type::Open(_), "to_owned" | "clone") => of,
            (Type::Open(c), name) if name.starts_with("checked_") => Type::Many(c),
            (Type::Many(_) | Type::Lazy(_), "unwrap_or" | "unwrap_or_else") => self.types.unite(item, last),
            (Type::Many(_) | Type::Lazy(_), "unwrap" | "expect" | "unwrap_or_default") => item,
            (Type::Many(_), "push" | "push_back" | "push_front" | "insert" | "fill" | "resize") => {
                self.types.unite(item, last);
                Type::Known
            }
            (Type::Many(_), "extend" | "append" | "extend_from_slice") => {
                let added = self.types.item(last);
                self.types.unite(item, added);
                Type::Known
            }
            (_, "map_or" | "map_or_else") => match given[..] {
                [default, body] => self.types.unite(default, body),
                _ => Type::Known,
            },
            (_, "map" | "and_then" | "filter_map" | "flat_map" | "map_while" | "then" | "scan") if runs => {
                match last {
                    Type::Open(c) | Type::Many(c) | Type::Lazy(c) => Type::Lazy(c),
                    _ => Type::Known,
                }
            }
            (Type::Known, "then_some") => self.types.many(last),
            (Type::Known | Type::Never | Type::Parts(_), _) => Type::Known,
            (Type::Many(c) | Type::Lazy(c), _) if runs => Type::Lazy(c),
            (of, _) => of,
        }
    }

    fn of_call(&mut self, c: &syn::ExprCall) -> Type {
        // a closure may take the items of the arguments before it: `successors(Some(n), |q| q.checked_sub(1))`
        let mut of: Vec<Type> = vec![];
        for a in &c.args {
            let before = of.iter().rev().find_map(|of| match of {
                Type::Open(c) | Type::Many(c) | Type::Lazy(c) => Some(Type::Open(*c)),
                _ => None,
            });
            of.push(match (peel(a), before) {
                (Expr::Closure(f), Some(item)) => self.closure(f, &[item, item]),
                (a, _) => self.of(a),
            })
        }
        let Expr::Path(p) = peel(&c.func) else {
            of.into_iter().for_each(|of| self.types.determine(of));
            return Type::Known;
        };

        let names: Vec<String> = p.path.segments.iter().map(|s| s.ident.to_string()).collect();
        let first = names.first().map_or("", String::as_str);
        let last = names.last().map_or("", String::as_str);
        let typed = p.path.segments.iter().any(|s| !s.arguments.is_none());
        match last {
            "Some" | "Ok" if names.len() == 1 => {
                let of = of.first().copied().unwrap_or(Type::Known);
                self.types.many(of)
            }
            "max" | "min" if first != "Self" && of.len() == 2 => self.types.unite(of[0], of[1]),
            "identity" | "take" | "black_box" if of.len() == 1 => of[0],
            "replace" if of.len() == 2 => self.types.unite(of[0], of[1]),
            "swap" if of.len() == 2 => {
                self.types.unite(of[0], of[1]);
                Type::Known
            }
            "drop" | "from" => Type::Known,
            name if EMPTY.contains(&name) && names.len() > 1 && !typed && first != "Self" => {
                Type::Many(self.types.open())
            }
            // the result may have the type of an argument, which the call does not determine
            name if first == "Self" && !typed && self.generic.iter().any(|g| g == name) => {
                of.into_iter().find(|of| *of != Type::Known).unwrap_or(Type::Known)
            }
            _ => {
                of.into_iter().for_each(|of| self.types.determine(of));
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
                    self.types.unite(a, b);
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

    /// Returns the type of an expression, as far as all earlier code determines it.
    fn of(&mut self, e: &Expr) -> Type {
        let of = self.found(e);
        self.types.settled(of)
    }

    fn found(&mut self, e: &Expr) -> Type {
        match e {
            Expr::Lit(l) => match &l.lit {
                Lit::Int(i) if i.suffix().is_empty() => {
                    let of = Type::Open(self.types.open());
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
                self.types.unite(left, right);
                Type::Known
            }
            Expr::Cast(c) => {
                self.of(&c.expr);
                Type::Known
            }
            Expr::Array(a) => self.all(&a.elems),
            Expr::Repeat(r) => {
                let length = self.of(&r.len);
                self.types.determine(length);
                self.all([&*r.expr])
            }
            Expr::Range(r) => self.all(r.start.as_deref().into_iter().chain(r.end.as_deref())),
            Expr::Tuple(t) => {
                let parts = t.elems.iter().map(|e| self.of(e)).collect();
                self.types.tuple(parts)
            }
            Expr::Field(f) => {
                let of = self.of(&f.base);
                match (of, &f.member) {
                    (Type::Parts(parts), syn::Member::Unnamed(i)) => {
                        self.types.tuples[parts].get(i.index as usize).copied().unwrap_or(Type::Known)
                    }
                    _ => Type::Known,
                }
            }
            Expr::Struct(s) => {
                self.passed(s.fields.iter().map(|f| &f.expr));
                Type::Known
            }
            Expr::Index(i) => {
                let of = self.of(&i.expr);
                let index = self.of(&i.index);
                self.types.determine(index);
                self.types.item(of)
            }
            Expr::MethodCall(c) => {
                let of = self.of(&c.receiver);
                let method = c.method.to_string();
                self.uses(&c.receiver, c.method.span(), Some(method.clone()), of);
                self.of_method(c, &method, of)
            }
            Expr::Try(t) => {
                let of = self.of(&t.expr);
                self.types.item(of)
            }
            Expr::Call(c) => self.of_call(c),
            Expr::Macro(m) => self.of_macro(&m.mac),
            Expr::Closure(c) => {
                self.closure(c, &[]);
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
                this.types.unite(then, otherwise)
            }),
            Expr::Match(m) => {
                let of = self.of(&m.expr);
                let mut all = Type::Never;
                for a in &m.arms {
                    let arm = self.scoped(|this| {
                        this.bind(&a.pat, of);
                        this.of(&a.body)
                    });
                    all = self.types.unite(all, arm);
                }
                all
            }
            Expr::ForLoop(f) => {
                let of = self.of(&f.expr);
                let of = self.types.item(of);
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
