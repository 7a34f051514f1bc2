//! A switch: one Open vSwitch bridge on the userspace datapath.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::lab::Lab;
use super::pace::eventually;

/// Time limit for a switch to connect to a controller that listens: one or two back-offs and the handshake.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// Time limit for a port to get its number.
const PORT_LIMIT: Duration = Duration::from_secs(10);

/// Maximum pause between two attempts to connect. It is short, so the switch soon finds a controller that was
/// restarted.
const BACK_OFF_MS_MAX: u32 = 1_000;

/// Minimum interval at which Open vSwitch writes its status to its database.
const STATUS_INTERVAL_MS_MIN: u32 = 5_000;

/// Time without a message after which the switch sends an echo request to its controller. A [`super::Mirror`]
/// that shows no message for longer than this therefore does not work.
pub(crate) const INACTIVITY_PROBE: Duration = Duration::from_secs(3);

/// All versions, for programs that must be able to talk to a switch no matter which version it is pinned to.
pub(crate) const ANY_VERSION: &str =
    "--protocols=OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15";

/// The OpenFlow versions that a switch offers to its controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// The default of Open vSwitch: up to 1.5, without a version bitmap.
    Default,
    /// Version 1.0 only.
    OpenFlow10,
    /// Version 1.1 only.
    OpenFlow11,
    /// Version 1.2 only.
    OpenFlow12,
    /// Version 1.3 only.
    OpenFlow13,
    /// Version 1.4 only.
    OpenFlow14,
    /// Version 1.5 only.
    OpenFlow15,
}

impl Protocols {
    /// Returns the version that these must negotiate with a controller that supports 1.0 to 1.5, in the form
    /// in which Open vSwitch prints it.
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

/// A switch in a [`Lab`]. It has no flows of its own and uses `fail-mode=secure`, so no packet passes without a
/// controller.
#[derive(Debug)]
pub(crate) struct Bridge<'lab> {
    lab: &'lab Lab,
    name: String,
}

impl<'lab> Bridge<'lab> {
    /// Creates the switch `name` with this datapath id.
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

    /// Creates an access switch. It has no controller. Its hosts send untagged frames, and frames on the wire
    /// to the next switch are tagged.
    pub(crate) fn access(lab: &'lab Lab, name: &str) -> Self {
        lab.succeed(&["ovs-vsctl", "add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev"]);
        Self { lab, name: name.to_owned() }
    }

