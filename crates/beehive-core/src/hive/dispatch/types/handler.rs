//! A type-erased handler, so that rarely executed code (errors, traces, log entries) is compiled only once.

use crate::app::{Handlers, Handles};
use crate::cell::{CellId, Outcome};
use crate::hive::consensus::journal::{Emit, HandlerId, MessageId, MessageTypeId};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::Link;
use crate::hive::message::batch::{Messages, Source};
use crate::hive::message::counters::HandlerCounters;
use crate::hive::message::dead_letters::{DeadLetter, Provenance, Way};
use crate::hive::message::payloads::Payloads;
use crate::hive::message::trace;
use crate::key::Key;
use crate::mapper::Mapper;
use crate::message::{Each, Error, ErrorKind, Message, MessageError};
use crate::report::HandlerReport;
use crate::time::Time;
use crate::{limits, panics};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::span::EnteredSpan;

/// A handler and its data, without the types of its app and its message.
#[derive(Clone, Copy)]
pub(crate) struct Handler<'a> {
    /// Number and name of the app.
    pub(crate) app: u16,
    pub(crate) app_name: &'static str,
    /// Number and name of the handler in its app.
    pub(crate) number: usize,
    pub(crate) name: &'static str,
    /// Name of the message type.
    pub(crate) message: &'static str,
    /// The number by which a log finds this handler.
    pub(crate) message_type: MessageTypeId,
    /// Whether the handler runs once for each cell of a dictionary.
    #[cfg(feature = "testing")]
    pub(crate) is_of_a_sweep: bool,
    pub(crate) counters: &'a HandlerCounters,
    /// The log for the app's records; `None` if the app is not journaled.
    pub(crate) link: Option<&'a Arc<Link>>,
}

impl<'a> Handler<'a> {
    /// Returns the id by which a log remembers that the handler has consumed a message.
    pub(crate) fn id(&self) -> HandlerId {
        self.message_type.into()
    }

    /// Enters the tracing span of one message. The handler's log lines appear inside this span.
    #[cold]
    pub(crate) fn span(&self, source: &Source, index: u32, cells: &[CellId]) -> EnteredSpan {
        tracing::trace_span!(
            target: trace::TARGET,
            "handle",
            chain = format_args!("{:016x}", source.chain.number(index)),
            hops = source.hops,
            app = self.app_name,
            handler = self.name,
            kind = self.message,
            cell = cells.first().map(|cell| format!("{:016x}", cell.0)),
        )
        .entered()
    }

    /// Counts a message whose handler returned an error. Such an error goes to the requester only.
    #[cold]
    pub(crate) fn returned(&self, error: &dyn MessageError) {
        let Handler { app_name: app, name: handler, message, .. } = *self;
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        if tracing::enabled!(tracing::Level::DEBUG) {
            // `describe` is the app's code, which may panic
            let error = panics::harmless(|| error.describe()).unwrap_or_default();
            tracing::debug!(app, handler, message, %error, "a handler answered with an error");
        }
    }

    /// Counts a failed message and makes it a dead letter. If the handler itself returned the error, or a
    /// view was too old, the message is only counted.
    #[cold]
    pub(crate) fn fail(
        &self,
        hive: &HiveInner,
        batch: &dyn Messages,
        index: u32,
        position: Option<u16>,
        error: &Error,
    ) {
        let Handler { app_name: app, name: handler, message, .. } = *self;
        if matches!(error.kind(), ErrorKind::Handler | ErrorKind::Stale) {
            self.counters.errors.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(app, handler, message, %error, "a handler answered with an error");
            return;
        }

        self.counters.panics.fetch_add(1, Ordering::Relaxed);
        let bytes = match panics::harmless(|| batch.try_encoded(index, limits::DEAD_LETTER_BYTES_MAX)) {
            Some(None) => return,
            Some(Some(encoded)) => encoded.ok(),
            None => None,
        };

        let Source { origin, sender, hops, chain, handler: sent_by, .. } = *batch.source();
        let letter = DeadLetter {
            number: 0,
            app,
            handler,
            message,
            words: batch.words(index as usize, limits::DEAD_LETTER_WORDS_BYTES_MAX),
            bytes,
            error: error.clone(),
            at: hive.now(),
            cause: Provenance {
                chain: chain.number(index),
                hops,
                origin,
                sender,
                handler: hive.handler_of(sender, sent_by),
            },
            way: Way { app: self.app, message_type: self.message_type, position },
        };

        if let Some(probe) = hive.probe() {
            probe.dead_letter(&letter)
        }
        hive.dead_letters.add(letter);
    }

