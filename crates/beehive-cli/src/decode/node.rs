//! What a message says, as a tree that is written as text or as JSON.

use std::fmt;

use beehive_of::schema::Source;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

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
    Record(Vec<(String, Node)>),
}

impl Node {
    /// The bytes as hexadecimal digits.
    pub(super) fn bytes(bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
        Self::Text(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect())
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

/// Fields keep their order: that of a match's fields means something.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("null, true, false, a whole number, text, a list or an object")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element()? {
            values.push(value);
        }
        Ok(Node::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut values: Vec<(String, Node)> = Vec::new();
        while let Some((name, value)) = entries.next_entry::<String, Node>()? {
            if values.iter().any(|(known, _)| *known == name) {
                return Err(serde::de::Error::custom(format_args!("{name} is there twice")));
            }
            values.push((name, value));
        }
        Ok(Node::Record(values))
    }
}

/// A message is composed from the tree.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_tree_as_text_and_as_json() {
        let record = |fields: Vec<(&str, Node)>| {
            Node::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let node = record(vec![
            ("z", Node::Number(1)),
            ("a", Node::List(vec![record(vec![("b", Node::Flag(true))]), Node::Nothing])),
            ("data", Node::bytes(&[0, 0x1f, 0xff])),
            ("cookie", Node::Text("0xff".to_owned())),
            ("words", Node::Text("say \"it\"".to_owned())),
        ]);
        assert_eq!(node.to_string(), "z=1 a=[(b=true), none] data=001fff cookie=0xff words=say \"it\"");
        let json = r#"{"z":1,"a":[{"b":true},null],"data":"001fff","cookie":"0xff","words":"say \"it\""}"#;
        assert_eq!(serde_json::to_string(&node).unwrap(), json);
        assert_eq!(serde_json::from_str::<Node>(json).unwrap(), node);
        assert!(serde_json::from_str::<Node>(r#"{"a":1,"a":2}"#).is_err());
        assert!(serde_json::from_str::<Node>("-1").is_err());
    }
}
