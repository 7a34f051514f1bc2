//! Tests a switch that sends packets as fast as its socket takes them, to a controller that is slower: the packets wait in
//! the socket, and few of them are read only to be shed.

use crate::peer::{Controller, Peer, encode, frame_between};
use beehive_core::{App, Dict, Hive, handlers};
use beehive_nom::apps::NodeController;
use beehive_nom::driver::openflow::ListenerSettings;
use beehive_nom::limits;
use beehive_nom::object::{NodeId, PacketIn, PacketOut};
use beehive_of::any::{Echo, Message, PacketInReason};
use beehive_of::{PortNo, Version};
use bytes::BytesMut;
use std::sync::{Arc, Mutex as Shared};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Mutex, MutexGuard};

/// Time for which the switch sends.
const DURATION: Duration = Duration::from_secs(3);
/// Time limit of a message behind packets. The driver reads on after [`limits::INPUT_AGE_MAX`]; the rest is for slow
/// machines.
const LATE: Duration = Duration::from_millis(1_500);

/// Handles one packet after the other, and takes its time.
#[derive(App)]
struct Slow {
    handled: Dict<NodeId, u64>,
}

#[handlers]
impl Slow {
    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        let handled = self.handled.entry(msg.node).or_default();
        *handled += 1;
        if handled.is_multiple_of(4) {
            std::thread::sleep(Duration::from_micros(100))
        }
        Some(msg.flood())
    }
}

/// Handles a packet in a few microseconds.
#[derive(App)]
struct Quick {
    handled: Dict<NodeId, u64>,
}

#[handlers]
impl Quick {
    #[rcv(sharded)]
    fn packet_in(&mut self, msg: &PacketIn) -> Option<PacketOut> {
        *self.handled.entry(msg.node).or_default() += 1;
        Some(msg.flood())
    }
}

/// What a switch has received: the transaction ids of echo replies, the data of packets that came from port 9, and the
/// times of both.
#[derive(Default)]
struct Heard {
    echoes: Vec<(u32, Instant)>,
    packets: Vec<(Vec<u8>, Instant)>,
    /// Number of packets that came back, from any port.
    answered: usize,
}

/// A switch that answers echo requests.
struct Switch {
    write: Arc<Mutex<OwnedWriteHalf>>,
    heard: Arc<Shared<Heard>>,
}

impl Switch {
    async fn join(controller: &Controller, node: u64) -> Switch {
        let Peer { stream, .. } = controller.join(Version::V1_3, node).await;
        let (mut read, write) = stream.into_split();
        let (write, heard) = (Arc::new(Mutex::new(write)), Arc::new(Shared::new(Heard::default())));
        let (answers, noted) = (write.clone(), heard.clone());
        tokio::spawn(async move {
            let mut frames = beehive_of::FrameBuffer::new();
            while read.read_buf(frames.read_target()).await.is_ok_and(|bytes| bytes > 0) {
                let mut out = Vec::new();
                while let Some(frame) = frames.next_frame().expect("frames") {
                    match Message::parse(frame).expect("is well-formed") {
                        Message::EchoRequest(echo) => {
                            out.extend(encode(&Message::EchoReply(echo), Version::V1_3, frame.xid()))
                        }
                        Message::EchoReply(_) => {
                            noted.lock().unwrap().echoes.push((frame.xid(), Instant::now()))
                        }
                        Message::PacketOut(packet) => {
                            let mut heard = noted.lock().unwrap();
                            heard.answered += 1;
                            if packet.in_port == PortNo(9) {
                                heard.packets.push((packet.data.to_vec(), Instant::now()))
                            }
                        }
                        _ => {}
                    }
                }
                if !out.is_empty() && answers.lock().await.write_all(&out).await.is_err() {
                    break;
                }
            }
        });

        Switch { write, heard }
    }

    async fn write(&self) -> MutexGuard<'_, OwnedWriteHalf> {
        self.write.lock().await
    }
}

