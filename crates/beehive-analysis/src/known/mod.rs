//! Everything that the analysis knows by name: the methods of dictionaries, and the calls that may appear in a key.

pub(crate) mod methods;
pub(crate) mod types;

use crate::known::types::{is_standard, is_standard_type};

/// Returns whether a keyed access takes its key by reference, or `None` if the method is not a keyed access.
pub(crate) fn keyed_by_reference(method: &str) -> Option<bool> {
    match method {
        "get" | "get_mut" | "contains" | "remove" => Some(true),
        "put" | "entry" | "update" | "at" => Some(false),
        _ => None,
    }
}

/// Checks for a method that needs all cells of a dictionary. Dictionaries declare these methods only so that the
/// compiler can suggest alternatives; a `Config` may have methods with these names.
pub(crate) fn needs_all_cells(method: &str) -> bool {
    matches!(
        method,
        "iter"
            | "iter_mut"
            | "into_iter"
            | "drain"
            | "range"
            | "keys"
            | "values"
            | "values_mut"
            | "retain"
            | "clear"
            | "len"
            | "is_empty"
    )
}

/// Checks for a method of standard maps that dictionaries have under a different name or in a different place.
/// Dictionaries also declare these methods, only so that the compiler can suggest the right one; a `Config` may have
/// methods with these names. Methods that are keyed accesses of one of the two kinds of dictionaries are not listed.
pub(crate) fn has_another_name(method: &str) -> bool {
    matches!(
        method,
        "insert" | "set" | "contains_key" | "get_or_insert_with" | "get_key_value" | "remove_entry"
    )
}

/// Methods that may read something other than their receiver and arguments.
pub(crate) const IMPURE_METHODS: &[&str] = &[
    "now",
    "elapsed",
    "lock",
    "try_lock",
    "load",
    "store",
    "swap",
    "fetch_add",
    "fetch_sub",
    "fetch_or",
    "fetch_and",
    "fetch_xor",
    "fetch_max",
    "fetch_min",
    "fetch_update",
    "compare_exchange",
    "compare_exchange_weak",
    "borrow",
    "borrow_mut",
    "try_borrow",
    "try_borrow_mut",
    "replace_with",
    "get_or_init",
    "recv",
    "try_recv",
    "blocking_recv",
    "recv_timeout",
    "recv_deadline",
    "try_iter",
    "send",
    "try_send",
    "blocking_send",
    "send_timeout",
    "notify_one",
    "notify_all",
    "wait",
    "park",
    "unpark",
    "flush",
    "write_all",
    "read",
    "read_to_end",
    "read_to_string",
    "read_line",
    "gen",
    "gen_range",
    "gen_bool",
    "random",
    "random_range",
    "random_bool",
    "sample",
    "shuffle",
    "choose",
    "next_u32",
    "next_u64",
    "spawn",
    "as_ptr",
    "as_mut_ptr",
    "addr",
    "with",
    "with_borrow",
    "hash_one",
    "build_hasher",
];

pub(crate) fn is_impure_method(method: &str) -> bool {
    IMPURE_METHODS.contains(&method)
}

/// Checks for a method of numbers: it takes a copy of the receiver, and its result is also a number.
fn is_number_method(method: &str) -> bool {
    [
        "wrapping_",
        "checked_",
        "saturating_",
        "overflowing_",
        "leading_",
        "trailing_",
        "is_positive",
        "is_negative",
    ]
    .iter()
    .any(|prefix| method.starts_with(prefix))
        || NUMBER_METHODS.contains(&method)
}

pub(crate) const NUMBER_METHODS: &[&str] = &[
    "abs",
    "abs_diff",
    "clamp",
    "cmp",
    "count_ones",
    "count_zeros",
    "div_ceil",
    "div_euclid",
    "ilog10",
    "ilog2",
    "is_power_of_two",
    "isqrt",
    "next_multiple_of",
    "next_power_of_two",
    "partial_cmp",
    "pow",
    "rem_euclid",
    "reverse_bits",
    "signum",
    "swap_bytes",
    "to_be",
    "to_be_bytes",
    "to_bits",
    "to_le",
    "to_le_bytes",
    "unsigned_abs",
];

