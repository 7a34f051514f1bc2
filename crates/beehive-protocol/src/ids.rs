//! Identifiers: numbers that mean the same on every hive. Each kind of number has its own type.
//!
//! Every type here is encoded as the bare number inside, so the types do not make a log larger.

use crate::CellHasher;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt::{Display, Formatter};

/// Identity of a cell: a 64-bit hash of (cluster seed, app, dictionary or fused key type, key).
///
/// Two keys whose hashes collide always have the same owner. A collision has no other effect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellId(pub u64);

/// The cells of one message. Up to three cells need no allocation.
pub type CellSet = SmallVec<[CellId; 3]>;

/// A placement hint. Equal keys of the same type have the same hint in all apps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlaceId(pub u64);

/// A hive: one process of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HiveId(pub u32);

/// A bee: one logical thread that exclusively owns a set of cells of one app. The registry assigns each id only once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BeeId(pub u64);

/// A colony: the hives that replicate one log. The registry assigns each id only once, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ColonyId(pub u32);

/// Number of times that a hive has joined the cluster. It distinguishes the processes that have run as this hive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u32);

/// Number of times that a bee has moved from one log to another. Of two copies of a bee, the one with the higher
/// epoch is valid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u32);

/// An app, by its position among the apps of the program. All hives of a cluster have the same apps in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AppId(pub u16);

/// A handler of an app, by the number that stands for its name in a log: see [`MessageTypeId`].
///
/// A position among the handlers of the app would mean another handler if the next program adds, removes or moves one. It
/// would then handle messages again that the log says were handled, or not handle those that another handler has handled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HandlerId(pub u32);

/// The type of a logged message, identified by a hash of its name.
///
/// A name would take 10 to 60 bytes in every record; this number takes at most 5. It is a hash rather than a position
/// in a table of the log, so that all logs of a cluster use the same numbers, and a bee that moves from one log to
/// another takes its outbox along unchanged. The log's [`Shapes`](crate::Shapes) contain the names. If two names of one
/// program have the same number, the program is refused when it starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageTypeId(pub u32);

/// A lane: one sender's sequence of message numbers. Kafka's equivalent is the producer id.
///
/// A bee's lane is fixed by its app and its id. An outside sender (a socket, a client) gets a lane from its hive. See
/// [`LaneId::of_bee`], [`LaneId::passing`] and [`LaneId::lasting`] for the layout.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneId(pub u64);

/// The sequence number of a message in its lane. A sender's consecutive messages have consecutive numbers.
///
/// The type is also used for a *floor*, a lane's low-water mark: the sender never resends a message below it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// Distinguishes the messages that a stateless handler derived from one message.
///
/// A stateless handler writes no record, so its messages have no numbers of their own in any lane. They keep the lane
/// and the number of the message from which they were derived. Their part is a hash of the handlers that derived them
/// (see [`Part::derived`]). [`Part::WHOLE`] stands for the message itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Part(pub u64);

/// Number of a log entry: the term in the upper 24 bits, and a number within the term in the lower 40 bits.
///
/// A hive uses each number once, in increasing order, and does not reuse the number of a refused entry. Therefore the
/// numbers of entries that took effect are strictly increasing, but may have gaps. Each hive that begins to use a log,
/// also the same one after a restart, begins a new term (see [`Record::Blank`](crate::Record::Blank)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "(u32, u64)", into = "(u32, u64)")]
pub struct EntryNumber(pub u64);

/// Identity of one delivery: the sender's lane, the number, the part, and the app that handles the message.
///
/// It stays the same no matter which hive handles the message and how often the message is resent. Receivers use it
/// to deduplicate messages (see [`DedupTable`](crate::DedupTable)).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct MessageId {
    /// The sender's lane.
    pub lane: LaneId,
    /// The number of the message in its lane.
    pub seq: Seq,
    /// Distinguishes the messages derived from message `seq`. [`Part::WHOLE`] stands for message `seq` itself.
    pub part: Part,
    /// The app that handles the message. A message handled by several apps has one id for each of them.
    pub app: AppId,
}

impl Seq {
    /// A lane's first number.
    pub const ZERO: Seq = Seq(0);

    /// Returns the next number. Saturates at the largest one.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Seq {
        self.plus(1)
    }

    /// Returns the number that is greater by `count`. Saturates at the largest one.
    #[inline]
    #[must_use]
    pub const fn plus(self, count: u64) -> Seq {
        Seq(self.0.saturating_add(count))
    }
}