fn packet_in(port: u32, data: &[u8], out: &mut BytesMut) {
    let packet = beehive_of::any::PacketIn {
        buffer_id: None,
        total_len: data.len() as u16,
        in_port: PortNo(port),
        reason: PacketInReason::NoMatch,
        table_id: 0,
        cookie: None,
        data,
    };
    packet.encode_into(Version::V1_3, 0, out).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn packets_wait_in_the_socket_and_echoes_behind_them_are_answered() {
    let apps = Hive::builder().app::<NodeController>().app::<Slow>();
    let controller = Controller::of(apps, ListenerSettings::default()).await;
    let switch = Switch::join(&controller, 7).await;
    let (data, mut burst) = ([frame_between(1, 2), vec![0; 940]].concat(), BytesMut::new());
    (1..=100).for_each(|port| packet_in(port % 4 + 1, &data, &mut burst));

    let (began, mut sent, mut waiting, mut bursts) = (Instant::now(), Vec::new(), 0, 0_u32);
    while began.elapsed() < DURATION {
        switch.write().await.write_all(&burst).await.expect("is read");
        bursts += 1;
        waiting = waiting.max(controller.directory.capacity().waiting_bytes());
        if bursts.is_multiple_of(4) {
            let echo = encode(&Message::EchoRequest(Echo { data: b"x" }), Version::V1_3, bursts);
            let mut write = switch.write().await;
            sent.push((bursts, Instant::now()));
            write.write_all(&echo).await.expect("is read");
        }
    }

    let totals = controller.directory.totals();
    assert_eq!(controller.directory.nodes(), 1, "the switch was let go");
    // packets that were read and not shed, so that the hive has handled them or has them in flight
    let taken = totals.packet_ins - totals.packet_ins_shed;
    assert!(taken > 1_000, "{totals:?}");
    // what has been waiting for a second is shed; a driver that read on regardless would shed ten times as much as is taken
    assert!(totals.packet_ins_shed < 4 * taken, "most of what was read was shed: {totals:?}");
    assert!(
        waiting <= limits::QUEUED_BYTES_BEFORE_SOCKET_MAX,
        "{waiting} bytes of packets waited in the driver"
    );

    tokio::time::sleep(LATE).await;
    let heard = std::mem::take(&mut switch.heard.lock().unwrap().echoes);
    let is_late = |(xid, at): &(u32, Instant)| {
        let answered = heard.iter().find(|(other, _)| other == xid);
        answered.is_none_or(|(_, heard)| heard.duration_since(*at) > LATE)
    };
    let late = sent.iter().filter(|echo| is_late(echo)).count();
    println!(
        "{} packets read, {} shed, {waiting} bytes waited, {late} of {} echoes later than {LATE:?}",
        totals.packet_ins,
        totals.packet_ins_shed,
        sent.len()
    );
    assert!(sent.len() > 10 && late == 0, "{late} of {} echoes took longer than {LATE:?}", sent.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn packets_do_not_wait_in_the_socket_behind_those_of_a_port_that_floods() {
    let apps = Hive::builder().app::<NodeController>().app::<Slow>();
    let controller = Controller::of(apps, ListenerSettings::default()).await;
    let switch = Switch::join(&controller, 7).await;
    let mut burst = BytesMut::new();
    (0..100).for_each(|_| packet_in(1, &frame_between(1, 2), &mut burst));

    // one port sends more than the hive can handle, and less than the driver can read; the other one sends a packet every
    // 20 ms
    let (began, mut sent) = (Instant::now(), Vec::new());
    while began.elapsed() < DURATION {
        tokio::time::sleep(Duration::from_millis(1)).await;
        switch.write().await.write_all(&burst).await.expect("is read");
        if began.elapsed() >= Duration::from_millis(20) * sent.len() as u32 {
            let mut data = frame_between(3, 4);
            data.extend((sent.len() as u32).to_be_bytes());
            let mut packet = BytesMut::new();
            packet_in(9, &data, &mut packet);
            let mut write = switch.write().await;
            sent.push((data, Instant::now()));
            write.write_all(&packet).await.expect("is read");
        }
    }

    let totals = controller.directory.totals();
    tokio::time::sleep(LATE).await;
    let heard = std::mem::take(&mut switch.heard.lock().unwrap().packets);
    let times = sent.iter().map(|(data, at)| {
        let answered = heard.iter().find(|(other, _)| other == data);
        answered.map_or(Duration::MAX, |(_, heard)| heard.duration_since(*at))
    });
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    let (median, shed) = (times[times.len() / 2], totals.packet_ins_shed);
    // the hive handles at most so many packets before it
    let behind = DURATION * limits::CREDITS_PER_DRIVER / ((totals.packet_ins - shed) as u32).max(1);
    println!(
        "{} packets of the quiet port, median {median:?}, {behind:?} behind others; {shed} of the other shed",
        times.len()
    );
    assert!(shed > 1_000, "there was no flood");
    // in the socket, they would wait for nearly as long as messages may
    assert!(times.len() > 20 && median < behind + limits::INPUT_AGE_MAX / 2, "{median:?}, {behind:?}");
}

/// Number of packets without an answer that each of many switches may have.
const OUTSTANDING_MAX: usize = 4_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn more_switches_than_turns_have_equal_shares_and_a_quiet_one_does_not_wait_for_a_turn() {
    let apps = Hive::builder().app::<NodeController>().app::<Quick>();
    let controller = Controller::of(apps, ListenerSettings::default()).await;
    let mut switches = Vec::new();
    for node in 1..=limits::TURNS_MAX as u64 * 3 / 2 {
        switches.push(Switch::join(&controller, node).await)
    }
    let quiet = Switch::join(&controller, 10_000).await;

    let mut burst = BytesMut::new();
    (1..=100).for_each(|port| packet_in(port % 4 + 1, &frame_between(1, 2), &mut burst));
    let (began, burst) = (Instant::now(), burst.freeze());
    let floods = switches.iter().map(|switch| {
        let (write, heard, burst) = (switch.write.clone(), switch.heard.clone(), burst.clone());
        tokio::spawn(async move {
            let mut sent = 0;
            while began.elapsed() < DURATION {
                // more would be shed, because the hive does not handle them in time
                if sent > heard.lock().unwrap().answered + OUTSTANDING_MAX {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    continue;
                }
                write.lock().await.write_all(&burst).await.expect("is read");
                sent += 100
            }
        })
    });
    let floods: Vec<_> = floods.collect();

    let (mut sent, mut turns) = (Vec::new(), 0);
    while began.elapsed() < DURATION {
        tokio::time::sleep(Duration::from_millis(50)).await;
        turns = turns.max(controller.directory.capacity().turns_taken());
        let mut data = frame_between(3, 4);
        data.extend((sent.len() as u32).to_be_bytes());
        let mut packet = BytesMut::new();
        packet_in(9, &data, &mut packet);
        sent.push((data, Instant::now()));
        quiet.write().await.write_all(&packet).await.expect("is read")
    }
    // what was read and not shed; the quiet switch is the one with few packets
    let status = controller.directory.status(controller.hive.now());
    let taken = status.iter().map(|switch| switch.counters.packet_ins - switch.counters.packet_ins_shed);
    let taken: Vec<u64> = taken.filter(|taken| *taken > sent.len() as u64).collect();
    let busy = controller.directory.capacity().busy();
    for flood in floods {
        flood.await.expect("flooded to the end")
    }
    tokio::time::sleep(LATE).await;

    let heard = std::mem::take(&mut quiet.heard.lock().unwrap().packets);
    let mut times: Vec<Duration> = sent
        .iter()
        .map(|(data, at)| {
            let answered = heard.iter().find(|(other, _)| other == data);
            answered.map_or(Duration::MAX, |(_, heard)| heard.duration_since(*at))
        })
        .collect();
    times.sort_unstable();
    let (slowest, all) = (taken.iter().min().unwrap(), taken.iter().sum::<u64>());
    let (mean, median) = (all / taken.len() as u64, times[times.len() / 2]);
    println!(
        "{busy} busy, {turns} turns; slowest {slowest} of a mean of {mean}; the quiet switch waited {median:?}"
    );
    assert!(busy > limits::TURNS_MAX, "only {busy} switches had more to say");
    assert!(turns > limits::TURNS_MAX / 2, "at most {turns} switches had their turn");
    assert_eq!(taken.len(), switches.len(), "some switches had no turn: {taken:?}");
    assert!(slowest * 2 > mean, "the slowest switch had {slowest} packets, and the mean is {mean}");
    // if it waited behind those that wait for a turn, it would wait as long as they do
    let waiting = DURATION * (OUTSTANDING_MAX * switches.len()) as u32 / (all as u32).max(1);
    assert!(median < waiting / 2, "{median:?}, and the others wait for {waiting:?}")
}
