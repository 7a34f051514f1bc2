//! An end host: a network namespace with one wire to a switch.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::bridge::Bridge;
use super::lab::Lab;
use super::ping::Ping;
use super::talk::Talk;

/// The host's only interface, as the host calls it.
const INTERFACE: &str = "eth0";

/// How long sending one frame may take.
const BROADCAST_LIMIT: Duration = Duration::from_secs(10);

/// A host. It is silent by itself: no IPv6 chatter, no gratuitous ARP; what it sends, a test made it send.
#[derive(Debug)]
pub(crate) struct Host<'lab> {
    lab: &'lab Lab,
    name: String,
}

impl<'lab> Host<'lab> {
    /// A host with IPv4 only, wired to port `number` of `bridge`, up, with this Ethernet address and no other.
    pub(crate) fn wire(bridge: &Bridge<'lab>, name: &str, number: u16, ethernet: &str) -> Self {
        Self::plug(bridge, name, number, ethernet, None, false)
    }

    /// As [`Host::wire`], on an access port of a VLAN.
    pub(crate) fn wire_to_vlan(
        bridge: &Bridge<'lab>,
        name: &str,
        number: u16,
        ethernet: &str,
        vlan: u16,
    ) -> Self {
        Self::plug(bridge, name, number, ethernet, Some(vlan), false)
    }

    /// As [`Host::wire`], with IPv6 and all that it sends unasked.
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

    /// Gives the host an address such as `10.0.0.1/24`; nothing is sent for it.
    pub(crate) fn add_address(&self, address: &str) {
        let mut words = vec!["ip", "address", "add", address, "dev", INTERFACE];
        if address.contains(':') {
            words.push("nodad");
        }
        self.succeed(&words);
    }

    /// Takes all its addresses and gives it another Ethernet address, while the link stays up: who was here is gone.
    pub(crate) fn vacate(&self, ethernet: &str) {
        self.succeed(&["ip", "address", "flush", "dev", INTERFACE]);
        self.succeed(&["ip", "link", "set", INTERFACE, "address", ethernet]);
    }

    /// Takes the link down, as pulling the plug does.
    pub(crate) fn unplug(&self) {
        self.succeed(&["ip", "link", "set", INTERFACE, "down"]);
    }

    /// Tells the host where `address` is, once and for all: it never asks by ARP again.
    pub(crate) fn know(&self, address: IpAddr, ethernet: &str) {
        let address = address.to_string();
        let mut words = vec!["ip", "neighbor", "replace", &address, "lladdr", ethernet];
        words.extend(["dev", INTERFACE, "nud", "permanent"]);
        self.succeed(&words);
    }

    /// Forgets whatever the host has found out about its neighbors, so that it must ask again.
    pub(crate) fn forget_neighbors(&self) {
        self.succeed(&["ip", "neighbor", "flush", "all"]);
    }

    /// Prepares to ping `address` from here.
    pub(crate) fn ping(&self, address: IpAddr) -> Ping<'_, 'lab> {
        Ping::new(self, address)
    }

    /// Begins to ping `address`, each `interval_s` seconds.
    pub(crate) fn talk_to(&self, address: IpAddr, interval_s: &str) -> Talk {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let to = address.to_string();
        // each has a log of its own
        let name = format!("{}-talks-to-{to}-{}", self.name, NEXT.fetch_add(1, Ordering::Relaxed));
        Talk::new(self.lab.daemon(&name, &self.words(&Talk::words(&to, interval_s))), &self.name, address)
    }

    /// Sends one frame to everybody: an echo request to the broadcast address `to`, which nobody answers.
    pub(crate) fn broadcast(&self, to: &str) {
        let words = ["ping", "-n", "-q", "-b", "-c", "1", "-W", "0.01", to];
        // it fails for want of an answer
        let _ = self.lab.run(&self.words(&words), BROADCAST_LIMIT);
    }

    /// Packets to everybody the host has received so far.
    pub(crate) fn received_broadcasts(&self) -> u64 {
        let table = self.succeed(&["cat", "/proc/net/netstat"]);
        let mut lines = table.lines().filter_map(|line| line.strip_prefix("IpExt: "));
        let (names, counts) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let column = names.split(' ').position(|name| name == "InBcastPkts");
        column
            .and_then(|column| counts.split(' ').nth(column)?.parse().ok())
            .unwrap_or_else(|| panic!("no count of broadcasts in:\n{table}"))
    }

    /// Frames the host has received so far.
    pub(crate) fn received_frames(&self) -> u64 {
        self.counter(1)
    }

    /// Frames the host has sent so far.
    pub(crate) fn sent_frames(&self) -> u64 {
        self.counter(9)
    }

    /// What the switch's end of the wire is called.
    pub(crate) fn switch_interface(&self) -> String {
        format!("to-{}", self.name)
    }

    /// The laboratory it is in.
    pub(crate) fn lab(&self) -> &'lab Lab {
        self.lab
    }

    /// `words` with the prefix that makes the laboratory run them in this host.
    pub(crate) fn words<'words>(&'words self, words: &[&'words str]) -> Vec<&'words str> {
        [&["ip", "netns", "exec", self.name.as_str()], words].concat()
    }

    fn succeed(&self, words: &[&str]) -> String {
        self.lab.succeed(&self.words(words))
    }

    /// A column of the kernel's interface counters.
    fn counter(&self, column: usize) -> u64 {
        let table = self.succeed(&["cat", "/proc/net/dev"]);
        let line =
            table.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().nth(column)?.parse().ok())
            .unwrap_or_else(|| panic!("no counter {column} for {INTERFACE} in:\n{table}"))
    }
}
