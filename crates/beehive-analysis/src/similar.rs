//! Which known name was probably meant: for a help, never for a decision.

/// The name that is nearest, if it is as near as the compiler wants it to be: so many letters are changed, left out, put in, or
/// exchanged with their neighbours.
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
