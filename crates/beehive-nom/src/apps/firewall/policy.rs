//! What a firewall goes by: rules, the first that fits decides.

use crate::object::Conversation;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What becomes of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may take place; its answers pass too.
    Allow,
    /// None of its packets is forwarded.
    #[default]
    Deny,
}

/// A rule: what is left out fits everything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What becomes of what fits.
    pub action: Verdict,
    /// Who speaks first: `10.0.0.0/8`, `2001:db8::/32`, `10.1.2.3/32`.
    pub from: Option<IpNet>,
    /// To whom.
    pub to: Option<IpNet>,
    /// By which protocol.
    pub protocol: Option<Protocol>,
    /// From which port, or from the first of these two to the second.
    pub from_port: Option<Ports>,
    /// To which port, or from the first of these two to the second.
    pub to_port: Option<Ports>,
}

/// A protocol by name or number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP, for IPv4 or IPv6.
    Icmp,
    /// The one with this number.
    #[serde(untagged)]
    Number(u8),
}

/// A port, or several in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ports {
    /// This one.
    One(u16),
    /// From the first to the second.
    Range(u16, u16),
}

impl Rule {
    fn fits(&self, c: &Conversation) -> bool {
        let within = |net: Option<IpNet>, address: &IpAddr| net.is_none_or(|net| net.contains(address));
        let ports = |wanted: Option<Ports>, port: u16| match wanted {
            None => true,
            Some(_) if !c.has_ports() => false,
            Some(Ports::One(one)) => one == port,
            Some(Ports::Range(first, last)) => (first..=last).contains(&port),
        };
        within(self.from, &c.source)
            && within(self.to, &c.destination)
            && self.protocol.is_none_or(|protocol| match protocol {
                Protocol::Tcp => c.protocol == Conversation::TCP,
                Protocol::Udp => c.protocol == Conversation::UDP,
                Protocol::Icmp => matches!(c.protocol, Conversation::ICMP | Conversation::ICMPV6),
                Protocol::Number(number) => c.protocol == number,
            })
            && ports(self.from_port, c.source_port)
            && ports(self.to_port, c.destination_port)
    }
}

/// The rules in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Policy {
    /// In the order in which they are asked.
    pub rules: Vec<Rule>,
    /// What becomes of what fits none.
    pub default: Verdict,
}

impl Policy {
    /// Whether a conversation may begin with a packet in this direction.
    pub fn allows(&self, conversation: &Conversation) -> bool {
        let rule = self.rules.iter().find(|rule| rule.fits(conversation));
        rule.map_or(self.default, |rule| rule.action) == Verdict::Allow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Policy {
        #[derive(Deserialize)]
        struct File {
            rules: Vec<Rule>,
        }
        Policy { rules: toml::from_str::<File>(text).unwrap().rules, default: Verdict::Deny }
    }

    fn tcp(source: &str, destination: &str, destination_port: u16) -> Conversation {
        Conversation {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol: Conversation::TCP,
            source_port: 40_000,
            destination_port,
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = policy(
            "[[rules]]\naction = \"deny\"\nfrom = \"10.0.0.66/32\"\n\
             [[rules]]\naction = \"allow\"\nfrom = \"10.0.0.0/24\"\nprotocol = \"tcp\"\nto_port = [80, 90]\n\
             [[rules]]\naction = \"allow\"\nprotocol = 47\n",
        );
        assert!(policy.allows(&tcp("10.0.0.1", "10.9.0.1", 80)));
        assert!(policy.allows(&tcp("10.0.0.1", "10.9.0.1", 90)));
        assert!(!policy.allows(&tcp("10.0.0.1", "10.9.0.1", 91)));
        assert!(!policy.allows(&tcp("10.0.0.66", "10.9.0.1", 80)));
        assert!(!policy.allows(&tcp("10.0.1.1", "10.9.0.1", 80)));
        assert!(!policy.allows(&tcp("2001:db8::1", "2001:db8::2", 80)));
        let tunnel = Conversation { protocol: 47, ..tcp("10.0.1.1", "10.9.0.1", 0) };
        assert!(policy.allows(&tunnel));
    }

    #[test]
    fn a_rule_about_ports_fits_nothing_that_has_none() {
        let policy = policy("[[rules]]\naction = \"allow\"\nto_port = 0\n");
        assert!(policy.allows(&tcp("10.0.0.1", "10.0.0.2", 0)));
        assert!(!policy.allows(&Conversation { protocol: 1, ..tcp("10.0.0.1", "10.0.0.2", 0) }));
    }

    #[test]
    fn mistakes_are_refused() {
        for text in
            ["action = \"alow\"", "action = \"allow\"\nfrom = \"10.0.0.300/8\"", "actoin = \"allow\"", ""]
        {
            assert!(toml::from_str::<Rule>(text).is_err(), "{text}");
        }
    }
}