/// Methods whose result holds no reference into the receiver.
pub(crate) fn owns_its_result(method: &str) -> bool {
    is_number_method(method)
        || matches!(
            method,
            "clone"
                | "cloned"
                | "copied"
                | "to_owned"
                | "to_string"
                | "to_vec"
                | "len"
                | "count"
                | "is_empty"
                | "is_some"
                | "is_none"
                | "is_ok"
                | "is_err"
                | "contains"
                | "contains_key"
                | "sum"
                | "product"
                | "any"
                | "all"
                | "position"
        )
}

/// Methods that by convention take `&self` or a copy of the receiver.
pub(crate) const ONLY_READ: &[&str] = &[
    "clone",
    "cloned",
    "copied",
    "to_owned",
    "to_string",
    "to_vec",
    "len",
    "is_empty",
    "is_some",
    "is_none",
    "is_ok",
    "is_err",
    "contains",
    "contains_key",
    "iter",
    "as_str",
    "as_slice",
    "as_ref",
    "chars",
    "trim",
    "trim_start",
    "trim_end",
    "starts_with",
    "ends_with",
    "to_lowercase",
    "to_uppercase",
    "to_ascii_lowercase",
    "to_ascii_uppercase",
    "eq_ignore_ascii_case",
    "first",
    "as_bytes",
    "as_deref",
    "get_key_value",
    "binary_search",
    "is_subset",
    "is_disjoint",
    "octets",
    "is_multicast",
    "is_broadcast",
    "is_some_and",
    "is_none_or",
];

/// Checks for a method that by convention takes `&self` or a copy of the receiver.
pub(crate) fn only_reads(method: &str) -> bool {
    ONLY_READ.contains(&method) || is_number_method(method)
}

/// Methods that only read if they have this many arguments. With a different number, a method of that name
/// may change its receiver: `Iterator::min`, `Cell::get`, `BytesMut::split`. Changes made by a closure among
/// the arguments are found in the closure.
pub(crate) const ONLY_READ_WITH: &[(usize, &[&str])] = &[
    (
        0,
        &[
            "bytes",
            "char_indices",
            "concat",
            "keys",
            "ok",
            "parse",
            "split_first",
            "split_last",
            "split_whitespace",
            "unwrap",
            "unwrap_or_default",
            "values",
        ],
    ),
    (
        1,
        &[
            "chunks",
            "chunks_exact",
            "difference",
            "expect",
            "get",
            "intersection",
            "is_superset",
            "join",
            "max",
            "min",
            "ok_or",
            "ok_or_else",
            "range",
            "rsplit",
            "rsplit_once",
            "split",
            "split_once",
            "strip_prefix",
            "strip_suffix",
            "symmetric_difference",
            "trim_end_matches",
            "trim_matches",
            "trim_start_matches",
            "union",
            "unwrap_or",
            "unwrap_or_else",
            "windows",
        ],
    ),
    (2, &["map_or", "map_or_else", "rsplitn", "splitn"]),
];

/// Like [`only_reads`], with the number of arguments.
pub(crate) fn call_only_reads(method: &str, arguments: usize) -> bool {
    only_reads(method)
        || ONLY_READ_WITH.iter().any(|(number, methods)| *number == arguments && methods.contains(&method))
}

