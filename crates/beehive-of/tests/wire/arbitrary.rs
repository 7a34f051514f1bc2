//! Generates arbitrary valid messages of every type and version by composing them from a source of random
//! values.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use beehive_of::oxm::{FIELDS, FieldKind};
use beehive_of::schema::{Sink, Source};
use beehive_of::{Frame, Version, message};
use bytes::BytesMut;
use proptest::prelude::*;

use crate::strategies::config;

/// Hashes two numbers to one number (splitmix64).
fn mixed(seed: u64, with: u64) -> u64 {
    let mut value = seed ^ with.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

const CHILDREN: usize = 12;

/// A random value that converts to any requested type. The conversion is deterministic.
struct Lot {
    seed: u64,
    depth: u8,
    version: Version,
    text: String,
    /// A fixed number or name, used instead of a random value.
    given: Option<Given>,
    children: [OnceCell<Box<Lot>>; CHILDREN],
    names: [OnceCell<String>; CHILDREN],
    /// An unknown experimenter type.
    nameless: OnceCell<Box<Lot>>,
}

#[derive(Clone)]
enum Given {
    Number(u64),
    Text(String),
    Absent,
}

/// Fixed values for fields by name; all other fields are random.
struct Fixed<'f>(&'f [(&'f str, Given)]);

impl Lot {
    fn new(seed: u64, depth: u8, name: &str, version: Version) -> Self {
        let lot = mixed(seed, 1);
        let byte = |at: u64| mixed(seed, 100 + at) as u8;
        let digits = |bytes: u64| (0..bytes).map(|at| format!("{:02x}", byte(at))).collect::<String>();
        let mac = || (0..6).map(|at| format!("{:02x}", byte(at))).collect::<Vec<_>>().join(":");
        let ipv4 = || format!("{}.{}.{}.{}", byte(0), byte(1), byte(2), byte(3));
        let ipv6 = || format!("fe80::{:x}:{:x}", byte(0), u16::from(byte(1)) + 1);
        let pick = |names: &[&'static str]| names[lot as usize / 4 % names.len()];

        // The text is often, but not always, valid for a field of this name.
        let text = match (name, lot % 4) {
            // An embedded message: a barrier.
            ("bytes", _) => format!("{:02x}14000800000001", version.wire()),
            ("data" | "body" | "note" | "properties", _) => digits(8 * (lot / 4 % 3)),
            ("value", _) => digits(2 * (lot / 4 % 5)),
            // Actions have names here, including the actions of Open vSwitch and the ONF. All other lists use
            // the number instead.
            ("type", 0) => pick(message::Action::NAMES).to_owned(),
            ("type", 1) => "experimenter".to_owned(),
            ("experimenter", 0..3) => "nicira".to_owned(),
            ("experimenter", _) => "onf".to_owned(),
            ("extension", 0) => pick(message::OnfAction::NAMES).to_owned(),
            ("extension", _) => pick(message::NiciraAction::NAMES).to_owned(),
            (name, 0..3) if name.contains("ipv6") => ipv6(),
            (name, 0..3) if name.contains("ipv4") || name.starts_with("nw_") => ipv4(),
            (name, 0..3) if name.contains("addr") && !name.contains("address") || name.starts_with("dl_") => {
                mac()
            }
            ("address", 0..2) => mac(),
            ("address", _) => ipv4(),
            (
                "source" | "destination" | "field" | "member_type" | "result" | "zone_source" | "load"
                | "match_field",
                _,
            ) => FIELDS[lot as usize / 4 % FIELDS.len()].name.to_owned(),
            _ => ["text", "eth0", "a b", ""][lot as usize / 4 % 4].to_owned(),
        };

        Self {
            seed,
            depth,
            version,
            text,
            given: None,
            children: Default::default(),
            names: Default::default(),
            nameless: OnceCell::new(),
        }
    }

    fn child(&self, at: usize, name: &str) -> &Lot {
        let place = &self.children[at % CHILDREN];
        place.get_or_init(|| {
            Box::new(Lot::new(mixed(self.seed, 7 + at as u64), self.depth + 1, name, self.version))
        })
    }
}

/// The record of a message. Fixed fields take precedence; all other fields are random.
struct Record<'r> {
    lot: Lot,
    given: Vec<(&'r str, Lot)>,
}

impl<'r> Record<'r> {
    fn new(seed: u64, version: Version, fixed: &Fixed<'r>) -> Self {
        let given = fixed.0.iter().map(|(name, given)| {
            let mut lot = Lot::new(seed, 1, name, version);
            if let Given::Text(text) = given {
                lot.text.clone_from(text);
            }
            lot.given = Some(given.clone());
            (*name, lot)
        });
        Self { lot: Lot::new(seed, 0, "", version), given: given.collect() }
    }
}

impl Source for Record<'_> {
    /// The source generates values on demand.
    fn is_closed(&self) -> bool {
        false
    }

    fn field(&self, name: &str) -> Option<&dyn Source> {
        match self.given.iter().find(|(known, _)| *known == name) {
            Some((_, lot)) if matches!(lot.given, Some(Given::Absent)) => None,
            Some((_, lot)) => Some(lot),
            None => self.lot.field(name),
        }
    }

    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)> {
        self.lot.entry(index)
    }

    fn item(&self, _index: usize) -> Option<&dyn Source> {
        None
    }

    fn number(&self) -> Option<u64> {
        None
    }

    fn text(&self) -> Option<&str> {
        None
    }
}

impl Source for Lot {
    /// The source generates values on demand.
    fn is_closed(&self) -> bool {
        false
    }

    fn field(&self, name: &str) -> Option<&dyn Source> {
        let at = name.bytes().fold(0u64, |sum, byte| mixed(sum, byte.into()));

        // Optional fields are present half of the time.
        let optional =
            matches!(name, "padded" | "text" | "extension" | "value" | "result" | "load" | "match_field")
                || name.contains("_min")
                || name.contains("_max");
        if (optional && mixed(self.seed, at).is_multiple_of(2)) || self.depth > 7 {
            return None;
        }

        // Use an unknown type, whose body is raw bytes. The bodies of known types contain padding, which
        // would not be zero if the bytes were random.
        if name == "experimenter_type" {
            let nameless = self.nameless.get_or_init(|| {
                let mut lot = Lot::new(mixed(self.seed, 10), self.depth + 1, name, self.version);
                lot.given = Some(Given::Number(0x8000 + mixed(self.seed, 11) % 0x8000));
                Box::new(lot)
            });
            return Some(&**nameless as &dyn Source);
        }

        // The index is derived from the name. Names with the same index share a value, which is harmless.
        Some(self.child((at % CHILDREN as u64) as usize, name))
    }

    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)> {
        if index as u64 >= mixed(self.seed, 2) % 4 {
            return None;
        }

        let at = mixed(self.seed, 30 + index as u64) as usize;
        let field = &FIELDS[at % FIELDS.len()];
        let name = self.names[index % CHILDREN].get_or_init(|| field.name.to_owned());
        let place = &self.children[index % CHILDREN];
        let lot = place.get_or_init(|| {
            let mut lot =
                Lot::new(mixed(self.seed, 60 + index as u64), self.depth + 1, field.name, self.version);
            lot.text = match field.kind {
                FieldKind::Port | FieldKind::Decimal(_) => (mixed(lot.seed, 3) % 256).to_string(),
                FieldKind::Mac => "02:00:00:00:00:01".to_owned(),
                FieldKind::Ipv4 => "10.1.2.3".to_owned(),
                FieldKind::Ipv6 => "fe80::7".to_owned(),
                FieldKind::Hex(_) | FieldKind::Bytes(_) => format!("{:#x}", mixed(lot.seed, 4) % 256),
            };

            if field.maskable && mixed(lot.seed, 5).is_multiple_of(2) {
                lot.text = format!("{0}/{0}", lot.text);
            }

            Box::new(lot)
        });

        Some((name.as_str(), &**lot as &dyn Source))
    }

    fn item(&self, index: usize) -> Option<&dyn Source> {
        let most = if self.depth > 5 { 1 } else { 4 };
        (index as u64 + 1 < mixed(self.seed, 6) % most + 1).then(|| self.child(index, "") as &dyn Source)
    }

    fn number(&self) -> Option<u64> {
        match &self.given {
            Some(Given::Number(number)) => Some(*number),
            Some(_) => None,
            // Prefer small numbers, which fit in any field and are often valid types and commands.
            None => Some(match mixed(self.seed, 8) % 8 {
                0..4 => mixed(self.seed, 9) % 12,
                4..7 => mixed(self.seed, 9) % 256,
                _ => 0xffff,
            }),
        }
    }

    fn text(&self) -> Option<&str> {
        match &self.given {
            Some(Given::Number(_)) => None,
            _ => Some(&self.text),
        }
    }
}

/// A sink that collects a message as a tree so that the message can be composed again.
#[derive(Default)]
struct Tree {
    open: Vec<Node>,
    keys: Vec<Option<String>>,
    key: Option<String>,
    root: Option<Node>,
}

enum Node {
    Leaf(Option<u64>, String),
    List(Vec<Node>),
    Record(Vec<(String, Node)>),
}

impl Tree {
    fn value(&mut self, node: Node) {
        let key = self.key.take();
        match self.open.last_mut() {
            Some(Node::Record(values)) => values.push((key.unwrap_or_default(), node)),
            Some(Node::List(values)) => values.push(node),
            _ => self.root = Some(node),
        }
    }

    fn begin(&mut self, node: Node) {
        self.keys.push(self.key.take());
        self.open.push(node);
    }

    fn end(&mut self) {
        self.key = self.keys.pop().flatten();
        let node = self.open.pop().unwrap();
        self.value(node);
    }
}

impl Sink for Tree {
    fn number(&mut self, value: u64) {
        self.value(Node::Leaf(Some(value), value.to_string()));
    }
    fn text(&mut self, value: std::fmt::Arguments<'_>) {
        let text = value.to_string();
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        self.value(Node::Leaf(number, text));
    }
    fn bytes(&mut self, value: &[u8]) {
        self.value(Node::Leaf(None, crate::corpus::hex(value)));
    }
    fn flag(&mut self, value: bool) {
        self.value(Node::Leaf(None, value.to_string()));
    }
    fn nothing(&mut self) {
        self.value(Node::Leaf(None, String::new()));
    }
    fn key(&mut self, name: &str) {
        self.key = Some(name.to_owned());
    }
    fn open_record(&mut self) {
        self.begin(Node::Record(Vec::new()));
    }
    fn close_record(&mut self) {
        self.end();
    }
    fn open_list(&mut self) {
        self.begin(Node::List(Vec::new()));
    }
    fn close_list(&mut self) {
        self.end();
    }
    fn error(&mut self, error: beehive_of::Error) {
        panic!("{error}");
    }
}

impl Source for Node {
    fn field(&self, name: &str) -> Option<&dyn Source> {
        let Self::Record(values) = self else { return None };
        values.iter().find(|(known, _)| known == name).map(|(_, value)| value as &dyn Source)
    }
    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)> {
        let Self::Record(values) = self else { return None };
        values.get(index).map(|(name, value)| (name.as_str(), value as &dyn Source))
    }
    fn item(&self, index: usize) -> Option<&dyn Source> {
        let Self::List(values) = self else { return None };
        values.get(index).map(|value| value as &dyn Source)
    }
    fn number(&self) -> Option<u64> {
        if let Self::Leaf(number, _) = self { *number } else { None }
    }
    fn text(&self) -> Option<&str> {
        if let Self::Leaf(_, text) = self { Some(text) } else { None }
    }
}

