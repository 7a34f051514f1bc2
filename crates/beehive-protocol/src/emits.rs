//! Emitted messages, as records contain them: a payload that several apps handle is encoded once.

use crate::codec::encode_with;
use crate::hash::HashMap;
use crate::{Address, HiveId, LaneId, MessageId, MessageTypeId, Part, Seq, Time};
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Debug, Formatter};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// An emitted message that one app has to handle. In a list of emits, `P` is the place of the payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emit<P = Payload> {
    /// Identity of the message for the app that handles it.
    pub id: MessageId,
    /// The type of the message. For a sweep and for a built-in type, it also identifies the handler.
    pub message_type: MessageTypeId,
    /// The encoded message.
    pub payload: P,
    /// Earliest time of delivery if a timer sends the message. `None` if the message is delivered at once.
    pub at: Option<Time>,
    /// Whether the message goes to every cell of a dictionary, one cell after the other.
    pub is_sweep: bool,
    /// Position of the app in the chain of apps that can answer the message. `None` if the app does not pass the message
    /// on.
    pub position: Option<u16>,
    /// The hive at which the first message of the causal chain came in from outside.
    pub origin: HiveId,
    /// The sender, as the handler sees it.
    pub sender: Address,
    /// Number of messages between the first message of the causal chain and this one.
    pub hops: u16,
    /// The causal chain to which the message belongs: the number of the message from outside that began the chain.
    pub chain: u64,
    /// Seed of the random numbers that the handler of the message draws.
    pub chance: u64,
}

impl<P> Emit<P> {
    /// Returns the same emit with a different payload.
    fn with<Q>(&self, payload: Q) -> Emit<Q> {
        let Emit { id, message_type, at, is_sweep, position, origin, sender, hops, chain, chance, .. } =
            *self;
        Emit { id, message_type, payload, at, is_sweep, position, origin, sender, hops, chain, chance }
    }
}

impl Emit {
    /// Returns an estimate of the bytes that the message takes in a record, with its payload.
    pub fn size(&self) -> usize {
        const FIXED_FIELDS: usize = 64;
        FIXED_FIELDS + self.payload.len()
    }
}

/// An encoded message. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<[u8]>);

impl Payload {
    /// Encodes a message.
    ///
    /// # Panics
    ///
    /// Panics like [`encode`](crate::codec::encode) if the message cannot be encoded.
    pub fn of<M: Serialize>(message: &M) -> Payload {
        encode_with(message, |bytes| bytes.into())
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Payload {
        Payload(bytes.into())
    }
}

impl Debug for Payload {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
        /// Copies the bytes out of the decoder's buffer.
        struct Copied;

        impl Visitor<'_> for Copied {
            type Value = Payload;

            fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                f.write_str("an encoded message")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Payload, E> {
                Ok(Payload(bytes.into()))
            }
        }

        deserializer.deserialize_bytes(Copied)
    }
}

/// Emitted messages, in the order in which they were emitted.
///
/// If several apps handle a message, there is one [`Emit`] for each of them. All of them have the same lane, number and
/// part, and the payload is encoded only once: the other emits refer to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Emits(pub Vec<Emit>);

impl Deref for Emits {
    type Target = Vec<Emit>;

    fn deref(&self) -> &Vec<Emit> {
        &self.0
    }
}

impl DerefMut for Emits {
    fn deref_mut(&mut self) -> &mut Vec<Emit> {
        &mut self.0
    }
}

impl FromIterator<Emit> for Emits {
    fn from_iter<I: IntoIterator<Item = Emit>>(emits: I) -> Emits {
        Emits(emits.into_iter().collect())
    }
}

/// The place of a payload.
#[derive(Serialize, Deserialize)]
enum PayloadAt<P> {
    /// In this emit.
    Here(P),
    /// In the emit that is this many places before this one in the list.
    Before(u32),
}

/// Finds the first copy of each payload in a list of emits.
struct Copies<'a> {
    emits: &'a [Emit],
    /// The position of the first emit of each message. `None` in a short list, which is searched.
    first: Option<HashMap<SharedId, usize>>,
}

/// The part of an id that all emits of one message share.
type SharedId = (LaneId, Seq, Part);

/// Maximum length of a list that is searched. A longer list gets a table.
const SEARCHED_MAX: usize = 16;

