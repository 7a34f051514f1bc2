//! Suggests the known name that the user probably meant by a misspelled one. The suggestion appears only in help lines;
//! no decision depends on it.

/// Returns the nearest known name if its edit distance is at least 1 and at most a third of the name's length
/// (never less than 1), the threshold that rustc uses. An edit is a substitution, a deletion, an insertion or
/// a transposition of neighboring letters.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = name.chars().count().max(3) / 3;
    let known = known.map(|k| (strsim::osa_distance(name, k), k)).filter(|(d, _)| (1..=near).contains(d));
    known.min().map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_is_near() {
        let known = ["msg", "item", "amount"];
        let meant = |name| similar(name, known.into_iter());
        assert_eq!(meant("mgs"), Some("msg"));
        assert_eq!(meant("itm"), Some("item"));
        assert_eq!(meant("amuont"), Some("amount"));
        assert_eq!(meant("shelf"), None);
        assert_eq!(meant("a"), None);
    }
}
