//! What the codec promises: known bytes, round trips, hostile input, no allocation, and Open vSwitch's opinion.

mod allocation;
mod arbitrary;
mod canonical;
mod complete;
mod corpus;
mod coverage;
mod dissector;
mod extended_statistics;
mod extensions;
mod harness;
mod hostile;
mod inside;
mod known_bytes;
mod limits;
mod live;
mod meaning;
mod mutation;
mod open_vswitch;
mod pairs;
mod parts;
mod recent;
mod round_trip;
mod strategies;
mod text;
mod text_fields;
mod tree;
