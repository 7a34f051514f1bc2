//! `/metrics`: serves the status counters in the Prometheus text format (0.0.4).
//!
//! The text is written by hand, because `prometheus-client` supports only OpenMetrics. In OpenMetrics, the gauge
//! `beehive_dead_letters` and the counter `beehive_dead_letters_total` would have the same name.

use crate::api::Failure;
use crate::http::Served;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use beehive_raft::LogStatus;
use std::fmt::Write;

/// The text of the response.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Writes a metric's `# HELP` and `# TYPE` lines. Its samples must follow directly.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // writing to a string never fails
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Writes one sample.
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// Writes a metric with a single sample and no labels.
    fn single(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.metric(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// Returns all metrics in the text format of Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4"), Failure)
)]
pub(super) async fn metrics(State(served): State<Served>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page(&served).0)
}

fn page(Served { hive, directory, data, .. }: &Served) -> Page {
    let mut page = Page::default();
    let status = hive.status();
    page.single("beehive_uptime_seconds", "gauge", "Seconds since the hive started.", status.uptime_seconds);
    page.single(
        "beehive_switches",
        "gauge",
        "Connected switches whose handshake is complete.",
        directory.nodes() as u64,
    );

    page.single(
        "beehive_connections",
        "gauge",
        "Open switch connections, whether or not the handshake is complete.",
        (directory.len() + directory.waiting()) as u64,
    );
    page.single(
        "beehive_connections_waiting",
        "gauge",
        "Open switch connections whose handshake has not begun, because many connect at once.",
        directory.waiting() as u64,
    );

    let (ended, refused) = directory.ended();
    page.single("beehive_connections_ended_total", "counter", "Closed switch connections.", ended);
    page.single(
        "beehive_duplicates_refused_total",
        "counter",
        "Connections refused because the switch was already connected.",
        refused,
    );

    page.single(
        "beehive_addresses_refused_total",
        "counter",
        "Connections refused because their IP address is not allowed.",
        directory.addresses_refused(),
    );
    for (name, meaning, value) in directory.totals().named() {
        page.single(&format!("beehive_switch_{name}_total"), "counter", meaning, value);
    }
    let capacity = directory.capacity();
    page.single(
        "beehive_switches_busy",
        "gauge",
        "Switches that have recently had more packets than the hive could handle at once.",
        capacity.busy().into(),
    );
    page.single(
        "beehive_packets_waiting_bytes",
        "gauge",
        "Total size of the packets that wait in the drivers of switches. Packets in sockets do not count.",
        capacity.waiting_bytes() as u64,
    );
    page.single(
        "beehive_packets_waiting_bytes_max",
        "gauge",
        "Limit of beehive_packets_waiting_bytes, above which no further packet waits.",
        beehive_nom::limits::WAITING_BYTES_MAX as u64,
    );
    page.single("beehive_io_bees", "gauge", "Registered IO bees.", status.io_bees as u64);
    page.single("beehive_timers", "gauge", "Pending timers.", status.timers as u64);

    page.single(
        "beehive_dead_letters_total",
        "counter",
        "Dead letters since the start: messages that could not be handled.",
        status.dead_letters,
    );

    page.single(
        "beehive_dead_letters",
        "gauge",
        "Dead letters currently stored.",
        status.dead_letters_kept as u64,
    );

    page.single(
        "beehive_stuck",
        "gauge",
        "Messages whose handlers have been running for too long.",
        status.stuck.len() as u64,
    );
    page.single(
        "beehive_cycles_total",
        "counter",
        "Messages whose handlers failed because the hop limit was reached.",
        status.cycles,
    );

    if let Some(data) = data {
        log(&mut page, &data.status())
    }

    page.metric("beehive_bees", "gauge", "Bees by app.");
    for app in &status.apps {
        page.sample("beehive_bees", &[("app", app.name)], app.bees as u64);
    }
    page.metric("beehive_bees_merged_total", "counter", "Bees that merged into another bee, by app.");
    for app in &status.apps {
        page.sample("beehive_bees_merged_total", &[("app", app.name)], app.bees_merged);
    }
    type Count = fn(&beehive_core::HandlerStatus) -> u64;

    let counts: [(&str, &str, Count); 5] = [
        ("beehive_messages_total", "Messages handled, including failed ones, by handler.", |h| h.messages),
        ("beehive_messages_dropped_total", "Messages dropped by the maps, by handler.", |h| h.dropped),
        ("beehive_errors_total", "Messages answered with an error, by handler.", |h| h.errors),
        ("beehive_panics_total", "Messages that panicked or broke a rule, by handler.", |h| h.panics),
        ("beehive_stuck_total", "Messages that took too long, by handler.", |h| h.stuck),
    ];

    for (name, help, count) in counts {
        page.metric(name, "counter", help);
        for app in &status.apps {
            for handler in &app.handlers {
                let labels = [("app", app.name), ("handler", handler.name), ("message", handler.message)];
                page.sample(name, &labels, count(handler));
            }
        }
    }

    page.metric("beehive_emits_total", "counter", "Messages emitted, by handler and message type.");
    for emit in &status.emits {
        let labels =
            [("app", emit.app), ("handler", emit.handler), ("upon", emit.upon), ("message", emit.message)];
        page.sample("beehive_emits_total", &labels, emit.count);
    }

    page
}

