//! The message types of a hive, the handlers of each type in their order, and the lookup of a logged message's type.

pub(crate) mod handler;
pub(crate) mod logged_types;
pub(crate) mod message_types;
