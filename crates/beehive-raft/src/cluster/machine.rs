//! The state machine of a group: it applies committed entries to a state, and makes and installs snapshots.

use super::log_store::LogStore;
use super::types::{Chunks, Command, LogId, Membership, Reply, Snapshot, SnapshotMeta, Types};
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// A function that encodes a copy of a state.
pub(crate) type Encode = Box<dyn FnOnce() -> Result<Vec<Vec<u8>>, String> + Send + Sync>;

/// The state of a group.
///
/// All replicas do the same with the same entries. A replica that cannot apply an entry would differ from the others, so an
/// error stops it.
pub(crate) trait Fold: Send + Sync + 'static {
    /// Applies the first entry of a term.
    fn begin_term(&self, term: u64, index: u64) -> Result<(), String>;
    /// Applies a command.
    fn apply(&self, command: &Command, index: u64) -> Result<Reply, String>;
    /// Applies an entry that has no effect on the state.
    fn pass(&self, index: u64);
    /// Copies the state.
    fn copy(&self) -> Encode;
    /// Replaces the state by that of a snapshot, whose last entry has this index.
    fn load(&self, chunks: &Chunks, index: u64) -> Result<(), String>;
}

/// The state machine of a group.
pub(crate) struct Machine {
    fold: Arc<dyn Fold>,
    applied: Option<LogId>,
    membership: Membership,
    snapshots: Snapshots,
}

/// The newest snapshot. All clones share it.
#[derive(Clone)]
struct Snapshots {
    newest: Arc<Mutex<Option<Snapshot>>>,
    store: LogStore,
}

impl Snapshots {
    /// Makes a snapshot the newest one, unless a newer one was installed meanwhile. It is permanent then, so openraft may remove
    /// the entries that it covers.
    async fn save(&self, snapshot: &Snapshot) -> Result<(), io::Error> {
        self.store.save_snapshot(snapshot).await?;
        let mut newest = self.newest.lock();
        if newest.as_ref().is_none_or(|newest| newest.meta.last_log_id <= snapshot.meta.last_log_id) {
            *newest = Some(snapshot.clone())
        }
        Ok(())
    }
}

impl Machine {
    /// Creates the state machine of a group. openraft first installs the snapshot that `store` has, if any.
    pub(crate) fn new(fold: Arc<dyn Fold>, store: LogStore) -> Machine {
        let newest = Arc::new(Mutex::new(store.take_snapshot()));
        let snapshots = Snapshots { newest, store };
        Machine { fold, applied: None, membership: Membership::default(), snapshots }
    }
}

/// A copy of a state machine, from which a snapshot is made.
pub(crate) struct Builder {
    encode: Option<Encode>,
    meta: SnapshotMeta,
    snapshots: Snapshots,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = Chunks;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let encode = self.encode.take().ok_or_else(|| io::Error::other("the snapshot was made already"))?;
        let chunks = encode().map_err(io::Error::other)?;
        let snapshot = Snapshot { meta: self.meta.clone(), snapshot: Arc::new(chunks) };
        self.snapshots.save(&snapshot).await?;
        Ok(snapshot)
    }
}

impl RaftStateMachine<Types> for Machine {
    type SnapshotData = Chunks;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), io::Error> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let (id, term) = (entry.log_id, *entry.log_id.leader_id);
            let reply = match entry.payload {
                EntryPayload::Blank => self.fold.begin_term(term, id.index).map(|()| Reply::Nothing),
                EntryPayload::Normal(command) => self.fold.apply(&command, id.index),
                EntryPayload::Membership(membership) => {
                    self.membership = Membership::new(Some(id), membership);
                    self.fold.pass(id.index);
                    Ok(Reply::Nothing)
                }
            };
            let reply = reply.map_err(|why| {
                tracing::error!(entry = %id, why, "a committed entry cannot be applied; this replica stops");
                io::Error::other(why)
            })?;
            self.applied = Some(id);
            if let Some(responder) = responder {
                responder.send(reply)
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.membership.clone() };
        Builder { encode: Some(self.fold.copy()), meta, snapshots: self.snapshots.clone() }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: Chunks) -> Result<(), io::Error> {
        let index = meta.last_log_id.map_or(0, |last| last.index);
        let saved = Snapshot { meta: meta.clone(), snapshot: snapshot.clone() };
        self.snapshots.save(&saved).await?;
        self.fold.load(&snapshot, index).map_err(|why| {
            tracing::error!(why, "a snapshot cannot be installed; this replica stops");
            io::Error::other(why)
        })?;
        (self.applied, self.membership) = (meta.last_log_id, meta.last_membership.clone());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self.snapshots.newest.lock().clone())
    }
}
