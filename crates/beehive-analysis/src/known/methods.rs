//! Methods that the analysis knows by name: those whose results may be mutable views, and those that only read a value of
//! unknown type.

/// Methods whose result may be a mutable view, in addition to those with `_mut` in their name.
pub(crate) const VIEWS: &[&str] = &[
    "leak",
    "by_ref",
    "entry",
    "first_entry",
    "last_entry",
    "insert_entry",
    "or_default",
    "or_insert",
    "or_insert_with",
    "or_insert_with_key",
    "or_insert_entry",
    "and_modify",
    "get_or_insert",
    "get_or_insert_with",
    "get_or_insert_default",
    "select_nth_unstable",
    "select_nth_unstable_by",
    "select_nth_unstable_by_key",
    "drain",
    "extract_if",
    "into_mut",
];

/// Checks whether the result of a method may be a mutable view, even one of a temporary.
pub(crate) fn returns_mutable_view(method: &str) -> bool {
    method.ends_with("_mut") || method.contains("_mut_") || VIEWS.contains(&method)
}

/// Checks whether a method may build a value of a type not named by its receiver, such as a `Cell`.
pub(crate) fn builds_any_type(method: &str) -> bool {
    matches!(method, "into" | "try_into" | "unwrap_or_default" | "default")
}

/// Checks for a method that yields items of an iterator or of a collection, or values computed from them, rather than
/// the iterator or part of the collection.
pub(crate) fn yields_items(method: &str) -> bool {
    matches!(
        method,
        "next"
            | "next_back"
            | "next_if"
            | "next_if_eq"
            | "nth"
            | "nth_back"
            | "last"
            | "fold"
            | "rfold"
            | "try_fold"
            | "reduce"
            | "find"
            | "rfind"
            | "find_map"
            | "min"
            | "min_by"
            | "min_by_key"
            | "max"
            | "max_by"
            | "max_by_key"
            | "collect"
            | "partition"
            | "unzip"
            | "pop"
            | "pop_back"
            | "pop_first"
            | "pop_front"
            | "pop_last"
            | "remove"
            | "swap_remove"
            | "split_off"
    )
}

/// Checks for a method that turns one iterator into another.
pub(crate) fn adapts(method: &str) -> bool {
    matches!(
        method,
        "chain"
            | "enumerate"
            | "filter"
            | "filter_map"
            | "flat_map"
            | "flatten"
            | "fuse"
            | "inspect"
            | "map"
            | "map_while"
            | "peekable"
            | "rev"
            | "scan"
            | "skip"
            | "skip_while"
            | "step_by"
            | "take"
            | "take_while"
            | "zip"
    )
}

/// Checks whether a method copies a value in such a way that the copy still shares its contents (`Rc`, `&Cell`).
pub(crate) fn keeps_sharing(method: &str) -> bool {
    matches!(method, "clone" | "cloned" | "copied" | "to_owned" | "to_vec")
}

/// Checks whether a method may take its receiver by value when the receiver may be a value that is not `Copy`.
pub(crate) fn takes_itself(method: &str) -> bool {
    method.starts_with("into")
        || method.starts_with("unwrap")
        || method.starts_with("map")
        || method.starts_with("ok")
        || matches!(
            method,
            "and"
                | "and_then"
                | "or"
                | "or_else"
                | "xor"
                | "filter"
                | "flatten"
                | "zip"
                | "expect"
                | "chain"
                | "join"
                | "rev"
                | "skip"
                | "skip_while"
                | "take_while"
                | "step_by"
                | "enumerate"
                | "peekable"
                | "cloned"
                | "copied"
                | "filter_map"
                | "flat_map"
                | "scan"
                | "fuse"
                | "cycle"
                | "inspect"
                | "count"
                | "sum"
                | "product"
                | "fold"
                | "reduce"
                | "max_by"
                | "max_by_key"
                | "min_by"
                | "min_by_key"
                | "collect"
                | "partition"
                | "unzip"
        )
}

/// Checks for a method of `Option` that takes its receiver by value.
pub(crate) fn takes_option(method: &str) -> bool {
    matches!(
        method,
        "map"
            | "filter"
            | "and"
            | "and_then"
            | "or"
            | "or_else"
            | "xor"
            | "zip"
            | "flatten"
            | "inspect"
            | "ok_or"
            | "ok_or_else"
    )
}

