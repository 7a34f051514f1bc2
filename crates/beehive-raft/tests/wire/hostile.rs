//! Bytes that no hive sends: random ones, and frames that are nearly right, from strangers and from a hive that has the
//! token. Nothing panics, the receiver sees only what is whole, and the memory is bounded.
//!
//! A million of each with `BEEHIVE_LONG=1`.

use crate::hives::*;
use beehive_core::HiveId;
use beehive_core::seams::BoxFuture;
use beehive_raft::cluster::transport::{Channel, Receiver, Transport};
use beehive_raft::cluster::wire::testing::{RawHive, frame};
use beehive_raft::cluster::wire::{Wire, WireOptions};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const WORKERS: u64 = 8;

/// The memory that all of it may take.
const MEMORY_MAX: usize = 48 << 20;

const TOKEN: &str = "sixteen random bytes, and more";

fn count() -> usize {
    if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 20_000 }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// A receiver that checks each message: it says its channel and its length, and ends with its sum.
#[derive(Default)]
struct Checks {
    seen: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(7, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(*byte))
}

fn valid(channel: Channel, length: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![channel as u8];
    bytes.extend((length as u32).to_le_bytes());
    bytes.extend(random.bytes(length));
    bytes.push(sum(&bytes));
    bytes
}

impl Checks {
    fn check(&self, from: HiveId, channel: Channel, bytes: &[u8]) {
        self.seen.fetch_add(1, Ordering::Relaxed);
        let is_valid = from.0 >= 9
            && bytes.len() >= 6
            && bytes[0] == channel as u8
            && bytes[1..5] == (bytes.len() as u32 - 6).to_le_bytes()
            && bytes[bytes.len() - 1] == sum(&bytes[..bytes.len() - 1]);
        if !is_valid {
            self.wrong.lock().push(format!("{from}, {channel:?}, {} bytes", bytes.len()))
        }
    }
}

impl Receiver for Checks {
    fn packet(&self, from: HiveId, channel: Channel, packet: Vec<u8>) {
        self.check(from, channel, &packet)
    }
    fn call(&self, from: HiveId, channel: Channel, request: Vec<u8>) -> BoxFuture<Option<Vec<u8>>> {
        self.check(from, channel, &request);
        Box::pin(std::future::ready(Some(request)))
    }
}

fn with_token(cluster: &str, hive: u32) -> WireOptions {
    WireOptions { token: Some(TOKEN.into()), ..options(cluster, hive) }
}

/// Runs workers against a wire, and checks what it does.
async fn attack<F>(cluster: &str, work: impl Fn(SocketAddr, Random, usize) -> F) -> usize
where
    F: Future<Output = ()> + Send + 'static,
{
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let log_before = logged().len();
    let wire = Wire::bind(with_token(cluster, 1)).await.expect("binds");
    let checks = Arc::new(Checks::default());
    wire.attach(checks.clone());
    let before = tasks();

    let memory = Memory::measure();
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| tokio::spawn(work(wire.address(), Random(worker), count() / WORKERS as usize)))
        .collect();
    for worker in workers {
        worker.await.expect("the worker ends")
    }
    let most = memory.most();
    println!(
        "{cluster}: {} messages were valid, {} MiB in use",
        checks.seen.load(Ordering::Relaxed),
        most >> 20
    );
    assert!(most < MEMORY_MAX, "{} MiB", most >> 20);
    assert_eq!(*checks.wrong.lock(), [""; 0], "the receiver saw what was not sent");

    // all connections end, and another hive can connect
    until("no task is left", || tasks() <= before).await;
    assert_eq!(wire.status().strangers, 0);
    let hive = Hive::start(with_token(cluster, 1_000)).await;
    hive.wire.set_peer(HiveId(1), wire.address().to_string());
    hive.connected(HiveId(1)).await;
    let request = valid(Channel::Raft, 10, &mut Random(1));
    assert_eq!(hive.wire.call(HiveId(1), Channel::Raft, request.clone()).await, Ok(request));
    let log = logged();
    assert!(!log[log_before..].contains("panicked"), "{}", &log[log_before..]);
    hive.wire.stop().await;
    wire.stop().await;
    checks.seen.load(Ordering::Relaxed)
}

