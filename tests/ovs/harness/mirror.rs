//! Every OpenFlow message between a switch and its controller, written down by the switch.
//!
//! `ovs-vswitchd` copies what it sends to its controller and receives from it to whoever runs `ovs-ofctl snoop`. So
//! the connection under test is the plain one, nothing stands in it, and the reader of the messages is not ours.
//! A copy that showed nothing would prove nothing: silence about packet-ins counts only when other messages were seen
//! in the same time, and the switch asks after an idle controller more often than any test here listens.

use std::time::Duration;

use super::bridge::{ANY_VERSION, Bridge, INACTIVITY_PROBE};
use super::daemon::Daemon;
use super::pace::{eventually, stays};

/// How long the switch may take to begin.
const OPEN_LIMIT: Duration = Duration::from_secs(15);

/// A running copy of one switch's conversation with its controller.
#[derive(Debug)]
pub(crate) struct Mirror {
    daemon: Daemon,
}

/// A place in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

/// A message that went by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// The type as Open vSwitch prints it: `OFPT_PACKET_IN`, `OFPT_ECHO_REQUEST`.
    pub(crate) kind: String,
    /// The version in its header: `OF1.0`, `OF1.3`.
    pub(crate) version: String,
    /// The whole first line.
    pub(crate) line: String,
}

impl Mirror {
    /// Begins to copy, and waits until the switch has said that it does, so that nothing is missed from here on.
    ///
    /// # Panics
    /// When the switch is not connected, or does not begin in time.
    pub(crate) fn open(bridge: &Bridge<'_>) -> Self {
        assert!(bridge.is_connected(), "only a connected switch has a conversation to mirror");
        let lab = bridge.lab();
        let begun = || lab.switch_log().matches("new monitor connection").count();
        let before = begun();
        let words = ["ovs-ofctl", ANY_VERSION, "snoop", bridge.name()];
        let mirror = Self { daemon: lab.daemon(&format!("mirror-{}", bridge.name()), &words) };
        // The first message would do as well, but an idle connection has none for seconds.
        eventually("the switch mirrors its conversation", OPEN_LIMIT, || {
            (begun() > before || !mirror.messages().is_empty()).then_some(())
        });
        mirror
    }

    /// All messages so far.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.daemon.log().lines().filter_map(Message::read).collect()
    }

    /// Where the conversation is now.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.messages().len())
    }

    /// Messages since a mark.
    pub(crate) fn since(&self, mark: Mark) -> Vec<Message> {
        self.messages().split_off(mark.0)
    }

    /// Whether anything written since a mark, packets included, contains `text`.
    pub(crate) fn shows(&self, mark: Mark, text: &str) -> bool {
        let log = self.daemon.log();
        let first = log.lines().enumerate().filter(|(_, line)| Message::read(line).is_some()).nth(mark.0);
        first.is_some_and(|(line, _)| log.lines().skip(line).any(|line| line.contains(text)))
    }

    /// Packet-ins since a mark.
    pub(crate) fn packet_ins_since(&self, mark: Mark) -> usize {
        self.since(mark).iter().filter(|message| message.is_packet_in()).count()
    }

    /// Watches for the whole of `duration`, which must be longer than [`INACTIVITY_PROBE`].
    ///
    /// # Errors
    /// With the first packet-ins that went to the controller, or when nothing at all was seen.
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
    /// Whether a packet goes to the controller with it.
    pub(crate) fn is_packet_in(&self) -> bool {
        self.kind.contains("PACKET_IN")
    }

    /// Reads the first line of a message, `OFPT_ECHO_REQUEST (OF1.3) (xid=0x7): ..`; others are not messages.
    fn read(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        let known = ["OFPT_", "OFPST_", "OFPRAW_", "NXT_", "NXST_", "ONFT_"]
            .iter()
            .any(|prefix| kind.starts_with(prefix));
        if !known || !rest.contains("(xid=") {
            return None;
        }
        // Open vSwitch prints no version where it is 1.0.
        let version = rest.strip_prefix("(OF").and_then(|rest| rest.split_once(')'));
        let version = version.map_or_else(|| "OF1.0".to_owned(), |(number, _)| format!("OF{number}"));
        Some(Self { kind: kind.to_owned(), version, line: line.to_owned() })
    }
}
