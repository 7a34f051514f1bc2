//! Golden files for the errors of the macros: for each program in `tests/ui`, the errors and warnings that a
//! programmer sees.
//!
//! The test renders the errors from their spans, without the compiler. To rewrite the golden files:
//! `UI_GOLDENS=write cargo test -p beehive-analysis --test ui`.

use beehive_analysis::{derivation, derive_app, derive_key, derive_message, expand_handlers, expand_outside};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;

/// Renders an error or a warning in the style of rustc.
fn render(kind: &str, message: &str, (first, last): (Span, Span), source: &str, out: &mut String) {
    let mut lines = message.lines();
    let _ = writeln!(out, "{kind}: {}", lines.next().unwrap_or_default());
    for line in lines {
        let _ = writeln!(out, "{:1$}{line}", "", kind.len() + 2);
    }

    let (start, end) = (first.start(), last.end());
    let text = source.lines().nth(start.line.saturating_sub(1)).unwrap_or_default();
    let width = if end.line == start.line { end.column - start.column } else { text.len() - start.column };
    let gutter = start.line.to_string();
    let _ = writeln!(out, "{:1$} |", "", gutter.len());
    let _ = writeln!(out, "{gutter} | {text}");

    let _ =
        writeln!(out, "{:1$} | {2:3$}{4}\n", "", gutter.len(), "", start.column, "^".repeat(width.max(1)));
}

/// Collects the messages and spans of all `compile_error!` calls in tokens.
fn compile_errors(tokens: TokenStream, out: &mut Vec<(String, (Span, Span))>) {
    let mut pending = None;
    for t in tokens {
        match t {
            TokenTree::Ident(i) => pending = (i == "compile_error").then(|| i.span()),
            TokenTree::Group(g) if pending.is_some() => {
                if let (Some(first), Ok(text)) = (pending.take(), syn::parse2::<syn::LitStr>(g.stream())) {
                    out.push((text.value(), (first, g.span())));
                }
            }
            TokenTree::Group(g) => compile_errors(g.stream(), out),
            _ => {}
        }
    }
}

fn derive_of(name: &str) -> Option<fn(TokenStream) -> TokenStream> {
    match name {
        "App" => Some(derive_app),
        "Key" => Some(derive_key),
        "Message" => Some(derive_message),
        _ => None,
    }
}

fn item_findings(item: &syn::Item, source: &str, out: &mut String) {
    if let syn::Item::Impl(block) = item {
        if !block.attrs.iter().any(|a| a.path().is_ident("handlers")) {
            return;
        }

        let mut block = block.clone();
        let attribute = match block.attrs.first().map(|a| &a.meta) {
            Some(syn::Meta::List(list)) => list.tokens.clone(),
            _ => TokenStream::new(),
        };

        block.attrs.clear();
        let mut errors = vec![];
        compile_errors(expand_handlers(attribute.clone(), block.to_token_stream()), &mut errors);
        for (message, span) in errors {
            render("error", &message, span, source, out)
        }

        let Ok(derived) = derivation(attribute, block.into_token_stream()) else { return };

        for w in &derived.warnings {
            let text = format!("use of deprecated constant `_::{}`: {}", w.title, w.text);
            render("warning", &text, (w.handler.span(), w.handler.span()), source, out);
        }

        return;
    }

    let attributes = match item {
        syn::Item::Struct(s) => &s.attrs,
        syn::Item::Enum(e) => &e.attrs,
        syn::Item::Union(u) => &u.attrs,
        _ => return,
    };

    // `#[rcv]` outside an impl block; on methods of a block `#[handlers]` handles it
    if attributes.iter().any(|a| a.path().is_ident("rcv")) {
        let tokens = item.to_token_stream().into_iter().skip(2).collect();
        let mut errors = vec![];
        compile_errors(expand_outside("rcv", tokens), &mut errors);
        errors.into_iter().for_each(|(message, span)| render("error", &message, span, source, out));
        return;
    }

    let list = Punctuated::<syn::Path, syn::Token![,]>::parse_terminated;
    let derives = attributes.iter().filter(|a| a.path().is_ident("derive"));
    let mut names = derives.filter_map(|a| a.parse_args_with(list).ok()).flatten();
    let Some(derive) = names.find_map(|name| derive_of(&name.get_ident()?.to_string())) else { return };

    // the compiler passes the item to a derive without the `#[derive]` attribute
    let tokens: TokenStream = {
        let mut seen = 0;
        item.to_token_stream()
            .into_iter()
            .filter(|t| {
                let part = matches!(t, TokenTree::Punct(p) if p.as_char() == '#' && seen == 0)
                    || matches!(t, TokenTree::Group(g) if seen == 1 && g.stream().to_string().starts_with("derive"));
                seen += part as usize;
                !part
            })
            .collect()
    };

    let mut errors = vec![];
    compile_errors(derive(tokens), &mut errors);
    let fallback = item.span();
    for (message, span) in errors {
        let span = if span.0.start().line == 0 { (fallback, fallback) } else { span };
        render("error", &message, span, source, out);
    }
}

