//! Extracts the names in switch certificates and compares them with node ids.

use crate::object::NodeId;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// Returns the names in a certificate: the common names of its subject, and its subject alternative names (RFC 5280,
/// 4.1.2.6 and 4.2.1.6). Returns an empty list if the certificate cannot be parsed.
pub(super) fn names(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Vec::new() };

    let common = certificate.subject().iter_common_name();
    let mut names: Vec<String> = common.filter_map(|name| name.as_str().ok().map(str::to_string)).collect();
    if let Ok(Some(alternative)) = certificate.subject_alternative_name() {
        names.extend(alternative.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) | GeneralName::URI(name) | GeneralName::RFC822Name(name) => {
                Some((*name).to_string())
            }
            _ => None,
        }));
    }

    names
}

/// Returns whether `name` names `node`, that is, whether one of its words is the node id in 16 hexadecimal digits.
/// Any character that is neither a letter nor a digit separates words. Examples: `00000000000000a1`,
/// `00000000000000a1.switches.example` and `switch 00000000000000A1`.
pub(super) fn names_node(name: &str, node: NodeId) -> bool {
    let wanted = node.to_string();
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.eq_ignore_ascii_case(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes() {
        let node = NodeId(0xa1);
        for name in [
            "00000000000000a1",
            "00000000000000A1.switches.example",
            "switch 00000000000000a1 id:6f2a",
            "urn:dpid:00000000000000a1",
        ] {
            assert!(names_node(name, node), "{name}");
        }

        for name in
            ["", "a1", "000000000000000a1", "x00000000000000a1", "00000000000000a2", "0000:00000000:00a1"]
        {
            assert!(!names_node(name, node), "{name}");
        }
    }

    #[test]
    fn names_are_read_from_all_places() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(["a.example".to_string()]).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "00000000000000a1");
        let certificate = parameters.self_signed(&key).unwrap();
        let names = names(certificate.der());
        assert!(names.contains(&"00000000000000a1".to_string()), "{names:?}");
        assert!(names.contains(&"a.example".to_string()), "{names:?}");
        assert_eq!(super::names(b"no certificate"), Vec::<String>::new());
    }
}
