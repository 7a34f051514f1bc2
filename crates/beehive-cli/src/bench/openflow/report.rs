//! The result of a run, as text and as one JSON object.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::options::{OpenflowArgs, OpenflowVersion, Plan};
use super::storm::Storm;
use super::tally::{Counts, Tally};
use super::worker::WorkerResult;

/// The result of a run. Names of time fields end in their unit.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) controller: String,
    pub(super) mode: &'static str,
    /// Negotiated version, or "mixed" if the switches negotiated different ones.
    pub(super) openflow: &'static str,
    pub(super) switches: u32,
    pub(super) hosts_per_switch: u32,
    /// Maximum number of outstanding packet-ins per switch.
    pub(super) window: u32,
    /// Whether switches kept their sockets full (`--window none`).
    pub(super) full_sockets: bool,
    pub(super) buffers: bool,
    pub(super) threads: usize,
    pub(super) seconds: f64,
    /// Number of answered packet-ins.
    pub(super) answered: u64,
    pub(super) rate_per_second: Rate,
    pub(super) latency_ns: Latency,
    pub(super) fairness: Fairness,
    pub(super) flow_mods_per_answer: f64,
    pub(super) packet_outs_per_answer: f64,
    pub(super) unanswered: u64,
    /// Unanswered packet-ins divided by all packet-ins of the measurement.
    pub(super) unanswered_ratio: f64,
    pub(super) repeated: u64,
    pub(super) foreign: u64,
    pub(super) flooded: u64,
    pub(super) misdirected: u64,
    pub(super) openflow_errors: u64,
    pub(super) unknown_requests: u64,
    /// Number of switches that have a table-miss flow or do not need one. Without one, a real 1.3 switch would send no
    /// packet-ins; 1.0 does not need one.
    pub(super) switches_with_table_miss: u32,
    /// The echo requests of switches with full sockets; `null` for others.
    pub(super) echoes: Option<Answers>,
    /// The packet-ins of bystanders; `null` without `--bystanders`.
    pub(super) bystanders: Option<Answers>,
    /// The times until switches were connected and set up; `null` without `--storm`.
    pub(super) storm: Option<Storm>,
    /// Number of switches that lost their connection.
    pub(super) switches_lost: u32,
    /// Distinct reasons for lost connections, up to a limit.
    pub(super) faults: Vec<String>,
    /// CPU time of the controller; `null` without `--controller-pid`.
    pub(super) controller_cpu: Option<CpuUse>,
    pub(super) generator_cpu: Option<CpuUse>,
}

/// Answered packet-ins per second: the mean over the whole run, and the minimum, median and maximum over single
/// seconds.
#[derive(Debug, Serialize)]
pub(super) struct Rate {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
}

/// Time from sending a packet-in to reading its answer, in nanoseconds.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    pub(super) min: u64,
    pub(super) mean: f64,
    pub(super) p50: u64,
    pub(super) p90: u64,
    pub(super) p99: u64,
    pub(super) p99_9: u64,
    pub(super) max: u64,
}

/// Single questions and their latencies.
#[derive(Debug, Serialize)]
pub(super) struct Answers {
    pub(super) answered: u64,
    pub(super) unanswered: u64,
    pub(super) waited_ns: Latency,
}

impl Answers {
    fn new(latencies: &Histogram<u64>, unanswered: u64) -> Self {
        Self { answered: latencies.len(), unanswered, waited_ns: Latency::new(Some(latencies)) }
    }
}

/// Distribution of the answers over the switches.
#[derive(Debug, Serialize)]
pub(super) struct Fairness {
    /// Answers per second of the slowest switch.
    pub(super) slowest_per_second: f64,
    /// Answers per second of the fastest switch.
    pub(super) fastest_per_second: f64,
    /// Rate of the slowest switch divided by the mean rate; 1 is fair.
    pub(super) slowest_to_mean: f64,
    /// Ratio of the fastest switch to the mean; 1 is fair.
    pub(super) fastest_to_mean: f64,
    /// Jain's index of the rates: 1 if all are equal, 1/n if one of n switches gets everything.
    pub(super) jain: f64,
}

