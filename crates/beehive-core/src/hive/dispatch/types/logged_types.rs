//! Finds message types by the numbers that stand for them in a log, in order to resend logged messages and dead
//! letters.

use crate::hash::HashMap;
use crate::hive::admission::outside_lanes::Admitted;
use crate::hive::consensus::journal::{Emit, MessageTypeId, Sweep};
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::sender::deferred::Onward;
use crate::hive::dispatch::types::handler::LoggedName;
use crate::hive::dispatch::types::message_types::Receiver;
use crate::hive::message::arrival::Arrival;
use crate::hive::message::batch::{Batch, Source};
use crate::hive::message::dead_letters::Way;
use crate::message::Message;
use crate::state::image::{DecodeError, decode};
use crate::time::Time;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function that resumes a sweep. The first argument is the position of the log that contains the sweep.
type ResumeSweep = Box<dyn Fn(usize, &Sweep, &mut RouteContext) -> Result<(), DecodeError> + Send + Sync>;

/// An encoded message to be resent to an app.
pub(crate) struct Again<'a> {
    /// The encoded message.
    pub(crate) bytes: &'a [u8],
    /// The source of the message.
    pub(crate) source: Source,
    /// Position of the app in the answer chain; `None` if the app is not in it.
    pub(crate) position: Option<u16>,
    /// If the message comes from outside, the admitted batch that contains it.
    pub(crate) admitted: Option<Arc<Admitted>>,
    /// The time at which a timer sends the message; `None` to send it at once.
    pub(crate) at: Option<Time>,
    /// If the message comes from another hive, which bee has to handle it, and its position among those that came with
    /// it.
    pub(crate) arrival: Option<(Arc<Arrival>, u32)>,
}

/// Sends encoded messages of one type to one app, with the type erased.
trait Resend: Send + Sync {
    /// Checks whether the bytes can be decoded.
    fn check(&self, bytes: &[u8]) -> Result<(), DecodeError>;
    /// Returns the receiver with its type erased.
    fn onward(&self) -> Arc<dyn Onward>;
    /// Decodes a message and sends it to the app.
    fn send(&self, again: Again, cx: &mut RouteContext) -> Result<(), DecodeError>;
}

/// The `Resend` for a receiver of type `M`.
struct ResendTo<M: Message>(Arc<dyn Receiver<M>>);

impl<M: Message> Resend for ResendTo<M> {
    fn onward(&self) -> Arc<dyn Onward> {
        self.0.clone()
    }

    fn check(&self, bytes: &[u8]) -> Result<(), DecodeError> {
        decode::<M>("a message", bytes).map(|_| ())
    }

    fn send(&self, again: Again, cx: &mut RouteContext) -> Result<(), DecodeError> {
        let Again { bytes, source, position, admitted, at, arrival } = again;
        let messages = vec![decode::<M>("a message", bytes)?];
        let sink = arrival.as_ref().and_then(|(arrival, at)| arrival.sink::<M>(*at));
        let arrival = arrival.map(|(arrival, _)| arrival);
        let batch = Arc::new(Batch { messages, passed: None, source, sink, admitted, arrival });

        match at {
            Some(at) => {
                let kind = cx.turn.hive.types.kind::<M>();
                let (app, queue) = (self.0.app(), cx.queue.share());
                kind.set_timer((at, app), &batch, 0..1, queue, cx.turn)
            }
            None => self.0.route(&batch, 0..1, position, cx),
        }
        Ok(())
    }
}

/// The error for something in a log that no handler takes any more.
fn no_handler(what: &'static str) -> DecodeError {
    DecodeError { what, why: "the app has no handler for it".to_string() }
}

/// The message types and sweeps of a hive, by app and number.
#[derive(Default)]
pub(crate) struct LoggedTypes {
    /// The receivers of messages that are resent from a log, by app and number of the type.
    resend: RwLock<HashMap<(u16, MessageTypeId), Arc<dyn Resend>>>,
    /// Functions that resume a sweep from a log, by app and number of the type.
    resume: RwLock<HashMap<(u16, MessageTypeId), ResumeSweep>>,
    /// The names of the types in `resend` and `resume`.
    names: RwLock<BTreeMap<MessageTypeId, String>>,
    /// The first two names that have the same number.
    same_number: Mutex<Option<[String; 2]>>,
}

impl LoggedTypes {
    /// Resends a message of a bee that has come to this hive.
    pub(crate) fn resend(&self, emit: &Emit, cx: &mut RouteContext) -> Result<(), DecodeError> {
        self.resend_from(emit, false, cx)
    }

    /// Resends a message from a log with which a hive without a cluster has started.
    pub(crate) fn resend_at_start(&self, emit: &Emit, cx: &mut RouteContext) -> Result<(), DecodeError> {
        self.resend_from(emit, true, cx)
    }

    fn resend_from(&self, emit: &Emit, is_logged: bool, cx: &mut RouteContext) -> Result<(), DecodeError> {
        let again = Again {
            bytes: &emit.payload,
            source: Source { is_logged, ..Source::again(emit) },
            position: emit.position,
            admitted: None,
            at: emit.at,
            arrival: None,
        };
        self.resend_to(emit.id.app.0, emit.message_type)?.send(again, cx)
    }

