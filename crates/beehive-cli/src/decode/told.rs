//! A tree that messages are composed from, which knows which of its values were used.

use std::cell::Cell;

use beehive_of::schema::Source;
use beehive_of::tree::Node;

/// A value of the tree, and whether it was asked for.
pub(super) struct Told<'n> {
    node: &'n Node,
    name: &'n str,
    values: Vec<Told<'n>>,
    used: Cell<bool>,
}

impl<'n> Told<'n> {
    /// The tree of `node`, unused.
    pub(super) fn new(node: &'n Node) -> Self {
        Self::named("", node)
    }

    fn named(name: &'n str, node: &'n Node) -> Self {
        let values = match node {
            Node::Record(values) => values.iter().map(|(name, value)| Self::named(name, value)).collect(),
            Node::List(values) => values.iter().map(|value| Self::named("", value)).collect(),
            _ => Vec::new(),
        };
        Self { node, name, values, used: Cell::new(false) }
    }

    /// Where the first field is that nobody asked for, from the top down.
    pub(super) fn unused(&self) -> Option<String> {
        let record = matches!(self.node, Node::Record(_));
        self.values.iter().enumerate().find_map(|(index, value)| {
            let place = if record { value.name.to_owned() } else { index.to_string() };
            if !value.used.get() {
                return Some(place);
            }
            value.unused().map(|below| format!("{place}.{below}"))
        })
    }

    fn using(value: &Self) -> &Self {
        value.used.set(true);
        value
    }
}

impl Source for Told<'_> {
    fn field(&self, name: &str) -> Option<&dyn Source> {
        self.node.field(name)?;
        self.values.iter().find(|value| value.name == name).map(|value| Self::using(value) as &dyn Source)
    }

    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)> {
        self.node.entry(index)?;
        self.values.get(index).map(|value| (value.name, Self::using(value) as &dyn Source))
    }

    fn item(&self, index: usize) -> Option<&dyn Source> {
        self.node.item(index)?;
        self.values.get(index).map(|value| Self::using(value) as &dyn Source)
    }

    fn number(&self) -> Option<u64> {
        self.node.number()
    }

    fn text(&self) -> Option<&str> {
        self.node.text()
    }
}
