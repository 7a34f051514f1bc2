//! A bee: its mailbox, its state, what it executed and has not seen committed, and the tables that find it.

pub(crate) mod app;
pub(crate) mod bee_table;
pub(crate) mod body;
pub(crate) mod delivery;
pub(crate) mod lifecycle;
pub(crate) mod mailbox;
pub(crate) mod pending;
pub(crate) mod routing_table;
pub(crate) mod settings;
pub(crate) mod traffic;