    /// Sends a message that came from another hive to its app.
    pub(crate) fn deliver(
        &self,
        emit: &Emit,
        arrival: (Arc<Arrival>, u32),
        cx: &mut RouteContext,
    ) -> Result<(), DecodeError> {
        let source = Source::again(emit);
        let (position, arrival) = (emit.position, Some(arrival));
        let bytes = &emit.payload;
        let again = Again { bytes, source, position, admitted: None, at: None, arrival };
        self.send_again(emit.id.app.0, emit.message_type, again, cx)
    }

    /// Resends an encoded message to the handler of `app` for this type.
    pub(crate) fn send_again(
        &self,
        app: u16,
        message_type: MessageTypeId,
        again: Again,
        cx: &mut RouteContext,
    ) -> Result<(), DecodeError> {
        self.resend_to(app, message_type)?.send(again, cx)
    }

    /// Checks whether an encoded message can be resent.
    pub(crate) fn check(&self, way: &Way, bytes: &[u8]) -> Result<(), DecodeError> {
        self.check_message(way.app, way.message_type, bytes)
    }

    /// Checks whether an encoded message to `app` can be resent.
    pub(crate) fn check_message(
        &self,
        app: u16,
        message_type: MessageTypeId,
        bytes: &[u8],
    ) -> Result<(), DecodeError> {
        self.resend_to(app, message_type)?.check(bytes)
    }

    /// Checks whether a sweep from a log can be resumed.
    pub(crate) fn check_sweep(&self, emit: &Emit) -> Result<(), DecodeError> {
        match self.resume.read().contains_key(&(emit.id.app.0, emit.message_type)) {
            true => Ok(()),
            false => Err(no_handler("a sweep")),
        }
    }

    /// Returns the receiver of this type in `app`.
    pub(crate) fn onward(&self, app: u16, message_type: MessageTypeId) -> Option<Arc<dyn Onward>> {
        Some(self.resend_to(app, message_type).ok()?.onward())
    }

    /// Returns the object that resends messages to the handler of `app` for this type.
    fn resend_to(&self, app: u16, message_type: MessageTypeId) -> Result<Arc<dyn Resend>, DecodeError> {
        let known = self.resend.read().get(&(app, message_type)).cloned();
        known.ok_or_else(|| no_handler("a message"))
    }

    /// Resumes a sweep that was recovered from the log at position `log`.
    pub(crate) fn resume_sweep(
        &self,
        log: usize,
        sweep: &Sweep,
        cx: &mut RouteContext,
    ) -> Result<(), DecodeError> {
        let emit = &sweep.waiting.emit;
        match self.resume.read().get(&(emit.id.app.0, emit.message_type)) {
            Some(resume) => resume(log, sweep, cx),
            None => Err(no_handler("a sweep")),
        }
    }

    /// Registers the function that resumes the sweeps of a handler.
    pub(crate) fn add_sweep(&self, app: u16, name: LoggedName, resume: ResumeSweep) {
        self.number(name);
        self.resume.write().insert((app, name.number()), resume);
    }

    /// Registers a receiver for messages that are resent from a log. This alone does not make it a receiver
    /// of emitted messages.
    pub(crate) fn add_receiver<M: Message>(&self, name: LoggedName, receiver: Arc<dyn Receiver<M>>) {
        self.number(name);
        self.resend.write().insert((receiver.app(), name.number()), Arc::new(ResendTo(receiver)));
    }

    /// Registers the number of a name. If another name has the same number, remembers both.
    pub(super) fn number(&self, name: LoggedName) {
        let name_text = name.to_string();
        let mut names = self.names.write();
        let known = names.entry(name.number()).or_insert_with(|| name_text.clone());
        if *known != name_text {
            self.same_number.lock().get_or_insert([known.clone(), name_text]);
        }
    }

    /// Takes two names that have the same number, if there are any.
    pub(crate) fn take_same_number(&self) -> Option<[String; 2]> {
        self.same_number.lock().take()
    }

    /// Returns the names of the types in logs.
    pub(crate) fn names(&self) -> BTreeMap<MessageTypeId, String> {
        self.names.read().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Among 100 000 names, some pairs have the same number.
    #[test]
    fn two_names_with_the_same_number_are_reported() {
        let names =
            (0..100_000).map(|number| LoggedName::of_message(format!("crate::Message{number}").leak()));
        let types = LoggedTypes::default();
        let mut first: HashMap<MessageTypeId, LoggedName> = HashMap::default();
        let pair = names.into_iter().find_map(|name| Some((first.insert(name.number(), name)?, name)));
        let (one, other) = pair.unwrap();

        types.number(one);
        types.number(one);
        assert_eq!(types.take_same_number(), None);
        types.number(other);
        assert_eq!(types.take_same_number(), Some([one.to_string(), other.to_string()]));
        assert_ne!(one.to_string(), other.to_string());
    }
}
