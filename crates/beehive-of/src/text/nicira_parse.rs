//! Nicira's actions, from text.

use alloc::vec::Vec;

use bytes::BytesMut;

use super::action_parse::{Program, metadata, put, set_option};
use super::encapsulation::{decapsulated, encapsulation};
use super::error::{Fault, Problem};
use super::field_names::named;
use super::learn_parse::learn;
use super::match_parse::{basic, option, with_field};
use super::subfield::Subfield;
use super::token::{Token, Tokens};
use super::value::{Value, port, small};
use crate::message::*;
use crate::oxm::{FieldId, class};
use crate::port_number::PortNo;
use crate::schema::List;
use crate::version::Version;

/// Algorithms of `multipath` and `bundle`, and what is hashed, by number.
pub(super) const MULTIPATH: &[&str] = &["modulo_n", "hash_threshold", "hrw", "iter_hash"];
pub(super) const BUNDLE: &[&str] = &["active_backup", "hrw"];
pub(super) const HASH: &[&str] =
    &["eth_src", "symmetric_l4", "symmetric_l3l4", "symmetric_l3l4+udp", "nw_src", "nw_dst", "symmetric_l3"];

/// Reasons of packet-ins, by number.
pub(super) const REASONS: &[&str] =
    &["no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"];

fn index(names: &[&str], text: &str) -> Option<u16> {
    names.iter().position(|name| *name == text).and_then(|at| at.try_into().ok())
}

/// The value of one argument.
pub(super) fn argument<'t, T: TryFrom<u128>>(token: &Token<'t>) -> Result<T, Fault<'t>> {
    let text = token.want()?;
    small(text).ok_or(Fault::new(text, Problem::Value))
}

fn packed<'t>(field: &Subfield, text: &'t str) -> Result<u16, Fault<'t>> {
    field.packed().ok_or(Fault::new(text, Problem::Value))
}

/// Bytes written as `01.02.0a`, or without the points.
fn dotted(text: &str) -> Option<Vec<u8>> {
    let bytes = |digits: &str| -> Option<Vec<u8>> {
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            || (digits.len() > 1 && digits.len() % 2 == 1)
        {
            return None;
        }
        let pairs = digits.as_bytes().chunks(2);
        pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
    };
    text.split('.').map(bytes).collect::<Option<Vec<_>>>().map(|parts| parts.concat())
}

