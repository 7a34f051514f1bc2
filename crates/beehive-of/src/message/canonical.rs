//! What matches and does the same has the same bytes, whatever version and notation it came in.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::BytesMut;

use super::action::{Action, Actions, CopyField, SetField};
use super::canonical_field::{self, Field};
use super::extension::{
    DeleteField, Extended, Learn, Learn2, LearnDestination, LearnRest, LearnSource, LearnSpec, NiciraAction,
    RegLoad2, RegMove,
};
use super::instruction::{Instruction, Instructions};
use super::match_::Match;
use crate::any;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::oxm::OxmField;
use crate::port_number::PortNo;
use crate::schema::{List, Value, Writer};
use crate::version::Version;

/// A match, or what a flow does, in one form: to compare flows of tables, and to find them by hash.
///
/// ```
/// use beehive_of::message::Canonical;
/// use beehive_of::text::Flow;
/// use beehive_of::{message, Version};
///
/// let canonical = |text: &str, version| {
///     let flow = Flow::parse(text, version).unwrap();
///     let message::Message::FlowMod(flow) = flow.message() else { unreachable!() };
///     (
///         Canonical::of_match(&flow.match_fields).unwrap(),
///         Canonical::of_instructions(&flow.actions, &flow.instructions, version).unwrap(),
///     )
/// };
/// assert_eq!(
///     canonical("tcp,dl_vlan=7,tp_dst=80 actions=mod_dl_src:02:00:00:00:00:01,output:2", Version::V1_0),
///     canonical("tp_dst=80,dl_vlan=7,tcp actions=set_field:02:00:00:00:00:01->eth_src,2", Version::V1_5),
/// );
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Canonical(Box<[u8]>);

impl Canonical {
    /// The bytes; what they say may change with the version of this crate.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Which packets.
    ///
    /// # Errors
    ///
    /// The match is malformed, or says something twice.
    pub fn of_match(fields: &Match<'_>) -> Result<Self, EncodeError> {
        match fields {
            Match::Fields(fields) | Match::Fields1_1(fields) => Self::of_fields(fields.0),
            other => {
                let general = other.generalise()?;
                let mut out = BytesMut::new();
                // What has no name there is not lost: it makes the match another one.
                let known = any::Match { other: 0, ..general };
                any::write_match(&known, &mut Writer::new(Version::V1_5, &mut out))?;
                let length =
                    out.get(2..4).and_then(|length| length.try_into().ok()).map_or(0, u16::from_be_bytes);
                let list = out.get(4..usize::from(length)).unwrap_or(&[]);
                if general.other == 0 {
                    return Self::of_fields(List::of_bytes(Version::V1_5, list));
                }
                let mut raw = BytesMut::new();
                let version = if matches!(other, Match::V1_0(_)) { Version::V1_0 } else { Version::V1_1 };
                other.write(&mut Writer::new(version, &mut raw))?;
                Ok(Self(raw.to_vec().into()))
            }
        }
    }

    fn of_fields<'a>(list: List<'a, OxmField<'a>>) -> Result<Self, EncodeError> {
        let mut fields = Vec::new();
        for field in list.iter() {
            Field::put(&field?, &mut fields);
        }
        fields.sort();
        if fields.windows(2).any(|two| matches!(two, [one, next] if one.is_of(next))) {
            return Err(EncodeError::Value { field: "a match that says something twice" });
        }
        let mut bytes = Vec::new();
        fields.iter().for_each(|field| field.write(&mut bytes));
        Ok(Self(bytes.into()))
    }

    /// What is done with packets, in order.
    ///
    /// # Errors
    ///
    /// An action is malformed.
    pub fn of_actions(actions: &Actions<'_>, version: Version) -> Result<Self, EncodeError> {
        let mut bytes = Vec::new();
        write_actions(actions, version, &mut bytes)?;
        Ok(Self(bytes.into()))
    }

    /// What a flow does: its actions in 1.0, its instructions from 1.1 on. Instructions are in the order in which switches
    /// execute them.
    ///
    /// # Errors
    ///
    /// An action or instruction is malformed.
    pub fn of_instructions(
        actions: &Actions<'_>,
        instructions: &Instructions<'_>,
        version: Version,
    ) -> Result<Self, EncodeError> {
        let mut parts: Vec<(u8, Vec<u8>)> = Vec::new();
        if !actions.is_empty() {
            let mut bytes = Vec::new();
            write_actions(actions, version, &mut bytes)?;
            parts.push((1, bytes));
        }
        for instruction in instructions.iter() {
            let instruction = instruction?;
            let (order, list) = match instruction {
                Instruction::Meter(_) => (0, None),
                Instruction::ApplyActions(apply) => (1, Some(apply.actions)),
                Instruction::ClearActions(_) => (2, None),
                Instruction::WriteActions(write) => (3, Some(write.actions)),
                Instruction::WriteMetadata(_) => (4, None),
                Instruction::GotoTable(_) => (5, None),
                _ => (6, None),
            };
            let mut bytes = Vec::new();
            match list {
                Some(list) => write_actions(&list, version, &mut bytes)?,
                None => {
                    let mut raw = BytesMut::new();
                    instruction.write(&mut Writer::new(version, &mut raw))?;
                    bytes.extend(&raw);
                }
            }
            // To do no actions is to do nothing.
            if order != 1 || !bytes.is_empty() {
                parts.push((order, bytes));
            }
        }
        parts.sort();
        let mut bytes = Vec::new();
        for (order, part) in parts {
            bytes.push(order);
            bytes.extend((part.len() as u32).to_be_bytes());
            bytes.extend(part);
        }
        Ok(Self(bytes.into()))
    }
}

