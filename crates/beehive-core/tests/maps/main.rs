//! Derived maps over real dictionaries: what each map says, that it covers what its handler touches, and that a
//! delivery which allows nothing else never stops.

extern crate beehive_core as beehive;

mod accepted_programs;
mod attempts;
mod derived_types;
mod flow;
#[rustfmt::skip]
mod generated;
mod keys;
mod message;
mod oracle;
mod oracle_strength;
#[rustfmt::skip]
mod seeded;
mod surface;
