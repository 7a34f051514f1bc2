//! Serde support for [`Node`].

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Node;

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

/// Keeps the order of fields, because the order of match fields is significant.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("null, a boolean, a nonnegative integer, a string, a list or an object")
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
        Ok(Node::Text(String::from(value)))
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
        // Use a set so that the running time is not quadratic in the number of names, which the sender
        // chooses.
        let mut names = BTreeSet::new();
        while let Some((name, value)) = entries.next_entry::<String, Node>()? {
            if !names.insert(name.clone()) {
                return Err(serde::de::Error::custom(format_args!("duplicate key `{name}`")));
            }
            values.push((name, value));
        }

        Ok(Node::Record(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::ToOwned;
    use std::string::ToString;
    use std::vec;

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
