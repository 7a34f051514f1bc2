//! The names of message types and errors in the specification.

use crate::message::Message;
use crate::version::Version;

/// Returns the name of a message type in lower case with underscores; `None` if the version does not assign
/// the type.
pub fn message_type_name(version: Version, message_type: u8) -> Option<&'static str> {
    if version == Version::V1_0 && message_type == 4 {
        return Some("vendor");
    }
    Message::NAMES.iter().find(|name| Message::number(name, version) == Some(message_type.into())).copied()
}

const BAD_REQUEST: &[&str] = &[
    "bad_version",
    "bad_type",
    "bad_multipart",
    "bad_experimenter",
    "bad_experimenter_type",
    "permission",
    "bad_length",
    "buffer_empty",
    "buffer_unknown",
    "bad_table_id",
    "is_slave",
    "bad_port",
    "bad_packet",
    "multipart_buffer_overflow",
];

const BAD_ACTION: &[&str] = &[
    "bad_type",
    "bad_length",
    "bad_experimenter",
    "bad_experimenter_type",
    "bad_out_port",
    "bad_argument",
    "permission",
    "too_many",
    "bad_queue",
    "bad_out_group",
    "match_inconsistent",
    "unsupported_order",
    "bad_tag",
    "bad_set_type",
    "bad_set_length",
    "bad_set_argument",
];

const HELLO_FAILED: &[&str] = &["incompatible", "permission"];
const QUEUE_OP_FAILED: &[&str] = &["bad_port", "bad_queue", "permission"];

/// The error types of 1.0, indexed by number, each with its codes, indexed by number (specification 1.0.0,
/// 5.4.4).
const ERRORS_V10: &[(&str, &[&str])] = &[
    ("hello_failed", HELLO_FAILED),
    ("bad_request", BAD_REQUEST),
    ("bad_action", BAD_ACTION),
    (
        "flow_mod_failed",
        &["all_tables_full", "overlap", "permission", "bad_emergency_timeout", "bad_command", "unsupported"],
    ),
    ("port_mod_failed", &["bad_port", "bad_hardware_address"]),
    ("queue_op_failed", QUEUE_OP_FAILED),
];

/// The error types of 1.1 and later, indexed by number, each with its codes, indexed by number (specification
/// 1.5.1, 7.5.4). Each version only appends to the lists of the previous one.
const ERRORS_V11: &[(&str, &[&str])] = &[
    ("hello_failed", HELLO_FAILED),
    ("bad_request", BAD_REQUEST),
    ("bad_action", BAD_ACTION),
    (
        "bad_instruction",
        &[
            "unknown_instruction",
            "unsupported_instruction",
            "bad_table_id",
            "unsupported_metadata",
            "unsupported_metadata_mask",
            "bad_experimenter",
            "bad_experimenter_type",
            "bad_length",
            "permission",
            "duplicate",
        ],
    ),
    (
        "bad_match",
        &[
            "bad_type",
            "bad_length",
            "bad_tag",
            "bad_link_address_mask",
            "bad_network_address_mask",
            "bad_wildcards",
            "bad_field",
            "bad_value",
            "bad_mask",
            "bad_prerequisite",
            "duplicate_field",
            "permission",
        ],
    ),
    (
        "flow_mod_failed",
        &[
            "unknown",
            "table_full",
            "bad_table_id",
            "overlap",
            "permission",
            "bad_timeout",
            "bad_command",
            "bad_flags",
            "cannot_sync",
            "bad_priority",
            "is_sync",
        ],
    ),
    (
        "group_mod_failed",
        &[
            "group_exists",
            "invalid_group",
            "weight_unsupported",
            "out_of_groups",
            "out_of_buckets",
            "chaining_unsupported",
            "watch_unsupported",
            "loop",
            "unknown_group",
            "chained_group",
            "bad_type",
            "bad_command",
            "bad_bucket",
            "bad_watch",
            "permission",
            "unknown_bucket",
            "bucket_exists",
        ],
    ),
    ("port_mod_failed", &["bad_port", "bad_hardware_address", "bad_config", "bad_advertise", "permission"]),
    ("table_mod_failed", &["bad_table", "bad_config", "permission"]),
    ("queue_op_failed", QUEUE_OP_FAILED),
    ("switch_config_failed", &["bad_flags", "bad_length", "permission"]),
    ("role_request_failed", &["stale", "unsupported", "bad_role", "id_unsupported", "id_in_use"]),
    (
        "meter_mod_failed",
        &[
            "unknown",
            "meter_exists",
            "invalid_meter",
            "unknown_meter",
            "bad_command",
            "bad_flags",
            "bad_rate",
            "bad_burst",
            "bad_band",
            "bad_band_value",
            "out_of_meters",
            "out_of_bands",
        ],
    ),
    (
        "table_features_failed",
        &[
            "bad_table",
            "bad_metadata",
            "bad_type",
            "bad_length",
            "bad_argument",
            "permission",
            "bad_capabilities",
            "bad_maximum_entries",
            "bad_features",
        ],
    ),
    (
        "bad_property",
        &[
            "bad_type",
            "bad_length",
            "bad_value",
            "too_many",
            "duplicate_type",
            "bad_experimenter",
            "bad_experimenter_type",
            "bad_experimenter_value",
            "permission",
        ],
    ),
    ("async_config_failed", &["invalid", "unsupported", "permission"]),
    (
        "flow_monitor_failed",
        &[
            "unknown",
            "monitor_exists",
            "invalid_monitor",
            "unknown_monitor",
            "bad_command",
            "bad_flags",
            "bad_table_id",
            "bad_out",
        ],
    ),
    (
        "bundle_failed",
        &[
            "unknown",
            "permission",
            "bad_id",
            "bundle_exists",
            "bundle_closed",
            "out_of_bundles",
            "bad_type",
            "bad_flags",
            "bad_message_length",
            "bad_message_xid",
            "message_unsupported",
            "message_conflict",
            "message_too_many",
            "message_failed",
            "timeout",
            "bundle_in_progress",
            "schedule_not_supported",
            "schedule_future",
            "schedule_past",
        ],
    ),
];