impl<'a> Copies<'a> {
    fn of(emits: &'a [Emit]) -> Copies<'a> {
        // each app gets every message once, so a list for one app contains no message twice
        let has_copies =
            emits.windows(2).any(|pair| matches!(pair, [one, other] if one.id.app != other.id.app));
        Copies {
            emits: if has_copies { emits } else { &[] },
            first: (has_copies && emits.len() > SEARCHED_MAX).then(HashMap::default),
        }
    }

    /// Returns the distance from the emit at `at` to the first one with the same payload, or `None` if it is the first.
    /// Must be called for each position, in order.
    fn distance(&mut self, at: usize) -> Option<u32> {
        let emit = self.emits.get(at)?;
        let shared = |emit: &Emit| (emit.id.lane, emit.id.seq, emit.id.part);
        let first = match &mut self.first {
            Some(first) => *first.entry(shared(emit)).or_insert(at),
            None => self.emits.iter().position(|first| shared(first) == shared(emit))?,
        };

        let copied = self.emits.get(first).filter(|first| first.payload == emit.payload);
        copied.and_then(|_| u32::try_from(at - first).ok()).filter(|distance| *distance > 0)
    }
}

impl Serialize for Emits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        let mut copies = Copies::of(self);

        for (at, emit) in self.iter().enumerate() {
            let payload = copies.distance(at).map_or(PayloadAt::Here(&emit.payload), PayloadAt::Before);
            list.serialize_element(&emit.with(payload))?
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Emits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Emits, D::Error> {
        deserializer.deserialize_seq(FromList)
    }
}

/// Decodes a list in which emits may refer to the payloads of earlier ones.
struct FromList;

impl<'de> Visitor<'de> for FromList {
    type Value = Emits;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of emitted messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Emits, A::Error> {
        let mut emits: Vec<Emit> = Vec::new();
        while let Some(listed) = list.next_element::<Emit<PayloadAt<Payload>>>()? {
            let payload = match &listed.payload {
                PayloadAt::Here(payload) => payload.clone(),
                PayloadAt::Before(distance) => {
                    let first = emits.len().checked_sub(*distance as usize);
                    let first = first.and_then(|at| emits.get(at));
                    let missing = || {
                        A::Error::custom(format_args!(
                            "emit {} refers to the payload of an emit {distance} places before it",
                            emits.len()
                        ))
                    };
                    first.ok_or_else(missing)?.payload.clone()
                }
            };

            emits.push(listed.with(payload))
        }
        Ok(Emits(emits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AppId;
    use crate::codec::{decode_many, encode_many};
    use proptest::prelude::*;

    fn emit(seq: u64, app: u16, payload: &[u8]) -> Emit {
        Emit {
            id: MessageId { lane: LaneId(1), seq: Seq(seq), part: Part::WHOLE, app: AppId(app) },
            message_type: MessageTypeId(2),
            payload: payload.into(),
            at: None,
            is_sweep: false,
            position: None,
            origin: HiveId(0),
            sender: Address::Outside,
            hops: 0,
            chain: 0,
            chance: 0,
        }
    }

    /// Returns the emits of a batch of messages, one app after the other.
    fn of_apps(messages: u64, apps: u16, payload: &[u8]) -> Emits {
        (0..apps).flat_map(|app| (0..messages).map(move |seq| emit(seq, app, payload))).collect()
    }

    #[test]
    fn a_payload_is_encoded_once_for_all_apps() {
        for messages in [1, 5, 200] {
            let bytes = |apps| encode_many(&of_apps(messages, apps, &[7; 1000])).len() as u64;
            let more = bytes(3) - bytes(1);
            assert!(more < 2 * messages * 20, "{messages} messages to two more apps take {more} bytes");
            assert!(encode_many(&of_apps(messages, 3, &[7; 1000])).len() as u64 > messages * 1000);
        }
    }

    #[test]
    fn copies_share_the_decoded_payload() {
        let decoded: Emits = decode_many("emits", &encode_many(&of_apps(2, 2, &[7]))).unwrap();
        assert_eq!(decoded, of_apps(2, 2, &[7]));
        assert!(Arc::ptr_eq(&decoded[1].payload.0, &decoded[3].payload.0));
        assert!(!Arc::ptr_eq(&decoded[0].payload.0, &decoded[1].payload.0));
    }

    #[test]
    fn a_reference_to_no_emit_is_refused() {
        let good = encode_many(&of_apps(1, 2, &[7]));
        let at = good.iter().rposition(|byte| *byte == 1).unwrap();
        for distance in [0, 2, 200] {
            let bad: Vec<u8> =
                good.iter().enumerate().map(|(i, byte)| if i == at { distance } else { *byte }).collect();
            let error = decode_many::<Emits>("emits", &bad).unwrap_err().to_string();
            let expected = format!("emit 1 refers to the payload of an emit {distance} places before it");
            assert!(error.contains(&expected), "{error}");
        }
    }

    proptest! {
        /// Emits with the same id never have different payloads, but the encoding does not rely on this.
        #[test]
        fn every_list_is_decoded_as_it_was(list in prop::collection::vec((0..4u64, 0..3u16, 0..3u8), 0..40)) {
            let emits: Emits = list.iter().map(|(seq, app, byte)| emit(*seq, *app, &[*byte])).collect();
            prop_assert_eq!(decode_many::<Emits>("emits", &encode_many(&emits)).unwrap(), emits);
        }
    }
}
