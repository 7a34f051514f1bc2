//! The error of composing a message from named values: the path of the value and the problem.

use alloc::string::String;
use core::fmt;

use crate::encode::EncodeError;

/// Maximum number of characters of a value that an error message shows.
const SHOWN_MAX: usize = 40;

/// The reason why a message cannot be composed from named values. The buffer is left unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComposeError {
    path: String,
    problem: ComposeProblem,
}

/// The problem with a named value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ComposeProblem {
    /// No field at this place has this name in this version.
    Unknown {
        /// The most similar valid name, if there is one.
        nearest: Option<String>,
    },
    /// The key is duplicated.
    Twice,
    /// The key is mandatory, but absent.
    Missing,
    /// The value is misspelled, out of range, of the wrong type, or not valid in this version. This variant
    /// contains the value, unless it is null, a list or a record.
    Value(Option<String>),
    /// The value cannot be encoded.
    Encode(EncodeError),
}

impl ComposeError {
    pub(super) fn new(path: String, problem: ComposeProblem) -> Self {
        Self { path, problem }
    }

    /// Returns the path of the value from the root, for example `actions[0].port`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the problem with the value.
    pub const fn problem(&self) -> &ComposeProblem {
        &self.problem
    }
}

impl fmt::Display for ComposeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.problem {
            ComposeProblem::Unknown { nearest: None } => {
                write!(formatter, "unknown key `{path}`")
            }
            ComposeProblem::Unknown { nearest: Some(name) } => {
                write!(formatter, "unknown key `{path}` (did you mean `{name}`?)")
            }
            ComposeProblem::Twice => write!(formatter, "duplicate key `{path}`"),
            ComposeProblem::Missing => write!(formatter, "missing key `{path}`"),
            ComposeProblem::Value(Some(value)) => {
                let (value, more) = match value.char_indices().nth(SHOWN_MAX) {
                    Some((end, _)) => (value.get(..end).unwrap_or(""), "…"),
                    None => (value.as_str(), ""),
                };
                write!(
                    formatter,
                    "invalid value `{value}{more}` for `{path}`: misspelled, out of range, or not in this version"
                )
            }
            ComposeProblem::Value(None) => {
                write!(formatter, "`{path}` has a value of the wrong type")
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
