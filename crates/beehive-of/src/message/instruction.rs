//! Instructions (since 1.1; 1.3.5, 7.2.4).

use super::action::Actions;
use super::experimenter::Experimenter;
use super::number::{MeterId, StatTriggerFlags, TableId};
use super::oxs::FlowCounters;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::schema::{Adaptor, Hex, List, Reader, Sink, Source, Tagged, Value, Writer, structure, tagged};
use crate::version::Version;

tagged! {
    /// An instruction of a flow.
    pub enum Instruction<'a> in Instruction, "instruction length", padded false, minimum 8 {
        /// Continues processing in another table.
        GotoTable(GotoTable) "goto_table" = [1 in 1..],
        /// Sets bits of the metadata.
        WriteMetadata(WriteMetadata) "write_metadata" = [2 in 1..],
        /// Adds actions to the action set, which the switch executes at the end of the pipeline.
        WriteActions(ActionList<'a>) "write_actions" = [3 in 1..],
        /// Executes actions immediately.
        ApplyActions(ActionList<'a>) "apply_actions" = [4 in 1..],
        /// Clears the action set.
        ClearActions(Nothing) "clear_actions" = [5 in 1..],
        /// Applies a meter; an action from 1.5 on.
        Meter(Meter) "meter" = [6 in 3..=4],
        /// Sends statistics when counters reach thresholds.
        StatTrigger(StatTrigger<'a>) "stat_trigger" = [7 in 5..],
        /// An experimenter instruction.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 1..],
    }
}

/// A list of instructions, in order.
pub type Instructions<'a> = List<'a, Instruction<'a>>;

/// Finds the first duplicate instruction and returns its offset and name. Experimenter instructions may be
/// repeated.
pub(super) fn twice(
    instructions: &Instructions<'_>,
    version: Version,
) -> Result<Option<(usize, &'static str)>, Error> {
    let mut seen = 0u16;
    let mut elements = instructions.iter();
    loop {
        let offset = elements.offset();
        let Some(instruction) = elements.next() else { return Ok(None) };
        let instruction = instruction?;
        let bit = instruction.kind(version).and_then(|kind| 1u16.checked_shl(kind.into())).unwrap_or(0);
        if seen & bit != 0 {
            return Ok(Some((offset, instruction.name())));
        }
        seen |= bit;
    }
}

/// Encodes instructions and refuses duplicates (1.3.5, 5.9). Instructions of a decoded message are copied
/// unchanged.
pub(crate) struct Once;

impl<'a> Adaptor<'a, Instructions<'a>> for Once {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Instructions<'a>, Error> {
        Value::read(reader)
    }

    fn write(
        value: &Instructions<'a>,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        if value.reader().is_none() && twice(value, writer.version())?.is_some() {
            return Err(EncodeError::Value { field: "duplicate instruction" });
        }
        value.write(writer)
    }

    fn show(value: &Instructions<'a>, version: Version, sink: &mut dyn Sink) {
        value.show(version, sink);
    }

    fn compose(
        source: &dyn Source,
        _field: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        Instructions::compose(source, writer)
    }
}

structure! {
    /// Continues processing in another table.
    pub struct GotoTable in Instruction { table_id: TableId }
    _ => [table_id, 3],
}

structure! {
    /// Sets bits of the metadata.
    pub struct WriteMetadata in Instruction {
        metadata: u64,
        mask: u64,
    }
    _ => [4, metadata as Hex, mask as Hex],
}

structure! {
    /// Applies actions, or writes them to the action set.
    pub struct ActionList<'a> in Instruction { actions: Actions<'a> }
    _ => [4, actions],
}

structure! {
    /// An instruction without an argument.
    pub struct Nothing in Instruction {}
    _ => [4],
}

structure! {
    /// Applies a meter.
    pub struct Meter in Instruction { meter_id: MeterId }
    _ => [meter_id],
}

structure! {
    /// Sends statistics when counters reach thresholds.
    pub struct StatTrigger<'a> in Instruction {
        flags: StatTriggerFlags,
        thresholds: FlowCounters<'a>,
    }
    _ => [flags, thresholds],
}
