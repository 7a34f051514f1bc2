//! An end host: a network namespace that is connected to a switch by one wire.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::bridge::Bridge;
use super::lab::Lab;
use super::ping::Ping;
use super::talk::Talk;

/// Name of the host's only interface inside the host.
const INTERFACE: &str = "eth0";

/// Time limit for sending one frame.
const BROADCAST_LIMIT: Duration = Duration::from_secs(10);

/// A host. By default it sends nothing by itself (no IPv6 messages, no gratuitous ARP), so all its packets
/// are caused by the test.
#[derive(Debug)]
pub(crate) struct Host<'lab> {
    lab: &'lab Lab,
    name: String,
}

impl<'lab> Host<'lab> {
    /// Creates a host with IPv4 only, connects it to port `number` of `bridge`, and brings its interface up.
    /// The host has this Ethernet address, and no IP address yet.
    pub(crate) fn wire(bridge: &Bridge<'lab>, name: &str, number: u16, ethernet: &str) -> Self {
        Self::plug(bridge, name, number, ethernet, None, false)
    }

    /// Same as [`Host::wire`], on an access port of a VLAN.
    pub(crate) fn wire_to_vlan(
        bridge: &Bridge<'lab>,
        name: &str,
        number: u16,
        ethernet: &str,
        vlan: u16,
    ) -> Self {
        Self::plug(bridge, name, number, ethernet, Some(vlan), false)
    }

    /// Same as [`Host::wire`], but with IPv6, including the messages that IPv6 sends by itself.
    pub(crate) fn wire_with_ipv6(bridge: &Bridge<'lab>, name: &str, number: u16, ethernet: &str) -> Self {
        Self::plug(bridge, name, number, ethernet, None, true)
    }

    fn plug(
        bridge: &Bridge<'lab>,
        name: &str,
        number: u16,
        ethernet: &str,
        vlan: Option<u16>,
        ipv6: bool,
    ) -> Self {
        let host = Self { lab: bridge.lab(), name: name.to_owned() };
        let far = host.switch_interface();
        host.lab.succeed(&["ip", "netns", "add", name]);
        for scope in ["all", "default"] {
            let setting = format!("echo {} > /proc/sys/net/ipv6/conf/{scope}/disable_ipv6", u8::from(!ipv6));
            host.succeed(&["sh", "-c", &setting]);
        }
        let mut words = vec!["ip", "link", "add", &far, "type", "veth", "peer", "name", INTERFACE];
        words.extend(["address", ethernet, "netns", name]);
        host.lab.succeed(&words);
        host.lab.succeed(&["ip", "link", "set", &far, "up"]);
        bridge.add_port(&far, number, vlan);
        host.succeed(&["ip", "link", "set", "lo", "up"]);
        host.succeed(&["ip", "link", "set", INTERFACE, "up"]);
        host
    }

    /// Gives the host an address such as `10.0.0.1/24`. The host sends nothing because of this.
    pub(crate) fn add_address(&self, address: &str) {
        let mut words = vec!["ip", "address", "add", address, "dev", INTERFACE];
        if address.contains(':') {
            words.push("nodad");
        }
        self.succeed(&words);
    }

    /// Removes all addresses of the host and gives it another Ethernet address while the link stays up, as if the
    /// previous host had left.
    pub(crate) fn vacate(&self, ethernet: &str) {
        self.succeed(&["ip", "address", "flush", "dev", INTERFACE]);
        self.succeed(&["ip", "link", "set", INTERFACE, "address", ethernet]);
    }

    /// Takes the link down, as if the cable had been pulled.
    pub(crate) fn unplug(&self) {
        self.succeed(&["ip", "link", "set", INTERFACE, "down"]);
    }

    /// Adds a permanent neighbor entry for `address` so that the host never sends an ARP request for it.
    pub(crate) fn know(&self, address: IpAddr, ethernet: &str) {
        let address = address.to_string();
        let mut words = vec!["ip", "neighbor", "replace", &address, "lladdr", ethernet];
        words.extend(["dev", INTERFACE, "nud", "permanent"]);
        self.succeed(&words);
    }

    /// Removes the neighbor entries that the host has learned so that it must send ARP requests again.
    pub(crate) fn forget_neighbors(&self) {
        self.succeed(&["ip", "neighbor", "flush", "all"]);
    }

    /// Prepares a ping from this host to `address`.
    pub(crate) fn ping(&self, address: IpAddr) -> Ping<'_, 'lab> {
        Ping::new(self, address)
    }

    /// Starts to ping `address` every `interval_s` seconds.
    pub(crate) fn talk_to(&self, address: IpAddr, interval_s: &str) -> Talk {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let to = address.to_string();
        // each process has a log of its own
        let name = format!("{}-talks-to-{to}-{}", self.name, NEXT.fetch_add(1, Ordering::Relaxed));
        Talk::new(self.lab.daemon(&name, &self.words(&Talk::words(&to, interval_s))), &self.name, address)
    }

    /// Sends one broadcast frame: an echo request to the broadcast address `to`, which no host answers.
    pub(crate) fn broadcast(&self, to: &str) {
        let words = ["ping", "-n", "-q", "-b", "-c", "1", "-W", "0.01", to];
        // the command fails, because no host answers
        let _ = self.lab.run(&self.words(&words), BROADCAST_LIMIT);
    }

    /// Returns the number of broadcast packets that the host has received so far.
    pub(crate) fn received_broadcasts(&self) -> u64 {
        let table = self.succeed(&["cat", "/proc/net/netstat"]);
        let mut lines = table.lines().filter_map(|line| line.strip_prefix("IpExt: "));
        let (names, counts) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let column = names.split(' ').position(|name| name == "InBcastPkts");
        column
            .and_then(|column| counts.split(' ').nth(column)?.parse().ok())
            .unwrap_or_else(|| panic!("no count of broadcasts in:\n{table}"))
    }

    /// Returns the number of frames that the host has received so far.
    pub(crate) fn received_frames(&self) -> u64 {
        self.counter(1)
    }

    /// Returns the number of frames that the host has sent so far.
    pub(crate) fn sent_frames(&self) -> u64 {
        self.counter(9)
    }

    /// Returns the name of the interface at the switch's end of the wire.
    pub(crate) fn switch_interface(&self) -> String {
        format!("to-{}", self.name)
    }

    /// Returns the laboratory that the host is in.
    pub(crate) fn lab(&self) -> &'lab Lab {
        self.lab
    }

    /// Returns the command `words` with a prefix that makes the laboratory run it in this host.
    pub(crate) fn words<'words>(&'words self, words: &[&'words str]) -> Vec<&'words str> {
        [&["ip", "netns", "exec", self.name.as_str()], words].concat()
    }

    fn succeed(&self, words: &[&str]) -> String {
        self.lab.succeed(&self.words(words))
    }

    /// Returns the value in a column of the kernel's interface counters.
    fn counter(&self, column: usize) -> u64 {
        let table = self.succeed(&["cat", "/proc/net/dev"]);
        let line =
            table.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().nth(column)?.parse().ok())
            .unwrap_or_else(|| panic!("no counter {column} for {INTERFACE} in:\n{table}"))
    }
}
