//! The message types of a hive: who handles a type, in which order, and how a logged message finds its type again.

pub(crate) mod handler;
pub(crate) mod logged_types;
pub(crate) mod message_types;
