//! Parses actions and instructions.

use alloc::vec::Vec;

use bytes::BytesMut;

use super::action_names::{APPLY, GOTO, METADATA, known, place};
use super::error::{Fault, Problem};
use super::field_names::named;
use super::match_parse::{Fields, basic, most, option, with_field};
use super::subfield::{Subfield, writable};
use super::token::{Token, Tokens};
use super::value::{Value, decimal, parse, parse_bytes, port, small, wide};
use crate::address::MacAddress;
use crate::encode::EncodeError;
use crate::limits::ACTION_DEPTH_MAX;
use crate::message::*;
use crate::oxm::{FieldId, FieldKind, OxmField, class};
use crate::port_number::PortNo;
use crate::schema::{List, Value as _, Writer};
use crate::version::Version;

/// The state of parsing actions and instructions. The encoding of some actions depends on the match of the
/// flow.
pub(super) struct Program {
    pub(super) version: Version,
    /// Whether packets have a VLAN tag after the actions parsed so far.
    tagged: bool,
    eth_type: Option<u16>,
    protocol: Option<u8>,
    /// Number of actions that enclose the current one.
    depth: u8,
    /// Whether the current action is in the `exec` of a `ct` action. Only actions in an `exec` can set
    /// `ct_mark` and `ct_label`.
    tracks: bool,
}

/// Appends an action.
pub(super) fn put(action: Action<'_>, out: &mut BytesMut, version: Version) -> Result<(), EncodeError> {
    action.write(&mut Writer::new(version, out))
}

fn put_instruction(
    instruction: Instruction<'_>,
    out: &mut BytesMut,
    version: Version,
) -> Result<(), EncodeError> {
    instruction.write(&mut Writer::new(version, out))
}

impl Program {
    pub(super) fn new(version: Version, fields: &Fields<'_>) -> Self {
        Self {
            version,
            tagged: fields.is_tagged(),
            eth_type: fields.eth_type(),
            protocol: fields.protocol(),
            depth: 0,
            tracks: false,
        }
    }

    /// Appends actions (1.0) or instructions.
    pub(super) fn read<'t>(&mut self, text: &'t str, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let version = self.version;
        let mut apply = BytesMut::new();
        let mut instructions: Vec<(u8, BytesMut)> = Vec::new();
        let (mut dropped, mut last) = (false, None);
        let (mut count, mut conjunctions, mut others) = (0, 0, None);
        for token in Tokens(text) {
            let token = known(token?)?;
            if token.name == "drop" {
                dropped = true;
                continue;
            }

            count += 1;
            match token.name {
                "conjunction" => conjunctions += 1,
                "note" => {}
                _ => others = Some(token),
            }

            let place = place(token.name);
            match last {
                // OpenFlow 1.0 has no goto-table instruction. There, it is a `resubmit` action, which must
                // not follow `write_metadata`.
                Some(METADATA) if place == GOTO && version == Version::V1_0 => {
                    return Err(token.fault(Problem::Order));
                }
                Some(last) if place < last => return Err(token.fault(Problem::Order)),
                Some(last) if place == last && place != APPLY => return Err(token.fault(Problem::Twice)),
                _ => last = Some(place),
            }

            let mut bytes = BytesMut::new();
            let Some((order, instruction)) = self.instruction(&token, &mut bytes)? else {
                self.action(&token, &mut apply)?;
                continue;
            };
            let mut encoded = BytesMut::new();
            put_instruction(instruction, &mut encoded, version)
                .map_err(|error| token.fault(Problem::Version(error)))?;
            instructions.push((order, encoded));
        }

        if dropped && count > 0 {
            return Err(Fault::new(text, Problem::Value));
        }

        // A flow with `conjunction` must not have other actions. Another flow, which matches `conj_id`,
        // executes those.
        if let Some(other) = others.filter(|_| conjunctions > 0) {
            return Err(other.fault(Problem::Place));
        }

        if version == Version::V1_0 {
            out.extend_from_slice(&apply);
            return Ok(());
        }
        if !apply.is_empty() {
            let mut encoded = BytesMut::new();
            let list = ActionList { actions: List::of_bytes(version, &apply) };
            put_instruction(Instruction::ApplyActions(list), &mut encoded, version)
                .map_err(|error| Fault::new(text, Problem::Version(error)))?;
            instructions.push((APPLY, encoded));
        }