pub(crate) const PURE_ASSOCIATED: &[&str] = &[
    "from",
    "new",
    "default",
    "try_from",
    "from_str",
    "from_be_bytes",
    "from_le_bytes",
    "from_ne_bytes",
    "from_be",
    "from_le",
    "from_utf8",
    "from_utf8_lossy",
    "from_str_radix",
    "from_iter",
    "with_capacity",
    "min",
    "max",
    "from_bits",
    "from_u32",
    "from_digit",
    "from_octets",
    "into",
    "clone",
    "to_string",
    "to_owned",
    "as_ref",
    "as_str",
    "as_bytes",
    "as_slice",
    "len",
    "is_empty",
    "size_of",
    "repeat",
    "once",
    "zip",
    "empty",
    "successors",
    "is_some",
    "is_none",
    "wrapping_add",
    "octets",
];
pub(crate) const IMPURE_TYPES: &[&str] = &[
    "Instant",
    "SystemTime",
    "Cell",
    "RefCell",
    "Mutex",
    "RwLock",
    "OnceCell",
    "OnceLock",
    "LazyCell",
    "LazyLock",
    "UnsafeCell",
    "Uuid",
    "Rng",
    "ThreadRng",
    "StdRng",
    "SmallRng",
    "OsRng",
    "File",
    "Command",
    "Thread",
    "HashMap",
    "HashSet",
    "RandomState",
    "DefaultHasher",
    "AtomicBool",
    "AtomicU8",
    "AtomicU16",
    "AtomicU32",
    "AtomicU64",
    "AtomicUsize",
    "AtomicI32",
    "AtomicI64",
    "AtomicIsize",
    "AtomicPtr",
    "Rc",
    "Weak",
];
const PRIMITIVES: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    "bool", "char", "str",
];
pub(crate) const PURE_FREE: &[&str] = &[
    "min",
    "max",
    "size_of",
    "drop",
    "identity",
    "from_utf8",
    "once",
    "empty",
    "repeat",
    "repeat_n",
    "repeat_with",
    "successors",
    "from_fn",
    "zip",
    "from_ref",
];

/// Checks whether a name is capitalized, as types, variants and constants are.
pub(crate) fn is_upper(name: &str) -> bool {
    name.chars().find(|c| *c != '_').is_some_and(char::is_uppercase)
}

/// Checks for the name of a primitive type.
pub(crate) fn is_primitive(name: &str) -> bool {
    PRIMITIVES.contains(&name)
}

/// Checks whether standard library traits give many types a function with this name.
pub(crate) fn is_standard_function(name: &str) -> bool {
    PURE_ASSOCIATED.contains(&name)
}

/// The properties of a function that follow from its path.
pub(crate) enum Callee {
    /// A deterministic function of its arguments.
    Pure,
    /// An associated function `Self::name` of the block.
    Own(String),
    Unknown,
}

/// Classifies a function by its path. `trusted` holds the names listed in `#[handlers(pure(..))]`.
pub(crate) fn callee(path: &syn::Path, trusted: &[String]) -> Callee {
    let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    let Some(last) = segments.last().map(String::as_str) else { return Callee::Unknown };

    let full = segments.join("::");
    if trusted.iter().any(|l| *l == full || l == last) || is_upper(last) {
        // listed as pure, or a constructor, a variant or a constant
        return Callee::Pure;
    }

    if full == "drop" {
        return Callee::Pure;
    }
    let Some(of) = segments.len().checked_sub(2).and_then(|i| segments.get(i)).map(String::as_str) else {
        return Callee::Unknown;
    };
    if of == "Self" {
        return Callee::Own(last.into());
    }
    if matches!(full.as_str(), "std::mem::swap" | "std::mem::take" | "std::mem::replace")
        || matches!(full.as_str(), "core::mem::swap" | "core::mem::take" | "core::mem::replace")
    {
        return Callee::Pure;
    }
    if IMPURE_TYPES.contains(&of) {
        return Callee::Unknown;
    }
    if is_standard_type(of) && !is_impure_method(last) {
        return Callee::Pure;
    }
    if (is_upper(of) || PRIMITIVES.contains(&of)) && PURE_ASSOCIATED.contains(&last) {
        return Callee::Pure;
    }
    if matches!(of, "cmp" | "mem" | "iter" | "convert" | "str" | "array" | "slice")
        && PURE_FREE.contains(&last)
    {
        return Callee::Pure;
    }

    Callee::Unknown
}

