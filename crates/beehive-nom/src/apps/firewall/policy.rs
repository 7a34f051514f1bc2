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
pub struct Rule {
    /// What becomes of what fits.
    pub action: Verdict,
    /// Who speaks first.
    pub from: Option<IpNet>,
    /// To whom.
    pub to: Option<IpNet>,
    /// By which protocol.
    pub protocol: Option<Protocol>,
    /// From which ports.
    pub from_port: Option<Ports>,
    /// To which ports.
    pub to_port: Option<Ports>,
}

/// A protocol by name or number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Protocol {
    /// ICMP, for IPv4 or IPv6.
    Icmp,
    /// The one with this number.
    Number(u8),
}

/// Ports in a row, the first and the last among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Rule {
    fn fits(&self, c: &Conversation) -> bool {
        let within = |net: Option<IpNet>, address: &IpAddr| net.is_none_or(|net| net.contains(address));
        let ports = |wanted: Option<Ports>, port: u16| {
            wanted.is_none_or(|Ports { first, last }| c.has_ports() && (first..=last).contains(&port))
        };
        within(self.from, &c.source)
            && within(self.to, &c.destination)
            && self.protocol.is_none_or(|protocol| match protocol {
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
