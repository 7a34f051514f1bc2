//! Displays Nicira's actions.

use core::fmt;

use super::action_show::{list, show_metadata, show_set_field};
use super::encapsulation::{show_decapsulated, show_encapsulation};
use super::nicira_parse::{BUNDLE, HASH, MULTIPATH, REASONS};
use super::subfield::Subfield;
use super::value::{Shown, to_number};
use crate::message::*;
use crate::oxm::{FieldId, OxmField};
use crate::port_number::PortNo;
use crate::schema::List;
use crate::version::Version;

type Out<'f, 'g> = &'f mut fmt::Formatter<'g>;

fn name(names: &[&'static str], number: u16) -> &'static str {
    names.get(usize::from(number)).copied().unwrap_or("unknown")
}

fn dotted(bytes: &[u8], out: Out<'_, '_>) -> fmt::Result {
    for (index, byte) in bytes.iter().enumerate() {
        write!(out, "{}{byte:02x}", if index > 0 { "." } else { "" })?;
    }
    Ok(())
}

/// Writes `name=value` for each value that differs from its default, after a separator. Returns the next
/// separator.
fn options(
    pairs: &[(&str, u64, u64)],
    mut separator: &'static str,
    out: Out<'_, '_>,
) -> Result<&'static str, fmt::Error> {
    for (name, value, usual) in pairs.iter().filter(|(_, value, usual)| value != usual) {
        let _ = usual;
        write!(out, "{separator}{name}={value}")?;
        separator = ",";
    }
    Ok(separator)
}

/// Writes a Nicira action.
pub(super) fn show_nicira(action: &NiciraAction<'_>, version: Version, out: Out<'_, '_>) -> fmt::Result {
    use NiciraAction as A;
    match action {
        A::Resubmit(again) => write!(out, "resubmit:{}", again.in_port),
        A::ResubmitTable(again) => resubmit(again, "", out),
        A::ResubmitTableCt(again) => resubmit(again, ",ct", out),
        A::SetTunnel(set) => write!(out, "set_tunnel:{:#x}", set.tunnel_id),
        A::SetTunnel64(set) => write!(out, "set_tunnel64:{:#x}", set.tunnel_id),
        A::SetQueue(queue) => write!(out, "set_queue:{}", queue.queue_id.0),
        A::PopQueue(_) => out.write_str("pop_queue"),
        A::RegMove(copy) => {
            let part = |field, offset| Subfield { field, offset, count: copy.bit_count };
            let (from, to) =
                (part(copy.source, copy.source_offset), part(copy.destination, copy.destination_offset));
            write!(out, "move:{from}->{to}")
        }
        A::RegLoad(load) => {
            write!(out, "load:{:#x}->{}", load.value, Subfield::unpack(load.destination, load.bits))
        }
        A::RegLoad2(load) => match loaded(&load.field) {
            // In 1.1, Open vSwitch cannot parse `set_field` with a tunnel option.
            Some((value, bits)) if version == Version::V1_1 => write!(out, "load:{value:#x}->{bits}"),
            _ => show_set_field(&load.field, out),
        },
        A::Note(note) => {
            out.write_str("note:")?;
            dotted(note.note, out)
        }
        A::Multipath(path) => write!(
            out,
            "multipath({},{},{},{},{},{})",
            name(HASH, path.hash_fields),
            path.basis,
            name(MULTIPATH, path.algorithm),
            u32::from(path.max_link) + 1,
            path.argument,
            Subfield::unpack(path.destination, path.bits),
        ),
        A::Bundle(bundle) => hash_bundle("bundle", bundle, false, out),
        A::BundleLoad(bundle) => hash_bundle("bundle_load", bundle, true, out),
        A::OutputReg(output) => write!(out, "output:{}", Subfield::unpack(output.source, output.bits)),
        A::OutputReg2(output) => write!(out, "output:{}", Subfield::unpack(output.source, output.bits)),
        A::Learn(flow) => learn(
            &Learn2 {
                idle_timeout: flow.idle_timeout,
                hard_timeout: flow.hard_timeout,
                priority: flow.priority,
                cookie: flow.cookie,
                flags: flow.flags,
                table_id: flow.table_id,
                fin_idle_timeout: flow.fin_idle_timeout,
                fin_hard_timeout: flow.fin_hard_timeout,
                rest: LearnRest { result: None, specs: flow.specs },
                ..Learn2::default()
            },
            out,
        ),
        A::Learn2(flow) => learn(flow, out),
        A::Exit(_) => out.write_str("exit"),
        A::DecTtl(_) => out.write_str("dec_ttl"),
        A::FinTimeout(timeouts) => {
            out.write_str("fin_timeout(")?;
            options(
                &[
                    ("idle_timeout", timeouts.fin_idle_timeout.into(), 0),
                    ("hard_timeout", timeouts.fin_hard_timeout.into(), 0),
                ],
                "",
                out,
            )?;

            out.write_str(")")
        }
        A::Controller(to) => {
            out.write_str("controller(")?;
            let separator = reason(to.reason, "", out)?;
            options(
                &[("max_len", to.max_len.0.into(), 0xffff), ("id", to.controller_id.into(), 0)],
                separator,
                out,
            )?;
            out.write_str(")")
        }
        A::Controller2(to) => controller(&to.properties, out),
        A::DecTtlCntIds(ids) => numbers("dec_ttl", &ids.controllers, out),
        A::WriteMetadata(write) => show_metadata(write.metadata, write.mask, out),
        A::PushMpls(push) => write!(out, "push_mpls:{:#06x}", push.eth_type),
        A::PopMpls(pop) => write!(out, "pop_mpls:{:#06x}", pop.eth_type),
        A::SetMplsTtl(set) => write!(out, "set_mpls_ttl({})", set.value),
        A::DecMplsTtl(_) => out.write_str("dec_mpls_ttl"),
        A::SetMplsLabel(set) => write!(out, "set_mpls_label({})", set.value),
        A::SetMplsTc(set) => write!(out, "set_mpls_tc({})", set.value),
        A::StackPush(stack) => write!(out, "push:{}", stacked(stack)),
        A::StackPop(stack) => write!(out, "pop:{}", stacked(stack)),
        A::Sample(some) => sample(
            &Sample2 {
                probability: some.probability,
                collector_set_id: some.collector_set_id,
                observation_domain_id: some.observation_domain_id,
                observation_point_id: some.observation_point_id,
                ..Sample2::default()
            },
            out,
        ),
        A::Sample2(some) | A::Sample3(some) => sample(some, out),
        A::Conjunction(part) => write!(
            out,
            "conjunction({},{}/{})",
            part.conjunction_id,
            u32::from(part.clause) + 1,
            part.clauses
        ),
        A::ConnectionTracking(tracked) => connection(tracked, version, out),
        A::Nat(translated) => nat(translated, out),
        A::OutputTrunc(output) => {
            write!(out, "output(port={},max_len={})", output.port, output.max_len)
        }
        A::Group(group) => write!(out, "group:{}", group.group_id.0),
        A::Clone(copy) => {
            out.write_str("clone(")?;
            list(&copy.actions, version, "", out)?;
            out.write_str(")")
        }
        A::CtClear(_) => out.write_str("ct_clear"),
        A::Encap(encap) => show_encapsulation(encap, out),
        A::Decap(decap) => show_decapsulated(decap, out),
        A::DecNshTtl(_) => out.write_str("dec_nsh_ttl"),
        A::CheckPacketLarger(check) => {
            let bit = Subfield { field: check.destination, offset: check.offset, count: 1 };
            write!(out, "check_pkt_larger({})->{bit}", check.packet_length)
        }
        A::DeleteField(delete) => write!(out, "delete_field:{}", delete.field),
        A::Unknown { kind, body } => write!(out, "unknown(nicira:{kind}:{} bytes)", body.len()),
    }
}

/// Returns the value and the bits that the action sets in a tunnel option, if an equivalent `load` has the
/// same length.
fn loaded(field: &OxmField<'_>) -> Option<(u64, Subfield)> {
    let mask = field.mask.filter(|mask| field.id().is_option() && mask.len() <= 16)?;
    let (value, mask) = (to_number(field.value), to_number(mask));
    let end = 128 - mask.leading_zeros();
    let offset = mask.trailing_zeros().min(end);
    let count = end - offset;
    let value = u64::try_from(value >> offset).ok()?;
    let one_run = (1..=64).contains(&count) && mask.count_ones() == count;

    // The value must not have bits outside of the run, nor more bytes than the equivalent `load` would set.
    let told =
        one_run && (u128::from(value) >> count) == 0 && u128::from(value) << offset == to_number(field.value);
    let same_length = field.value.len() == end.div_ceil(8) as usize;
    let (offset, count) = (offset.try_into().ok()?, count.try_into().ok()?);
    (told && same_length)
        .then_some((value, Subfield { field: FieldId { masked: false, ..field.id() }, offset, count }))
}

fn resubmit(again: &ResubmitTable, ending: &str, out: Out<'_, '_>) -> fmt::Result {
    out.write_str("resubmit(")?;
    if again.in_port != PortNo::IN_PORT {
        write!(out, "{}", again.in_port)?;
    }

    out.write_str(",")?;
    if again.table_id != TableId::ALL {
        write!(out, "{}", again.table_id.0)?;
    }

    write!(out, "{ending})")
}

fn numbers(name: &str, list: &List<'_, u16>, out: Out<'_, '_>) -> fmt::Result {
    write!(out, "{name}(")?;
    for (index, number) in list.iter().flatten().enumerate() {
        write!(out, "{}{number}", if index > 0 { "," } else { "" })?;
    }
    out.write_str(")")
}

fn hash_bundle(word: &str, bundle: &HashBundle<'_>, load: bool, out: Out<'_, '_>) -> fmt::Result {
    let (hash, algorithm) = (name(HASH, bundle.hash_fields), name(BUNDLE, bundle.algorithm));
    write!(out, "{word}({hash},{},{algorithm},ofport,", bundle.basis)?;
    if load {
        write!(out, "{},", Subfield::unpack(bundle.destination, bundle.bits))?;
    }

    out.write_str("members:")?;
    for (index, member) in bundle.members.iter().flatten().enumerate() {
        write!(out, "{}{}", if index > 0 { "," } else { "" }, PortNo::from_v10(member))?;
    }

    out.write_str(")")
}

fn stacked(stack: &StackField) -> Subfield {
    Subfield { field: stack.field, offset: stack.offset, count: stack.bit_count }
}

fn reason(
    why: PacketInReason,
    separator: &'static str,
    out: Out<'_, '_>,
) -> Result<&'static str, fmt::Error> {
    if why == PacketInReason::ACTION {
        return Ok(separator);
    }
    write!(out, "{separator}reason={}", name(REASONS, why.0.into()))?;
    Ok(",")
}

