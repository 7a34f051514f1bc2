//! A well-behaved switch next to hostile ones: it sends a packet, waits for the answer, and records the latency.

use crate::switch::Switch;
use crate::wire::{self, V1_3};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Minimum number of packets for meaningful percentiles.
const PACKETS_MIN: usize = 100;

/// The bystander, which runs in its own thread.
pub(crate) struct Bystander {
    /// Tells the thread to stop.
    over: Arc<AtomicBool>,
    /// Number of answered packets.
    packets: Arc<AtomicUsize>,
    /// Number of packets that were answered before the attack.
    before: usize,
    /// Returns the latency of each packet.
    thread: JoinHandle<Vec<Duration>>,
}

/// Latencies of the bystander.
#[derive(Debug)]
pub(crate) struct Served {
    /// 99th percentile during the attack.
    pub(crate) p99: Duration,
    /// 99th percentile before the attack; `None` without a baseline.
    pub(crate) p99_before: Option<Duration>,
}

/// Returns the percentile `part` (0 to 1) of the latencies.
fn percentile(took: &mut [Duration], part: f64) -> Duration {
    took.sort_unstable();
    took[((took.len() - 1) as f64 * part) as usize]
}

impl Bystander {
    pub(crate) fn start(controller: SocketAddr) -> Bystander {
        let over = Arc::new(AtomicBool::new(false));
        let mut switch = Switch::connect_ready(controller, V1_3, 0xb57a_4de2);
        let (until, packets) = (over.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = packets.clone();
        let thread = std::thread::spawn(move || {
            let mut took = Vec::new();
            while !until.load(Ordering::Relaxed) || took.len() < PACKETS_MIN {
                let frame = wire::frame([2, 0xbb, 0, 0, 0, 1], took.len() as u64);
                let began = Instant::now();
                assert!(switch.send(&wire::packet_in(V1_3, 1, &frame)), "the bystander was let go");
                let answer =
                    switch.until(|m| m[1] == wire::PACKET_OUT && wire::packet_out_data(m) == Some(&frame));
                assert!(answer.is_some(), "packet {} of the bystander was not answered", took.len());
                took.push(began.elapsed());
                counted.store(took.len(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2))
            }

            took
        });
        Bystander { over, packets, before: 0, thread }
    }

    /// Waits for this number of packets before the attack, as the baseline.
    pub(crate) fn baseline(&mut self, packets: usize) {
        while self.packets.load(Ordering::Relaxed) < packets {
            std::thread::sleep(Duration::from_millis(2))
        }
        self.before = packets
    }

    /// Stops the bystander. Checks that every packet was answered, and within half a second at the 99th percentile.
    pub(crate) fn end(self, what: &str) -> Served {
        self.over.store(true, Ordering::Relaxed);
        let mut took = self.thread.join().expect("the bystander was served");
        let (before, took) = took.split_at_mut(self.before);
        let p99_before = (!before.is_empty()).then(|| percentile(before, 0.99));
        let mut at = |part: f64| percentile(took, part);
        let (median, p99, slowest) = (at(0.5), at(0.99), at(1.0));
        println!(
            "{what}: bystander's {} packets: median {median:?}, p99 {p99:?}, slowest {slowest:?}; p99 before {p99_before:?}",
            took.len()
        );
        assert!(p99 < Duration::from_millis(500), "{what}: {p99:?}");
        Served { p99, p99_before }
    }
}
