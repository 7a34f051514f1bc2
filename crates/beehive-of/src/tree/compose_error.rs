//! Why named values are no message: which of them, and what is wrong with it.

use alloc::string::String;
use core::fmt;

use crate::encode::EncodeError;

/// How many characters of a value an error tells.
const SHOWN_MAX: usize = 40;

/// Why named values are no message. The buffer is left as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComposeError {
    path: String,
    problem: ComposeProblem,
}

/// The ways in which named values can be no message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ComposeProblem {
    /// Nothing in this place has this name, in this version.
    Unknown {
        /// The name that was probably meant.
        nearest: Option<String>,
    },
    /// The key is there twice.
    Twice,
    /// The key must be there.
    Missing,
    /// The value is misspelt, out of range, of another kind than the field's, or none in this version; it is here as it is told, if it
    /// is neither a list nor a record.
    Value(Option<String>),
    /// What is told cannot be encoded.
    Encode(EncodeError),
}

impl ComposeError {
    pub(super) fn new(path: String, problem: ComposeProblem) -> Self {
        Self { path, problem }
    }

    /// Where it is: the key, after the keys and indices of what it is in, as `actions[0].port`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong there.
    pub const fn problem(&self) -> &ComposeProblem {
        &self.problem
    }
}

impl fmt::Display for ComposeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.problem {
            ComposeProblem::Unknown { nearest: None } => {
                write!(formatter, "`{path}` is the name of nothing here")
            }
            ComposeProblem::Unknown { nearest: Some(name) } => {
                write!(formatter, "`{path}` is the name of nothing here; `{name}` is like it")
            }
            ComposeProblem::Twice => write!(formatter, "`{path}` is there twice"),
            ComposeProblem::Missing => write!(formatter, "`{path}` is missing"),
            ComposeProblem::Value(Some(value)) => {
                let (value, more) = match value.char_indices().nth(SHOWN_MAX) {
                    Some((end, _)) => (value.get(..end).unwrap_or(""), "…"),
                    None => (value.as_str(), ""),
                };
                write!(
                    formatter,
                    "`{path}` cannot be `{value}{more}`: misspelt, out of range, or not in this version"
                )
            }
            ComposeProblem::Value(None) => {
                write!(formatter, "`{path}` has a value of another kind than its own")
            }
            ComposeProblem::Encode(error) if path.is_empty() => write!(formatter, "{error}"),
            ComposeProblem::Encode(error) => write!(formatter, "`{path}`: {error}"),
        }
    }
}

impl core::error::Error for ComposeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.problem {
            ComposeProblem::Encode(error) => Some(error),
            _ => None,
        }
    }
}
