//! Tests a period in which the journal commits nothing: no switch is disconnected, echo requests are
//! answered, memory stays bounded, and packets are shed and counted. Afterwards the state is correct. The
//! period lasts four seconds, and a minute with `BEEHIVE_LONG=1`.

use crate::peer::{Controller, Peer, encode, eventually, ports};
use beehive_core::Hive;
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_nom::apps::{Discovery, Firewall, Hosts, LearningSwitch, LoopGuard, NodeController, Topology};
use beehive_nom::driver::openflow::ListenerSettings;
use beehive_nom::object::{
    Actions, AddFlow, DescribeNode, FlowMatch, FlowState, ListHosts, Mac, NodeId, Owner, PortNo,
};
use beehive_of::Version;
use beehive_of::any::{Echo, FlowCommand, Message, PortReason, PortState, PortStatus};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Shared};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;

const SWITCHES: u64 = 4;
/// Number of flows that are requested at each switch during that period.
const WALLS: u8 = 20;
/// Time limit for an echo reply: a switch that waits longer turns to another controller.
const ECHO_MAX: Duration = Duration::from_secs(2);
/// Maximum growth of memory, in bytes.
const GROWTH_MAX: u64 = 96 << 20;

const SETTINGS: &str = "[discovery]\nsecret = \"of this test\"\n[firewall]\ndefault = \"allow\"\n\
    [loop-guard]\nsettle_ms = 0\n";

