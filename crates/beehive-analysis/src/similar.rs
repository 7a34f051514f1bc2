//! Which known name was probably meant: for a help, never for a decision.

/// The name that is nearest, if it is as near as the compiler wants it to be.
pub(crate) fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = name.chars().count().max(3) / 3;
    let known = known.map(|k| (distance(name, k), k)).filter(|(d, _)| (1..=near).contains(d));
    known.min().map(|(_, k)| k)
}

/// How many letters have to be changed, left out, put in, or exchanged with their neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let changed = rows[i][j] + usize::from(x != y);
            let mut least = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
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