    /// Returns the outbox entry for message `index`, or `None` if there is no such message. Panics if the
    /// message cannot be encoded.
    pub(crate) fn emit_of(
        &self,
        batch: &dyn Messages,
        index: u32,
        message_id: MessageId,
        position: Option<u16>,
        at: Option<Time>,
        payloads: &mut Payloads,
    ) -> Option<Emit> {
        let payload = payloads.of(batch, index)?;
        let Source { origin, sender, hops, chain, .. } = *batch.source();
        Some(Emit {
            id: message_id,
            message_type: self.message_type,
            payload,
            at,
            is_sweep: false,
            position,
            origin,
            sender,
            hops,
            chain: chain.number(index),
            chance: batch.source().chance_of(index as u64),
        })
    }
}

/// Returns the name of the handler for messages of type `M` in app `A`.
pub(crate) const fn handler_name<A: Handlers + Handles<M>, M: Message>() -> &'static str {
    match A::REPORT.split_at_checked(A::HANDLER) {
        Some((_, [report, ..])) => report.name,
        _ => "?",
    }
}

/// Returns the source location, in parentheses, of the handler for messages of type `M` in app `A`.
pub(crate) fn place<A: Handlers + Handles<M>, M: Message>() -> String {
    let place = |report: &HandlerReport| format!(" ({} at {}:{})", report.name, report.file, report.line);
    A::REPORT.get(A::HANDLER).map(place).unwrap_or_default()
}

/// The name by which a log finds a handler of an app.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoggedName {
    /// The name of the message type.
    message: &'static str,
    /// The name of the handler, if the message type alone does not identify it.
    handler: Option<&'static str>,
}

impl LoggedName {
    /// Returns the name of the handler for messages of type `M` in app `A`. The built-in message types
    /// (`beehive::..`) exist in every app, so their names also contain the handler.
    pub(crate) const fn of<A: Handlers + Handles<M>, M: Message>() -> LoggedName {
        match is_built_in(M::NAME) {
            true => LoggedName { message: M::NAME, handler: Some(handler_name::<A, M>()) },
            false => LoggedName::of_message(M::NAME),
        }
    }

    /// Returns the name of the only handler of an app for messages of this type.
    pub(crate) const fn of_message(message: &'static str) -> LoggedName {
        LoggedName { message, handler: None }
    }

    /// Returns the name of the handler of a sweep.
    pub(crate) const fn of_sweep<A: Handlers + Handles<Each<K, M>>, K: Key, M: Message>() -> LoggedName {
        LoggedName { message: M::NAME, handler: Some(handler_name::<A, Each<K, M>>()) }
    }

    /// Returns the number that stands for the name in records.
    pub(crate) const fn number(self) -> MessageTypeId {
        MessageTypeId::of(self.message, self.handler)
    }
}

impl std::fmt::Display for LoggedName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&MessageTypeId::name(self.message, self.handler))
    }
}

/// Checks whether the platform defines the message type.
pub(crate) const fn is_built_in(message: &str) -> bool {
    matches!(message.as_bytes(), [b'b', b'e', b'e', b'h', b'i', b'v', b'e', b':', b':', ..])
}

/// Runs the derived map. If the map panics (for example on an overflow, in a build with overflow checks), the
/// message still goes to the handler, with the cells named by the map so far. The handler will probably panic
/// at the same point, and the error then reaches the requester or the dead letters.
#[inline(always)]
pub(crate) fn map<A: Handlers + Handles<M>, M: Message>(message: &M, mapper: &mut Mapper) -> Outcome {
    mapper.run(|mapper| A::map(message, mapper));
    mapper.outcome()
}
