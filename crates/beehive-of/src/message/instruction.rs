//! Instructions (1.1 on; 1.3.5, 7.2.4).

use super::action::Actions;
use super::experimenter::Experimenter;
use super::number::{MeterId, StatTriggerFlags, TableId};
use super::oxs::FlowCounters;
use crate::encode::EncodeError;
use crate::error::Error;
use crate::schema::{Adaptor, Hex, List, Reader, Sink, Source, Tagged, Value, Writer, structure, tagged};
use crate::version::Version;

tagged! {
    /// What a flow does with a packet.
    pub enum Instruction<'a> in Instruction, "instruction length", padded false, minimum 8 {
        /// Goes on in a table.
        GotoTable(GotoTable) "goto_table" = [1 in 1..],
        /// Sets bits of the metadata.
        WriteMetadata(WriteMetadata) "write_metadata" = [2 in 1..],
        /// Adds to the actions done at the end.
        WriteActions(ActionList<'a>) "write_actions" = [3 in 1..],
        /// Does actions at once.
        ApplyActions(ActionList<'a>) "apply_actions" = [4 in 1..],
        /// Forgets the actions done at the end.
        ClearActions(Nothing) "clear_actions" = [5 in 1..],
        /// Counts against a meter; an action from 1.5 on.
        Meter(Meter) "meter" = [6 in 3..=4],
        /// Sends a notice when counters reach values.
        StatTrigger(StatTrigger<'a>) "stat_trigger" = [7 in 5..],
        /// An experimenter's.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 1..],
    }
}

/// Instructions in order.
pub type Instructions<'a> = List<'a, Instruction<'a>>;

/// The first instruction of which there is one before it: where it starts, and its name. Of experimenters' there may be
/// several.
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

/// Instructions of which there is one of a kind (1.3.5, 5.9). Those of a message that was decoded go out as they came.
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
            return Err(EncodeError::Value { field: "an instruction that is there twice" });
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
    /// Goes on in a table.
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
    /// Does actions.
    pub struct ActionList<'a> in Instruction { actions: Actions<'a> }
    _ => [4, actions],
}

structure! {
    /// Has no argument.
    pub struct Nothing in Instruction {}
    _ => [4],
}

structure! {
    /// Counts against a meter.
    pub struct Meter in Instruction { meter_id: MeterId }
    _ => [meter_id],
}

structure! {
    /// Sends a notice when counters reach values.
    pub struct StatTrigger<'a> in Instruction {
        flags: StatTriggerFlags,
        thresholds: FlowCounters<'a>,
    }
    _ => [flags, thresholds],
}
