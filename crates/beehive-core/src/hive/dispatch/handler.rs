//! A type-erased handler, so rarely executed code (errors, traces, log entries) is compiled only once.

use crate::app::{Handlers, Handles};
use crate::cell::{CellId, Outcome};
use crate::hive::consensus::journal::{Emit, MessageId};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::Link;
use crate::hive::message::batch::{Messages, Source};
use crate::hive::message::counters::HandlerCounters;
use crate::hive::message::dead_letters::{DeadLetter, Provenance, Way};
use crate::hive::message::trace;
use crate::mapper::Mapper;
use crate::message::{Error, ErrorKind, Message, MessageError};
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
    /// Whether the handler runs once for each cell of a dictionary.
    #[cfg(feature = "testing")]
    pub(crate) is_of_a_sweep: bool,
    pub(crate) counters: &'a HandlerCounters,
    /// The log that the app's records go to; `None` if the app is not journaled.
    pub(crate) link: Option<&'a Arc<Link>>,
}

impl<'a> Handler<'a> {
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

    /// Returns the name by which a log finds this handler.
    pub(crate) fn remembered_name(&self) -> String {
        remembered_as(self.message, self.name)
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

    /// Counts a message that failed, and makes it a dead letter. If the handler itself returned the error,
    /// or a view was too old, the message is only counted.
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
        let bytes = match panics::harmless(|| batch.encoded(index)) {
            Some(None) => return,
            Some(bytes) => bytes,
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
            way: Way { app: self.app, name: self.remembered_name(), position },
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
    ) -> Option<Emit> {
        let bytes = batch.encoded(index)?;
        let Source { origin, sender, hops, chain, .. } = *batch.source();
        Some(Emit {
            id: message_id,
            name: self.remembered_name(),
            bytes,
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
pub(crate) fn handler_name<A: Handlers + Handles<M>, M: Message>() -> &'static str {
    A::REPORT.get(A::HANDLER).map_or("?", |report| report.name)
}

/// Returns, in parentheses, where the source defines the handler for messages of type `M` in app `A`.
pub(crate) fn place<A: Handlers + Handles<M>, M: Message>() -> String {
    let place = |report: &HandlerReport| format!(" ({} at {}:{})", report.name, report.file, report.line);
    A::REPORT.get(A::HANDLER).map(place).unwrap_or_default()
}

/// Returns the name by which a log finds the handler for messages of type `M` in app `A`. The built-in
/// message types (`beehive::..`) exist in every app, so their names also contain the handler.
pub(crate) fn remembered_name<A: Handlers + Handles<M>, M: Message>() -> String {
    remembered_as(M::NAME, handler_name::<A, M>())
}

/// Returns the name by which a log finds a handler.
fn remembered_as(message: &'static str, handler: &'static str) -> String {
    match message.starts_with("beehive::") {
        true => format!("{message}@{handler}"),
        false => message.to_string(),
    }
}

/// Runs the derived map. If the map panics (for example because of an overflow, in a build with overflow
/// checks), the message still goes to the handler, with the cells that the map has named so far. The
/// handler will probably panic at the same point, and the error then reaches the requester or the dead
/// letters.
#[inline(always)]
pub(crate) fn map<A: Handlers + Handles<M>, M: Message>(message: &M, mapper: &mut Mapper) -> Outcome {
    mapper.run(|mapper| A::map(message, mapper));
    mapper.outcome()
}
