//! Ownership: the registry and the queen, who decide which bee owns which cell.

pub(crate) mod queen;
