//! Defines the firewall's rules. The first matching rule decides.

use crate::object::{Conversation, Ports, Protocol, network};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The decision about a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The conversation is allowed, including the replies.
    Allow,
    /// No packet of the conversation is forwarded.
    #[default]
    Deny,
}

/// A rule. Omitted fields match everything.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The decision about matching conversations.
    pub action: Verdict,
    /// The source of the first packet.
    #[serde(default, deserialize_with = "network::written")]
    pub from: Option<IpNet>,
    /// The destination of the first packet.
    #[serde(default, deserialize_with = "network::written")]
    pub to: Option<IpNet>,
    /// The protocol.
    pub protocol: Option<Protocol>,
    /// The source ports.
    pub from_port: Option<Ports>,
    /// The destination ports.
    pub to_port: Option<Ports>,
}

impl Rule {
    fn fits(&self, c: &Conversation) -> bool {
        let within = |net: Option<IpNet>, address: &IpAddr| net.is_none_or(|net| net.contains(address));
        let ports = |ports: Option<Ports>, port| ports.is_none_or(|p| c.has_ports() && p.contains(port));
        within(self.from, &c.source)
            && within(self.to, &c.destination)
            && self.protocol.is_none_or(|protocol| protocol.is_of(c))
            && ports(self.from_port, c.source_port)
            && ports(self.to_port, c.destination_port)
    }
}

/// A list of rules with a default decision.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Policy {
    /// The rules, in evaluation order.
    pub rules: Vec<Rule>,
    /// The decision about conversations that no rule matches.
    pub default: Verdict,
}

impl Policy {
    /// Returns whether a conversation may begin with a packet in this direction.
    pub fn allows(&self, conversation: &Conversation) -> bool {
        let rule = self.rules.iter().find(|rule| rule.fits(conversation));
        rule.map_or(self.default, |rule| rule.action) == Verdict::Allow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::firewall::FirewallSettings;

    fn policy(text: &str) -> Policy {
        let settings: FirewallSettings = toml::from_str(text).unwrap();
        Policy { rules: settings.rules, default: settings.default }
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
            "[[rules]]\naction = \"deny\"\nfrom = \"10.0.0.66\"\n\
             [[rules]]\naction = \"allow\"\nfrom = \"10.0.0.0/24\"\nprotocol = \"tcp\"\nto_port = \"80-90\"\n\
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
    fn mistakes_are_refused_with_what_is_wrong() {
        for (rule, why) in [
            ("action = \"alow\"", "unknown variant `alow`"),
            (
                "action = \"allow\"\nfrom = \"10.0.0.300/8\"",
                "`10.0.0.300/8` is neither an address nor a network",
            ),
            ("actoin = \"allow\"", "unknown field `actoin`"),
            ("from = \"10.0.0.0/8\"", "missing field `action`"),
            ("action = \"allow\"\nto_port = \"90-80\"", "90-80"),
            ("action = \"allow\"\nto_port = [80, 443]", "port"),
            ("action = \"allow\"\nto_port = 65536", "65536"),
            ("action = \"allow\"\nprotocol = \"tpc\"", "tpc"),
        ] {
            let refused = toml::from_str::<FirewallSettings>(&format!("[[rules]]\n{rule}\n")).unwrap_err();
            assert!(refused.message().contains(why), "{rule}: {refused}");
        }
    }

    #[test]
    fn rules_go_into_a_log_and_come_back() {
        let policy = policy(
            "[[rules]]\naction = \"allow\"\nfrom = \"10.0.0.0/24\"\nprotocol = \"udp\"\nto_port = \"1-9\"\n",
        );
        let configuration = bincode::config::standard();
        let bytes = bincode::serde::encode_to_vec(&policy, configuration).unwrap();
        let (read, _): (Policy, usize) = bincode::serde::decode_from_slice(&bytes, configuration).unwrap();
        assert_eq!(read, policy);
    }
}
