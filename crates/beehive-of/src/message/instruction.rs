//! Instructions (1.1 on; 1.3.5, 7.2.4).

use super::action::Actions;
use super::experimenter::Experimenter;
use super::number::{MeterId, StatTriggerFlags, TableId};
use super::oxs::FlowCounters;
use crate::schema::{Hex, List, structure, tagged};

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
