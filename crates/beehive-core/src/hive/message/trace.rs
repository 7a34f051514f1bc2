//! What somebody who watches is told: where each message is emitted, handled and delivered, and what began it all.
//!
//! Everything carries `chain`, the number of the message from outside that caused it. While somebody watches, each message
//! is a run of its own, so that the number is exact; else a run is many messages, and looks once whether anybody does: the
//! filter is one number in memory.

use crate::hive::message::batch::{Chain, Source};
use std::ops::Range;
use tracing::Level;

/// What the spans and events are about, for filters: `beehive::messages=trace`.
pub(crate) const TARGET: &str = "beehive::messages";

/// Whether anybody watches.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::TRACE)
}

/// Messages are on their way to all who handle them.
#[cold]
pub(crate) fn emitted(kind: &'static str, source: &Source, range: Range<u32>) {
    for index in range {
        let (chain, hops, from) = (source.chain.number(index), source.hops, source.sender);
        tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), hops, kind, ?from, "emitted");
    }
}

/// Messages have reached an IO bee.
#[cold]
pub(crate) fn delivered(kind: &'static str, source: &Source, range: Range<u32>, io: u64) {
    for index in range {
        let (chain, hops) = (source.chain.number(index), source.hops);
        tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), hops, kind, io, "delivered");
    }
}

/// Answers have gone to whoever asked.
#[cold]
pub(crate) fn answered(kind: &'static str, chain: Chain, answers: usize) {
    let chain = chain.number(0);
    tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), kind, answers, "answered");
}
