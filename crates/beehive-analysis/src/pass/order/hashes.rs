//! Finds hash maps and hash sets that the type of no local shows: in a field of a type that the function declares, in
//! the result of a nested function, or as the values of another map.

use crate::faults::Fault;
use crate::known::methods::builds_any_type;
use crate::known::types::{is_frozen, is_hashed, is_standard_type};
use crate::known::{is_primitive, is_upper};
use crate::pass::Pass;
use crate::syntax::{bound_inside, last_name, peel, peel_references};
use crate::value::{Taint, Value, Variables, Why};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprMethodCall, GenericArgument, Item, Pat, PathArguments, Type, UseTree};

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
    /// Any collection may be a hash map or a hash set.
    anywhere: bool,
    /// The value for a key of a map may be a hash map or a hash set.
    inside: bool,
}

impl Pass<'_, '_> {
    fn hidden(&self) -> Hidden {
        *self.once.hidden.get_or_init(|| {
            if !self.mentions().iter().any(|name| is_set(name) || is_map(name)) {
                return Hidden::default();
            }
            let mut found = Found::default();
            found.visit_block(&self.item.block);
            let inside = found.nested || found.maps > 0 && (found.sets > 0 || found.maps > 1);
            Hidden { anywhere: found.anywhere, inside }
        })
    }

    fn overlooks(&self) -> bool {
        self.unit.faults.has(Fault::HashOrderIsFixed) || self.unit.faults.has(Fault::HiddenHashesIgnored)
    }

    /// Checks whether the values of a map may be hash maps or hash sets.
    pub(in crate::pass) fn holds_hashed(&self, map: &Expr) -> bool {
        let plain =
            || self.root(map).is_some_and(|id| self.plain_maps.contains(&id) || self.ordered.contains(&id));
        !self.overlooks() && self.hidden().inside && !plain()
    }

    /// Checks whether the analysis has to track which values certainly contain no hash maps and no hash sets.
    fn watches_hashes(&self) -> bool {
        self.hidden().anywhere || self.hidden().inside || !self.unknown_types.is_empty()
    }

    /// Records that the values of a map hold no hash maps and no hash sets if a call shows one of them:
    /// `map.insert(k, 0)`, `map.entry(k).or_insert_with(Vec::new).push(0)`. All values of a map have the same type.
    pub(in crate::pass) fn fills(&mut self, c: &ExprMethodCall) {
        let of = match c.method.to_string().as_str() {
            "insert" if c.args.len() == 2 => Some(&*c.receiver),
            "or_insert" => entry_of(c),
            "or_insert_with" if matches!(c.args.first().map(peel), Some(Expr::Closure(f)) if yields_number(f)) =>
            {
                self.plain_maps.extend(entry_of(c).and_then(|map| self.place(map)));
                return;
            }
            "push" | "push_back" | "push_front" => match peel(&c.receiver) {
                Expr::MethodCall(of) if of.method.to_string().starts_with("or_") => entry_of(of),
                _ => None,
            },
            _ => None,
        };
        if let Some(map) = of.and_then(|map| self.place(map))
            && self.watches_hashes()
            && c.args.last().is_some_and(|a| self.holds_no_hashes(a))
        {
            self.plain_maps.insert(map);
        }
    }

    /// Records what a local's declaration shows: it contains no hash map or set; or it is a map whose values contain
    /// none; or its type may be an alias of a hash map.
    pub(in crate::pass) fn declared_plain(&mut self, declared: &Pat, of: &Expr, defines: &Variables) {
        let written = match (declared, peel(of)) {
            (Pat::Type(t), _) => Some(&*t.ty),
            (_, Expr::MethodCall(c)) => written_result(c),
            _ => None,
        };
        if written.is_none() && self.makes_unknown_type(of) {
            self.unknown_types.extend(defines);
        }
        if !self.watches_hashes() {
            return;
        }
        if is_list(of) && matches!(declared, Pat::Ident(_)) {
            self.lists.extend(defines);
        }
        if written.map_or_else(|| self.holds_no_hashes(of), is_plain_type) {
            self.ordered.extend(defines);
        }
        if written.and_then(value_type).is_some_and(is_plain_type) {
            self.plain_maps.extend(defines);
        }
    }