        // Applied actions can be written before and after other instructions, so sort them.
        instructions.sort_by_key(|(place, _)| *place);
        for (_, encoded) in instructions {
            out.extend_from_slice(&encoded);
        }

        Ok(())
    }

    /// Parses an instruction and returns it with its position; `None` if the token is an action.
    fn instruction<'t, 'b>(
        &mut self,
        token: &Token<'t>,
        bytes: &'b mut BytesMut,
    ) -> Result<Option<(u8, Instruction<'b>)>, Fault<'t>> {
        let wrong = Fault::new(token.value.unwrap_or(token.whole), Problem::Value);
        if self.version == Version::V1_0 {
            return Ok(None);
        }

        Ok(Some(match token.name {
            "meter" if self.version < Version::V1_5 => {
                let meter_id = meter(token)?;
                (0, Instruction::Meter(MeterInstruction { meter_id }))
            }

            "clear_actions" => (2, Instruction::ClearActions(Nothing {})),
            "write_actions" => {
                self.actions(token.value.unwrap_or(""), bytes)?;
                let actions = List::of_bytes(self.version, bytes);
                (3, Instruction::WriteActions(ActionList { actions }))
            }

            "write_metadata" => {
                let (metadata, mask) = metadata(token)?;
                (4, Instruction::WriteMetadata(WriteMetadata { metadata, mask }))
            }

            "goto_table" => {
                let table_id = TableId(decimal(token.want()?).ok_or(wrong)?);
                (5, Instruction::GotoTable(GotoTable { table_id }))
            }

            _ => return Ok(None),
        }))
    }

    /// Fails if the nesting of actions would exceed the limit of the decoder.
    pub(super) fn check_depth<'t>(&self, text: &'t str) -> Result<(), Fault<'t>> {
        if self.depth < ACTION_DEPTH_MAX { Ok(()) } else { Err(Fault::new(text, Problem::Parentheses)) }
    }

    /// Returns whether the current action is not nested in another one.
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// Appends the actions nested in an action.
    pub(super) fn actions<'t>(&mut self, text: &'t str, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        self.check_depth(text)?;
        self.depth += 1;
        let read = self.listed(text, out);
        self.depth -= 1;
        read
    }

    /// Appends the actions of a list. `drop` must be the only action and is not encoded.
    fn listed<'t>(&mut self, text: &'t str, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let (mut dropped, mut count) = (false, 0);
        for token in Tokens(text) {
            let token = known(token?)?;
            match token.name {
                "drop" => dropped = true,
                "conjunction" | "nat" => return Err(token.fault(Problem::Place)),
                _ => {
                    count += 1;
                    self.action(&token, out)?;
                }
            }
        }

        if dropped && count > 0 { Err(Fault::new(text, Problem::Value)) } else { Ok(()) }
    }

    /// Fails if a connection tracking field is set outside of the `exec` of `ct`.
    pub(super) fn check_tracked<'t>(&self, field: FieldId, token: &Token<'t>) -> Result<(), Fault<'t>> {
        if is_tracked(field) && !self.tracks { Err(token.fault(Problem::Place)) } else { Ok(()) }
    }

    /// Appends the actions in the `exec` of `ct`. Only `nat` and settings of connection tracking fields are
    /// allowed.
    pub(super) fn tracked<'t>(&mut self, text: &'t str, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        for token in Tokens(text) {
            let token = known(token?)?;
            let sets = matches!(token.name, "load" | "set_field" | "move");
            let target = token.value.filter(|_| sets).and_then(|value| value.rsplit_once("->"));
            let field = target.map(|(_, target)| Subfield::parse(target)).transpose()?.map(|part| part.field);
            match (token.name, field) {
                ("drop", _) => {}
                ("nat", _) => self.nat(&token, out)?,
                (_, Some(field)) if is_tracked(field) => {
                    (self.depth, self.tracks) = (self.depth + 1, true);
                    let done = self.action(&token, out);
                    (self.depth, self.tracks) = (self.depth - 1, false);
                    done?;
                }
                _ => return Err(token.fault(Problem::Place)),
            }
        }
        Ok(())
    }

    /// Appends one action, or several if the version needs several to express it.
    pub(super) fn action<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let version = self.version;
        if token.name == "enqueue" && version >= Version::V1_1 {
            return self.enqueue(token, out);
        }

        let told = match self.plain(token)? {
            Some(action) => put(action, out, version),
            None => match token.name {
                "set_field" => return self.set_field(token, out),
                name if name.starts_with("mod_")
                    || matches!(
                        name,
                        "set_vlan_vid" | "set_vlan_pcp" | "set_mpls_label" | "set_mpls_tc" | "set_nw_ttl"
                    ) =>
                {
                    return self.modify(token, out);
                }
                _ => return self.nicira(token, out),
            },
        };

        told.map_err(|error| token.fault(Problem::Version(error)))
    }

    /// Appends `enqueue` of 1.0 in the encoding of 1.1 and later: set the queue, output the packet, pop the
    /// queue.
    fn enqueue<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let Enqueue { port, queue_id } = enqueue(token)?;
        let pop = Extended::Nicira(NiciraAction::PopQueue(NiciraNothing {}));
        let output = output(token, port, None)?;
        [Action::SetQueue(SetQueue { queue_id }), output, Action::Experimenter(pop)]
            .into_iter()
            .try_for_each(|action| put(action, out, self.version))
            .map_err(|error| token.fault(Problem::Version(error)))
    }

    /// Parses an action that the version encodes as a single action. Returns `None` for other actions.
    fn plain<'t>(&mut self, token: &Token<'t>) -> Result<Option<Action<'static>>, Fault<'t>> {
        let wrong = Fault::new(token.value.unwrap_or(token.whole), Problem::Value);
        let old = self.version == Version::V1_0;
        let nicira = |action| Action::Experimenter(Extended::Nicira(action));
        if token.value.is_none()
            && let Some(port) = port(token.name)
        {
            // For a port written as a number, `ovs-ofctl` sets the maximum length to 0, even for the
            // controller.
            let number = token.name.starts_with(|letter: char| letter.is_ascii_digit());
            return output(token, port, number.then_some(0)).map(Some);
        }

        Ok(Some(match (token.name, token.value) {
            ("controller", Some(length)) if is_number(length) => {
                output(token, PortNo::CONTROLLER, Some(small(length).ok_or(wrong)?))?
            }
            ("output", Some(text)) => match port(text) {
                Some(port) => output(token, port, None)?,
                None => return Ok(None),
            },
            ("enqueue", Some(_)) => Action::Enqueue(enqueue(token)?),
            ("strip_vlan" | "pop_vlan", None) => {
                self.tagged = false;
                Action::PopVlan(NoArgument {})
            }
            ("push_vlan", Some(text)) => {
                self.tagged = true;
                let eth_type = small(text).filter(|kind| matches!(kind, 0x8100 | 0x88a8)).ok_or(wrong)?;
                Action::PushVlan(EtherType { eth_type })
            }
            ("push_mpls", Some(text)) => {
                let eth_type = small(text).ok_or(wrong)?;
                if old {
                    nicira(NiciraAction::PushMpls(NiciraEtherType { eth_type }))
                } else {
                    Action::PushMpls(EtherType { eth_type })
                }
            }
            ("pop_mpls", Some(text)) => {
                let eth_type = small(text).ok_or(wrong)?;
                if old {
                    nicira(NiciraAction::PopMpls(NiciraEtherType { eth_type }))
                } else {
                    Action::PopMpls(EtherType { eth_type })
                }
            }
            ("dec_mpls_ttl", None) if old => nicira(NiciraAction::DecMplsTtl(NiciraNothing {})),
            ("dec_mpls_ttl", None) => Action::DecMplsTtl(NoArgument {}),
            ("set_mpls_ttl", Some(text)) => {
                let value = small(text).ok_or(wrong)?;
                if old {
                    nicira(NiciraAction::SetMplsTtl(NiciraSetByte { value }))
                } else {
                    Action::SetMplsTtl(SetByte { value })
                }
            }
            ("dec_ttl", None | Some("")) if old => nicira(NiciraAction::DecTtl(NiciraNothing {})),
            ("dec_ttl", None | Some("")) => Action::DecIpTtl(NoArgument {}),
            ("set_queue", Some(text)) => {
                let queue_id = QueueId(small(text).ok_or(wrong)?);
                if old {
                    nicira(NiciraAction::SetQueue(NiciraSetQueue { queue_id }))
                } else {
                    Action::SetQueue(SetQueue { queue_id })
                }
            }
            ("group", Some(text)) => {
                let group_id = GroupId(small(text).ok_or(wrong)?);
                if old {
                    nicira(NiciraAction::Group(NiciraGroup { group_id }))
                } else {
                    Action::Group(Group { group_id })
                }
            }
            ("meter", Some(_)) if self.version >= Version::V1_5 => {
                if self.depth > 0 {
                    return Err(token.fault(Problem::Place));
                }
                Action::Meter(Meter { meter_id: meter(token)? })
            }
            ("copy_ttl_out", None) => Action::CopyTtlOut(NoArgument {}),
            ("copy_ttl_in", None) => Action::CopyTtlIn(NoArgument {}),
            ("push_pbb", Some(text)) => Action::PushPbb(EtherType { eth_type: small(text).ok_or(wrong)? }),
            ("pop_pbb", None) => Action::PopPbb(NoArgument {}),
            _ => return Ok(None),
        }))
    }

    /// Appends `set_field:value[/mask]->field`.
    fn set_field<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let text = token.want()?;
        let wrong = Fault::new(text, Problem::Value);
        let (text, name) = text.rsplit_once("->").ok_or(wrong)?;
        let id = named(name.trim()).ok_or(Fault::new(name, Problem::Name))?;
        if id.is_option() {
            let (value, mask) = parse_bytes(text.trim()).ok_or(Fault::new(text, Problem::Value))?;
            return set_option(option(id, &value, mask.as_deref()), out, self.version)
                .map_err(|error| token.fault(Problem::Version(error)));
        }
        if !writable(id) {
            return Err(Fault::new(name, Problem::ReadOnly));
        }

        self.check_tracked(id, token)?;
        let kind = id.known().map(|known| known.kind).ok_or(wrong)?;
        let most = most(id);
        let value = parse(id, kind, text.trim())
            .filter(|value| value.value <= most && value.mask.is_none_or(|mask| mask <= most))
            .filter(|value| (id.class, id.number) != (class::NXM_OF, 5) || value.value % 4 == 0)
            .ok_or(Fault::new(text, Problem::Value))?;

        self.set(id, value, out).map_err(|problem| Fault::new(token.whole, problem))
    }

    /// Appends the actions that set a field in the version.
    fn set(&mut self, id: FieldId, value: Value, out: &mut BytesMut) -> Result<(), Problem> {
        let version = self.version;
        let unsupported = Problem::Version;
        let number = value.value;
        if version <= Version::V1_1 && id.class == class::BASIC && value.mask.is_none() {
            let [.., a, b, c, d, e, f] = number.to_be_bytes();
            let address = MacAddress([a, b, c, d, e, f]);
            let port = (number & 0xffff) as u16;
            let action = match id.number {
                3 => Some(Action::SetEthDst(SetEthernet { address })),
                4 => Some(Action::SetEthSrc(SetEthernet { address })),
                6 => Some(Action::SetVlanId(SetVlanId { vlan_id: port & 0x0fff })),
                7 => Some(Action::SetVlanPriority(SetVlanPriority { vlan_priority: number as u8 })),
                8 => Some(Action::SetIpTos(SetByte { value: (number as u8) << 2 })),
                9 if version == Version::V1_1 => Some(Action::SetIpEcn(SetByte { value: number as u8 })),
                11 => Some(Action::SetIpv4Src(SetIpv4 { address: (number as u32).into() })),
                12 => Some(Action::SetIpv4Dst(SetIpv4 { address: (number as u32).into() })),
                13 | 15 => Some(Action::SetTransportSrc(SetTransport { port })),
                14 | 16 => Some(Action::SetTransportDst(SetTransport { port })),
                17 if version == Version::V1_1 => Some(Action::SetTransportSrc(SetTransport { port })),
                18 if version == Version::V1_1 => Some(Action::SetTransportDst(SetTransport { port })),
                34 if version == Version::V1_1 => {
                    Some(Action::SetMplsLabel(SetWord { value: number as u32 }))
                }
                35 if version == Version::V1_1 => Some(Action::SetMplsTc(SetByte { value: number as u8 })),
                34 => {
                    Some(Action::Experimenter(Extended::Nicira(NiciraAction::SetMplsLabel(NiciraSetWord {
                        value: number as u32,
                    }))))
                }
                35 => Some(Action::Experimenter(Extended::Nicira(NiciraAction::SetMplsTc(NiciraSetByte {
                    value: number as u8,
                })))),
                _ => None,
            };

            if let Some(action) = action {
                return put(action, out, version).map_err(unsupported);
            }
        }

        let early = version < Version::V1_2 || (value.mask.is_some() && version < Version::V1_5);
        if early && id.class == class::EXPERIMENTER {
            return with_field(id, value, |field| {
                let load = NiciraAction::RegLoad2(RegLoad2 { field });
                put(Action::Experimenter(Extended::Nicira(load)), out, version)
            })
            .map_err(unsupported);
        }

        // `set_field` exists since 1.2, and with a mask since 1.5. For earlier versions, load each run of
        // bits.
        if early {
            return load_runs(id, value, out, version).map_err(unsupported);
        }

        with_field(id, value, |field| put(Action::SetField(SetField { field }), out, version))
            .map_err(unsupported)
    }

    /// Appends an action that sets a field and has a name of its own in 1.0 or 1.1, translated to the
    /// version.
    fn modify<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let text = token.want()?;
        let wrong = Fault::new(text, Problem::Value);
        let old = self.version <= Version::V1_1;
        let (id, kind) = match token.name {
            "mod_vlan_vid" | "set_vlan_vid" => (basic(6, 2), FieldKind::Decimal(2)),
            "mod_vlan_pcp" | "set_vlan_pcp" => (basic(7, 1), FieldKind::Decimal(1)),
            "set_mpls_label" => (basic(34, 4), FieldKind::Decimal(4)),
            "set_mpls_tc" => (basic(35, 1), FieldKind::Decimal(1)),
            "mod_dl_src" => (basic(4, 6), FieldKind::Mac),
            "mod_dl_dst" => (basic(3, 6), FieldKind::Mac),
            "mod_nw_src" => (basic(11, 4), FieldKind::Ipv4),
            "mod_nw_dst" => (basic(12, 4), FieldKind::Ipv4),
            "mod_nw_tos" => (basic(8, 1), FieldKind::Decimal(1)),
            "mod_nw_ecn" => (basic(9, 1), FieldKind::Decimal(1)),
            "mod_nw_ttl" | "set_nw_ttl" => {
                let value = small(text).ok_or(wrong)?;
                let ttl = FieldId { class: class::NXM_NX, number: 29, length: 1, ..FieldId::default() };
                let told = match self.version {
                    Version::V1_0 => return self.load(ttl, u64::from(value), token, out),
                    version => put(Action::SetIpTtl(SetByte { value }), out, version),
                };
                return told.map_err(|error| token.fault(Problem::Version(error)));
            }
            "mod_tp_src" | "mod_tp_dst" => {
                let source = token.name == "mod_tp_src";
                let number = match (self.eth_type, self.protocol) {
                    (Some(0x0800 | 0x86dd), Some(6)) => 13,
                    (Some(0x0800 | 0x86dd), Some(17)) => 15,
                    (Some(0x0800 | 0x86dd), Some(132)) => 17,
                    _ if old => 13,
                    _ => return Err(token.fault(Problem::Prerequisite)),
                };
                (basic(number + u8::from(!source), 2), FieldKind::Decimal(2))
            }
            _ => return Err(Fault::new(token.written(), Problem::Action)),
        };
        let mut value = parse(id, kind, text).filter(|value| value.mask.is_none()).ok_or(wrong)?;
        match id.number {
            6 if value.value > 0x0fff => return Err(wrong),
            6 => value.value |= 0x1000,
            7 | 35 if value.value > 7 => return Err(wrong),
            34 if value.value > 0xf_ffff => return Err(wrong),
            8 if value.value % 4 != 0 => return Err(wrong),
            8 => value.value >>= 2,
            9 if value.value > 3 => return Err(wrong),
            9 if self.version == Version::V1_0 => {
                let ecn = FieldId { class: class::NXM_NX, number: 28, length: 1, ..FieldId::default() };
                return self.load(ecn, value.value as u64, token, out);
            }
            _ => {}
        }

        if matches!(id.number, 6 | 7) && token.name.starts_with("mod_") {
            // 1.0 adds a missing tag by itself. Later versions need an explicit `push_vlan`.
            if !self.tagged && self.version >= Version::V1_1 {
                put(Action::PushVlan(EtherType { eth_type: 0x8100 }), out, self.version)
                    .map_err(|error| token.fault(Problem::Version(error)))?;
            }
            self.tagged = true;
        }

        self.set(id, value, out).map_err(|problem| token.fault(problem))
    }

    fn load<'t>(
        &mut self,
        destination: FieldId,
        value: u64,
        token: &Token<'t>,
        out: &mut BytesMut,
    ) -> Result<(), Fault<'t>> {
        let whole = Subfield { field: destination, offset: 0, count: super::subfield::bits(destination) };
        let bits = whole.packed().unwrap_or(7);
        let action = NiciraAction::RegLoad(RegLoad { bits, destination, value });
        put(Action::Experimenter(Extended::Nicira(action)), out, self.version)
            .map_err(|error| token.fault(Problem::Version(error)))
    }
}

