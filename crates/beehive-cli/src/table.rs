//! Plain-text tables for terminals and pipes: aligned columns, two spaces between them, no borders.

use unicode_width::UnicodeWidthStr;

/// Spaces between two columns.
const GAP: &str = "  ";

/// A table with a header line.
///
/// Columns in which all cells are numbers are right-aligned, all others left-aligned.
pub(crate) struct Table<const COLUMNS: usize> {
    head: [&'static str; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
    hidden: Option<usize>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// Returns an empty table with these column titles.
    pub(crate) fn new(head: [&'static str; COLUMNS]) -> Self {
        Table { head, rows: Vec::new(), hidden: None }
    }

    /// Returns a table with these column titles and rows.
    pub(crate) fn with_rows(head: [&'static str; COLUMNS], rows: Vec<[String; COLUMNS]>) -> Self {
        let mut table = Table::new(head);
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    /// Appends a row. Replaces control characters, because some of the names come from switches.
    pub(crate) fn row(&mut self, row: [String; COLUMNS]) {
        let printable = |cell: String| cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        self.rows.push(row.map(printable))
    }

    /// Hides a column.
    pub(crate) fn hide(&mut self, column: usize) {
        self.hidden = Some(column)
    }

    /// Renders the header line and one line per row.
    pub(crate) fn text(&self) -> String {
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].as_str());
        let width = |column| {
            cells(column).chain([self.head[column]]).map(UnicodeWidthStr::width).max().unwrap_or_default()
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        let is_right: [bool; COLUMNS] = std::array::from_fn(|column| {
            cells(column).any(is_number) && cells(column).all(is_number_or_dash)
        });

        let mut text = String::new();
        let head = self.head.map(str::to_string);
        for row in [&head].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate().filter(|(column, _)| self.hidden != Some(*column)) {
                let padding = " ".repeat(widths[column].saturating_sub(cell.width()));
                let (before, after) =
                    if is_right[column] { (padding.as_str(), "") } else { ("", padding.as_str()) };
                line.extend([before, cell, after, GAP]);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Returns whether a cell is a decimal number or a percentage. An identifier with leading zeros is not a number.
fn is_number(cell: &str) -> bool {
    let digits = cell.strip_suffix(" %").unwrap_or(cell);
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal && (digits == "0" || !digits.starts_with('0'))
}

fn is_number_or_dash(cell: &str) -> bool {
    cell == "-" || is_number(cell)
}

/// Formats `part` as a percentage of `all`, such as `12 %`.
pub(crate) fn percent(part: u64, all: u64) -> String {
    match part.saturating_mul(100).checked_div(all) {
        Some(percent) => format!("{percent} %"),
        None => "0 %".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table<const COLUMNS: usize, const ROWS: usize>(
        head: [&'static str; COLUMNS],
        rows: [[&str; COLUMNS]; ROWS],
    ) -> Table<COLUMNS> {
        Table::with_rows(head, rows.map(|row| row.map(String::from)).into())
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = table(["A", "LONG"], [["wide\u{1b}[2J", "b"], ["é", ""]]);
        assert_eq!(table.text(), "A         LONG\nwide?[2J  b\né\n");

        table.hide(0);
        assert_eq!(table.text(), "LONG\nb\n\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(table(["NAME", "X"], [["端口", "a"], ["b", "c"]]).text(), "NAME  X\n端口  a\nb     c\n");
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_identifiers_are_not() {
        let numbers = table(["name", "n", "share"], [["a", "1", "7 %"], ["longer", "200", "-"]]);
        assert_eq!(numbers.text(), "name      n  share\na         1    7 %\nlonger  200      -\n");
        assert_eq!(
            table(["SWITCH", "-"], [["0012", "-"], ["00000001", "-"]]).text(),
            "SWITCH    -\n0012      -\n00000001  -\n"
        );
        assert_eq!(table(["name"], []).text(), "name\n");
    }

    #[test]
    fn percentages_are_rounded_down_and_nothing_of_nothing_is_zero() {
        assert_eq!((percent(1, 3), percent(0, 0)), ("33 %".into(), "0 %".into()));
    }
}
