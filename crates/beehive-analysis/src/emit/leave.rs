//! Decides what a map leaves at a point where its handler leaves: the whole map, or only the current branch.
//!
//! If the handler returns under a condition on state, the map cannot know whether it has returned, so the map
//! leaves only the current branch, by its label. Under a `pure || state` condition the map has a flag that
//! tells at run time whether the handler certainly takes this branch.

use crate::faults::{Fault, Faults};
use crate::known::{MacroKind, macro_kind, passes_on};
use crate::methods::takes_itself;
use crate::syntax::{bound_inside, is_error, is_quiet, peel};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Item, Stmt, Token};

/// A condition on state that encloses a point of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// The cases in which the handler certainly takes the branch; `None` if that is never certain.
    pub certain: Option<Certain>,
}

/// Variables of the map about a branch that the handler certainly takes in some cases.
#[derive(Clone, Debug)]
pub(crate) struct Certain {
    /// Whether the handler certainly takes the branch.
    pub flag: Ident,
    /// Set where the handler then leaves more than the branch. The code after the branch reads it, because a
    /// branch may be a closure, which a `break` cannot leave.
    pub left: Ident,
}

/// Returns the label of a branch under `depth` conditions on state.
pub(crate) fn branch_label(depth: usize) -> syn::Lifetime {
    syn::Lifetime::new(&format!("'__bh{depth}"), Span::mixed_site())
}

/// Prints the code that leaves the map or the current branch. Unless `quiet`, the exit is an effect, because
/// the sender is answered.
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

/// What a map does with a local where its handler moves the local.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keeping {
    /// The map moves the local, too.
    Moved,
    /// The map moves a clone, because other branches of the map may move the local as well.
    Cloned,
    /// Like [`Keeping::Cloned`], for a `&mut`, which cannot be cloned.
    Reborrowed,
    /// The local may hold a `&mut`, so that the map can neither clone nor reborrow it.
    Impossible,
}

/// The properties of locals, by name, that printing depends on.
pub(crate) struct Locals<'l> {
    /// What the map does with a local where an expression would move it.
    pub keeping: &'l dyn Fn(&Ident) -> Keeping,
    /// Whether a local is the context, whose calls as statements are left out.
    pub context: &'l dyn Fn(&Ident) -> bool,
}

/// Prints an expression as it stands in a map: `?`, `return` and diverging macros leave the map. `owned` is set
/// where the value of the expression is moved.
pub(crate) fn moved(
    e: &Expr,
    owned: bool,
    control: &[Control],
    locals: &Locals<'_>,
    faults: Faults,
) -> TokenStream {
    if stands(e) && !(owned && matches!(peel(e), Expr::Path(_))) {
        return e.to_token_stream();
    }

    let mut moving = Moving { control, locals, faults, bound: bound_inside(e) };
    let mut e = e.clone();
    moving.visit_expr_mut(&mut e);
    if owned {
        moving.keep(&mut e);
    }
    e.into_token_stream()
}

/// Checks for an expression that neither leaves the function nor moves a local, which is true of most keys.
/// It is printed as it stands, which is much cheaper than changing a copy of it.
fn stands(e: &Expr) -> bool {
    match e {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Field(f) => stands(&f.base),
        Expr::Reference(r) => stands(&r.expr),
        Expr::Paren(p) => stands(&p.expr),
        Expr::Unary(u) => stands(&u.expr),
        Expr::Binary(b) => stands(&b.left) && stands(&b.right) && !appends(b),
        Expr::Index(i) => stands(&i.expr) && stands(&i.index),
        _ => false,
    }
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
    /// The names that the expression itself binds.
    bound: Vec<String>,
}

impl Moving<'_> {
    fn leave(&self, quiet: bool) -> TokenStream {
        leave(quiet, self.control, self.faults)
    }

    /// Clones or reborrows a local instead of moving it, where several branches may do so.
    fn keep(&self, e: &mut Expr) {
        match e {
            Expr::Paren(p) => self.keep(&mut p.expr),
            Expr::Group(p) => self.keep(&mut p.expr),
            Expr::Path(p) => {
                let Some(name) = p.path.get_ident().filter(|name| self.bound.iter().all(|b| *name != b))
                else {
                    return;
                };
                match (self.locals.keeping)(name) {
                    Keeping::Moved | Keeping::Impossible => {}
                    Keeping::Cloned => *e = Expr::Verbatim(quote!(::core::clone::Clone::clone(&#p))),
                    Keeping::Reborrowed => *e = Expr::Verbatim(quote!((&mut *#p))),
                }
            }
            // what a block or a branch yields
            Expr::Block(b) => self.keep_last(&mut b.block),
            Expr::Unsafe(b) => self.keep_last(&mut b.block),
            Expr::If(i) => {
                self.keep_last(&mut i.then_branch);
                if let Some((_, otherwise)) = &mut i.else_branch {
                    self.keep(otherwise)
                }
            }
            Expr::Match(m) => m.arms.iter_mut().for_each(|a| self.keep(&mut a.body)),
            _ => {}
        }
    }

    /// Lets a `move` closure capture a clone of each local that several branches may move.
    fn kept_by(&self, c: &syn::ExprClosure) -> Option<Expr> {
        let locals = captured(c).into_iter().filter(|name| self.bound.iter().all(|b| name != b));
        let kept: Vec<_> = locals
            .filter_map(|name| match (self.locals.keeping)(&name) {
                Keeping::Moved | Keeping::Impossible => None,
                Keeping::Cloned => Some(quote!(let #name = ::core::clone::Clone::clone(&#name);)),
                Keeping::Reborrowed => Some(quote!(let #name = &mut *#name;)),
            })
            .collect();
        (!kept.is_empty()).then(|| Expr::Verbatim(quote!({ #(#kept)* #c })))
    }

    fn keep_last(&self, b: &mut Block) {
        if let Some(Stmt::Expr(e, None)) = b.stmts.last_mut() {
            self.keep(e)
        }
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

        visit_mut::visit_expr_mut(self, e);
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
            Expr::Let(l) => self.keep(&mut l.expr),
            Expr::Match(m) => self.keep(&mut m.expr),
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

    fn visit_local_mut(&mut self, l: &mut syn::Local) {
        visit_mut::visit_local_mut(self, l);
        if let Some(init) = &mut l.init {
            self.keep(&mut init.expr)
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}