/// Parses `enqueue:port:queue`.
fn enqueue<'t>(token: &Token<'t>) -> Result<Enqueue, Fault<'t>> {
    let text = token.want()?;
    let wrong = Fault::new(text, Problem::Value);
    let (number, queue) = text.split_once([':', ',', 'q']).ok_or(wrong)?;
    let port = port(number.trim()).ok_or(wrong)?;
    Ok(Enqueue { port, queue_id: QueueId(small(queue.trim()).ok_or(wrong)?) })
}

/// Appends the action that sets a tunnel option in the version.
pub(super) fn set_option(
    field: OxmField<'_>,
    out: &mut BytesMut,
    version: Version,
) -> Result<(), EncodeError> {
    let set = match version {
        Version::V1_0 | Version::V1_1 => false,
        // `set_field` with a mask exists since 1.5.
        Version::V1_5 => true,
        _ => field.mask.is_none(),
    };
    let action = match set {
        true => Action::SetField(SetField { field }),
        false => Action::Experimenter(Extended::Nicira(NiciraAction::RegLoad2(RegLoad2 { field }))),
    };

    put(action, out, version)
}

/// Appends a `load` action for each run of at most 64 set bits in the mask.
pub(super) fn load_runs(
    id: FieldId,
    value: Value,
    out: &mut BytesMut,
    version: Version,
) -> Result<(), EncodeError> {
    let width = super::subfield::bits(id).min(128);
    let mask = value.mask.unwrap_or(u128::MAX >> (128 - u32::from(width.max(1))));
    let mut offset = 0u16;
    while offset < width {
        let rest = mask >> offset;
        if rest & 1 == 0 {
            offset += 1;
            continue;
        }

        let count = (rest.trailing_ones() as u16).min(64).min(width - offset);
        let run = Subfield { field: id, offset, count };
        let bits = run.packed().ok_or(EncodeError::Value { field: "set_field" })?;
        let loaded = (value.value >> offset) as u64 & (u64::MAX >> (64 - u32::from(count)));
        let action = NiciraAction::RegLoad(RegLoad { bits, destination: id, value: loaded });
        put(Action::Experimenter(Extended::Nicira(action)), out, version)?;
        offset += count;
    }

    Ok(())
}

