//! Topology: keeps the links, and computes the spanning tree along which packets are flooded. It has a single cell,
//! because the tree spans the whole network.
//!
//! The app receives each link change once, and no packets, so it is idle while the cabling stays the same.

mod tree;

pub use tree::{Cable, span};

use crate::limits;
use crate::object::{
    KnownLink, Link, LinkDown, LinkUp, ListLinks, NodeId, PathsChanged, PortRole, PortRoleChanged,
};
use beehive::{App, Ctx, Key, Table, handlers};
use std::collections::{BTreeMap, BTreeSet};

/// Keeps the links and assigns a role to each port.
#[derive(App, Debug)]
#[app(name = "topology", replication = 3)]
pub struct Topology {
    /// The link directions found by discovery.
    links: Table<Fabric, Link, ()>,
    /// The cables, keyed by the smaller of their two directions.
    cables: Table<Fabric, Link, Cable>,
}

/// The only key: there is one network.
#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fabric;

#[handlers]
impl Topology {
    #[rcv(centralized)]
    fn link_up(&mut self, LinkUp(link): &LinkUp, ctx: &mut Ctx) {
        let links = self.links.at(Fabric);
        if links.len() >= limits::LINKS_MAX {
            tracing::error!(%link, "ignored a link: the limit of links is reached");
            return;
        }
        links.insert(*link, ());
        self.settle(*link, ctx);
    }

    #[rcv(centralized)]
    fn link_down(&mut self, LinkDown(link): &LinkDown, ctx: &mut Ctx) {
        self.links.at(Fabric).remove(link);
        self.settle(*link, ctx);
    }

    #[rcv(centralized)]
    fn list(&mut self, _: &ListLinks) -> Vec<KnownLink> {
        let known = |(link, cable): (&Link, &Cable)| KnownLink {
            link: *link,
            both_ways: cable.both_ways,
            in_tree: cable.in_tree,
        };
        self.cables.at(Fabric).iter().map(known).collect()
    }

    /// Updates the tree after a change to `link`.
    fn settle(&mut self, link: Link, ctx: &mut Ctx) {
        let key = link.min(link.reversed());
        let links = self.links.at(Fabric);
        let (there, back) = (links.contains(&key), links.contains(&key.reversed()));
        let cables = self.cables.at(Fabric);
        let mut tree_lost = false;

        if there || back {
            let both_ways = there && back;
            let cable = cables.entry(key).or_insert(Cable { both_ways, in_tree: false });
            cable.both_ways = both_ways;
        } else if let Some(cable) = cables.remove(&key) {
            tree_lost |= cable.in_tree;
            self.announce(key, ctx);
        }

        let cables = self.cables.at(Fabric);
        let before: BTreeMap<_, _> = cables.iter().map(|(link, cable)| (*link, *cable)).collect();
        let after = span(&before);

        // blocks ports before opening others, so that there is no loop at any time
        for wanted in [false, true] {
            for (link, in_tree) in after.iter().filter(|(_, in_tree)| **in_tree == wanted) {
                let was = before.get(link).is_some_and(|cable| cable.in_tree);
                if was != *in_tree || *link == key {
                    tree_lost |= was && !in_tree;
                    self.cables.at(Fabric).entry(*link).and_modify(|cable| cable.in_tree = *in_tree);
                    self.announce(*link, ctx);
                }
            }
        }

        if tree_lost {
            let ends = |link: &Link| [link.from.node, link.to.node];
            let nodes: BTreeSet<NodeId> = before.keys().chain([&key]).flat_map(ends).collect();
            nodes.into_iter().for_each(|node| ctx.emit(PathsChanged { node }));
        }
    }

    /// Announces the roles of the ports at both ends of a cable. Other cables may end at the same ports, because a
    /// cable may meanwhile have been plugged in elsewhere.
    fn announce(&mut self, link: Link, ctx: &mut Ctx) {
        for port in [link.from, link.to] {
            let cables = self.cables.at(Fabric).iter();
            let ending = cables.filter(|(link, _)| [link.from, link.to].contains(&port));
            let role = match ending.map(|(_, cable)| cable.in_tree).max() {
                None => PortRole::Edge,
                Some(false) => PortRole::Blocked,
                Some(true) => PortRole::Tree,
            };
            ctx.emit(PortRoleChanged { port, role });
        }
    }
}
