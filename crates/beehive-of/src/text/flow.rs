//! A flow, from text and to text.

use core::fmt;

use bytes::BytesMut;

use super::action_parse::Program;
use super::entry::show_program;
use super::error::{Fault, Problem, TextError};
use super::match_parse::Fields;
use super::match_show::show_fields;
use super::token::{Token, next};
use super::value::{decimal, port, small, wide};
use crate::any;
use crate::encode::EncodeError;
use crate::message::{
    BufferId, Canonical, Extended, FlowMod, FlowModCommand, FlowModFlags, GroupId, Match, Message,
    NiciraFlowMod, NiciraMessage, TableId,
};
use crate::oxm::OxmFields;
use crate::port_number::PortNo;
use crate::schema::{List, Writer};
use crate::version::Version;

/// The priority of a flow that says none.
const PRIORITY: u16 = 0x8000;

/// The table of a flow that says none. All tables are known from 1.2 on.
fn usual_table(deletes: bool, version: Version) -> TableId {
    if deletes && version >= Version::V1_2 { TableId::ALL } else { TableId(0) }
}

fn deletes(command: FlowModCommand) -> bool {
    matches!(command, FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT)
}

/// Whether an option means something in a command, as `ovs-ofctl` has it.
fn tells(command: FlowModCommand, option: &str) -> bool {
    match option {
        "out_port" | "out_group" => deletes(command),
        "priority" => command != FlowModCommand::DELETE,
        "idle_timeout" | "hard_timeout" | "importance" | "send_flow_rem" | "check_overlap"
        | "reset_counts" | "no_packet_counts" | "no_byte_counts" => !deletes(command),
        _ => true,
    }
}

/// The name of an option that a version does not have. Its bit has none there, or means something else: in 1.0 that of
/// `reset_counts` makes a flow an emergency one.
fn unknown_flag(flag: FlowModFlags, version: Version) -> Option<&'static str> {
    match flag {
        FlowModFlags::RESET_COUNTS if version < Version::V1_2 => Some("reset_counts"),
        FlowModFlags::NO_PACKET_COUNTS if version < Version::V1_3 => Some("no_packet_counts"),
        FlowModFlags::NO_BYTE_COUNTS if version < Version::V1_3 => Some("no_byte_counts"),
        _ => None,
    }
}

/// What follows `actions=`, with which a text goes on.
fn after_actions(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("action")?;
    rest.strip_prefix('s').unwrap_or(rest).trim_start().strip_prefix('=')
}

/// A group, of which some have names.
fn group(text: &str) -> Option<GroupId> {
    match text {
        text if text.eq_ignore_ascii_case("any") => Some(GroupId::ANY),
        text if text.eq_ignore_ascii_case("all") => Some(GroupId::ALL),
        text => small(text).map(GroupId),
    }
}

/// A flow that was read from text, ready to be sent to a switch of the version that it was read for, and of no other: its actions are
/// written as that version has them. For a switch of another one, read the text again.
///
/// [`Flow::encode_into`] writes it; [`Flow::canonical_match`] and [`Flow::canonical_program`] compare it with what a switch says
/// it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    version: Version,
    /// What to do: [`Flow::parse`] adds, [`Flow::parse_deletion`] deletes. For what `ovs-ofctl mod-flows` does, set
    /// [`FlowModCommand::MODIFY`], and [`FlowModCommand::MODIFY_STRICT`] for `--strict`.
    pub command: FlowModCommand,
    /// The table.
    pub table_id: TableId,
    /// The priority.
    pub priority: u16,
    /// Seconds without a packet after which it goes; 0 is never.
    pub idle_timeout: u16,
    /// Seconds after which it goes; 0 is never.
    pub hard_timeout: u16,
    /// The controller's mark.
    pub cookie: u64,
    /// Which bits of the mark restrict a modification or deletion.
    pub cookie_mask: u64,
    /// Which flows are evicted last.
    pub importance: u16,
    /// Options.
    pub flags: FlowModFlags,
    /// Restricts deletions to flows with this output.
    pub out_port: PortNo,
    /// Restricts deletions to flows with this group.
    pub out_group: GroupId,
    /// The fields of the match, as a list.
    fields: BytesMut,
    /// The fields without their version, where they can be said so.
    general: Option<any::Match>,
    /// Actions of 1.0, instructions from 1.1 on.
    program: BytesMut,
}