fn output<'t>(token: &Token<'t>, port: PortNo, max_len: Option<u16>) -> Result<Action<'static>, Fault<'t>> {
    if matches!(port, PortNo::ANY | PortNo::UNSET) {
        return Err(token.fault(Problem::Value));
    }
    let length = if port == PortNo::CONTROLLER { 0xffff } else { 0 };
    Ok(Action::Output(Output { port, max_len: PacketLength(max_len.unwrap_or(length)) }))
}

/// Parses a meter number. 0 and the reserved meter numbers are invalid.
fn meter<'t>(token: &Token<'t>) -> Result<MeterId, Fault<'t>> {
    let text = token.want()?;
    let number = small::<u32>(text).filter(|number| !matches!(number, 0 | 0xffff_0001..));
    number.map(MeterId).ok_or(Fault::new(text, Problem::Value))
}

/// Returns whether the field is `ct_mark` or `ct_label`.
fn is_tracked(field: FieldId) -> bool {
    (field.class, field.number) == (class::NXM_NX, 107) || (field.class, field.number) == (class::NXM_NX, 108)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Parses a 64-bit value with an optional mask.
pub(super) fn metadata<'t>(token: &Token<'t>) -> Result<(u64, u64), Fault<'t>> {
    let text = token.want()?;
    let wrong = Fault::new(text, Problem::Value);
    match text.split_once('/') {
        Some((value, mask)) => Ok((wide(value).ok_or(wrong)?, wide(mask).ok_or(wrong)?)),
        None => Ok((wide(text).ok_or(wrong)?, u64::MAX)),
    }
}
