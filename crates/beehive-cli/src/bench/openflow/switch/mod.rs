//! An emulated switch's protocol, without I/O: takes bytes from the controller and returns bytes to send to it.

use std::fmt;

use super::frame::{Host, Stamp};
use super::limits;
use super::options::Plan;
use super::tally::Tally;
use super::window::{Sent, Window};
use super::wire::{self, NO_BUFFER, PacketOut, Version, kind};

/// The reason why a connection ended, as a message for the user.
#[derive(Debug)]
pub(super) enum Fault {
    /// The controller sent something other than OpenFlow of the negotiated version.
    NotOpenflow { bytes: Vec<u8>, why: &'static str },
    /// The controller supports none of the switch's versions.
    NoCommonVersion(u8),
    /// The controller refused the switch's HELLO with this text.
    Refused(String),
    /// The controller is sending requests without reading the answers.
    Overflow,
    /// The controller closed the connection.
    Closed,
    /// Reading or writing failed.
    Broken(std::io::Error),
}

impl Fault {
    /// Returns whether the same controller may serve the switch later.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Closed => true,
            // 24 is EMFILE: this process has too few file descriptors
            Self::Broken(error) => error.raw_os_error() != Some(24),
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpenflow { bytes, why } => {
                write!(f, "the controller sent {why}:")?;
                bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
            }
            Self::NoCommonVersion(theirs) => {
                write!(
                    f,
                    "the HELLO of the controller (version byte {theirs}) offers no version that the switches support; try the other --of"
                )
            }
            Self::Refused(words) => write!(f, "the controller refused the HELLO: {words}"),
            Self::Overflow => write!(
                f,
                "the controller sends requests without reading the answers ({} MiB are unsent)",
                limits::UNSENT_BYTES_MAX >> 20
            ),
            Self::Closed => f.write_str("the controller closed the connection"),
            Self::Broken(error) => write!(f, "{error}"),
        }
    }
}

/// The packets sent by a switch on its own initiative after the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Nothing.
    None,
    /// Announcements of the switch's hosts.
    Announcements,
    /// Packets between the switch's hosts.
    Traffic,
}

/// An emulated switch. It completes the handshake, answers requests, and sends the packets of its hosts.
#[derive(Debug)]
pub(super) struct Switch {
    index: u32,
    negotiated: Option<Version>,
    ready: bool,
    /// Whether the controller has installed a table-miss flow.
    table_miss: bool,
    /// Whether the controller has asked for the flows of the switch.
    flows_read: bool,
    /// Time at which the outstanding echo request was sent.
    echo_since_ns: Option<u64>,
    /// Time before which no further echo request is sent.
    echo_next_ns: u64,
    /// Time at which a bystander last sent a packet.
    sent_ns: u64,
    /// Whether the controller has the slave role.
    slave: bool,
    miss_send_bytes: u16,
    window: Window,
    /// Index of the next pair of hosts.
    cursor: usize,
    /// The next host to announce.
    next_host: u32,
    /// Hosts to announce again, each with the number of attempts so far.
    to_repeat: Vec<(u16, u8)>,
    /// Number of hosts whose announcement was answered or abandoned.
    announced: u32,
    /// Whether the controller has answered any announcement.
    heard_announcement: bool,
    /// Number of answered packet-ins since the worker last reset the counter.
    pub(super) answered: u64,
}

/// Maximum number of outstanding announcements per switch.
const ANNOUNCEMENTS_OUTSTANDING_MAX: u32 = 32;

impl Switch {
    /// Returns a switch that has not sent anything yet.
    pub(super) fn new(plan: &Plan, index: u32) -> Self {
        Self {
            index,
            negotiated: None,
            ready: false,
            table_miss: false,
            flows_read: false,
            echo_since_ns: None,
            echo_next_ns: 0,
            sent_ns: 0,
            slave: false,
            miss_send_bytes: 128,
            window: Window::new(plan.window.max(ANNOUNCEMENTS_OUTSTANDING_MAX)),
            // switches start at different pairs
            cursor: (index as usize).wrapping_mul(7_919) % plan.pairs.len().max(1),
            next_host: 0,
            to_repeat: Vec::new(),
            announced: 0,
            heard_announcement: false,
            answered: 0,
        }
    }

