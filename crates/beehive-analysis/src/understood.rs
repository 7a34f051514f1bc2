//! Everything that the analysis knows by name, for a chapter of the guide.

use crate::known::methods::{READS, VIEWS};
use crate::known::types::standard_types;
use crate::known::{
    FOREIGN_MACROS, IMPURE_METHODS, IMPURE_TYPES, MacroKind, NUMBER_METHODS, ONLY_READ, ONLY_READ_WITH,
    PURE_ASSOCIATED, PURE_FREE, STANDARD_MACROS,
};
use crate::pass::order::{FREE, OPEN};

/// Names that the analysis treats in the same way.
#[doc(hidden)]
#[derive(Debug)]
pub struct Understood {
    /// The kind of items with these names, and how the analysis treats them.
    pub what: &'static str,
    /// The names, sorted.
    pub names: Vec<&'static str>,
}

/// Returns everything known to the analysis by name.
#[doc(hidden)]
pub fn understood() -> Vec<Understood> {
    fn group(what: &'static str, names: impl IntoIterator<Item = &'static str>) -> Understood {
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        Understood { what, names }
    }

    let macros = |kind: MacroKind| {
        let all = STANDARD_MACROS.iter().chain(FOREIGN_MACROS);
        all.filter(move |(of, _)| *of == kind).flat_map(|(_, names)| names.iter().copied())
    };

    let with_arguments = ONLY_READ_WITH.iter().flat_map(|(_, methods)| *methods);
    vec![
        group("Types whose functions may be used in a key", standard_types()),
        group(
            "Associated functions of any other type that may be used in a key",
            PURE_ASSOCIATED.iter().copied(),
        ),
        group("Functions of `std` modules that may be used in a key", PURE_FREE.iter().copied()),
        group("Types whose functions cannot be used in a key", IMPURE_TYPES.iter().copied()),
        group(
            "Methods that cannot be used in a key, because they may read or change something else",
            IMPURE_METHODS.iter().copied(),
        ),
        group(
            "Methods that only read, in addition to methods of numbers such as `wrapping_add` and `checked_sub`",
            ONLY_READ.iter().chain(NUMBER_METHODS).chain(READS).chain(with_arguments).copied(),
        ),
        group(
            "Methods whose result may be used to change the receiver, in addition to all with `_mut` in their name",
            VIEWS.iter().copied(),
        ),
        group("Methods of hash maps and sets that do not depend on iteration order", FREE.iter().copied()),
        group(
            "Methods whose result has the unknown order of the receiver, until `sort` or a `BTreeSet`",
            OPEN.iter().copied(),
        ),
        group("Macros that evaluate to their arguments", macros(MacroKind::Pure)),
        group("Macros that change their first argument", macros(MacroKind::Write)),
        group("Macros that log or check, and are left out of the map", macros(MacroKind::Log)),
        group("Macros that end the handler", macros(MacroKind::Diverge)),
        group("Macros that may end the handler", macros(MacroKind::MayExit)),
    ]
}
