//! The specification's names of message types and errors, for people.

use crate::version::Version;

/// The name of a message type, lower case with underscores; `None` for types that the version does not assign.
pub fn message_type_name(version: Version, message_type: u8) -> Option<&'static str> {
    const SAME: [&str; 15] = [
        "hello",
        "error",
        "echo_request",
        "echo_reply",
        "experimenter",
        "features_request",
        "features_reply",
        "get_config_request",
        "get_config_reply",
        "set_config",
        "packet_in",
        "flow_removed",
        "port_status",
        "packet_out",
        "flow_mod",
    ];
    const V1_0: [&str; 7] = [
        "port_mod",
        "statistics_request",
        "statistics_reply",
        "barrier_request",
        "barrier_reply",
        "queue_get_config_request",
        "queue_get_config_reply",
    ];
    const V1_3: [&str; 15] = [
        "group_mod",
        "port_mod",
        "table_mod",
        "multipart_request",
        "multipart_reply",
        "barrier_request",
        "barrier_reply",
        "queue_get_config_request",
        "queue_get_config_reply",
        "role_request",
        "role_reply",
        "get_async_request",
        "get_async_reply",
        "set_async",
        "meter_mod",
    ];
    let index = usize::from(message_type);
    match (index.checked_sub(SAME.len()), version) {
        (None, Version::V1_0) if message_type == crate::v10::message_type::VENDOR => Some(&"vendor"),
        (None, _) => SAME.get(index),
        (Some(index), Version::V1_0) => V1_0.get(index),
        (Some(index), Version::V1_3) => V1_3.get(index),
    }
    .copied()
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

/// The error types of 1.0 by number, each with its codes by number (specification 1.0.0, 5.4.4).
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

/// The error types of 1.3 by number, each with its codes by number (specification 1.3.5, 7.5.4).
const ERRORS_V13: &[(&str, &[&str])] = &[
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
        ],
    ),
    ("port_mod_failed", &["bad_port", "bad_hardware_address", "bad_config", "bad_advertise", "permission"]),
    ("table_mod_failed", &["bad_table", "bad_config", "permission"]),
    ("queue_op_failed", QUEUE_OP_FAILED),
    ("switch_config_failed", &["bad_flags", "bad_length", "permission"]),
    ("role_request_failed", &["stale", "unsupported", "bad_role"]),
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
        &["bad_table", "bad_metadata", "bad_type", "bad_length", "bad_argument", "permission"],
    ),
];

fn error_names(
    version: Version,
    error_type: u16,
) -> Option<&'static (&'static str, &'static [&'static str])> {
    match version {
        Version::V1_0 => ERRORS_V10,
        Version::V1_3 => ERRORS_V13,
    }
    .get(usize::from(error_type))
}

/// The name of an error type; `None` for types that the version does not assign.
pub fn error_type_name(version: Version, error_type: u16) -> Option<&'static str> {
    if version == Version::V1_3 && error_type == 0xffff {
        return Some("experimenter");
    }
    error_names(version, error_type).map(|(name, _)| *name)
}

/// The name of an error code of a type; `None` for codes that the version does not assign.
pub fn error_code_name(version: Version, error_type: u16, code: u16) -> Option<&'static str> {
    error_names(version, error_type).and_then(|(_, codes)| codes.get(usize::from(code))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_where_the_specification_has_them() {
        use crate::{v10, v13};
        assert_eq!(message_type_name(Version::V1_0, v10::message_type::VENDOR), Some("vendor"));
        assert_eq!(message_type_name(Version::V1_0, v10::message_type::BARRIER_REPLY), Some("barrier_reply"));
        assert_eq!(message_type_name(Version::V1_0, 22), None);
        assert_eq!(message_type_name(Version::V1_3, v13::message_type::FLOW_MOD), Some("flow_mod"));
        assert_eq!(message_type_name(Version::V1_3, v13::message_type::ROLE_REPLY), Some("role_reply"));
        assert_eq!(message_type_name(Version::V1_3, v13::message_type::METER_MOD), Some("meter_mod"));
        assert_eq!(message_type_name(Version::V1_3, 30), None);
        assert_eq!(error_type_name(Version::V1_3, 11), Some("role_request_failed"));
        assert_eq!(error_code_name(Version::V1_3, 11, 0), Some("stale"));
        assert_eq!(error_code_name(Version::V1_3, 4, 9), Some("bad_prerequisite"));
        assert_eq!(error_code_name(Version::V1_0, 3, 4), Some("bad_command"));
        assert_eq!(error_type_name(Version::V1_0, 6), None);
        assert_eq!(error_code_name(Version::V1_0, 0xffff, 0xffff), None);
    }
}
