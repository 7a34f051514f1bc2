//! Sweeps: messages and timer ticks that visit every cell of a dictionary.

pub(crate) mod logged_sweep;
pub(crate) mod ticks;
pub(crate) mod unlogged_sweep;
