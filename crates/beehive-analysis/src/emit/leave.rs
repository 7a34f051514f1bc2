//! Decides what the map leaves at a point where its handler returns: the whole map, or only the current branch.
//!
//! If the handler returns under a condition on state, the map cannot know whether the handler has returned, so the map
//! leaves only the current branch, by its label. Under a `pure || state` condition, the map has a flag that says at run
//! time whether the handler is certain to take this branch.

use crate::faults::{Fault, Faults};
use crate::known::methods::takes_itself;
use crate::known::{MacroKind, macro_kind, passes_on};
use crate::syntax::{bound_by, is_error, is_quiet, pattern_name, peel};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, GenericArgument, Item, Pat, Stmt, Token};

/// A condition on state that encloses a point of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// The cases in which the handler is certain to take the branch; `None` if there are none.
    pub certain: Option<Certain>,
    /// Whether it is a loop that the handler may leave earlier than the map; see `pass::stops`.
    pub stop: bool,
}

/// The map's variables for a branch that the handler is certain to take in some cases.
#[derive(Clone, Debug)]
pub(crate) struct Certain {
    /// Whether the handler is certain to take the branch.
    pub flag: Ident,
    /// Set where the handler leaves more than the branch, in such a case. The code after the branch reads this
    /// variable, because a branch may be a closure, which `break` cannot leave.
    pub left: Ident,
}

/// Returns the label of a branch under `depth` conditions on state.
pub(crate) fn branch_label(depth: usize) -> syn::Lifetime {
    syn::Lifetime::new(&format!("'__bh{depth}"), Span::mixed_site())
}

