//! Displays entries of flow statistics.

use core::fmt;

use super::action_show::{show_actions, show_instructions};
use super::flow::show_flow;
use crate::message::{Actions, FlowEntry, FlowMod, FlowModCommand, Instructions};
use crate::version::Version;

/// Displays the actions of a flow in 1.0, or its instructions from 1.1 on. Displays `drop` if there are none.
///
/// Flow-mods and entries of flow statistics have both fields; their version determines which one is used.
/// [`show_entry`] displays a complete entry. A malformed list ends with the error in angle brackets.
pub fn show_program<'a>(
    actions: &Actions<'a>,
    instructions: &Instructions<'a>,
    version: Version,
) -> impl fmt::Display + use<'a> {
    ShownProgram { actions: *actions, instructions: *instructions, version }
}

struct ShownProgram<'a> {
    actions: Actions<'a>,
    instructions: Instructions<'a>,
    version: Version,
}

impl fmt::Display for ShownProgram<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Version::V1_0 => write!(formatter, "{}", show_actions(&self.actions, self.version)),
            _ => write!(formatter, "{}", show_instructions(&self.instructions, self.version)),
        }
    }
}

/// Displays an entry of a flow statistics reply of any version: duration, counters and flow.
/// [`Flow::parse`](super::Flow::parse) and `ovs-ofctl add-flow` can read the text; they ignore duration and
/// counters. (In 1.0, both refuse a table other than 0.)
///
/// ```
/// use beehive_of::Version;
/// use beehive_of::message::{Action, FlowEntry, Output};
/// use beehive_of::text::{Flow, show_entry};
/// use beehive_of::PortNo;
///
/// let actions = [Action::Output(Output { port: PortNo(2), ..Default::default() })];
/// let entry = FlowEntry { priority: 7, duration_sec: 9, packet_count: 3, byte_count: 180, actions: (&actions).into(), ..Default::default() };
/// let told = show_entry(&entry, Version::V1_0).to_string();
/// assert_eq!(told, "duration=9.000s,n_packets=3,n_bytes=180,priority=7 actions=output:2");
/// assert!(Flow::parse(&told, Version::V1_0).is_ok());
/// ```
pub fn show_entry<'e>(entry: &'e FlowEntry<'_>, version: Version) -> impl fmt::Display + use<'e> {
    ShownEntry { entry, version }
}

struct ShownEntry<'e, 'a> {
    entry: &'e FlowEntry<'a>,
    version: Version,
}

impl ShownEntry<'_, '_> {
    /// Returns the value of a counter. In 1.5, it comes from the list of counters; in earlier versions, it is
    /// `field`.
    fn counted(&self, number: u8, field: u64) -> u64 {
        match self.version {
            Version::V1_5 => self.entry.counters.get(number).ok().flatten().unwrap_or(0),
            _ => field,
        }
    }
}

impl fmt::Display for ShownEntry<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.entry;
        let duration = u64::from(entry.duration_sec) << 32 | u64::from(entry.duration_nsec);
        let duration = self.counted(0, duration);
        let (seconds, nanoseconds) = (duration >> 32, duration & u64::from(u32::MAX));
        let flow = FlowMod {
            command: FlowModCommand::ADD,
            table_id: entry.table_id,
            priority: entry.priority,
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            flags: entry.flags,
            importance: entry.importance,
            cookie: entry.cookie,
            match_fields: entry.match_fields,
            actions: entry.actions,
            instructions: entry.instructions,
            ..Default::default()
        };

        write!(
            formatter,
            "duration={seconds}.{:03}s,n_packets={},n_bytes={},{}",
            nanoseconds / 1_000_000,
            self.counted(4, entry.packet_count),
            self.counted(5, entry.byte_count),
            show_flow(&flow, self.version)
        )
    }
}