/// CPU use of a process during the measurement.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CpuUse {
    pub(super) cores: f64,
    pub(super) ns_per_answer: f64,
}

impl CpuUse {
    fn new(used: Duration, elapsed: Duration, answered: u64) -> Self {
        Self {
            cores: ratio(used.as_secs_f64(), elapsed.as_secs_f64()),
            ns_per_answer: ratio(used.as_nanos() as f64, answered as f64),
        }
    }
}

/// Observations of the conductor during the measurement.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Number of answers in each second.
    pub(super) seconds: Vec<f64>,
    /// Duration of the measurement.
    pub(super) elapsed: Duration,
    /// CPU time of the controller; `None` without `--controller-pid`.
    pub(super) controller_cpu: Option<Duration>,
    /// CPU time of this process; `None` if it cannot be read.
    pub(super) generator_cpu: Option<Duration>,
    pub(super) switches_lost: u32,
    pub(super) faults: Vec<String>,
}

impl Report {
    /// Combines the results of the workers.
    pub(super) fn new(
        args: &OpenflowArgs,
        plan: &Plan,
        results: &mut [WorkerResult],
        mut observed: Observed,
    ) -> Self {
        let mut counts = Counts::default();
        let mut latencies: Option<Histogram<u64>> = None;
        let (mut mean, mut longest) = (0.0, Duration::ZERO);
        let mut shares = Vec::new();
        let (mut echoes, mut bystanders) = (Tally::new().echoes, Tally::new().bystanders);
        for result in results.iter_mut() {
            counts += result.tally.counts;
            let seconds = result.measured.as_secs_f64();
            mean += ratio(result.tally.counts.answered as f64, seconds);
            longest = longest.max(result.measured);
            // cannot fail: all histograms have the same bounds
            echoes.add(&result.tally.echoes).unwrap_or_default();
            bystanders.add(&result.tally.bystanders).unwrap_or_default();
            shares.extend(result.answered.iter().map(|answered| ratio(*answered as f64, seconds)));
            match &mut latencies {
                None => latencies = Some(result.tally.latencies().clone()),
                // cannot fail: all histograms have the same bounds
                Some(all) => all.add(result.tally.latencies()).unwrap_or_default(),
            }
        }
        let on_v10: u32 = results.iter().map(|h| h.on_v10).sum();
        let per_answer = |count: u64| ratio(count as f64, counts.answered as f64);
        observed.seconds.sort_by(f64::total_cmp);
        Self {
            controller: args.controller.clone(),
            mode: args.mode.name(),
            openflow: match on_v10 {
                0 => "1.3",
                n if n == Plan::connections(args) => "1.0",
                _ => "mixed",
            },
            switches: args.switches,
            hosts_per_switch: args.macs,
            window: plan.window,
            full_sockets: plan.is_full,
            buffers: plan.buffers,
            threads: args.threads.min(args.switches as usize),
            seconds: longest.as_secs_f64(),
            answered: counts.answered,
            rate_per_second: Rate {
                mean,
                min: observed.seconds.first().copied().unwrap_or(mean),
                median: median(&observed.seconds).unwrap_or(mean),
                max: observed.seconds.last().copied().unwrap_or(mean),
            },
            latency_ns: Latency::new(latencies.as_ref()),
            fairness: Fairness::new(&shares),
            flow_mods_per_answer: per_answer(counts.flow_mods),
            packet_outs_per_answer: per_answer(counts.packet_outs),
            unanswered: counts.unanswered,
            unanswered_ratio: ratio(counts.unanswered as f64, (counts.unanswered + counts.answered) as f64),
            repeated: counts.repeated,
            foreign: counts.foreign,
            flooded: counts.flooded,
            misdirected: counts.misdirected,
            openflow_errors: counts.errors,
            unknown_requests: counts.unknown,
            switches_with_table_miss: results
                .iter()
                .map(|h| h.table_miss)
                .sum::<u32>()
                .saturating_sub(args.bystanders),
            echoes: plan
                .is_full
                .then(|| Answers::new(&echoes, results.iter().map(|h| h.echoes_unanswered).sum())),
            bystanders: (args.bystanders > 0)
                .then(|| Answers::new(&bystanders, counts.bystanders_unanswered)),
            storm: args.storm.then(|| Storm::new(results)),
            switches_lost: observed.switches_lost,
            faults: observed.faults,
            controller_cpu: observed
                .controller_cpu
                .map(|used| CpuUse::new(used, observed.elapsed, counts.answered)),
            generator_cpu: observed
                .generator_cpu
                .map(|used| CpuUse::new(used, observed.elapsed, counts.answered)),
        }
    }

