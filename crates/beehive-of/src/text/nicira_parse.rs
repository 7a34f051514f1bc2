//! Parses Nicira's actions.

use alloc::vec::Vec;

use bytes::BytesMut;

use super::action_names::is_action;
use super::action_parse::{Program, load_runs, metadata, put, set_option};
use super::encapsulation::{decapsulated, encapsulation};
use super::error::{Fault, Problem};
use super::field_names::named;
use super::learn_parse::learn;
use super::match_parse::{basic, option, with_field};
use super::subfield::Subfield;
use super::token::{Token, Tokens};
use super::value::{Value, decimal, number, port, small, wide};
use crate::encode::EncodeError;
use crate::message::*;
use crate::oxm::{FieldId, class};
use crate::port_number::PortNo;
use crate::schema::List;
use crate::version::Version;

/// Names, indexed by number: the algorithms of `multipath` and `bundle`, and the sets of fields to hash.
pub(super) const MULTIPATH: &[&str] = &["modulo_n", "hash_threshold", "hrw", "iter_hash"];
pub(super) const BUNDLE: &[&str] = &["active_backup", "hrw"];
pub(super) const HASH: &[&str] =
    &["eth_src", "symmetric_l4", "symmetric_l3l4", "symmetric_l3l4+udp", "nw_src", "nw_dst", "symmetric_l3"];

/// The names of the reasons of packet-ins, indexed by number.
pub(super) const REASONS: &[&str] =
    &["no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"];

fn index(names: &[&str], text: &str) -> Option<u16> {
    names.iter().position(|name| name.eq_ignore_ascii_case(text)).and_then(|at| at.try_into().ok())
}

/// Parses the value of an argument.
pub(super) fn argument<'t, T: TryFrom<u128>>(token: &Token<'t>) -> Result<T, Fault<'t>> {
    let text = token.want()?;
    small(text).ok_or(Fault::new(text, Problem::Value))
}

fn packed<'t>(field: &Subfield, text: &'t str) -> Result<u16, Fault<'t>> {
    field.packed().ok_or(Fault::new(text, Problem::Value))
}

/// Parses bytes in the notation `01.02.0a` or `01020a`.
fn dotted(text: &str) -> Option<Vec<u8>> {
    let bytes = |digits: &str| -> Option<Vec<u8>> {
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) || digits.len() % 2 == 1 {
            return None;
        }
        let pairs = digits.as_bytes().chunks(2);
        pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
    };
    text.split('.').map(bytes).collect::<Option<Vec<_>>>().map(|parts| parts.concat())
}

