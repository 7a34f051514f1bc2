//! The canonical form of a flow's instructions: applied actions, then written actions, in the order of
//! execution.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::BytesMut;

use super::action::{Action, Actions, Meter};
use super::canonical_action::{self as meaning, standard};
use super::canonical_sequence::Sequence;
use super::instruction::{Instruction, Instructions};
use crate::encode::EncodeError;
use crate::schema::{Value, Writer};
use crate::version::Version;

/// Tags of the instructions, in the order of execution (1.3.5, 5.9).
mod place {
    pub(super) const APPLY: u8 = 1;
    pub(super) const CLEAR: u8 = 2;
    pub(super) const WRITE: u8 = 3;
    pub(super) const GOTO: u8 = 5;
    pub(super) const OTHER: u8 = 6;
}

/// The instructions of a flow, at most one of each kind.
#[derive(Default)]
struct Program<'a> {
    meter: Option<Action<'a>>,
    apply: Option<Actions<'a>>,
    clear: Option<()>,
    write: Option<Actions<'a>>,
    metadata: Option<(u64, u64)>,
    goto: Option<u8>,
    others: Vec<Instruction<'a>>,
}

impl<'a> Program<'a> {
    fn of(instructions: &Instructions<'a>) -> Result<Self, EncodeError> {
        fn once<T>(place: &mut Option<T>, value: T) -> Result<(), EncodeError> {
            match place.replace(value) {
                None => Ok(()),
                Some(_) => Err(EncodeError::Value { field: "duplicate instruction" }),
            }
        }

        let mut program = Self::default();
        for instruction in instructions.iter() {
            match instruction? {
                Instruction::Meter(meter) => {
                    once(&mut program.meter, Action::Meter(Meter { meter_id: meter.meter_id }))?;
                }
                Instruction::ApplyActions(apply) => once(&mut program.apply, apply.actions)?,
                Instruction::ClearActions(_) => once(&mut program.clear, ())?,
                Instruction::WriteActions(write) => once(&mut program.write, write.actions)?,
                Instruction::WriteMetadata(write) => {
                    once(&mut program.metadata, (write.metadata, write.mask))?;
                }
                Instruction::GotoTable(goto) => once(&mut program.goto, goto.table_id.0)?,
                other => program.others.push(other),
            }
        }

        Ok(program)
    }
}

/// Returns the form of a flow's actions and instructions.
pub(super) fn form(
    actions: &Actions<'_>,
    instructions: &Instructions<'_>,
    version: Version,
) -> Result<Vec<u8>, EncodeError> {
    let program = Program::of(instructions)?;
    let mut at_once = Sequence::default();
    if let Some(meter) = program.meter {
        at_once.action(meter, version)?;
    }

    at_once.actions(actions, version)?;
    if let Some(apply) = program.apply {
        at_once.actions(&apply, version)?;
    }

    // Set the metadata together with the applied actions, because nothing in between reads it.
    if let Some((value, mask)) = program.metadata {
        at_once.set(meaning::metadata(value, mask));
    }

    let mut bytes = Vec::new();

    // Empty apply and write instructions have no effect.
    put(place::APPLY, Some(at_once.finish()).filter(|form| !form.is_empty()), &mut bytes);
    put(place::CLEAR, program.clear.map(|()| Vec::new()), &mut bytes);
    let written = program.write.map(|actions| set(&actions, version)).transpose()?;
    put(place::WRITE, written.filter(|form| !form.is_empty()), &mut bytes);
    put(place::GOTO, program.goto.map(|table| Vec::from([table])), &mut bytes);
    let mut others = Vec::new();
    for other in program.others {
        let mut raw = BytesMut::new();
        other.write(&mut Writer::new(version, &mut raw))?;
        others.push(raw.to_vec());
    }

    others.sort();
    others.into_iter().for_each(|other| put(place::OTHER, Some(other), &mut bytes));
    Ok(bytes)
}

fn put(place: u8, form: Option<Vec<u8>>, bytes: &mut Vec<u8>) {
    if let Some(form) = form {
        bytes.push(place);
        bytes.extend((form.len() as u32).to_be_bytes());
        bytes.extend(form);
    }
}

/// Returns the form of written actions: the last of each kind, in a fixed order (1.3.5, 5.10).
fn set(actions: &Actions<'_>, version: Version) -> Result<Vec<u8>, EncodeError> {
    let mut ordered = Sequence::of_set();
    let mut kinds: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for action in actions.iter() {
        use crate::schema::Tagged;
        let action = standard(action?);
        match (meaning::fields(&action), &action) {
            (Some(fields), _) => ordered.set(fields),
            // It is not known whether one of these replaces another in the set, so keep all of them in order.
            (None, Action::CopyField(_) | Action::Experimenter(_) | Action::Unknown { .. }) => {
                ordered.other(&meaning::own(&action, version)?);
            }
            (None, _) => drop(kinds.insert(action.name().into(), meaning::own(&action, version)?)),
        }
    }

    if kinds.contains_key(&b"group"[..]) {
        kinds.remove(&b"output"[..]);
    }

    let mut bytes = Vec::new();
    put(0, Some(ordered.finish()).filter(|form| !form.is_empty()), &mut bytes);
    kinds.into_values().for_each(|form| put(1, Some(form), &mut bytes));
    Ok(bytes)
}
