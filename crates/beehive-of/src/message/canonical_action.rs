//! Normalizes single actions: finds the standard equivalent of an experimenter action, and the fields that an
//! action sets.

use alloc::vec::Vec;

use bytes::BytesMut;

use super::action::{
    Action, Actions, CopyField, EtherType, Group, NoArgument, Output, SetByte, SetField, SetQueue, SetWord,
};
use super::canonical_field::{Field, narrowed, narrowed_bits, same};
use super::canonical_sequence::Sequence;
use super::extension::{
    CheckPacketLarger, CloneActions, ConnectionTracking, ControllerActionProperty, DeleteField, Extended,
    HashBundle, Learn, Learn2, LearnDestination, LearnRest, LearnSource, LearnSpec, Multipath, NiciraAction,
    OnfAction, OutputReg2, RegLoad, ResubmitTable, Sample2, StackField,
};
use super::number::{LearnFlags, PacketInReason, PacketLength, SampleDirection, TableId};
use crate::encode::EncodeError;
use crate::error::Error;
use crate::oxm::{OxmField, class};
use crate::port_number::PortNo;
use crate::schema::{List, Tagged, Value, Writer};
use crate::version::Version;

/// Returns the action that represents all equivalent actions: the standard action, if there is one.
pub(super) fn standard(action: Action<'_>) -> Action<'_> {
    match action {
        // The maximum length matters only for outputs to the controller.
        Action::Output(Output { port, .. }) if port != PortNo::CONTROLLER => output(port),
        Action::CopyField(copy) => Action::CopyField(copied(copy)),
        Action::Experimenter(Extended::Onf(OnfAction::CopyField(copy))) => {
            Action::CopyField(copied(CopyField {
                bit_count: copy.bit_count,
                source_offset: copy.source_offset,
                destination_offset: copy.destination_offset,
                source: copy.source,
                destination: copy.destination,
            }))
        }
        Action::Experimenter(Extended::Nicira(action)) => standard_of_nicira(action),
        other => other,
    }
}

fn standard_of_nicira(action: NiciraAction<'_>) -> Action<'_> {
    use NiciraAction as Nicira;
    match action {
        Nicira::SetQueue(set) => Action::SetQueue(SetQueue { queue_id: set.queue_id }),
        Nicira::DecTtl(_) => Action::DecIpTtl(NoArgument {}),
        // 0 is the default controller identifier of a connection. The standard action sends packets to the
        // same controllers.
        Nicira::DecTtlCntIds(ids) if ids.controllers.iter().eq([Ok(0)]) => Action::DecIpTtl(NoArgument {}),
        Nicira::DecMplsTtl(_) => Action::DecMplsTtl(NoArgument {}),
        Nicira::PushMpls(push) => Action::PushMpls(EtherType { eth_type: push.eth_type }),
        Nicira::PopMpls(pop) => Action::PopMpls(EtherType { eth_type: pop.eth_type }),
        Nicira::SetMplsTtl(set) => Action::SetMplsTtl(SetByte { value: set.value }),
        Nicira::SetMplsLabel(set) => Action::SetMplsLabel(SetWord { value: set.value }),
        Nicira::SetMplsTc(set) => Action::SetMplsTc(SetByte { value: set.value }),
        Nicira::Group(group) => Action::Group(Group { group_id: group.group_id }),
        Nicira::RegLoad2(load) => Action::SetField(SetField { field: load.field }),
        Nicira::RegMove(copy) => Action::CopyField(copied(CopyField {
            bit_count: copy.bit_count,
            source_offset: copy.source_offset,
            destination_offset: copy.destination_offset,
            source: copy.source,
            destination: copy.destination,
        })),
        other => Action::Experimenter(Extended::Nicira(same_of_nicira(other))),
    }
}

/// Converts a Nicira action to its most recent equivalent, with canonical fields.
fn same_of_nicira(action: NiciraAction<'_>) -> NiciraAction<'_> {
    use NiciraAction as Nicira;
    match action {
        Nicira::Resubmit(again) => {
            Nicira::ResubmitTable(ResubmitTable { in_port: again.in_port, table_id: TableId::ALL })
        }
        Nicira::OutputReg(output) if output.source.class != class::EXPERIMENTER => {
            let (source, bits) = narrowed_bits(same(output.source), output.bits);
            Nicira::OutputReg2(OutputReg2 { bits, max_len: output.max_len, source })
        }
        Nicira::OutputReg2(output) => {
            let (source, bits) = narrowed_bits(same(output.source), output.bits);
            Nicira::OutputReg2(OutputReg2 { source, bits, ..output })
        }
        // The newer actions with default values are equivalent to the older ones.
        Nicira::Learn(learn) if !learn.flags.contains(LearnFlags::WRITE_RESULT) => Nicira::Learn2(Learn2 {
            idle_timeout: learn.idle_timeout,
            hard_timeout: learn.hard_timeout,
            priority: learn.priority,
            cookie: learn.cookie,
            flags: learn.flags,
            table_id: learn.table_id,
            fin_idle_timeout: learn.fin_idle_timeout,
            fin_hard_timeout: learn.fin_hard_timeout,
            rest: LearnRest { result: None, specs: learn.specs },
            ..Learn2::default()
        }),
        Nicira::Sample(sample) => Nicira::Sample3(Sample2 {
            probability: sample.probability,
            collector_set_id: sample.collector_set_id,
            observation_domain_id: sample.observation_domain_id,
            observation_point_id: sample.observation_point_id,
            sampling_port: PortNo::ANY,
            direction: SampleDirection::DEFAULT,
        }),
        Nicira::Sample2(sample) => Nicira::Sample3(sample),
        Nicira::StackPush(stack) => Nicira::StackPush(stacked(stack)),
        Nicira::StackPop(stack) => Nicira::StackPop(stacked(stack)),
        Nicira::Multipath(path) => {
            let (destination, bits) = narrowed_bits(same(path.destination), path.bits);
            Nicira::Multipath(Multipath { destination, bits, ..path })
        }
        Nicira::BundleLoad(bundle) => {
            let (destination, bits) = narrowed_bits(same(bundle.destination), bundle.bits);
            Nicira::BundleLoad(HashBundle { destination, bits, ..bundle })
        }
        Nicira::CheckPacketLarger(check) => {
            let (destination, offset) = narrowed(same(check.destination), check.offset, 1);
            Nicira::CheckPacketLarger(CheckPacketLarger { destination, offset, ..check })
        }
        Nicira::DeleteField(delete) => Nicira::DeleteField(DeleteField { field: same(delete.field) }),
        other => other,
    }
}

fn stacked(stack: StackField) -> StackField {
    let (field, offset) = narrowed(same(stack.field), stack.offset, stack.bit_count);
    StackField { field, offset, ..stack }
}

/// Returns the action that outputs the whole packet to a port other than the controller.
pub(super) fn output(port: PortNo) -> Action<'static> {
    Action::Output(Output { port, max_len: PacketLength(0) })
}

fn copied(copy: CopyField) -> CopyField {
    let (source, source_offset) = narrowed(same(copy.source), copy.source_offset, copy.bit_count);
    let (destination, destination_offset) =
        narrowed(same(copy.destination), copy.destination_offset, copy.bit_count);
    CopyField { bit_count: copy.bit_count, source_offset, destination_offset, source, destination }
}

/// Returns the fields that an action sets; `None` if it does anything else.
pub(super) fn fields(action: &Action<'_>) -> Option<Vec<Field>> {
    let basic = |number: u8, value: &[u8]| Some(set(&OxmField::basic(number, value)));
    let nicira = |number: u8, value: &[u8]| {
        Some(set(&OxmField { class: class::NXM_NX, number, experimenter: 0, value, mask: None }))
    };

    match action {
        Action::SetField(SetField { field }) => Some(set(field)),
        Action::SetVlanId(id) => basic(6, &id.vlan_id.to_be_bytes()),
        Action::SetVlanPriority(priority) => basic(7, &[priority.vlan_priority]),
        Action::SetEthSrc(ethernet) => basic(4, &ethernet.address.0),
        Action::SetEthDst(ethernet) => basic(3, &ethernet.address.0),
        Action::SetIpv4Src(ip) => basic(11, &ip.address.octets()),
        Action::SetIpv4Dst(ip) => basic(12, &ip.address.octets()),
        Action::SetIpTos(tos) => basic(8, &[tos.value >> 2]),
        Action::SetIpEcn(ecn) => basic(9, &[ecn.value]),
        Action::SetMplsLabel(label) => basic(34, &label.value.to_be_bytes()),
        Action::SetMplsTc(traffic) => basic(35, &[traffic.value]),
        Action::SetIpTtl(ttl) => nicira(29, &[ttl.value]),
        Action::SetMplsTtl(ttl) => nicira(30, &[ttl.value]),
        Action::Experimenter(Extended::Nicira(action)) => match action {
            NiciraAction::RegLoad(load) => loaded(load),
            NiciraAction::SetTunnel(tunnel) => basic(38, &u64::from(tunnel.tunnel_id).to_be_bytes()),
            NiciraAction::SetTunnel64(tunnel) => basic(38, &tunnel.tunnel_id.to_be_bytes()),
            NiciraAction::WriteMetadata(write) => Some(metadata(write.metadata, write.mask)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the fields that set some bits of the metadata.
pub(super) fn metadata(value: u64, mask: u64) -> Vec<Field> {
    let (value, mask) = (value.to_be_bytes(), mask.to_be_bytes());
    set(&OxmField { mask: Some(&mask), ..OxmField::basic(2, &value) })
}

fn set(field: &OxmField<'_>) -> Vec<Field> {
    let mut fields = Vec::new();
    match (field.class, field.number, field.value, field.mask) {
        // Setting the whole VLAN identifier applies to an existing tag, so set the "tag present" bit, which
        // older versions leave clear.
        (class::BASIC, 6, &[high, low], None) => {
            Field::put(&OxmField::basic(6, &[high | 0x10, low]), &mut fields);
        }
        _ => Field::put(field, &mut fields),
    }

    fields
}

/// Converts a `load` into the equivalent masked fields; `None` if the destination does not have these bits.
fn loaded(load: &RegLoad) -> Option<Vec<Field>> {
    let id = load.destination;
    let (offset, count) = (u32::from(load.bits >> 6), u32::from(load.bits & 0x3f) + 1);
    let length = usize::from(id.value_length());
    let fits = offset + count <= u32::from(same(id).bits()).min(128)
        && load.value.checked_shr(count).is_none_or(|rest| rest == 0);
    if id.class == class::EXPERIMENTER || id.masked || id.is_option() || !fits {
        return None;
    }

    let ones = u128::MAX.checked_shr(128 - count)?;
    let value = u128::from(load.value).checked_shl(offset)?.to_be_bytes();
    let mask = ones.checked_shl(offset)?.to_be_bytes();
    let start = 16usize.checked_sub(length)?;
    let (value, mask) = (value.get(start..)?, mask.get(start..)?);
    Some(set(&OxmField { class: id.class, number: id.number, experimenter: 0, value, mask: Some(mask) }))
}

/// Encodes an action as its name, its bytes (in the encoding of 1.5, if the action exists there) and the
/// forms of nested actions.
pub(super) fn own(action: &Action<'_>, version: Version) -> Result<Vec<u8>, EncodeError> {
    use NiciraAction as Nicira;
    let mut bytes = Vec::from(action.name().as_bytes());
    bytes.push(0);
    let nicira = |action: Nicira<'_>, bytes: &mut Vec<u8>| {
        put(&Action::Experimenter(Extended::Nicira(action)), version, bytes)
    };

    match action {
        Action::Experimenter(Extended::Nicira(Nicira::Learn(learn))) => {
            let specs = same_specs(&learn.specs)?;
            nicira(Nicira::Learn(Learn { specs: List::new(&specs), ..*learn }), &mut bytes)?;
        }
        Action::Experimenter(Extended::Nicira(Nicira::Learn2(learn))) => {
            let specs = same_specs(&learn.rest.specs)?;
            let result = learn.rest.result.map(|field| narrowed(same(field), learn.result_offset, 1));
            let result_offset = result.map_or(learn.result_offset, |(_, offset)| offset);
            let rest = LearnRest { result: result.map(|(field, _)| field), specs: List::new(&specs) };
            let learn = Learn2 { result_offset, rest, ..*learn };
            nicira(Nicira::Learn2(learn), &mut bytes)?;
        }
        Action::Experimenter(Extended::Nicira(Nicira::ConnectionTracking(track))) => {
            let ((zone_source, zone), inner) =
                (narrowed_bits(same(track.zone_source), track.zone), track.actions);
            let track = ConnectionTracking { zone_source, zone, actions: List::EMPTY, ..*track };
            nicira(Nicira::ConnectionTracking(track), &mut bytes)?;
            bytes.extend(sequence(&inner, version)?);
        }
        Action::Experimenter(Extended::Nicira(Nicira::Controller(to))) => {
            bytes = Vec::from(CONTROLLER);
            let to = ToController {
                max_len: to.max_len,
                id: to.controller_id,
                reason: to.reason,
                ..ToController::default()
            };
            to.write(&mut bytes);
        }
        Action::Experimenter(Extended::Nicira(Nicira::Controller2(to))) => {
            match ToController::of(&to.properties)? {
                Some(to) => {
                    bytes = Vec::from(CONTROLLER);
                    to.write(&mut bytes);
                }
                None => put(action, version, &mut bytes)?,
            }
        }
        Action::Experimenter(Extended::Nicira(Nicira::Clone(clone))) => {
            nicira(Nicira::Clone(CloneActions { actions: List::EMPTY }), &mut bytes)?;
            bytes.extend(sequence(&clone.actions, version)?);
        }
        other => put(other, version, &mut bytes)?,
    }

    Ok(bytes)
}

/// The name that the forms of both controller actions start with.
const CONTROLLER: &[u8] = b"controller\0";

/// The parameters of the controller action. Absent properties have their default, and the order of properties
/// does not matter.
struct ToController<'a> {
    max_len: PacketLength,
    id: u16,
    reason: PacketInReason,
    userdata: &'a [u8],
    pause: bool,
    meter: Option<u32>,
}

impl Default for ToController<'_> {
    fn default() -> Self {
        Self {
            max_len: PacketLength::NO_BUFFER,
            id: 0,
            reason: PacketInReason::ACTION,
            userdata: &[],
            pause: false,
            meter: None,
        }
    }
}

impl<'a> ToController<'a> {
    /// Collects the parameters from the properties. Returns `None` if there is an unknown property.
    fn of(properties: &List<'a, ControllerActionProperty<'a>>) -> Result<Option<Self>, Error> {
        use ControllerActionProperty as Property;
        let mut to = Self::default();
        for property in properties.iter() {
            match property? {
                Property::MaxLength(length) => to.max_len = length.max_len,
                Property::ControllerId(id) => to.id = id.controller_id,
                Property::Reason(why) => to.reason = why.reason,
                Property::UserData(data) => to.userdata = data.data,
                Property::Pause(_) => to.pause = true,
                Property::MeterId(meter) => to.meter = Some(meter.meter_id.0),
                Property::Unknown { .. } => return Ok(None),
            }
        }

        Ok(Some(to))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.max_len.0.to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend([self.reason.0, u8::from(self.pause), u8::from(self.meter.is_some())]);
        bytes.extend(self.meter.unwrap_or(0).to_be_bytes());
        bytes.extend(self.userdata);
    }
}

fn sequence(actions: &Actions<'_>, version: Version) -> Result<Vec<u8>, EncodeError> {
    let mut sequence = Sequence::default();
    sequence.actions(actions, version)?;
    Ok(sequence.finish())
}

fn put(action: &Action<'_>, version: Version, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let mut raw = BytesMut::new();
    let version = if action.kind(Version::V1_5).is_some() { Version::V1_5 } else { version };
    action.write(&mut Writer::new(version, &mut raw))?;
    bytes.extend(&raw);
    Ok(())
}

/// Returns the specifications of `learn` with canonical fields.
fn same_specs<'a>(specs: &List<'a, LearnSpec<'a>>) -> Result<Vec<LearnSpec<'a>>, Error> {
    specs
        .iter()
        .map(|spec| {
            let spec = spec?;
            let part = |field, offset| narrowed(same(field), offset, spec.bit_count);
            let source = match spec.source {
                LearnSource::Field(field, offset) => {
                    let (field, offset) = part(field, offset);
                    LearnSource::Field(field, offset)
                }
                value => value,
            };
            let destination = match spec.destination {
                LearnDestination::Match(field, offset) => {
                    let (field, offset) = part(field, offset);
                    LearnDestination::Match(field, offset)
                }
                LearnDestination::Load(field, offset) => {
                    let (field, offset) = part(field, offset);
                    LearnDestination::Load(field, offset)
                }
                LearnDestination::Output => LearnDestination::Output,
            };

            Ok(LearnSpec { source, destination, ..spec })
        })
        .collect()
}