/// Each with its length and how it is written: what one means is nothing of what follows.
fn write_actions(actions: &Actions<'_>, version: Version, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    for action in actions.iter() {
        let action = action?;
        let (mut raw, mut own) = (BytesMut::new(), Vec::new());
        let general = any::Action::of(&action, version)?;
        let same = match general {
            any::Action::Other(_) | any::Action::Enqueue { .. } => None,
            // How much of a packet goes along counts for the controller only.
            any::Action::Output { port, .. } if port != PortNo::CONTROLLER => {
                Some(any::Action::Output { port, max_len: 0 })
            }
            other => Some(other),
        };
        match same {
            Some(general) => general.write(&mut Writer::new(Version::V1_5, &mut raw))?,
            None => write_own(&action, version, &mut raw, &mut own)?,
        }
        bytes.push(if own.is_empty() { 0 } else { 1 });
        bytes.extend(((raw.len() + own.len()) as u32).to_be_bytes());
        bytes.extend(&raw);
        bytes.extend(own);
    }
    Ok(())
}

fn write_own(
    action: &Action<'_>,
    version: Version,
    raw: &mut BytesMut,
    bytes: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let nicira = |action| Action::Experimenter(Extended::Nicira(action));
    match action {
        Action::SetField(SetField { field })
        | Action::Experimenter(Extended::Nicira(NiciraAction::RegLoad2(RegLoad2 { field }))) => {
            let mut fields = Vec::new();
            Field::put(field, &mut fields);
            fields.sort();
            fields.iter().for_each(|field| field.write(bytes));
            Ok(())
        }
        Action::Experimenter(Extended::Nicira(NiciraAction::Learn(learn))) => {
            let specs = same_specs(&learn.specs)?;
            let learn = Learn { specs: List::new(&specs), ..*learn };
            nicira(NiciraAction::Learn(learn)).write(&mut Writer::new(version, raw))
        }
        Action::Experimenter(Extended::Nicira(NiciraAction::Learn2(learn))) => {
            let specs = same_specs(&learn.rest.specs)?;
            let result = learn.rest.result.map(canonical_field::same);
            let learn = Learn2 { rest: LearnRest { result, specs: List::new(&specs) }, ..*learn };
            nicira(NiciraAction::Learn2(learn)).write(&mut Writer::new(version, raw))
        }
        Action::Experimenter(Extended::Nicira(NiciraAction::RegMove(copy))) => {
            let (source, destination) =
                (canonical_field::same(copy.source), canonical_field::same(copy.destination));
            let copy = RegMove { source, destination, ..*copy };
            nicira(NiciraAction::RegMove(copy)).write(&mut Writer::new(version, raw))
        }
        Action::CopyField(copy) => {
            let (source, destination) =
                (canonical_field::same(copy.source), canonical_field::same(copy.destination));
            let copy = CopyField { source, destination, ..*copy };
            Action::CopyField(copy).write(&mut Writer::new(version, raw))
        }
        Action::Experimenter(Extended::Nicira(NiciraAction::DeleteField(delete))) => {
            let delete = DeleteField { field: canonical_field::same(delete.field) };
            nicira(NiciraAction::DeleteField(delete)).write(&mut Writer::new(version, raw))
        }
        other => other.write(&mut Writer::new(version, raw)),
    }
}

/// Parts of learnt flows, with fields by one name each.
fn same_specs<'a>(specs: &List<'a, LearnSpec<'a>>) -> Result<Vec<LearnSpec<'a>>, Error> {
    specs
        .iter()
        .map(|spec| {
            let spec = spec?;
            let source = match spec.source {
                LearnSource::Field(field, offset) => LearnSource::Field(canonical_field::same(field), offset),
                value => value,
            };
            let destination = match spec.destination {
                LearnDestination::Match(field, offset) => {
                    LearnDestination::Match(canonical_field::same(field), offset)
                }
                LearnDestination::Load(field, offset) => {
                    LearnDestination::Load(canonical_field::same(field), offset)
                }
                LearnDestination::Output => LearnDestination::Output,
            };
            Ok(LearnSpec { source, destination, ..spec })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oxm::{OxmFields, class};
    use alloc::vec;

    fn set(class: u16, number: u8, value: &[u8]) -> Action<'_> {
        let field = OxmField { class, number, experimenter: 0, value, mask: None };
        Action::SetField(SetField { field })
    }

    /// A list whose form is an action itself: nobody knows it, and it is as long as its bytes say.
    #[test]
    fn the_form_of_some_actions_is_not_that_of_another_one() {
        let mut actions = vec![set(class::BASIC, 2, &[0, 0, 0, 0, 0, 0, 0, 1]); 3];
        actions.extend(vec![set(class::NXM_NX, 0, &[0, 0, 0, 1]); 1487]);
        let form = Canonical::of_actions(&Actions::from(&actions[..]), Version::V1_3).unwrap();
        let other = List::of_bytes(Version::V1_3, form.as_bytes());
        assert_ne!(Canonical::of_actions(&other, Version::V1_3).ok(), Some(form));
    }

    #[test]
    fn a_match_that_says_something_twice_has_none() {
        let of = |types: &[[u8; 2]]| {
            let field =
                |value| OxmField { class: class::BASIC, number: 5, experimenter: 0, value, mask: None };
            let fields: Vec<_> = types.iter().map(|value| field(&value[..])).collect();
            Canonical::of_match(&Match::Fields(OxmFields(List::new(&fields))))
        };
        assert!(of(&[[8, 0]]).is_ok());
        assert!(of(&[[8, 0], [8, 0]]).is_err());
        assert!(of(&[[8, 0], [0x86, 0xdd]]).is_err());
    }
}
