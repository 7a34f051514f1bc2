//! What a message says, as a tree that is written as text or as JSON.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    /// Nothing: `none`, or JSON's null.
    Nothing,
    /// True or false.
    Flag(bool),
    /// A number.
    Number(u64),
    /// Words, or a number that is better read in another notation.
    Text(String),
    /// Values in order.
    List(Vec<Node>),
    /// Values with names, in order.
    Record(Vec<(&'static str, Node)>),
}

impl Node {
    /// `value`, or nothing.
    pub(super) fn optional<T: Into<Node>>(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }

    /// The value's text.
    pub(super) fn text(value: impl fmt::Display) -> Self {
        Self::Text(value.to_string())
    }

    /// The number in hexadecimal notation.
    pub(super) fn hex(value: u64) -> Self {
        Self::Text(format!("{value:#x}"))
    }

    /// The bytes as hexadecimal digits.
    pub(super) fn bytes(bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
        Self::Text(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect())
    }
}

macro_rules! from_number {
    ($($type:ty)*) => {
        $(
            impl From<$type> for Node {
                fn from(value: $type) -> Self {
                    Self::Number(value.into())
                }
            }
        )*
    };
}

from_number!(u8 u16 u32 u64);

impl From<bool> for Node {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Node {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => serializer.serialize_none(),
            Self::Flag(value) => serializer.serialize_bool(*value),
            Self::Number(value) => serializer.serialize_u64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(values) => serializer.collect_seq(values),
            Self::Record(values) => {
                let mut map = serializer.serialize_map(Some(values.len()))?;
                for (name, value) in values {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

/// `name=value` pairs at the top; lists in brackets, records inside of others in parentheses.
impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(values) => write_pairs(values, formatter),
            value => write_inner(value, formatter),
        }
    }
}

fn write_pairs(values: &[(&'static str, Node)], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_tree_as_text_and_as_json() {
        let node = Node::Record(vec![
            ("z", Node::Number(1)),
            ("a", Node::List(vec![Node::Record(vec![("b", true.into())]), Node::Nothing])),
            ("data", Node::bytes(&[0, 0x1f, 0xff])),
            ("cookie", Node::hex(255)),
            ("words", Node::text("say \"it\"")),
        ]);
        assert_eq!(node.to_string(), "z=1 a=[(b=true), none] data=001fff cookie=0xff words=say \"it\"");
        let json = r#"{"z":1,"a":[{"b":true},null],"data":"001fff","cookie":"0xff","words":"say \"it\""}"#;
        assert_eq!(serde_json::to_string(&node).unwrap(), json);
    }
}
