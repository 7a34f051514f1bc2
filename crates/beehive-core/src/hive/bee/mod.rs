//! A bee: its mailbox, its state, what it executed and has not seen committed, and the tables that find it.

pub(crate) mod app;
#[allow(clippy::module_inception)]
pub(crate) mod bee;
pub(crate) mod bee_table;
pub(crate) mod pending;
pub(crate) mod routing_table;
pub(crate) mod traffic;
