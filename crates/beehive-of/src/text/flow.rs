//! Parses and displays flows.

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

/// The default priority of a flow.
const PRIORITY: u16 = 0x8000;

/// Returns the default table of a flow. A deletion applies to all tables by default, which is possible from
/// 1.2 on.
fn usual_table(deletes: bool, version: Version) -> TableId {
    if deletes && version >= Version::V1_2 { TableId::ALL } else { TableId(0) }
}

fn deletes(command: FlowModCommand) -> bool {
    matches!(command, FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT)
}

/// Returns whether an option is valid for a command, as in `ovs-ofctl`.
fn tells(command: FlowModCommand, option: &str) -> bool {
    match option {
        "out_port" | "out_group" => deletes(command),
        "priority" => command != FlowModCommand::DELETE,
        "idle_timeout" | "hard_timeout" | "importance" | "send_flow_rem" | "check_overlap"
        | "reset_counts" | "no_packet_counts" | "no_byte_counts" => !deletes(command),
        _ => true,
    }
}

/// Returns the name of a flag that a version lacks. In that version, the bit of the flag is undefined or has
/// another meaning; for example, the bit of `reset_counts` marks an emergency flow in 1.0.
fn unknown_flag(flag: FlowModFlags, version: Version) -> Option<&'static str> {
    match flag {
        FlowModFlags::RESET_COUNTS if version < Version::V1_2 => Some("reset_counts"),
        FlowModFlags::NO_PACKET_COUNTS if version < Version::V1_3 => Some("no_packet_counts"),
        FlowModFlags::NO_BYTE_COUNTS if version < Version::V1_3 => Some("no_byte_counts"),
        _ => None,
    }
}

/// Returns the text after `actions=` if the text starts with it.
fn after_actions(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("action")?;
    rest.strip_prefix('s').unwrap_or(rest).trim_start().strip_prefix('=')
}

/// Parses a group number or the name of a reserved group.
fn group(text: &str) -> Option<GroupId> {
    match text {
        text if text.eq_ignore_ascii_case("any") => Some(GroupId::ANY),
        text if text.eq_ignore_ascii_case("all") => Some(GroupId::ALL),
        text => small(text).map(GroupId),
    }
}

/// A flow that was parsed from text for one version. It can be encoded in that version only, because its
/// actions are already in the encoding of that version. For another version, parse the text again.
///
/// [`Flow::encode_into`] encodes the flow. To compare the flow with those that a switch reports, use
/// [`Flow::canonical_match`] and [`Flow::canonical_program`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    version: Version,
    /// The command. [`Flow::parse`] returns additions, and [`Flow::parse_deletion`] returns deletions. For
    /// the equivalent of `ovs-ofctl mod-flows`, set this field to [`FlowModCommand::MODIFY`] or, for
    /// `--strict`, to [`FlowModCommand::MODIFY_STRICT`].
    pub command: FlowModCommand,
    /// The table.
    pub table_id: TableId,
    /// The priority.
    pub priority: u16,
    /// Seconds without a matching packet after which the switch removes the flow; 0 disables the timeout.
    pub idle_timeout: u16,
    /// Seconds after which the switch removes the flow in any case; 0 disables the timeout.
    pub hard_timeout: u16,
    /// An opaque value that the controller chooses.
    pub cookie: u64,
    /// The bits of `cookie` to compare: a modification or deletion applies only to flows whose cookie equals
    /// `cookie` in these bits.
    pub cookie_mask: u64,
    /// Flows with higher importance are evicted later.
    pub importance: u16,
    /// The options.
    pub flags: FlowModFlags,
    /// Restricts deletions to flows that output to this port.
    pub out_port: PortNo,
    /// Restricts deletions to flows that use this group.
    pub out_group: GroupId,
    /// The fields of the match, as a list.
    fields: BytesMut,
    /// The version-independent match, if it can express the fields.
    general: Option<any::Match>,
    /// The encoded actions (1.0) or instructions (since 1.1).
    program: BytesMut,
}

