//! A switch that behaves, while others do not: it sends a packet, waits for its answer, and notes how long that took.

use crate::message::{self, V1_3};
use crate::switch::Switch;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Packets that it sends at least, so that there is something to be measured.
const PACKETS_MIN: usize = 100;

/// The bystander, on a thread of its own.
pub(crate) struct Bystander {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

/// How it was served.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) packets: usize,
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
    pub(crate) slowest: Duration,
}

impl Bystander {
    pub(crate) fn start(controller: SocketAddr) -> Bystander {
        let over = Arc::new(AtomicBool::new(false));
        let mut switch = Switch::joined(controller, V1_3, 0xb57a_4de2);
        let until = over.clone();
        let thread = std::thread::spawn(move || {
            let mut took = Vec::new();
            while !until.load(Ordering::Relaxed) || took.len() < PACKETS_MIN {
                let frame = message::frame([2, 0xbb, 0, 0, 0, 1], took.len() as u64);
                let began = Instant::now();
                assert!(switch.send(&message::packet_in(V1_3, 1, &frame)), "the bystander was let go");
                let answer = switch
                    .until(|m| m[1] == message::PACKET_OUT && message::packet_out_data(m) == Some(&frame));
                assert!(answer.is_some(), "packet {} of the bystander was not answered", took.len());
                took.push(began.elapsed());
                std::thread::sleep(Duration::from_millis(2))
            }
            took
        });
        Bystander { over, thread }
    }

    /// Ends it. Every packet was answered; not too late, either.
    pub(crate) fn end(self, what: &str) -> Served {
        self.over.store(true, Ordering::Relaxed);
        let mut took = self.thread.join().expect("the bystander was served");
        took.sort_unstable();
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
        let served = Served { packets: took.len(), median: at(0.5), p99: at(0.99), slowest: at(1.0) };
        let Served { packets, median, p99, slowest } = served;
        println!(
            "{what}: bystander's {packets} packets: median {median:?}, p99 {p99:?}, slowest {slowest:?}"
        );
        assert!(p99 < Duration::from_millis(500), "{what}: {served:?}");
        served
    }
}