/// A list that contains one record.
struct Single<'r>(Record<'r>);

impl Source for Single<'_> {
    fn field(&self, _name: &str) -> Option<&dyn Source> {
        None
    }
    fn entry(&self, _index: usize) -> Option<(&str, &dyn Source)> {
        None
    }
    fn item(&self, index: usize) -> Option<&dyn Source> {
        (index == 0).then_some(&self.0 as &dyn Source)
    }
    fn number(&self) -> Option<u64> {
        None
    }
    fn text(&self) -> Option<&str> {
        None
    }
}

/// A message in which one field is a list that contains one record.
struct With<'r> {
    message: Record<'r>,
    field: &'static str,
    list: Single<'r>,
}

impl Source for With<'_> {
    fn is_closed(&self) -> bool {
        false
    }

    fn field(&self, name: &str) -> Option<&dyn Source> {
        if name == self.field { Some(&self.list) } else { self.message.field(name) }
    }
    fn entry(&self, index: usize) -> Option<(&str, &dyn Source)> {
        self.message.entry(index)
    }
    fn item(&self, _index: usize) -> Option<&dyn Source> {
        None
    }
    fn number(&self) -> Option<u64> {
        None
    }
    fn text(&self) -> Option<&str> {
        None
    }
}

/// Returns the fixed fields of every message.
fn head(version: Version) -> [(&'static str, Given); 2] {
    [("version", Given::Text(version.to_string())), ("xid", Given::Number(7))]
}

/// Returns whether a message with these fixed fields could be composed. Panics if the message does not
/// survive the round trip.
fn goes_round(seed: u64, version: Version, fixed: &[(&str, Given)]) -> bool {
    let mut all = head(version).to_vec();
    all.extend(fixed.iter().cloned());
    composed_goes_round(&Record::new(seed, version, &Fixed(&all)), version)
}

/// Like [`goes_round`], for a message with one action, instruction or similar element that has the given
/// fixed fields.
fn element_goes_round(
    seed: u64,
    version: Version,
    (message, field): (&str, &'static str),
    given: &[(&str, Given)],
) -> bool {
    let mut all = head(version).to_vec();
    all.extend([("type", Given::Text(message.to_owned())), ("match", Given::Absent)]);
    let message = Record::new(seed, version, &Fixed(&all));
    let list = Single(Record::new(mixed(seed, 5), version, &Fixed(given)));
    composed_goes_round(&With { message, field, list }, version)
}

/// Checks that a composed message is valid and survives two round trips: through bytes and through named
/// values. Returns whether a message could be composed. This can fail, because some random values are not
/// valid for their field.
fn composed_goes_round(source: &dyn Source, version: Version) -> bool {
    let mut out = BytesMut::new();
    if message::Message::compose(source, &mut out).is_err() {
        assert!(out.is_empty());
        return false;
    }

    let frame = Frame::whole(&out).unwrap();
    let Ok(message) =
        message::Message::parse(frame).and_then(|message| message.check(version).map(|()| message))
    else {
        // A random value can contradict other values of the same message.
        return false;
    };
    let mut again = BytesMut::new();
    message.encode_into(version, 7, &mut again).unwrap_or_else(|error| panic!("{error}: {message:?}"));
    let decoded = message::Message::parse(Frame::whole(&again).unwrap()).unwrap();
    let mut third = BytesMut::new();
    decoded.encode_into(version, 7, &mut third).unwrap();
    assert_eq!(third, again, "{message:?}");
    assert_eq!(crate::corpus::hex(&again), crate::corpus::hex(&out), "{}", message.display(frame.header()));

    let mut tree = Tree::default();
    message.show(frame.header(), &mut tree);
    let mut composed = BytesMut::new();
    message::Message::compose(&tree.root.unwrap(), &mut composed)
        .unwrap_or_else(|error| panic!("{error}: {}", message.display(frame.header())));
    assert_eq!(
        crate::corpus::hex(&composed),
        crate::corpus::hex(&out),
        "{}",
        message.display(frame.header())
    );

    true
}

/// Returns the number of the element with this name in a version.
type Number = fn(&str, Version) -> Option<u16>;

/// Returns the fixed fields of every message type and every statistics kind.
fn kinds(version: Version) -> Vec<Vec<(&'static str, Given)>> {
    use message::{Message, ReplyBody, RequestBody};
    let text = |name: &str| Given::Text(name.to_owned());
    let mut kinds = Vec::new();
    for name in Message::NAMES.iter().filter(|name| Message::number(name, version).is_some()) {
        let (names, number): (&[&'static str], Number) = match *name {
            "multipart_request" => (RequestBody::NAMES, RequestBody::number),
            "multipart_reply" => (ReplyBody::NAMES, ReplyBody::number),
            _ => {
                kinds.push(vec![("type", text(name))]);
                continue;
            }
        };
        for kind in names.iter().filter(|kind| number(kind, version).is_some()) {
            kinds.push(vec![("type", text(name)), ("multipart", text(kind))]);
        }
    }

    let extension = |of: &str, name: &str| {
        vec![("type", text("experimenter")), ("experimenter", text(of)), ("extension", text(name))]
    };

    use message::{NiciraMessage, OnfMessage};
    for name in NiciraMessage::NAMES.iter().filter(|name| NiciraMessage::number(name, version).is_some()) {
        kinds.push(extension("nicira", name));
    }

    for name in OnfMessage::NAMES.iter().filter(|name| OnfMessage::number(name, version).is_some()) {
        kinds.push(extension("onf", name));
    }

    // The loop above covers known experimenter messages. Use an unknown type with raw bytes here.
    for kind in &mut kinds {
        if kind.iter().all(|(name, _)| *name != "extension") {
            let experimenter =
                kind.iter().any(|(_, given)| matches!(given, Given::Text(text) if text == "experimenter"));
            if experimenter {
                kind.extend([("experimenter", Given::Number(0x77)), ("extension", Given::Absent)]);
            }
        }

        // The embedded message is generated under the key `bytes`.
        let holds = ["bundle_add_message", "requestforward"];
        if kind.iter().any(|(_, given)| matches!(given, Given::Text(text) if holds.contains(&text.as_str())))
        {
            kind.push(("padded", Given::Absent));
        }

        // The name of an error code depends on the error type, so fix both.
        kind.push(("error_type", Given::Number(1)));
        kind.push(("code", Given::Number(6)));
        kind.push(("table_features_command", Given::Absent));
    }

    kinds
}

/// The place of an element, which determines the fixed fields that generate the element.
pub(crate) enum Place {
    /// A message, selected by its type.
    Message,
    /// A statistics or multipart message, selected by its type and its kind.
    Multipart(&'static str),
    /// A message of the named experimenter.
    Extension(&'static str),
    /// A statistics or multipart message, selected by its type and its experimenter.
    MultipartExtension(&'static str, &'static str),
    /// An action.
    Action,
    /// An action of the named experimenter.
    ActionExtension(&'static str),
    /// An instruction.
    Instruction,
}

/// Returns whether the named element could be composed with random values in the version. Panics if decoding,
/// encoding, showing or composing the element again does not preserve it.
pub(crate) fn is_covered(place: &Place, name: &str, version: Version) -> bool {
    let text = |text: &str| Given::Text(text.to_owned());
    let same = |given: &Given, wanted: &str| matches!(given, Given::Text(text) if text == wanted);
    let of_kinds = |wanted: &[(&str, &str)]| {
        let kind = kinds(version).into_iter().find(|kind| {
            wanted
                .iter()
                .all(|(field, value)| kind.iter().any(|(name, given)| name == field && same(given, value)))
        });
        let kind = kind.unwrap_or_else(|| panic!("{version} has no kind {wanted:?}"));
        (0..400).any(|seed| goes_round(mixed(seed, 99), version, &kind))
    };
    let element = |place: (&str, &'static str), given: &[(&str, Given)]| {
        (0..2_000).any(|seed| element_goes_round(mixed(seed, 98), version, place, given))
    };
    let actions = ("packet_out", "actions");
    match place {
        Place::Message => of_kinds(&[("type", name)]),
        Place::Multipart(message) => of_kinds(&[("type", message), ("multipart", name)]),
        Place::Extension(whose) => {
            of_kinds(&[("type", "experimenter"), ("experimenter", whose), ("extension", name)])
        }
        Place::MultipartExtension(message, whose) => {
            let given = [
                ("type", text(message)),
                ("multipart", text("experimenter")),
                ("experimenter", text(whose)),
                ("extension", text(name)),
            ];
            (0..2_000).any(|seed| goes_round(mixed(seed, 97), version, &given))
        }
        // An unknown experimenter. The other arms cover the known experimenters.
        Place::Action | Place::Instruction if name == "experimenter" => {
            let place = if matches!(place, Place::Action) { actions } else { ("flow_mod", "instructions") };
            let whose = Given::Number(0x77);
            element(place, &[("type", text(name)), ("experimenter", whose), ("extension", Given::Absent)])
        }
        Place::Action => element(actions, &[("type", text(name))]),
        Place::ActionExtension(whose) => {
            let given =
                [("type", text("experimenter")), ("experimenter", text(whose)), ("extension", text(name))];
            element(actions, &given)
        }
        Place::Instruction => element(("flow_mod", "instructions"), &[("type", text(name))]),
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn actions_of_every_type_and_version(seed: u64) {
        let text = |text: &str| Given::Text(text.to_owned());
        let own = |whose: &str, name: &str| {
            [("type", text("experimenter")), ("experimenter", text(whose)), ("extension", text(name))]
        };
        let place = ("packet_out", "actions");
        for version in Version::ALL {
            for name in message::Action::NAMES {
                element_goes_round(mixed(seed, 1), version, place, &[("type", text(name))]);
            }
            for name in message::NiciraAction::NAMES {
                element_goes_round(mixed(seed, 2), version, place, &own("nicira", name));
            }
            for name in message::OnfAction::NAMES {
                element_goes_round(mixed(seed, 3), version, place, &own("onf", name));
            }
        }
    }

    #[test]
    fn messages_of_every_type_and_version(seed: u64) {
        for version in Version::ALL {
            for kind in kinds(version) {
                for round in 0..4 {
                    goes_round(mixed(seed, round), version, &kind);
                }
            }
        }
    }
}

#[test]
fn every_type_and_version_is_composed_by_lot() {
    let mut missing = BTreeSet::new();
    for version in Version::ALL {
        for kind in kinds(version) {
            if !(0..400).any(|seed| goes_round(mixed(seed, 99), version, &kind)) {
                let names: Vec<&str> = kind
                    .iter()
                    .filter_map(
                        |(_, given)| if let Given::Text(text) = given { Some(text.as_str()) } else { None },
                    )
                    .collect();
                missing.insert(format!("{version} {}", names.join(" ")));
            }
        }
    }

    assert!(missing.is_empty(), "{missing:#?}");
}