/// Returns the number of error types in a version, without the experimenter type.
const fn error_types(version: Version) -> usize {
    match version {
        Version::V1_0 => 6,
        Version::V1_1 => 11,
        Version::V1_2 => 12,
        Version::V1_3 => 14,
        Version::V1_4 | Version::V1_5 => 18,
    }
}

fn error_names(
    version: Version,
    error_type: u16,
) -> Option<&'static (&'static str, &'static [&'static str])> {
    let table = if version == Version::V1_0 { ERRORS_V10 } else { ERRORS_V11 };
    table.get(..error_types(version))?.get(usize::from(error_type))
}

/// Returns the name of an error type; `None` if the version does not assign the type.
pub fn error_type_name(version: Version, error_type: u16) -> Option<&'static str> {
    if version >= Version::V1_2 && error_type == 0xffff {
        return Some("experimenter");
    }
    error_names(version, error_type).map(|(name, _)| *name)
}

/// Returns the name of an error code; `None` if the version does not assign the type or the code.
pub fn error_code_name(version: Version, error_type: u16, code: u16) -> Option<&'static str> {
    error_names(version, error_type).and_then(|(_, codes)| codes.get(usize::from(code))).copied()
}

/// Returns the number of the error type with this name.
pub(crate) fn error_type_number(version: Version, name: &str) -> Option<u16> {
    (0..=18).chain([0xffff]).find(|number| error_type_name(version, *number) == Some(name))
}

/// Returns the number of the code that has this name in an error type.
pub(crate) fn error_code_number(version: Version, error_type: u16, name: &str) -> Option<u16> {
    (0..32).find(|code| error_code_name(version, error_type, *code) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_where_the_specification_has_them() {
        assert_eq!(message_type_name(Version::V1_0, 4), Some("vendor"));
        assert_eq!(message_type_name(Version::V1_0, 19), Some("barrier_reply"));
        assert_eq!(message_type_name(Version::V1_0, 22), None);
        assert_eq!(message_type_name(Version::V1_3, 14), Some("flow_mod"));
        assert_eq!(message_type_name(Version::V1_3, 25), Some("role_reply"));
        assert_eq!(message_type_name(Version::V1_3, 29), Some("meter_mod"));
        assert_eq!(message_type_name(Version::V1_5, 35), Some("controller_status"));
        assert_eq!(error_code_name(Version::V1_4, 17, 13), Some("message_failed"));
        assert_eq!(error_type_name(Version::V1_3, 17), None);
        assert_eq!(error_type_name(Version::V1_2, 12), None);
        assert_eq!(message_type_name(Version::V1_3, 30), None);
        assert_eq!(error_type_name(Version::V1_3, 11), Some("role_request_failed"));
        assert_eq!(error_code_name(Version::V1_3, 11, 0), Some("stale"));
        assert_eq!(error_code_name(Version::V1_3, 4, 9), Some("bad_prerequisite"));
        assert_eq!(error_code_name(Version::V1_0, 3, 4), Some("bad_command"));
        assert_eq!(error_type_name(Version::V1_0, 6), None);
        assert_eq!(error_code_name(Version::V1_0, 0xffff, 0xffff), None);
    }
}
