//! A hive on its own clock, a simulated switch, and hosts.

use crate::clock::Clock;
use beehive_core::Hive;
use beehive_nom::apps::{Hub, LearningSwitch, NodeController};
use beehive_nom::object::{Flow, Mac, NodeId, PortNo, Tag};
use beehive_nom::sim::{SimulatedSwitch, frame};
use std::sync::Arc;
use std::time::Duration;

/// A host: a port, an address, and optionally a VLAN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) port: PortNo,
    pub(crate) mac: Mac,
    pub(crate) tag: Tag,
}

pub(crate) fn host(port: u32, number: u8) -> Host {
    Host { port: PortNo(port), mac: Mac([2, 0, 0, 0, 0, number]), tag: Tag::Untagged }
}

pub(crate) struct Lab {
    clock: Arc<Clock>,
    pub(crate) hive: Hive,
    pub(crate) switch: SimulatedSwitch,
}

/// Waits until no work is in flight: no timer is due, no switch has messages for its driver, no driver is
/// busy, and the hive is idle.
pub(crate) async fn settled(clock: &Clock, hive: &Hive, switches: &[&SimulatedSwitch]) {
    let said = || switches.iter().map(|switch| switch.upcalls_total()).sum::<u64>();
    loop {
        clock.settled().await;
        let before = said();
        quiet(switches).await;
        hive.idle().await;

        // a driver may have handled the last answers, which may have caused new messages
        quiet(switches).await;
        // tasks that wait for timers were notified of new timers, and check the clock when they are polled
        for _ in 0..4 {
            tokio::task::yield_now().await
        }

        if said() == before && clock.is_settled() {
            return;
        }
    }
}

async fn quiet(switches: &[&SimulatedSwitch]) {
    for switch in switches {
        switch.quiet().await
    }
}

pub(crate) enum Deciding {
    LearningSwitch,
    Hub,
}

impl Lab {
    /// Starts a learning switch with `settings` and a switch with four ports.
    pub(crate) async fn learning(settings: &str, knows_owners: bool) -> Lab {
        Lab::new(Deciding::LearningSwitch, settings, knows_owners).await
    }

    pub(crate) async fn new(deciding: Deciding, settings: &str, knows_owners: bool) -> Lab {
        let clock = Clock::start();
        let builder = Hive::builder().platform(clock.clone()).app::<NodeController>();
        let builder = match deciding {
            Deciding::LearningSwitch => builder.app::<LearningSwitch>(),
            Deciding::Hub => builder.app::<Hub>(),
        };
        let hive = builder.settings(settings.parse().expect("settings")).start().expect("starts");
        let switch = SimulatedSwitch::new(&hive, NodeId(1), 4, knows_owners);

        switch.connect();
        let lab = Lab { clock, hive, switch };
        lab.settled().await;
        lab
    }

    /// Waits until all work is done.
    pub(crate) async fn settled(&self) {
        settled(&self.clock, &self.hive, &[&self.switch]).await
    }

    /// Advances the clock, one second at a time.
    pub(crate) async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.pass(Duration::from_secs(1));
            self.settled().await
        }
    }

    /// Sends a frame. Returns the ports that it was sent out of.
    pub(crate) async fn send(&self, from: Host, to: Mac) -> Vec<u32> {
        let data = frame(to, from.mac, from.tag, b"hello");
        self.switch.ports().iter().for_each(|port| drop(self.switch.sent(port.number)));
        self.switch.receive(from.port, data.clone());
        self.settled().await;
        let out = |port: PortNo| self.switch.sent(port).contains(&data).then_some(port.0);
        self.switch.ports().iter().filter_map(|port| out(port.number)).collect()
    }

    /// Sends frames in both directions, twice. The second time, flows forward the frames. Returns whether all
    /// frames arrived.
    pub(crate) async fn ping(&self, a: Host, b: Host) -> bool {
        let mut worked = true;
        for _ in 0..2 {
            worked &= self.send(a, b.mac).await.contains(&b.port.0);
            worked &= self.send(b, a.mac).await.contains(&a.port.0);
        }
        worked
    }

    /// Returns the number of packet-ins so far.
    pub(crate) fn packet_ins(&self) -> u64 {
        let status = self.hive.status();
        let apps = status.apps.iter().filter(|app| app.name != "node-controller");
        apps.flat_map(|app| &app.handlers)
            .filter(|h| h.name == "packet_in")
            .map(|h| h.messages + h.dropped)
            .sum()
    }

    /// Returns the flows between hosts.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        self.switch.flows()
    }
}