/// Checks whether a method or function of the standard library never panics, whatever its arguments are. Closures among
/// the arguments are checked separately. If a name is missing from this list, calls under a condition on state only
/// cost the map a few nanoseconds more.
pub(crate) fn cannot_panic(method: &str) -> bool {
    let by_zero = method.contains("div") || method.contains("rem");
    method.starts_with("checked_")
        || !by_zero && method.starts_with("wrapping_")
        || !by_zero && method.starts_with("saturating_")
        || !by_zero && method.starts_with("overflowing_")
        || method.starts_with("is_")
        || method.starts_with("as_")
        || matches!(
            method,
            "clone"
                | "cloned"
                | "copied"
                | "to_owned"
                | "to_string"
                | "to_vec"
                | "len"
                | "contains"
                | "contains_key"
                | "iter"
                | "into_iter"
                | "get"
                | "first"
                | "last"
                | "into"
                | "from"
                | "map"
                | "and_then"
                | "filter"
                | "filter_map"
                | "unwrap_or"
                | "unwrap_or_default"
                | "unwrap_or_else"
                | "ok"
                | "ok_or"
                | "min"
                | "max"
                | "origin"
                | "octets"
                | "to_be_bytes"
                | "to_le_bytes"
                | "trim"
                | "starts_with"
                | "ends_with"
                | "to_lowercase"
                | "to_uppercase"
                | "abs_diff"
                | "cmp"
                | "new"
                | "default"
        )
}

/// Methods that take `&self` or a copy of the receiver in the standard library, and by convention in other types. They
/// are trusted only for values that are not reachable through a `mut` or a `&mut`, but whose type may have interior
/// mutability.
pub(crate) const READS: &[&str] = &[
    // numbers
    "abs",
    "abs_diff",
    "pow",
    "signum",
    "is_positive",
    "is_negative",
    "is_power_of_two",
    "count_ones",
    "count_zeros",
    "leading_zeros",
    "trailing_zeros",
    "swap_bytes",
    "to_be_bytes",
    "to_le_bytes",
    "to_ne_bytes",
    "to_be",
    "to_le",
    "checked_mul",
    "checked_pow",
    "saturating_mul",
    "overflowing_add",
    "overflowing_sub",
    "rem_euclid",
    "div_euclid",
    "to_bits",
    "bits",
    "is_zero",
    // comparison and conversion
    "cmp",
    "partial_cmp",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "hash",
    "as_bytes",
    "as_deref",
    "as_ptr_range",
    "as_u8",
    "as_u16",
    "as_u32",
    "as_u64",
    "as_usize",
    "borrow_ref",
    "deref",
    "fmt",
    "index",
    // text
    "trim",
    "trim_start",
    "trim_end",
    "trim_matches",
    "trim_start_matches",
    "trim_end_matches",
    "chars",
    "bytes",
    "char_indices",
    "lines",
    "split",
    "splitn",
    "rsplit",
    "rsplitn",
    "split_once",
    "rsplit_once",
    "split_whitespace",
    "split_ascii_whitespace",
    "strip_prefix",
    "strip_suffix",
    "starts_with",
    "ends_with",
    "eq_ignore_ascii_case",
    "parse",
    "to_lowercase",
    "to_uppercase",
    "to_ascii_lowercase",
    "to_ascii_uppercase",
    "is_char_boundary",
    "capacity",
    // collections
    "get_key_value",
    "first",
    "last",
    "first_key_value",
    "last_key_value",
    "split_first",
    "split_last",
    "keys",
    "values",
    "range",
    "windows",
    "chunks",
    "chunks_exact",
    "binary_search",
    "binary_search_by",
    "binary_search_by_key",
    "concat",
    "join",
    "is_subset",
    "is_superset",
    "is_disjoint",
    "peekable",
    // addresses and times
    "octets",
    "segments",
    "ip",
    "port",
    "is_ipv4",
    "is_ipv6",
    "is_loopback",
    "is_multicast",
    "is_broadcast",
    "is_unspecified",
    "is_unicast",
    "is_local",
    "as_secs",
    "as_millis",
    "as_micros",
    "as_nanos",
    "subsec_nanos",
    "is_some_and",
    "is_none_or",
    "is_ok_and",
    "is_err_and",
];

/// Checks whether a method only reads a constant. `direct` is set if the receiver is the constant itself
/// rather than, for example, an iterator over it.
pub(crate) fn reads_constant(method: &str, arguments: usize, direct: bool) -> bool {
    match method {
        "min" | "max" | "clamp" | "midpoint" | "rotate_left" | "rotate_right" | "ilog2" | "ilog10"
        | "isqrt" | "div_ceil" | "next_multiple_of" | "next_power_of_two" | "into_iter" | "into"
        | "try_into" => true,
        "get" => arguments == 1,
        "map" | "filter" | "filter_map" | "flat_map" | "enumerate" | "zip" | "rev" | "take" | "skip"
        | "take_while" | "skip_while" | "step_by" | "chain" | "cycle" | "fold" | "find" | "find_map"
        | "nth" | "next" | "min_by_key" | "max_by_key" | "min_by" | "max_by" | "collect" | "unwrap"
        | "unwrap_or" | "unwrap_or_else" | "unwrap_or_default" | "expect" | "ok" | "and_then" | "ok_or"
        | "map_or" | "peek" | "flatten" | "inspect" => !direct,
        _ => false,
    }
}

/// Checks whether a method only reads a receiver that may have interior mutability.
pub(crate) fn reads_by_convention(method: &str) -> bool {
    READS.contains(&method)
}
