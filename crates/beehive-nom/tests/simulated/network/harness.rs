//! Simulated switches with wires, on a hive with its own clock; hosts send frames, and the harness records
//! where they arrive.

use crate::clock::Clock;
use beehive_core::{Builder, Hive};
use beehive_nom::apps::NodeController;
use beehive_nom::driver::CountersNow;
use beehive_nom::object::{Conversation, Mac, NodeId, PortNo};
use beehive_nom::sim::{SimulatedSwitch, Wire, packet};
use bytes::Bytes;
use etherparse::PacketBuilder;
use std::sync::Arc;
use std::time::Duration;

/// The two ends of a wire: switch and port.
pub(crate) type Cable = ((u64, u32), (u64, u32));

/// Real time in which a network must become idle.
const PATIENCE: Duration = Duration::from_secs(20);

/// A host: a port of a switch, and a number from which its addresses are derived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    pub(crate) node: u64,
    pub(crate) port: u32,
    pub(crate) number: u8,
}

pub(crate) const fn host(node: u64, port: u32, number: u8) -> Host {
    Host { node, port, number }
}

impl Host {
    pub(crate) fn mac(self) -> Mac {
        Mac([2, 0, 0, 0, 0, self.number])
    }

    pub(crate) fn ip(self) -> [u8; 4] {
        [10, 0, 0, self.number]
    }

    fn to(self, other: Mac) -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
        PacketBuilder::ethernet2(self.mac().0, other.0)
    }

    /// Returns a UDP datagram to `other`.
    pub(crate) fn udp(self, source_port: u16, other: Host, destination_port: u16) -> Bytes {
        let (source, destination) = (self.ip().into(), other.ip().into());
        let protocol = Conversation::UDP;
        let conversation = Conversation { source, destination, protocol, source_port, destination_port };
        packet(other.mac(), self.mac(), &conversation, b"hello").expect("fits")
    }

    /// Returns an ICMP error that tells `other` that the packet `about` was undeliverable.
    pub(crate) fn failure(self, other: Host, about: &Bytes) -> Bytes {
        let why = etherparse::icmpv4::DestUnreachableHeader::Port;
        let step = self.to(other.mac()).ipv4(self.ip(), other.ip(), 64);
        let mut bytes = Vec::new();
        let step = step.icmpv4(etherparse::Icmpv4Type::DestinationUnreachable(why));
        step.write(&mut bytes, about.get(14..).expect("a packet")).expect("fits");
        bytes.into()
    }

    /// Returns an ARP broadcast that asks for the address of `other`.
    pub(crate) fn arp(self, other: Host) -> Bytes {
        let packet = etherparse::ArpPacket::new(
            etherparse::ArpHardwareId::ETHERNET,
            etherparse::EtherType::IPV4,
            etherparse::ArpOperation::REQUEST,
            &self.mac().0,
            &self.ip(),
            &[0; 6],
            &other.ip(),
        );

        let mut bytes = Vec::new();
        self.to(Mac::BROADCAST).arp(packet.expect("lengths")).write(&mut bytes).expect("fits");
        bytes.into()
    }
}

pub(crate) struct Network {
    clock: Arc<Clock>,
    pub(crate) hive: Hive,
    pub(crate) switches: Vec<SimulatedSwitch>,
    pub(crate) wires: Vec<Wire>,
}

impl Network {
    /// Creates switches 1 to `switches` with eight ports each, and `wires` between pairs of (switch, port).
    /// Starts `apps` in addition to the node controller.
    pub(crate) async fn new(
        apps: impl FnOnce(Builder) -> Builder,
        settings: &str,
        switches: u64,
        wires: &[Cable],
    ) -> Network {
        let clock = Clock::start();
        let builder = apps(Hive::builder().platform(clock.clone()).app::<NodeController>());
        let hive = builder.settings(settings.parse().expect("settings")).start().expect("starts");
        let switches: Vec<_> =
            (1..=switches).map(|node| SimulatedSwitch::new(&hive, NodeId(node), 8, true)).collect();
        let end = |(node, port): (u64, u32)| (&switches[node as usize - 1], PortNo(port));
        let wires = wires.iter().map(|(one, other)| Wire::new(end(*one), end(*other))).collect();

        switches.iter().for_each(SimulatedSwitch::connect);
        let network = Network { clock, hive, switches, wires };
        network.settled().await;
        network
    }

