//! Computes the loop-free tree along which packets are flooded.

use crate::object::{Link, NodeId};
use std::collections::BTreeMap;

/// Returns for each cable whether it is in the tree. The input's keys are the smaller directions of the cables; its
/// values state whether a cable works both ways and whether it was in the previous tree.
///
/// To change as little as possible, cables in the previous tree stay in the tree as long as they work. The others are
/// then added in key order. The result is deterministic.
pub fn span(cables: &BTreeMap<Link, Cable>) -> BTreeMap<Link, bool> {
    let mut groups = Groups::default();
    let mut chosen: BTreeMap<Link, bool> = cables.keys().map(|link| (*link, false)).collect();
    for before in [true, false] {
        for (link, _) in cables.iter().filter(|(_, c)| c.both_ways && c.in_tree == before) {
            if groups.unite(link.from.node, link.to.node) {
                chosen.insert(*link, true);
            }
        }
    }

    chosen
}

/// The state of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Cable {
    /// Whether both directions of the cable were found.
    pub both_ways: bool,
    /// Whether the cable is in the tree.
    pub in_tree: bool,
}

/// A union-find structure of connected switches.
#[derive(Default)]
struct Groups(BTreeMap<NodeId, NodeId>);

impl Groups {
    fn head(&mut self, node: NodeId) -> NodeId {
        let mut head = node;
        while let Some(next) = self.0.get(&head).copied().filter(|next| *next != head) {
            head = next
        }
        self.0.insert(node, head);
        head
    }

    /// Unites the groups of two switches. Returns whether they were different.
    fn unite(&mut self, one: NodeId, other: NodeId) -> bool {
        let (one, other) = (self.head(one), self.head(other));
        self.0.insert(one.max(other), one.min(other));
        one != other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{PortId, PortNo};
    use proptest::prelude::*;

    fn link(a: u64, b: u64, number: u32) -> Link {
        let end = |node, port| PortId { node: NodeId(node), port: PortNo(port) };
        let link = Link { from: end(a, number), to: end(b, 1000 + number) };
        link.min(link.reversed())
    }

    fn new(both_ways: bool) -> Cable {
        Cable { both_ways, in_tree: false }
    }

    proptest! {
        #[test]
        fn it_has_no_loop_and_leaves_nobody_out(
            ends in proptest::collection::vec((0u64..9, 0u64..9, any::<bool>(), any::<bool>()), 0..30),
        ) {
            let cables: BTreeMap<_, _> = ends
                .iter()
                .enumerate()
                .map(|(n, (a, b, both_ways, in_tree))| (link(*a, *b, n as u32), Cable { both_ways: *both_ways, in_tree: *in_tree }))
                .collect();
            let tree = span(&cables);
            let parts = |links: Vec<&Link>| {
                let mut groups = Groups::default();
                let united = links.iter().filter(|l| groups.unite(l.from.node, l.to.node)).count();
                (united, links.len())
            };
            let chosen = parts(tree.iter().filter(|(_, chosen)| **chosen).map(|(link, _)| link).collect());
            let working = parts(cables.iter().filter(|(_, c)| c.both_ways).map(|(link, _)| link).collect());

            prop_assert_eq!(chosen.0, chosen.1, "a loop");
            prop_assert_eq!(chosen.0, working.0, "a switch is left out");
        }
    }

    #[test]
    fn what_was_in_the_tree_stays() {
        let (ab, bc, ca) = (link(1, 2, 1), link(2, 3, 2), link(3, 1, 3));
        let mut cables = BTreeMap::from([(bc, new(true)), (ca, new(true))]);
        let tree = span(&cables);
        assert!(tree[&bc] && tree[&ca]);
        cables.values_mut().for_each(|cable| cable.in_tree = true);
        cables.insert(ab, new(true));
        assert!(!span(&cables)[&ab], "a new cable does not replace one in the tree, whatever its key");
        cables.remove(&ca);

        assert!(span(&cables)[&ab]);
    }

    #[test]
    fn a_cable_that_works_one_way_or_ends_where_it_began_is_in_no_tree() {
        let cables = BTreeMap::from([(link(1, 2, 1), new(false)), (link(3, 3, 2), new(true))]);
        assert!(span(&cables).values().all(|chosen| !chosen));
    }
}
