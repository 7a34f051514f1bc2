//! Finds the values that depend on the order of a hash set or a hash map, which differs from run to run: the
//! map and the handler would see different orders.
//!
//! A value is *unordered* if only the order of its elements is unknown. It may be passed on and collected, and becomes
//! known again after `sort()`. Everything else computed from it is tainted.

pub(crate) mod hashes;

use super::Pass;
use super::locals::scope::{Kind, Known};
use crate::faults::Fault;
use crate::known::types::is_hashed;
use crate::syntax::peel;
use crate::value::{Taint, Value, Why};
use syn::spanned::Spanned;
use syn::{Expr, ExprMethodCall, GenericArgument, Pat, Type};

/// How the result of a method depends on a receiver or an argument whose order is unknown.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// The result does not depend on the order.
    Free,
    /// The result has the same elements, in an unknown order.
    Open,
    /// The result depends on the order in any other way.
    Decides,
}

impl Pass<'_, '_> {
    /// Evaluates an expression in a place that allows an unordered value.
    pub(super) fn unordered(&mut self, e: &Expr, out: &mut Vec<crate::node::Node>) -> Value {
        self.order_open = true;
        self.expression(e, out)
    }

    /// Merges an argument's value into the value of a method call and decides whether the order of either one affects
    /// the result. `changes` is set if closures among the arguments change locals, so that the order of their calls
    /// matters.
    pub(super) fn order_of_result(&self, c: &ExprMethodCall, value: &mut Value, changes: bool) {
        let types = c.turbofish.iter().flat_map(|t| &t.args);
        let mut types = types.filter_map(|a| match a {
            GenericArgument::Type(t) => Some(t),
            _ => None,
        });

        if value.unordered.is_some() {
            let order = match order(c, self.holds_hashed(&c.receiver)) {
                Order::Open if changes => Order::Decides,
                Order::Open if c.method == "collect" && types.clone().any(is_ordered_set) => Order::Free,
                order => order,
            };
            match order {
                Order::Free => value.unordered = None,
                Order::Open => {}
                Order::Decides => Self::decide(value),
            }
        }

        self.visits(c, value);
        if types.any(|t| self.is_unordered_type(t, c.method == "collect")) {
            value.unordered.get_or_insert(Taint::new(Why::Unordered, c.method.span()));
        }
    }

    /// Checks for a type whose values may have an unknown order, like [`is_hashed`].
    pub(super) fn is_unordered_type(&self, t: &Type, aliases: bool) -> bool {
        !self.unit.faults.has(Fault::HashOrderIsFixed) && is_hashed(t, aliases)
    }

    /// Taints a value that depends on an unknown order.
    pub(super) fn decide(value: &mut Value) {
        if let Some(taint) = value.unordered.take() {
            value.taint.get_or_insert(taint);
        }
    }

    /// Takes the declared type of a local into account.
    pub(super) fn declared_order(&self, p: &Pat, of: &Expr, value: &mut Value) {
        let Pat::Type(t) = p else { return };
        let collects = matches!(peel(of), Expr::MethodCall(c) if c.method == "collect");
        if self.is_unordered_type(&t.ty, collects) {
            value.unordered.get_or_insert(Taint::new(Why::Unordered, t.ty.span()));
        } else if is_ordered_set(&t.ty) {
            value.unordered = None;
        }
    }

    /// Recognizes `local.sort();` as a statement of the block that declares the local: from this point on, the order is
    /// known.
    pub(super) fn sorted(&mut self, e: &Expr) {
        let Expr::MethodCall(c) = peel(e) else { return };
        if !c.args.is_empty() || !matches!(c.method.to_string().as_str(), "sort" | "sort_unstable") {
            return;
        }

        let Expr::Path(p) = peel(&c.receiver) else { return };
        let Some(id) = p.path.get_ident().and_then(|i| self.find(i)) else { return };

        // only a slice can be sorted
        self.ordered.insert(id);
        let here = self.scope();
        let v = &mut self.scopes.variables[id];
        if v.scope == here
            && let Kind::Known(Known { unordered, .. }) = &mut v.kind
        {
            *unordered = None;
        }
    }
}

/// Methods of a hash map or a hash set, or of an iterator over one, whose result does not depend on its order.
pub(crate) const FREE: &[&str] = &[
    "len",
    "is_empty",
    "contains",
    "contains_key",
    "count",
    "sum",
    "product",
    "all",
    "any",
    "is_subset",
    "is_superset",
    "is_disjoint",
];

/// Methods whose result has the same elements in an unknown order.
pub(crate) const OPEN: &[&str] = &[
    "iter",
    "into_iter",
    "iter_mut",
    "keys",
    "values",
    "values_mut",
    "into_keys",
    "into_values",
    "cloned",
    "copied",
    "clone",
    "to_vec",
    "to_owned",
    "map",
    "filter",
    "filter_map",
    "flat_map",
    "chain",
    "collect",
    "extend",
    "append",
    "push",
    "union",
    "intersection",
    "difference",
    "retain",
    "sort",
    "sort_unstable",
    "entry",
    "or_default",
    "or_insert",
    "reserve",
    "clear",
    "as_slice",
    "as_ref",
    "by_ref",
];

/// Returns how the result of a method depends on the order of its receiver. `holds_hashed` is set if the value for a
/// key of a map may itself have an unknown order.
fn order(c: &ExprMethodCall, holds_hashed: bool) -> Order {
    let by_key = || matches!(c.args.first().map(peel), Some(Expr::Reference(_)));
    match c.method.to_string().as_str() {
        method if FREE.contains(&method) => Order::Free,
        "min" | "max" if c.args.is_empty() => Order::Free,
        "get" | "get_mut" | "remove" | "take" if by_key() && holds_hashed => Order::Open,
        "get" | "get_mut" | "remove" | "take" if by_key() => Order::Free,
        // the value for one key
        "or_insert" | "or_insert_with" | "or_default" if !holds_hashed => Order::Free,
        "or_insert" | "or_insert_with" => match c.args.first() {
            Some(a) if is_plain(a) => Order::Free,
            _ => Order::Open,
        },
        "insert" => Order::Free,
        method if OPEN.contains(&method) => Order::Open,
        _ => Order::Decides,
    }
}

/// Checks for a value, or a function that creates one, that is visibly not a hash map or a hash set.
fn is_plain(e: &Expr) -> bool {
    match peel(e) {
        Expr::Lit(_) | Expr::Binary(_) | Expr::Cast(_) => true,
        Expr::Macro(m) => m.mac.path.is_ident("vec"),
        Expr::Call(c) => is_plain(&c.func),
        Expr::Path(p) => p.path.segments.iter().rev().nth(1).is_some_and(|s| {
            let name = s.ident.to_string();
            matches!(name.as_str(), "Vec" | "VecDeque" | "BTreeMap" | "BTreeSet" | "String")
        }),
        _ => false,
    }
}

/// Checks for a collection that depends only on which elements were inserted, not on the order of insertion. A map is
/// not such a type: of two values for the same key, it keeps the last.
fn is_ordered_set(t: &Type) -> bool {
    matches!(t, Type::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == "BTreeSet"))
}
