//! What somebody who watches is told: where each message is emitted, handled and delivered, and what began it all.
//!
//! Everything carries `chain`, the number of the message from outside that caused it. While somebody watches, each message
//! is a run of its own, so that the number is exact; else a run is many messages, and looks once whether anybody does: the
//! filter is one number in memory.

use crate::cell::CellId;
use crate::hive::batch::{Batch, Chain};
use crate::message::Message;
use std::ops::Range;
use tracing::Level;
use tracing::span::EnteredSpan;

/// What the spans and events are about, for filters: `beehive::messages=trace`.
const TARGET: &str = "beehive::messages";

/// Whether anybody watches.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::TRACE)
}

/// The span of one message in its handler. What the handler says is said within it.
#[cold]
pub(crate) fn handling<M: Message>(
    app: &'static str,
    handler: &'static str,
    batch: &Batch<M>,
    index: u32,
    cells: &[CellId],
) -> EnteredSpan {
    let chain = batch.source.chain.number(index);
    let hops = batch.source.hops;
    tracing::trace_span!(
        target: TARGET,
        "handle",
        chain = format_args!("{chain:016x}"),
        hops,
        app,
        handler,
        kind = M::NAME,
        cell = cells.first().map(|cell| format!("{:016x}", cell.0)),
    )
    .entered()
}

/// Messages are on their way to all who handle them.
#[cold]
pub(crate) fn emitted<M: Message>(batch: &Batch<M>, range: Range<u32>) {
    for index in range {
        let (chain, hops) = (batch.source.chain.number(index), batch.source.hops);
        let (kind, from) = (M::NAME, batch.source.sender);
        tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), hops, kind, ?from, "emitted");
    }
}

/// Messages have reached an IO bee.
#[cold]
pub(crate) fn delivered<M: Message>(batch: &Batch<M>, range: Range<u32>, io: u64) {
    for index in range {
        let (chain, hops, kind) = (batch.source.chain.number(index), batch.source.hops, M::NAME);
        tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), hops, kind, io, "delivered");
    }
}

/// Answers have gone to whoever asked.
#[cold]
pub(crate) fn answered<M: Message>(chain: Chain, answers: usize) {
    let (chain, kind) = (chain.number(0), M::NAME);
    tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), kind, answers, "answered");
}
