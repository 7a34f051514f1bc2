//! Trace events for single messages: emitted, delivered to an IO bee, answered.
//!
//! Each event carries `chain`, the number of the outside message that caused it. While tracing is on, each
//! message is a run of its own, so this number is exact. While tracing is off, a run contains many messages,
//! and whether tracing is on is checked only once per run.

use crate::hive::message::batch::{Chain, Source};
use std::ops::Range;
use tracing::Level;

/// Target of the spans and events. A filter such as `beehive::messages=trace` turns them on.
pub(crate) const TARGET: &str = "beehive::messages";

/// Checks whether message tracing is on.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: TARGET, Level::TRACE)
}

/// Traces messages about to be routed.
#[cold]
pub(crate) fn emitted(kind: &'static str, source: &Source, range: Range<u32>) {
    for index in range {
        let (chain, hops, from) = (source.chain.number(index), source.hops, source.sender);
        tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), hops, kind, ?from, "emitted");
    }
}

/// Traces messages delivered to an IO bee.
#[cold]
pub(crate) fn delivered(kind: &'static str, source: &Source, range: Range<u32>, io: u64) {
    for index in range {
        let (chain, hops) = (source.chain.number(index), source.hops);
        tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), hops, kind, io, "delivered");
    }
}

/// Traces delivered answers.
#[cold]
pub(crate) fn answered(kind: &'static str, chain: Chain, answers: usize) {
    let chain = chain.number(0);
    tracing::trace!(target: TARGET, chain = format_args!("{chain:016x}"), kind, answers, "answered");
}
