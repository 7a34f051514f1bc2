//! A switch connection that times the answers to packets and echoes, and can be flooded.

use crate::peer::{Controller, Peer, encode};
use beehive_of::any::{Echo, Message, PacketIn, PacketInReason};
use beehive_of::{PortNo, Version};
use bytes::BytesMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Mutex, mpsc};
use tokio::time::MissedTickBehavior;

/// The mark of a request. The number of the request follows at the end of the frame.
const MARK: [u8; 4] = *b"ask:";

/// Returns a datagram with this payload between the hosts with these numbers.
pub(crate) fn datagram(source: u8, destination: u8, payload: &[u8]) -> Vec<u8> {
    let mac = |number| [2, 0, 0, 0, 0, number];
    let ip = |number| [10, 0, 0, number];
    let builder = etherparse::PacketBuilder::ethernet2(mac(source), mac(destination));
    let mut out = Vec::new();
    let written = builder.ipv4(ip(source), ip(destination), 64).udp(1000, 2000).write(&mut out, payload);
    written.expect("fits");
    out
}

/// Returns the packet-in message for a packet.
pub(crate) fn packet_in(port: u32, data: &[u8]) -> BytesMut {
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

pub(crate) struct Line {
    write: Arc<Mutex<OwnedWriteHalf>>,
    answers: mpsc::UnboundedReceiver<(u64, Instant)>,
    asked: u64,
}

impl Line {
    pub(crate) async fn open(controller: &Controller, node: u64) -> Line {
        let Peer { stream, received, .. } = controller.join(Version::V1_0, node).await;
        let (mut read, write) = stream.into_split();
        let (told, answers) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut frames = received;
            loop {
                // arrival time of the bytes that were read last
                let now = Instant::now();
                while let Ok(Some(frame)) = frames.next_frame() {
                    let data = match Message::parse(frame) {
                        Ok(Message::PacketOut(packet)) => packet.data,
                        Ok(Message::EchoReply(echo)) => echo.data,
                        _ => continue,
                    };
                    if let Some((rest, number)) = data.split_last_chunk::<8>()
                        && rest.ends_with(&MARK)
                    {
                        let _ = told.send((u64::from_be_bytes(*number), now));
                    }
                }

                if !read.read_buf(frames.read_target()).await.is_ok_and(|bytes| bytes > 0) {
                    return;
                }
            }
        });

        let mut line = Line { write: Arc::new(Mutex::new(write)), answers, asked: 0 };
        // make the hosts at ports 2 and 3 known. The firewall drops all packets until it has its rules
        for (from, to) in [(2, 3), (3, 2), (2, 3), (3, 2)] {
            let mut tries = 0;
            while tokio::time::timeout(Duration::from_millis(200), line.ask(from, to)).await.is_err() {
                tries += 1;
                assert!(tries < 50, "nobody is served");
            }
        }

        line
    }

    /// Measures the time to the answer to a packet from the host at port `from` to the one at `to`.
    pub(crate) async fn ask(&mut self, from: u8, to: u8) -> Duration {
        self.asked += 1;
        let data = datagram(from, to, &[&MARK[..], &self.asked.to_be_bytes()].concat());
        let bytes = packet_in(from.into(), &data);
        self.answered(&bytes).await
    }

    /// Measures the time to the reply to an echo request.
    pub(crate) async fn echo(&mut self) -> Duration {
        self.asked += 1;
        let data = [&MARK[..], &self.asked.to_be_bytes()].concat();
        let bytes = encode(&Message::EchoRequest(Echo { data: &data }), Version::V1_0, 9);
        self.answered(&bytes).await
    }

    async fn answered(&mut self, question: &[u8]) -> Duration {
        let begun = Instant::now();
        self.write.lock().await.write_all(question).await.expect("is read");
        loop {
            let answer = tokio::time::timeout(Duration::from_secs(5), self.answers.recv()).await;
            let (number, at) = answer.expect("an answer").expect("connected");
            if number == self.asked {
                return at.duration_since(begun);
            }
        }
    }

    /// Sends raw bytes.
    pub(crate) async fn say(&self, bytes: &[u8]) {
        self.write.lock().await.write_all(bytes).await.expect("is read")
    }

    /// Sends `per_second` messages per second while `on` is true; `burst` generates the next `count` of them.
    pub(crate) fn flood(
        &self,
        on: &Arc<AtomicBool>,
        per_second: usize,
        mut burst: impl FnMut(usize) -> BytesMut + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let (write, on) = (self.write.clone(), on.clone());
        tokio::spawn(async move {
            let together = (per_second / 1_000).max(1);
            let mut clock = tokio::time::interval(Duration::from_secs(1) / (per_second / together) as u32);
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            loop {
                clock.tick().await;
                if on.load(Ordering::Relaxed) {
                    let bytes = burst(together);
                    if write.lock().await.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
            }
        })
    }
}