    /// Returns the datapath id, which is never 0 and is the same in every run.
    fn datapath(&self) -> u64 {
        u64::from(self.index) + 1
    }

    /// Returns whether the handshake is complete.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Returns the negotiated version.
    pub(super) fn version(&self) -> Option<Version> {
        self.negotiated
    }

    /// Returns whether unmatched packets go to the controller: always in 1.0, and in 1.3 if there is a table-miss flow.
    pub(super) fn has_table_miss(&self) -> bool {
        self.table_miss || self.negotiated == Some(Version::V10)
    }

    /// Returns whether the controller has asked for the flows of the switch.
    pub(super) fn has_flows_read(&self) -> bool {
        self.flows_read
    }

    /// Returns the time since which an echo request has been unanswered, if there is one.
    pub(super) fn echo_since_ns(&self) -> Option<u64> {
        self.echo_since_ns
    }

    /// Returns whether all hosts have been announced, whether or not the controller answered.
    pub(super) fn is_announced(&self, plan: &Plan) -> bool {
        self.announced >= plan.hosts
    }

    /// Returns the number of outstanding packet-ins.
    pub(super) fn outstanding(&self) -> usize {
        self.window.outstanding()
    }

    /// Appends the HELLO of the switch.
    pub(super) fn send_hello(&self, plan: &Plan, out: &mut Vec<u8>) {
        wire::hello(out, plan.newest);
    }