    /// Returns whether the result is valid: packet-ins were answered, and no switch lost its connection.
    pub(super) fn is_sound(&self) -> bool {
        self.answered > 0 && self.switches_lost == 0
    }

    /// Returns warnings that affect the interpretation of the result.
    pub(super) fn warnings(&self, args: &OpenflowArgs) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |condition: bool, words: String| {
            if condition {
                warnings.push(words);
            }
        };

        warn(
            self.answered == 0,
            "no packet-in was answered: does the controller forward packets between hosts that it has learned?".into(),
        );
        warn(
            args.of == OpenflowVersion::V13 && self.openflow != "1.3",
            format!("the controller fell back to OpenFlow {}", self.openflow),
        );

        warn(
            self.switches_with_table_miss < self.switches,
            format!(
                "{} switches received no table-miss flow: real OpenFlow 1.3 switches would have sent no packet-ins",
                self.switches - self.switches_with_table_miss
            ),
        );

        warn(
            self.flooded * 100 > self.answered,
            format!(
                "{} answers flooded packets whose destination was announced: the controller does not learn hosts, or forgets them",
                self.flooded
            ),
        );
        warn(self.misdirected > 0, format!("{} answers sent packets to the wrong port", self.misdirected));
        warn(self.switches_lost > 0, format!("{} switches lost their connections", self.switches_lost));
        let busy =
            !args.busy_poll && self.generator_cpu.is_some_and(|cpu| cpu.cores > 0.9 * self.threads as f64);
        warn(
            busy,
            "the load generator was busy nearly all the time and may have limited the result: try more --threads".into(),
        );

        warnings
    }
}

impl Latency {
    fn new(latencies: Option<&Histogram<u64>>) -> Self {
        let quantile = |q| latencies.map_or(0, |all| all.value_at_quantile(q));
        Self {
            min: latencies.map_or(0, Histogram::min),
            mean: latencies.map_or(0.0, Histogram::mean),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max: latencies.map_or(0, Histogram::max),
        }
    }
}

impl Fairness {
    fn new(shares: &[f64]) -> Self {
        let mean = ratio(shares.iter().sum(), shares.len() as f64);
        let slowest = shares.iter().copied().min_by(f64::total_cmp).unwrap_or_default();
        let fastest = shares.iter().copied().max_by(f64::total_cmp).unwrap_or_default();
        Self {
            slowest_per_second: slowest,
            fastest_per_second: fastest,
            slowest_to_mean: ratio(slowest, mean),
            fastest_to_mean: ratio(fastest, mean),
            jain: ratio(
                shares.iter().sum::<f64>().powi(2),
                shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>(),
            ),
        }
    }
}