impl Flow {
    /// Reads what `ovs-ofctl add-flow` takes: fields, options, and `actions=`.
    ///
    /// # Errors
    ///
    /// Something is misspelled or missing, or the version cannot express it; the error names the token.
    pub fn parse(text: &str, version: Version) -> Result<Self, TextError<'_>> {
        Self::read(text, version, FlowModCommand::ADD).map_err(|fault| fault.within(text))
    }

    /// Reads which flows to delete: fields and options, without actions. `strict` for the one flow with just these.
    ///
    /// # Errors
    ///
    /// As for [`Flow::parse`].
    pub fn parse_deletion(text: &str, version: Version, strict: bool) -> Result<Self, TextError<'_>> {
        let command = if strict { FlowModCommand::DELETE_STRICT } else { FlowModCommand::DELETE };
        Self::read(text, version, command).map_err(|fault| fault.within(text))
    }

    fn read(text: &str, version: Version, command: FlowModCommand) -> Result<Self, Fault<'_>> {
        let deletes = deletes(command);
        let mut flow = Self {
            version,
            command,
            table_id: usual_table(deletes, version),
            priority: PRIORITY,
            idle_timeout: 0,
            hard_timeout: 0,
            cookie: 0,
            cookie_mask: 0,
            importance: 0,
            flags: FlowModFlags::default(),
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            fields: BytesMut::new(),
            general: None,
            program: BytesMut::new(),
        };
        let mut fields = Fields::default();
        let mut actions = None;
        let mut rest = text.trim_end();
        loop {
            rest = rest.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
            // Actions go to the end, whatever is in them.
            if let Some(text) = after_actions(rest) {
                actions = Some(text);
                break;
            }
            let Some((token, after)) = next(rest)? else { break };
            if !fields.take(&token)? && !flow.option(&token)? {
                return Err(Fault::new(token.name, Problem::Name));
            }
            rest = after;
        }
        fields.settle()?;
        fields.write(&mut Writer::new(version, &mut flow.fields))?;
        let list = OxmFields(List::of_bytes(version, &flow.fields));
        flow.general = any::from_fields(&list).ok().filter(|fields| fields.other == 0);
        if version == Version::V1_0 {
            // What the match of 1.0 has no place for is told by Nicira's message.
            let mut tried = BytesMut::new();
            flow.general = flow
                .general
                .filter(|fields| any::write_match(fields, &mut Writer::new(version, &mut tried)).is_ok());
        }
        match actions {
            Some(actions) if !deletes => {
                Program::new(version, &fields).read(actions, &mut flow.program)?;
            }
            Some(actions) => return Err(Fault::new(actions, Problem::Action)),
            None if deletes => {}
            None => return Err(Fault::new(text, Problem::NoActions)),
        }
        // What the version cannot express is an error here, not when it is sent: a table in 1.0, for example.
        let tried = flow.message().encode_into(version, 0, &mut BytesMut::new());
        tried.map_err(|error| Fault::new(text, Problem::Version(error)))?;
        Ok(flow)
    }

    /// Takes an option; `false` when it is none.
    fn option<'t>(&mut self, token: &Token<'t>) -> Result<bool, Fault<'t>> {
        let wrong = Fault::new(token.value.unwrap_or(token.whole), Problem::Value);
        if !tells(self.command, token.name) {
            return Err(token.fault(Problem::Command));
        }
        // Open vSwitch ignores these, for they are of long ago.
        if matches!(token.name, "no_readonly_table" | "allow_hidden_fields") && token.value.is_none() {
            return Ok(true);
        }
        let flag = match token.name {
            "send_flow_rem" => Some(FlowModFlags::SEND_FLOW_REMOVED),
            "check_overlap" => Some(FlowModFlags::CHECK_OVERLAP),
            "reset_counts" => Some(FlowModFlags::RESET_COUNTS),
            "no_packet_counts" => Some(FlowModFlags::NO_PACKET_COUNTS),
            "no_byte_counts" => Some(FlowModFlags::NO_BYTE_COUNTS),
            _ => None,
        };
        if let Some(flag) = flag {
            if token.value.is_some() {
                return Err(wrong);
            }
            if let Some(field) = unknown_flag(flag, self.version) {
                return Err(self.unsupported(token, field));
            }
            self.flags = self.flags.with(flag);
            return Ok(true);
        }
        match token.name {
            "table" => {
                let table_id = TableId(decimal(token.want()?).ok_or(wrong)?);
                // Of all tables nothing is added, so this says that it does not matter.
                self.table_id = match table_id {
                    TableId::ALL => usual_table(deletes(self.command), self.version),
                    table_id => table_id,
                };
            }
            "priority" => self.priority = small(token.want()?).ok_or(wrong)?,
            "idle_timeout" => self.idle_timeout = small(token.want()?).ok_or(wrong)?,
            "hard_timeout" => self.hard_timeout = small(token.want()?).ok_or(wrong)?,
            "importance" => {
                self.importance = small(token.want()?).ok_or(wrong)?;
                if self.importance != 0 && self.version < Version::V1_4 {
                    return Err(self.unsupported(token, "importance"));
                }
            }
            "out_port" => self.out_port = port(token.want()?).ok_or(wrong)?,
            "out_group" => {
                self.out_group = group(token.want()?).ok_or(wrong)?;
                if self.out_group != GroupId::ANY && self.version == Version::V1_0 {
                    return Err(self.unsupported(token, "out_group"));
                }
            }
            "cookie" => {
                let text = token.want()?;
                let (value, mask) = match (text.split_once('/'), deletes(self.command)) {
                    (Some((value, mask)), true) => (value, wide(mask).ok_or(wrong)?),
                    (None, false) => (text, 0),
                    (Some(_), false) => return Err(Fault::new(text, Problem::Mask)),
                    (None, true) => return Err(Fault::new(text, Problem::NoMask)),
                };
                self.cookie = wide(value).ok_or(wrong)?;
                self.cookie_mask = mask;
                if mask != 0 && self.version == Version::V1_0 {
                    return Err(self.unsupported(token, "cookie_mask"));
                }
            }
            // What a dump of flows tells besides: nothing that a flow is made of.
            "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => {
                token.want()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unsupported<'t>(&self, token: &Token<'t>, field: &'static str) -> Fault<'t> {
        token.fault(Problem::Version(EncodeError::Unsupported { version: self.version, field }))
    }

    /// The version that the flow was read for, in which it is encoded.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Appends the message, in the version that the flow was read for.
    ///
    /// ```
    /// use beehive_of::Version;
    /// use beehive_of::text::Flow;
    /// use bytes::BytesMut;
    ///
    /// let flow = Flow::parse("tcp,tp_dst=80 actions=output:2", Version::V1_0).unwrap();
    /// let mut out = BytesMut::new();
    /// flow.encode_into(1, &mut out).unwrap();
    /// assert_eq!(out[0], flow.version().wire());
    /// ```
    ///
    /// # Errors
    ///
    /// A field of the flow was changed to what the version cannot express.
    pub fn encode_into(&self, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        self.message().encode_into(self.version, xid, out)
    }

    /// Which packets, in the form that is the same in every version and notation.
    ///
    /// # Errors
    ///
    /// The match says something twice; none that was read does.
    pub fn canonical_match(&self) -> Result<Canonical, EncodeError> {
        Canonical::of_match(&Match::Fields(self.list()))
    }

    /// What the flow does, in the form that is the same in every version and notation.
    ///
    /// # Errors
    ///
    /// As for [`Canonical::of_instructions`]; what was read has a form.
    pub fn canonical_program(&self) -> Result<Canonical, EncodeError> {
        let flow = self.flow_mod();
        Canonical::of_instructions(&flow.actions, &flow.instructions, self.version)
    }

    /// The message, of the version that the flow was read for: to encode it in another one is an error, or makes another flow, for
    /// actions are not the same in all (`OpenFlow 1.3 cannot express actions`). [`Flow::encode_into`] takes the right one.
    ///
    /// In 1.0 it is Nicira's ([`NiciraMessage::FlowMod`]) where 1.0's own cannot say which packets, so what is wanted of any flow is better
    /// asked of the flow than of its message.
    pub fn message(&self) -> Message<'_> {
        // Nicira's message has no place for these either: 1.0's own refuses them by name.
        let restricted = self.cookie_mask != 0 || self.out_group != GroupId::ANY || self.importance != 0;
        match &self.general {
            None if self.version == Version::V1_0 && !restricted => {
                // Nicira's message has the table in the command.
                Message::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(NiciraFlowMod {
                    cookie: self.cookie,
                    command: FlowModCommand(self.command.0 | u16::from(self.table_id.0) << 8),
                    idle_timeout: self.idle_timeout,
                    hard_timeout: self.hard_timeout,
                    priority: self.priority,
                    buffer_id: BufferId::NONE,
                    out_port: self.out_port,
                    flags: self.flags,
                    match_fields: self.list(),
                    actions: List::of_bytes(self.version, &self.program),
                    ..Default::default()
                })))
            }
            _ => Message::FlowMod(self.flow_mod()),
        }
    }

    /// The fields of the match, as a list.
    pub fn list(&self) -> OxmFields<'_> {
        OxmFields(List::of_bytes(self.version, &self.fields))
    }

    fn flow_mod(&self) -> FlowMod<'_> {
        let mut flow = FlowMod {
            cookie: self.cookie,
            cookie_mask: self.cookie_mask,
            table_id: self.table_id,
            command: self.command,
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            priority: self.priority,
            out_port: self.out_port,
            out_group: self.out_group,
            flags: self.flags,
            importance: self.importance,
            match_fields: match &self.general {
                Some(general) if self.version <= Version::V1_1 => Match::Any(general),
                _ => Match::Fields(self.list()),
            },
            ..Default::default()
        };
        match self.version {
            Version::V1_0 => flow.actions = List::of_bytes(self.version, &self.program),
            _ => flow.instructions = List::of_bytes(self.version, &self.program),
        }
        flow
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flow = FlowMod { match_fields: Match::Fields(self.list()), ..self.flow_mod() };
        write!(formatter, "{}", show_flow(&flow, self.version))
    }
}

