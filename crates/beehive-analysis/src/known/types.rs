//! The types that the analysis knows by name: which of them have no interior mutability, and which tokens may build a
//! value of a different type.

use crate::known::methods::{builds_any_type, returns_mutable_view};
use crate::known::{is_primitive, is_upper};
use proc_macro2::{TokenStream, TokenTree};
use syn::{GenericArgument, PathArguments, Type};

/// Standard library types that change only through a `&mut`, if their parameters do.
const FROZEN: &[&str] = &[
    "String",
    "Vec",
    "VecDeque",
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "HashMap",
    "HashSet",
    "Option",
    "Result",
    "Box",
    "Cow",
    "Reverse",
    "Wrapping",
    "Ordering",
    "Duration",
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "SocketAddr",
    "SocketAddrV4",
    "SocketAddrV6",
    "Range",
    "RangeInclusive",
    "PathBuf",
    "OsString",
    "NonZero",
    "NonZeroU8",
    "NonZeroU16",
    "NonZeroU32",
    "NonZeroU64",
    "NonZeroUsize",
    "Iterator",
];

/// Checks for a standard library type with only deterministic functions.
pub(crate) fn is_standard_type(name: &str) -> bool {
    is_frozen_name(name) && !matches!(name, "HashMap" | "HashSet" | "Box" | "Iterator" | "PathBuf")
}

/// Checks for a standard library type, a slice or an array with only deterministic functions.
pub(crate) fn is_standard(t: &Type) -> bool {
    match t {
        Type::Slice(_) | Type::Array(_) => is_frozen(t),
        Type::Path(p) if p.qself.is_none() => {
            let standard = |s: &syn::PathSegment| is_standard_type(&s.ident.to_string());
            is_frozen(t) && p.path.segments.last().is_some_and(standard)
        }
        _ => false,
    }
}

/// Returns the standard library types with only deterministic functions, except numbers.
pub(crate) fn standard_types() -> Vec<&'static str> {
    FROZEN.iter().copied().chain(["char", "str"]).filter(|name| is_standard_type(name)).collect()
}

fn is_frozen_name(name: &str) -> bool {
    FROZEN.contains(&name) || is_primitive(name)
}

/// Checks for a type known to have no interior mutability. `_` counts as known, because only the values from which the
/// expression is built can determine it.
pub(crate) fn is_frozen(t: &Type) -> bool {
    match t {
        Type::Path(p) => p.path.segments.last().is_some_and(|s| {
            is_frozen_name(&s.ident.to_string())
                && match &s.arguments {
                    PathArguments::None => true,
                    PathArguments::AngleBracketed(a) => a.args.iter().all(|a| match a {
                        GenericArgument::Type(t) => is_frozen(t),
                        GenericArgument::Lifetime(_) | GenericArgument::Const(_) => true,
                        _ => false,
                    }),
                    PathArguments::Parenthesized(_) => false,
                }
        }),
        Type::Reference(r) => is_frozen(&r.elem),
        Type::Tuple(t) => t.elems.iter().all(is_frozen),
        Type::Array(a) => is_frozen(&a.elem),
        Type::Slice(a) => is_frozen(&a.elem),
        Type::Paren(p) => is_frozen(&p.elem),
        Type::Group(p) => is_frozen(&p.elem),
        _ => false,
    }
}

/// Checks for a type that contains a hash map or a hash set. With `aliases`, a generic type of any other name counts as
/// one, because it may be an alias.
pub(crate) fn is_hashed(t: &Type, aliases: bool) -> bool {
    match t {
        Type::Path(p) => p.path.segments.last().is_some_and(|s| {
            let name = s.ident.to_string();
            let of = match &s.arguments {
                PathArguments::AngleBracketed(a) => Some(&a.args),
                _ => None,
            };

            let inner = |a: &GenericArgument| matches!(a, GenericArgument::Type(t) if is_hashed(t, aliases));
            let unknown = aliases && of.is_some() && !is_ordered_name(&name);
            name.starts_with("Hash") || unknown || of.is_some_and(|args| args.iter().any(inner))
        }),
        Type::Reference(r) => is_hashed(&r.elem, aliases),
        Type::Tuple(t) => t.elems.iter().any(|t| is_hashed(t, aliases)),
        Type::Array(a) => is_hashed(&a.elem, aliases),
        Type::Slice(a) => is_hashed(&a.elem, aliases),
        Type::Paren(p) => is_hashed(&p.elem, aliases),
        Type::Group(p) => is_hashed(&p.elem, aliases),
        _ => false,
    }
}

fn is_ordered_name(name: &str) -> bool {
    matches!(name, "Cell" | "RefCell" | "Rc" | "Arc" | "PhantomData" | "Rev" | "Peekable")
        || is_frozen_name(name) && !name.starts_with("Hash")
}

/// Checks whether the value of some tokens may hold a `&mut` created inside them.
pub(crate) fn mentions_mutable_views(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|t| match t {
        TokenTree::Ident(i) => i == "mut" || returns_mutable_view(&i.to_string()),
        TokenTree::Group(g) => mentions_mutable_views(g.stream()),
        _ => false,
    })
}

/// The last name before the current point in a sequence of tokens.
#[derive(Default)]
pub(crate) struct Last {
    of: Option<String>,
    /// Number of colons since that name.
    colons: usize,
}

impl Last {
    /// Starts with a name.
    pub(crate) fn name(name: String) -> Last {
        Last { of: Some(name), colons: 0 }
    }

    /// Checks whether a name after this one may build a value of an unknown type.
    pub(crate) fn builds(&self, name: &str) -> bool {
        let unknown = |of: &String| is_upper(of) && of != "Self" && !is_frozen_name(of);
        builds_any_type(name) || self.colons == 2 && !is_upper(name) && self.of.as_ref().is_some_and(unknown)
    }

    /// Continues after a token that is neither a name nor a group.
    pub(crate) fn pass(&mut self, t: &TokenTree) {
        match t {
            TokenTree::Punct(p) if p.as_char() == ':' => self.colons += 1,
            // `Name::<T>::function`: the parameters stand between the name and the function
            TokenTree::Punct(p) if matches!(p.as_char(), '<' | '>') && self.of.is_some() => self.colons = 0,
            _ => *self = Last::default(),
        }
    }
}

/// Checks whether tokens may build a value of a type unknown to the analysis: `Name::function`, or a conversion.
pub(crate) fn builds_unknown_types(tokens: TokenStream) -> bool {
    let mut last = Last::default();
    tokens.into_iter().any(|t| match t {
        TokenTree::Ident(i) => {
            let name = i.to_string();
            let builds = last.builds(&name);
            last = Last::name(name);
            builds
        }
        TokenTree::Group(g) => {
            last = Last::default();
            builds_unknown_types(g.stream())
        }
        t => {
            last.pass(&t);
            false
        }
    })
}
