//! Rules as people write them: `protocol = "tcp"`, `to_port = 80`, `to_port = "80-90"`.

use crate::apps::firewall::{Ports, Protocol, Rule, Verdict};
use crate::object::Conversation;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, de};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    action: Verdict,
    #[serde(default)]
    from: Option<IpNet>,
    #[serde(default)]
    to: Option<IpNet>,
    #[serde(default)]
    protocol: Option<NumberOrText>,
    #[serde(default)]
    from_port: Option<NumberOrText>,
    #[serde(default)]
    to_port: Option<NumberOrText>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number or a text, for a port \"80\" or \"80-90\"")]
enum NumberOrText {
    Number(u64),
    Text(String),
}

/// Rules in the order in which they are written.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
    let written = Vec::<RuleText>::deserialize(deserializer)?;
    written.into_iter().map(|rule| rule.understood().map_err(de::Error::custom)).collect()
}

impl RuleText {
    fn understood(self) -> Result<Rule, String> {
        let RuleText { action, from, to, protocol, from_port, to_port } = self;
        let protocol = protocol.map(protocol_of).transpose()?;
        let (from_port, to_port) = (from_port.map(ports_of).transpose()?, to_port.map(ports_of).transpose()?);
        Ok(Rule { action, from, to, protocol, from_port, to_port })
    }
}

fn protocol_of(written: NumberOrText) -> Result<Protocol, String> {
    match written {
        NumberOrText::Text(name) => match name.as_str() {
            "tcp" => Ok(Protocol::Number(Conversation::TCP)),
            "udp" => Ok(Protocol::Number(Conversation::UDP)),
            "icmp" => Ok(Protocol::Icmp),
            _ => Err(format!("there is no protocol `{name}`; write \"tcp\", \"udp\", \"icmp\" or a number")),
        },
        NumberOrText::Number(number) => {
            number.try_into().map(Protocol::Number).map_err(|_| format!("{number} is no protocol"))
        }
    }
}

fn ports_of(written: NumberOrText) -> Result<Ports, String> {
    let text = match written {
        NumberOrText::Number(number) => number.to_string(),
        NumberOrText::Text(text) => text,
    };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(Ports { first, last }),
        _ => Err(format!("`{text}` is neither a port nor ports in a row; write 80 or \"80-90\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::firewall::{FirewallSettings, Policy};

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
            "[[rules]]\naction = \"deny\"\nfrom = \"10.0.0.66/32\"\n\
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
            ("action = \"allow\"\nfrom = \"10.0.0.300/8\"", "10.0.0.300/8"),
            ("actoin = \"allow\"", "unknown field `actoin`"),
            ("from = \"10.0.0.0/8\"", "missing field `action`"),
            ("action = \"allow\"\nto_port = \"90-80\"", "90-80"),
            ("action = \"allow\"\nto_port = [80, 443]", "port"),
            ("action = \"allow\"\nto_port = 65536", "65536"),
            ("action = \"allow\"\nprotocol = \"tpc\"", "tpc"),
        ] {
            let refused = toml::from_str::<FirewallSettings>(&format!("[[rules]]\n{rule}\n")).unwrap_err();
            assert!(refused.to_string().contains(why), "{rule}: {refused}");
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
