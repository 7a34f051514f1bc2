//! Computes shortest paths over bidirectional links.

use crate::object::{Link, NodeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Returns the links of a shortest path in order, or `None` if there is no path. The choice among paths of equal length
/// is deterministic. The path in the opposite direction is the reverse of this one, so an observer on the path sees
/// both directions of a conversation.
pub fn shortest(links: &BTreeSet<Link>, from: NodeId, to: NodeId) -> Option<Vec<Link>> {
    if from > to {
        let path = shortest(links, to, from)?;
        return Some(path.into_iter().rev().map(Link::reversed).collect());
    }

    let mut outgoing: BTreeMap<NodeId, Vec<Link>> = BTreeMap::new();
    for link in links.iter().filter(|link| links.contains(&link.reversed())) {
        outgoing.entry(link.from.node).or_default().push(*link);
    }

    let mut reached: BTreeMap<NodeId, Option<Link>> = BTreeMap::from([(from, None)]);
    let mut next = VecDeque::from([from]);
    while let Some(node) = next.pop_front().filter(|node| *node != to) {
        for link in outgoing.get(&node).into_iter().flatten() {
            reached.entry(link.to.node).or_insert_with(|| {
                next.push_back(link.to.node);
                Some(*link)
            });
        }
    }

    let mut path = Vec::new();
    let mut node = to;
    // terminates, because every step leads to a node reached earlier
    while let Some(link) = *reached.get(&node)? {
        path.push(link);
        node = link.from.node;
    }

    path.reverse();
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{PortId, PortNo};
    use proptest::prelude::*;

    fn link(a: u64, b: u64, cable: u32) -> Link {
        let end = |node, port| PortId { node: NodeId(node), port: PortNo(port) };
        Link { from: end(a, cable * 2), to: end(b, cable * 2 + 1) }
    }

    proptest! {
        #[test]
        fn paths_lead_there_are_short_and_the_same_way_back(
            cables in proptest::collection::vec((0u64..8, 0u64..8), 0..16),
            (from, to) in (0u64..8, 0u64..8),
        ) {
            let mut links = BTreeSet::new();
            for (number, (a, b)) in cables.iter().enumerate() {
                let link = link(*a, *b, number as u32);
                links.extend([link, link.reversed()]);
            }

            // compute the length independently, by repeated expansion
            let mut within = BTreeSet::from([from]);
            let mut steps = 0;
            while !within.contains(&to) && steps < 8 {
                let more: Vec<_> = links.iter().filter(|l| within.contains(&l.from.node.0)).map(|l| l.to.node.0).collect();
                within.extend(more);
                steps += 1;
            }

            let path = shortest(&links, NodeId(from), NodeId(to));
            prop_assert_eq!(path.is_some(), within.contains(&to));
            let Some(path) = path else { return Ok(()) };

            prop_assert_eq!(path.len(), steps);
            let mut at = NodeId(from);
            for link in &path {
                prop_assert!(links.contains(link) && link.from.node == at);
                at = link.to.node;
            }

            prop_assert_eq!(at, NodeId(to));
            let back: Vec<_> = shortest(&links, NodeId(to), NodeId(from)).unwrap();
            prop_assert_eq!(back, path.iter().rev().map(|l| l.reversed()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_works_one_way_only_is_no_way() {
        let links = BTreeSet::from([link(1, 2, 1)]);
        assert_eq!(shortest(&links, NodeId(1), NodeId(2)), None);
        assert_eq!(shortest(&links, NodeId(3), NodeId(3)), Some(vec![]));
    }
}