    /// Returns the laboratory that the switch is in.
    pub(crate) fn lab(&self) -> &'lab Lab {
        self.lab
    }

    /// Returns the name of the switch in Open vSwitch.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Points the switch at a controller on the laboratory's loopback. No controller has to listen there yet.
    pub(crate) fn point_at(&self, port: u16) {
        self.point_at_target(&format!("tcp:127.0.0.1:{port}"))
    }

    /// Points the switch at several controllers, to all of which it connects.
    pub(crate) fn point_at_all(&self, ports: &[u16]) {
        let targets: Vec<String> = ports.iter().map(|port| format!("tcp:127.0.0.1:{port}")).collect();
        self.point_at_targets(&targets.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns the ports of the controllers that have this role, such as `master`.
    pub(crate) fn with_role(&self, role: &str) -> Vec<u16> {
        self.refresh_status();
        let wanted = format!("role={role}");
        let words =
            ["ovs-vsctl", "--bare", "--columns=target", "find", "Controller", &wanted, "is_connected=true"];
        let found = self.lab.succeed(&words);
        let ports = found.split_whitespace().filter_map(|target| target.rsplit_once(':')?.1.parse().ok());
        let mut ports: Vec<u16> = ports.collect();
        ports.sort_unstable();
        ports
    }

    /// Same as [`Bridge::point_at`], with TLS.
    pub(crate) fn point_at_tls(&self, port: u16) {
        self.point_at_target(&format!("ssl:127.0.0.1:{port}"))
    }

    /// Closes the connection to the controller by pointing the switch at a port on which nothing listens. If no
    /// controller were configured, Open vSwitch would remove all flows.
    pub(crate) fn point_at_nothing(&self) {
        self.point_at(1)
    }

    fn point_at_target(&self, target: &str) {
        self.point_at_targets(&[target])
    }

    fn point_at_targets(&self, targets: &[&str]) {
        let name = self.name.as_str();
        let back_off = format!("max_backoff={BACK_OFF_MS_MAX}");
        let probe = format!("inactivity_probe={}", INACTIVITY_PROBE.as_millis());
        self.lab.succeed(&[&["ovs-vsctl", "set-controller", name], targets].concat());
        let ids = self.lab.succeed(&["ovs-vsctl", "get", "Bridge", name, "controller"]);
        for id in ids.split(|c: char| !(c.is_ascii_hexdigit() || c == '-')).filter(|id| !id.is_empty()) {
            let settings = ["connection_mode=out-of-band", &back_off, &probe];
            self.lab.succeed(&[&["ovs-vsctl", "set", "Controller", id], &settings[..]].concat());
        }
    }

    /// Makes the switch write its status to its database, which it does every five seconds otherwise, or as soon as the
    /// update interval changes.
    fn refresh_status(&self) {
        static TURN: AtomicU32 = AtomicU32::new(0);
        let interval = STATUS_INTERVAL_MS_MIN + TURN.fetch_add(1, Ordering::Relaxed) % 1_000;
        let setting = format!("other_config:stats-update-interval={interval}");
        self.lab.succeed(&["ovs-vsctl", "set", "Open_vSwitch", ".", &setting]);
    }

    /// Returns whether the switch reports that it is connected to its controller.
    pub(crate) fn is_connected(&self) -> bool {
        self.refresh_status();
        self.lab.succeed(&["ovs-vsctl", "get", "Controller", &self.name, "is_connected"]).trim() == "true"
    }

    /// Waits until the switch is connected.
    ///
    /// # Panics
    /// Panics if the switch is not connected in time.
    pub(crate) fn wait_connected(&self) {
        let what = format!("switch {} is connected to its controller", self.name);
        eventually(&what, CONNECT_LIMIT, || self.is_connected().then_some(()));
    }

    /// Waits until the switch has noticed that its controller is gone.
    ///
    /// # Panics
    /// Panics if the switch does not notice this in time.
    pub(crate) fn wait_disconnected(&self) {
        let what = format!("switch {} misses its controller", self.name);
        eventually(&what, CONNECT_LIMIT, || (!self.is_connected()).then_some(()));
    }

    /// Adds an interface of the laboratory as port `number`. With `vlan`, the port is an access port of that
    /// VLAN.
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

    /// Connects the ports with these numbers of two switches by a wire.
    pub(crate) fn join(&self, number: u16, other: &Bridge<'_>, other_number: u16) {
        let (near, far) = (format!("{}-{number}", self.name), format!("{}-{other_number}", other.name));
        self.lab.succeed(&["ip", "link", "add", &near, "type", "veth", "peer", "name", &far]);
        for end in [&near, &far] {
            self.lab.succeed(&["ip", "link", "set", end, "up"]);
        }
        self.add_port(&near, number, None);
        other.add_port(&far, other_number, None);
    }

    /// Returns whether the interface of a port has a link.
    pub(crate) fn link_is_up(&self, interface: &str) -> bool {
        self.lab.succeed(&["ovs-vsctl", "get", "Interface", interface, "link_state"]).trim() == "up"
    }

    /// Returns the log lines about messages that the switch has refused since it was created. A correct controller
    /// sends no such messages.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let connections = ["tcp", "ssl"].map(|kind| format!("|{}<->{kind}:", self.name));
        let log = self.lab.switch_log();
        let refusals = log
            .lines()
            .filter(|line| connections.iter().any(|c| line.contains(c)) && line.contains(" error reply to "));
        refusals.map(str::to_owned).collect()
    }

    /// Removes all flows without the controller's knowledge.
    pub(crate) fn delete_flows(&self) {
        self.lab.succeed(&["ovs-ofctl", ANY_VERSION, "del-flows", &self.name]);
    }

    /// Adds a flow, in `ovs-ofctl`'s notation, without the controller's knowledge.
    pub(crate) fn add_flow(&self, flow: &str) {
        self.lab.succeed(&["ovs-ofctl", ANY_VERSION, "add-flow", &self.name, flow]);
    }

    /// Returns all flows in `ovs-ofctl`'s notation, one per line.
    pub(crate) fn flows(&self) -> String {
        self.lab.succeed(&["ovs-ofctl", ANY_VERSION, "dump-flows", &self.name])
    }
}
