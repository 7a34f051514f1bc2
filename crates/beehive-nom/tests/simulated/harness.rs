//! A hive on a clock of its own, a simulated switch, and hosts.

use crate::clock::Clock;
use beehive_core::Hive;
use beehive_nom::apps::{Hub, LearningSwitch, NodeController};
use beehive_nom::object::{Flow, Mac, NodeId, PortNo, Tag};
use beehive_nom::sim::{SimulatedSwitch, frame};
use std::sync::Arc;
use std::time::Duration;

/// A host: a port, an address, perhaps in a VLAN.
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

/// Waits until nothing is under way: no timer is due, no switch has anything to say, no driver has anything in its hands,
/// and the hive has done all that came in.
pub(crate) async fn settled(clock: &Clock, hive: &Hive, switches: &[&SimulatedSwitch]) {
    let said = || switches.iter().map(|switch| switch.upcalls_total()).sum::<u64>();
    loop {
        clock.settled().await;
        let before = said();
        quiet(switches).await;
        hive.idle().await;
        // a driver may have held the last answers, which nothing else knows of; what it did with them is done now
        quiet(switches).await;
        // whoever waits for timers has been told of new ones by now, and looks at the clock when it is polled
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
    /// A learning switch with `settings`, over a switch with four ports.
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

    /// Waits until everything that was caused is done.
    pub(crate) async fn settled(&self) {
        settled(&self.clock, &self.hive, &[&self.switch]).await
    }

    /// Moves the clock, a second at a time.
    pub(crate) async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.pass(Duration::from_secs(1));
            self.settled().await
        }
    }

    /// Sends a frame; returns the ports that it went out of.
    pub(crate) async fn send(&self, from: Host, to: Mac) -> Vec<u32> {
        let data = frame(to, from.mac, from.tag, b"hello");
        self.switch.ports().iter().for_each(|port| drop(self.switch.sent(port.number)));
        self.switch.receive(from.port, data.clone());
        self.settled().await;
        let out = |port: PortNo| self.switch.sent(port).contains(&data).then_some(port.0);
        self.switch.ports().iter().filter_map(|port| out(port.number)).collect()
    }

    /// There and back, twice: the second time by flows. Whether it worked.
    pub(crate) async fn ping(&self, a: Host, b: Host) -> bool {
        let mut worked = true;
        for _ in 0..2 {
            worked &= self.send(a, b.mac).await.contains(&b.port.0);
            worked &= self.send(b, a.mac).await.contains(&a.port.0);
        }
        worked
    }

    /// Packets that came up so far.
    pub(crate) fn packet_ins(&self) -> u64 {
        let status = self.hive.status();
        let apps = status.apps.iter().filter(|app| app.name != "node-controller");
        apps.flat_map(|app| &app.handlers)
            .filter(|h| h.name == "packet_in")
            .map(|h| h.messages + h.dropped)
            .sum()
    }

    /// The flows between hosts.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        self.switch.flows()
    }
}
