//! Tests a bee that is blocked for seconds: its switch still gets every service that does not depend on that
//! bee.

use crate::peer::{Controller, Peer, encode, eventually, frame_between, ports};
use beehive_core::{App, Dict, Hive, Message, handlers};
use beehive_nom::apps::NodeController;
use beehive_nom::driver::openflow::ListenerSettings;
use beehive_nom::object::{NodeId, PacketIn, PacketOut, PortDown};
use beehive_of::any::{Echo, PortReason, PortState, PortStatus};
use beehive_of::{PortNo, Version};
use bytes::BytesMut;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;

/// Time limit of an echo behind packets. The driver reads on after [`beehive_nom::limits::INPUT_AGE_MAX`]; the rest is for
/// slow machines.
const ECHO_MAX: Duration = Duration::from_millis(1_500);
/// Maximum growth of memory, in bytes. 4 096 packets in flight take about 10 MB; the rest is memory that the allocator
/// retains, and that of other tests.
const GROWTH_MAX: usize = 32 << 20;

#[derive(Message)]
struct Stick {
    node: NodeId,
    for_ms: u64,
}

/// Answers packets, unless it is blocked.
#[derive(App)]
struct Sticky {
    handled: Dict<NodeId, u64>,
}

#[handlers]
impl Sticky {
    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        *self.handled.entry(msg.node).or_default() += 1;
        Some(msg.flood())
    }
    #[rcv(sharded)]
    fn stick(&mut self, msg: &Stick) {
        let _ = self.handled.contains(&msg.node);
        std::thread::sleep(Duration::from_millis(msg.for_ms))
    }
}

/// Counts port events, and is never blocked.
#[derive(App)]
struct Ports {
    downs: Dict<NodeId, u64>,
}

#[handlers]
impl Ports {
    #[rcv(sharded)]
    fn port_down(&mut self, msg: &PortDown) {
        *self.downs.entry(msg.node).or_default() += 1;
    }
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("is told");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
}

/// Returns a thousand packet-ins of 1000 bytes.
fn burst() -> BytesMut {
    let data = [frame_between(1, 2), vec![0; 940]].concat();
    let mut burst = BytesMut::new();
    for _ in 0..1_000 {
        let packet = beehive_of::any::PacketIn {
            buffer_id: None,
            total_len: data.len() as u16,
            in_port: PortNo(1),
            reason: beehive_of::any::PacketInReason::NoMatch,
            table_id: 0,
            cookie: None,
            data: &data,
        };
        packet.encode_into(Version::V1_3, 0, &mut burst).unwrap();
    }

    burst
}

fn port_status(down: bool) -> BytesMut {
    let state = PortState(if down { PortState::LINK_DOWN } else { 0 });
    let port = beehive_of::any::Port { state, ..ports()[1] };
    encode(
        &beehive_of::any::Message::PortStatus(PortStatus { reason: PortReason::Modify, port }),
        Version::V1_3,
        0,
    )
}

/// What came of a switch that sent packets as fast as possible while its bee was stuck.
#[derive(Debug)]
struct Flood {
    /// Number of bytes that the switch could send.
    bytes: usize,
    packet_ins_shed: u64,
    /// Growth of the process, in bytes.
    memory_grown: usize,
    slowest_echo: Duration,
}

