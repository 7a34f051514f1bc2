//! The states of the groups: the log of a colony, and the registry.

use super::machine::{Encode, Fold};
use super::types::{Chunks, Command, Reply};
use crate::limits::CHUNK_BYTES;
use beehive_core::HiveId;
use beehive_core::cluster::{Followed, Incarnation};
use beehive_core::journal::{Entry, EntryNumber, LogState, SnapshotLoader};
use beehive_core::registry::{ColonyId, Proposal, RegistryState};
use beehive_protocol::codec::{decode, decode_many, try_encode};
use beehive_protocol::limits::ENCODED_BYTES_MAX;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tokio::sync::watch;

/// A replica of a colony.
pub(crate) struct Colony {
    state: Mutex<At<LogState>>,
    /// The newest term whose first entry is applied.
    term: watch::Sender<u64>,
    /// The hive whose views show what the colony has committed, and the colony. Set while `state` is locked.
    follower: OnceLock<(ColonyId, Followed)>,
}

/// A replica of the registry.
pub(crate) struct Decisions {
    state: Mutex<At<RegistryState>>,
    /// The index of the last decision.
    index: watch::Sender<u64>,
    /// The last incarnation of each hive that was declared dead, as far as this replica has seen it. The state forgets it when
    /// the hive joins again. A snapshot may have skipped it; then other replicas have seen it.
    lost: Mutex<BTreeMap<HiveId, Incarnation>>,
}

/// A state, and the index of the last entry that was applied to it.
#[derive(Default)]
struct At<S> {
    state: S,
    index: u64,
}

impl Default for Colony {
    fn default() -> Colony {
        Colony { state: Mutex::default(), term: watch::Sender::new(0), follower: OnceLock::new() }
    }
}

impl Colony {
    /// Copies the state. Returns also the index of the last entry that was applied to it.
    pub(crate) fn state(&self) -> (u64, LogState) {
        let at = self.state.lock();
        (at.index, at.state.clone())
    }

    /// Calls `look` with the state.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&LogState) -> R) -> R {
        look(&self.state.lock().state)
    }

    /// Tells the hive what the colony has committed, from now on. Only the first call has an effect.
    pub(crate) fn tell(&self, colony: ColonyId, hive: &Followed) {
        let at = self.state.lock();
        if self.follower.set((colony, hive.clone())).is_ok() {
            hive.restored(colony, &at.state)
        }
    }

    /// Returns the newest term whose first entry is applied, and its changes.
    pub(crate) fn terms(&self) -> watch::Receiver<u64> {
        self.term.subscribe()
    }
}

impl Fold for Colony {
    fn begin_term(&self, term: u64, index: u64) -> Result<(), String> {
        if term > EntryNumber::TERM_MAX {
            return Err(format!("there is no term {term}"));
        }
        let mut at = self.state.lock();
        at.index = index;
        if term > at.state.last.term() {
            // entries that the leader of an earlier term has executed, and that come behind this place, are dead from here on
            at.state.begin_term(term);
        }
        drop(at);
        self.term.send_replace(term);
        Ok(())
    }

    fn apply(&self, command: &Command, index: u64) -> Result<Reply, String> {
        let entry = Entry::decode(&command.0).map_err(|error| error.to_string())?;
        let mut at = self.state.lock();
        at.index = index;
        let is_applied = at.state.apply(&entry);
        // before the journal reports the entry: a view contains what this hive has acknowledged
        if let Some((colony, hive)) = self.follower.get().filter(|_| is_applied) {
            hive.applied(*colony, &entry.record, &at.state)
        }
        Ok(Reply::Applied(is_applied))
    }

    fn pass(&self, index: u64) {
        self.state.lock().index = index
    }

    fn copy(&self) -> Encode {
        let (_, state) = self.state();
        Box::new(move || Ok(state.chunks(CHUNK_BYTES).collect()))
    }

    fn load(&self, chunks: &Chunks, index: u64) -> Result<(), String> {
        let mut loader = SnapshotLoader::default();
        chunks.iter().try_for_each(|chunk| loader.add(chunk)).map_err(|error| error.to_string())?;
        let state = loader.finish().map_err(|error| error.to_string())?;
        let term = state.last.term();
        let mut at = self.state.lock();
        *at = At { state, index };
        if let Some((colony, hive)) = self.follower.get() {
            hive.restored(*colony, &at.state)
        }
        drop(at);
        self.term.send_replace(term);
        Ok(())
    }
}

impl Default for Decisions {
    fn default() -> Decisions {
        Decisions { state: Mutex::default(), index: watch::Sender::new(0), lost: Mutex::default() }
    }
}

impl Decisions {
    pub(crate) fn read<R>(&self, look: impl FnOnce(&RegistryState) -> R) -> R {
        look(&self.state.lock().state)
    }

    /// Returns the index of the last decision, and its changes.
    pub(crate) fn indexes(&self) -> watch::Receiver<u64> {
        self.index.subscribe()
    }

    /// Returns the last incarnation of each hive that was declared dead, as far as this replica has seen it.
    pub(crate) fn lost(&self) -> BTreeMap<HiveId, Incarnation> {
        self.lost.lock().clone()
    }

    fn note_lost(&self, hive: HiveId, incarnation: Incarnation) {
        let mut lost = self.lost.lock();
        let known = lost.entry(hive).or_insert(incarnation);
        *known = incarnation.max(*known)
    }

    fn set(&self, index: u64) {
        self.index.send_replace(index);
    }
}

impl Fold for Decisions {
    fn begin_term(&self, _: u64, index: u64) -> Result<(), String> {
        self.pass(index);
        Ok(())
    }

    fn apply(&self, command: &Command, index: u64) -> Result<Reply, String> {
        let proposals: Vec<Proposal> =
            decode_many("proposals", &command.0).map_err(|error| error.to_string())?;
        let mut at = self.state.lock();
        at.index = index;
        let decide = |proposal| {
            let decision = at.state.apply(proposal);
            if let Proposal::HiveDead { hive, incarnation } = proposal
                && at
                    .state
                    .hive(*hive)
                    .is_some_and(|entry| entry.is_dead() && entry.incarnation == *incarnation)
            {
                self.note_lost(*hive, *incarnation)
            }
            decision
        };
        let decisions = proposals.iter().map(decide).collect();
        let newest = at.state.index();
        drop(at);
        self.set(newest);
        Ok(Reply::Decided(decisions))
    }

    fn pass(&self, index: u64) {
        self.state.lock().index = index
    }

    fn copy(&self) -> Encode {
        let state = self.state.lock().state.clone();
        Box::new(move || {
            let bytes = try_encode(&state, ENCODED_BYTES_MAX)?;
            Ok(bytes.chunks(CHUNK_BYTES).map(<[u8]>::to_vec).collect())
        })
    }

    fn load(&self, chunks: &Chunks, index: u64) -> Result<(), String> {
        let state: RegistryState =
            decode("the registry", &chunks.concat()).map_err(|error| error.to_string())?;
        let newest = state.index();
        for (hive, entry) in state.hives().filter(|(_, entry)| entry.is_dead()) {
            self.note_lost(hive, entry.incarnation)
        }
        *self.state.lock() = At { state, index };
        self.set(newest);
        Ok(())
    }
}
