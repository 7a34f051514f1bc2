//! Accounts for each message in the logs: each one that a record emits is handled or still in an outbox, none is handled
//! twice, and none is handled that no record emits. This holds wherever the logs end.

use crate::findings::{Checker, Finding};
use crate::log_checks::Log;
use beehive_core::journal::{
    AppId, Emits, Entry, HandlerId, Input, LaneId, LogState, MessageId, Part, Record, Seq,
};
use std::collections::{BTreeMap, BTreeSet};

/// The messages in the logs of one hive. The logs are read once, although they grow.
#[derive(Default)]
pub(crate) struct Accounts {
    logs: Vec<Read>,
    emitted: BTreeSet<MessageId>,
    sweeps: BTreeSet<MessageId>,
    /// How often a message was handled. Several handlers of an app may consume a message without a bee.
    handled: BTreeMap<(MessageId, Option<HandlerId>), u64>,
    from_outside: BTreeSet<(LaneId, Seq, Part, AppId)>,
}

/// A log as far as it was read.
#[derive(Default)]
struct Read {
    entries: usize,
    state: LogState,
}

impl Accounts {
    /// Reads what has been appended to the logs since the last call.
    pub(crate) fn read(&mut self, logs: &[Log]) {
        self.logs.resize_with(logs.len(), Read::default);
        for (at, log) in logs.iter().enumerate() {
            let new = &log[self.logs[at].entries..];
            self.logs[at].entries = log.len();
            for entry in new.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
                if self.logs[at].state.apply(&entry) {
                    self.record(&entry.record)
                }
            }
        }
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::Turn(works) => works.iter().for_each(|work| {
                self.emits(&work.emits);
                self.handles(work.app, &work.inputs, None)
            }),
            Record::Consumed(all) => all.iter().for_each(|one| self.handles(one.app, &one.inputs, None)),
            Record::Admit { app, handler, input, emits } => {
                self.emits(emits);
                self.handles(*app, &[*input], Some(*handler))
            }
            _ => {}
        }
    }

    fn emits(&mut self, emits: &Emits) {
        for emit in emits.iter() {
            match emit.is_sweep {
                true => self.sweeps.insert(emit.id),
                false => self.emitted.insert(emit.id),
            };
        }
    }

    fn handles(&mut self, app: AppId, inputs: &[Input], by: Option<HandlerId>) {
        for input in inputs {
            let lane = input.lane;
            for (seq, part) in input.messages() {
                if lane.is_outside() {
                    self.from_outside.insert((lane, seq, part, app));
                } else {
                    *self.handled.entry((MessageId { lane, seq, part, app }, by)).or_default() += 1
                }
            }
        }
    }

    /// Returns the state of each log, as far as it was read.
    pub(crate) fn states(&self) -> impl Iterator<Item = &LogState> {
        self.logs.iter().map(|log| &log.state)
    }

    /// Returns the number of handled messages, those from outside and the visits of sweeps included.
    pub(crate) fn handled(&self) -> usize {
        self.handled.len() + self.from_outside.len()
    }

    pub(crate) fn check(&self) -> Result<(), Finding> {
        let wrong = |what: String| Err(Finding::new(Checker::Emits, what));
        if let Some(((id, _), times)) = self.handled.iter().find(|(_, times)| **times > 1) {
            return wrong(format!("{id:?} is handled {times} times"));
        }
        // the visits of a sweep are parts of its number
        let is_visit = |id: &MessageId| self.sweeps.contains(&MessageId { part: Part::WHOLE, ..*id });
        let known = |id: &MessageId| self.emitted.contains(id) || self.sweeps.contains(id) || is_visit(id);
        if let Some((id, _)) = self.handled.keys().find(|(id, _)| !known(id)) {
            return wrong(format!("{id:?} is handled, but no record emits it"));
        }
        let is_handled =
            |id: &MessageId| self.handled.range((*id, None)..).next().is_some_and(|((of, _), _)| of == id);
        let is_open = |id: &MessageId| {
            let is_staged = |state: &LogState| {
                state.staged.values().any(|staged| staged.outbox.iter().any(|emit| emit.id == *id))
            };
            self.states().any(|state| state.outbox.contains_key(id) || is_staged(state))
        };
        match self.emitted.iter().find(|id| !is_handled(id) && !is_open(id)) {
            Some(id) => wrong(format!("{id:?} is neither handled nor in an outbox")),
            None => Ok(()),
        }
    }
}
