//! Determines properties of a local's type without knowing the type: whether it is a reference, whether it may be
//! cloned, and whether it holds a `&mut`.

use super::scope::Variable;
use super::views::taken_from;
use crate::known::methods::{adapts, returns_mutable_view, yields_items};
use crate::known::types::{is_frozen, mentions_mutable_views};
use crate::known::{call_only_reads, is_upper, owns_its_result};
use crate::pass::Pass;
use crate::pass::closures::yields_values;
use crate::syntax::{last_name, names, peel};
use quote::ToTokens;
use syn::{Expr, ImplItemFn, Pat, Type};

/// The known properties of a local's type, which determine how the map can keep the local where the handler moves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::pass) enum Owner {
    /// The type is unknown. It is assumed to be `Clone`.
    Unknown,
    /// A `&mut`. `holds` says whether the value it refers to may itself hold a `&mut`.
    Reference { holds: bool },
    /// A `&`, which is `Copy`.
    Shared,
    /// A type that is `Clone`.
    Cloneable,
    /// A tuple or a struct, and not a reference to one. `cloned` says whether the whole may be `Clone`.
    Built { cloned: bool },
    /// A type that holds a `&mut`, or a type parameter or `dyn`, which need not be `Clone`.
    Opaque,
}

impl Pass<'_, '_> {
    /// Calls `run`, which declares a local whose type has the properties `owner`.
    pub(in crate::pass) fn with_owner<T>(&mut self, owner: Owner, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.scopes.owner, owner);
        let out = run(self);
        self.scopes.owner = before;
        out
    }

    /// Returns the known properties of the type of the locals that a pattern binds to an expression or to parts of it.
    pub(in crate::pass) fn owner(&self, declared: &Pat, of: &Expr) -> Owner {
        let whole = match declared {
            Pat::Type(t) if self.is_uncloned(t.ty.to_token_stream()) => {
                return Owner::Built { cloned: false };
            }
            Pat::Type(t) => return owner_of_declared(&t.ty),
            Pat::Ident(i) => i.by_ref.is_none() && i.subpat.is_none(),
            _ => false,
        };
        let of_place = |p: &syn::ExprPath| p.path.get_ident().and_then(|i| self.find(i));
        match peel(of) {
            Expr::Reference(r) if r.mutability.is_some() && whole => {
                Owner::Reference { holds: self.holds(&r.expr) }
            }
            Expr::Reference(r) if whole && !self.holds(&r.expr) => Owner::Shared,
            Expr::Path(p) if whole => of_place(p).map_or(Owner::Unknown, |id| self.variable(id).owner),
            e if self.holds(e) => Owner::Opaque,
            Expr::Struct(_) | Expr::Tuple(_) if whole => {
                Owner::Built { cloned: !self.is_uncloned(of.to_token_stream()) }
            }
            Expr::Call(c) if self.is_uncloned(c.func.to_token_stream()) => Owner::Built { cloned: false },
            _ => Owner::Unknown,
        }
    }

    /// Checks whether tokens name a type declared by the function itself without `Clone`.
    fn is_uncloned(&self, tokens: proc_macro2::TokenStream) -> bool {
        if self.uncloned_types.is_empty() {
            return false;
        }
        let mut mentioned = vec![];
        names(tokens, &mut mentioned);
        mentioned.iter().any(|name| self.uncloned_types.iter().any(|of| of == name))
    }

    /// Checks whether the value of an expression visibly holds a `&mut`, or some other value that is not `Clone`.
    /// Unlike [`Self::views`], this misses everything that only a type would reveal.
    fn holds(&self, e: &Expr) -> bool {
        let yields = |b: &syn::Block| match b.stmts.last() {
            Some(syn::Stmt::Expr(e, None)) => self.holds(e),
            _ => false,
        };
        match peel(e) {
            Expr::Reference(r) => r.mutability.is_some() || self.holds(&r.expr),
            Expr::Path(p) => match p.path.get_ident().and_then(|i| self.find(i)) {
                Some(id) => {
                    matches!(self.variable(id).owner, Owner::Reference { .. } | Owner::Opaque)
                        || self.has_stored(id)
                }
                None => false,
            },
            Expr::Field(f) => self.holds(&f.base),
            Expr::Index(i) => self.holds(&i.expr),
            Expr::Try(t) => self.holds(&t.expr),
            Expr::Tuple(t) => t.elems.iter().any(|e| self.holds(e)),
            Expr::Array(t) => t.elems.iter().any(|e| self.holds(e)),
            Expr::Struct(s) => s.fields.iter().any(|f| self.holds(&f.expr)),
            Expr::MethodCall(c) => {
                let method = c.method.to_string();
                let drains = matches!(method.as_str(), "drain" | "splice" | "extract_if");
                if yields_items(&method) || method == "take" && c.args.is_empty() {
                    return self.holds_items(e);
                }
                let passes_on = !owns_its_result(&method) && !call_only_reads(&method, c.args.len());
                drains || returns_mutable_view(&method) || passes_on && self.holds(&c.receiver)
            }
            Expr::Call(c) => {
                if let Some(place) = taken_from(c) {
                    return self.holds(place);
                }
                let name = match peel(&c.func) {
                    Expr::Path(p) => last_name(&p.path),
                    Expr::Closure(closure) => return !yields_values(closure),
                    _ => return true,
                };
                let returned = self.unit.versions(&name).iter().any(|item| {
                    matches!(&item.sig.output, syn::ReturnType::Type(_, ty) if mentions_mutable_views(ty.to_token_stream()))
                });
                // the function may be one of this block's functions that takes a `&mut` but returns a different value
                let passes_on = is_upper(&name) || self.unit.versions(&name).is_empty();
                returned || returns_mutable_view(&name) || passes_on && c.args.iter().any(|a| self.holds(a))
            }
            Expr::Closure(_) => !self.views(e).is_empty(),
            Expr::Macro(m) => mentions_mutable_views(m.mac.tokens.clone()),
            Expr::Block(b) => yields(&b.block),
            Expr::If(i) => {
                yields(&i.then_branch) || i.else_branch.as_ref().is_some_and(|(_, e)| self.holds(e))
            }
            Expr::Match(m) => m.arms.iter().any(|a| self.holds(&a.body)),
            // the value given to a loop by `break`
            Expr::Loop(l) => l.body.to_token_stream().to_string().contains("& mut"),
            _ => false,
        }
    }

    /// Checks whether the items of an iterator visibly hold a `&mut`. A `&mut` to the iterator is not one.
    fn holds_items(&self, e: &Expr) -> bool {
        match peel(e) {
            Expr::Reference(r) => self.holds(&r.expr),
            Expr::Path(p) => {
                match p.path.get_ident().and_then(|i| self.find(i)).map(|id| self.variable(id)) {
                    Some(Variable { owner: Owner::Reference { holds }, .. }) => *holds,
                    _ => self.holds(e),
                }
            }
            Expr::MethodCall(c) => {
                let method = c.method.to_string();
                let closure = c.args.last().and_then(|a| match peel(a) {
                    Expr::Closure(closure) => Some(closure),
                    _ => None,
                });
                // the initial value of a `fold` may be its result
                let given = || c.args.iter().any(|a| !matches!(peel(a), Expr::Closure(_)) && self.holds(a));
                match (method.as_str(), closure) {
                    (
                        "map" | "filter_map" | "flat_map" | "map_while" | "scan" | "find_map",
                        Some(closure),
                    )
                    | ("fold" | "rfold" | "try_fold", Some(closure))
                        if yields_values(closure) =>
                    {
                        given()
                    }
                    // these methods yield the items they take out of the collection
                    ("by_ref" | "drain" | "splice" | "extract_if", _) => self.holds_items(&c.receiver),
                    (method, _) if adapts(method) || yields_items(method) => {
                        self.holds_items(&c.receiver) || given()
                    }
                    _ => self.holds(e),
                }
            }
            e => self.holds(e),
        }
    }
}

