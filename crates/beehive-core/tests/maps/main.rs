//! Derived maps over real dictionaries: each map has the expected cells, covers what its handler touches, and
//! a delivery restricted to the mapped cells never fails for that reason.

extern crate beehive_core as beehive;

mod accepted_programs;
mod attempts;
#[rustfmt::skip]
mod bodies;
mod computed;
mod derived_types;
mod flow;
#[rustfmt::skip]
mod generated;
mod hidden_changes;
mod keys;
mod lent;
mod message;
mod oracle;
mod oracle_strength;
mod panics;
#[rustfmt::skip]
mod seeded;
mod surface;
mod ways_out;
