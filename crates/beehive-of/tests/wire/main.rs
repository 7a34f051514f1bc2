//! What the codec promises: known bytes, round trips, hostile input, no allocation, and Open vSwitch's opinion.

mod allocation;
mod complete;
mod corpus;
mod coverage;
mod extensions;
mod hostile;
mod known_bytes;
mod limits;
mod open_vswitch;
mod recent;
mod round_trip;
mod strategies;
