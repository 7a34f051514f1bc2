//! Prints expressions the way a programmer would write them.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// First code point of the placeholders for a helper's parameters; no source text contains these private-use
/// characters.
const PLACEHOLDERS: u32 = 0xF_0000;

/// Returns the placeholder of parameter `index`.
pub(crate) fn placeholder(index: usize) -> String {
    let code = PLACEHOLDERS.saturating_add(u32::try_from(index).unwrap_or(0));
    char::from_u32(code).map(String::from).unwrap_or_default()
}

/// Replaces the placeholders in `template` by arguments.
pub(crate) fn fill(template: &str, argument: &dyn Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(template.len());
    for c in template.chars() {
        match (c as u32).checked_sub(PLACEHOLDERS) {
            Some(index) => out += &argument(index as usize),
            None => out.push(c),
        }
    }
    out
}

/// Prints tokens, with each local variable replaced by the text that `names` returns for it.
pub(crate) fn words(tokens: TokenStream, names: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    print(tokens, names, &mut out);
    out
}

/// Prints tokens unchanged.
pub(crate) fn plain_words(tokens: TokenStream) -> String {
    words(tokens, &|_| None)
}

fn print(tokens: TokenStream, names: &dyn Fn(&str) -> Option<String>, out: &mut String) {
    // tokens before a group do not precede its content
    let start = out.len();
    let last = |out: &String| out.get(start..).unwrap_or_default().chars().next_back();
    let mut after_dot = false;
    for token in tokens {
        let glued = last(out).is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ',');
        match token {
            TokenTree::Ident(i) => {
                if glued {
                    out.push(' ');
                }

                let name = i.to_string();
                match names(&name) {
                    Some(replaced) if !after_dot => out.push_str(&replaced),
                    _ => out.push_str(&name),
                }

                after_dot = false;
            }
            TokenTree::Literal(l) => {
                if glued {
                    out.push(' ');
                }
                out.push_str(&l.to_string());
                after_dot = false;
            }
            TokenTree::Punct(p) => {
                let c = p.as_char();
                let tight = matches!(c, '.' | ',' | '&' | ':' | '?' | '!' | ';' | '\'' | '#');
                let opened = matches!(
                    last(out),
                    None | Some(' ' | '(' | '&' | '[' | '=' | '<' | '>' | '|' | '-' | '*')
                );

                if !tight && !opened {
                    out.push(' ');
                }

                out.push(c);
                if !tight && p.spacing() == Spacing::Alone && !matches!(c, '*' | '-' | '|') {
                    out.push(' ');
                }

                after_dot = c == '.';
            }
            TokenTree::Group(g) => {
                let (open, close) = match g.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => (" { ", " }"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };

                if matches!(g.delimiter(), Delimiter::Parenthesis | Delimiter::Bracket)
                    && last(out) == Some(',')
                {
                    out.push(' ');
                }

                out.push_str(open);
                print(g.stream(), names, out);
                out.push_str(close);
                after_dot = false;
            }
        }
    }
}