/// Returns the known properties of a parameter's type. A type parameter is `Clone` only if its bounds say so.
pub(in crate::pass) fn owner_of_parameter(ty: &Type, item: &ImplItemFn) -> Owner {
    let copies = |tokens: proc_macro2::TokenStream| {
        let mut mentioned = vec![];
        names(tokens, &mut mentioned);
        mentioned.iter().any(|name| name == "Clone" || name == "Copy")
    };
    let of_bounds = |clone: bool| if clone { Owner::Cloneable } else { Owner::Opaque };
    match ty {
        Type::ImplTrait(t) => of_bounds(copies(t.to_token_stream())),
        Type::Path(p) => match p.path.get_ident() {
            Some(name) => {
                let parameter = item.sig.generics.type_params().find(|g| g.ident == *name);
                let clauses = item.sig.generics.where_clause.iter().flat_map(|w| &w.predicates);
                parameter.map_or(owner_of_type(ty), |g| {
                    of_bounds(
                        copies(g.bounds.to_token_stream())
                            || clauses.map(|c| c.to_token_stream()).any(copies),
                    )
                })
            }
            None => owner_of_type(ty),
        },
        ty => owner_of_type(ty),
    }
}

/// Like [`owner_of_type`], for the declared type of a local. A local cannot hold anything not named by its declared
/// type.
fn owner_of_declared(ty: &Type) -> Owner {
    match owner_of_type(ty) {
        Owner::Unknown if is_frozen(ty) => Owner::Cloneable,
        owner => owner,
    }
}

fn owner_of_type(ty: &Type) -> Owner {
    match ty {
        Type::Reference(r) if r.mutability.is_some() => {
            Owner::Reference { holds: owner_of_type(&r.elem) == Owner::Opaque || holds_references(&r.elem) }
        }
        Type::Reference(_) => Owner::Shared,
        ty => {
            let mut mentioned = vec![];
            names(ty.to_token_stream(), &mut mentioned);
            // `Rc<dyn Fn()>` is `Clone`, and so is `fn(&mut u64)`
            let shared = mentioned.iter().any(|name| matches!(name.as_str(), "Rc" | "Arc" | "fn"));
            match !shared && mentioned.iter().any(|name| matches!(name.as_str(), "dyn" | "mut")) {
                true => Owner::Opaque,
                false => Owner::Unknown,
            }
        }
    }
}

/// Checks whether a type is a `&mut`, or visibly an iterator over them.
fn holds_references(ty: &Type) -> bool {
    matches!(ty, Type::Reference(r) if r.mutability.is_some()) || {
        let mut mentioned = vec![];
        names(ty.to_token_stream(), &mut mentioned);
        mentioned.iter().any(|name| name.ends_with("Mut") || name == "Drain")
    }
}
