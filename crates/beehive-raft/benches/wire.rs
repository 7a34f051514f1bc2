//! The wire, without and with TLS, beside a raw TCP loop on the loopback interface: frames of 128 messages of 80 bytes, and longer
//! ones, which are answered.
//!
//! `cargo bench -p beehive-raft --features cluster --bench wire [-- SECONDS]`. Each row is the median of five rounds, in turns
//! with the loop.
#![allow(missing_docs)]

#[path = "../tests/common/certificates.rs"]
mod certificates;

use self::certificates::Authority;
use beehive_core::HiveId;
use beehive_core::seams::BoxFuture;
use beehive_raft::cluster::transport::{Channel, Receiver, Transport};
use beehive_raft::cluster::wire::{Wire, WireOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// 128 messages of 80 bytes.
const FRAME_BYTES: usize = 128 * 80;

/// Answers each call with eight bytes, as a commit is.
struct Answers;

impl Receiver for Answers {
    fn packet(&self, _: HiveId, _: Channel, _: Vec<u8>) {}
    fn call(&self, _: HiveId, _: Channel, request: Vec<u8>) -> BoxFuture<Option<Vec<u8>>> {
        Box::pin(std::future::ready(Some(request[..8].to_vec())))
    }
}

async fn hive(id: u32, authority: Option<&Authority>) -> Arc<Wire> {
    let mut options = WireOptions::new("127.0.0.1:0".parse().expect("an address"), "bench", HiveId(id));
    options.tls = authority.map(|authority| authority.files(id));
    let wire = Wire::bind(options).await.expect("binds");
    wire.attach(Arc::new(Answers));
    wire
}

/// Frames a second through the wire.
async fn wire(time: Duration, in_flight: usize, length: usize, authority: Option<&Authority>) -> f64 {
    let (first, second) = (hive(1, authority).await, hive(2, authority).await);
    first.set_peer(HiveId(2), second.address().to_string());
    while first.call(HiveId(2), Channel::Raft, vec![0; 8]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await
    }
    let frames = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let callers: Vec<_> = (0..in_flight)
        .map(|_| {
            let (first, frames) = (first.clone(), frames.clone());
            tokio::spawn(async move {
                while begun.elapsed() < time {
                    let answer = first.call(HiveId(2), Channel::Raft, vec![7; length]).await;
                    answer.expect("answers");
                    frames.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("ends")
    }
    let rate = frames.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64();
    first.stop().await;
    second.stop().await;
    rate
}

/// Frames a second through a socket: the other side reads a frame and writes eight bytes.
async fn plain(time: Duration, in_flight: usize, length: usize) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("accepts");
        socket.set_nodelay(true).expect("sets");
        let mut frame = vec![0; length];
        while socket.read_exact(&mut frame).await.is_ok() {
            if socket.write_all(&frame[..8]).await.is_err() {
                return;
            }
        }
    });
    let socket = TcpStream::connect(address).await.expect("connects");
    socket.set_nodelay(true).expect("sets");
    let (mut from, mut to) = socket.into_split();
    let slots = Arc::new(tokio::sync::Semaphore::new(in_flight));
    let free = slots.clone();
    let begun = Instant::now();
    let reader = tokio::spawn(async move {
        let (mut answer, mut frames) = ([0; 8], 0u64);
        while from.read_exact(&mut answer).await.is_ok() {
            frames += 1;
            free.add_permits(1)
        }
        frames
    });
    while begun.elapsed() < time {
        slots.acquire().await.expect("open").forget();
        to.write_all(&vec![7; length]).await.expect("writes")
    }
    to.shutdown().await.expect("shuts down");
    server.await.expect("ends");
    reader.await.expect("ends") as f64 / begun.elapsed().as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let seconds = arguments.first().and_then(|seconds| seconds.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let authority = Authority::new();
    println!(
        "{:<26} {:>9} {:>9} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9}",
        "frames a second", "TCP", "wire", "TLS", "TLS/", "TLS", "TCP", "wire", "TLS"
    );
    println!(
        "{:<26} {:>9} {:>9} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9}",
        "", "", "", "", "wire", "MB/s", "µs", "µs", "µs"
    );
    for (name, in_flight, length) in [
        ("10 KiB, 16 in flight", 16, FRAME_BYTES),
        ("10 KiB, one at a time", 1, FRAME_BYTES),
        ("8 bytes, one at a time", 1, 8),
        ("1 MiB, 4 in flight", 4, 1 << 20),
    ] {
        let mut rates = [(); 3].map(|()| Vec::new());
        for _ in 0..5 {
            rates[0].push(runtime.block_on(plain(time, in_flight, length)));
            rates[1].push(runtime.block_on(wire(time, in_flight, length, None)));
            rates[2].push(runtime.block_on(wire(time, in_flight, length, Some(&authority))))
        }
        let [plain, wire, tls] = rates.map(median);
        println!(
            "{name:<26} {plain:>9.0} {wire:>9.0} {tls:>9.0} {:>7.2} {:>7.0} {:>9.1} {:>9.1} {:>9.1}",
            tls / wire,
            tls * length as f64 / 1e6,
            1e6 / plain,
            1e6 / wire,
            1e6 / tls
        )
    }
}
