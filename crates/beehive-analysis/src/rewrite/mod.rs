//! The changes that the attribute makes to a handler's body, for the analysis or for the compiler.

pub(crate) mod attempts;
pub(crate) mod rebinding;