impl Flow {
    /// Parses the syntax of `ovs-ofctl add-flow`: fields, options, and `actions=`.
    ///
    /// # Errors
    ///
    /// Fails if a token is misspelled or missing, or the version cannot express the flow. The error contains
    /// the token.
    pub fn parse(text: &str, version: Version) -> Result<Self, TextError<'_>> {
        Self::read(text, version, FlowModCommand::ADD).map_err(|fault| fault.within(text))
    }

    /// Parses the syntax of `ovs-ofctl del-flows`: fields and options, without actions. If `strict`, the
    /// deletion applies only to the flow with exactly this match and priority.
    ///
    /// # Errors
    ///
    /// Fails like [`Flow::parse`].
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
            // Everything after `actions=` belongs to the actions.
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
            // If the match of 1.0 cannot express the fields, the flow is encoded in Nicira's message.
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

        // Encode the flow once, in order to report now, and not when the flow is sent, what the version
        // cannot express (for example, a table in 1.0).
        let tried = flow.message().encode_into(version, 0, &mut BytesMut::new());
        tried.map_err(|error| Fault::new(text, Problem::Version(error)))?;
        Ok(flow)
    }

    /// Parses an option. Returns `false` if the token is not an option.
    fn option<'t>(&mut self, token: &Token<'t>) -> Result<bool, Fault<'t>> {
        let wrong = Fault::new(token.value.unwrap_or(token.whole), Problem::Value);
        if !tells(self.command, token.name) {
            return Err(token.fault(Problem::Command));
        }

        // Open vSwitch ignores these obsolete options.
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
                // 255 means the default table, because a flow cannot be added to all tables.
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
            // Ignore these statistics from the output of `dump-flows`.
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

    /// Returns the version that the flow was parsed for and is encoded in.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Appends the message, in the version that the flow was parsed for.
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
    /// Fails if a public field of the flow was set to a value that the version cannot express.
    pub fn encode_into(&self, xid: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
        self.message().encode_into(self.version, xid, out)
    }

    /// Returns the canonical form of the match, which is the same in every version and notation.
    ///
    /// # Errors
    ///
    /// Never fails for a parsed flow, because its match has no duplicate fields.
    pub fn canonical_match(&self) -> Result<Canonical, EncodeError> {
        Canonical::of_match(&Match::Fields(self.list()))
    }

    /// Returns the canonical form of the actions and instructions, which is the same in every version and
    /// notation.
    ///
    /// # Errors
    ///
    /// Never fails for a parsed flow, because its actions are well-formed.
    pub fn canonical_program(&self) -> Result<Canonical, EncodeError> {
        let flow = self.flow_mod();
        Canonical::of_instructions(&flow.actions, &flow.instructions, self.version)
    }

    /// Returns the message for the version that the flow was parsed for. Encoding it in another version fails
    /// (`OpenFlow 1.3 cannot express actions`) or results in a different flow, because versions encode
    /// actions differently. [`Flow::encode_into`] uses the right version.
    ///
    /// In 1.0, the message is Nicira's ([`NiciraMessage::FlowMod`]) if the standard match cannot express the
    /// fields. Therefore, read the properties of a flow from the flow rather than from its message.
    pub fn message(&self) -> Message<'_> {
        // Nicira's message cannot express these fields, either. Use the standard message so that its encoder
        // reports the field.
        let restricted = self.cookie_mask != 0 || self.out_group != GroupId::ANY || self.importance != 0;
        match &self.general {
            None if self.version == Version::V1_0 && !restricted => {
                // Nicira's message has the table in the upper bits of the command.
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

    /// Returns the fields of the match.
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

/// Displays a flow in the syntax of `ovs-ofctl`.
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
            // Deletions use the cookie only together with a mask; additions use no mask.
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
        other => other.generalize().is_ok_and(|fields| fields == any::Match::ANY),
    }
}
