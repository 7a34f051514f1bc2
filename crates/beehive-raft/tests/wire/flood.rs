//! Load in one place does not hold up another one, and takes bounded memory.

use crate::hives::*;
use beehive_raft::cluster::transport::{Channel, Transport};
use beehive_raft::limits::wire as limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn percentile(times: &mut [Duration], part: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * part / 100]
}

#[test]
fn pings_pass_a_flood_of_long_calls() {
    let _turn = alone();
    runtime().block_on(async {
        let hives = Arc::new(Hive::cluster("pings", 2).await);
        let is_over = Arc::new(AtomicBool::new(false));
        let carried = Arc::new(AtomicU64::new(0));
        let mut flood = Vec::new();
        for _ in 0..16 {
            let (hives, is_over, carried) = (hives.clone(), is_over.clone(), carried.clone());
            flood.push(tokio::spawn(async move {
                let mut times = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let called = Instant::now();
                    let answer = hives[0].call(&hives[1], Channel::Raft, vec![ECHO; 1 << 20]).await;
                    assert!(answer.is_ok());
                    carried.fetch_add(1, Ordering::Relaxed);
                    times.push(called.elapsed())
                }
                times
            }))
        }
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < Duration::from_millis(1_500) {
            let sent = Instant::now();
            let pong = hives[0].call(&hives[1], Channel::Detector, vec![ECHO]).await;
            assert!(pong.is_ok());
            times.push(sent.elapsed());
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        is_over.store(true, Ordering::Relaxed);
        let mut calls = Vec::new();
        for caller in flood {
            calls.extend(caller.await.unwrap())
        }
        let call = percentile(&mut calls, 50);
        let (p50, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
        let carried = carried.load(Ordering::Relaxed);
        println!(
            "pings beside {carried} calls of 1 MiB, which take {call:?}: p50 {p50:?}, p99 {p99:?}, of {}",
            times.len()
        );
        assert!(carried > 20 && times.len() > 40, "{carried} calls, {} pings", times.len());
        // behind the calls that wait, a ping would take about half as long as a call
        assert!(p50 < call / 6, "p50 {p50:?} beside calls that take {call:?}");
        assert!(p99 < Duration::from_millis(100), "p99 {p99:?}")
    })
}

#[test]
fn a_hive_that_does_not_read_holds_up_nobody_and_takes_bounded_memory() {
    let _turn = alone();
    runtime().block_on(async {
        let hives = Hive::cluster("slow", 2).await;
        hives[1].echo.forgets.store(true, Ordering::SeqCst);
        // accepts this hive, and reads nothing of it
        let stalled = stalled(&hives[0]).await;
        let memory = Memory::measure();
        let (mut sent, packet) = (0, vec![0; 64 << 10]);
        for _ in 0..2_000 {
            hives[0].wire.send(stalled.hive, Channel::Links, packet.clone());
            sent += packet.len();
            if sent % (1 << 20) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await
            }
        }
        let most = memory.most();
        println!("{} MiB sent to a hive that does not read: {} MiB in use", sent >> 20, most >> 20);
        assert!(most < limits::WAITING_BYTES_MAX + (8 << 20), "{} MiB", most >> 20);
        let status = hives[0].peer(stalled.hive).unwrap();
        assert!(status.packets_dropped > 1_500, "{status:?}");

        // another hive is not held up
        let begun = Instant::now();
        for _ in 0..20 {
            assert_eq!(hives[0].call(&hives[1], Channel::Links, vec![ECHO]).await, Ok(vec![ECHO]))
        }
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        // nor another channel to the same one: what is dropped there has a limit of its own
        let before = hives[0].peer(stalled.hive).unwrap().packets_dropped;
        hives[0].wire.send(stalled.hive, Channel::Detector, vec![0; 100]);
        assert_eq!(hives[0].peer(stalled.hive).unwrap().packets_dropped, before)
    })
}

/// A hive whose receiver blocks its thread on the first packet of the links.
struct Stalled {
    hive: beehive_core::HiveId,
    _hive: Hive,
    runtime: Option<tokio::runtime::Runtime>,
    _blocked: std::sync::mpsc::Sender<()>,
}

impl Drop for Stalled {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background()
        }
    }
}

struct Blocks(parking_lot::Mutex<std::sync::mpsc::Receiver<()>>);

impl beehive_raft::cluster::transport::Receiver for Blocks {
    fn packet(&self, _: beehive_core::HiveId, channel: Channel, _: Vec<u8>) {
        if channel == Channel::Links {
            let _ = self.0.lock().recv();
        }
    }
    fn call(
        &self,
        _: beehive_core::HiveId,
        _: Channel,
        _: Vec<u8>,
    ) -> beehive_core::seams::BoxFuture<Option<Vec<u8>>> {
        Box::pin(std::future::ready(None))
    }
}

async fn stalled(by: &Hive) -> Stalled {
    let runtime = runtime();
    let hive = runtime.spawn(Hive::start(options("slow", 3))).await.unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    hive.wire.attach(Arc::new(Blocks(parking_lot::Mutex::new(receiver))));
    by.knows(&hive);
    by.connected(hive.id).await;
    Stalled { hive: hive.id, _hive: hive, runtime: Some(runtime), _blocked: sender }
}
