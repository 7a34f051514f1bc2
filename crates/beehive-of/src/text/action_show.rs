//! Displays actions and instructions.

use core::fmt;

use super::field_names::name_of;
use super::match_show::Bytes;
use super::nicira_show::show_nicira;
use super::subfield::Subfield;
use super::value::Shown;
use crate::message::*;
use crate::oxm::{FieldKind, OxmField};
use crate::port_number::PortNo;
use crate::version::Version;

/// Displays actions, separated by commas, or `drop` if there are none. Only a flow of 1.0 consists of
/// actions; see [`show_program`](super::show_program) for flows of any version.
pub fn show_actions<'a>(actions: &Actions<'a>, version: Version) -> impl fmt::Display + use<'a> {
    ShownActions { actions: *actions, version }
}

/// Displays instructions, separated by commas, or `drop` if there are none.
///
/// A flow of 1.0 has actions instead of instructions, so this function always displays `drop` for it. Use
/// [`show_program`](super::show_program), or [`show_entry`](super::show_entry) for an entry of flow
/// statistics, if the version can be 1.0.
pub fn show_instructions<'a>(
    instructions: &Instructions<'a>,
    version: Version,
) -> impl fmt::Display + use<'a> {
    ShownInstructions { instructions: *instructions, version }
}

struct ShownActions<'a> {
    actions: Actions<'a>,
    version: Version,
}

struct ShownInstructions<'a> {
    instructions: Instructions<'a>,
    version: Version,
}

impl fmt::Display for ShownActions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.actions.is_empty() {
            return formatter.write_str("drop");
        }
        list(&self.actions, self.version, "", formatter).map(drop)
    }
}

/// Writes actions after a separator. Returns the separator for the next element.
pub(super) fn list(
    actions: &Actions<'_>,
    version: Version,
    mut separator: &'static str,
    formatter: &mut fmt::Formatter<'_>,
) -> Result<&'static str, fmt::Error> {
    for action in actions.iter() {
        formatter.write_str(separator)?;
        match action {
            Ok(action) => show(&action, version, formatter)?,
            Err(error) => write!(formatter, "<{error}>")?,
        }
        separator = ",";
    }
    Ok(separator)
}

impl fmt::Display for ShownInstructions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for instruction in self.instructions.iter() {
            let instruction = match instruction {
                Ok(instruction) => instruction,
                Err(error) => return write!(formatter, "{separator}<{error}>"),
            };

            if let Instruction::ApplyActions(apply) = instruction {
                separator = list(&apply.actions, self.version, separator, formatter)?;
                continue;
            }

            formatter.write_str(separator)?;
            separator = ",";
            match instruction {
                Instruction::GotoTable(next) => write!(formatter, "goto_table:{}", next.table_id.0)?,
                Instruction::WriteMetadata(write) => show_metadata(write.metadata, write.mask, formatter)?,
                Instruction::WriteActions(write) => {
                    formatter.write_str("write_actions(")?;
                    list(&write.actions, self.version, "", formatter)?;
                    formatter.write_str(")")?;
                }
                Instruction::ClearActions(_) => formatter.write_str("clear_actions")?,
                Instruction::Meter(meter) => write!(formatter, "meter:{}", meter.meter_id.0)?,
                Instruction::StatTrigger(trigger) => write!(formatter, "stat_trigger({})", trigger.flags.0)?,
                Instruction::Experimenter(other) => {
                    show_experimenter(other.experimenter, other.body, formatter)?
                }
                _ => formatter.write_str("unknown()")?,
            }
        }

        if separator.is_empty() { formatter.write_str("drop") } else { Ok(()) }
    }
}

pub(super) fn show_metadata(value: u64, mask: u64, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match mask {
        u64::MAX => write!(formatter, "write_metadata:{value:#x}"),
        mask => write!(formatter, "write_metadata:{value:#x}/{mask:#x}"),
    }
}

fn show_experimenter(
    experimenter: ExperimenterId,
    body: &[u8],
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(formatter, "experimenter({:#010x}:", experimenter.0)?;
    body.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
    formatter.write_str(")")
}

/// Writes `set_field:value->name`.
pub(super) fn show_set_field(field: &OxmField<'_>, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let id = field.id();
    match (name_of(id), id.known()) {
        (Some(name), Some(_)) if id.is_option() => write!(formatter, "set_field:{}->{name}", Bytes(field)),
        (Some(name), Some(known)) if known.kind.allows(field.value.len()) => {
            let kind = match (id.class, id.number, known.kind) {
                // The VLAN identifier is shown in decimal, including its "tag present" bit.
                (crate::oxm::class::BASIC, 6, _) => FieldKind::Decimal(2),
                (_, _, kind) => kind,
            };
            let shown = Shown { id, kind, value: field.value, mask: field.mask };
            write!(formatter, "set_field:{shown}->{name}")
        }
        _ => write!(formatter, "set_field:{field}"),
    }
}