impl Program {
    /// Appends one of Nicira's actions.
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
            "output" if token.parenthesised => {
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
                done(A::OutputTrunc(OutputTrunc { port, max_len }))
            }
            "output" => {
                let source = Subfield::parse(token.want()?)?;
                let bits = packed(&source, text)?;
                if source.field.class == class::EXPERIMENTER {
                    let max_len = PacketLength::NO_BUFFER;
                    return done(A::OutputReg2(OutputReg2 { bits, max_len, source: source.field }));
                }
                done(A::OutputReg(OutputReg { bits, source: source.field, max_len: PacketLength::NO_BUFFER }))
            }
            "controller" | "CONTROLLER" => self.controller(token, out),
            "resubmit" if token.parenthesised => {
                let mut parts = text.split(',').map(str::trim);
                let place = |text: Option<&str>| match text {
                    None | Some("") => Some(PortNo::IN_PORT),
                    Some(text) => port(text),
                };
                let in_port = place(parts.next()).ok_or(wrong)?;
                let table_id = match parts.next() {
                    None | Some("") => TableId::ALL,
                    Some(text) => TableId(small(text).ok_or(wrong)?),
                };
                let lookup = ResubmitTable { in_port, table_id };
                match (parts.next(), parts.next()) {
                    (None, _) => done(A::ResubmitTable(lookup)),
                    (Some("ct"), None) => done(A::ResubmitTableCt(lookup)),
                    _ => Err(wrong),
                }
            }
            "resubmit" => {
                let in_port = port(token.want()?).ok_or(wrong)?;
                done(A::Resubmit(Resubmit { in_port }))
            }
            "set_tunnel" | "set_tunnel64" => {
                let tunnel_id: u64 = argument(token)?;
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
            // 1.0 has no instructions, and goes on in another table like this.
            "goto_table" if version == Version::V1_0 => done(A::ResubmitTable(ResubmitTable {
                in_port: PortNo::IN_PORT,
                table_id: TableId(argument(token)?),
            })),
            "write_metadata" => {
                let (metadata, mask) = metadata(token)?;
                done(A::WriteMetadata(NiciraWriteMetadata { metadata, mask }))
            }
            "dec_ttl" => {
                let ids: Vec<u16> =
                    text.split(',').map(|id| small(id.trim()).ok_or(wrong)).collect::<Result<_, _>>()?;
                done(A::DecTtlCntIds(DecTtlCntIds { controllers: List::new(&ids) }))
            }
            "move" => {
                let (source, destination) = token.want()?.split_once("->").ok_or(wrong)?;
                let (source, destination) = (Subfield::parse(source)?, Subfield::parse(destination)?);
                if source.count != destination.count {
                    return Err(wrong);
                }
                self.copy(token, source, destination, out)
            }
            "load" => {
                let (value, destination) = token.want()?.split_once("->").ok_or(wrong)?;
                let destination = Subfield::parse(destination)?;
                let value: u64 = small(value.trim()).ok_or(wrong)?;
                if destination.count < 64 && value >> destination.count != 0 {
                    return Err(wrong);
                }
                if destination.field.is_option() {
                    let end = u32::from(destination.offset) + u32::from(destination.count);
                    let rest = 128u32.checked_sub(destination.count.into()).ok_or(wrong)?;
                    let bits = u128::MAX.checked_shl(rest).ok_or(wrong)?;
                    let mask = bits.checked_shr(128u32.checked_sub(end).ok_or(wrong)?).ok_or(wrong)?;
                    let value = u128::from(value) << destination.offset;
                    let start = 16 - end.div_ceil(8) as usize;
                    let (value, mask) = (value.to_be_bytes(), mask.to_be_bytes());
                    let (value, mask) = (value.get(start..).unwrap_or(&[]), mask.get(start..));
                    return set_option(option(destination.field, value, mask), out, version)
                        .map_err(|error| token.fault(Problem::Version(error)));
                }
                if version >= Version::V1_5 || destination.field.class == class::EXPERIMENTER {
                    return set_bits(token, value, destination, out, version);
                }
                let bits = packed(&destination, text)?;
                done(A::RegLoad(RegLoad { bits, destination: destination.field, value }))
            }
            "push" | "pop" => {
                let field = Subfield::parse(token.want()?)?;
                let stack = StackField { offset: field.offset, field: field.field, bit_count: field.count };
                done(if token.name == "push" { A::StackPush(stack) } else { A::StackPop(stack) })
            }
            "note" => {
                let mut note = dotted(token.value.unwrap_or("")).ok_or(wrong)?;
                // Ten bytes come before it: all is a multiple of 8.
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
                let clause: u8 = small(clause.trim()).filter(|clause| *clause >= 1).ok_or(wrong)?;
                let clauses = small(count.trim()).filter(|count| *count >= clause).ok_or(wrong)?;
                let conjunction_id = small(id.trim()).ok_or(wrong)?;
                done(A::Conjunction(Conjunction { clause: clause - 1, clauses, conjunction_id }))
            }
            "sample" => {
                let sample = sample(text)?;
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
                let parts: Vec<&str> = text.split(',').map(str::trim).collect();
                let &[hash, basis, algorithm, links, argument, destination] = &parts[..] else {
                    return Err(wrong);
                };
                let destination = Subfield::parse(destination)?;
                done(A::Multipath(Multipath {
                    hash_fields: index(HASH, hash).ok_or(wrong)?,
                    basis: small(basis).ok_or(wrong)?,
                    algorithm: index(MULTIPATH, algorithm).ok_or(wrong)?,
                    max_link: small::<u16>(links).and_then(|links| links.checked_sub(1)).ok_or(wrong)?,
                    argument: small(argument).ok_or(wrong)?,
                    bits: packed(&destination, text)?,
                    destination: destination.field,
                }))
            }
            "bundle" | "bundle_load" => {
                let load = token.name == "bundle_load";
                let (head, members) =
                    text.split_once("members:").or_else(|| text.split_once("slaves:")).ok_or(wrong)?;
                let parts: Vec<&str> =
                    head.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
                let (&[hash, basis, algorithm, kind], destination) = (match (&parts[..], load) {
                    (parts @ [_, _, _, _], false) => (parts, None),
                    ([parts @ .., destination], true) => (parts, Some(*destination)),
                    _ => return Err(wrong),
                }) else {
                    return Err(wrong);
                };
                let members: Vec<u16> = members
                    .split(',')
                    .map(str::trim)
                    .filter(|member| !member.is_empty())
                    .map(|member| port(member).and_then(PortNo::to_v10).ok_or(wrong))
                    .collect::<Result<_, _>>()?;
                let destination = destination.map(Subfield::parse).transpose()?;
                let bundle = HashBundle {
                    algorithm: index(BUNDLE, algorithm).ok_or(wrong)?,
                    hash_fields: index(HASH, hash).ok_or(wrong)?,
                    basis: small(basis).ok_or(wrong)?,
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
                let target = token.rest.strip_prefix("->").ok_or(wrong)?;
                let destination = Subfield::parse(target)?;
                done(A::CheckPacketLarger(CheckPacketLarger {
                    packet_length: argument(token)?,
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
                // What is known has a name, and what has none is told as it is.
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
            "nat" => done(A::Nat(nat(text)?)),
            "learn" => learn(token, out, version),
            _ => {
                Err(Fault::new(if token.name.is_empty() { token.whole } else { token.name }, Problem::Action))
            }
        }
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
                    // No bytes at all are none.
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

    fn connection<'t>(&mut self, token: &Token<'t>, out: &mut BytesMut) -> Result<(), Fault<'t>> {
        // What it does is inside of it, even if that is nothing.
        self.check_depth(token.whole)?;
        let mut tracked = ConnectionTracking::default();
        let mut bytes = BytesMut::new();
        for part in Tokens(token.value.unwrap_or("")) {
            let part = part?;
            match (part.name, part.value) {
                ("commit", None) => tracked.flags = tracked.flags.with(ConnectionFlags::COMMIT),
                ("force", None) => tracked.flags = tracked.flags.with(ConnectionFlags::FORCE),
                ("table", Some(_)) => tracked.recirc_table = TableId(argument(&part)?),
                ("zone", Some(text)) => match small(text) {
                    Some(zone) => tracked.zone = zone,
                    None => {
                        let source = Subfield::parse(text)?;
                        (tracked.zone_source, tracked.zone) = (source.field, packed(&source, text)?);
                    }
                },
                ("alg", Some("ftp")) => tracked.alg = 21,
                ("alg", Some("tftp")) => tracked.alg = 69,
                ("nat", text) => {
                    let action = NiciraAction::Nat(nat(text.unwrap_or(""))?);
                    put(Action::Experimenter(Extended::Nicira(action)), &mut bytes, self.version)
                        .map_err(|error| part.fault(Problem::Version(error)))?;
                }
                ("exec", Some(text)) => self.actions(text, &mut bytes)?,
                _ => return Err(part.fault(Problem::Name)),
            }
        }
        tracked.actions = List::of_bytes(self.version, &bytes);
        put(
            Action::Experimenter(Extended::Nicira(NiciraAction::ConnectionTracking(tracked))),
            out,
            self.version,
        )
        .map_err(|error| token.fault(Problem::Version(error)))
    }
}

/// `load` in 1.5: a field that is set under a mask.
fn set_bits<'t>(
    token: &Token<'t>,
    value: u64,
    destination: Subfield,
    out: &mut BytesMut,
    version: Version,
) -> Result<(), Fault<'t>> {
    let ones = u128::MAX >> (128 - u32::from(destination.count.clamp(1, 128)));
    // The action that loads any field says which bits, if they are not all that its bytes have.
    let all = match version {
        Version::V1_5 => super::subfield::bits(destination.field),
        _ => 8 * u16::from(destination.field.value_length()),
    };
    let whole = destination.count == all;
    let value = super::value::Value {
        value: u128::from(value) << destination.offset,
        mask: (!whole).then(|| ones << destination.offset),
    };
    with_field(destination.field, value, |field| {
        // Before 1.5 fields of experimenters, which have no place in the usual action, are loaded by another one.
        let action = match version {
            Version::V1_5 => Action::SetField(SetField { field }),
            _ => Action::Experimenter(Extended::Nicira(NiciraAction::RegLoad2(RegLoad2 { field }))),
        };
        put(action, out, version)
    })
    .map_err(|error| token.fault(Problem::Version(error)))
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

/// `src=first-last:port-port,random`.
fn nat(text: &str) -> Result<Nat, Fault<'_>> {
    let mut nat = Nat::default();
    for part in Tokens(text) {
        let part = part?;
        match (part.name, part.value) {
            ("src", None) => nat.flags = nat.flags.with(NatFlags::SRC),
            ("dst", None) => nat.flags = nat.flags.with(NatFlags::DST),
            ("src" | "dst", Some(range)) => {
                let end = if part.name == "src" { NatFlags::SRC } else { NatFlags::DST };
                nat.flags = nat.flags.with(end);
                nat_range(range, &mut nat).ok_or(Fault::new(range, Problem::Value))?;
            }
            ("persistent", None) => nat.flags = nat.flags.with(NatFlags::PERSISTENT),
            ("hash", None) => nat.flags = nat.flags.with(NatFlags::PROTO_HASH),
            ("random", None) => nat.flags = nat.flags.with(NatFlags::PROTO_RANDOM),
            _ => return Err(part.fault(Problem::Name)),
        }
    }
    Ok(nat)
}

fn nat_range(text: &str, nat: &mut Nat) -> Option<()> {
    let six = text.starts_with('[') || text.matches(':').count() > 1;
    let (addresses, ports) = if text.starts_with('[') {
        let end = text.rfind(']')?;
        let after = text.get(end + 1..)?;
        (text.get(..=end)?, after.strip_prefix(':'))
    } else if six {
        (text, None)
    } else {
        text.split_once(':').map_or((text, None), |(addresses, ports)| (addresses, Some(ports)))
    };
    let bare = |text: &str| -> Option<core::net::Ipv6Addr> {
        text.trim_start_matches('[').trim_end_matches(']').parse().ok()
    };
    let (first, last) =
        addresses.split_once('-').map_or((addresses, None), |(first, last)| (first, Some(last)));
    if six {
        nat.ipv6_min = Some(bare(first)?);
        nat.ipv6_max = last.map(bare).map_or(Some(None), |last| last.map(Some))?;
    } else {
        nat.ipv4_min = Some(first.parse().ok()?);
        nat.ipv4_max = last.map(str::parse).transpose().ok()?;
    }
    if let Some(ports) = ports {
        let (first, last) = ports.split_once('-').map_or((ports, None), |(first, last)| (first, Some(last)));
        nat.port_min = Some(small(first)?);
        nat.port_max = match last {
            Some(last) => Some(small(last)?),
            None => None,
        };
    }
    Some(())
}
