//! Parses protocols and ports in settings, such as `"tcp"`, `80` and `"80-90"`. Logs use a compact encoding.

use crate::object::Conversation;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// A protocol by name or number: `"tcp"`, `"udp"`, `"icmp"` or `47`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// ICMP or ICMPv6.
    Icmp,
    /// The protocol with this number.
    Number(u8),
}

impl Protocol {
    /// Returns whether `conversation` uses this protocol.
    pub fn is_of(self, conversation: &Conversation) -> bool {
        match self {
            Protocol::Icmp => matches!(conversation.protocol, Conversation::ICMP | Conversation::ICMPV6),
            Protocol::Number(number) => conversation.protocol == number,
        }
    }
}

/// An inclusive range of ports: `80` or `"80-90"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl Ports {
    /// Returns whether `port` is in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Protocol::Icmp => f.write_str("icmp"),
            Protocol::Number(Conversation::TCP) => f.write_str("tcp"),
            Protocol::Number(Conversation::UDP) => f.write_str("udp"),
            Protocol::Number(number) => number.fmt(f),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ports { first, last } = self;
        if first == last { first.fmt(f) } else { write!(f, "{first}-{last}") }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a string, such as 80 or \"80-90\" for ports")]
enum Written {
    Number(u64),
    Text(String),
}

impl TryFrom<Written> for Protocol {
    type Error = String;

    fn try_from(written: Written) -> Result<Protocol, String> {
        match written {
            Written::Text(name) => match name.as_str() {
                "tcp" => Ok(Protocol::Number(Conversation::TCP)),
                "udp" => Ok(Protocol::Number(Conversation::UDP)),
                "icmp" => Ok(Protocol::Icmp),
                number => number.parse().map(Protocol::Number).map_err(|_| {
                    format!("unknown protocol `{name}` (expected \"tcp\", \"udp\", \"icmp\" or a number)")
                }),
            },
            Written::Number(number) => number
                .try_into()
                .map(Protocol::Number)
                .map_err(|_| format!("{number} is not a protocol number (expected 0 to 255)")),
        }
    }
}

impl TryFrom<Written> for Ports {
    type Error = String;

    fn try_from(written: Written) -> Result<Ports, String> {
        let text = match written {
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        };
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Ports { first, last }),
            _ => Err(format!("`{text}` is neither a port nor a range of ports (expected 80 or \"80-90\")")),
        }
    }
}

/// Encodes a type as text in human-readable formats, and as numbers in other formats.
macro_rules! as_people_write {
    ($kind:ident, $pair:ty, $to:expr, $from:expr) => {
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match serializer.is_human_readable() {
                    true => serializer.collect_str(self),
                    false => $to(*self).serialize(serializer),
                }
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match deserializer.is_human_readable() {
                    true => Written::deserialize(deserializer)?.try_into().map_err(de::Error::custom),
                    false => <$pair>::deserialize(deserializer).map($from),
                }
            }
        }
    };
}

as_people_write!(
    Protocol,
    Option<u8>,
    |protocol| match protocol {
        Protocol::Icmp => None,
        Protocol::Number(number) => Some(number),
    },
    |number| number.map_or(Protocol::Icmp, Protocol::Number)
);
as_people_write!(Ports, (u16, u16), |p: Ports| (p.first, p.last), |(first, last)| Ports { first, last });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for (protocol, text) in [
            (Protocol::Icmp, "\"icmp\""),
            (Protocol::Number(6), "\"tcp\""),
            (Protocol::Number(17), "\"udp\""),
            (Protocol::Number(47), "\"47\""),
        ] {
            assert_eq!(serde_json::to_string(&protocol).unwrap(), text);
            assert_eq!(serde_json::from_str::<Protocol>(text).unwrap(), protocol);
        }

        for (ports, text) in
            [(Ports { first: 80, last: 80 }, "\"80\""), (Ports { first: 0, last: 65_535 }, "\"0-65535\"")]
        {
            assert_eq!(serde_json::to_string(&ports).unwrap(), text);
            assert_eq!(serde_json::from_str::<Ports>(text).unwrap(), ports);
        }

        assert_eq!(serde_json::from_str::<Protocol>("47").unwrap(), Protocol::Number(47));
    }
}
