//! The nodes of the tree, and their text notation.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::schema::Source;

/// A value in the tree.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Node {
    /// No value: `none` in text, null in JSON.
    Nothing,
    /// True or false.
    Flag(bool),
    /// A number.
    Number(u64),
    /// Text, or a number in a notation other than decimal, such as `0xff`.
    Text(String),
    /// An ordered list of values.
    List(Vec<Node>),
    /// An ordered list of named values.
    Record(Vec<(String, Node)>),
}

impl Node {
    /// Creates a text node of hexadecimal digits from bytes.
    pub fn bytes(bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| DIGITS.get(usize::from(value & 15)).map_or('0', |digit| char::from(*digit));
        Self::Text(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect())
    }
}

/// Makes a tree a source from which a message can be composed.
impl Source for Node {
    fn field(&self, name: &str) -> Option<&dyn Source> {
        let Self::Record(values) = self else { return None };
        values.iter().find(|(known, _)| known == name).map(|(_, value)| value as &dyn Source)
    }

    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)> {
        let Self::Record(values) = self else { return None };
        values.get(index).map(|(name, value)| (name.as_str(), value as &dyn Source))
    }

    fn item(&self, index: usize) -> Option<&dyn Source> {
        let Self::List(values) = self else { return None };
        values.get(index).map(|value| value as &dyn Source)
    }

    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Text(text) => match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn flag(&self) -> Option<bool> {
        match self {
            Self::Flag(flag) => Some(*flag),
            _ => None,
        }
    }
}

/// Writes `name=value` pairs for the root record, lists in brackets, and nested records in parentheses.
impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(values) => write_pairs(values, formatter),
            value => write_inner(value, formatter),
        }
    }
}

fn write_pairs(values: &[(String, Node)], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, (name, value)) in values.iter().enumerate() {
        if index > 0 {
            formatter.write_str(" ")?;
        }
        write!(formatter, "{name}=")?;
        write_inner(value, formatter)?;
    }
    Ok(())
}

fn write_inner(value: &Node, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Node::Nothing => formatter.write_str("none"),
        Node::Flag(value) => write!(formatter, "{value}"),
        Node::Number(value) => write!(formatter, "{value}"),
        Node::Text(value) => formatter.write_str(value),
        Node::List(values) => {
            formatter.write_str("[")?;
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    formatter.write_str(", ")?;
                }
                write_inner(value, formatter)?;
            }
            formatter.write_str("]")
        }
        Node::Record(values) => {
            formatter.write_str("(")?;
            write_pairs(values, formatter)?;
            formatter.write_str(")")
        }
    }
}
