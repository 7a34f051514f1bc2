//! Flow tables: modification, statistics, features and descriptions (1.3.5, 7.3.4.1 and 7.3.5.5; 1.4.1,
//! 7.3.4.1).

use super::experimenter::Experimenter;
use super::number::{
    EvictionFlags, TableConfig, TableFeatureFlags, TableFeaturesCommand, TableId, TableReason,
};
use crate::oxm::{FieldId, OxmFields};
use crate::schema::{Fixed, Hex, List, structure, tagged};

structure! {
    /// Changes a table (since 1.1).
    pub struct TableMod<'a> in Table {
        table_id: TableId,
        config: TableConfig,
        /// Present since 1.4.
        properties: List<'a, TableProperty<'a>>,
    }
    1..=3 => [table_id, 3, config],
    4.. => [table_id, 3, config, properties],
}

tagged! {
    /// The configuration of a table (since 1.4).
    pub enum TableProperty<'a> in Property, "table property length", padded true, minimum 4 {
        /// The eviction criteria.
        Eviction(Eviction) "eviction" = [2 in 4..],
        /// The vacancy thresholds.
        Vacancy(Vacancy) "vacancy" = [3 in 4..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xffff in 4..],
    }
}

structure! {
    /// The eviction criteria.
    pub struct Eviction in Property { flags: EvictionFlags }
    _ => [flags],
}

structure! {
    /// The thresholds at which a table reports its free space, in percent.
    pub struct Vacancy in Property {
        vacancy_down: u8,
        vacancy_up: u8,
        vacancy: u8,
    }
    _ => [vacancy_down, vacancy_up, vacancy, 1],
}

structure! {
    /// The configuration of a table (since 1.4).
    pub struct TableDescription<'a> in Table {
        table_id: TableId,
        config: TableConfig,
        properties: List<'a, TableProperty<'a>>,
    }
    4.. => [len, table_id, 1, config, properties],
}

structure! {
    /// Reports that a table crossed a vacancy threshold (since 1.4).
    pub struct TableStatus<'a> in Table {
        reason: TableReason,
        table: TableDescription<'a>,
    }
    4.. => [reason, 7, table],
}

structure! {
    /// The counters of a table and, up to 1.2, its capabilities.
    pub struct TableStatistics in Table {
        table_id: TableId,
        name: Fixed<32>,
        /// The fields that can be wildcarded: wildcard bits in 1.0 and 1.1, a set of fields in 1.2.
        wildcards: u64,
        /// The fields that can be matched: wildcard bits in 1.1, a set of fields in 1.2.
        match_fields: u64,
        write_actions: u32,
        apply_actions: u32,
        write_setfields: u64,
        apply_setfields: u64,
        metadata_match: u64,
        metadata_write: u64,
        instructions: u32,
        config: TableConfig,
        max_entries: u32,
        active_count: u32,
        lookup_count: u64,
        matched_count: u64,
    }
    0 => [table_id, 3, name, wildcards as Word, max_entries, active_count, lookup_count, matched_count],
    1 => [
        table_id, 7, name, wildcards as Word, match_fields as Word, instructions, write_actions, apply_actions, config,
        max_entries, active_count, lookup_count, matched_count
    ],
    2 => [
        table_id, 7, name, match_fields, wildcards, write_actions, apply_actions, write_setfields, apply_setfields,
        metadata_match as Hex, metadata_write as Hex, instructions, config, max_entries, active_count, lookup_count, matched_count
    ],
    3.. => [table_id, 3, active_count, lookup_count, matched_count],
}

/// Encodes a number in 32 bits.
pub(crate) struct Word;

impl crate::schema::Adaptor<'_, u64> for Word {
    fn read(reader: &mut crate::schema::Reader<'_>) -> Result<u64, crate::Error> {
        reader.u32().map(u64::from)
    }

    fn write(
        value: &u64,
        field: &'static str,
        writer: &mut crate::schema::Writer<'_>,
    ) -> Result<(), crate::EncodeError> {
        let word = u32::try_from(*value).map_err(|_| writer.unsupported(field))?;
        writer.put(&word.to_be_bytes());
        Ok(())
    }

    fn show(value: &u64, version: crate::Version, sink: &mut dyn crate::schema::Sink) {
        crate::schema::Value::show(value, version, sink);
    }

    fn compose(
        source: &dyn crate::schema::Source,
        field: &'static str,
        writer: &mut crate::schema::Writer<'_>,
    ) -> Result<(), crate::EncodeError> {
        Self::write(&source.number().ok_or(crate::EncodeError::Value { field })?, field, writer)
    }
}