impl Program {
    /// Appends a Nicira action.
    pub(super) fn nicira<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        use NiciraAction as A;
        let version = self.version;
        let text = token.value.unwrap_or("");
        let wrong = Fault::new(token.value.unwrap_or(token.whole), Problem::Value);
        let mut done = |action: NiciraAction<'_>| {
            put(Action::Experimenter(Extended::Nicira(action)), out, version)
                .map_err(|error| token.fault(Problem::Version(error)))
        };

        match token.name {
            "output" if text.contains("port") && text.contains("max_len") => {
                done(A::OutputTrunc(truncated(text)?))
            }
            "output" => {
                let port = token.want()?;
                let source = Subfield::parse(port).map_err(|fault| match port.contains('[') {
                    true => fault,
                    false => Fault::new(port, Problem::Port),
                })?;
                let bits = packed(&source, text)?;
                if source.field.class == class::EXPERIMENTER {
                    let max_len = PacketLength::NO_BUFFER;
                    return done(A::OutputReg2(OutputReg2 { bits, max_len, source: source.field }));
                }

                done(A::OutputReg(OutputReg { bits, source: source.field, max_len: PacketLength::NO_BUFFER }))
            }
            "controller" => self.controller(token, out),
            "resubmit" if token.parenthesized => {
                let mut parts = text.split(',').map(str::trim);
                let nowhere =
                    |to: &ResubmitTable| (to.in_port, to.table_id) == (PortNo::IN_PORT, TableId::ALL);
                let place = |text: Option<&str>| match text {
                    None | Some("") => Some(PortNo::IN_PORT),
                    Some(text) => port(text),
                };
                let in_port = place(parts.next()).ok_or(wrong)?;
                let table_id = match parts.next() {
                    None | Some("") => TableId::ALL,
                    Some(text) => TableId(decimal(text).ok_or(wrong)?),
                };
                let lookup = ResubmitTable { in_port, table_id };
                match (parts.next(), parts.next()) {
                    _ if nowhere(&lookup) => Err(wrong),
                    (None | Some(""), None) => done(A::ResubmitTable(lookup)),
                    (Some("ct"), None) => done(A::ResubmitTableCt(lookup)),
                    _ => Err(wrong),
                }
            }
            "resubmit" => {
                let in_port = port(token.want()?).filter(|port| *port != PortNo::IN_PORT).ok_or(wrong)?;
                done(A::Resubmit(Resubmit { in_port }))
            }
            "set_tunnel" | "set_tunnel64" => {
                let tunnel_id = wide(token.want()?).ok_or(wrong)?;
                if version >= Version::V1_2 {
                    let tunnel = Value { value: tunnel_id.into(), mask: None };
                    return with_field(basic(38, 8), tunnel, |field| {
                        put(Action::SetField(SetField { field }), out, version)
                    })
                    .map_err(|error| token.fault(Problem::Version(error)));
                }

                match u32::try_from(tunnel_id) {
                    Ok(tunnel_id) if token.name == "set_tunnel" => {
                        done(A::SetTunnel(SetTunnel { tunnel_id }))
                    }
                    _ => done(A::SetTunnel64(SetTunnel64 { tunnel_id })),
                }
            }
            "pop_queue" => done(A::PopQueue(NiciraNothing {})),
            "exit" => done(A::Exit(NiciraNothing {})),
            "ct_clear" => done(A::CtClear(NiciraNothing {})),
            "dec_nsh_ttl" => done(A::DecNshTtl(NiciraNothing {})),
            // 1.0 has no instructions, so goto-table is encoded as a `resubmit`. Table 255 is invalid,
            // because it means the current table there.
            "goto_table" if version == Version::V1_0 => done(A::ResubmitTable(ResubmitTable {
                in_port: PortNo::IN_PORT,
                table_id: decimal(token.want()?)
                    .map(TableId)
                    .filter(|table| *table != TableId::ALL)
                    .ok_or(wrong)?,
            })),
            "write_metadata" if version == Version::V1_0 && self.is_outermost() => {
                let (metadata, mask) = metadata(token)?;
                done(A::WriteMetadata(NiciraWriteMetadata { metadata, mask }))
            }
            "dec_ttl" => {
                let ids: Vec<u16> =
                    text.split(',').map(|id| decimal(id.trim()).ok_or(wrong)).collect::<Result<_, _>>()?;
                done(A::DecTtlCntIds(DecTtlCntIds { controllers: List::new(&ids) }))
            }
            "move" => {
                let (source, destination) = token.want()?.split_once("->").ok_or(wrong)?;
                let (source, destination) = (Subfield::parse(source)?, Subfield::destination(destination)?);
                if source.count != destination.count {
                    return Err(wrong);
                }
                self.check_tracked(destination.field, token)?;
                self.copy(token, source, destination, out)
            }
            "load" => self.load_bits(token, out),
            "push" | "pop" => {
                let text = token.want()?;
                let pushes = token.name == "push";
                let field = if pushes { Subfield::parse(text) } else { Subfield::destination(text) }?;
                let stack = StackField { offset: field.offset, field: field.field, bit_count: field.count };
                done(if pushes { A::StackPush(stack) } else { A::StackPop(stack) })
            }
            "note" => {
                let mut note = dotted(token.value.unwrap_or("")).ok_or(wrong)?;
                // The note is at least 6 bytes long. With the 10 bytes before it, the length is a multiple of
                // 8.
                note.resize(note.len().max(6) + (8 - (note.len().max(6) + 10) % 8) % 8, 0);
                done(A::Note(Note { note: &note }))
            }
            "fin_timeout" => {
                let mut timeouts = FinTimeout::default();
                for part in Tokens(text) {
                    let part = part?;
                    match part.name {
                        "idle_timeout" => timeouts.fin_idle_timeout = argument(&part)?,
                        "hard_timeout" => timeouts.fin_hard_timeout = argument(&part)?,
                        _ => return Err(part.fault(Problem::Name)),
                    }
                }

                done(A::FinTimeout(timeouts))
            }
            "conjunction" => {
                let (id, clauses) = token.want()?.split_once(',').ok_or(wrong)?;
                let (clause, count) = clauses.split_once('/').ok_or(wrong)?;
                let clause: u8 = decimal(clause.trim()).filter(|clause| *clause >= 1).ok_or(wrong)?;
                let clauses: u8 = decimal(count.trim())
                    .filter(|count| *count >= clause && (2..=64).contains(count))
                    .ok_or(wrong)?;
                let conjunction_id = small(id.trim()).ok_or(wrong)?;
                done(A::Conjunction(Conjunction { clause: clause - 1, clauses, conjunction_id }))
            }
            "sample" => {
                let sample = sample(text)?;
                if sample.probability == 0 {
                    return Err(wrong);
                }

                match (sample.sampling_port, sample.direction) {
                    (PortNo::ANY, SampleDirection::DEFAULT) => done(A::Sample(Sample {
                        probability: sample.probability,
                        collector_set_id: sample.collector_set_id,
                        observation_domain_id: sample.observation_domain_id,
                        observation_point_id: sample.observation_point_id,
                    })),
                    (_, SampleDirection::DEFAULT) => done(A::Sample2(sample)),
                    _ => done(A::Sample3(sample)),
                }
            }
            "multipath" => {
                let parts: Vec<&str> = text.split([',', ' ']).filter(|part| !part.is_empty()).collect();
                let &[hash, basis, algorithm, links, argument, destination] = &parts[..] else {
                    return Err(wrong);
                };
                let destination = Subfield::short(Subfield::destination(destination)?, destination)?;
                let max_link = decimal::<u32>(links).and_then(|links| links.checked_sub(1)).ok_or(wrong)?;

                // The highest link number must fit in the destination field.
                if max_link.checked_shr(destination.count.into()).is_some_and(|rest| rest != 0) {
                    return Err(wrong);
                }

                done(A::Multipath(Multipath {
                    hash_fields: index(HASH, hash).ok_or(wrong)?,
                    basis: decimal(basis).ok_or(wrong)?,
                    algorithm: index(MULTIPATH, algorithm).ok_or(wrong)?,
                    max_link: max_link.try_into().map_err(|_| wrong)?,
                    argument: decimal(argument).ok_or(wrong)?,
                    bits: packed(&destination, text)?,
                    destination: destination.field,
                }))
            }
            "bundle" | "bundle_load" => {
                let load = token.name == "bundle_load";
                let (head, members) =
                    text.split_once("members:").or_else(|| text.split_once("slaves:")).ok_or(wrong)?;
                let parts: Vec<&str> = head.split([',', ' ']).filter(|part| !part.is_empty()).collect();
                let (&[hash, basis, algorithm, kind], destination) = (match (&parts[..], load) {
                    (parts @ [_, _, _, _], false) => (parts, None),
                    ([parts @ .., destination], true) => (parts, Some(*destination)),
                    _ => return Err(wrong),
                }) else {
                    return Err(wrong);
                };
                let members: Vec<u16> = members
                    .split([',', ' ', '[', ']'])
                    .filter(|member| !member.is_empty())
                    .map(|member| port(member).and_then(PortNo::to_v10).ok_or(wrong))
                    .collect::<Result<_, _>>()?;
                let destination = destination
                    .map(|text| Subfield::short(Subfield::destination(text)?, text))
                    .transpose()?;
                let bundle = HashBundle {
                    algorithm: index(BUNDLE, algorithm).ok_or(wrong)?,
                    hash_fields: index(HASH, hash).ok_or(wrong)?,
                    basis: decimal(basis).ok_or(wrong)?,
                    member_type: match kind {
                        "ofport" => FieldId { class: class::NXM_OF, length: 2, ..FieldId::default() },
                        _ => return Err(wrong),
                    },
                    bits: destination.as_ref().map_or(Ok(0), |field| packed(field, text))?,
                    destination: destination.map_or(FieldId::default(), |field| field.field),
                    members: List::new(&members),
                };

                done(if load { A::BundleLoad(bundle) } else { A::Bundle(bundle) })
            }
            "check_pkt_larger" => {
                let (length, target) = match token.rest.strip_prefix("->") {
                    Some(target) => (token.want()?, target),
                    None => text.split_once("->").ok_or(wrong)?,
                };
                let destination = Subfield::destination(target)?;

                // The result is a single bit.
                if destination.count != 1 {
                    return Err(Fault::new(target, Problem::Value));
                }

                done(A::CheckPacketLarger(CheckPacketLarger {
                    packet_length: small(length).ok_or(Fault::new(length, Problem::Value))?,
                    offset: destination.offset,
                    destination: destination.field,
                }))
            }
            "clone" => {
                let mut bytes = BytesMut::new();
                self.actions(text, &mut bytes)?;
                done(A::Clone(CloneActions { actions: List::of_bytes(version, &bytes) }))
            }
            "encap" => {
                let (packet_type, properties) = encapsulation(text)?;
                done(A::Encap(Encap { header_size: 0, packet_type, properties: &properties }))
            }
            "decap" => done(A::Decap(Decap { packet_type: decapsulated(text)? })),
            "delete_field" => {
                let name = token.want()?;
                let field = named(name).filter(FieldId::is_option).ok_or(Fault::new(name, Problem::Name))?;
                done(A::DeleteField(DeleteField { field }))
            }
            "experimenter" => {
                let (number, digits) = token.want()?.split_once(':').ok_or(wrong)?;
                let experimenter = ExperimenterId(small(number.trim()).ok_or(wrong)?);

                // The actions of known experimenters have names. Only the actions of other experimenters are
                // written as bytes.
                if matches!(experimenter, ExperimenterId::NICIRA | ExperimenterId::ONF) {
                    return Err(Fault::new(number, Problem::Value));
                }

                let body: Option<Vec<u8>> = digits
                    .as_bytes()
                    .chunks(2)
                    .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
                    .collect();
                let body = body.filter(|body| body.len() % 8 == 0 && digits.len() % 2 == 0).ok_or(wrong)?;
                let action = Extended::Unknown { experimenter, experimenter_type: 0, body: &body };
                put(Action::Experimenter(action), out, version)
                    .map_err(|error| token.fault(Problem::Version(error)))
            }
            "ct" => self.connection(token, out),
            "write_actions" | "clear_actions" | "meter" if version == Version::V1_0 => {
                let field = match token.name {
                    "meter" => "meter",
                    "clear_actions" => "clear_actions",
                    _ => "write_actions",
                };
                Err(token.fault(Problem::Version(EncodeError::Unsupported { version, field })))
            }
            // These names are instructions, or actions that are valid in `ct` only.
            "nat" | "goto_table" | "write_actions" | "write_metadata" | "clear_actions" | "meter" => {
                Err(token.fault(Problem::Place))
            }
            "learn" => learn(token, out, version),
            // The action is known, but its argument is missing or has the wrong form.
            name if is_action(name) => Err(match token.value {
                None => token.fault(Problem::MissingValue),
                Some(value) => Fault::new(value, Problem::Value),
            }),
            _ => Err(Fault::new(token.written(), Problem::Action)),
        }
    }

    /// Appends `load:value->field[first..last]`.
    fn load_bits<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let text = token.want()?;
        let wrong = Fault::new(text, Problem::Value);
        let (value, destination) = text.split_once("->").ok_or(wrong)?;
        let to = Subfield::destination(destination)?;
        self.check_tracked(to.field, token)?;
        let value = match to.field.value_length() {
            8 => wide(value.trim()).map(u128::from),
            _ => number(value.trim()),
        };
        let value = value.ok_or(wrong)?;
        let (count, end) = (u32::from(to.count), u32::from(to.offset) + u32::from(to.count));
        if count == 0 || end > 128 || (count < 128 && value >> count != 0) {
            return Err(wrong);
        }

        // The lower two bits of the type-of-service byte belong to ECN and cannot be set here.
        let told_elsewhere =
            (to.field.class, to.field.number) == (class::NXM_OF, 5) && (value << to.offset) % 4 != 0;
        if told_elsewhere {
            return Err(wrong);
        }

        let mask = u128::MAX >> (128 - count) << to.offset;
        let value = Value { value: value << to.offset, mask: Some(mask) };
        let version = self.version;
        let told = if to.field.is_option() {
            let start = 16 - end.div_ceil(8) as usize;
            let (value, mask) = (value.value.to_be_bytes(), mask.to_be_bytes());
            let (value, mask) = (value.get(start..).unwrap_or(&[]), mask.get(start..));
            set_option(option(to.field, value, mask), out, version)
        } else if version >= Version::V1_5 || to.field.class == class::EXPERIMENTER {
            set_bits(value, to, out, version)
        } else {
            load_runs(to.field, value, out, version)
        };

        told.map_err(|error| token.fault(Problem::Version(error)))
    }

    fn copy<'t>(
        &mut self,
        token: &Token<'t>,
        source: Subfield,
        destination: Subfield,
        out: &mut BytesMut,
    ) -> Result<(), Fault<'t>> {
        let action = if self.version >= Version::V1_5 {
            Action::CopyField(CopyField {
                bit_count: source.count,
                source_offset: source.offset,
                destination_offset: destination.offset,
                source: source.field,
                destination: destination.field,
            })
        } else {
            Action::Experimenter(Extended::Nicira(NiciraAction::RegMove(RegMove {
                bit_count: source.count,
                source_offset: source.offset,
                destination_offset: destination.offset,
                source: source.field,
                destination: destination.field,
            })))
        };
        put(action, out, self.version).map_err(|error| token.fault(Problem::Version(error)))
    }

    fn controller<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        let (mut max_len, mut id, mut reason) = (PacketLength::NO_BUFFER, 0, PacketInReason::ACTION);
        let (mut userdata, mut pause, mut meter_id) = (Vec::new(), false, None);
        for part in Tokens(token.value.unwrap_or("")) {
            let part = part?;
            match part.name {
                "max_len" => max_len = PacketLength(argument(&part)?),
                "id" => id = argument(&part)?,
                "reason" => {
                    let name = part.want()?;
                    let number = index(REASONS, name).ok_or(Fault::new(name, Problem::Value))?;
                    reason = PacketInReason(number as u8);
                }
                "userdata" => {
                    // An empty value is valid and means no bytes.
                    let digits = part.value.ok_or(part.fault(Problem::MissingValue))?;
                    userdata = dotted(digits).ok_or(Fault::new(digits, Problem::Value))?;
                }
                "pause" => pause = true,
                "meter_id" => meter_id = Some(MeterId(argument(&part)?)),
                _ => return Err(part.fault(Problem::Name)),
            }
        }

        let action = if userdata.is_empty() && !pause && meter_id.is_none() {
            let plain = id == 0 && reason == PacketInReason::ACTION;
            if plain {
                Action::Output(Output { port: PortNo::CONTROLLER, max_len })
            } else {
                let controller = Controller { max_len, controller_id: id, reason };
                Action::Experimenter(Extended::Nicira(NiciraAction::Controller(controller)))
            }
        } else {
            let mut properties = Vec::new();
            if max_len != PacketLength::NO_BUFFER {
                properties.push(ControllerActionProperty::MaxLength(MaxLength { max_len }));
            }
            if id != 0 {
                properties.push(ControllerActionProperty::ControllerId(ControllerId { controller_id: id }));
            }
            if reason != PacketInReason::ACTION {
                properties.push(ControllerActionProperty::Reason(ReasonProperty { reason }));
            }
            if !userdata.is_empty() {
                properties.push(ControllerActionProperty::UserData(PropertyBytes { data: &userdata }));
            }
            if pause {
                properties.push(ControllerActionProperty::Pause(PauseProperty {}));
            }

            if let Some(meter_id) = meter_id {
                properties.push(ControllerActionProperty::MeterId(MeterProperty { meter_id }));
            }

            let list = Controller2 { properties: List::new(&properties) };
            return put(
                Action::Experimenter(Extended::Nicira(NiciraAction::Controller2(list))),
                out,
                self.version,
            )
            .map_err(|error| token.fault(Problem::Version(error)));
        };

        put(action, out, self.version).map_err(|error| token.fault(Problem::Version(error)))
    }
}