    pub(crate) fn switch(&self, node: u64) -> &SimulatedSwitch {
        &self.switches[node as usize - 1]
    }

    /// Returns the number of messages that all handlers have handled.
    pub(crate) fn handled(&self) -> u64 {
        let status = self.hive.status();
        status.apps.iter().flat_map(|app| &app.handlers).map(|h| h.messages + h.dropped).sum()
    }

    /// Waits until all work is done, and fails if the network does not become idle.
    pub(crate) async fn settled(&self) {
        let rest = async { while !self.rests().await {} };
        tokio::time::timeout(PATIENCE, rest).await.expect("the network comes to rest")
    }

    /// Waits for all known work. Returns whether it caused no further work.
    async fn rests(&self) -> bool {
        // tasks that were woken may have to check the clock first
        tokio::task::yield_now().await;
        self.clock.settled().await;
        let before = self.progress();
        self.quiet().await;
        self.hive.idle().await;

        // a driver may have handled the last answers, which may have caused new messages
        self.quiet().await;
        self.progress() == before && self.wires.iter().all(Wire::is_empty) && self.clock.is_settled()
    }

    async fn quiet(&self) {
        while !self.wires.iter().all(Wire::is_empty) {
            tokio::task::yield_now().await
        }
        for switch in &self.switches {
            switch.quiet().await
        }
    }

    fn progress(&self) -> u64 {
        let said: u64 = self.switches.iter().map(SimulatedSwitch::upcalls_total).sum();
        said + self.wires.iter().map(Wire::carried).sum::<u64>()
    }

    /// Advances the clock by a number of steps of 100 ms.
    pub(crate) async fn pass(&self, steps: u32) {
        for _ in 0..steps {
            self.clock.pass(Duration::from_millis(100));
            self.settled().await
        }
    }

    /// Advances the clock in a single step, as if nothing had run meanwhile.
    pub(crate) async fn pause(&self, time: Duration) {
        self.clock.pass(time);
        self.settled().await
    }

    /// Sends a frame from `from`. Returns how often the frame came out of each port that has no wire.
    pub(crate) async fn send(&self, from: Host, data: &Bytes) -> Vec<(u64, u32, usize)> {
        self.clear();
        self.switch(from.node).receive(PortNo(from.port), data.clone());
        self.settled().await;
        self.arrived(data)
    }

    /// Discards the recorded frames.
    pub(crate) fn clear(&self) {
        for switch in &self.switches {
            switch.ports().iter().for_each(|port| drop(switch.sent(port.number)))
        }
    }

    /// Returns how often `data` came out of each port that has no wire.
    pub(crate) fn arrived(&self, data: &Bytes) -> Vec<(u64, u32, usize)> {
        let mut arrived = Vec::new();
        for switch in &self.switches {
            for port in switch.ports().iter().filter(|port| !switch.is_wired(port.number)) {
                let times = switch.sent(port.number).iter().filter(|sent| *sent == data).count();
                if times > 0 {
                    arrived.push((switch.node().0, port.number.0, times))
                }
            }
        }

        arrived
    }

    /// Returns whether a datagram of `from` reaches `to` exactly once, and no other host.
    pub(crate) async fn reaches(&self, from: Host, to: Host) -> bool {
        self.send(from, &from.udp(1000, to, 2000)).await == [(to.node, to.port, 1)]
    }

    /// Returns the counters of a switch.
    pub(crate) fn counters(&self, node: u64) -> CountersNow {
        self.switch(node).counters().now()
    }
}
