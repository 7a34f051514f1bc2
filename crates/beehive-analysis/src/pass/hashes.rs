//! Hash maps and hash sets that the type of no local shows: in a field of a type that the function declares, in what a
//! nested function returns, or as the values of another map.

use super::Pass;
use super::order::is_plain;
use crate::faults::Fault;
use crate::syntax::{find_name, pattern_name, peel, peel_references};
use crate::value::{Taint, Value, Why};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, GenericArgument, Item, PathArguments, Type};

/// Methods that visit the elements of a collection.
const VISITS: &[&str] = &[
    "difference",
    "drain",
    "extract_if",
    "intersection",
    "into_iter",
    "into_keys",
    "into_values",
    "iter",
    "iter_mut",
    "keys",
    "retain",
    "symmetric_difference",
    "union",
    "values",
    "values_mut",
];

/// The places where a function may hold hash maps and hash sets that the types of its locals do not reveal.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hidden {
    /// Any collection may be one.
    anywhere: bool,
    /// What a map holds for a key may be one.
    inside: bool,
}

impl Pass<'_, '_> {
    fn hidden(&self) -> Hidden {
        *self.once.hidden.get_or_init(|| {
            let mut found = Found::default();
            found.visit_block(&self.item.block);
            let maps = found.maps.saturating_sub(found.plain());
            let inside = found.nested || maps > 0 && (found.sets > 0 || found.maps > 1);
            Hidden { anywhere: found.anywhere, inside }
        })
    }

    fn overlooks(&self) -> bool {
        self.unit.faults.has(Fault::HashOrderIsFixed) || self.unit.faults.has(Fault::HiddenHashesIgnored)
    }

    /// Checks whether what a map holds for a key may be a hash map or a hash set.
    pub(super) fn holds_hashed(&self) -> bool {
        !self.overlooks() && self.hidden().inside
    }

    /// Checks whether an expression may be a hash map or a hash set. A part of the message is not one.
    fn may_be_hashed(&self, e: &Expr) -> bool {
        if self.overlooks() || !self.hidden().anywhere {
            return false;
        }
        match peel_references(e) {
            Expr::Range(_) | Expr::Array(_) | Expr::Repeat(_) | Expr::Macro(_) => false,
            e @ Expr::Path(_) if self.root(e).is_some_and(|id| self.ordered.contains(&id)) => false,
            e => self.root(e).is_none_or(|id| id >= self.parameters_end),
        }
    }

    /// Takes into account that a method may visit the elements of a hash map or a hash set.
    pub(super) fn visits(&self, c: &ExprMethodCall, value: &mut Value) {
        if VISITS.contains(&c.method.to_string().as_str()) && self.may_be_hashed(&c.receiver) {
            value.unordered.get_or_insert(Taint::new(Why::Unordered, c.method.span()));
        }
    }

    /// Like [`Self::visits`], for a loop over a collection itself.
    pub(super) fn visits_itself(&self, over: &Expr, value: &mut Value) {
        if !matches!(peel(over), Expr::MethodCall(_)) && self.may_be_hashed(over) {
            value.unordered.get_or_insert(Taint::new(Why::Unordered, syn::spanned::Spanned::span(over)));
        }
    }
}

fn is_set(name: &str) -> bool {
    name == "HashSet"
}

fn is_map(name: &str) -> bool {
    name.ends_with("Map")
}

fn mentions(tokens: impl ToTokens) -> bool {
    let has = |name: &str| find_name(spaced(&tokens), name).is_some();
    has("HashMap") || has("HashSet")
}

/// Returns tokens without the colons of their paths.
fn spaced(tokens: &impl ToTokens) -> proc_macro2::TokenStream {
    fn without(tokens: proc_macro2::TokenStream) -> proc_macro2::TokenStream {
        let kept = tokens.into_iter().filter_map(|t| match t {
            proc_macro2::TokenTree::Punct(p) if p.as_char() == ':' => None,
            proc_macro2::TokenTree::Group(g) => {
                Some(proc_macro2::Group::new(g.delimiter(), without(g.stream())).into())
            }
            t => Some(t),
        });
        kept.collect()
    }
    without(tokens.to_token_stream())
}

#[derive(Default)]
struct Found {
    anywhere: bool,
    /// Whether a written type has a hashed type as the values of a map.
    nested: bool,
    /// Number of mentions of hash sets.
    sets: usize,
    /// Number of maps for which no type of the values is written.
    maps: usize,
    /// The names of those that are locals.
    locals: Vec<String>,
    /// The names of locals into which values are inserted that are no hashed types.
    filled: Vec<String>,
}

impl Found {
    /// Returns the number of maps whose values are visibly no hashed types, because one value is not.
    fn plain(&self) -> usize {
        let declared = |name: &String| self.locals.iter().filter(|l| *l == name).count();
        self.locals.iter().filter(|name| declared(name) == 1 && self.filled.contains(name)).count()
    }

    fn path(&mut self, path: &syn::Path) {
        for s in &path.segments {
            let name = s.ident.to_string();
            self.sets += usize::from(is_set(&name));
            if is_map(&name) {
                let written = match &s.arguments {
                    PathArguments::AngleBracketed(a) => {
                        self.nested |= mentions(&a.args);
                        !a.args.iter().any(|a| matches!(a, GenericArgument::Type(Type::Infer(_))))
                    }
                    _ => false,
                };
                self.maps += usize::from(!written);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, i: &'ast Item) {
        self.anywhere |= !matches!(i, Item::Use(_)) && mentions(i);
    }

    fn visit_expr_call(&mut self, c: &'ast syn::ExprCall) {
        match peel(&c.func) {
            Expr::Path(p) if p.qself.is_none() => self.path(&p.path),
            f => self.visit_expr(f),
        }
        c.args.iter().for_each(|a| self.visit_expr(a));
    }

    fn visit_expr_path(&mut self, p: &'ast syn::ExprPath) {
        // a function of the type as a value, or a path of a trait
        self.anywhere |= mentions(p);
    }

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.anywhere |= mentions(&m.tokens);
    }

    fn visit_local(&mut self, l: &'ast syn::Local) {
        let made = l.init.as_ref().is_some_and(|i| match peel(&i.expr) {
            Expr::Call(c) => matches!(peel(&c.func), Expr::Path(p) if p.path.segments.len() > 1
                && p.path.segments.iter().rev().nth(1).is_some_and(|s| is_map(&s.ident.to_string()) && s.arguments.is_none())),
            _ => false,
        });
        if let Some(name) = pattern_name(&l.pat).filter(|_| made) {
            self.locals.push(name.to_string())
        }
        visit::visit_local(self, l)
    }

    // `counts.entry(k).or_insert(0)`, `counts.insert(k, 0)`
    fn visit_expr_method_call(&mut self, c: &'ast ExprMethodCall) {
        let of = match c.method.to_string().as_str() {
            "insert" if c.args.len() == 2 => Some(&*c.receiver),
            "or_insert" | "or_insert_with" => match peel(&c.receiver) {
                Expr::MethodCall(entry) if entry.method == "entry" => Some(&*entry.receiver),
                _ => None,
            },
            _ => None,
        };
        if let Some(Expr::Path(p)) = of.map(peel)
            && c.args.last().is_some_and(is_plain)
        {
            self.filled.extend(p.path.get_ident().map(ToString::to_string))
        }
        visit::visit_expr_method_call(self, c)
    }

    fn visit_path(&mut self, p: &'ast syn::Path) {
        self.path(p);
        visit::visit_path(self, p)
    }
}