fn controller(properties: &List<'_, ControllerActionProperty<'_>>, out: Out<'_, '_>) -> fmt::Result {
    use ControllerActionProperty as P;
    out.write_str("controller(")?;
    let mut separator = "";
    for property in properties.iter().flatten() {
        match property {
            P::Reason(why) => {
                separator = reason(why.reason, separator, out)?;
                continue;
            }
            P::MaxLength(length) => write!(out, "{separator}max_len={}", length.max_len.0)?,
            P::ControllerId(id) => write!(out, "{separator}id={}", id.controller_id)?,
            P::UserData(data) => {
                write!(out, "{separator}userdata=")?;
                dotted(data.data, out)?;
            }
            P::Pause(_) => write!(out, "{separator}pause")?,
            P::MeterId(meter) => write!(out, "{separator}meter_id={}", meter.meter_id.0)?,
            P::Unknown { kind, .. } => write!(out, "{separator}unknown({kind})")?,
        }
        separator = ",";
    }

    out.write_str(")")
}

fn sample(some: &Sample2, out: Out<'_, '_>) -> fmt::Result {
    write!(
        out,
        "sample(probability={},collector_set_id={},obs_domain_id={},obs_point_id={}",
        some.probability, some.collector_set_id, some.observation_domain_id, some.observation_point_id
    )?;
    if some.sampling_port != PortNo::ANY {
        write!(out, ",sampling_port={}", some.sampling_port)?;
    }

    match some.direction {
        SampleDirection::INGRESS => out.write_str(",ingress)"),
        SampleDirection::EGRESS => out.write_str(",egress)"),
        _ => out.write_str(")"),
    }
}

