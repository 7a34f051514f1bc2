//! Compiles programs with one mistake each and checks that the compiler shows exactly one error.
//!
//! `beehive-analysis` has golden files for the errors of the macros alone. This test compiles whole programs,
//! so it also sees the compiler's own errors about types, and about items that may be missing after an error
//! of a macro. To rewrite the golden files: `DIAGNOSTICS=write cargo test --test diagnostics`.

mod compiler;

use compiler::{Finding, findings};
use std::path::{Path, PathBuf};

/// Returns the files in a folder of the repository that have this extension, sorted.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut files: Vec<_> = paths.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the program that follows `heading` on a page, with the hidden lines.
fn fenced(page: &str, heading: &str) -> String {
    let lines = page.lines().skip_while(|line| *line != heading);
    let code = lines.skip_while(|line| !line.starts_with("```")).skip(1);
    let code = code.take_while(|line| !line.starts_with("```"));
    code.map(|line| line.strip_prefix("# ").unwrap_or(line).to_string() + "\n").collect()
}

fn shown(findings: &[Finding]) -> String {
    findings.iter().map(|f| f.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_programs_of_the_pages_are_about_their_page_and_nothing_else() {
    let pages = files("src/guide/errors", "md");
    let programs: Vec<(String, String)> =
        pages.iter().map(|page| (name_of(page), fenced(&read(page), "## Before"))).collect();
    let found = findings("pages", &programs);
    let mut wrong = vec![];

    for (page, (name, findings)) in pages.iter().zip(&found) {
        let text = read(page);
        let said = fenced(&text, text.lines().next().unwrap_or_default());
        let more = format!("beehive::guide::errors::{name}");
        let all_are_about_it = findings.iter().all(|f| f.text.contains(&more));

        // `beehive-analysis` compares the errors of the macros with the page
        let is_shown = |f: &Finding| !f.title.starts_with("error[") || said.contains(f.title.as_str());
        if findings.is_empty() || !all_are_about_it || !findings.iter().all(is_shown) {
            wrong.push(format!("== {name}\n{}", shown(findings)));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_mistake_is_one_error() {
    let files = files("tests/diagnostics/programs", "rs");
    assert!(!files.is_empty());
    let programs: Vec<(String, String)> = files.iter().map(|file| (name_of(file), read(file))).collect();
    let found = findings("programs", &programs);
    let mut wrong = vec![];

    for file in files {
        let (findings, golden) = (&found[&name_of(&file)], file.with_extension("stderr"));
        let text = shown(findings);
        if std::env::var("DIAGNOSTICS").is_ok_and(|v| v == "write") {
            std::fs::write(&golden, &text).expect("a golden file");
        }

        let known = std::fs::read_to_string(&golden).unwrap_or_default();
        // each mistake is marked by a comment in the program
        let mistakes = read(&file).matches("// a mistake").count();
        let errors = findings.iter().filter(|f| f.is_error()).count();

        if known != text || errors != mistakes || findings.len() != errors {
            wrong.push(format!(
                "== {}: {mistakes} mistakes\n-- wanted\n{known}-- found\n{text}",
                file.display()
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
