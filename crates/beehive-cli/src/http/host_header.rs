//! Checks the `Host` header to prevent DNS rebinding: a web page whose host name resolves to this machine must not
//! reach the API.

use std::net::{IpAddr, Ipv6Addr};

/// Returns whether the value of a `Host` header is localhost, an IP address, or one of `names`. The port is ignored.
pub(super) fn is_allowed(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };

    let name = name.trim_end_matches('.');
    if let Some(inner) = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().is_ok();
    }

    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || names.iter().any(|allowed| name.eq_ignore_ascii_case(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_meant() {
        let names = ["sdn.example".to_string()];
        for good in [
            "localhost",
            "localhost:8653",
            "LOCALHOST.",
            "127.0.0.1:1",
            "[::1]:8653",
            "[::1]",
            "SDN.example:80",
        ] {
            assert!(is_allowed(good, &names), "{good}");
        }

        for bad in [
            "",
            "evil.example",
            "localhost.evil.example:8653",
            "127.0.0.1.evil.example",
            "[evil]",
            ":80",
            "[::1",
        ] {
            assert!(!is_allowed(bad, &names), "{bad}");
        }
    }
}
