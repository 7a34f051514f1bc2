//! A hive on a clock of its own, a simulated switch, and hosts.

use beehive_core::seams::{BoxFuture, Platform};
use beehive_core::{Hive, Time};
use beehive_nom::apps::{Hub, LearningSwitch, NodeController};
use beehive_nom::object::{Flow, Mac, NodeId, PortNo, Tag};
use beehive_nom::sim::{SimulatedSwitch, frame};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A platform whose clock moves when the test says so.
pub(crate) struct Clock {
    now: watch::Sender<Time>,
    runtime: tokio::runtime::Handle,
}

impl Platform for Clock {
    fn now(&self) -> Time {
        *self.now.borrow()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        let mut now = self.now.subscribe();
        let until = *now.borrow() + duration;
        Box::pin(async move {
            // the clock lives as long as the test
            let _ = now.wait_for(|now| *now >= until).await;
        })
    }
    fn spawn(&self, task: BoxFuture<()>) {
        self.runtime.spawn(task);
    }
    fn spawn_blocking(&self, task: Box<dyn FnOnce() + Send>) {
        self.runtime.spawn_blocking(task);
    }
    fn spawn_thread(&self, _: &str, _: Box<dyn FnOnce() + Send>) {
        // handlers do not block here, so nothing has to watch for that
    }
    fn random(&self) -> u64 {
        7
    }
    fn workers(&self) -> usize {
        2
    }
}

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
        let runtime = tokio::runtime::Handle::current();
        let (now, _) = watch::channel(Time::ZERO + Duration::from_secs(1_000_000));
        let clock = Arc::new(Clock { now, runtime });
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
        let mut quiet = 0;
        let mut before = u64::MAX;
        while quiet < 5 {
            for _ in 0..20 {
                tokio::task::yield_now().await
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            let status = self.hive.status();
            let handled = status.apps.iter().flat_map(|app| &app.handlers).map(|h| h.messages).sum();
            quiet = if handled == before { quiet + 1 } else { 0 };
            before = handled;
        }
    }

    /// Moves the clock, a second at a time.
    pub(crate) async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.now.send_modify(|now| *now = *now + Duration::from_secs(1));
            for _ in 0..20 {
                tokio::task::yield_now().await
            }
        }
        self.settled().await
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
