//! Decides which locals may change through a value, based on the origin of the value.
//!
//! A local holds a *view* of each local that may change through it. Three kinds of views do not belong to a
//! local: [`EXCLUSIVE`] is a view of a temporary behind a `&mut` (`&mut [a, b]`, `vec.leak()`,
//! `Some(x).iter_mut()`); [`INTERIOR`] is a view of a value whose type the analysis does not know and which
//! may therefore change through a shared reference (`Default::default()` may be a `Cell`); and [`GLOBAL`] is a
//! view of a static. A local with any view counts as changed by every method that is not known to only read,
//! whether its name is declared `mut` or not.

use super::borrows::takes_mutable_references;
use super::scope::{Kind, Variable};
use crate::faults::Fault;
use crate::known::methods::{
    builds_any_type, keeps_sharing, reads_by_convention, reads_constant, returns_mutable_view,
};
use crate::known::types::{builds_unknown_types, is_frozen, mentions_mutable_views};
use crate::known::{
    MacroKind, call_only_reads, is_primitive, is_upper, macro_kind, only_reads, owns_its_result,
};
use crate::pass::Pass;
use crate::pass::closures::yields_values;
use crate::syntax::{bound_by, find_name, last_name, peel};
use crate::value::{Taint, VariableId, Variables, Why};
use quote::ToTokens;
use syn::{Expr, GenericArgument, ImplItemFn, Pat, PathArguments, Type};

/// The variables into which a value may be a mutable view.
pub(in crate::pass) type Views = Variables;

/// The view of a temporary through a `&mut`.
pub(in crate::pass) const EXCLUSIVE: VariableId = 0;
/// The view of a value that may have interior mutability.
pub(in crate::pass) const INTERIOR: VariableId = 1;

/// The view of a static, or of a constant, which has the same form.
pub(in crate::pass) const GLOBAL: VariableId = 2;

/// Returns the pseudo-variables for the three views that do not belong to a local.
pub(in crate::pass) fn pseudo_variables() -> Vec<Variable> {
    (0..=GLOBAL).map(|_| Variable::nameless()).collect()
}

impl Pass<'_, '_> {
    /// Like [`Self::bind`], for bindings that may be views into the locals named by `of`.
    pub(in crate::pass) fn bind_view(
        &mut self,
        p: &Pat,
        of: &Expr,
        kind: &Kind,
        refutable: bool,
    ) -> Variables {
        let views = self.bound_views(p, of);
        let owner = self.owner(p, of);
        let defines = self.with_owner(owner, |pass| pass.bind_views(p, views, kind, refutable));
        self.declared_plain(p, of, &defines);
        defines
    }

    pub(in crate::pass) fn bind_views(
        &mut self,
        p: &Pat,
        views: Views,
        kind: &Kind,
        refutable: bool,
    ) -> Variables {
        let before = std::mem::replace(&mut self.scopes.views, views);
        let defines = self.bind(p, kind, refutable);
        self.scopes.views = before;
        defines
    }