/// Like [`callee`], for a path that may begin with a type: `<[u64]>::to_vec`.
pub(crate) fn callee_of(path: &syn::ExprPath, trusted: &[String]) -> Callee {
    let of_standard_type = path.qself.as_ref().is_some_and(|of| {
        let name = path.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        of.as_token.is_none()
            && path.path.segments.len() == 1
            && is_standard(&of.ty)
            && !is_impure_method(&name)
    });
    match of_standard_type {
        true => Callee::Pure,
        false => callee(&path.path, trusted),
    }
}

/// The properties of a macro that follow from its name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum MacroKind {
    /// Evaluates to an expression built from its arguments.
    Pure,
    /// `pure!`: the programmer promises that the argument is deterministic.
    Trust,
    /// Appends to the place named by its first argument.
    Write,
    /// Takes expressions, has an effect, and continues after it.
    Log,
    /// Never returns control to the handler.
    Diverge,
    /// May return early.
    MayExit,
    /// Has the name of a macro of some other crate, but no path that shows which macro it is.
    Guessed,
    Unknown,
}

/// Macros from logging and error crates that are common in handlers.
pub(crate) const FOREIGN_MACROS: &[(MacroKind, &[&str])] = &[
    (MacroKind::Log, &["trace", "debug", "info", "warn", "error", "event", "log"]),
    (MacroKind::Diverge, &["bail"]),
    (MacroKind::MayExit, &["ensure"]),
];

/// Macros of the standard library, and `pure!`.
pub(crate) const STANDARD_MACROS: &[(MacroKind, &[&str])] = &[
    (
        MacroKind::Pure,
        &[
            "format",
            "format_args",
            "vec",
            "matches",
            "concat",
            "stringify",
            "line",
            "file",
            "column",
            "module_path",
            "env",
            "include_str",
            "cfg",
        ],
    ),
    (MacroKind::Trust, &["pure"]),
    (MacroKind::Write, &["write", "writeln"]),
    (
        MacroKind::Log,
        &[
            "println",
            "print",
            "eprintln",
            "eprint",
            "dbg",
            "assert",
            "assert_eq",
            "assert_ne",
            "debug_assert",
            "debug_assert_eq",
            "debug_assert_ne",
        ],
    ),
    (MacroKind::Diverge, &["panic", "todo", "unimplemented", "unreachable"]),
];

fn kind_of(name: &str, known: &[(MacroKind, &[&str])]) -> MacroKind {
    known.iter().find(|(_, names)| names.contains(&name)).map_or(MacroKind::Unknown, |(kind, _)| *kind)
}

fn foreign_macro_kind(name: &str) -> MacroKind {
    kind_of(name, FOREIGN_MACROS)
}

/// Checks for a macro of some other crate that the analysis knows if its path names the crate.
pub(crate) fn is_foreign_macro(name: &str) -> bool {
    foreign_macro_kind(name) != MacroKind::Unknown
}

fn standard_macro_kind(name: &str) -> MacroKind {
    kind_of(name, STANDARD_MACROS)
}

/// Checks for `dbg!`, whose value is that of its argument.
pub(crate) fn passes_on(m: &syn::Macro) -> bool {
    macro_kind(&m.path) == MacroKind::Log && m.path.segments.last().is_some_and(|s| s.ident == "dbg")
}

/// Returns the kind of a macro. The printed code checks that a bare standard library name does not refer to a different
/// macro.
pub(crate) fn macro_kind(path: &syn::Path) -> MacroKind {
    let Some(name) = path.segments.last().map(|s| s.ident.to_string()) else { return MacroKind::Unknown };
    let of = path.segments.first().filter(|_| path.segments.len() > 1).map(|s| s.ident.to_string());
    match of.as_deref() {
        None if is_foreign_macro(&name) => MacroKind::Guessed,
        None | Some("std" | "core" | "alloc" | "beehive") => standard_macro_kind(&name),
        Some("tracing" | "log" | "anyhow" | "eyre" | "color_eyre") => foreign_macro_kind(&name),
        Some(_) => MacroKind::Unknown,
    }
}