/// Writes the metrics of the log on disk.
fn log(page: &mut Page, status: &LogStatus) {
    let counters = [
        ("beehive_log_entries_total", "Log entries on disk since the start.", status.entries),
        (
            "beehive_log_syncs_total",
            "Syncs of the log; entries that wait at the same time share one.",
            status.syncs,
        ),
        ("beehive_log_bytes_total", "Bytes appended to the log since the start.", status.bytes),
        ("beehive_checkpoints_total", "Checkpoints since the start.", status.checkpoints),
    ];
    for (name, help, value) in counters {
        page.single(name, "counter", help, value)
    }
    let gauges = [
        (
            "beehive_log_segments",
            "Finished log segments behind the last checkpoint.",
            status.finished_segments,
        ),
        (
            "beehive_log_held_up",
            "1 while changes of state wait because the disk is full.",
            u64::from(status.held_up.is_some()),
        ),
        (
            "beehive_log_failed",
            "1 if the disk has failed, and changes of state are refused.",
            u64::from(status.failed.is_some()),
        ),
    ];
    for (name, help, value) in gauges {
        page.single(name, "gauge", help, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_core::Hive;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// Scrapers expect the `# HELP` and `# TYPE` lines once per metric, directly before its samples, and
    /// counter names that end in `_total`.
    #[test]
    fn the_page_is_well_formed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let text = runtime.block_on(async {
            let hive = Hive::builder().app::<beehive_nom::apps::Hub>().start().expect("starts");
            let mut page = page(&Served { hive, directory: Arc::default(), reloader: None, data: None });
            log(&mut page, &LogStatus::default());
            page.0
        });

        let (mut names, mut name) = (BTreeSet::new(), "");
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                name = help.split(' ').next().unwrap_or_default();
                assert!(help.len() > name.len() + 1 && names.insert(name), "{line}");
                let kind =
                    lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ") as &str));
                assert_eq!(kind, Some(if name.ends_with("_total") { "counter" } else { "gauge" }), "{name}");
            } else {
                let (sample, value) = line.rsplit_once(' ').expect("a value");
                assert_eq!(sample.split('{').next(), Some(name), "{line}");
                assert!(value.parse::<u64>().is_ok(), "{line}");
            }
        }

        assert!(names.len() > 20, "{names:?}");
    }

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.metric("m", "counter", "two\nlines \\");
        page.sample("m", &[("a", "q\"\\\n"), ("b", "")], 7);
        page.single("n", "gauge", "N.", 0);
        let expected = "# HELP m two\\nlines \\\\\n# TYPE m counter\nm{a=\"q\\\"\\\\\\n\",b=\"\"} 7\n\
            # HELP n N.\n# TYPE n gauge\nn 0\n";
        assert_eq!(page.0, expected);
    }
}