    /// Calls `run` while closure parameters are assumed to be views into `views`.
    pub(in crate::pass) fn with_views<T>(&mut self, views: Views, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.scopes.views, views);
        let out = run(self);
        self.scopes.views = before;
        out
    }

    /// Returns the locals into which a pattern's bindings may be mutable views.
    pub(in crate::pass) fn bound_views(&self, p: &Pat, of: &Expr) -> Views {
        let by_mutable_reference = takes_mutable_references(p);
        let mut views = self.views_of(of, by_mutable_reference);
        if by_mutable_reference {
            views.insert(EXCLUSIVE);
        }

        if let Pat::Type(t) = p
            && is_frozen(&t.ty)
        {
            views.remove(&INTERIOR);
            views.remove(&GLOBAL);
        }

        views
    }

    /// Returns the locals into which an expression's value may hold a mutable view.
    pub(in crate::pass) fn views(&self, e: &Expr) -> Views {
        self.views_of(e, false)
    }

    /// Like [`Self::views`], for an expression used in place: by a method that may borrow it, or by a `ref mut`
    /// pattern.
    pub(in crate::pass) fn place_views(&self, e: &Expr) -> Views {
        self.views_of(e, true)
    }

    /// Returns the locals that may change through a value passed to a call. Changes made by methods inside the argument
    /// are recorded where these methods are called.
    pub(in crate::pass) fn handed_views(&self, argument: &Expr) -> Views {
        match peel(argument) {
            Expr::MethodCall(_) | Expr::Closure(_) => Views::new(),
            e => self.views(e),
        }
    }

    fn views_of(&self, e: &Expr, in_place: bool) -> Views {
        let mut out = Views::new();
        if self.unit.faults.has(Fault::ViewsIgnored) {
            // even with this fault, a local counts as a view of itself
            out.extend(self.root(e).filter(|id| in_place && self.variable(*id).mutable));
            return out;
        }

        match peel(e) {
            Expr::Path(p) => {
                // a moved local is not a view into itself; a local that is a view stays one
                let id = p.path.get_ident().and_then(|i| self.find(i));
                if id.is_none() && names_global(&p.path) && !self.unit.faults.has(Fault::GlobalsAreData) {
                    out.insert(GLOBAL);
                }
                out.extend(
                    id.filter(|id| in_place && self.variable(*id).mutable || !self.variable_is_plain(*id)),
                );
            }
            Expr::Field(f) => return self.views_of(&f.base, in_place),
            Expr::Index(f) => return self.copied(self.views_of(&f.expr, in_place), in_place),
            Expr::Try(r) => return self.views_of(&r.expr, in_place),
            // a `&mut` can be moved out of a box, but not out of another reference
            Expr::Unary(u) => {
                let moves = matches!(u.op, syn::UnOp::Deref(_)) && self.may_hold_boxes();
                return self.copied(self.views_of(&u.expr, in_place), in_place || moves);
            }
            Expr::Reference(r) if r.mutability.is_some() => {
                out = self.views_of(&r.expr, true);
                out.insert(EXCLUSIVE);
            }
            // nothing changes through a shared borrow, except by interior mutability
            Expr::Reference(r) => return self.copied(self.views_of(&r.expr, false), false),
            Expr::MethodCall(c) => return self.result_views(c),
            Expr::Call(c) => match taken_from(c) {
                Some(place) => return self.views_of(place, false),
                None if self.unit.faults.has(Fault::ReturnedViewsIgnored) => {}
                None => {
                    c.args.iter().for_each(|a| out.extend(self.views(a)));
                    self.call_views(c, &mut out);
                }
            },
            Expr::Tuple(t) => t.elems.iter().for_each(|a| out.extend(self.views_of(a, in_place))),
            Expr::Array(t) => t.elems.iter().for_each(|a| out.extend(self.views(a))),
            Expr::Repeat(r) => out.extend(self.views(&r.expr)),
            Expr::Struct(s) => s
                .fields
                .iter()
                .map(|f| &f.expr)
                .chain(s.rest.as_deref())
                .for_each(|a| out.extend(self.views(a))),
            Expr::Lit(_) | Expr::Binary(_) | Expr::Cast(_) | Expr::Range(_) => {}
            Expr::Macro(m) if self.is_transparent(&m.mac) => {
                let name = last_name(&m.mac.path);
                let arguments = self.unit.arena.arguments(&m.mac, &name);
                let arguments = (*arguments).as_ref().map(|a| &a.expressions[..]).unwrap_or_default();
                // strings and booleans are not views
                let holds = matches!(name.as_str(), "pure" | "vec");
                arguments.iter().filter(|_| holds).for_each(|a| out.extend(self.views(a)));
            }
            // branches, blocks, closures and other macros may hold a view into any local that may change inside
            // them
            other => {
                let read = self.unit.read(other);
                if read.mutable {
                    out.insert(EXCLUSIVE);
                }
                if read.unknown {
                    out.insert(INTERIOR);
                }

                for name in &read.names {
                    let Some(id) = self.find_name(name) else { continue };
                    let changes = self.variable(id).mutable && read.borrowed.contains(name);
                    if (changes || !self.variable_is_plain(id)) && !self.is_rebound(name, other) {
                        out.insert(id);
                    }
                }
            }
        }

        out
    }

    /// Checks whether each mention of a name in a `match` is in an arm whose pattern binds the name, and so denotes a
    /// different local.
    fn is_rebound(&self, name: &str, e: &Expr) -> bool {
        let Expr::Match(m) = e else { return false };
        let mentions = |e: &Expr| self.unit.read(e).names.iter().any(|one| one == name);
        let binds = |p: &Pat| !matches!(p, Pat::Guard(_)) && bound_by(p).iter().any(|one| one == name);
        let is_different = |arm: &syn::Arm| {
            binds(&arm.pat) || !mentions(&arm.body) && find_name(arm.pat.to_token_stream(), name).is_none()
        };
        !mentions(&m.expr) && m.arms.iter().all(is_different)
    }

    /// Checks for a macro whose value consists only of its arguments, or of nothing that could be a view.
    fn is_transparent(&self, m: &syn::Macro) -> bool {
        let name = last_name(&m.path);
        matches!(macro_kind(&m.path), MacroKind::Trust | MacroKind::Pure)
            && matches!(name.as_str(), "pure" | "vec" | "format" | "matches" | "concat" | "stringify")
            && !self.own_macros.contains(&name)
            && self.unit.arena.arguments(m, &name).is_some()
    }

    /// Checks whether the function, or the result of a function it may call, mentions a `Box`.
    fn may_hold_boxes(&self) -> bool {
        self.mentions().iter().any(|name| name == "Box") || self.unit.returns_boxes()
    }

    /// Returns the views that a copy of a place still holds, given the views of the place. A `&mut` cannot be
    /// copied, but a reference to a `Cell` can.
    fn copied(&self, views: Views, in_place: bool) -> Views {
        match in_place {
            true => views,
            false => views
                .into_iter()
                .filter(|id| self.reaches(*id, |v, _| v == INTERIOR || v == GLOBAL))
                .collect(),
        }
    }

    /// Returns the locals into which a method's result may hold a mutable view.
    fn result_views(&self, c: &syn::ExprMethodCall) -> Views {
        let method = c.method.to_string();
        if self.named_field(&c.receiver).is_some() {
            return Views::new();
        }
        if owns_its_result(&method) {
            return match keeps_sharing(&method) {
                true => self.copied(self.views_of(&c.receiver, false), false),
                false => Views::new(),
            };
        }

        if let Some(given) = computed_by_closure(c) {
            return given.flat_map(|a| self.views(a)).collect();
        }

        // nothing changes through a shared borrow
        let mut out = self.views_of(&c.receiver, !call_only_reads(&method, c.args.len()));
        c.args.iter().for_each(|a| out.extend(self.views(a)));
        if returns_mutable_view(&method) {
            out.insert(EXCLUSIVE);
        }

        let types = c.turbofish.as_ref().map(|t| &t.args);
        let known = |t: &GenericArgument| matches!(t, GenericArgument::Type(t) if is_frozen(t));
        match types {
            Some(types) if !types.is_empty() && types.iter().all(known) => {
                out.remove(&INTERIOR);
            }
            _ if builds_any_type(&method) => {
                out.insert(INTERIOR);
            }
            _ => {}
        }

        out
    }

    /// Adds the views held by the result of a call in addition to those of its arguments.
    fn call_views(&self, c: &syn::ExprCall, out: &mut Views) {
        let p = match peel(&c.func) {
            Expr::Path(p) => p,
            closure @ Expr::Closure(_) => return out.extend(self.views(closure)),
            // a closure held by a local may return its captured values
            held => {
                out.extend(self.place_views(held));
                return out.extend([EXCLUSIVE, INTERIOR]);
            }
        };

        if let Some(id) = p.path.get_ident().and_then(|i| self.find(i)) {
            // a closure may return its captured values
            out.extend(
                Some(id).filter(|id| !self.variable_is_plain(*id) && !self.variable(*id).yields_values),
            );
            return;
        }

        let last = last_name(&p.path);
        if is_upper(&last) {
            return;
        }

        let mut before = p.path.segments.iter().rev().skip(1);
        let own = before.next().filter(|s| s.ident == "Self" && p.path.segments.len() == 2);
        match own.map(|_| self.unit.versions(&last)) {
            Some(versions) if !versions.is_empty() => {
                let item = versions[0];
                let syn::ReturnType::Type(_, ty) = &item.sig.output else { return };
                if mentions_mutable_views(ty.to_token_stream()) {
                    out.insert(EXCLUSIVE);
                }
                let builds = |item: &&ImplItemFn| builds_unknown_types(item.block.to_token_stream());
                if !is_frozen(ty) && versions.iter().any(builds) {
                    out.insert(INTERIOR);
                }
            }
            _ => {
                if returns_mutable_view(&last) {
                    out.insert(EXCLUSIVE);
                }

                let bare = PathArguments::None;
                let tokens = p.path.to_token_stream();
                let arguments = p.path.segments.last().map_or(&bare, |s| &s.arguments);
                if p.qself.is_some() || builds_unknown_types(tokens) || !arguments.is_empty() {
                    out.insert(INTERIOR);
                }
            }
        }
    }

    /// Checks that a local is not a view.
    pub(in crate::pass) fn variable_is_plain(&self, id: VariableId) -> bool {
        self.variable(id).views.is_empty()
    }

    /// Checks whether a method call may change a local, given that its receiver is a view into the local.
    pub(in crate::pass) fn may_change(&self, id: VariableId, method: &str) -> bool {
        let interior = || self.reaches(id, |v, _| v == INTERIOR);
        self.is_exclusive(id) || !reads_by_convention(method) && interior()
    }

    /// Checks whether a value may refer to a static.
    pub(in crate::pass) fn reaches_global(&self, e: &Expr) -> bool {
        self.views(e).iter().any(|id| self.reaches(*id, |v, _| v == GLOBAL))
    }

    /// Checks whether a method may act on a static, given the views of its receiver and of its arguments. If
    /// so, it would act once in the map and again in the handler.
    pub(in crate::pass) fn acts_on_global(&self, c: &syn::ExprMethodCall, views: &Views) -> bool {
        if self.unit.faults.has(Fault::StaticsAreFixed) {
            return false;
        }

        let global = |views: &Views| views.iter().any(|id| self.reaches(*id, |v, _| v == GLOBAL));
        let method = c.method.to_string();
        // a constant is passed by value, a static by reference
        let handed = |a: &Expr| matches!(peel(a), Expr::Reference(_)) && global(&self.views(a));
        let reads = only_reads(&method) || reads_by_convention(&method) || owns_its_result(&method);
        let direct = matches!(peel(&c.receiver), Expr::Path(_) | Expr::Field(_) | Expr::Reference(_));
        let reads = reads || reads_constant(&method, c.args.len(), direct);
        !reads && (global(views) || c.args.iter().any(handed))
    }

    /// Handles a method called as a statement on a value of unknown type. Such a method is called for its effect, which
    /// may lie outside the value and must not happen both in the map and in the handler. The methods of `Cell` have no
    /// such effect.
    pub(in crate::pass) fn called_for_its_effect(&mut self, e: &Expr) {
        let Expr::MethodCall(c) = peel(e) else { return };
        let method = c.method.to_string();
        let of_cell = matches!(method.as_str(), "set" | "replace" | "take" | "swap" | "update");
        if of_cell || only_reads(&method) || self.trust > 0 || self.unit.trusted.contains(&method) {
            return;
        }

        for id in self.place_views(&c.receiver) {
            if !self.is_exclusive(id) && self.may_change(id, &method) {
                self.poison(id, Taint::new(Why::Method(method.clone()), c.method.span()));
            }
        }
    }

    /// Checks whether a local, or a local into which it is a view, may change by means other than interior mutability.
    pub(in crate::pass) fn is_exclusive(&self, id: VariableId) -> bool {
        let fixed = self.unit.faults.has(Fault::TemporariesAreFixed);
        self.reaches(id, |id, v| id == EXCLUSIVE && !fixed || v.mutable)
    }

    /// Checks whether a local, or any local into which it is a view, meets a condition.
    pub(in crate::pass) fn reaches(
        &self,
        id: VariableId,
        fulfils: impl Fn(VariableId, &Variable) -> bool,
    ) -> bool {
        let (mut todo, mut seen) = (vec![id], Views::new());
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                let v = self.variable(id);
                if fulfils(id, v) {
                    return true;
                }
                todo.extend(&v.views);
            }
        }

        false
    }
}

