//! Mail for the IO bees of other hives.
//!
//! Nothing but a network lies between: a message that a hive has sent arrives once, and after those that the same bee has sent
//! before, unless one of the two hives ends first. A hive that has committed what a bee did and dies before the mail
//! has left does not send it again, like a hive alone, whose IO bees die with it.
//!
//! The types of these messages need no handler, so the receiving hive may not know them. It keeps them encoded until the IO
//! bee asks for messages of a type.

use crate::cell::HiveId;
use crate::hive::admission::credits::Cause;
use crate::hive::links::frame::{Report, ToIoBee};
use crate::hive::links::links::Links;
use crate::hive::links::sent::Requester;
use crate::hive::message::batch::Batch;
use crate::hive::message::inbox::Shed;
use crate::message::Message;
use crate::panics;
use crate::state::image::decode;
use beehive_protocol::Payload;
use std::any::Any;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

/// Size of the messages in one mail, in bytes. A larger message is sent alone.
const MAIL_BYTES_MAX: usize = 1 << 20;

/// Holds the credits of the work that caused a mail, until the IO bee has read it.
struct UntilRead {
    _cause: Arc<Cause>,
}

impl Requester for UntilRead {
    fn report(&self, _: u32, _: Report) {}
}

/// Sends messages to an IO bee of another hive. Counts in `shed` those for which there is no room.
pub(crate) fn send<M: Message>(
    (links, shed): (&Links, &Shed),
    (hive, io): (HiveId, u64),
    batch: &Batch<M>,
    range: Range<u32>,
    cause: Option<&Arc<Cause>>,
) {
    let mut messages = Vec::new();
    let mut bytes = 0;
    let mail = |messages: Vec<Payload>| {
        let until_read = cause.map(|cause| Arc::new(UntilRead { _cause: cause.clone() }) as _);
        let (count, name) = (messages.len(), M::NAME.to_string());
        if !links.send_mail(hive, until_read, |ticket| ToIoBee { io, name, ticket, messages }) {
            shed.add(count)
        }
    };
    for message in range.filter_map(|index| batch.get(index)) {
        // the encoder of a message may panic
        let Ok(payload) = panics::catch(AssertUnwindSafe(|| Payload::of(message))) else {
            tracing::error!(
                message = M::NAME,
                "a message to an IO bee of another hive cannot be encoded; it is dropped"
            );
            continue;
        };
        if bytes + payload.len() > MAIL_BYTES_MAX && !messages.is_empty() {
            mail(std::mem::take(&mut messages));
            bytes = 0
        }
        bytes += payload.len();
        messages.push(payload)
    }
    if !messages.is_empty() {
        mail(messages)
    }
}

/// Messages of another hive, which are decoded when the IO bee asks for them.
pub(super) struct Encoded {
    name: String,
    payloads: Vec<Payload>,
    /// The messages, a `Vec<M>`; `None` if they cannot be decoded.
    decoded: OnceLock<Option<Box<dyn Any + Send + Sync>>>,
}

impl Encoded {
    pub(super) fn new(name: String, payloads: Vec<Payload>) -> Encoded {
        Encoded { name, payloads, decoded: OnceLock::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn len(&self) -> usize {
        self.payloads.len()
    }

    /// Returns the messages, if they are of type `M` and can be decoded.
    pub(super) fn messages<M: Message>(&self) -> Option<&[M]> {
        if self.name != M::NAME {
            return None;
        }
        let decoded = self.decoded.get_or_init(|| {
            let messages = self.payloads.iter().map(|payload| decode::<M>("a message of another hive", payload));
            match messages.collect::<Result<Vec<M>, _>>() {
                Ok(messages) => Some(Box::new(messages)),
                Err(error) => {
                    tracing::error!(%error, message = M::NAME, "mail dropped; do all hives run the same program?");
                    None
                }
            }
        });
        decoded.as_ref()?.downcast_ref::<Vec<M>>().map(Vec::as_slice)
    }
}
