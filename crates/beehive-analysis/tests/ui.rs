//! Refusals as the programmer reads them: each program of `tests/ui` beside what is said about it.
//!
//! The findings are rendered here, from their spans, without the compiler. To write the golden files again:
//! `UI_GOLDENS=write cargo test -p beehive-analysis --test ui`.

use beehive_analysis::{Faults, derivation, derive_app, derive_key, derive_message};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use std::fmt::Write;
use std::path::Path;
use syn::spanned::Spanned;

/// A finding in the compiler's manner.
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

/// The messages and spans of the `compile_error!`s in tokens.
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
        let mut block = block.clone();
        let attribute = match block.attrs.first().map(|a| &a.meta) {
            Some(syn::Meta::List(list)) => list.tokens.clone(),
            _ => TokenStream::new(),
        };
        block.attrs.clear();
        let derived = match derivation(attribute, block.into_token_stream(), Faults::default()) {
            Ok(derived) => derived,
            Err(e) => return render("error", &e.to_string(), (e.span(), e.span()), source, out),
        };
        derived
            .errors
            .iter()
            .for_each(|e| render("error", &e.to_string(), (e.span(), e.span()), source, out));
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
    let Some(derives) = attributes.iter().find(|a| a.path().is_ident("derive")) else { return };
    let Ok(name) = derives.parse_args::<syn::Ident>() else { return };
    let Some(derive) = derive_of(&name.to_string()) else { return };
    // the compiler gives a derive the item without `#[derive]`
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

#[test]
fn findings_read_as_in_the_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut programs: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of programs")
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "rs"))
        .collect();
    programs.sort();
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
