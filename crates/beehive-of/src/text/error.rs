//! Errors of parsing text.

use core::fmt;

use crate::encode::EncodeError;

/// Maximum number of characters of a token that an error message shows. [`TextError::token`] returns the
/// whole token.
const SHOWN_MAX: usize = 40;

/// The reason why text is not a valid flow: the invalid token, its position and the problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextError<'t> {
    token: &'t str,
    position: usize,
    problem: Problem,
}

/// The problem with a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// No field or option has this name.
    Name,
    /// No action has this name.
    Action,
    /// The value is not valid for the field or argument.
    Value,
    /// The field or action requires a value.
    MissingValue,
    /// The field does not support a mask.
    Mask,
    /// The field is duplicated or contradicts another field.
    Twice,
    /// The field lacks its prerequisite; for example, `tp_dst` requires `tcp` or another protocol with ports.
    Prerequisite,
    /// Parentheses or brackets are unbalanced or nested too deeply, or text follows them.
    Parentheses,
    /// The version cannot express this part of the flow.
    Version(EncodeError),
    /// The flow has no `actions=`.
    NoActions,
    /// The option is not valid for the command; for example, `out_port` is valid for deletions only, and
    /// `idle_timeout` is not valid for deletions.
    Command,
    /// The cookie of a deletion requires a mask: `cookie=1/-1`.
    NoMask,
    /// The instructions are not written in the order in which switches execute them.
    Order,
    /// The action is not allowed in the enclosing action or together with the other actions.
    Place,
    /// The field is read-only.
    ReadOnly,
    /// The port is neither a number nor the name of a reserved port. Only the switch knows the names of other
    /// ports.
    Port,
}

/// A problem with a token, before its position is determined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault<'t> {
    pub(super) token: &'t str,
    pub(super) problem: Problem,
}

impl<'t> Fault<'t> {
    pub(super) fn new(token: &'t str, problem: Problem) -> Self {
        Self { token, problem }
    }

    /// Adds the position of the token, which must be a part of `text`.
    pub(super) fn within(self, text: &str) -> TextError<'t> {
        let before = self.token.as_ptr().addr().checked_sub(text.as_ptr().addr());
        let at = before.filter(|at| *at <= text.len()).unwrap_or(0);
        let position = text.get(..at).map_or(0, |start| start.chars().count()) + 1;
        TextError { token: self.token, position, problem: self.problem }
    }
}

impl<'t> TextError<'t> {
    /// Returns the invalid token.
    pub const fn token(&self) -> &'t str {
        self.token
    }

    /// Returns the position of the token's first character, counted from 1.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Returns the problem with the token.
    pub const fn problem(&self) -> Problem {
        self.problem
    }
}

impl fmt::Display for TextError<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.token.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => write!(formatter, "`{}…`", self.token.get(..end).unwrap_or(""))?,
            None => write!(formatter, "`{}`", self.token)?,
        }

        write!(formatter, " at character {} ", self.position)?;
        match self.problem {
            Problem::Name => formatter.write_str("is not a known field or option"),
            Problem::Action => formatter.write_str("is not a known action"),
            Problem::Value => formatter.write_str("is not a valid value"),
            Problem::MissingValue => formatter.write_str("requires a value"),
            Problem::Mask => formatter.write_str("does not support a mask"),
            Problem::Twice => formatter.write_str("is duplicated or contradicts an earlier part"),
            Problem::Prerequisite => {
                formatter.write_str("lacks its prerequisite field, as tp_dst without tcp")
            }
            Problem::Parentheses => formatter.write_str("has unbalanced or too deeply nested parentheses"),
            Problem::Version(error) => write!(formatter, "cannot be encoded: {error}"),
            Problem::NoActions => formatter.write_str("lacks actions= (use actions=drop to drop packets)"),
            Problem::Command => formatter.write_str("is not valid for this command"),
            Problem::NoMask => formatter.write_str("requires a mask, as in cookie=1/-1"),
            Problem::Order => {
                formatter.write_str("is out of order: write instructions in the order of their execution")
            }
            Problem::Place => {
                formatter.write_str("is not allowed in this action or together with the other actions")
            }
            Problem::Port => formatter
                .write_str("is not a port: use the port number, because only the switch knows port names"),
            Problem::ReadOnly => formatter.write_str("is read-only"),
        }
    }
}

impl core::error::Error for TextError<'_> {}
