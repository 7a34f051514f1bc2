//! A switch: one Open vSwitch bridge on the userspace datapath.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::lab::Lab;
use super::pace::eventually;

/// How long a switch may take to reach a controller that listens: a back-off or two, and the handshake.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// How long a port may take to get its number.
const PORT_LIMIT: Duration = Duration::from_secs(10);

/// Longest pause between two attempts to connect, so that a controller that comes back is found soon.
const BACK_OFF_MS_MAX: u32 = 1_000;

/// Shortest interval at which Open vSwitch writes its status to its database.
const STATUS_INTERVAL_MS_MIN: u32 = 5_000;

/// After this time without a message the switch asks whether its controller is alive, so that a [`super::Mirror`]
/// that shows nothing for longer is known to be blind.
pub(crate) const INACTIVITY_PROBE: Duration = Duration::from_secs(3);

/// Every version, for programs that only need to be understood by a switch whatever it is pinned to.
pub(crate) const ANY_VERSION: &str =
    "--protocols=OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15";

/// The OpenFlow versions a switch offers its controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// What Open vSwitch offers by itself: up to 1.5, with no version bitmap.
    Default,
    /// Version 1.0 and no other.
    OpenFlow10,
    /// Version 1.1 and no other.
    OpenFlow11,
    /// Version 1.2 and no other.
    OpenFlow12,
    /// Version 1.3 and no other.
    OpenFlow13,
    /// Version 1.4 and no other.
    OpenFlow14,
    /// Version 1.5 and no other.
    OpenFlow15,
}

impl Protocols {
    /// The version these must lead to with a controller of 1.0 to 1.5, as Open vSwitch prints it in messages.
    pub(crate) fn agreed(self) -> &'static str {
        match self {
            Self::OpenFlow10 => "OF1.0",
            Self::OpenFlow11 => "OF1.1",
            Self::OpenFlow12 => "OF1.2",
            Self::OpenFlow13 => "OF1.3",
            Self::OpenFlow14 => "OF1.4",
            Self::Default | Self::OpenFlow15 => "OF1.5",
        }
    }
}

/// A switch in a [`Lab`]: without flows of its own, in `fail-mode=secure`, so that nothing passes without a controller.
#[derive(Debug)]
pub(crate) struct Bridge<'lab> {
    lab: &'lab Lab,
    name: String,
}

impl<'lab> Bridge<'lab> {
    /// Makes the switch `name` with this datapath id.
    pub(crate) fn new(lab: &'lab Lab, name: &str, datapath: u64, protocols: Protocols) -> Self {
        let datapath = format!("other_config:datapath-id={datapath:016x}");
        let mut words =
            vec!["ovs-vsctl", "add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev"];
        words.extend(["fail_mode=secure", "other_config:disable-in-band=true", &datapath]);
        match protocols {
            Protocols::Default => {}
            Protocols::OpenFlow10 => words.push("protocols=OpenFlow10"),
            Protocols::OpenFlow11 => words.push("protocols=OpenFlow11"),
            Protocols::OpenFlow12 => words.push("protocols=OpenFlow12"),
            Protocols::OpenFlow13 => words.push("protocols=OpenFlow13"),
            Protocols::OpenFlow14 => words.push("protocols=OpenFlow14"),
            Protocols::OpenFlow15 => words.push("protocols=OpenFlow15"),
        }
        lab.succeed(&words);
        Self { lab, name: name.to_owned() }
    }

    /// Makes an access switch: no controller, untagged hosts, tagged frames on the wire to the next switch.
    pub(crate) fn access(lab: &'lab Lab, name: &str) -> Self {
        lab.succeed(&["ovs-vsctl", "add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev"]);
        Self { lab, name: name.to_owned() }
    }