fn findings(source: &str) -> String {
    let mut out = String::new();
    match syn::parse_file(source) {
        Ok(file) => file.items.iter().for_each(|i| item_findings(i, source, &mut out)),
        Err(e) => render("error", &e.to_string(), (e.span(), e.span()), source, &mut out),
    }
    out.trim_end().to_string() + "\n"
}

/// Returns the files in a folder of the repository that have this extension, sorted.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut files: Vec<_> = paths.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    files
}

/// Returns the first lines of errors and warnings, with names, cells and numbers replaced by `_`.
fn headlines(findings: &str) -> BTreeSet<String> {
    let headline = |line: &str| {
        let shown = match line.strip_prefix("warning: use of deprecated constant ") {
            Some(rest) => format!("warning: {}", rest.split_once("`: ").map_or(rest, |(_, text)| text)),
            None => line.to_string(),
        };

        let said = shown.split(" (more: ").next().unwrap_or_default();
        let outside = said.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "_" });
        let text: String = outside.collect();
        let plain = |word: &str| !word.contains('[') && !word.starts_with(|c: char| c.is_ascii_digit());

        text.split(' ').map(|word| if plain(word) { word } else { "_" }).collect::<Vec<_>>().join(" ")
    };

    let is_first = |line: &&str| line.starts_with("error: ") || line.starts_with("warning: ");
    findings.lines().filter(is_first).map(headline).collect()
}

/// Counts the errors and warnings in a golden file.
fn findings_in(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("error: ") || line.starts_with("warning: ")).count()
}

/// Returns the code between the fences that follow `heading`, with the hidden lines.
fn fenced(page: &str, heading: &str) -> String {
    let lines = page.lines().skip_while(|line| *line != heading);
    let code = lines.skip_while(|line| !line.starts_with("```")).skip(1);
    let code = code.take_while(|line| !line.starts_with("```"));
    code.map(|line| line.strip_prefix("# ").unwrap_or(line).to_string() + "\n").collect()
}

#[test]
fn every_finding_has_a_page_whose_programs_are_about_it() {
    let (mut described, mut shown) = (BTreeSet::new(), String::new());
    for page in files("../../src/guide/errors", "md") {
        let name = page.display();
        let text = std::fs::read_to_string(&page).expect("a page");
        let title = text.lines().next().expect("a title");
        let said = fenced(&text, title);
        let about = headlines(&said);
        let (after, before) = (findings(&fenced(&text, "## After")), findings(&fenced(&text, "## Before")));

        assert_eq!(after.trim(), "", "{name}: something is the matter with the program after");
        described.extend(about.iter().cloned());
        shown += &said;
        if said.starts_with("error[") {
            // errors of the compiler itself are tested in `tests/diagnostics`
            continue;
        }

        let found = headlines(&before);
        let more =
            format!("more: beehive::guide::errors::{}", page.file_stem().unwrap_or_default().display());
        assert!(before.contains(&more), "{name}: the finding does not lead here:\n{before}");
        assert!(!found.is_empty(), "{name}: nothing is the matter with the program before");
        assert!(found.is_subset(&about), "{name}: before, the findings are others:\n{before}\n{about:#?}");
    }

    for golden in files("tests/ui", "stderr") {
        let text = std::fs::read_to_string(&golden).expect("a golden file");
        // the guide does not explain syn's messages about text that is not Rust
        if !golden.ends_with("does_not_parse.stderr") {
            let missing: Vec<_> = headlines(&text).difference(&described).cloned().collect();
            assert!(
                missing.is_empty(),
                "no page of the guide has what {} says: {missing:?}",
                golden.display()
            );

            for line in text.lines().map(str::trim) {
                let tells = line.starts_with("note: ") || line.starts_with("help: ");
                assert!(!tells || shown.contains(line), "no page shows this of {}: {line}", golden.display());
            }

            // every error names the page that explains it
            let named = text.matches("more: beehive::guide::errors::").count();
            assert_eq!(named, findings_in(&text), "{}", golden.display());
        }
    }
}

#[test]
fn findings_read_as_in_the_golden_files() {
    let programs = files("tests/ui", "rs");
    assert!(programs.len() >= 70, "{}", programs.len());
    let mut wrong = vec![];

    for program in programs {
        let source = std::fs::read_to_string(&program).expect("a program");
        let (found, golden) = (findings(&source), program.with_extension("stderr"));
        if std::env::var("UI_GOLDENS").is_ok_and(|v| v == "write") {
            std::fs::write(&golden, &found).expect("a golden file");
        }

        let known = std::fs::read_to_string(&golden).unwrap_or_default();
        if known != found {
            wrong.push(format!("== {}\n-- wanted\n{known}-- found\n{found}", program.display()));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