fn connection(tracked: &ConnectionTracking<'_>, version: Version, out: Out<'_, '_>) -> fmt::Result {
    out.write_str("ct(")?;
    let mut separator = "";
    let mut put = |out: Out<'_, '_>, value: fmt::Arguments<'_>| {
        out.write_str(separator)?;
        separator = ",";
        out.write_fmt(value)
    };

    if tracked.flags.contains(ConnectionFlags::COMMIT) {
        put(out, format_args!("commit"))?;
    }
    if tracked.flags.contains(ConnectionFlags::FORCE) {
        put(out, format_args!("force"))?;
    }
    if tracked.recirc_table != TableId::ALL {
        put(out, format_args!("table={}", tracked.recirc_table.0))?;
    }
    if tracked.zone_source != Default::default() {
        put(out, format_args!("zone={}", Subfield::unpack(tracked.zone_source, tracked.zone)))?;
    } else if tracked.zone != 0 {
        put(out, format_args!("zone={}", tracked.zone))?;
    }

    match tracked.alg {
        0 => {}
        21 => put(out, format_args!("alg=ftp"))?,
        69 => put(out, format_args!("alg=tftp"))?,
        other => put(out, format_args!("alg={other}"))?,
    }

    let is_nat =
        |action: &Action<'_>| matches!(action, Action::Experimenter(Extended::Nicira(NiciraAction::Nat(_))));
    let mut executed = false;
    for action in tracked.actions.iter() {
        match action {
            Ok(Action::Experimenter(Extended::Nicira(NiciraAction::Nat(translated)))) => {
                put(out, format_args!(""))?;
                nat(&translated, out)?;
            }
            Ok(_) => executed = true,
            Err(error) => return write!(out, "<{error}>)"),
        }
    }

    if executed {
        put(out, format_args!("exec("))?;
        let mut separator = "";
        for action in tracked.actions.iter().flatten().filter(|action| !is_nat(action)) {
            separator = list(&List::new(&[action]), version, separator, out)?;
        }
        out.write_str(")")?;
    }

    out.write_str(")")
}

