//! The output of the derive macros for all shapes of types: names, encodings, and serde impls for crates that
//! do not depend on serde.

use beehive::{App, Config, Ctx, Dict, Handles, Key, Message, Table, handlers};
use beehive_protocol::codec;
use std::collections::BTreeMap;
use std::marker::PhantomData;

mod private_fields {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
    pub(crate) struct Mac([u8; 6]);

    impl Mac {
        pub(crate) fn new(last: u8) -> Mac {
            Mac([0, 1, 2, 3, 4, last])
        }
    }
}
use private_fields::Mac;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct NodeId(u64);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
#[key(name = "net::Port")]
struct PortId {
    node: NodeId,
    number: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Address {
    Any,
    Mac(Mac),
    Both { node: NodeId, mac: Mac },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Pair<A, B>(A, B);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Nothing;

/// A type with its own serde impls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key, serde::Serialize, serde::Deserialize)]
#[key(serde = false)]
struct Own(u64);

#[derive(Clone, Debug, PartialEq, Message)]
#[message(reply = u64)]
struct Get(String);

#[derive(Clone, Debug, PartialEq, Message)]
#[message(name = "tree")]
enum Tree {
    Leaf,
    Node {
        left: Box<Self>,
        right: Box<Self>,
        #[serde(default)]
        weight: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Message)]
struct Envelope<T> {
    inner: T,
    by_name: BTreeMap<String, Vec<T>>,
    #[serde(skip)]
    hidden: PhantomData<T>,
}

#[derive(Clone, Debug, PartialEq, Message)]
struct Fixed<const N: usize>
where
    [u8; N]: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    bytes: [u8; N],
}

fn describe(key: &impl beehive::__private::KeyEncoding) -> String {
    let mut out = String::new();
    key.describe(&mut out);
    out
}

fn hash(key: &impl beehive::__private::KeyEncoding) -> u64 {
    let mut hasher = beehive::__private::CellHasher::new(7);
    key.feed(&mut hasher);
    hasher.finish()
}

fn round_trip<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    codec::decode("a value", &codec::encode(value)).expect("decodes")
}

#[test]
fn keys_have_names_that_last() {
    assert_eq!(NodeId::NAME, "beehive-core::NodeId");
    assert_eq!(PortId::NAME, "net::Port");
    assert_eq!(<Pair<u64, u64> as Key>::NAME, "beehive-core::Pair");
    const { assert!(NodeId::FUSED && Address::FUSED && Nothing::FUSED && Own::FUSED) };
}

#[test]
fn keys_are_described_and_told_apart() {
    assert_eq!(describe(&NodeId(7)), "7");
    assert_eq!(describe(&PortId { node: NodeId(7), number: 3 }), "7, 3");
    assert_eq!(describe(&Address::Any), "Any");
    assert_eq!(describe(&Pair(1u64, String::from("x"))), "1, x");
    assert_eq!(hash(&NodeId(7)), hash(&7u64));

    let (mac, other) = (Mac::new(5), Mac::new(6));
    let all = [
        hash(&Address::Any),
        hash(&Address::Mac(mac.clone())),
        hash(&Address::Mac(other.clone())),
        hash(&Address::Both { node: NodeId(1), mac: mac.clone() }),
        hash(&Address::Both { node: NodeId(1), mac: other }),
        hash(&Address::Both { node: NodeId(2), mac }),
        hash(&Pair(1u64, 2u64)),
        hash(&Pair(2u64, 1u64)),
    ];

    for (i, a) in all.iter().enumerate() {
        assert!(!all[..i].contains(a), "{i}");
    }
}

#[test]
fn derived_serde_goes_round() {
    let mac = Mac::new(9);
    for address in [Address::Any, Address::Mac(mac.clone()), Address::Both { node: NodeId(3), mac }] {
        assert_eq!(round_trip(&address), address);
    }

    let port = PortId { node: NodeId(7), number: 3 };
    assert_eq!(round_trip(&port), port);
    assert_eq!(round_trip(&Pair(1u64, String::from("x"))), Pair(1, "x".into()));
    assert_eq!(round_trip(&Nothing), Nothing);
    assert_eq!(round_trip(&Own(3)), Own(3));
    assert_eq!(round_trip(&Get("k".into())), Get("k".into()));

    let tree = Tree::Node { left: Box::new(Tree::Leaf), right: Box::new(Tree::Leaf), weight: 3 };
    assert_eq!(round_trip(&tree), tree);

    let envelope =
        Envelope { inner: 1u32, by_name: [("a".to_string(), vec![1, 2])].into(), hidden: PhantomData };
    assert_eq!(round_trip(&envelope), envelope);
    assert_eq!(round_trip(&Fixed::<4> { bytes: [1, 2, 3, 4] }), Fixed { bytes: [1, 2, 3, 4] });
}

#[test]
fn messages_have_names_and_replies() {
    fn reply_of<M: Message<Reply = R>, R>() -> &'static str {
        M::NAME
    }
    assert_eq!(reply_of::<Get, u64>(), "beehive-core::Get");
    assert_eq!(reply_of::<Tree, ()>(), "tree");
    assert_eq!(reply_of::<Envelope<u64>, ()>(), "beehive-core::Envelope");
}

#[derive(App)]
#[app(replication = 3)]
struct KeyValueStore<V: beehive::Value + Default> {
    values: Dict<String, V>,
    #[volatile]
    seen: Table<NodeId, Mac, u64>,
    config: Config<()>,
}

#[handlers]
impl<V: beehive::Value + Default> KeyValueStore<V> {
    #[rcv(sharded)]
    fn get(&mut self, Get(key): &Get) -> Option<u64> {
        self.values.get(key).map(|_| 1)
    }
    #[rcv(each = seen)]
    fn forget(&mut self, node: &NodeId, _: &Tree, _ctx: &mut Ctx) {
        self.seen.at(*node).clear();
    }
}

/// An app without state.
#[derive(App)]
struct Hub;

#[handlers]
impl Hub {
    #[rcv(stateless)]
    fn tree(&mut self, _: &Tree, ctx: &mut Ctx) {
        ctx.emit(Get("x".into()));
    }
}

#[test]
fn apps_know_their_dictionaries() {
    use beehive::__private::{Handlers, State};
    type Store = KeyValueStore<u64>;
    assert_eq!(<Store as App>::NAME, "key-value-store");
    assert_eq!(<Store as App>::OPTIONS.replication, 3);
    assert_eq!(<Hub as App>::OPTIONS.replication, 1);

    let dicts: Vec<_> = Store::DICTS.iter().map(|d| (d.name, d.index, d.volatile, d.key)).collect();
    assert_eq!(dicts, [("values", 0, false, "String"), ("seen", 1, true, "beehive-core::NodeId")]);
    assert!(Hub::DICTS.is_empty());

    const { assert!(<Store as Handles<Get>>::ANSWERS && <Store as Handles<Get>>::HANDLER == 0) };
    const { assert!(!<Hub as Handles<Tree>>::ANSWERS) };
    assert_eq!(Store::REPORT[0].cells, "values[key]");
    assert_eq!(Store::REPORT[1].message, "Tree for each of seen");
    assert_eq!(Hub::REPORT[0].kind, "stateless");
    assert_eq!(Store::MONOLITHIC, 0);
    assert!(Store::map_report().contains("seen[node]"), "{}", Store::map_report());
}
