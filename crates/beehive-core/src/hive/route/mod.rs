//! Routing on the sender's side: from the derived map of a message to the mailbox of the bee that owns its
//! cells.

pub(crate) mod delivery;
pub(crate) mod receiver;
pub(crate) mod recovery;
pub(crate) mod routed;
