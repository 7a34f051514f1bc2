//! The instructions of a flow, independent of the version: the actions to apply and the next table.

use bytes::BufMut;

use super::action::Actions;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::message::{Instruction, Instructions};
use crate::schema::Writer;
use crate::version::Version;

/// The type number of the goto-table instruction.
const GOTO_TABLE: u16 = 1;
/// The type number of the apply-actions instruction.
const APPLY_ACTIONS: u16 = 4;

/// Returns the actions of the first apply-actions instruction, the table of the first goto-table instruction,
/// and the number of other instructions.
pub(super) fn generalize(instructions: Instructions<'_>) -> Result<(Actions<'_>, Option<u8>, u16), Error> {
    let mut actions = None;
    let mut goto_table = None;
    let mut other = 0;
    for instruction in instructions {
        match instruction? {
            Instruction::ApplyActions(apply) if actions.is_none() => {
                actions = Some(apply.actions.reinterpret());
            }
            Instruction::GotoTable(next) if goto_table.is_none() => goto_table = Some(next.table_id.0),
            _ => other += 1,
        }
    }

    Ok((actions.unwrap_or_default(), goto_table, other))
}

/// Appends the actions of a flow in 1.0, or its instructions from 1.1 on.
#[inline]
pub(super) fn write(
    actions: &Actions<'_>,
    goto_table: Option<u8>,
    other: u16,
    writer: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    if writer.version() == Version::V1_0 {
        if goto_table.is_some() || other != 0 {
            return Err(writer.unsupported("instructions"));
        }
        return actions.append(writer);
    }
    if other != 0 {
        return Err(writer.unsupported("unknown instructions of a decoded message"));
    }
    if !actions.is_empty() {
        let start = writer.position();
        writer.buffer().put_u64(u64::from(APPLY_ACTIONS) << 48);
        actions.append(writer)?;
        writer.patch(start + 2, start)?;
    }

    if let Some(table) = goto_table {
        writer.buffer().put_u64(u64::from(GOTO_TABLE) << 48 | 8 << 32 | u64::from(table) << 24);
    }

    Ok(())
}
