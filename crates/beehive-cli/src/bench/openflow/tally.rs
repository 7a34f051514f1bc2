//! The counters and latencies of one worker thread.

use std::ops::AddAssign;

use hdrhistogram::Histogram;

use super::limits::LATENCY_MAX;

/// Counters, which are summed over switches and threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Number of answered packet-ins.
    pub(super) answered: u64,
    /// Number of received flow-mods.
    pub(super) flow_mods: u64,
    /// Number of received packet-outs.
    pub(super) packet_outs: u64,
    /// Number of packet-ins not answered in time.
    pub(super) unanswered: u64,
    /// Number of answers to packet-ins that had already been answered or had timed out.
    pub(super) repeated: u64,
    /// Number of packet-outs that do not answer a packet-in of this switch (LLDP probes, packets of other switches).
    pub(super) foreign: u64,
    /// Number of answers that flood a packet although its destination was announced.
    pub(super) flooded: u64,
    /// Number of answers that send a packet to a port other than that of its destination.
    pub(super) misdirected: u64,
    /// Number of received OpenFlow errors.
    pub(super) errors: u64,
    /// Number of requests unknown to the emulated switch and ignored by it.
    pub(super) unknown: u64,
    /// Number of packet-ins of bystanders that were not answered in time.
    pub(super) bystanders_unanswered: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.answered += other.answered;
        self.flow_mods += other.flow_mods;
        self.packet_outs += other.packet_outs;
        self.unanswered += other.unanswered;
        self.repeated += other.repeated;
        self.foreign += other.foreign;
        self.flooded += other.flooded;
        self.misdirected += other.misdirected;
        self.errors += other.errors;
        self.unknown += other.unknown;
        self.bystanders_unanswered += other.bystanders_unanswered;
    }
}

/// Counters and a histogram of latencies.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    latencies: Histogram<u64>,
    /// Latency of the current run of equal latencies, in nanoseconds.
    run_ns: u64,
    /// Number of answers in that run, which is not in the histogram yet.
    run_length: u64,
    /// Latencies of the echo requests of switches with full sockets, in nanoseconds.
    pub(super) echoes: Histogram<u64>,
    /// Latencies of the packet-ins of bystanders, in nanoseconds.
    pub(super) bystanders: Histogram<u64>,
}

impl Tally {
    /// Returns empty counters.
    ///
    /// # Panics
    ///
    /// Never panics, because the bounds of the histogram are valid constants.
    pub(super) fn new() -> Self {
        let empty =
            || Histogram::new_with_bounds(1, LATENCY_MAX.as_nanos() as u64, 3).expect("constant bounds");
        Self {
            counts: Counts::default(),
            latencies: empty(),
            run_ns: 0,
            run_length: 0,
            echoes: empty(),
            bystanders: empty(),
        }
    }

    /// Counts an answer with this latency. If one read returns the answers to packet-ins sent in one write, their
    /// latencies are equal. Runs of equal latencies are therefore recorded together.
    #[inline]
    pub(super) fn answered(&mut self, latency_ns: u64) {
        self.counts.answered += 1;
        if latency_ns != self.run_ns {
            self.end_run();
            self.run_ns = latency_ns;
        }
        self.run_length += 1;
    }

    /// Adds the current run to the histogram.
    fn end_run(&mut self) {
        if self.run_length > 0 {
            let (value, count) = (self.run_ns.clamp(1, self.latencies.high()), self.run_length);
            self.latencies.saturating_record_n(value, count);
        }
        self.run_length = 0;
    }

    /// Returns the histogram of latencies in nanoseconds.
    pub(super) fn latencies(&mut self) -> &Histogram<u64> {
        self.end_run();
        &self.latencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_recorded_once() {
        let mut tally = Tally::new();
        [5, 5, 5, 7, 5, u64::MAX, 0].into_iter().for_each(|ns| tally.answered(ns));
        let latencies = tally.latencies();
        assert_eq!(
            (latencies.len(), latencies.count_at(5), latencies.count_at(7), latencies.count_at(1)),
            (7, 4, 1, 1)
        );
        assert!(latencies.max() >= LATENCY_MAX.as_nanos() as u64);
        assert_eq!(tally.latencies().len(), 7);

        assert_eq!(tally.counts.answered, 7);
    }
}
