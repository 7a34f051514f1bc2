//! Checks that the path of one packet through the apps is one trace, which a tracing subscriber can
//! distinguish from all other traces.
#![allow(missing_docs)]

extern crate beehive_core as beehive;

// the simulated network of the other tests
#[allow(dead_code)]
#[path = "simulated/clock.rs"]
mod clock;
#[allow(dead_code)]
#[path = "simulated/network/harness.rs"]
mod harness;

use beehive_nom::apps::{Firewall, LearningSwitch, LoopGuard};
use harness::{Host, Network, host};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A recorded tracing event: its message and its fields.
#[derive(Clone, Debug, Default)]
struct Said {
    what: String,
    fields: BTreeMap<&'static str, String>,
}

impl Said {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_string());
    }
}

static SAID: Mutex<Vec<Said>> = Mutex::new(Vec::new());

struct Watcher(AtomicU64);

impl Subscriber for Watcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "beehive::messages"
    }
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut said = Said { what: span.metadata().name().to_string(), ..Said::default() };
        span.record(&mut said);
        SAID.lock().unwrap().push(said);
        Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
    fn event(&self, event: &Event<'_>) {
        let mut said = Said::default();
        event.record(&mut said);
        said.what = said.field("message").to_string();
        SAID.lock().unwrap().push(said)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

const A: Host = host(1, 1, 1);
const B: Host = host(1, 2, 2);

const SETTINGS: &str = "[[firewall.rules]]\naction = \"allow\"\nfrom = \"10.0.0.0/8\"\nto = \"10.0.0.0/8\"\n";

/// Returns the recorded events of each causal chain.
fn traces() -> BTreeMap<String, Vec<Said>> {
    let mut traces: BTreeMap<String, Vec<Said>> = BTreeMap::new();
    for said in SAID.lock().unwrap().drain(..) {
        traces.entry(said.field("chain").to_string()).or_default().push(said)
    }
    traces
}

#[tokio::test]
async fn the_way_of_a_packet_through_five_apps_is_one_trace() {
    tracing::subscriber::set_global_default(Watcher(AtomicU64::new(0))).expect("there is no other");
    let apps =
        |hive: beehive_core::Builder| hive.app::<LoopGuard>().app::<Firewall>().app::<LearningSwitch>();
    let network = Network::new(apps, SETTINGS, 1, &[]).await;
    network.pass(30).await;

    for (one, other) in [(A, B), (B, A)] {
        network.send(one, &one.arp(other)).await;
    }

    drop(traces());
    // send many packets at once so that some arrive in the same batch
    for port in 0..20 {
        network.switch(1).receive(beehive_nom::object::PortNo(A.port), A.udp(5000 + port, B, 80))
    }

    network.settled().await;
    let traces = traces();
    let is_packet = |said: &&Said| said.what == "emitted" && said.field("kind").ends_with("::PacketIn");
    let mut packets = 0;

    for (chain, trace) in &traces {
        let came_in = trace.iter().filter(is_packet).count();
        if came_in == 0 {
            continue;
        }

        assert_eq!((came_in, chain.len()), (1, 16), "a trace for each packet: {trace:#?}");
        packets += 1;
        let apps: BTreeSet<&str> = trace.iter().map(|said| said.field("app")).collect();
        let all = ["loop-guard", "firewall", "learning-switch", "node-controller"];
        assert!(all.iter().all(|app| apps.contains(app)), "{apps:?} of {trace:#?}");

        let position = |what: &str, field: &str, end: &str| {
            trace.iter().position(|said| said.what == what && said.field(field).ends_with(end))
        };
        let way = [
            position("emitted", "kind", "::PacketIn"),
            position("handle", "app", "loop-guard"),
            position("handle", "app", "firewall"),
            position("handle", "app", "learning-switch"),
            position("answered", "kind", "::PacketIn"),
        ];

        assert!(way.iter().all(Option::is_some) && way.is_sorted(), "{way:?} of {trace:#?}");
        let node = position("handle", "app", "node-controller");
        let driver = position("delivered", "kind", "");
        assert!(node.is_some() && node < driver, "then the flow goes to the driver: {trace:#?}");
        let hops = |said: &&Said| said.what == "handle" && said.field("app") == "node-controller";

        assert!(trace.iter().filter(hops).all(|said| said.field("hops") != "0"));
    }

    assert_eq!(packets, 20, "{:#?}", traces.keys());
}
