//! Parses networks in settings. A single address stands for the network that contains only that address.

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, de};
use std::net::IpAddr;

/// Parses a network such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
///
/// # Errors
///
/// Returns an error if `text` is neither a network nor an address. The error describes the expected syntax.
pub fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network.map_err(|_| {
        format!(
            "`{text}` is neither an address nor a network (expected 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32)"
        )
    })
}

/// Deserializes an optional network: from text in human-readable formats, and from ipnet's own encoding in logs.
pub(crate) fn written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpNet>, D::Error> {
    if !deserializer.is_human_readable() {
        return Option::deserialize(deserializer);
    }
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| network(&text)).transpose().map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_network_of_its_own() {
        assert_eq!(network("10.0.0.7"), network("10.0.0.7/32"));
        assert_eq!(network("2001:db8::7"), network("2001:db8::7/128"));
        assert_ne!(network("10.0.0.7"), network("10.0.0.0/8"));
        for wrong in ["", "10.0.0.0/33", "10.0.0.300", "10.0.0", "host"] {
            assert!(network(wrong).is_err_and(|words| words.contains(&format!("`{wrong}`"))), "{wrong}");
        }
    }
}