    /// Handles bytes from the controller and appends the replies to `out`. Returns the number of bytes in complete
    /// messages. The caller must pass the remaining bytes again, together with the bytes that follow.
    #[inline]
    pub(super) fn receive(
        &mut self,
        plan: &Plan,
        bytes: &[u8],
        now_ns: u64,
        out: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<usize, Fault> {
        let mut rest = bytes;
        while let Some(header) = rest.first_chunk::<{ wire::HEADER_BYTES }>() {
            let [version, kind, length_high, length_low, ..] = *header;
            let length = usize::from(u16::from_be_bytes([length_high, length_low]));
            // checks the version before waiting for the whole message, which may never be complete
            if self.negotiated.is_none_or(|negotiated| negotiated.byte() != version)
                && !self.is_before_negotiation(version, kind)
            {
                return Err(garbage(rest, "something other than OpenFlow of the negotiated version"));
            }

            if length < wire::HEADER_BYTES {
                return Err(garbage(rest, "a message shorter than its header"));
            }

            let Some((message, after)) = rest.split_at_checked(length) else { break };
            match (kind, self.negotiated) {
                (kind::PACKET_OUT, Some(version)) => {
                    self.packet_out(plan, version, message, now_ns, tally)?
                }
                (kind::FLOW_MOD, Some(version)) => self.flow_mod(plan, version, message, now_ns, tally)?,
                (kind::ECHO_REPLY, Some(_)) => self.echo_reply(now_ns, tally),
                _ => self.request(plan, kind, message, out, tally)?,
            }

            rest = after;
        }

        Ok(bytes.len() - rest.len())
    }

    /// Returns whether the message may have a version other than the negotiated one, which only HELLO and ERROR may.
    fn is_before_negotiation(&self, version: u8, kind: u8) -> bool {
        (1..=6).contains(&version) && matches!(kind, kind::HELLO | kind::ERROR)
    }

    #[inline]
    fn packet_out(
        &mut self,
        plan: &Plan,
        version: Version,
        message: &[u8],
        now_ns: u64,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        tally.counts.packet_outs += 1;
        let Some(packet) = PacketOut::parse(version, message) else {
            return Err(garbage(message, "a malformed PACKET_OUT"));
        };

        let sent = if packet.buffer != NO_BUFFER {
            self.window.answer_buffer(packet.buffer)
        } else {
            match Stamp::read(plan.run, packet.frame) {
                Some(stamp) if stamp.switch == self.index => self.window.answer(stamp.place, stamp.sequence),
                _ => {
                    tally.counts.foreign += 1;
                    return Ok(());
                }
            }
        };

        let Some(sent) = sent else {
            tally.counts.repeated += 1;
            return Ok(());
        };

        self.count_answer(plan, sent, now_ns, tally);
        if sent.attempt == 0 {
            match packet.port {
                Some(0xffff_fffb | 0xffff_fffc) => tally.counts.flooded += 1,
                Some(port) if port < 0xffff_ff00 && port != u32::from(sent.port) => {
                    tally.counts.misdirected += 1
                }
                _ => {}
            }
        }

        Ok(())
    }

    #[inline]
    fn flow_mod(
        &mut self,
        plan: &Plan,
        version: Version,
        message: &[u8],
        now_ns: u64,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        tally.counts.flow_mods += 1;
        let Some(buffer) = wire::flow_mod_buffer(version, message) else {
            return Err(garbage(message, "a malformed FLOW_MOD"));
        };
        if !self.table_miss && version == Version::V13 {
            self.table_miss = wire::adds_table_miss(message);
        }

        if buffer != NO_BUFFER {
            match self.window.answer_buffer(buffer) {
                Some(sent) => self.count_answer(plan, sent, now_ns, tally),
                None => tally.counts.repeated += 1,
            }
        }

        Ok(())
    }

    #[inline]
    /// Counts an answer, either to a measured packet or to an announcement.
    fn count_answer(&mut self, plan: &Plan, sent: Sent, now_ns: u64, tally: &mut Tally) {
        if sent.attempt > 0 {
            self.announced += 1;
            self.heard_announcement = true;
            return;
        }
        let latency_ns = now_ns.saturating_sub(sent.at_ns);
        if plan.is_bystander(self.index) {
            return tally.bystanders.saturating_record(latency_ns);
        }
        self.answered += 1;
        tally.answered(latency_ns);
    }

    /// Appends an echo request if it is time for one and none is outstanding.
    pub(super) fn ask_for_echo(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if let Some(version) = self.negotiated
            && self.ready
            && self.echo_since_ns.is_none()
            && now_ns >= self.echo_next_ns
        {
            self.echo_since_ns = Some(now_ns);
            self.echo_next_ns = now_ns + limits::ECHO_EVERY.as_nanos() as u64;
            wire::message(out, version, kind::ECHO_REQUEST, 0, &[]);
        }
    }

    fn echo_reply(&mut self, now_ns: u64, tally: &mut Tally) {
        if let Some(since_ns) = self.echo_since_ns.take() {
            tally.echoes.saturating_record(now_ns.saturating_sub(since_ns));
        }
    }

    /// Handles every message except packet-outs and flow-mods.
    fn request(
        &mut self,
        plan: &Plan,
        kind: u8,
        message: &[u8],
        out: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        let short = || garbage(message, "a message too short for its type");
        let transaction = wire::u32_at(message, 4).ok_or_else(short)?;
        let Some(version) = self.negotiated else {
            return match kind {
                kind::HELLO => self.negotiate(plan, message, out),
                _ => Err(Fault::Refused(
                    String::from_utf8_lossy(message.get(12..).unwrap_or_default()).into_owned(),
                )),
            };
        };

        match (kind, version) {
            (kind::HELLO, _) => {}
            (kind::ERROR, _) => tally.counts.errors += 1,
            (kind::ECHO_REQUEST, _) => {
                wire::message(
                    out,
                    version,
                    kind::ECHO_REPLY,
                    transaction,
                    message.get(wire::HEADER_BYTES..).unwrap_or_default(),
                );
            }
            (kind::FEATURES_REQUEST, _) => {
                let buffers = if plan.buffers { plan.window } else { 0 };
                wire::features_reply(out, version, transaction, self.datapath(), plan.ports, buffers);
                self.ready = true;
            }
            (kind::GET_CONFIG_REQUEST, _) => {
                let [high, low] = self.miss_send_bytes.to_be_bytes();
                wire::message(out, version, kind::GET_CONFIG_REPLY, transaction, &[0, 0, high, low]);
            }
            (kind::SET_CONFIG, _) => self.miss_send_bytes = wire::u16_at(message, 10).ok_or_else(short)?,
            (kind::V10_STATS_REQUEST, Version::V10) | (kind::V13_MULTIPART_REQUEST, Version::V13) => {
                self.flows_read |= wire::asks_for_flows(message);
                wire::statistics_reply(out, version, message, self.datapath(), plan.ports)
                    .ok_or_else(short)?;
            }
            (kind::V10_BARRIER_REQUEST, Version::V10) => {
                wire::message(out, version, kind::V10_BARRIER_REPLY, transaction, &[])
            }
            (kind::V13_BARRIER_REQUEST, Version::V13) => {
                wire::message(out, version, kind::V13_BARRIER_REPLY, transaction, &[])
            }
            (kind::V10_QUEUE_CONFIG_REQUEST, Version::V10) => {
                let [high, low] = wire::u16_at(message, 8).ok_or_else(short)?.to_be_bytes();
                wire::message(
                    out,
                    version,
                    kind::V10_QUEUE_CONFIG_REPLY,
                    transaction,
                    &[high, low, 0, 0, 0, 0, 0, 0],
                );
            }
            (kind::V13_QUEUE_CONFIG_REQUEST, Version::V13) => {
                let [a, b, c, d] = wire::u32_at(message, 8).ok_or_else(short)?.to_be_bytes();
                wire::message(
                    out,
                    version,
                    kind::V13_QUEUE_CONFIG_REPLY,
                    transaction,
                    &[a, b, c, d, 0, 0, 0, 0],
                );
            }
            (kind::V13_ROLE_REQUEST, Version::V13) => {
                let role = wire::u32_at(message, 8).ok_or_else(short)?;
                if role != 0 {
                    self.slave = role == wire::ROLE_SLAVE;
                }
                let mut body = *message.get(8..).and_then(|b| b.first_chunk::<16>()).ok_or_else(short)?;
                if role == 0 {
                    body[3] = if self.slave { wire::ROLE_SLAVE as u8 } else { 1 }; // request for the current role; 1 is EQUAL
                }
                wire::message(out, version, kind::V13_ROLE_REPLY, transaction, &body);
            }
            (kind::V13_ASYNC_REQUEST, Version::V13) => {
                // the masks of packet-in, port-status and flow-removed; for each of them, the mask for the roles
                // master and equal, then the mask for the role slave
                let masks: [u32; 6] = [0x7, 0, 0x7, 0x7, 0xf, 0];
                let body: Vec<u8> = masks.iter().flat_map(|mask| mask.to_be_bytes()).collect();
                wire::message(out, version, kind::V13_ASYNC_REPLY, transaction, &body);
            }
            (kind::EXPERIMENTER, Version::V10) if wire::u64_at(message, 8) == Some(NICIRA_ROLE_REQUEST) => {
                let role = wire::u32_at(message, 16).ok_or_else(short)?;
                self.slave = role == 2;
                let body = [(NICIRA_ROLE_REQUEST + 1).to_be_bytes().as_slice(), &role.to_be_bytes()].concat();
                wire::message(out, version, kind::EXPERIMENTER, transaction, &body);
            }
            // group, port, table and meter changes need no reply; their type numbers differ between the versions
            (15, _) | (16 | 17 | 28 | 29, Version::V13) => {}
            _ => tally.counts.unknown += 1,
        }

        Ok(())
    }

    /// Chooses the version based on the controller's HELLO, or answers with an error.
    fn negotiate(&mut self, plan: &Plan, hello: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.negotiated = wire::negotiate(plan.newest, hello);
        if self.negotiated.is_some() {
            return Ok(());
        }
        // error type HELLO_FAILED, code INCOMPATIBLE
        wire::message(out, plan.newest, kind::ERROR, 1, b"\0\0\0\0this switch speaks other versions");
        Err(Fault::NoCommonVersion(wire::u8_at(hello, 0).unwrap_or_default()))
    }

    /// Appends packet-ins until the window is full; for a full socket, at most [`limits::FULL_BURST`] of them.
    #[inline]
    pub(super) fn offer(&mut self, plan: &Plan, offer: Load, now_ns: u64, out: &mut Vec<u8>) {
        let Some(version) = self.negotiated else { return };
        if !self.ready || self.slave {
            return;
        }

        match offer {
            Load::None => {}
            Load::Announcements => self.announce(plan, version, now_ns, out),
            Load::Traffic => self.send_traffic(plan, version, now_ns, out),
        }
    }

    #[inline]
    fn send_traffic(&mut self, plan: &Plan, version: Version, now_ns: u64, out: &mut Vec<u8>) {
        let template = plan.unicast(version);
        let mut room = (plan.window as usize).saturating_sub(self.window.outstanding());
        if plan.is_bystander(self.index) {
            let is_due = now_ns.saturating_sub(self.sent_ns) >= limits::BYSTANDER_EVERY.as_nanos() as u64;
            room = usize::from(is_due && self.window.outstanding() == 0);
        } else if plan.is_full {
            room = room.min(limits::FULL_BURST as usize);
        }
        while room > 0
            && let Some(&(source, destination)) = plan.pairs.get(self.cursor)
        {
            room -= 1;
            self.cursor = if self.cursor + 1 == plan.pairs.len() { 0 } else { self.cursor + 1 };
            let sent = Sent { at_ns: now_ns, host: source, port: plan.port(destination), attempt: 0 };
            let Some((stamp, buffer)) = self.stamp(plan, sent) else { break };
            self.sent_ns = now_ns;
            let port = u32::from(plan.port(source));
            template.append_unicast(
                out,
                &stamp,
                buffer,
                port,
                self.host(plan, source),
                self.host(plan, destination),
            );
        }
    }

    fn announce(&mut self, plan: &Plan, version: Version, now_ns: u64, out: &mut Vec<u8>) {
        while self.window.outstanding() < ANNOUNCEMENTS_OUTSTANDING_MAX as usize {
            let (host, attempt) = match self.to_repeat.pop() {
                Some((host, attempts)) => (host, attempts + 1),
                None if self.next_host < plan.hosts => {
                    self.next_host += 1;
                    ((self.next_host - 1) as u16, 1)
                }
                None => break,
            };

            let Some((stamp, buffer)) = self.stamp(plan, Sent { at_ns: now_ns, host, port: 0, attempt })
            else {
                break;
            };

            let port = u32::from(plan.port(host));
            plan.announcement(version).append_announcement(out, &stamp, buffer, port, self.host(plan, host));
        }
    }

    #[inline]
    fn stamp(&mut self, plan: &Plan, sent: Sent) -> Option<(Stamp, u32)> {
        let (place, sequence) = self.window.take(sent)?;
        let buffer = if plan.buffers { Window::buffer(place, sequence) } else { NO_BUFFER };
        Some((Stamp { run: plan.run, switch: self.index, place, sequence }, buffer))
    }

    #[inline]
    fn host(&self, plan: &Plan, number: u16) -> Host {
        Host { switch: self.index, number, hosts: plan.hosts }
    }

    /// Removes packet-ins sent at or before `oldest_ns`. Schedules lost announcements to be repeated, unless an earlier
    /// host was given up and the controller has never answered an announcement.
    pub(super) fn expire(&mut self, plan: &Plan, oldest_ns: u64, tally: &mut Tally) {
        let is_bystander = plan.is_bystander(self.index);
        let Self { window, to_repeat, announced, heard_announcement, .. } = self;
        let attempts_max = if *heard_announcement || *announced == 0 { limits::ANNOUNCEMENTS_MAX } else { 1 };
        window.expire(oldest_ns, |sent| match sent.attempt {
            0 if is_bystander => tally.counts.bystanders_unanswered += 1,
            0 => tally.counts.unanswered += 1,
            attempt if attempt < attempts_max => to_repeat.push((sent.host, attempt)),
            _ => *announced += 1,
        });
    }
}

/// The Nicira extension for roles in OpenFlow 1.0: vendor 0x00002320, subtype 10. The reply has subtype 11.
const NICIRA_ROLE_REQUEST: u64 = 0x0000_2320_0000_000a;

fn garbage(bytes: &[u8], why: &'static str) -> Fault {
    Fault::NotOpenflow { bytes: bytes.iter().take(16).copied().collect(), why }
}

#[cfg(test)]
mod tests;
