//! Restricts which addresses may connect, and which node ids they may claim. Without a list, all of them are allowed.

use crate::object::NodeId;
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The access lists of a listener. By default all peers may connect.
#[derive(Debug, Default)]
pub struct Access {
    addresses: Option<Vec<IpNet>>,
    nodes: Option<BTreeSet<NodeId>>,
    /// Number of connections refused because of their identity.
    refused: AtomicU64,
}

impl Access {
    /// Allows connections only from these networks.
    #[must_use]
    pub fn addresses(mut self, networks: impl IntoIterator<Item = IpNet>) -> Access {
        self.addresses = Some(networks.into_iter().collect());
        self
    }

    /// Allows only these nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: impl IntoIterator<Item = NodeId>) -> Access {
        self.nodes = Some(nodes.into_iter().collect());
        self
    }

    /// Returns whether a peer at `address` may connect. An IPv4-mapped IPv6 address counts as the IPv4
    /// address.
    pub fn admits_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.addresses
            .as_ref()
            .is_none_or(|networks| networks.iter().any(|network| network.contains(&address)))
    }

    /// Returns whether a switch may claim the node id `node`.
    pub fn admits_node(&self, node: NodeId) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }

    /// Counts a connection refused because of its identity, and returns the new total.
    pub(in crate::driver::openflow) fn refused(&self) -> u64 {
        self.refused.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may() {
        let open = Access::default();
        assert!(open.admits_address([203, 0, 113, 1].into()) && open.admits_node(NodeId(7)));
        let networks = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7/32"].map(|text| text.parse().unwrap());
        let access = Access::default().addresses(networks).nodes([NodeId(7)]);

        for (address, may) in [
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8::1", true),
            ("2001:db9::1", false),
            ("::ffff:10.0.0.1", true),
            ("::ffff:11.0.0.1", false),
        ] {
            assert_eq!(access.admits_address(address.parse().unwrap()), may, "{address}");
        }

        assert!(access.admits_node(NodeId(7)) && !access.admits_node(NodeId(8)));
        let nobody = Access::default().addresses([]).nodes([]);
        assert!(!nobody.admits_address([10, 0, 0, 1].into()) && !nobody.admits_node(NodeId(7)));
    }
}
