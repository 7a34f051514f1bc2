//! The tokenizer: splits text into names with values, separated by commas and white space, with nested
//! parentheses.

use super::error::{Fault, Problem};

/// A name with an optional value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token<'t> {
    /// The text of the whole token.
    pub(super) whole: &'t str,
    /// The name; empty if the token starts with a parenthesis.
    pub(super) name: &'t str,
    /// The text after `=` or `:`, or between parentheses.
    pub(super) value: Option<&'t str>,
    /// Whether the value is in parentheses.
    pub(super) parenthesized: bool,
    /// The text after the parentheses, if it starts with `->`.
    pub(super) rest: &'t str,
}

impl<'t> Token<'t> {
    pub(super) fn fault(&self, problem: Problem) -> Fault<'t> {
        Fault::new(self.whole, problem)
    }

    /// Returns the name as written in the text.
    pub(super) fn written(&self) -> &'t str {
        self.whole.get(..self.name.len()).filter(|name| !name.is_empty()).unwrap_or(self.whole)
    }

    /// Returns the value. Fails if it is absent or empty.
    pub(super) fn want(&self) -> Result<&'t str, Fault<'t>> {
        match self.value {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(self.fault(Problem::MissingValue)),
        }
    }
}

/// Returns the next token of a list and the text after it; `None` at the end.
///
/// As in `ovs-ofctl`, a token ends with the parentheses after its name: `ct(commit)exit` is two actions. Only
/// `->` continues a token after its parentheses.
pub(super) fn next(text: &str) -> Result<Option<(Token<'_>, &str)>, Fault<'_>> {
    let text = text.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
    if text.is_empty() {
        return Ok(None);
    }

    let named = text.find(|letter: char| matches!(letter, ':' | '=' | '(') || is_end(letter));
    let at = named.unwrap_or(text.len());
    let (name, value) = text.split_at_checked(at).unwrap_or((text, ""));
    if name.contains(')') {
        return Err(Fault::new(text, Problem::Parentheses));
    }

    let whole = |end: usize| text.split_at_checked(end).unwrap_or((text, ""));
    let token = Token { whole: name, name, value: None, parenthesized: false, rest: "" };
    Ok(Some(match value.chars().next() {
        Some('(') => {
            let closed = closing(text, at)?;
            let rest = text.get(closed + 1..).unwrap_or("");
            let end = if rest.starts_with("->") { value_end(text, closed + 1)? } else { closed + 1 };
            let (whole, after) = whole(end);
            let (value, rest) = (whole.get(at + 1..closed), whole.get(closed + 1..).unwrap_or(""));
            (Token { whole, value, parenthesized: true, rest, ..token }, after)
        }
        Some(':' | '=') => {
            let (whole, after) = whole(value_end(text, at + 1)?);
            (Token { whole, value: whole.get(at + 1..), ..token }, after)
        }

        _ => (token, value),
    }))
}

fn is_end(letter: char) -> bool {
    letter == ',' || letter.is_whitespace()
}

/// Returns the position of the parenthesis that closes the one at `open`.
fn closing(text: &str, open: usize) -> Result<usize, Fault<'_>> {
    let mut depth = 0usize;
    for (at, letter) in text.get(open..).unwrap_or("").char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth <= 1 => return Ok(open + at),
            ')' => depth -= 1,
            _ => {}
        }
    }

    Err(Fault::new(text, Problem::Parentheses))
}

/// Returns the end of a value that is not in parentheses, but may contain parentheses.
fn value_end(text: &str, start: usize) -> Result<usize, Fault<'_>> {
    let mut at = start;
    while let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) {
        match letter {
            '(' => at = closing(text, at)? + 1,
            ')' => return Err(Fault::new(text, Problem::Parentheses)),
            letter if is_end(letter) => break,
            letter => at += letter.len_utf8(),
        }
    }

    Ok(at)
}

/// An iterator over the tokens of a list.
pub(super) struct Tokens<'t>(pub(super) &'t str);

impl<'t> Iterator for Tokens<'t> {
    type Item = Result<Token<'t>, Fault<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        match next(self.0) {
            Ok(Some((token, rest))) => {
                self.0 = rest;
                Some(Ok(token))
            }
            Ok(None) => None,
            Err(fault) => {
                self.0 = "";
                Some(Err(fault))
            }
        }
    }
}
