//! Routing, the sender's side: from a derived map to the mailbox of the owner.

pub(crate) mod delivery;
pub(crate) mod receiver;
pub(crate) mod recovery;
pub(crate) mod routed;
