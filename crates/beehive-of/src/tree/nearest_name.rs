//! Finds the valid name that is most similar to a misspelled one, for error messages.

use alloc::string::String;
use alloc::vec::Vec;

/// Maximum length of a name that is compared, in bytes. The limit bounds the running time, and a longer name
/// is unlikely to be a typing error.
const LONGEST: usize = 64;

/// Returns the known name that is most similar to `name`, if at most a third of the letters differ.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    if name.len() > LONGEST {
        return None;
    }

    let lower = name.to_ascii_lowercase();
    let near = known.filter_map(|known| {
        let begins =
            known.len().min(lower.len()) > 2 && (known.starts_with(&lower) || lower.starts_with(known));
        let distance = if begins || same_letters(&lower, known) { 1 } else { distance(&lower, known) };
        (distance <= (name.len() / 3).max(1)).then_some((distance, known))
    });

    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| String::from(known))
}

/// Returns whether the names have the same letters in a different order.
fn same_letters(one: &str, other: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters = Vec::from(text);
        letters.sort_unstable();
        letters
    };
    one.len() == other.len() && sorted(one) == sorted(other)
}

/// Returns the Levenshtein distance: the number of letters to insert, delete or change to turn one name into
/// the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        for (place, known) in row.iter_mut().zip(core::iter::once(None).chain(other.bytes().map(Some))) {
            let above = *place;
            let changed = known.map_or(at + 1, |known| {
                (diagonal + usize::from(letter != known)).min(above + 1).min(left + 1)
            });
            (diagonal, left, *place) = (above, changed, changed);
        }
    }

    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_names_are_not() {
        assert_eq!(distance("prt", "port"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);

        let names = ["port", "max_len", "match", "tcp_dst", "tcp_src"];
        let of = |name| nearest(name, names.into_iter());
        assert_eq!(of("prt").as_deref(), Some("port"));
        assert_eq!(of("Port").as_deref(), Some("port"));
        assert_eq!(of("prot").as_deref(), Some("port"));
        assert_eq!(of("matches").as_deref(), Some("match"));
        assert_eq!(of("tcp_dts").as_deref(), Some("tcp_dst"));
        assert_eq!(of("importance"), None);
        assert_eq!(of(""), None);
        assert_eq!(of(&"x".repeat(100)), None);
    }
}
