//! Instructions of 1.3 (7.2.4).

use core::iter::FusedIterator;

use bytes::{BufMut, BytesMut};

use super::{Actions, unsupported};
use crate::any;
use crate::encode::{EncodeError, patch_length};
use crate::error::{Error, ErrorKind, Part};
use crate::field::{be8, be16, be32, be64, bounded, fixed};
use crate::version::Version;

mod kind {
    pub(super) const GOTO_TABLE: u16 = 1;
    pub(super) const WRITE_METADATA: u16 = 2;
    pub(super) const WRITE_ACTIONS: u16 = 3;
    pub(super) const APPLY_ACTIONS: u16 = 4;
    pub(super) const CLEAR_ACTIONS: u16 = 5;
    pub(super) const METER: u16 = 6;
}

/// An instruction (`ofp_instruction` and those that follow it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Instruction<'a> {
    /// Goes on in this table.
    GotoTable(u8),
    /// Sets metadata bits.
    WriteMetadata {
        /// The bits.
        metadata: u64,
        /// Which of them.
        mask: u64,
    },
    /// Adds to the actions done at the end.
    WriteActions(Actions<'a>),
    /// Does actions at once.
    ApplyActions(Actions<'a>),
    /// Forgets the actions done at the end.
    ClearActions,
    /// Counts against a meter.
    Meter(u32),
    /// Another instruction, or an experimenter's (type 0xffff).
    Unknown {
        /// `ofp_instruction_type`.
        kind: u16,
        /// What follows the length.
        body: &'a [u8],
    },
}

impl<'a> Instruction<'a> {
    fn read(bytes: &'a [u8], offset: usize) -> Result<(Self, usize), Error> {
        let (head, _) = fixed::<8>(bytes, Part::Instruction, offset, "instruction")?;
        let kind = be16::<0, _>(head);
        let length = usize::from(be16::<2, _>(head));
        let (whole, _) = bounded(bytes, length, 8, Part::Instruction, offset + 2, "instruction length")?;
        let expected = match kind {
            kind::GOTO_TABLE | kind::CLEAR_ACTIONS | kind::METER => 8,
            kind::WRITE_METADATA => 24,
            _ => length,
        };
        if length % 8 != 0 || length != expected {
            return Err(Error::new(
                ErrorKind::LengthWrong,
                Part::Instruction,
                offset + 2,
                "instruction length",
            ));
        }
        let actions = || Actions::new(whole.get(8..).unwrap_or(&[]), offset + 8);
        let instruction = match kind {
            kind::GOTO_TABLE => Self::GotoTable(be8::<4, _>(head)),
            kind::WRITE_METADATA => {
                let (long, _) = fixed::<24>(whole, Part::Instruction, offset, "instruction")?;
                Self::WriteMetadata { metadata: be64::<8, _>(long), mask: be64::<16, _>(long) }
            }
            kind::WRITE_ACTIONS => Self::WriteActions(actions()),
            kind::APPLY_ACTIONS => Self::ApplyActions(actions()),
            kind::CLEAR_ACTIONS => Self::ClearActions,
            kind::METER => Self::Meter(be32::<4, _>(head)),
            _ => Self::Unknown { kind, body: whole.get(4..).unwrap_or(&[]) },
        };
        Ok((instruction, length))
    }
}

/// Instructions in order; the first malformed one ends them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instructions<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Instructions<'a> {
    /// The instructions that `bytes` hold, which start at `offset` of their message.
    pub const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    /// What the instructions are without their version: the first list of actions done at once, the first table to go
    /// on in, and how many other instructions there are.
    pub(super) fn generalise(self) -> Result<(any::Actions<'a>, Option<u8>, u16), Error> {
        let mut actions = None;
        let mut goto_table = None;
        let mut other = 0;
        for instruction in self {
            match instruction? {
                Instruction::ApplyActions(list) if actions.is_none() => {
                    actions = Some(any::Actions::wire(Version::V1_3, list.rest, list.offset));
                }
                Instruction::GotoTable(table) if goto_table.is_none() => goto_table = Some(table),
                _ => other += 1,
            }
        }
        Ok((actions.unwrap_or_default(), goto_table, other))
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let read = Instruction::read(self.rest, self.offset);
        // An error leaves nothing to go on with; `read` never returns a length of zero.
        let length = read.as_ref().map_or(self.rest.len(), |(_, length)| *length);
        self.rest = self.rest.get(length..).unwrap_or(&[]);
        self.offset += length;
        Some(read.map(|(instruction, _)| instruction))
    }
}

impl FusedIterator for Instructions<'_> {}

/// Appends the instructions of a flow.
#[inline]
pub(super) fn write_instructions(
    actions: &any::Actions<'_>,
    goto_table: Option<u8>,
    other: u16,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    if other != 0 {
        return Err(unsupported("instructions that were decoded without a name"));
    }
    if !actions.is_empty() {
        let start = out.len();
        out.put_u64(u64::from(kind::APPLY_ACTIONS) << 48);
        actions.write(Version::V1_3, out)?;
        patch_length(out, start, start + 2)?;
    }
    if let Some(table) = goto_table {
        out.put_u16(kind::GOTO_TABLE);
        out.put_u16(8);
        out.put_slice(&[table, 0, 0, 0]);
    }
    Ok(())
}
