//! Sweeps: messages and ticks that visit every cell of a dictionary.

pub(crate) mod logged_sweep;
#[allow(clippy::module_inception)]
pub(crate) mod sweep;
pub(crate) mod ticks;