/// Checks whether a path names a static or a constant in capitals. A path below a type names a constant.
fn names_global(path: &syn::Path) -> bool {
    let mut names = path.segments.iter().rev().map(|s| s.ident.to_string());
    let capitals = names.next().is_some_and(|n| is_upper(&n) && !n.contains(char::is_lowercase));
    capitals && !names.next().is_some_and(|of| is_upper(&of) || is_primitive(&of))
}

/// Returns the views held by a helper's parameter, by its type. A type parameter may be a `&mut`.
pub(in crate::pass) fn of_parameter(ty: &Type, item: &ImplItemFn) -> Views {
    let generic = |name: &syn::Ident| item.sig.generics.type_params().any(|g| g.ident == *name);
    let exclusive = match ty {
        Type::ImplTrait(_) => true,
        Type::Path(p) if p.path.get_ident().is_some_and(generic) => true,
        ty => mentions_mutable_views(ty.to_token_stream()),
    };
    exclusive.then_some(EXCLUSIVE).into_iter().collect()
}

/// Recognizes a method whose result is computed by its closures (`fold(0, |sum, x| sum + x)`), so that it is not a
/// view, or is one of the other arguments. Those arguments are returned.
fn computed_by_closure(c: &syn::ExprMethodCall) -> Option<impl Iterator<Item = &Expr>> {
    let of_closures = |a: &Expr| match peel(a) {
        Expr::Closure(closure) => yields_values(closure),
        _ => true,
    };
    let computes = matches!(c.method.to_string().as_str(), "fold" | "rfold" | "map_or" | "map_or_else");
    let is_closure = |a: &Expr| matches!(peel(a), Expr::Closure(_));
    let last = c.args.last().is_some_and(is_closure);
    (computes && last && c.args.iter().all(of_closures))
        .then(|| c.args.iter().filter(move |a| !is_closure(a)))
}

/// Returns the local, or the part of a local, whose old value a call returns: `mem::take(&mut local)`,
/// `mem::replace(&mut local, new)`. The returned value cannot borrow from the local.
pub(in crate::pass) fn taken_from(c: &syn::ExprCall) -> Option<&Expr> {
    let Expr::Path(p) = peel(&c.func) else { return None };
    let mut names = p.path.segments.iter().rev().map(|s| s.ident.to_string());
    let takes =
        matches!(names.next().as_deref(), Some("take" | "replace")) && names.next().as_deref() == Some("mem");
    match c.args.first().map(peel) {
        Some(Expr::Reference(r)) if takes && p.qself.is_none() => {
            let mut place = peel(&r.expr);
            while let Expr::Field(f) = place {
                place = peel(&f.base);
            }
            matches!(place, Expr::Path(_)).then_some(&*r.expr)
        }
        _ => None,
    }
}