structure! {
    /// The features of a table (since 1.3).
    pub struct TableFeatures<'a> in Table {
        table_id: TableId,
        /// Present since 1.5.
        command: TableFeaturesCommand,
        /// Present since 1.5.
        features: TableFeatureFlags,
        name: Fixed<32>,
        /// The bits of the metadata that can be matched.
        metadata_match: u64,
        /// The bits of the metadata that can be written.
        metadata_write: u64,
        /// Bits of `ofp_table_config`; capabilities from 1.4 on.
        config: TableConfig,
        max_entries: u32,
        properties: List<'a, TableFeatureProperty<'a>>,
    }
    3..=4 => [len, table_id, 5, name, metadata_match as Hex, metadata_write as Hex, config, max_entries, properties],
    5.. => [
        len, table_id, command, features, name, metadata_match as Hex, metadata_write as Hex, config, max_entries, properties
    ],
}

tagged! {
    /// A property of a table's features. The properties of the table-miss flow have names that end in `miss`.
    pub enum TableFeatureProperty<'a> in Table, "table feature property length", padded true, minimum 4 {
        /// Supported instructions.
        Instructions(Kinds<'a>) "instructions" = [0 in 3..],
        /// Supported instructions of the table-miss flow.
        InstructionsMiss(Kinds<'a>) "instructions_miss" = [1 in 3..],
        /// Tables that a flow can continue in.
        NextTables(Tables<'a>) "next_tables" = [2 in 3..],
        /// Tables that the table-miss flow can continue in.
        NextTablesMiss(Tables<'a>) "next_tables_miss" = [3 in 3..],
        /// Actions that can be written.
        WriteActions(Kinds<'a>) "write_actions" = [4 in 3..],
        /// Actions that the table-miss flow can write.
        WriteActionsMiss(Kinds<'a>) "write_actions_miss" = [5 in 3..],
        /// Actions that can be applied.
        ApplyActions(Kinds<'a>) "apply_actions" = [6 in 3..],
        /// Actions that the table-miss flow can apply.
        ApplyActionsMiss(Kinds<'a>) "apply_actions_miss" = [7 in 3..],
        /// Fields that can be matched.
        Match(FieldIds<'a>) "match" = [8 in 3..],
        /// Fields that can be wildcarded.
        Wildcards(FieldIds<'a>) "wildcards" = [10 in 3..],
        /// Fields that written actions can set.
        WriteSetField(FieldIds<'a>) "write_setfield" = [12 in 3..],
        /// Fields that the table-miss flow's written actions can set.
        WriteSetFieldMiss(FieldIds<'a>) "write_setfield_miss" = [13 in 3..],
        /// Fields that applied actions can set.
        ApplySetField(FieldIds<'a>) "apply_setfield" = [14 in 3..],
        /// Fields that the table-miss flow's applied actions can set.
        ApplySetFieldMiss(FieldIds<'a>) "apply_setfield_miss" = [15 in 3..],
        /// Tables from which this table is synchronized.
        SyncFrom(Tables<'a>) "table_sync_from" = [16 in 4..],
        /// Fields that written actions can copy to.
        WriteCopyField(FieldIds<'a>) "write_copyfield" = [18 in 5..],
        /// Fields that the table-miss flow's written actions can copy to.
        WriteCopyFieldMiss(FieldIds<'a>) "write_copyfield_miss" = [19 in 5..],
        /// Fields that applied actions can copy to.
        ApplyCopyField(FieldIds<'a>) "apply_copyfield" = [20 in 5..],
        /// Fields that the table-miss flow's applied actions can copy to.
        ApplyCopyFieldMiss(FieldIds<'a>) "apply_copyfield_miss" = [21 in 5..],
        /// The supported packet types.
        PacketTypes(PacketTypes<'a>) "packet_types" = [22 in 5..],
        /// An experimenter property.
        Experimenter(Experimenter<'a>) "experimenter" = [0xfffe in 3..],
        /// An experimenter property for the table-miss flow.
        ExperimenterMiss(Experimenter<'a>) "experimenter_miss" = [0xffff in 3..],
    }
}

structure! {
    /// A list of instruction or action types.
    pub struct Kinds<'a> in Table { kinds: List<'a, Kind<'a>> }
    _ => [kinds],
}

structure! {
    /// The type of an instruction or action.
    pub struct Kind<'a> in Table {
        /// The type number.
        kind: u16,
        /// The experimenter number and data; empty for other types.
        body: &'a [u8],
    }
    _ => [kind, len, body],
}

structure! {
    /// A list of table numbers.
    pub struct Tables<'a> in Table { tables: &'a [u8] }
    _ => [tables],
}

structure! {
    /// A list of match fields.
    pub struct FieldIds<'a> in Table { fields: List<'a, FieldId> }
    _ => [fields],
}

structure! {
    /// The supported packet types.
    pub struct PacketTypes<'a> in Table { types: OxmFields<'a> }
    _ => [types],
}
