//! What is wrong with text.

use core::fmt;

use crate::encode::EncodeError;

/// How many characters of a token an error tells; [`TextError::token`] has all of it.
const SHOWN_MAX: usize = 40;

/// Why text is no flow: the token that is wrong, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextError<'t> {
    token: &'t str,
    position: usize,
    problem: Problem,
}

/// The ways in which text can be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// No field or option has this name.
    Name,
    /// No action has this name.
    Action,
    /// The value is none of this field or argument.
    Value,
    /// The field or action wants a value.
    MissingValue,
    /// The field may have no mask.
    Mask,
    /// The field is there twice.
    Twice,
    /// The field depends on another one that is absent: `tp_dst` on `tcp`, for example.
    Prerequisite,
    /// Parentheses or brackets are not closed, or something follows them.
    Parentheses,
    /// The version cannot express it.
    Version(EncodeError),
    /// The flow has no `actions=`.
    NoActions,
    /// Additions and deletions differ in what they take: `out_port` is of deletions, `idle_timeout` of additions.
    Command,
    /// What is deleted is found by a cookie and the bits of it that count: `cookie=1/-1`.
    NoMask,
    /// Instructions are done in an order of their own, in which they must be written.
    Order,
    /// The action may not be in this one, or not along with the others.
    Place,
    /// The field can only be read.
    ReadOnly,
    /// It is no port: neither a number nor the name of a reserved one. What ports of a switch are called, only the switch knows.
    Port,
}

/// A problem with a token, before it is known where that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault<'t> {
    pub(super) token: &'t str,
    pub(super) problem: Problem,
}

impl<'t> Fault<'t> {
    pub(super) fn new(token: &'t str, problem: Problem) -> Self {
        Self { token, problem }
    }

    /// The error, of a token of `text`.
    pub(super) fn within(self, text: &str) -> TextError<'t> {
        let before = self.token.as_ptr().addr().checked_sub(text.as_ptr().addr());
        let at = before.filter(|at| *at <= text.len()).unwrap_or(0);
        let position = text.get(..at).map_or(0, |start| start.chars().count()) + 1;
        TextError { token: self.token, position, problem: self.problem }
    }
}

impl<'t> TextError<'t> {
    /// What is wrong.
    pub const fn token(&self) -> &'t str {
        self.token
    }

    /// Where it starts, in characters counted from 1.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Why.
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
            Problem::Name => formatter.write_str("is the name of no field or option"),
            Problem::Action => formatter.write_str("is the name of no action"),
            Problem::Value => formatter.write_str("is no valid value"),
            Problem::MissingValue => formatter.write_str("lacks a value"),
            Problem::Mask => formatter.write_str("may have no mask"),
            Problem::Twice => formatter.write_str("is there twice"),
            Problem::Prerequisite => formatter.write_str("lacks the field that it depends on"),
            Problem::Parentheses => formatter.write_str("has parentheses that do not match"),
            Problem::Version(error) => write!(formatter, "cannot be encoded: {error}"),
            Problem::NoActions => formatter.write_str("has no actions="),
            Problem::Command => formatter.write_str("means nothing in such a command"),
            Problem::NoMask => formatter.write_str("lacks a mask: which bits of it count, as in cookie=1/-1"),
            Problem::Order => {
                formatter.write_str("comes too late: it is done before what is written before it")
            }
            Problem::Place => formatter.write_str("may not be in this action or along with these others"),
            Problem::Port => formatter
                .write_str("is no port: it takes a number, for only the switch knows the names of its ports"),
            Problem::ReadOnly => formatter.write_str("can only be read, not set"),
        }
    }
}

impl core::error::Error for TextError<'_> {}
