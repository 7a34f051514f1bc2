//! Destructors: a value that holds a `&mut` into a local may change the local where it goes out of scope, without a call.
//!
//! The end of a scope leaves no trace in the syntax. But only a constructor or a function can make a value whose type the
//! user has declared. A function counts as a change of the local anyway; here, a constructor does, too. So the map also makes
//! the value, in the same block, and the destructor runs in the map at the same point as in the handler.

use crate::pass::Pass;
use crate::syntax::last_name;
use crate::value::Value;
use syn::Expr;
use syn::spanned::Spanned;

/// Constructors of the standard library, whose types have no destructors of their own.
const STANDARD: &[&str] = &[
    "Some",
    "Ok",
    "Err",
    "Reverse",
    "Wrapping",
    "Saturating",
    "Borrowed",
    "Owned",
    "Included",
    "Excluded",
    "Break",
    "Continue",
];

impl Pass<'_, '_> {
    /// Marks the locals into which the parts of a value are views as changed, if the type that the path makes may have a
    /// destructor.
    pub(in crate::pass) fn changed_by_destructor<'e>(
        &mut self,
        made: &syn::Path,
        parts: impl Iterator<Item = &'e Expr>,
        value: &mut Value,
    ) {
        let ids: Vec<_> = parts.flat_map(|part| self.handed_views(part)).collect();
        let ids: Vec<_> = ids.into_iter().filter(|id| self.is_exclusive(*id)).collect();
        if ids.is_empty() || !self.may_have_destructor(made) {
            return;
        }
        for id in ids {
            self.changed(id, value, made.span())
        }
    }

    fn may_have_destructor(&self, made: &syn::Path) -> bool {
        // only the function itself can implement `Drop` for a type that it declares
        let own = made.segments.iter().any(|s| self.own_types.contains(&s.ident));
        !STANDARD.contains(&last_name(made).as_str())
            && (!own || self.mentions().iter().any(|name| name == "Drop"))
    }
}
