//! Mutants of the state machine of a log: replays that break one of its rules.

use beehive_core::journal::{Entry, LogState, MessageId, Record};

/// A rule of [`LogState::apply`], broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogMutant {
    /// An entry takes effect whatever it was executed on.
    PredecessorIgnored,
    /// An entry with records other than those of bees takes effect whatever it was executed on.
    OnlyWorkNumbered,
    /// The dedup table of a bee that merges is lost.
    DedupNotMerged,
    /// A record that consumes a message of a frozen bee of this log takes it out of that bee's outbox.
    LocalTakesFrozen,
    /// A bee is not forgotten when it is dropped.
    DropKeeps,
}

/// Replays a log with a mutant.
pub(crate) fn replay_as(log: &[Vec<u8>], mutant: Option<LogMutant>) -> LogState {
    let mut state = LogState::default();
    for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
        match mutant {
            None => {
                state.apply(&entry);
            }
            Some(mutant) => apply_as(&mut state, &entry, mutant),
        }
    }
    state
}

fn apply_as(state: &mut LogState, entry: &Entry, mutant: LogMutant) {
    match (mutant, &entry.record) {
        (LogMutant::PredecessorIgnored, _) => {
            state.last = entry.after;
            state.apply(entry);
        }
        (LogMutant::OnlyWorkNumbered, Record::Turn(_)) => {
            state.apply(entry);
        }
        (LogMutant::OnlyWorkNumbered, record) => {
            if !state.apply(entry) {
                state.carry_out(record)
            }
        }
        (LogMutant::DedupNotMerged, Record::Fuse { app, into, .. }) => {
            let before = state.bees.get(&(*app, *into)).map(|bee| bee.seen.clone());
            if state.apply(entry)
                && let Some(bee) = state.bees.get_mut(&(*app, *into))
            {
                bee.seen = before.unwrap_or_default()
            }
        }
        (LogMutant::LocalTakesFrozen, Record::Turn(works)) => {
            if state.apply(entry) {
                for work in works {
                    for input in work.inputs.iter().filter(|input| state.frozen.contains(&input.lane)) {
                        for (seq, part) in input.messages() {
                            let id = MessageId { lane: input.lane, seq, part, app: work.app };
                            state.outbox.remove(&id);
                        }
                    }
                }
            }
        }
        (LogMutant::DropKeeps, Record::Drop { .. }) => state.last = entry.number,
        _ => {
            state.apply(entry);
        }
    }
}
