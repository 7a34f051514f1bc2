//! The options of an app: `#[app(name = "..", replication = .., cells = .., durability = "..")]`.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, LitInt, LitStr};

/// Contents of an `#[app(..)]` attribute.
#[derive(Default)]
pub(super) struct Options {
    pub(super) name: Option<LitStr>,
    pub(super) replication: Option<LitInt>,
    pub(super) cells: Option<LitInt>,
    pub(super) durability: Option<Durability>,
}

/// Whether the state of an app outlives the process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    Disk,
    Memory,
}

pub(super) fn options(input: &DeriveInput) -> syn::Result<Options> {
    let (mut options, mut in_memory): (_, Option<Span>) = (Options::default(), None);
    for a in input.attrs.iter().filter(|a| a.path().is_ident("app")) {
        a.parse_nested_meta(|m| {
            if m.path.is_ident("name") {
                let name: LitStr = m.value()?.parse()?;
                if !is_kebab_case(&name.value()) {
                    return Err(Error::new(
                        name.span(),
                        "an app's name must be in kebab case, such as \"learning-switch\"",
                    ));
                }

                options.name = Some(name);
                return Ok(());
            }

            if m.path.is_ident("replication") {
                const EXPECTED: &str = "`replication` must be a number of hives from 1 to 15";
                let replication = m.value().and_then(|number| number.parse::<LitInt>());
                let replication = replication.map_err(|error| Error::new(error.span(), EXPECTED))?;
                if !replication.base10_parse::<u32>().is_ok_and(|number| (1..=15).contains(&number)) {
                    return Err(Error::new(replication.span(), EXPECTED));
                }

                options.replication = Some(replication);
                return Ok(());
            }

            if m.path.is_ident("cells") {
                let cells: LitInt = m.value()?.parse()?;
                if cells.base10_parse::<u32>()? == 0 {
                    return Err(Error::new(
                        cells.span(),
                        "an app without cells cannot handle messages\nhelp: for no limit, leave `cells` out",
                    ));
                }

                options.cells = Some(cells);
                return Ok(());
            }

            if m.path.is_ident("durability") {
                const EXPECTED: &str = "`durability` must be \"disk\" or \"memory\"";
                let durability = m.value().and_then(|value| value.parse::<LitStr>());
                let durability = durability.map_err(|error| Error::new(error.span(), EXPECTED))?;
                options.durability = match &*durability.value() {
                    "disk" => Some(Durability::Disk),
                    "memory" => Some(Durability::Memory),
                    _ => return Err(Error::new(durability.span(), EXPECTED)),
                };
                in_memory = (options.durability == Some(Durability::Memory)).then(|| m.path.span());
                return Ok(());
            }

            Err(m
                .error("expected `name = \"..\"`, `replication = ..`, `cells = ..` or `durability = \"..\"`"))
        })?;
    }

    match (in_memory, &options.replication) {
        (Some(span), Some(_)) => Err(Error::new(
            span,
            "the state of an app in memory is not replicated\nhelp: leave out either `durability` or `replication`",
        )),
        _ => Ok(options),
    }
}

/// Converts `LearningSwitch` to `learning-switch` and `HTTPApi` to `http-api`.
pub(super) fn kebab_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, c) in letters.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|b| letters.get(b));
        let after = letters.get(i + 1);
        let starts = c.is_uppercase()
            && before.is_some_and(|b| !b.is_uppercase() || after.is_some_and(|a| a.is_lowercase()))
            && !out.ends_with('-');
        if starts {
            out.push('-');
        }

        match c {
            '_' => out.push('-'),
            c => out.extend(c.to_lowercase()),
        }
    }

    out
}

fn is_kebab_case(name: &str) -> bool {
    let word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    !name.is_empty() && name.split('-').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_kebab_case() {
        for (name, want) in [
            ("LearningSwitch", "learning-switch"),
            ("HTTPApi", "http-api"),
            ("L3Router", "l3-router"),
            ("Hub", "hub"),
            ("T", "t"),
            ("Key_Value", "key-value"),
        ] {
            assert_eq!(kebab_case(name), want);
            assert!(is_kebab_case(want));
        }

        assert!(!is_kebab_case("Learning"));
        assert!(!is_kebab_case("a--b"));
    }
}
