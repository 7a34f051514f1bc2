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
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("is told");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stuck_bee_costs_its_switch_packets_and_nothing_else() {
    const STUCK: Duration = Duration::from_secs(3);
    let apps = Hive::builder().app::<NodeController>().app::<Sticky>().app::<Ports>();
    let controller = Controller::of(apps, ListenerSettings::default()).await;
    let peer = controller.join(Version::V1_3, 7).await;
    assert!(eventually(|| controller.directory.nodes() == 1).await);

    let app = |name: &str| controller.hive.status().apps.into_iter().find(|app| app.name == name).unwrap();
    controller.hive.emit(Stick { node: NodeId(7), for_ms: STUCK.as_millis() as u64 }).await;
    // block the bee on a thread of the hive so that the driver finds the bee busy instead of running it
    // itself
    assert!(eventually(|| app("sticky").handlers[1].messages == 1).await);
    let Peer { stream, .. } = peer;
    let (mut read, mut write) = stream.into_split();

    // the switch reads all messages, and records when its echo replies arrive
    let echoes = tokio::spawn(async move {
        let mut frames = beehive_of::FrameBuffer::new();
        let mut heard = Vec::new();
        while read.read_buf(frames.read_target()).await.is_ok_and(|bytes| bytes > 0) {
            while let Some(frame) = frames.next_frame().expect("frames") {
                if frame.header().message_type == 3 {
                    heard.push((frame.xid(), Instant::now()))
                }
            }
        }
        heard
    });

    let before = resident_bytes();
    let (burst, began) = (burst(), Instant::now());
    let (mut sent, mut bytes, mut downs, mut most) = (Vec::new(), 0, 0, 0);

    while began.elapsed() < STUCK - Duration::from_millis(500) {
        write.write_all(&burst).await.expect("is read");
        bytes += burst.len();
        let xid = sent.len() as u32;
        let echo = encode(&beehive_of::any::Message::EchoRequest(Echo { data: b"x" }), Version::V1_3, xid);
        sent.push(Instant::now());
        write.write_all(&echo).await.expect("is read");
        write.write_all(&port_status(true)).await.expect("is read");
        write.write_all(&port_status(false)).await.expect("is read");
        downs += 1;
        most = most.max(resident_bytes());
    }

    let totals = controller.directory.totals();
    assert!(totals.packet_ins_shed > 10_000, "{totals:?}");
    assert_eq!(controller.directory.nodes(), 1, "the switch was let go");
    assert!(eventually(|| app("ports").handlers[0].messages == downs).await, "ports are not heard of");
    assert!(began.elapsed() < STUCK, "the bee is stuck no more, and nothing was shown");

    // 4 096 packets in flight and a full packet queue take about 10 MB; the rest is memory that the allocator
    // retains
    let grown = most.saturating_sub(before);
    assert!(bytes > 200_000_000 && grown < 64_000_000, "{bytes} bytes sent, memory grew by {grown}");

    // after the bee is unblocked, every packet is either handled or counted as shed
    assert!(
        eventually(|| {
            let totals = controller.directory.totals();
            app("sticky").handlers[0].messages + totals.packet_ins_shed == totals.packet_ins
        })
        .await
    );

    drop(write);
    let heard = echoes.await.expect("reads");
    assert_eq!(heard.len(), sent.len(), "echoes are not answered");
    let slowest = heard.iter().map(|(xid, at)| at.duration_since(sent[*xid as usize])).max().unwrap();
    println!(
        "{bytes} bytes sent, memory grew by {grown}, slowest echo {slowest:?}, {} shed",
        totals.packet_ins_shed
    );

    assert!(slowest < Duration::from_millis(500), "the slowest echo took {slowest:?}");
}