fn nat(translated: &Nat, out: Out<'_, '_>) -> fmt::Result {
    if *translated == Nat::default() {
        return out.write_str("nat");
    }

    let flags = translated.flags;
    let ranged = Nat { flags, ..Nat::default() } != *translated;
    let end = match (flags.contains(NatFlags::SRC), flags.contains(NatFlags::DST)) {
        (true, _) => "src",
        (false, true) => "dst",
        // A range requires an end of the connection, so use the default.
        (false, false) if ranged => "dst",
        (false, false) => "",
    };

    write!(out, "nat({end}")?;
    let mut separator = if end.is_empty() { "" } else { "," };
    match (translated.ipv4_min, translated.ipv4_max) {
        (Some(first), Some(last)) => write!(out, "={first}-{last}")?,
        (Some(first), None) => write!(out, "={first}")?,
        _ => {}
    }

    let ports = translated.port_min.is_some();
    match (translated.ipv6_min, translated.ipv6_max) {
        (Some(first), Some(last)) if ports => write!(out, "=[{first}]-[{last}]")?,
        (Some(first), None) if ports => write!(out, "=[{first}]")?,
        (Some(first), Some(last)) => write!(out, "={first}-{last}")?,
        (Some(first), None) => write!(out, "={first}")?,
        _ => {}
    }
    match (translated.port_min, translated.port_max) {
        (Some(first), Some(last)) => write!(out, ":{first}-{last}")?,
        (Some(first), None) => write!(out, ":{first}")?,
        _ => {}
    }

    for (flag, word) in [
        // An action with both ends is invalid, but must still be displayed.
        (NatFlags::SRC.with(NatFlags::DST), "dst"),
        (NatFlags::PERSISTENT, "persistent"),
        (NatFlags::PROTO_HASH, "hash"),
        (NatFlags::PROTO_RANDOM, "random"),
    ] {
        if flags.contains(flag) {
            write!(out, "{separator}{word}")?;
            separator = ",";
        }
    }

    out.write_str(")")
}

