//! Text in parts: names with values, separated by commas and white space, with parentheses in them.

use super::error::{Fault, Problem};

/// A name, and what follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token<'t> {
    /// All of it.
    pub(super) whole: &'t str,
    /// The name; empty before parentheses without one.
    pub(super) name: &'t str,
    /// What is after `=` or `:`, or inside of parentheses.
    pub(super) value: Option<&'t str>,
    /// Whether the value is in parentheses.
    pub(super) parenthesised: bool,
    /// What follows the parentheses.
    pub(super) rest: &'t str,
}

impl<'t> Token<'t> {
    pub(super) fn fault(&self, problem: Problem) -> Fault<'t> {
        Fault::new(self.whole, problem)
    }

    /// The value, which must be there.
    pub(super) fn want(&self) -> Result<&'t str, Fault<'t>> {
        match self.value {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(self.fault(Problem::MissingValue)),
        }
    }
}

/// The next part of a list, and what follows it; `None` at its end.
pub(super) fn next(text: &str) -> Result<Option<(Token<'_>, &str)>, Fault<'_>> {
    let text = text.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
    if text.is_empty() {
        return Ok(None);
    }
    let mut depth = 0usize;
    let mut open = None;
    let mut closed = None;
    let mut end = text.len();
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => {
                if depth == 0 && letter == '(' && open.is_none() {
                    open = Some(at);
                }
                depth += 1;
            }
            ')' | ']' => {
                depth = depth.checked_sub(1).ok_or(Fault::new(text, Problem::Parentheses))?;
                if depth == 0 && letter == ')' && closed.is_none() {
                    closed = Some(at);
                }
            }
            ',' if depth == 0 => {
                end = at;
                break;
            }
            letter if depth == 0 && letter.is_whitespace() => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(Fault::new(text, Problem::Parentheses));
    }
    let (whole, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let separator = whole.find(['=', ':']);
    let token = match (open, closed, separator) {
        // `name(..)`; `name=..(..)` and `name:..(..)` are values with parentheses.
        (Some(open), Some(closed), separator) if separator.is_none_or(|at| at > open) => Token {
            whole,
            name: whole.get(..open).unwrap_or(""),
            value: whole.get(open + 1..closed),
            parenthesised: true,
            rest: whole.get(closed + 1..).unwrap_or(""),
        },
        (_, _, Some(at)) => Token {
            whole,
            name: whole.get(..at).unwrap_or(""),
            value: whole.get(at + 1..),
            parenthesised: false,
            rest: "",
        },
        _ => Token { whole, name: whole, value: None, parenthesised: false, rest: "" },
    };
    Ok(Some((token, rest)))
}

/// The parts of a list.
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
