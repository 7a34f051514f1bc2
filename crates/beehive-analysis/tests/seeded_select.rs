//! `tokio::select!` polls its branches in a random order, which no seed of a simulation determines. In the
//! crates that the simulator runs, every `select!` is therefore `biased`.
//!
//! `clippy.toml` cannot express this rule: it can forbid the macro, but not one form of it.

use std::fs;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Collects the lines of the `select!` calls whose first word is not `biased`.
#[derive(Default)]
struct Unbiased(Vec<usize>);

impl<'ast> Visit<'ast> for Unbiased {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let is_select = call.path.segments.last().is_some_and(|name| name.ident == "select");
        let first = call.tokens.clone().into_iter().next().map(|token| token.to_string());
        if is_select && first.as_deref() != Some("biased") {
            self.0.push(call.path.span().start().line)
        }
    }
}

fn unbiased_in(source: &str) -> Vec<usize> {
    let mut unbiased = Unbiased::default();
    unbiased.visit_file(&syn::parse_file(source).expect("the file compiles"));
    unbiased.0
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into)
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path)
        }
    }
}

#[test]
fn no_select_draws_its_own_random_numbers() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in `crates/`");
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).expect("the folder of crates") {
        let folder = entry.expect("an entry").path().join("src");
        // the simulator runs the crates that turn on the rules of `clippy.toml`
        let root = fs::read_to_string(folder.join("lib.rs")).unwrap_or_default();
        if root.contains("warn(clippy::disallowed_methods") {
            sources(&folder, &mut files)
        }
    }
    assert!(files.iter().any(|file| file.ends_with("beehive-core/src/hive/stop.rs")), "the hive is checked");

    let mut wrong: Vec<String> = Vec::new();
    for file in &files {
        let source = fs::read_to_string(file).expect("the file can be read");
        wrong.extend(unbiased_in(&source).iter().map(|line| format!("{}:{line}", file.display())));
    }
    assert!(wrong.is_empty(), "`select!` without `biased;`:\n{}", wrong.join("\n"));
}

#[test]
fn a_select_without_bias_is_found() {
    let source =
        "async fn f() {\n tokio::select! { biased; () = a => {} }\n tokio::select! { () = a => {} }\n}";
    assert_eq!(unbiased_in(source), [3]);
}