fn learn(flow: &Learn2<'_>, out: Out<'_, '_>) -> fmt::Result {
    write!(out, "learn(table={}", flow.table_id.0)?;
    options(
        &[
            ("idle_timeout", flow.idle_timeout.into(), 0),
            ("hard_timeout", flow.hard_timeout.into(), 0),
            ("fin_idle_timeout", flow.fin_idle_timeout.into(), 0),
            ("fin_hard_timeout", flow.fin_hard_timeout.into(), 0),
            ("priority", flow.priority.into(), 0x8000),
            ("cookie", flow.cookie, 0),
            ("limit", flow.limit.into(), 0),
        ],
        ",",
        out,
    )?;
    for (flag, word) in
        [(LearnFlags::SEND_FLOW_REMOVED, "send_flow_rem"), (LearnFlags::DELETE_LEARNED, "delete_learned")]
    {
        if flow.flags.contains(flag) {
            write!(out, ",{word}")?;
        }
    }

    if let Some(field) = flow.rest.result {
        write!(out, ",result_dst={}", Subfield { field, offset: flow.result_offset, count: 1 })?;
    }

    for spec in flow.rest.specs.iter() {
        let spec = match spec {
            Ok(spec) => spec,
            Err(error) => return write!(out, ",<{error}>)"),
        };
        let part = |field, offset| Subfield { field, offset, count: spec.bit_count };
        match (spec.source, spec.destination) {
            (LearnSource::Field(from, at), LearnDestination::Match(to, offset))
                if (from, at) == (to, offset) =>
            {
                write!(out, ",{}", part(to, offset))?;
            }
            (LearnSource::Field(from, at), LearnDestination::Match(to, offset)) => {
                write!(out, ",{}={}", part(to, offset), part(from, at))?;
            }
            (LearnSource::Field(from, at), LearnDestination::Load(to, offset)) => {
                write!(out, ",load:{}->{}", part(from, at), part(to, offset))?;
            }
            (LearnSource::Field(from, at), LearnDestination::Output) => {
                write!(out, ",output:{}", part(from, at))?
            }
            (LearnSource::Value(value), LearnDestination::Match(to, offset)) => {
                let part = part(to, offset);
                match part.whole() {
                    Some((name, kind)) => {
                        // The length of the constant is a multiple of 16 bits, so skip the leading padding.
                        let start = value.len().saturating_sub(usize::from(to.value_length()));
                        let value = value.get(start..).unwrap_or(value);
                        write!(out, ",{name}={}", Shown { id: to, kind, value, mask: None })?;
                    }
                    None => write!(out, ",{part}={:#x}", to_number(value))?,
                }
            }
            (LearnSource::Value(value), LearnDestination::Load(to, offset)) => {
                write!(out, ",load:{:#x}->{}", to_number(value), part(to, offset))?;
            }
            (LearnSource::Value(value), LearnDestination::Output) => {
                write!(out, ",output:{:#x}", to_number(value))?
            }
        }
    }

    out.write_str(")")
}