    /// Checks whether the expression calls an associated function of a type that may be an alias of `HashMap` or
    /// `HashSet`, declared outside the block.
    fn makes_unknown_type(&self, e: &Expr) -> bool {
        let Expr::Call(c) = peel_references(e) else { return false };
        let Expr::Path(p) = peel(&c.func) else { return false };
        let mut names = p.path.segments.iter().rev();
        let makes = names.next().is_some_and(|s| {
            matches!(s.ident.to_string().as_str(), "new" | "default" | "with_capacity" | "from" | "from_iter")
        });
        makes
            && p.qself.is_none()
            && names.next().is_some_and(|s| {
                let name = s.ident.to_string();
                is_upper(&name)
                    && !is_standard_type(&name)
                    && !is_primitive(&name)
                    && !matches!(
                        name.as_str(),
                        "Self" | "Box" | "Rc" | "Arc" | "Cell" | "RefCell" | "Default"
                    )
                    && !self.own_types.contains(&s.ident)
            })
    }

    /// Checks that the type of a value certainly contains no hash map and no hash set: the value consists of parts of
    /// the message, and of locals that are known to contain none.
    pub(in crate::pass) fn holds_no_hashes(&self, e: &Expr) -> bool {
        let all = |list: &Punctuated<Expr, syn::Token![,]>| list.iter().all(|e| self.holds_no_hashes(e));
        match peel_references(e) {
            Expr::Lit(_) | Expr::Cast(_) => true,
            // hash sets have `&a | &b`, `&a & &b`, `&a ^ &b` and `&a - &b`
            Expr::Binary(b)
                if matches!(b.op, BinOp::BitOr(_) | BinOp::BitAnd(_) | BinOp::BitXor(_) | BinOp::Sub(_)) =>
            {
                self.holds_no_hashes(&b.left) || self.holds_no_hashes(&b.right)
            }
            Expr::Binary(_) => true,
            Expr::Path(p) => {
                let id = p.path.get_ident().and_then(|i| self.find(i));
                id.is_some_and(|id| self.ordered.contains(&id) || self.is_parameter(id))
            }
            Expr::Field(f) => self.holds_no_hashes(&f.base),
            Expr::Index(i) => self.holds_no_hashes(&i.expr),
            Expr::Try(t) => self.holds_no_hashes(&t.expr),
            Expr::Tuple(t) => all(&t.elems),
            Expr::Array(t) => !t.elems.is_empty() && all(&t.elems),
            Expr::Range(r) => r.start.iter().chain(&r.end).all(|e| self.holds_no_hashes(e)),
            Expr::MethodCall(c) => match written_result(c) {
                Some(t) => is_plain_type(t),
                None => self.result_holds_no_hashes(c),
            },
            Expr::Call(c) => match peel(&c.func) {
                Expr::Path(p) if p.path.is_ident("Some") => all(&c.args),
                Expr::Path(p) => p.path.segments.iter().rev().nth(1).is_some_and(|s| {
                    let name = s.ident.to_string();
                    // their elements are ordered, unlike those of hash maps and hash sets
                    is_primitive(&name) || matches!(name.as_str(), "String" | "BTreeSet" | "BinaryHeap")
                }),
                _ => false,
            },
            // the code below looks up names in the scope outside the branches
            Expr::Match(_) | Expr::If(_) | Expr::Block(_)
                if bound_inside(e).iter().any(|name| self.find_name(name).is_some()) =>
            {
                false
            }
            // all branches have the same type
            Expr::Match(m) => m.arms.iter().any(|a| self.holds_no_hashes(&a.body)),
            Expr::If(i) => {
                self.last_holds_no_hashes(&i.then_branch)
                    || i.else_branch.as_ref().is_some_and(|(_, e)| self.holds_no_hashes(e))
            }
            Expr::Block(b) => self.last_holds_no_hashes(&b.block),
            Expr::Macro(m) => match last_name(&m.mac.path).as_str() {
                "format" | "concat" | "matches" | "stringify" => true,
                "vec" => {
                    let arguments = self.unit.arena.arguments(&m.mac, "vec");
                    let elements = (*arguments).as_ref().map(|a| &a.expressions[..]).unwrap_or_default();
                    !elements.is_empty() && elements.iter().all(|e| self.holds_no_hashes(e))
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn last_holds_no_hashes(&self, b: &syn::Block) -> bool {
        matches!(b.stmts.last(), Some(syn::Stmt::Expr(e, None)) if self.holds_no_hashes(e))
    }

    fn result_holds_no_hashes(&self, c: &ExprMethodCall) -> bool {
        let method = c.method.to_string();
        match method.as_str() {
            // numbers and booleans
            "len" | "count" | "is_empty" | "contains" | "contains_key" | "all" | "any" | "position"
            | "is_some" | "is_none" => return true,
            // the result has the type of the argument
            "unwrap_or" | "map_or" | "fold" | "rfold" | "or_insert" => {
                return c.args.first().is_some_and(|a| self.holds_no_hashes(a));
            }
            "collect" | "parse" => return false,
            method if builds_any_type(method) => return false,
            _ => {}
        }
        self.holds_no_hashes(&c.receiver)
            && c.args.iter().all(|a| match peel(a) {
                Expr::Closure(closure) => keeps_items(&method) || yields_number(closure),
                a => self.holds_no_hashes(a),
            })
    }

    /// Checks whether the parameters of the closures passed to a method are certainly not hash maps or hash sets.
    pub(in crate::pass) fn passes_no_hashes(&self, c: &ExprMethodCall) -> bool {
        let given = c.args.iter().filter(|a| !matches!(peel(a), Expr::Closure(_)));
        self.watches_hashes()
            && self.holds_no_hashes(&c.receiver)
            && given.into_iter().all(|a| self.holds_no_hashes(a))
    }

    /// Checks whether an expression may be a hash map or a hash set. A part of the message is not one.
    fn may_be_hashed(&self, e: &Expr) -> bool {
        if self.overlooks() {
            return false;
        }
        let e = peel_references(e);
        let unknown =
            || self.place(e).is_some_and(|id| self.unknown_types.contains(&id)) || self.makes_unknown_type(e);
        let other = matches!(e, Expr::Range(_) | Expr::Array(_) | Expr::Repeat(_) | Expr::Macro(_))
            || matches!(e, Expr::Path(_)) && self.place(e).is_some_and(|id| self.lists.contains(&id));
        !other && (self.hidden().anywhere || unknown()) && !self.holds_no_hashes(e)
    }

    /// Takes into account that a method may visit the elements of a hash map or a hash set.
    pub(in crate::pass) fn visits(&self, c: &ExprMethodCall, value: &mut Value) {
        if VISITS.contains(&c.method.to_string().as_str()) && self.may_be_hashed(&c.receiver) {
            value.unordered.get_or_insert(Taint::new(Why::Unordered, c.method.span()));
        }
    }

    /// Like [`Self::visits`], for a loop over a collection itself.
    pub(in crate::pass) fn visits_itself(&self, over: &Expr, value: &mut Value) {
        if !matches!(peel(over), Expr::MethodCall(_)) && self.may_be_hashed(over) {
            value.unordered.get_or_insert(Taint::new(Why::Unordered, syn::spanned::Spanned::span(over)));
        }
    }
}

/// Returns the result type of a method call if it is written in the call: `collect::<Vec<u64>>()`.
fn written_result(c: &ExprMethodCall) -> Option<&Type> {
    let types = c.turbofish.as_ref().filter(|_| c.method == "collect" || c.method == "parse")?;
    types.args.iter().find_map(|a| match a {
        GenericArgument::Type(t) => Some(t),
        _ => None,
    })
}

/// Returns the type of a map's values if it is written.
fn value_type(t: &Type) -> Option<&Type> {
    let Type::Path(p) = t else { return None };
    let last = p.path.segments.last().filter(|s| is_map(&s.ident.to_string()))?;
    match &last.arguments {
        PathArguments::AngleBracketed(a) => match a.args.iter().nth(1) {
            Some(GenericArgument::Type(t)) => Some(t),
            _ => None,
        },
        _ => None,
    }
}

/// Checks for a method whose result is a number or consists of parts of the receiver, whatever its closures return.
fn keeps_items(method: &str) -> bool {
    matches!(
        method,
        "all"
            | "any"
            | "filter"
            | "find"
            | "inspect"
            | "is_none_or"
            | "is_some_and"
            | "max_by"
            | "max_by_key"
            | "min_by"
            | "min_by_key"
            | "partition_point"
            | "position"
            | "rposition"
            | "skip_while"
            | "take_while"
    )
}

/// Checks for a closure whose result is visibly a number, a string or a boolean.
fn yields_number(closure: &syn::ExprClosure) -> bool {
    matches!(peel(&closure.body), Expr::Lit(_) | Expr::Binary(_) | Expr::Cast(_) | Expr::Unary(_))
}

/// Returns the map of `map.entry(k).or_insert(..)`, and of similar calls.
fn entry_of(c: &ExprMethodCall) -> Option<&Expr> {
    match peel(&c.receiver) {
        Expr::MethodCall(entry) if entry.method == "entry" => Some(&entry.receiver),
        _ => None,
    }
}

/// Checks for a collection that is visibly not a hash map or a hash set, whatever its elements are.
fn is_list(e: &Expr) -> bool {
    match peel(e) {
        Expr::Macro(m) => m.mac.path.is_ident("vec"),
        Expr::Call(c) => {
            matches!(peel(&c.func), Expr::Path(p) if p.path.segments.iter().rev().nth(1).is_some_and(|s| {
                matches!(s.ident.to_string().as_str(), "Vec" | "VecDeque" | "BTreeMap" | "BTreeSet")
            }))
        }
        _ => false,
    }
}

/// Checks for a written type that contains no hash maps and no hash sets.
fn is_plain_type(t: &Type) -> bool {
    is_frozen(t) && !is_hashed(t, true)
}

fn is_set(name: &str) -> bool {
    name == "HashSet"
}

fn is_map(name: &str) -> bool {
    name.ends_with("Map")
}

/// Checks for the name of a hash map or a hash set anywhere in tokens, even at the end of a path.
fn mentions(tokens: impl ToTokens) -> bool {
    fn any(tokens: proc_macro2::TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(i) => i == "HashMap" || i == "HashSet",
            proc_macro2::TokenTree::Group(g) => any(g.stream()),
            _ => false,
        })
    }
    any(tokens.to_token_stream())
}

/// Checks for an import that gives a hash map or a hash set an alias.
fn renames(tree: &UseTree) -> bool {
    match tree {
        UseTree::Path(p) => renames(&p.tree),
        UseTree::Group(g) => g.items.iter().any(renames),
        UseTree::Rename(r) => r.ident == "HashMap" || r.ident == "HashSet",
        _ => false,
    }
}

#[derive(Default)]
struct Found {
    anywhere: bool,
    /// Whether a written type has a hashed type as the value type of a map.
    nested: bool,
    /// Number of mentions of hash sets.
    sets: usize,
    /// Number of maps whose value type is not written.
    maps: usize,
}

impl Found {
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
        self.anywhere |= match i {
            Item::Use(u) => renames(&u.tree),
            i => mentions(i),
        };
    }

    fn visit_expr_call(&mut self, c: &'ast syn::ExprCall) {
        match peel(&c.func) {
            Expr::Path(p) if p.qself.is_none() => self.path(&p.path),
            f => self.visit_expr(f),
        }
        c.args.iter().for_each(|a| self.visit_expr(a));
    }

    fn visit_expr_path(&mut self, p: &'ast syn::ExprPath) {
        // a function of the type used as a value, or a path of a trait
        self.anywhere |= mentions(p);
    }

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.anywhere |= mentions(&m.tokens);
    }

    fn visit_path(&mut self, p: &'ast syn::Path) {
        self.path(p);
        visit::visit_path(self, p)
    }
}