/// Prints the code that leaves the map or the current branch. Unless `quiet`, the exit is an effect, because the sender
/// gets an answer.
pub(crate) fn leave(quiet: bool, control: &[Control], faults: Faults) -> TokenStream {
    let way = way_out(control, faults);
    if quiet {
        return way;
    }
    let mapper = super::mapper();
    quote!({ #mapper.effect(); #way })
}

/// Prints the code that leaves the map or the current branch, without an effect.
pub(crate) fn way_out(control: &[Control], faults: Faults) -> TokenStream {
    let Some((innermost, _)) = control.split_last() else { return quote!(return) };
    if faults.has(Fault::ExitsLeaveTheWholeMap) {
        return quote!(return);
    }

    let label = branch_label(control.len());
    match &innermost.certain {
        None => quote!(break #label),
        Some(Certain { flag, left }) => quote!({ #left = #flag; break #label }),
    }
}

/// Prints the code that leaves the innermost branch, for a `break` or `continue` that the handler may have
/// taken. Such a jump never leaves more than its loop.
pub(crate) fn leave_branch(control: &[Control], faults: Faults) -> TokenStream {
    if faults.has(Fault::ExitsLeaveTheWholeMap) {
        return quote!(return);
    }
    let label = branch_label(control.len());
    quote!(break #label)
}

/// How a map keeps a local moved by its handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keeping {
    /// The map also moves the local.
    Moved,
    /// The map moves a clone, because other branches of the map may also move the local.
    Cloned,
    /// Like [`Keeping::Cloned`], for a `&mut`, which cannot be cloned.
    Reborrowed,
    /// The local may hold a `&mut`, so the map can neither clone nor reborrow it.
    Impossible,
}

/// The properties of locals, by name, that affect how they are printed.
pub(crate) struct Locals<'l> {
    /// Returns how the map keeps a local that an expression would move.
    pub keeping: &'l dyn Fn(&Ident) -> Keeping,
    /// Whether the map clones a field where an expression would move it out of its local, given whether the expression
    /// does so by a pattern.
    pub parts: &'l dyn Fn(&Ident, &syn::Member, bool) -> bool,
    /// Whether a local is the context; calls on it that are statements are left out.
    pub context: &'l dyn Fn(&Ident) -> bool,
}

/// How the code around an expression uses its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// The code reads or borrows the value.
    Read,
    /// A pattern destructures the value, which moves only the parts bound by the pattern.
    Matched,
    /// The code moves the value.
    Taken,
}

/// Prints an expression in the form used in a map: `?`, `return` and diverging macros leave the map.
pub(crate) fn moved(
    e: &Expr,
    used: Use,
    control: &[Control],
    locals: &Locals<'_>,
    faults: Faults,
) -> TokenStream {
    let mut moving = Moving { control, locals, faults, bound: vec![] };
    let is_free = match used {
        Use::Read => true,
        Use::Matched => moving.is_free_matched(e),
        Use::Taken => moving.is_free(e),
    };
    if is_free && moving.stands(e) {
        return e.to_token_stream();
    }

    let mut e = e.clone();
    moving.visit_expr_mut(&mut e);
    match used {
        Use::Read => {}
        Use::Matched => moving.keep_matched(&mut e),
        Use::Taken => moving.keep(&mut e),
    }
    e.into_token_stream()
}

/// Checks for `text + &more`, which moves its left side.
pub(crate) fn appends(b: &syn::ExprBinary) -> bool {
    let text = |l: &syn::ExprLit| matches!(l.lit, syn::Lit::Str(_));
    matches!(b.op, syn::BinOp::Add(_))
        && match peel(&b.right) {
            Expr::Reference(_) => true,
            Expr::Lit(l) => text(l),
            _ => false,
        }
}

/// Returns the names that a `move` closure may capture, each once.
pub(crate) fn captured(c: &syn::ExprClosure) -> Vec<Ident> {
    fn collect(tokens: TokenStream, out: &mut Vec<Ident>) {
        for t in tokens {
            match t {
                TokenTree::Ident(i) if !out.contains(&i) => out.push(i),
                TokenTree::Group(g) => collect(g.stream(), out),
                _ => {}
            }
        }
    }

    let mut found = vec![];
    if c.capture.is_some() {
        collect(c.body.to_token_stream(), &mut found);
    }
    found
}

struct Moving<'c> {
    control: &'c [Control],
    locals: &'c Locals<'c>,
    faults: Faults,
    /// The names bound by the expression itself around the current point. They do not refer to locals.
    bound: Vec<String>,
}

impl Moving<'_> {
    /// Checks that an expression neither leaves the function nor moves a local that the map keeps, which is true of
    /// most expressions. Such an expression is printed unchanged, which is much cheaper than changing a copy of it.
    fn stands(&self, e: &Expr) -> bool {
        let all = |es: &Punctuated<Expr, Token![,]>| es.iter().all(|e| self.is_free(e) && self.stands(e));
        match e {
            Expr::Path(_) | Expr::Lit(_) => true,
            Expr::Field(f) => self.stands(&f.base),
            Expr::Reference(r) => self.stands(&r.expr),
            Expr::Paren(p) => self.stands(&p.expr),
            Expr::Unary(u) => self.stands(&u.expr),
            Expr::Cast(c) => self.stands(&c.expr),
            Expr::Binary(b) => {
                self.stands(&b.left) && self.stands(&b.right) && (!appends(b) || self.is_free(&b.left))
            }
            Expr::Index(i) => self.stands(&i.expr) && self.stands(&i.index),
            Expr::Range(r) => r.start.iter().chain(&r.end).all(|e| self.stands(e)),
            Expr::Tuple(t) => all(&t.elems),
            Expr::Array(t) => all(&t.elems),
            Expr::Call(c) => self.stands(&c.func) && all(&c.args),
            Expr::MethodCall(c) => {
                c.turbofish.iter().flat_map(|t| &t.args).all(|a| !matches!(a, GenericArgument::Const(_)))
                    && self.stands(&c.receiver)
                    && (!takes_itself(&c.method.to_string()) || self.is_free(&c.receiver))
                    && all(&c.args)
            }
            // its body is printed unchanged in any case
            Expr::Closure(c) => c.capture.is_none(),
            _ => false,
        }
    }

    /// Checks that the map does not have to keep any local or field that it would move with the value of an expression.
    /// Corresponds to [`Self::keep`].
    fn is_free(&self, e: &Expr) -> bool {
        match e {
            Expr::Paren(p) => self.is_free(&p.expr),
            Expr::Group(p) => self.is_free(&p.expr),
            Expr::Path(p) => matches!(self.keeping(&p.path), Keeping::Moved | Keeping::Impossible),
            Expr::Field(f) => !self.keeps_part(f, false),
            Expr::Block(_) | Expr::Unsafe(_) | Expr::If(_) | Expr::Match(_) => false,
            _ => true,
        }
    }

    /// Like [`Self::is_free`], for an expression destructured by a pattern. Corresponds to [`Self::keep_matched`].
    fn is_free_matched(&self, e: &Expr) -> bool {
        match e {
            Expr::Paren(p) => self.is_free_matched(&p.expr),
            Expr::Field(f) => !self.keeps_part(f, true) || self.is_free(e),
            e => self.is_free(e),
        }
    }

    fn leave(&self, quiet: bool) -> TokenStream {
        leave(quiet, self.control, self.faults)
    }

    /// Clones or reborrows a local instead of moving it if several branches may move it.
    fn keep(&mut self, e: &mut Expr) {
        match e {
            Expr::Paren(p) => self.keep(&mut p.expr),
            Expr::Group(p) => self.keep(&mut p.expr),
            Expr::Path(p) => match self.keeping(&p.path) {
                Keeping::Moved | Keeping::Impossible => {}
                Keeping::Cloned => *e = Expr::Verbatim(quote!(::core::clone::Clone::clone(&#p))),
                Keeping::Reborrowed => *e = Expr::Verbatim(quote!((&mut *#p))),
            },
            // a field moved out of a local
            Expr::Field(f) if self.keeps_part(f, false) => {
                *e = Expr::Verbatim(quote!(::core::clone::Clone::clone(&#f)))
            }
            // the value yielded by a block or a branch
            Expr::Block(b) => self.keep_last(&mut b.block),
            Expr::Unsafe(b) => self.keep_last(&mut b.block),
            Expr::If(i) => {
                self.within(|moving| {
                    moving.bind_tests(&i.cond);
                    moving.keep_last(&mut i.then_branch)
                });
                if let Some((_, otherwise)) = &mut i.else_branch {
                    self.keep(otherwise)
                }
            }
            Expr::Match(m) => {
                for a in &mut m.arms {
                    self.within(|moving| {
                        moving.bind(&a.pat);
                        moving.keep(&mut a.body)
                    })
                }
            }
            _ => {}
        }
    }

    /// Like [`Self::keep`], for an expression destructured by a pattern. The pattern does not necessarily move the
    /// field.
    fn keep_matched(&mut self, e: &mut Expr) {
        match e {
            Expr::Paren(p) => self.keep_matched(&mut p.expr),
            Expr::Field(f) if !self.keeps_part(f, true) => {}
            e => self.keep(e),
        }
    }

    fn keeps_part(&self, f: &syn::ExprField, matched: bool) -> bool {
        part(f)
            .is_some_and(|(name, member)| self.is_local(name) && (self.locals.parts)(name, member, matched))
    }

    /// Returns how the map keeps a local that is moved at the current point.
    fn keeping(&self, path: &syn::Path) -> Keeping {
        match path.get_ident().filter(|name| self.is_local(name)) {
            Some(name) => (self.locals.keeping)(name),
            None => Keeping::Moved,
        }
    }

    /// Checks that a name is not bound by the expression itself.
    fn is_local(&self, name: &Ident) -> bool {
        self.bound.iter().all(|b| name != b)
    }

    /// Calls `run` in a new scope.
    fn within(&mut self, run: impl FnOnce(&mut Self)) {
        let outside = self.bound.len();
        run(self);
        self.bound.truncate(outside);
    }

    fn bind(&mut self, p: &Pat) {
        self.bound.extend(bound_by(p))
    }

    /// Binds the names of the `let`s in a condition.
    fn bind_tests(&mut self, condition: &Expr) {
        match condition {
            Expr::Let(l) => self.bind(&l.pat),
            Expr::Binary(b) => {
                self.bind_tests(&b.left);
                self.bind_tests(&b.right)
            }
            Expr::Paren(p) => self.bind_tests(&p.expr),
            Expr::Group(p) => self.bind_tests(&p.expr),
            _ => {}
        }
    }

    /// Makes a `move` closure capture a clone of each local that several branches may move.
    fn kept_by(&self, c: &syn::ExprClosure) -> Option<Expr> {
        let inputs: Vec<String> = c.inputs.iter().flat_map(bound_by).collect();
        let locals = captured(c)
            .into_iter()
            .filter(|name| self.is_local(name) && inputs.iter().all(|input| name != input));
        let kept: Vec<_> = locals
            .filter_map(|name| match (self.locals.keeping)(&name) {
                Keeping::Moved | Keeping::Impossible => None,
                Keeping::Cloned => Some(quote!(let #name = ::core::clone::Clone::clone(&#name);)),
                Keeping::Reborrowed => Some(quote!(let #name = &mut *#name;)),
            })
            .collect();
        (!kept.is_empty()).then(|| Expr::Verbatim(quote!({ #(#kept)* #c })))
    }

    fn keep_last(&mut self, b: &mut Block) {
        self.within(|moving| {
            for s in &b.stmts {
                if let Stmt::Local(l) = s {
                    moving.bind(&l.pat)
                }
            }
            if let Some(Stmt::Expr(e, None)) = b.stmts.last_mut() {
                moving.keep(e)
            }
        })
    }
}

/// Returns the local to which a field belongs and the outermost of the fields, `a` in `local.a.b`.
pub(crate) fn part(f: &syn::ExprField) -> Option<(&Ident, &syn::Member)> {
    match peel(&f.base) {
        Expr::Path(p) => Some((p.path.get_ident()?, &f.member)),
        Expr::Field(base) => part(base),
        _ => None,
    }
}

impl Moving<'_> {
    /// Visits the parts of an expression, each in the scope of the names bound around it. The value destructured by a
    /// pattern is outside that pattern's scope: `if let Some(name) = name`.
    fn visit_inside(&mut self, e: &mut Expr) {
        match e {
            Expr::If(i) => {
                self.within(|moving| {
                    moving.visit_test(&mut i.cond);
                    moving.visit_block_mut(&mut i.then_branch)
                });
                if let Some((_, otherwise)) = &mut i.else_branch {
                    self.visit_expr_mut(otherwise)
                }
            }
            Expr::While(w) => self.within(|moving| {
                moving.visit_test(&mut w.cond);
                moving.visit_block_mut(&mut w.body)
            }),
            Expr::Match(m) => {
                self.visit_expr_mut(&mut m.expr);
                for a in &mut m.arms {
                    self.within(|moving| {
                        moving.bind(&a.pat);
                        moving.visit_arm_mut(a)
                    })
                }
            }
            Expr::ForLoop(l) => {
                self.visit_expr_mut(&mut l.expr);
                self.within(|moving| {
                    moving.bind(&l.pat);
                    moving.visit_block_mut(&mut l.body)
                })
            }
            Expr::Let(_) => self.visit_test(e),
            e => visit_mut::visit_expr_mut(self, e),
        }
    }

    /// Visits the arguments of a macro that evaluates each of them once.
    fn visit_arguments(&mut self, m: &mut syn::Macro) {
        let repeat = |input: syn::parse::ParseStream<'_>| {
            let value: Expr = input.parse()?;
            let semicolon: Token![;] = input.parse()?;
            input.parse::<TokenStream>().map(|count| (value, semicolon, count))
        };
        if let Ok((mut value, semicolon, count)) = m.parse_body_with(repeat) {
            self.visit_expr_mut(&mut value);
            self.keep(&mut value);
            m.tokens = quote!(#value #semicolon #count);
        } else if let Ok(mut values) = m.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            for value in &mut values {
                self.visit_expr_mut(value);
                self.keep(value);
            }
            m.tokens = values.into_token_stream();
        }
    }

    /// Visits a condition. Later operands are in the scope of earlier `let`s.
    fn visit_test(&mut self, condition: &mut Expr) {
        match condition {
            Expr::Binary(b) if matches!(b.op, syn::BinOp::And(_)) => {
                self.visit_test(&mut b.left);
                self.visit_test(&mut b.right)
            }
            Expr::Let(l) => {
                self.visit_expr_mut(&mut l.expr);
                self.keep_matched(&mut l.expr);
                self.bind(&l.pat)
            }
            e => self.visit_expr_mut(e),
        }
    }
}

/// Checks for a macro whose arguments are moved: `vec!` and `pure!`.
fn keeps_arguments(m: &syn::Macro) -> bool {
    let vec = m.path.segments.last().is_some_and(|s| s.ident == "vec");
    match macro_kind(&m.path) {
        MacroKind::Trust => true,
        kind => vec && kind == MacroKind::Pure,
    }
}

fn diverges(m: &syn::Macro) -> bool {
    macro_kind(&m.path) == MacroKind::Diverge
}

/// Counts the iterations of a loop.
fn count(body: &mut Block) {
    let mapper = super::mapper();
    body.stmts.insert(0, Stmt::Expr(Expr::Verbatim(quote!(#mapper.step())), Some(Default::default())))
}

impl VisitMut for Moving<'_> {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        // `?` and `return` inside a closure or an async block do not leave the function
        if let Expr::Closure(c) = e {
            if let Some(kept) = self.kept_by(c) {
                *e = kept
            }
            return;
        }
        if matches!(e, Expr::Async(_)) {
            return;
        }
        // a destructuring assignment names places, which it does not move
        if let Expr::Assign(a) = e
            && matches!(*a.left, Expr::Tuple(_) | Expr::Array(_) | Expr::Struct(_) | Expr::Call(_))
        {
            self.visit_expr_mut(&mut a.right);
            return self.keep(&mut a.right);
        }

        self.visit_inside(e);
        match e {
            Expr::Tuple(t) => t.elems.iter_mut().for_each(|e| self.keep(e)),
            Expr::Array(t) => t.elems.iter_mut().for_each(|e| self.keep(e)),
            Expr::Struct(s) => s.fields.iter_mut().for_each(|f| {
                self.keep(&mut f.expr);
                if matches!(f.expr, Expr::Verbatim(_)) {
                    f.colon_token.get_or_insert_default();
                }
            }),
            Expr::Call(c) => c.args.iter_mut().for_each(|e| self.keep(e)),
            Expr::MethodCall(c) => {
                if takes_itself(&c.method.to_string()) {
                    self.keep(&mut c.receiver)
                }
                c.args.iter_mut().for_each(|e| self.keep(e))
            }
            Expr::Match(m) => self.keep_matched(&mut m.expr),
            Expr::Assign(a) => self.keep(&mut a.right),
            Expr::Repeat(r) => self.keep(&mut r.expr),
            Expr::Binary(b) if appends(b) => self.keep(&mut b.left),
            Expr::Break(b) => b.expr.iter_mut().for_each(|e| self.keep(e)),
            // `Err(..)?` has no success value whose type could be inferred
            Expr::Try(t) if is_error(&t.expr) => *e = Expr::Verbatim(self.leave(false)),
            Expr::Try(t) => {
                let inner = &t.expr;
                let value = Ident::new("__value", Span::mixed_site());
                let leave = self.leave(false);
                *e = Expr::Verbatim(quote!((match ::beehive::__private::TryLike::ok_like(#inner) {
                    ::core::option::Option::Some(#value) => #value,
                    ::core::option::Option::None => #leave
                })));
            }
            Expr::Return(r) => {
                let leave = self.leave(is_quiet(r.expr.as_deref()));
                *e = Expr::Verbatim(leave);
            }
            Expr::Macro(m) if diverges(&m.mac) => {
                let leave = self.leave(false);
                *e = Expr::Verbatim(leave);
            }
            Expr::Macro(m) if keeps_arguments(&m.mac) => self.visit_arguments(&mut m.mac),
            Expr::Macro(m) if passes_on(&m.mac) => {
                // logging is left out
                let inner = m.mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
                let mut inner = inner.unwrap_or_default();
                inner.iter_mut().for_each(|e| self.visit_expr_mut(e));
                // one argument in parentheses, several as a tuple
                let comma = (inner.len() > 1).then(|| quote!(,));
                *e = Expr::Verbatim(quote!((#inner #comma)));
            }
            Expr::ForLoop(l) => {
                self.keep(&mut l.expr);
                count(&mut l.body)
            }
            Expr::While(l) => count(&mut l.body),
            Expr::Loop(l) => count(&mut l.body),
            _ => {}
        }
    }

    fn visit_stmt_mut(&mut self, s: &mut Stmt) {
        if let Stmt::Macro(m) = s
            && diverges(&m.mac)
        {
            let leave = self.leave(false);
            *s = Stmt::Expr(Expr::Verbatim(leave), Some(Default::default()));
            return;
        }
        if let Stmt::Macro(m) = s
            && macro_kind(&m.mac.path) == MacroKind::Log
        {
            // an expression with other logging is not printed
            *s = Stmt::Expr(Expr::Verbatim(TokenStream::new()), Some(Default::default()));
            return;
        }
        if let Stmt::Expr(Expr::MethodCall(c), _) = s
            && let Expr::Path(p) = peel(&c.receiver)
            && p.path.get_ident().is_some_and(|name| (self.locals.context)(name))
        {
            *s = Stmt::Expr(Expr::Verbatim(TokenStream::new()), Some(Default::default()));
            return;
        }
        visit_mut::visit_stmt_mut(self, s)
    }

    fn visit_block_mut(&mut self, b: &mut Block) {
        self.within(|moving| visit_mut::visit_block_mut(moving, b))
    }

    fn visit_local_mut(&mut self, l: &mut syn::Local) {
        visit_mut::visit_local_mut(self, l);
        if let Some(init) = &mut l.init {
            match pattern_name(&l.pat) {
                Some(_) => self.keep(&mut init.expr),
                None => self.keep_matched(&mut init.expr),
            }
        }
        self.bind(&l.pat)
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}
