//! Suggestions for misspelled names: "did you mean ..?".

/// Returns the known name most likely meant by `name`: one that differs in a few letters, or one that begins
/// with `name`, such as `age_s` for `age`.
pub fn nearest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let longer = |known: &str| name.len() > 1 && known.starts_with(name);
    let distance = |known: &str| if longer(known) { 1 } else { strsim::levenshtein(known, name) };
    let best = known.iter().min_by_key(|known| distance(known))?;
    (distance(best) <= 1 + name.len() / 4).then_some(*best)
}

/// Returns an error text for an unknown `what` called `name`. The text suggests the nearest known name or, if none
/// is near, lists all known names.
pub(crate) fn refusal(what: &str, name: &str, known: &[&str]) -> String {
    match nearest_name(name, known) {
        Some(near) => format!("unknown {what} `{name}`; did you mean `{near}`?"),
        None => format!("unknown {what} `{name}` (expected {})", known.join(", ")),
    }
}

/// Parses serde's message about an unknown field, such as "unknown field `a`, expected one of `b`, `c`".
/// Returns the rejected name and the expected ones. Serde has no other way to list a type's field names.
pub(crate) fn unknown(words: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = words.strip_prefix("unknown field `")?.split_once('`')?;
    let known: Vec<&str> = rest.strip_prefix(", expected ")?.split('`').skip(1).step_by(2).collect();
    (!known.is_empty()).then_some((name, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn a_misspelled_name_finds_the_nearest_one() {
        let known = ["age_s", "idle_s", "flows"];
        let meant = |name| nearest_name(name, &known);
        assert_eq!(
            [meant("age"), meant("ages"), meant("idle"), meant("flow")],
            [Some("age_s"), Some("age_s"), Some("idle_s"), Some("flows")]
        );
        assert_eq!([meant("a"), meant("x"), meant("frobnicate"), nearest_name("a", &[])], [None; 4]);
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct One {
        a: Option<u8>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Two {
        a: Option<u8>,
        b: Option<u8>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Three {
        a: Option<u8>,
        b: Option<u8>,
        c: Vec<One>,
    }

    #[test]
    fn serde_messages_about_unknown_fields_are_parsed() {
        fn said<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
            toml::from_str::<T>(text).expect_err("accepted").message().to_string()
        }
        assert_eq!(unknown(&said::<One>("x = 1")), Some(("x", vec!["a"])));
        assert_eq!(unknown(&said::<Two>("x = 1")), Some(("x", vec!["a", "b"])));
        assert_eq!(unknown(&said::<Three>("x = 1")), Some(("x", vec!["a", "b", "c"])));
        assert_eq!(unknown(&said::<Three>("c = [{ x = 1 }]")), Some(("x", vec!["a"])));
        assert_eq!(unknown(&said::<Three>("c = 5")), None);
    }
}