/// Tells a flow as text that `ovs-ofctl` reads.
pub fn show_flow<'f>(flow: &'f FlowMod<'_>, version: Version) -> impl fmt::Display + use<'f> {
    ShownFlow { flow, version }
}

struct ShownFlow<'f, 'a> {
    flow: &'f FlowMod<'a>,
    version: Version,
}

impl fmt::Display for ShownFlow<'_, '_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flow = self.flow;
        let deletes = deletes(flow.command);
        let tells = |option| tells(flow.command, option);
        let usual = usual_table(deletes, self.version);
        let mut separator = "";
        let mut put = |formatter: &mut fmt::Formatter<'_>, value: fmt::Arguments<'_>| {
            formatter.write_str(separator)?;
            separator = ",";
            formatter.write_fmt(value)
        };
        match (flow.cookie, flow.cookie_mask) {
            (0, 0) => {}
            // Deletions look for bits of it, and additions have all.
            (_, 0) if deletes => {}
            (0, _) if flow.command == FlowModCommand::ADD => {}
            (cookie, mask) if mask == 0 || flow.command == FlowModCommand::ADD => {
                put(formatter, format_args!("cookie={cookie:#x}"))?
            }
            (cookie, mask) => put(formatter, format_args!("cookie={cookie:#x}/{mask:#x}"))?,
        }
        if flow.table_id != usual {
            put(formatter, format_args!("table={}", flow.table_id.0))?;
        }
        for (name, value) in [
            ("idle_timeout", flow.idle_timeout),
            ("hard_timeout", flow.hard_timeout),
            ("importance", flow.importance),
        ] {
            if value != 0 && tells(name) {
                put(formatter, format_args!("{name}={value}"))?;
            }
        }
        if flow.out_port != PortNo::ANY && tells("out_port") {
            put(formatter, format_args!("out_port={}", flow.out_port))?;
        }
        if flow.out_group != GroupId::ANY && tells("out_group") {
            put(formatter, format_args!("out_group={}", flow.out_group.0))?;
        }
        for (flag, name) in [
            (FlowModFlags::SEND_FLOW_REMOVED, "send_flow_rem"),
            (FlowModFlags::CHECK_OVERLAP, "check_overlap"),
            (FlowModFlags::RESET_COUNTS, "reset_counts"),
            (FlowModFlags::NO_PACKET_COUNTS, "no_packet_counts"),
            (FlowModFlags::NO_BYTE_COUNTS, "no_byte_counts"),
        ] {
            if flow.flags.contains(flag) && tells(name) {
                put(formatter, format_args!("{name}"))?;
            }
        }
        if flow.priority != PRIORITY && tells("priority") {
            put(formatter, format_args!("priority={}", flow.priority))?;
        }
        if !is_empty(&flow.match_fields) {
            put(formatter, format_args!("{}", show_fields(&flow.match_fields, self.version)))?;
        }
        if deletes {
            return Ok(());
        }
        formatter.write_str(if separator.is_empty() { "actions=" } else { " actions=" })?;
        write!(formatter, "{}", show_program(&flow.actions, &flow.instructions, self.version))
    }
}

fn is_empty(fields: &Match<'_>) -> bool {
    match fields {
        Match::Fields(fields) | Match::Fields1_1(fields) => fields.0.is_empty(),
        other => other.generalise().is_ok_and(|fields| fields == any::Match::ANY),
    }
}
