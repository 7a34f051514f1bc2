//! A table in plain text: names to the left, numbers to the right.

/// Writes `rows` under `heads`, indented by two. A column in which every cell is a number is aligned to the right.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|r| r[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let is_number = |text: &String| text.starts_with(|c: char| c.is_ascii_digit());
    let widths: [usize; N] = std::array::from_fn(width);
    let right: [bool; N] = std::array::from_fn(|c| !rows.is_empty() && rows.iter().all(|r| is_number(&r[c])));
    let mut out = String::new();
    for row in std::iter::once(&heads.map(String::from)).chain(rows) {
        let mut line = String::new();
        for ((cell, width), right) in row.iter().zip(widths).zip(right) {
            match right {
                true => line += &format!("  {cell:>width$}"),
                false => line += &format!("  {cell:<width$}"),
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// `part` of `all`, such as `12 %`.
pub(super) fn share(part: u64, all: u64) -> String {
    match part.saturating_mul(100).checked_div(all) {
        Some(percent) => format!("{percent} %"),
        None => "0 %".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_to_the_right() {
        let rows = [["a", "1"], ["longer", "200"]].map(|r| r.map(String::from));
        assert_eq!(table(["name", "n"], &rows), "  name      n\n  a         1\n  longer  200\n");
        assert_eq!(table(["name"], &[]), "  name\n");
        assert_eq!((share(1, 3), share(0, 0)), ("33 %".into(), "0 %".into()));
    }
}
