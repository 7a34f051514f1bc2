//! A flood of packets from one port, measured: hosts at other ports and switches wait at most twice as long as without it.
//! A program of its own, so that no other test runs at the same time.

// the half of it that is not needed here
#[allow(dead_code)]
#[path = "openflow/peer.rs"]
mod peer;

use beehive_of::any::{Message, PacketIn, PacketInReason};
use beehive_of::{FrameBuffer, PortNo, Version};
use bytes::BytesMut;
use peer::{Controller, frame_between};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Mutex, mpsc};
use tokio::time::MissedTickBehavior;

/// Packets a second: what hosts do to controllers (S15), or what is as much for a controller that is not optimised.
const FLOOD_PER_SECOND: usize = if cfg!(debug_assertions) { 10_000 } else { 100_000 };
/// Times that it is measured, with and without a flood in turn, so that whatever else the machine does concerns both.
const TURNS: usize = 60;
/// Questions in each.
const QUESTIONS: usize = 200;

/// The number of a question is at the end of its frame.
const MARK: [u8; 4] = *b"ask:";

fn packet(port: u32, data: &[u8]) -> BytesMut {
    let packet = PacketIn {
        buffer_id: None,
        total_len: data.len() as u16,
        in_port: PortNo(port),
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: None,
        data,
    };
    let mut out = BytesMut::new();
    packet.encode_into(Version::V1_0, 0, &mut out).expect("fits");
    out
}

/// A connection of a switch whose packets are timed.
struct Line {
    write: Arc<Mutex<OwnedWriteHalf>>,
    answers: mpsc::UnboundedReceiver<(u64, Instant)>,
    asked: u64,
}

impl Line {
    async fn open(controller: &Controller, node: u64) -> Line {
        let peer = controller.join(Version::V1_0, node).await;
        let (mut read, write) = peer.stream.into_split();
        let (told, answers) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut frames = FrameBuffer::new();
            while read.read_buf(frames.read_target()).await.is_ok_and(|bytes| bytes > 0) {
                let now = Instant::now();
                while let Ok(Some(frame)) = frames.next_frame() {
                    let Ok(Message::PacketOut(packet)) = Message::parse(frame) else { continue };
                    if let Some((rest, number)) = packet.data.split_last_chunk::<8>()
                        && rest.ends_with(&MARK)
                    {
                        let _ = told.send((u64::from_be_bytes(*number), now));
                    }
                }
            }
        });
        let mut line = Line { write: Arc::new(Mutex::new(write)), answers, asked: 0 };
        // so that the hosts at ports 2 and 3 are known
        for _ in 0..2 {
            line.ask(2, 3).await;
            line.ask(3, 2).await;
        }
        line
    }

    /// How long the answer to a packet takes, from the host at port `from` to that at `to`.
    async fn ask(&mut self, from: u8, to: u8) -> Duration {
        self.asked += 1;
        let data = [&frame_between(from, to)[..], &MARK, &self.asked.to_be_bytes()].concat();
        let bytes = packet(from.into(), &data);
        let begun = Instant::now();
        self.write.lock().await.write_all(&bytes).await.expect("is read");
        loop {
            let answer = tokio::time::timeout(Duration::from_secs(5), self.answers.recv()).await;
            let (number, at) = answer.expect("an answer").expect("connected");
            if number == self.asked {
                return at.duration_since(begun);
            }
        }
    }

    /// Floods through port 1 whenever `on` says so.
    fn flood(&self, on: &Arc<AtomicBool>) {
        let (write, on) = (self.write.clone(), on.clone());
        let burst = packet(1, &frame_between(1, 9)).repeat(FLOOD_PER_SECOND / 1_000);
        tokio::spawn(async move {
            let mut clock = tokio::time::interval(Duration::from_millis(1));
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            loop {
                clock.tick().await;
                if on.load(Ordering::Relaxed) && write.lock().await.write_all(&burst).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// Of each turn the time within which 99 of 100 are answered; of these the shortest, with a flood as without. What else the
/// machine does makes a turn longer, never shorter, and a flood is there in all of its turns.
fn percentile_99(times: &[Duration]) -> Duration {
    let turn = |times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times[times.len() * 99 / 100]
    };
    times.chunks(QUESTIONS).map(turn).min().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flood_from_one_port_leaves_the_others_their_service() {
    let controller = Controller::start().await;
    let mut flooded = Line::open(&controller, 1).await;
    let mut bystander = Line::open(&controller, 2).await;
    let on = Arc::new(AtomicBool::new(false));
    flooded.flood(&on);
    // by switch, without and with
    let mut times: [[Vec<Duration>; 2]; 2] = Default::default();
    let (mut ins, mut took) = (0, Duration::ZERO);
    for turn in 0..2 * TURNS {
        on.store(turn % 2 == 1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let (before, begun) = (controller.directory.totals().packet_ins, Instant::now());
        for _ in 0..QUESTIONS {
            times[0][turn % 2].push(flooded.ask(2, 3).await);
            times[1][turn % 2].push(bystander.ask(2, 3).await);
        }
        if turn % 2 == 1 {
            ins += controller.directory.totals().packet_ins - before;
            took += begun.elapsed();
        }
    }
    let rate = ins as f64 / took.as_secs_f64();
    assert!(rate > FLOOD_PER_SECOND as f64 / 2.0, "there was no flood: {rate} packets a second");
    for (which, [without, with]) in ["another port", "another switch"].into_iter().zip(times) {
        let (without, with) = (percentile_99(&without), percentile_99(&with));
        println!("{which}: 99 % within {without:?}, within {with:?} at {rate:.0} packets a second");
        assert!(with <= 2 * without, "{which}: {with:?} with a flood, {without:?} without");
    }
}
