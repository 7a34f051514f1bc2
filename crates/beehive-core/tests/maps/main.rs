//! Derived maps over real dictionaries: each map names the expected cells and covers all cells that its
//! handler touches, so a delivery that is restricted to the mapped cells never touches another cell.

extern crate beehive_core as beehive;

mod accepted_programs;
mod attempts;
#[rustfmt::skip]
mod bodies;
mod computed;
mod declared_inside;
mod derived_types;
mod flow;
#[rustfmt::skip]
mod generated;
mod hidden_changes;
mod integers;
mod keys;
mod lent;
mod message;
mod oracle;
mod oracle_strength;
mod panics;
#[rustfmt::skip]
mod seeded;
mod stopped_loops;
mod surface;
mod ways_out;