/// Lets a switch send as fast as possible while its bee is stuck. Its echo requests must be answered, its port changes
/// must be heard of before the bee goes on, and each packet must be handled or counted as shed.
async fn flood(answers_echoes: bool) -> Flood {
    const STUCK: Duration = Duration::from_millis(4_500);
    const SENDING: Duration = Duration::from_millis(2_500);
    let apps = Hive::builder().app::<NodeController>().app::<Sticky>().app::<Ports>();
    let controller = Controller::of(apps, ListenerSettings::default()).await;
    let peer = controller.join(Version::V1_3, 7).await;
    assert!(eventually(|| controller.directory.nodes() == 1).await);

    let app = |name: &str| controller.hive.status().apps.into_iter().find(|app| app.name == name).unwrap();
    let began = Instant::now();
    controller.hive.emit(Stick { node: NodeId(7), for_ms: STUCK.as_millis() as u64 }).await;
    // block the bee on a thread of the hive so that the driver finds the bee busy instead of running it
    // itself
    assert!(eventually(|| app("sticky").handlers[1].messages == 1).await);
    let Peer { stream, .. } = peer;
    let (mut read, write) = stream.into_split();
    let write = Arc::new(Mutex::new(write));

    // the switch reads all messages, and records when its echo replies arrive
    let answers = write.clone();
    let echoes = tokio::spawn(async move {
        let mut frames = beehive_of::FrameBuffer::new();
        let mut heard = Vec::new();
        while read.read_buf(frames.read_target()).await.is_ok_and(|bytes| bytes > 0) {
            let mut out = Vec::new();
            while let Some(frame) = frames.next_frame().expect("frames") {
                match frame.header().message_type {
                    2 if answers_echoes => out.extend([&[frame.bytes()[0], 3], &frame.bytes()[2..]].concat()),
                    3 => heard.push((frame.xid(), Instant::now())),
                    _ => {}
                }
            }
            if !out.is_empty() && answers.lock().await.write_all(&out).await.is_err() {
                break;
            }
        }
        heard
    });

    let (before, burst) = (resident_bytes(), burst());
    let (mut sent, mut bytes, mut downs, mut most) = (Vec::new(), 0, 0, 0);
    while began.elapsed() < SENDING {
        let xid = sent.len() as u32;
        let echo = encode(&beehive_of::any::Message::EchoRequest(Echo { data: b"x" }), Version::V1_3, xid);
        let mut write = write.lock().await;
        write.write_all(&burst).await.expect("is read");
        bytes += burst.len();
        sent.push(Instant::now());
        write.write_all(&[echo, port_status(true), port_status(false)].concat()).await.expect("is read");
        downs += 1;
        most = most.max(resident_bytes());
    }

    assert!(eventually(|| app("ports").handlers[0].messages == downs).await, "ports are not heard of");
    assert!(began.elapsed() < STUCK, "the bee is stuck no more, and nothing was shown");
    assert_eq!(controller.directory.nodes(), 1, "the switch was let go");

    // after the bee is unblocked, every packet is either handled or counted as shed
    assert!(
        eventually(|| {
            let totals = controller.directory.totals();
            app("sticky").handlers[0].messages + totals.packet_ins_shed == sent.len() as u64 * 1_000
        })
        .await
    );

    write.lock().await.shutdown().await.expect("is connected");
    let heard = echoes.await.expect("reads");
    assert_eq!(heard.len(), sent.len(), "echoes are not answered");
    let took = |(xid, at): &(u32, Instant)| at.duration_since(sent[*xid as usize]);
    let flood = Flood {
        bytes,
        packet_ins_shed: controller.directory.totals().packet_ins_shed,
        memory_grown: most.saturating_sub(before),
        slowest_echo: heard.iter().map(took).max().expect("some are sent"),
    };
    println!("{flood:?}");

    assert!(flood.packet_ins_shed > 1_000, "{flood:?}");
    assert!(flood.memory_grown < GROWTH_MAX, "{flood:?}");
    assert!(flood.slowest_echo < ECHO_MAX, "{flood:?}");
    flood
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stuck_bee_costs_its_switch_packets_and_nothing_else() {
    let Flood { bytes, .. } = flood(true).await;
    assert!(bytes < 4 * GROWTH_MAX, "{bytes} bytes were read, only to be shed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_switch_that_answers_no_echo_requests_gets_the_same_service() {
    let Flood { bytes, .. } = flood(false).await;
    assert!(bytes > 2 * GROWTH_MAX, "{bytes} bytes sent: too few to show that memory is bounded");
}
