//! What the codec promises: known bytes, round trips, hostile input, no allocation, and Open vSwitch's opinion.

mod allocation;
mod corpus;
mod hostile;
mod known_bytes;
mod limits;
mod open_vswitch;
mod round_trip;
mod strategies;
