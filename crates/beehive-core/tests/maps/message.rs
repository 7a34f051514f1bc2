//! The message that all handlers take, with one type for each handler, and the message that fills
//! dictionaries.

use beehive::{Key, Message};

#[derive(Clone, Debug, Message)]
pub(crate) enum Kind {
    A(u64),
    B { x: u64 },
    C,
}

#[derive(Clone, Debug, Message)]
pub(crate) struct Inner {
    pub(crate) id: u64,
    pub(crate) tags: Vec<String>,
}

impl Inner {
    pub(crate) fn uid(&self) -> u64 {
        self.id * 10
    }
}

/// One type per `N`, so each handler has its own message.
#[derive(Clone, Debug, Message)]
pub(crate) struct M<const N: u32> {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) flag: bool,
    pub(crate) name: String,
    pub(crate) items: Vec<u64>,
    pub(crate) pairs: Vec<(u64, u64)>,
    pub(crate) opt: Option<u64>,
    pub(crate) kind: Kind,
    pub(crate) mac: [u8; 6],
    pub(crate) inner: Inner,
    pub(crate) text: String,
}

impl<const N: u32> M<N> {
    /// The message for which the expected maps are stated.
    pub(crate) fn sample() -> Self {
        M {
            a: 1,
            b: 2,
            flag: true,
            name: "n".into(),
            items: vec![3, 4],
            pairs: vec![(5, 6), (7, 7)],
            opt: Some(8),
            kind: Kind::A(9),
            mac: [1, 2, 3, 4, 5, 6],
            inner: Inner { id: 3, tags: vec!["x".into(), "y".into()] },
            text: " 42 ".into(),
        }
    }

    /// Returns a message of another type with the same content.
    pub(crate) fn of<const O: u32>(m: &M<O>) -> Self {
        let M { a, b, flag, name, items, pairs, opt, kind, mac, inner, text } = m.clone();
        M { a, b, flag, name, items, pairs, opt, kind, mac, inner, text }
    }
}

/// Fills the dictionaries of an app.
#[derive(Clone, Debug, Default, Message)]
pub(crate) struct Load {
    pub(crate) d: Vec<(u64, u64)>,
    pub(crate) e: Vec<(u64, u64)>,
    pub(crate) w: Vec<(u64, u64)>,
    pub(crate) t: Vec<((u64, u64), u64)>,
    pub(crate) rows: Vec<(u64, u64, u64)>,
}

#[derive(Clone, Debug, Message)]
pub(crate) struct Note(pub(crate) u64);

#[derive(Clone, Debug, Message)]
pub(crate) struct Text(pub(crate) Vec<String>);

/// A key type that dictionaries of one app share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
pub(crate) struct NodeId(pub(crate) u64);