    /// The laboratory it is in.
    pub(crate) fn lab(&self) -> &'lab Lab {
        self.lab
    }

    /// Its name in Open vSwitch.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Points the switch at a controller on the laboratory's loopback. Whether one listens there does not matter yet.
    pub(crate) fn point_at(&self, port: u16) {
        self.point_at_target(&format!("tcp:127.0.0.1:{port}"))
    }

    /// As [`Bridge::point_at`], with TLS.
    pub(crate) fn point_at_tls(&self, port: u16) {
        self.point_at_target(&format!("ssl:127.0.0.1:{port}"))
    }

    /// Closes the connection to the controller, by pointing the switch at a port on which nobody listens. Without
    /// any controller, Open vSwitch would remove all flows.
    pub(crate) fn point_at_nothing(&self) {
        self.point_at(1)
    }

    fn point_at_target(&self, target: &str) {
        let name = self.name.as_str();
        let back_off = format!("max_backoff={BACK_OFF_MS_MAX}");
        let probe = format!("inactivity_probe={}", INACTIVITY_PROBE.as_millis());
        let mut words = vec!["ovs-vsctl", "set-controller", name, target, "--", "set", "Controller", name];
        words.extend(["connection_mode=out-of-band", &back_off, &probe]);
        self.lab.succeed(&words);
    }

    /// Whether the switch says that it is connected to its controller.
    ///
    /// It says so in its database, every five seconds or as soon as that interval changes: so it is changed.
    pub(crate) fn is_connected(&self) -> bool {
        static TURN: AtomicU32 = AtomicU32::new(0);
        let interval = STATUS_INTERVAL_MS_MIN + TURN.fetch_add(1, Ordering::Relaxed) % 1_000;
        let setting = format!("other_config:stats-update-interval={interval}");
        self.lab.succeed(&["ovs-vsctl", "set", "Open_vSwitch", ".", &setting]);
        self.lab.succeed(&["ovs-vsctl", "get", "Controller", &self.name, "is_connected"]).trim() == "true"
    }

    /// Waits until the switch is connected.
    ///
    /// # Panics
    /// When it is not in time.
    pub(crate) fn wait_connected(&self) {
        let what = format!("switch {} is connected to its controller", self.name);
        eventually(&what, CONNECT_LIMIT, || self.is_connected().then_some(()));
    }

    /// Waits until the switch has noticed that its controller is gone.
    ///
    /// # Panics
    /// When it has not in time.
    pub(crate) fn wait_disconnected(&self) {
        let what = format!("switch {} misses its controller", self.name);
        eventually(&what, CONNECT_LIMIT, || (!self.is_connected()).then_some(()));
    }

    /// Adds an interface of the laboratory as port `number`; `vlan` makes it an access port of that VLAN.
    pub(crate) fn add_port(&self, interface: &str, number: u16, vlan: Option<u16>) {
        let wanted = format!("ofport_request={number}");
        let tag = vlan.map(|vlan| format!("tag={vlan}"));
        let mut words = vec!["ovs-vsctl", "add-port", &self.name, interface];
        words.extend(tag.as_deref());
        words.extend(["--", "set", "Interface", interface, &wanted]);
        self.lab.succeed(&words);
        eventually(&format!("{interface} is port {number} of {}", self.name), PORT_LIMIT, || {
            let given = self.lab.succeed(&["ovs-vsctl", "get", "Interface", interface, "ofport"]);
            (given.trim() == number.to_string()).then_some(())
        });
    }

    /// Joins two switches by a wire between their ports of these numbers.
    pub(crate) fn join(&self, number: u16, other: &Bridge<'_>, other_number: u16) {
        let (near, far) = (format!("{}-{number}", self.name), format!("{}-{other_number}", other.name));
        self.lab.succeed(&["ip", "link", "add", &near, "type", "veth", "peer", "name", &far]);
        for end in [&near, &far] {
            self.lab.succeed(&["ip", "link", "set", end, "up"]);
        }
        self.add_port(&near, number, None);
        other.add_port(&far, other_number, None);
    }

    /// Whether the interface of a port has its link.
    pub(crate) fn link_is_up(&self, interface: &str) -> bool {
        self.lab.succeed(&["ovs-vsctl", "get", "Interface", interface, "link_state"]).trim() == "up"
    }

    /// What the switch has refused of its controller since it was made, in its own words; a sound controller sends
    /// nothing that is refused.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let connections = ["tcp", "ssl"].map(|kind| format!("|{}<->{kind}:", self.name));
        let log = self.lab.switch_log();
        let refusals = log
            .lines()
            .filter(|line| connections.iter().any(|c| line.contains(c)) && line.contains(" error reply to "));
        refusals.map(str::to_owned).collect()
    }

    /// Removes all flows behind the controller's back.
    pub(crate) fn delete_flows(&self) {
        self.lab.succeed(&["ovs-ofctl", ANY_VERSION, "del-flows", &self.name]);
    }

    /// Adds a flow behind the controller's back, in `ovs-ofctl`'s notation.
    pub(crate) fn add_flow(&self, flow: &str) {
        self.lab.succeed(&["ovs-ofctl", ANY_VERSION, "add-flow", &self.name, flow]);
    }

    /// All flows, one a line, in `ovs-ofctl`'s notation.
    pub(crate) fn flows(&self) -> String {
        self.lab.succeed(&["ovs-ofctl", ANY_VERSION, "dump-flows", &self.name])
    }
}