/// Returns `part / whole`, or 0 if `whole` is 0, because JSON has no NaN.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        Some(*upper)
    } else {
        Some((sorted.get(middle.checked_sub(1)?)? + upper) / 2.0)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, latency, fairness) = (&self.rate_per_second, &self.latency_ns, &self.fairness);
        writeln!(
            f,
            "OpenFlow {}, {} switches with {} hosts each, {} ({}{} outstanding per switch{}), {:.1} s against {}",
            self.openflow,
            self.switches,
            self.hosts_per_switch,
            self.mode,
            if self.full_sockets { "full sockets, up to " } else { "" },
            self.window,
            if self.buffers { ", buffered" } else { "" },
            self.seconds,
            self.controller
        )?;

        writeln!(
            f,
            "  answered     {} packet-ins/s; single seconds: min {}, median {}, max {}; {} in all",
            grouped(rate.mean),
            grouped(rate.min),
            grouped(rate.median),
            grouped(rate.max),
            grouped(self.answered as f64)
        )?;

        writeln!(
            f,
            "  latency      p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
            latency_text(latency.p50),
            latency_text(latency.p90),
            latency_text(latency.p99),
            latency_text(latency.p99_9),
            latency_text(latency.max)
        )?;

        writeln!(
            f,
            "  switches     slowest {}/s ({:.2} of the mean), fastest {}/s ({:.2}); Jain's index {:.3}; {} lost",
            grouped(fairness.slowest_per_second),
            fairness.slowest_to_mean,
            grouped(fairness.fastest_per_second),
            fairness.fastest_to_mean,
            fairness.jain,
            self.switches_lost
        )?;

        writeln!(
            f,
            "  per answer   {:.2} flow-mods, {:.2} packet-outs",
            self.flow_mods_per_answer, self.packet_outs_per_answer
        )?;

        writeln!(
            f,
            "  otherwise    unanswered {} ({:.1} %), repeated {}, foreign {}, flooded {}, misdirected {}, errors {}, unknown requests {}",
            self.unanswered,
            self.unanswered_ratio * 100.0,
            self.repeated,
            self.foreign,
            self.flooded,
            self.misdirected,
            self.openflow_errors,
            self.unknown_requests
        )?;

        for (name, answers) in [("echoes", &self.echoes), ("bystanders", &self.bystanders)] {
            if let Some(Answers { answered, unanswered, waited_ns }) = answers {
                let [p50, p99, max] = [waited_ns.p50, waited_ns.p99, waited_ns.max].map(latency_text);
                writeln!(
                    f,
                    "  {name:<12} p50 {p50}, p99 {p99}, max {max}; {answered} answered, {unanswered} unanswered"
                )?;
            }
        }

        if let Some(storm) = &self.storm {
            storm.fmt(f)?;
        }

        for (name, cpu) in [("controller", self.controller_cpu), ("generator", self.generator_cpu)] {
            if let Some(cpu) = cpu {
                writeln!(f, "  {name:<12} {:.2} cores, {:.0} ns per answer", cpu.cores, cpu.ns_per_answer)?;
            }
        }

        self.faults.iter().try_for_each(|fault| writeln!(f, "  lost         {fault}"))
    }
}

/// Formats a number with groups of three digits, such as `1 234 567`.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn latency_text(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0.0, "0"), (999.4, "999"), (1000.0, "1 000"), (1_234_567.0, "1 234 567")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn the_median_of_even_and_odd_and_no_samples() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0]), Some(1.0));
        assert_eq!(median(&[1.0, 3.0]), Some(2.0));
        assert_eq!(median(&[1.0, 3.0, 9.0]), Some(3.0));
    }

    #[test]
    fn fairness_is_relative_to_the_mean_and_survives_silence() {
        let fairness = Fairness::new(&[50.0, 100.0, 150.0]);
        assert_eq!((fairness.slowest_to_mean, fairness.fastest_to_mean), (0.5, 1.5));
        assert_eq!(Fairness::new(&[0.0, 0.0]).slowest_to_mean, 0.0);
        assert_eq!(Fairness::new(&[0.0, 0.0, 4.0, 0.0]).jain, 0.25);
        assert_eq!(Fairness::new(&[3.0; 7]).jain, 1.0);
    }
}
