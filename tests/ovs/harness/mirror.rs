//! A record of every OpenFlow message between a switch and its controller, made by the switch.
//!
//! `ovs-vswitchd` copies the messages that it exchanges with its controller to `ovs-ofctl snoop`. The connection
//! under test is therefore direct, without a proxy, and the messages are decoded by a program that is independent of
//! our codec. An empty copy proves nothing: the absence of packet-ins counts only if other messages were seen in the
//! same period. This is certain, because the switch sends echo requests on an idle connection more often than the
//! shortest period that a test watches.

use std::time::Duration;

use super::bridge::{ANY_VERSION, Bridge, INACTIVITY_PROBE};
use super::daemon::Daemon;
use super::pace::{eventually, stays};

/// Time limit for the switch to start the copy.
const OPEN_LIMIT: Duration = Duration::from_secs(15);

/// A running copy of the messages between one switch and its controller.
#[derive(Debug)]
pub(crate) struct Mirror {
    daemon: Daemon,
}

/// A position in the sequence of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

/// A copied message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// The type as Open vSwitch prints it, such as `OFPT_PACKET_IN` or `OFPT_ECHO_REQUEST`.
    pub(crate) kind: String,
    /// The version in the message's header, such as `OF1.0` or `OF1.3`.
    pub(crate) version: String,
    /// The whole first line of the printed message.
    pub(crate) line: String,
}

impl Mirror {
    /// Starts the copy, and waits until the switch has confirmed that it copies messages. No message is missed
    /// from then on.
    ///
    /// # Panics
    /// Panics if the switch is not connected, or does not start the copy in time.
    pub(crate) fn open(bridge: &Bridge<'_>) -> Self {
        assert!(bridge.is_connected(), "only a connected switch has a conversation to mirror");
        let lab = bridge.lab();
        let begun = || lab.switch_log().matches("new monitor connection").count();
        let before = begun();
        let words = ["ovs-ofctl", ANY_VERSION, "snoop", bridge.name()];
        let mirror = Self { daemon: lab.daemon(&format!("mirror-{}", bridge.name()), &words) };
        // The first message would also confirm this, but an idle connection has no message for several
        // seconds.
        eventually("the switch mirrors its conversation", OPEN_LIMIT, || {
            (begun() > before || !mirror.messages().is_empty()).then_some(())
        });
        mirror
    }

    /// Returns all messages so far.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.daemon.log().lines().filter_map(Message::read).collect()
    }

    /// Returns the current position in the sequence of messages.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.messages().len())
    }

    /// Returns the messages since a mark.
    pub(crate) fn since(&self, mark: Mark) -> Vec<Message> {
        self.messages().split_off(mark.0)
    }

    /// Returns whether the output since a mark, including printed packets, contains `text`.
    pub(crate) fn shows(&self, mark: Mark, text: &str) -> bool {
        let log = self.daemon.log();
        let first = log.lines().enumerate().filter(|(_, line)| Message::read(line).is_some()).nth(mark.0);
        first.is_some_and(|(line, _)| log.lines().skip(line).any(|line| line.contains(text)))
    }

    /// Returns the number of packet-ins since a mark.
    pub(crate) fn packet_ins_since(&self, mark: Mark) -> usize {
        self.since(mark).iter().filter(|message| message.is_packet_in()).count()
    }

    /// Checks for `duration`, which must be longer than [`INACTIVITY_PROBE`], that no packet-in is sent.
    ///
    /// # Errors
    /// Returns an error that contains the first packet-ins, or an error if no message at all was seen.
    pub(crate) fn no_packet_in_for(&self, duration: Duration) -> Result<(), String> {
        assert!(duration > INACTIVITY_PROBE, "an idle connection would look like a broken mirror");
        let mark = self.mark();
        stays(duration, || {
            let seen: Vec<_> = self.since(mark).into_iter().filter(Message::is_packet_in).collect();
            if seen.is_empty() {
                Ok(())
            } else {
                Err(format!("packet-ins reached the controller: {seen:#?}"))
            }
        })?;
        if self.since(mark).is_empty() {
            return Err("the mirror is blind: not even a keep-alive was seen".to_owned());
        }
        Ok(())
    }
}

impl Message {
    /// Returns whether the message is a packet-in.
    pub(crate) fn is_packet_in(&self) -> bool {
        self.kind.contains("PACKET_IN")
    }

    /// Parses the first line of a printed message, such as `OFPT_ECHO_REQUEST (OF1.3) (xid=0x7): ..`. Returns
    /// `None` for all other lines.
    fn read(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        let known = ["OFPT_", "OFPST_", "OFPRAW_", "NXT_", "NXST_", "ONFT_"]
            .iter()
            .any(|prefix| kind.starts_with(prefix));
        if !known || !rest.contains("(xid=") {
            return None;
        }
        // Open vSwitch prints no version for messages of 1.0.
        let version = rest.strip_prefix("(OF").and_then(|rest| rest.split_once(')'));
        let version = version.map_or_else(|| "OF1.0".to_owned(), |(number, _)| format!("OF{number}"));
        Some(Self { kind: kind.to_owned(), version, line: line.to_owned() })
    }
}
