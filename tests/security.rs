//! Checks `SECURITY.md`: each test that it names must exist, and each row of its table must name a test.

use std::collections::BTreeSet;
use std::path::Path;

/// Rows of the threat table about hosts, switches, clients of the HTTP port, and the network between hives.
const ROWS: [&str; 18] = [
    "S4", "S5", "S6", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17", "S18", "S19", "S20",
    "S21", "S22", "S23",
];

/// Returns the texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Checks whether a source file contains a test of this name: a function with an attribute that marks tests, or one
/// that the file lists in `tests! { .. }`.
fn has_test(source: &str, name: &str) -> bool {
    let listed =
        source.split_once("\ntests! {").and_then(|(_, rest)| rest.split_once('}')).map(|(list, _)| list);
    if listed.is_some_and(|list| list.split(',').any(|listed| listed.trim() == name)) {
        return source.contains(&format!("\nfn {name}("));
    }

    let at = [format!("async fn {name}("), format!("fn {name}(")].iter().find_map(|head| source.find(head));
    let Some(at) = at else { return false };
    let above = source[..at].lines().rev().map(str::trim).skip_while(|line| line.is_empty());
    above
        .take_while(|line| line.starts_with("#[") || line.starts_with("///"))
        .any(|line| line.contains("test"))
}

#[test]
fn every_test_of_the_table_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("SECURITY.md")).expect("is there");
    let mut shown = BTreeSet::new();

    for line in text.lines().filter(|line| line.starts_with("| S") || line.starts_with("| -")) {
        let columns: Vec<_> = line.trim_matches('|').split(" | ").collect();
        let [row, .., tests] = columns[..] else { panic!("no columns: {line}") };
        shown.insert(row.trim());
        let mut count = 0;

        for group in tests.split(';') {
            let (names, file) = group.rsplit_once('(').expect("a file in brackets");
            let file = file.trim_matches([')', '|', ' ']);
            let source = std::fs::read_to_string(root.join(file));
            let source = source.unwrap_or_else(|error| panic!("{row}: {file}: {error}"));

            for name in quoted(names) {
                assert!(has_test(&source, name), "{row}: there is no test `{name}` in {file}");
                count += 1
            }
        }

        assert!(count > 0, "{row} is shown by nothing");
    }

    for row in ROWS {
        assert!(shown.contains(row), "{row} is not in the table");
    }
}

#[test]
fn a_test_that_is_none_is_found() {
    let source = "#[test]\nfn one() {}\n\nfn two() {}\n\n/// Says.\n#[tokio::test(flavor = \"x\")]\nasync fn three() {}\n\
                  mod tests {\n    #[test]\n    fn five() {}\n\n    fn six() {}\n}\n";
    assert!(has_test(source, "one") && has_test(source, "three") && has_test(source, "five"));
    assert!(!has_test(source, "six"));
    assert!(!has_test(source, "two") && !has_test(source, "four"));
}