impl Part {
    /// The part that stands for the message itself.
    pub const WHOLE: Part = Part(0);

    /// Checks whether the part stands for the message itself.
    #[inline]
    pub const fn is_whole(self) -> bool {
        self.0 == Part::WHOLE.0
    }
}

impl Epoch {
    /// Returns the epoch after the next move.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Epoch {
        Epoch(self.0.saturating_add(1))
    }
}

impl Incarnation {
    /// Returns the number of the next incarnation.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Incarnation {
        Incarnation(self.0.saturating_add(1))
    }
}

impl EntryNumber {
    /// Number of bits for the number within the term.
    const BITS_IN_TERM: u32 = 40;

    /// The highest term.
    pub const TERM_MAX: u64 = u64::MAX >> EntryNumber::BITS_IN_TERM;

    /// Returns the first number of a term, which is that of its blank entry.
    ///
    /// # Panics
    ///
    /// Panics if the term is above [`EntryNumber::TERM_MAX`].
    #[must_use]
    pub const fn first_of(term: u64) -> EntryNumber {
        assert!(term <= EntryNumber::TERM_MAX, "there is no such term");
        EntryNumber(term << EntryNumber::BITS_IN_TERM)
    }

    /// Returns the term.
    #[must_use]
    pub const fn term(self) -> u64 {
        self.0 >> EntryNumber::BITS_IN_TERM
    }

    /// Returns the number within the term.
    #[must_use]
    pub const fn in_term(self) -> u64 {
        self.0 & (u64::MAX >> (u64::BITS - EntryNumber::BITS_IN_TERM))
    }

    /// Returns the number of the next entry.
    #[inline]
    #[must_use]
    pub const fn next(self) -> EntryNumber {
        EntryNumber(self.0.saturating_add(1))
    }
}

impl From<u64> for EntryNumber {
    fn from(number: u64) -> EntryNumber {
        EntryNumber(number)
    }
}

// the two parts are small numbers, which take fewer bytes than one large number
impl From<EntryNumber> for (u32, u64) {
    fn from(number: EntryNumber) -> (u32, u64) {
        (number.term() as u32, number.in_term())
    }
}

impl TryFrom<(u32, u64)> for EntryNumber {
    type Error = &'static str;

    fn try_from((term, in_term): (u32, u64)) -> Result<EntryNumber, &'static str> {
        match (u64::from(term), in_term >> EntryNumber::BITS_IN_TERM) {
            (term @ ..=EntryNumber::TERM_MAX, 0) => Ok(EntryNumber(EntryNumber::first_of(term).0 | in_term)),
            _ => Err("no entry has such a number"),
        }
    }
}

impl std::fmt::Display for EntryNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.term(), self.in_term())
    }
}

impl MessageTypeId {
    /// Returns the number of a name (see [`MessageTypeId::name`]). Evaluated at compile time.
    pub const fn of(message: &str, handler: Option<&str>) -> MessageTypeId {
        let mut hasher = CellHasher::new(0);
        hasher.text(message);
        if let Some(handler) = handler {
            hasher.text(handler)
        }
        MessageTypeId(hasher.finish() as u32)
    }

    /// Returns the name of a message type in a log. If several handlers of an app receive the type independently of one
    /// another (the built-in types, and sweeps), the name also contains the handler.
    pub fn name(message: &str, handler: Option<&str>) -> String {
        match handler {
            Some(handler) => format!("{message}@{handler}"),
            None => message.to_string(),
        }
    }
}

impl MessageId {
    /// Returns the range of all ids of a lane.
    pub fn all_of(lane: LaneId) -> std::ops::RangeInclusive<MessageId> {
        MessageId { lane, seq: Seq::ZERO, part: Part::WHOLE, app: AppId(0) }..=MessageId {
            lane,
            seq: Seq(u64::MAX),
            part: Part(u64::MAX),
            app: AppId(u16::MAX),
        }
    }
}

impl BeeId {
    /// Returns a hash of the id for a hash table. Ids are assigned consecutively, so their low bits already differ. The
    /// multiplication spreads them over the high bits.
    #[inline]
    pub const fn table_hash(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl AppId {
    /// Returns the position of the app in a list of all apps.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<MessageTypeId> for HandlerId {
    fn from(MessageTypeId(number): MessageTypeId) -> HandlerId {
        HandlerId(number)
    }
}

impl Display for BeeId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "bee {}", self.0)
    }
}

impl Display for ColonyId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "colony {}", self.0)
    }
}

impl Display for HiveId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "hive {}", self.0)
    }
}
