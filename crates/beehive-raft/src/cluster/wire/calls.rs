//! The calls of one lane that wait for their answers.

use crate::cluster::transport::Unanswered;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

pub(super) type Answer = Result<Vec<u8>, Unanswered>;

/// The calls of one lane that wait for their answers.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last: u64,
    open: BTreeMap<u64, oneshot::Sender<Answer>>,
    /// Why the connection has ended, and with it all calls.
    ended: Option<Unanswered>,
}

impl Calls {
    /// Begins a call. Returns its id and its answer.
    ///
    /// # Errors
    ///
    /// Returns the reason if the connection has ended.
    pub(super) fn begin(&self) -> Result<(u64, oneshot::Receiver<Answer>), Unanswered> {
        let mut calls = self.0.lock();
        if let Some(ended) = &calls.ended {
            return Err(ended.clone());
        }
        calls.last += 1;
        let (id, (sender, receiver)) = (calls.last, oneshot::channel());
        calls.open.insert(id, sender);
        Ok((id, receiver))
    }

    /// Ends a call with its answer. A call that nobody waits for is ignored.
    pub(super) fn answer(&self, id: u64, answer: Answer) {
        let caller = self.0.lock().open.remove(&id);
        if let Some(caller) = caller {
            // the caller may have given up in this moment
            let _ = caller.send(answer);
        }
    }

    /// Forgets a call whose caller has given up.
    pub(super) fn forget(&self, id: u64) {
        self.0.lock().open.remove(&id);
    }

    /// Ends all calls, and each that begins later.
    pub(super) fn end(&self, why: &str) {
        let ended = Unanswered { why: why.to_string() };
        let mut calls = self.0.lock();
        calls.ended.get_or_insert_with(|| ended.clone());
        let open = std::mem::take(&mut calls.open);
        drop(calls);
        for caller in open.into_values() {
            let _ = caller.send(Err(ended.clone()));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().open.len()
    }
}
