//! Integration tests of the codec: known bytes, round trips, hostile input, allocation, and comparison with
//! Open vSwitch.

mod allocation;
mod arbitrary;
mod canonical;
mod corpus;
mod coverage;
mod cross_version;
mod dissector;
mod embedded;
mod encode_errors;
mod extended_statistics;
mod extensions;
mod harness;
mod hostile;
mod known_bytes;
mod live;
mod meaning;
mod message_samples;
mod message_samples_1_3_on;
mod mutation;
mod open_vswitch;
mod round_trip;
mod split_multipart;
mod strategies;
mod temporary;
mod text;
mod text_differences;
mod text_fields;
mod tree;