/// Appends a `load` as a masked `set_field` or, in versions that lack it, as Nicira's equivalent.
fn set_bits(
    value: Value,
    destination: Subfield,
    out: &mut BytesMut,
    version: Version,
) -> Result<(), EncodeError> {
    // Nicira's action needs a mask, unless it sets all bits in the bytes of the field.
    let all = match version {
        Version::V1_5 => super::subfield::bits(destination.field),
        _ => 8 * u16::from(destination.field.value_length()),
    };
    let value = Value { mask: value.mask.filter(|_| destination.count != all), ..value };
    with_field(destination.field, value, |field| {
        // Before 1.5, `RegLoad2` sets the bits of an experimenter field, because `RegLoad` cannot express
        // such a field.
        let action = match version {
            Version::V1_5 => Action::SetField(SetField { field }),
            Version::V1_2 | Version::V1_3 | Version::V1_4 if field.mask.is_none() => {
                Action::SetField(SetField { field })
            }
            _ => Action::Experimenter(Extended::Nicira(NiciraAction::RegLoad2(RegLoad2 { field }))),
        };
        put(action, out, version)
    })
}

/// Parses `port=1,max_len=100`, an output of truncated packets.
fn truncated(text: &str) -> Result<OutputTrunc, Fault<'_>> {
    let wrong = Fault::new(text, Problem::Value);
    let (mut to, mut max_len) = (None, None);
    for part in Tokens(text) {
        let part = part?;
        match part.name {
            "port" => to = Some(port(part.want()?).ok_or(wrong)?),
            "max_len" => max_len = Some(argument(&part)?),
            _ => return Err(part.fault(Problem::Name)),
        }
    }

    let (port, max_len) = to.zip(max_len).ok_or(wrong)?;
    let single = port < PortNo::MAX || matches!(port, PortNo::LOCAL | PortNo::IN_PORT);

    // The packet must contain at least an Ethernet header.
    if single && max_len >= 14 { Ok(OutputTrunc { port, max_len }) } else { Err(wrong) }
}

fn sample(text: &str) -> Result<Sample2, Fault<'_>> {
    let mut sample = Sample2::default();
    for part in Tokens(text) {
        let part = part?;
        match (part.name, part.value) {
            ("probability", _) => sample.probability = argument(&part)?,
            ("collector_set_id", _) => sample.collector_set_id = argument(&part)?,
            ("obs_domain_id", _) => sample.observation_domain_id = argument(&part)?,
            ("obs_point_id", _) => sample.observation_point_id = argument(&part)?,
            ("sampling_port", Some(text)) => {
                sample.sampling_port = port(text).ok_or(Fault::new(text, Problem::Value))?;
            }
            ("ingress", None) => sample.direction = SampleDirection::INGRESS,
            ("egress", None) => sample.direction = SampleDirection::EGRESS,
            _ => return Err(part.fault(Problem::Name)),
        }
    }

    Ok(sample)
}
