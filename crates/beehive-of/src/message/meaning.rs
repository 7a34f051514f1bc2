//! Semantic checks of messages, beyond their structure, as a switch performs them.

use super::extension::{Extended, NiciraMessage, NiciraRequest, OnfMessage, OnfRequest};
use super::flow::FlowMod;
use super::group::GroupMod;
use super::instruction::{Instructions, twice};
use super::message::Message;
use super::multipart::{Multipart, RequestBody};
use super::number::{ExperimenterId, FlowModCommand, GroupId};
use crate::error::{Answer, Error, ErrorKind, Part};
use crate::version::Version;

/// Returns the error for an invalid value.
fn wrong(part: Part, offset: usize, field: &'static str) -> Result<(), Error> {
    Err(Error::new(ErrorKind::Value, part, offset, field))
}

impl Message<'_> {
    /// Returns the error to answer with if the type of the message, its statistics kind or its experimenter
    /// is unknown; `None` if all are known. A message of an unknown type is well-formed, so the checks accept
    /// it.
    ///
    /// If this function returns `None`, it is up to the receiver to handle the message, or to refuse it with
    /// one of the same errors. For example, a controller answers a [`FlowMod`] with [`Answer::BAD_TYPE`].
    pub fn unknown_answer(&self) -> Option<Answer> {
        match self {
            Self::Unknown { .. } => Some(Answer::BAD_TYPE),
            Self::MultipartRequest(Multipart { body: RequestBody::Unknown { .. }, .. }) => {
                Some(Answer::BAD_MULTIPART)
            }
            Self::Experimenter(Extended::Unknown { experimenter, .. })
            | Self::MultipartRequest(Multipart {
                body: RequestBody::Experimenter(Extended::Unknown { experimenter, .. }),
                ..
            }) => match *experimenter {
                // The experimenter is known, but the type is larger than any known type.
                ExperimenterId::NICIRA | ExperimenterId::ONF => Some(Answer::BAD_EXPERIMENTER_TYPE),
                _ => Some(Answer::BAD_EXPERIMENTER),
            },
            Self::Experimenter(
                Extended::Nicira(NiciraMessage::Unknown { .. }) | Extended::Onf(OnfMessage::Unknown { .. }),
            )
            | Self::MultipartRequest(Multipart {
                body:
                    RequestBody::Experimenter(
                        Extended::Nicira(NiciraRequest::Unknown { .. })
                        | Extended::Onf(OnfRequest::Unknown { .. }),
                    ),
                ..
            }) => Some(Answer::BAD_EXPERIMENTER_TYPE),
            _ => None,
        }
    }

    /// Checks the semantics of the message, as a switch does: match fields and their prerequisites, duplicate
    /// instructions, commands, group types and roles. For a flow-mod to be sent, it also checks that the
    /// version has all fields that are set. [`Error::answer`] returns the error message to answer with.
    ///
    /// # Errors
    ///
    /// Returns the first error.
    pub fn check_meaning(&self, version: Version) -> Result<(), Error> {
        self.check(version)?;
        match self {
            Self::FlowMod(flow) => check_flow(flow, version),
            Self::FlowRemoved(flow) => flow.match_fields.fields().check_meaning(48),
            Self::PacketOut(packet) => packet.match_fields.fields().check_meaning(16),
            Self::GroupMod(group) => check_group(group, version),
            Self::MeterMod(meter) if meter.command.0 > 2 => wrong(Part::Meter, 8, "meter-mod command"),
            Self::RoleRequest(role) if role.role.0 > 3 => wrong(Part::Role, 8, "role"),
            Self::Experimenter(Extended::Nicira(NiciraMessage::FlowMod(flow))) => {
                // The upper 8 bits of Nicira's command are the table.
                check_command(FlowModCommand(flow.command.0 & 0xff), 24)?;
                flow.match_fields.check_meaning(48)?;
                check_instructions(&flow.instructions, version)
            }
            Self::Experimenter(Extended::Nicira(NiciraMessage::FlowRemoved(flow))) => {
                flow.match_fields.check_meaning(56)
            }
            _ => Ok(()),
        }
    }
}

fn check_flow(flow: &FlowMod<'_>, version: Version) -> Result<(), Error> {
    check_command(flow.command, if version == Version::V1_0 { 56 } else { 25 })?;
    if let Some(field) = missing(flow, version) {
        return wrong(Part::FlowMod, 8, field);
    }
    flow.match_fields.fields().check_meaning(48)?;
    check_instructions(&flow.instructions, version)
}

fn check_command(command: FlowModCommand, offset: usize) -> Result<(), Error> {
    if command.0 > 4 { wrong(Part::FlowMod, offset, "flow-mod command") } else { Ok(()) }
}

/// Returns the name of a field that is set but does not exist in the version. Decoded messages never have
/// such a field.
fn missing(flow: &FlowMod<'_>, version: Version) -> Option<&'static str> {
    let old = version == Version::V1_0;
    [
        ("importance", version < Version::V1_4 && flow.importance != 0),
        ("cookie_mask", old && flow.cookie_mask != 0),
        ("table_id", old && flow.table_id.0 != 0),
        ("out_group", old && flow.out_group != GroupId::ANY),
        ("instructions", old && !flow.instructions.is_empty()),
        ("actions", !old && !flow.actions.is_empty()),
    ]
    .into_iter()
    .find_map(|(field, given)| given.then_some(field))
}

fn check_instructions(instructions: &Instructions<'_>, version: Version) -> Result<(), Error> {
    match twice(instructions, version)? {
        Some((offset, name)) => Err(Error::new(ErrorKind::Duplicate, Part::Instruction, offset, name)),
        None => Ok(()),
    }
}

fn check_group(group: &GroupMod<'_>, version: Version) -> Result<(), Error> {
    let last = if version >= Version::V1_5 { 5 } else { 2 };
    if group.command.0 > last || group.command.0 == 4 {
        return wrong(Part::Group, 8, "group-mod command");
    }
    if group.group_type.0 > 3 && group.group_type.0 < 128 {
        return wrong(Part::Group, 10, "group type");
    }
    Ok(())
}