fn show_output(output: &Output, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (output.port, output.port.name()) {
        (PortNo::CONTROLLER, _) => write!(formatter, "CONTROLLER:{}", output.max_len.0),
        (_, Some(name)) => {
            name.chars().try_for_each(|letter| fmt::Write::write_char(formatter, letter.to_ascii_uppercase()))
        }
        (port, None) => write!(formatter, "output:{}", port.0),
    }
}

fn show(action: &Action<'_>, version: Version, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    match action {
        Action::Output(output) => show_output(output, formatter),
        // The names differ, because the action of 1.1 requires a tag, whereas the action of 1.0 adds a
        // missing one.
        Action::SetVlanId(set) if version == Version::V1_0 => {
            write!(formatter, "mod_vlan_vid:{}", set.vlan_id)
        }
        Action::SetVlanId(set) => write!(formatter, "set_vlan_vid:{}", set.vlan_id),
        Action::SetVlanPriority(set) if version == Version::V1_0 => {
            write!(formatter, "mod_vlan_pcp:{}", set.vlan_priority)
        }
        Action::SetVlanPriority(set) => write!(formatter, "set_vlan_pcp:{}", set.vlan_priority),
        Action::PopVlan(_) if version == Version::V1_0 => formatter.write_str("strip_vlan"),
        Action::PopVlan(_) => formatter.write_str("pop_vlan"),
        Action::SetEthSrc(set) => write!(formatter, "mod_dl_src:{}", set.address),
        Action::SetEthDst(set) => write!(formatter, "mod_dl_dst:{}", set.address),
        Action::SetIpv4Src(set) => write!(formatter, "mod_nw_src:{}", set.address),
        Action::SetIpv4Dst(set) => write!(formatter, "mod_nw_dst:{}", set.address),
        Action::SetIpTos(set) => write!(formatter, "mod_nw_tos:{}", set.value),
        Action::SetIpEcn(set) => write!(formatter, "mod_nw_ecn:{}", set.value),
        Action::SetTransportSrc(set) => write!(formatter, "mod_tp_src:{}", set.port),
        Action::SetTransportDst(set) => write!(formatter, "mod_tp_dst:{}", set.port),
        Action::Enqueue(queue) => write!(formatter, "enqueue:{}:{}", queue.port.0 as u16, queue.queue_id.0),
        Action::CopyTtlOut(_) => formatter.write_str("copy_ttl_out"),
        Action::CopyTtlIn(_) => formatter.write_str("copy_ttl_in"),
        Action::SetMplsLabel(set) => write!(formatter, "set_mpls_label({})", set.value),
        Action::SetMplsTc(set) => write!(formatter, "set_mpls_tc({})", set.value),
        Action::SetMplsTtl(set) => write!(formatter, "set_mpls_ttl({})", set.value),
        Action::DecMplsTtl(_) => formatter.write_str("dec_mpls_ttl"),
        Action::PushVlan(push) => write!(formatter, "push_vlan:{:#06x}", push.eth_type),
        Action::PushMpls(push) => write!(formatter, "push_mpls:{:#06x}", push.eth_type),
        Action::PopMpls(pop) => write!(formatter, "pop_mpls:{:#06x}", pop.eth_type),
        Action::SetQueue(queue) => write!(formatter, "set_queue:{}", queue.queue_id.0),
        Action::Group(group) => write!(formatter, "group:{}", group.group_id.0),
        Action::SetIpTtl(set) => write!(formatter, "mod_nw_ttl:{}", set.value),
        Action::DecIpTtl(_) => formatter.write_str("dec_ttl"),
        Action::SetField(set) => show_set_field(&set.field, formatter),
        Action::PushPbb(push) => write!(formatter, "push_pbb:{:#06x}", push.eth_type),
        Action::PopPbb(_) => formatter.write_str("pop_pbb"),
        Action::CopyField(copy) => {
            let part = |field, offset| Subfield { field, offset, count: copy.bit_count };
            let (from, to) =
                (part(copy.source, copy.source_offset), part(copy.destination, copy.destination_offset));
            write!(formatter, "move:{from}->{to}")
        }
        Action::Meter(meter) => write!(formatter, "meter:{}", meter.meter_id.0),
        Action::Experimenter(Extended::Nicira(nicira)) => show_nicira(nicira, version, formatter),
        Action::Experimenter(Extended::Onf(OnfAction::CopyField(copy))) => {
            let part = |field, offset| Subfield { field, offset, count: copy.bit_count };
            let (from, to) =
                (part(copy.source, copy.source_offset), part(copy.destination, copy.destination_offset));
            write!(formatter, "move:{from}->{to}")
        }
        Action::Experimenter(Extended::Unknown { experimenter, body, .. }) => {
            show_experimenter(*experimenter, body, formatter)
        }
        Action::Experimenter(Extended::Onf(OnfAction::Unknown { kind, body })) => {
            write!(formatter, "unknown(onf:{kind}:{} bytes)", body.len())
        }
        Action::Unknown { kind, body } => write!(formatter, "unknown({kind}:{} bytes)", body.len()),
    }
}