/// Random bytes, half of them after a valid beginning of HTTP/2.
async fn random_bytes(to: SocketAddr, mut random: Random, count: usize) {
    for _ in 0..count {
        let mut bytes = Vec::new();
        if random.below(2) == 0 {
            bytes.extend(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
            for _ in 0..random.below(4) {
                let length = random.below(40);
                bytes.extend([0, 0, length as u8, random.below(11) as u8, random.next() as u8, 0, 0, 0]);
                bytes.push(random.below(8) as u8);
                bytes.extend(random.bytes(length))
            }
        }
        let length = random.below(200);
        bytes.extend(random.bytes(length));
        let Ok(mut socket) = TcpStream::connect(to).await else { continue };
        if socket.write_all(&bytes).await.is_ok() && socket.shutdown().await.is_ok() {
            let mut rest = Vec::new();
            // it may also be closed by the limit of strangers
            let closed = timeout(Duration::from_secs(9), socket.read_to_end(&mut rest)).await;
            assert!(closed.is_ok(), "the connection stays open");
        }
    }
}

#[test]
fn random_bytes_do_nothing() {
    let _turn = alone();
    let seen = runtime().block_on(attack("random", random_bytes));
    assert_eq!(seen, 1)
}

/// Changes a frame a little: its header, its length or its place.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    match random.below(8) {
        0 => bytes.truncate(random.below(bytes.len() + 1)),
        1 => {
            let length = random.below(20);
            bytes.extend(random.bytes(length))
        }
        2 => {
            let length = random.below(60);
            *bytes = random.bytes(length)
        }
        3 => bytes[0] = random.below(9) as u8,
        4 => bytes[9 + random.below(4)] ^= 1 << random.below(8),
        5 => bytes[9..13].fill(0xff),
        6 => *bytes = frame(random.below(9) as u8, random.next(), 1 << 20, &bytes[13..]),
        _ => bytes[1 + random.below(8)] = random.next() as u8,
    }
}

/// The handshake, with messages that are nearly right, and lanes before it.
async fn strangers(to: SocketAddr, mut random: Random, count: usize) {
    let mut sent = 0;
    // each connection takes as long as twenty frames
    while sent < count / 20 {
        let Ok(mut hive) = RawHive::stranger(to).await else { continue };
        assert_eq!(hive.streams(), 1, "a lane was opened before the handshake");
        for _ in 0..1 + random.below(3) {
            let mut opening = b"beehive\0\x01\x01".to_vec();
            opening.extend(random.bytes(32));
            let mut bytes = frame(6, 0, opening.len() as u32, &opening);
            if random.below(2) == 0 {
                mutate(&mut bytes, &mut random)
            } else if random.below(4) == 0 {
                bytes.extend(vec![0; 5_000])
            }
            sent += 1;
            if !hive.send(0, bytes).await {
                break;
            }
            let challenged = timeout(Duration::from_millis(5), hive.receive(0)).await;
            if matches!(challenged, Ok(None)) {
                break;
            }
            // a claim without the token: an identity, and a proof
            let mut claim = vec![1, 60];
            claim.extend(random.bytes(92));
            sent += 1;
            hive.send(0, frame(6, 0, claim.len() as u32, &claim)).await;
        }
    }
}

#[test]
fn handshakes_that_are_nearly_right_do_nothing() {
    let _turn = alone();
    let seen = runtime().block_on(attack("nearly", strangers));
    assert_eq!(seen, 1)
}

/// A hive that has the token, and sends frames that are nearly right.
async fn mutated(to: SocketAddr, mut random: Random, count: usize) {
    let hive = 9 + random.0 as u32;
    let channels = [Channel::Detector, Channel::Links, Channel::Registry, Channel::Raft, Channel::Raft];
    let mut sent = 0;
    while sent < count {
        let options = with_token("mutated", hive);
        let Ok(hive) = RawHive::connect(&options, HiveId(1), to).await else { continue };
        for _ in 0..20 {
            let lane = random.below(5);
            let length = random.below(300);
            let message = valid(channels[lane], length, &mut random);
            let kind = random.below(2) as u8;
            let mut bytes = frame(kind, random.next(), message.len() as u32, &message);
            if random.below(4) == 0 {
                mutate(&mut bytes, &mut random)
            }
            sent += 1;
            if !hive.send(lane, bytes).await {
                break;
            }
        }
        let _ = timeout(Duration::from_secs(1), hive.finish()).await;
    }
}

#[test]
fn frames_that_are_nearly_right_break_only_their_connection() {
    let _turn = alone();
    let seen = runtime().block_on(attack("mutated", mutated));
    assert!(seen > count() / 20, "only {seen} messages arrived");
    assert!(logged().contains("broke the protocol, and its connection was closed: "))
}

#[test]
fn a_hive_that_has_the_token_and_does_not_fit_reaches_nothing() {
    let _turn = beside();
    runtime().block_on(async {
        let hive = Hive::start(with_token("fits", 1)).await;
        let to = hive.wire.address();
        let refused = [
            WireOptions { token: Some("another one, as long as that".into()), ..with_token("fits", 9) },
            WireOptions { token: None, ..with_token("fits", 9) },
            with_token("fits not", 9),
            WireOptions { seed: 1, ..with_token("fits", 9) },
            WireOptions { fingerprint: vec![1], ..with_token("fits", 9) },
            with_token("fits", 1),
        ];
        for options in &refused {
            assert!(RawHive::connect(options, HiveId(1), to).await.is_err(), "{options:?}")
        }
        assert!(RawHive::connect(&with_token("fits", 9), HiveId(2), to).await.is_err());
        let raw = RawHive::connect(&with_token("fits", 9), HiveId(1), to).await.expect("fits");
        assert!(raw.send(1, frame(0, 0, 2, b"ab")).await);
        until("arrived", || hive.echo.packets_count.load(Ordering::SeqCst) == 1).await;
        assert_eq!(hive.echo.calls_count.load(Ordering::SeqCst), 0)
    })
}