fn stall_time() -> Duration {
    let long = std::env::var_os("BEEHIVE_LONG").is_some();
    Duration::from_secs(if long { 60 } else { 4 })
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

fn wall(node: u64, number: u8) -> AddFlow {
    let matching = FlowMatch { source: Some(Mac([2, 0, 0, 0, 0x66, number])), ..FlowMatch::ANY };
    AddFlow::new(NodeId(node), Owner::named("wall"), matching, Actions::None).priority(900)
}

/// Returns a datagram from the host with this number to another one.
fn datagram(source: u8, destination: u8, payload: u64) -> Vec<u8> {
    let (mac, ip) = (|number| [2, 0, 0, 0, 0, number], |number| [10, 0, 0, number]);
    let builder = etherparse::PacketBuilder::ethernet2(mac(source), mac(destination));
    let mut out = Vec::new();
    let datagram = builder.ipv4(ip(source), ip(destination), 64).udp(1000, 2000);
    datagram.write(&mut out, &payload.to_be_bytes()).expect("fits");
    out
}

/// The messages that a switch has received.
#[derive(Default)]
struct Heard {
    /// Number of packet-outs with packets of hosts.
    packet_outs: AtomicU64,
    /// The drop flows, and how often each was installed.
    walls: Shared<BTreeMap<Mac, u32>>,
    /// Duration of each echo.
    echoes: Shared<Vec<Duration>>,
    closed: AtomicBool,
}

/// A switch that keeps sending without waiting for answers.
struct Switch {
    node: u64,
    version: Version,
    write: Arc<Mutex<tokio::net::tcp::OwnedWriteHalf>>,
    heard: Arc<Heard>,
    began: Instant,
}

impl Switch {
    async fn join(controller: &Controller, node: u64, version: Version) -> Switch {
        let mut peer = controller.connect().await;
        peer.introduce(version, node).await;
        peer.settle().await;
        let Peer { stream, received, .. } = peer;
        let (mut read, write) = stream.into_split();
        let (write, heard) = (Arc::new(Mutex::new(write)), Arc::new(Heard::default()));
        let (answers, told, began) = (write.clone(), heard.clone(), Instant::now());

        tokio::spawn(async move {
            let mut frames = received;
            loop {
                while let Ok(Some(frame)) = frames.next_frame() {
                    let (xid, Ok(message)) = (frame.xid(), Message::parse(frame)) else { continue };

                    let answer = match message {
                        Message::EchoRequest(echo) => encode(&Message::EchoReply(echo), version, xid),
                        Message::BarrierRequest => encode(&Message::BarrierReply, version, xid),
                        Message::EchoReply(echo) => {
                            let sent = echo.data.first_chunk().map(|sent| u64::from_be_bytes(*sent));
                            let sent = Duration::from_nanos(sent.expect("our own"));
                            told.echoes.lock().unwrap().push(began.elapsed() - sent);
                            continue;
                        }
                        Message::PacketOut(packet) => {
                            let probe = packet.data.get(12..14) == Some(&[0x88, 0xcc]);
                            told.packet_outs.fetch_add(u64::from(!probe), Ordering::Relaxed);
                            continue;
                        }
                        Message::FlowMod(flow)
                            if flow.command == FlowCommand::Add && flow.priority == 900 =>
                        {
                            let source = flow.match_fields.eth_src.expect("by source");
                            *told.walls.lock().unwrap().entry(Mac(source.value.0)).or_default() += 1;
                            continue;
                        }
                        _ => continue,
                    };

                    // the next read reports the end of the connection
                    let _ = answers.lock().await.write_all(&answer).await;
                }

                if !read.read_buf(frames.read_target()).await.is_ok_and(|bytes| bytes > 0) {
                    break;
                }
            }

            told.closed.store(true, Ordering::Relaxed)
        });

        Switch { node, version, write, heard, began }
    }

    async fn say(&self, bytes: &[u8]) {
        self.write.lock().await.write_all(bytes).await.expect("is connected")
    }

    async fn packets(&self, port: u32, packets: impl Iterator<Item = Vec<u8>>) {
        let mut out = bytes::BytesMut::new();
        for data in packets {
            let packet = beehive_of::any::PacketIn {
                buffer_id: None,
                total_len: data.len() as u16,
                in_port: beehive_of::PortNo(port),
                reason: beehive_of::any::PacketInReason::NoMatch,
                table_id: 0,
                cookie: None,
                data: &data,
            };
            packet.encode_into(self.version, 0, &mut out).expect("fits")
        }

        self.say(&out).await
    }

    /// Lets hosts 2 and 3 talk until their packets pass, because the firewall drops all packets until it has
    /// its rules.
    async fn introduce_hosts(&self) {
        for number in 0..100 {
            let before = self.heard.packet_outs.load(Ordering::Relaxed);
            self.packets(2, [datagram(2, 3, number)].into_iter()).await;
            self.packets(3, [datagram(3, 2, number)].into_iter()).await;
            let passed = || self.heard.packet_outs.load(Ordering::Relaxed) >= before + 2;
            for _ in 0..20 {
                if passed() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await
            }
        }

        panic!("they are not served before")
    }

    async fn echo(&self) {
        let sent = (self.began.elapsed().as_nanos() as u64).to_be_bytes();
        self.say(&encode(&Message::EchoRequest(Echo { data: &sent }), self.version, 7)).await
    }

    async fn port(&self, number: usize, down: bool) {
        let state = PortState(if down { PortState::LINK_DOWN } else { 0 });
        let port = beehive_of::any::Port { state, ..ports()[number - 1] };
        let status = PortStatus { reason: PortReason::Modify, port };
        self.say(&encode(&Message::PortStatus(status), self.version, 0)).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_minute_in_which_nothing_can_be_committed() {
    let journal = TestJournal::start(7, 0, 0);
    let apps = Hive::builder().app::<NodeController>().app::<Discovery>().app::<Topology>();
    let apps = apps.app::<LoopGuard>().app::<Hosts>().app::<Firewall>().app::<LearningSwitch>();
    let apps = apps.settings(SETTINGS.parse().expect("settings"));
    let apps = apps.journal(journal.clone(), LogState::default());
    let controller = Controller::of(apps, ListenerSettings::default()).await;
    let mut switches = Vec::new();

    for node in 1..=SWITCHES {
        let version = if node % 2 == 0 { Version::V1_0 } else { Version::V1_3 };
        switches.push(Switch::join(&controller, node, version).await)
    }

    let totals = || controller.directory.totals();
    // hosts 2 and 3 are known at every switch; packets to host 9 are flooded, so every packet of host 1 is
    // answered
    for switch in &switches {
        switch.introduce_hosts().await
    }

    let answered = || switches.iter().map(|s| s.heard.packet_outs.load(Ordering::Relaxed)).sum::<u64>();
    controller.hive.idle().await;
    let answered_before = answered();

    let memory = resident_bytes();
    journal.stall(true);
    let began = Instant::now();
    let mut wanted = Vec::new();
    let (mut number, mut most, mut flaps) = (0, 0, 0);

    while began.elapsed() < stall_time() {
        for switch in &switches {
            switch.packets(1, (number..number + 50).map(|n| datagram(1, 9, n))).await;
            switch.echo().await
        }

        number += 50;
        if wanted.len() < usize::from(WALLS) * SWITCHES as usize {
            for switch in &switches {
                let (hive, flow) = (controller.hive.clone(), wall(switch.node, (number / 50) as u8));
                let patience = stall_time() + Duration::from_secs(30);
                wanted.push(tokio::spawn(async move { hive.request_within(patience, flow).await }))
            }
        }

        if began.elapsed() > stall_time() / 2 && flaps == 0 {
            // the port of host 3 goes down; no app may later believe that the host is there
            for switch in &switches {
                switch.port(3, true).await;
                switch.port(3, false).await
            }
            flaps += 1
        }

        most = most.max(resident_bytes());
        tokio::time::sleep(Duration::from_millis(20)).await
    }

    let sent = number / 50 * SWITCHES;
    let echoes = || {
        let heard = switches.iter().flat_map(|s| s.heard.echoes.lock().unwrap().clone());
        heard.collect::<Vec<Duration>>()
    };
    assert!(eventually(|| echoes().len() as u64 == sent).await, "{} echoes of {sent}", echoes().len());
    let stalled = began.elapsed();
    assert_eq!(answered(), answered_before, "nothing leaves before it is committed");
    assert!(wanted.iter().all(|request| !request.is_finished()), "nothing is said to be done that is not");
    assert_eq!((controller.directory.nodes() as u64, controller.directory.ended()), (SWITCHES, (0, 0)));
    let shed = totals().packet_ins_shed;

    assert!(shed > 0, "it was too short for packets to be shed: nothing is shown");
    let slowest = echoes().into_iter().max().unwrap_or_default();
    let grown = most.saturating_sub(memory);

    println!(
        "nothing committed for {stalled:?}: {sent} echoes, {slowest:?} at most; {} packets, {shed} shed; \
         memory grew by {grown}; {} entries wait",
        totals().packet_ins,
        journal.waiting()
    );

    assert!(slowest < ECHO_MAX, "an echo took {slowest:?}");
    assert!(grown < GROWTH_MAX, "memory grew by {grown}");

    journal.stall(false);
    for request in wanted {
        let outcome = tokio::time::timeout(Duration::from_secs(20), request).await;
        outcome.expect("is answered now").expect("no panic").expect("is taken")
    }

    // each packet is answered, or counted as shed, as soon as the machine has handled all that has waited
    let all = answered_before + number * SWITCHES;
    let done = || answered() + totals().packet_ins_shed;
    let mut before = 0;
    while !eventually(|| done() == all).await {
        assert!(done() > before, "{} of {all} packets", done());
        before = done()
    }

    for switch in &switches {
        let walls = switch.heard.walls.lock().unwrap().clone();
        assert_eq!(walls.len(), usize::from(WALLS));
        assert!(walls.values().all(|times| *times == 1), "told more than once: {walls:?}");
        let node = NodeId(switch.node);
        let mut unconfirmed = usize::MAX;

        for _ in 0..300 {
            let described = controller.hive.request(DescribeNode { node }).await.expect("is known");
            let walls = described.flows.iter().filter(|flow| flow.flow.priority == 900);
            unconfirmed = walls.filter(|flow| flow.state != FlowState::Confirmed).count();
            if unconfirmed == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await
        }

        assert_eq!(unconfirmed, 0);
        // the port of host 3 went down after its last packet
        let hosts = controller.hive.request(ListHosts(node)).await.expect("answers");
        let ports: BTreeMap<Mac, PortNo> =
            hosts.into_iter().map(|(station, port)| (station.mac(), port)).collect();
        let expected = [1, 2].map(|n| (Mac([2, 0, 0, 0, 0, n]), PortNo(n.into())));

        assert_eq!(ports, BTreeMap::from(expected));
        // and packets are forwarded correctly: packets to host 2 through one port, packets to host 3 through
        // all ports
        let before = switch.heard.packet_outs.load(Ordering::Relaxed);
        switch.packets(1, [datagram(1, 2, 1), datagram(1, 3, 1)].into_iter()).await;
        assert!(eventually(|| switch.heard.packet_outs.load(Ordering::Relaxed) == before + 2).await);

        assert!(!switch.heard.closed.load(Ordering::Relaxed));
    }

    let status = controller.hive.status();
    assert_eq!((status.dead_letters, status.mail_shed), (0, 0), "{:?}", controller.hive.dead_letters());
    controller.hive.idle().await;

    // the log agrees with the hive, and only delayed messages are pending. Messages without effect are logged a
    // little later
    let left = || {
        let colony = LogState::replay(journal.log().iter().map(Vec::as_slice)).expect("is whole");
        let left = colony.outbox.into_values().filter(|waiting| waiting.emit.at.is_none());
        left.map(|waiting| waiting.emit).collect::<Vec<_>>()
    };
    assert!(eventually(|| left().len() <= 1).await, "{:?}", left());
    journal.stop();
    controller.hive.stop(Duration::ZERO).await;
}
