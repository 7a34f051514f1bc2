//! Decides what a map leaves where its handler leaves.
//!
//! If the handler returns under a condition on state, the map cannot know whether it has returned, so the map
//! leaves only the current branch, by its label. Under a `pure || state` condition the map has a flag that
//! tells at run time whether the handler certainly takes this branch.

use crate::faults::{Fault, Faults};
use crate::known::{MacroKind, macro_kind};
use crate::syntax::{is_error, is_quiet};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, Item, Stmt};

/// A condition on state that encloses a point of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// A variable of the map that is true if the handler certainly takes the branch; `None` if that is never
    /// certain.
    pub certain: Option<Ident>,
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

fn way_out(control: &[Control], faults: Faults) -> TokenStream {
    let Some((innermost, outer)) = control.split_last() else { return quote!(return) };
    if faults.has(Fault::ExitsLeaveTheWholeMap) {
        return quote!(return);
    }

    let label = branch_label(control.len());
    match &innermost.certain {
        None => quote!(break #label),
        Some(flag) => {
            let certainly = way_out(outer, faults);
            quote!(if #flag { #certainly } else { break #label })
        }
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

/// Prints an expression as it stands in a map: `?`, `return` and diverging macros leave the map.
pub(crate) fn moved(e: &Expr, control: &[Control], faults: Faults) -> TokenStream {
    let mut e = e.clone();
    Moving { control, faults }.visit_expr_mut(&mut e);
    e.into_token_stream()
}

struct Moving<'c> {
    control: &'c [Control],
    faults: Faults,
}

impl Moving<'_> {
    fn leave(&self, quiet: bool) -> TokenStream {
        leave(quiet, self.control, self.faults)
    }
}

fn diverges(m: &syn::Macro) -> bool {
    macro_kind(&m.path) == MacroKind::Diverge
}

impl VisitMut for Moving<'_> {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        // `?` and `return` inside a closure or an async block do not leave the function
        if matches!(e, Expr::Closure(_) | Expr::Async(_)) {
            return;
        }

        visit_mut::visit_expr_mut(self, e);
        match e {
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
        visit_mut::visit_stmt_mut(self, s)
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}
