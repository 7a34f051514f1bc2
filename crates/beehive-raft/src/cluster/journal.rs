//! The journal of a colony that this hive leads: it appends the hive's entries to the log of the colony's group.
//!
//! ```text
//!   hive: append ─► queue ─► propose: the gate, then openraft ─► report, in order ─► hive: released
//!                              ▲                                   │
//!                              └──── the gate closes and opens ◄───┴─ refused ─► hive: aborted, or deposed
//! ```
//!
//! An entry that openraft refuses is not in the log, and all entries that the hive has executed after it are dead. The gate lets
//! nothing pass until the leader is confirmed again; then the hive is told what the last entry is, and goes on with entries of
//! new numbers. An entry whose outcome is unknown ends the leadership: only the next leader can know.
//!
//! Before the hive answers what no entry records, it asks whether it still leads. Then a majority of the members has to confirm
//! that, each time: the lease says nothing about it, because members elect another leader when they suspect the old one.

use super::group::Group;
use super::node::Node;
use super::types::{Command, Reply, Types};
use crate::limits::RETRY;
use beehive_core::journal::{Entry, EntryNumber, Journal, JournalEvents};
use futures_util::FutureExt;
use openraft::Instant;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardReason, RaftError};
use openraft::impls::ProgressResponder;
use openraft::raft::{ClientWriteResult, ReadPolicy};
use openraft::type_config::alias::OneshotReceiverOf;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, mpsc};

/// The journal of a colony that this hive leads. Dropping it ends its tasks.
pub(crate) struct RaftJournal {
    entries: mpsc::UnboundedSender<Arc<Entry>>,
    /// The rounds of confirmations that the hive asks for.
    rounds: mpsc::UnboundedSender<u64>,
    office: Arc<Office>,
}

/// The leadership of a colony in one term.
pub(crate) struct Office {
    pub(crate) term: u64,
    node: Arc<Node>,
    events: OnceLock<Arc<dyn JournalEvents>>,
    /// Whether it is over. Locked while something is reported, so that no report overtakes another.
    is_over: Mutex<bool>,
    gate: Mutex<Gate>,
    /// Wakes who waits for [`Gate::under_way`].
    reported: Notify,
}

/// Decides which entries are proposed.
struct Gate {
    /// The newest entry that has passed. `None` while the gate is closed.
    last: Option<EntryNumber>,
    /// Number of times that the gate was opened again.
    openings: u64,
    /// Number of entries that have passed and are not reported yet.
    under_way: u64,
    /// Whether the group is being handed over: the gate opens no more.
    is_closing: bool,
}

/// An entry that was proposed.
struct Proposed {
    number: EntryNumber,
    /// [`Gate::openings`] when it passed.
    openings: u64,
    answer: OneshotReceiverOf<Types, ClientWriteResult<Types>>,
}

/// What became of an entry.
enum Outcome {
    /// It took effect.
    Committed,
    /// It is not in the log, or has no effect there.
    Refused,
    /// Nobody knows.
    Unknown,
}

impl RaftJournal {
    /// Creates the journal for a term that this member leads, and whose first entry is applied. `last` is the newest entry of
    /// the log.
    pub(crate) fn new(
        node: &Arc<Node>,
        group: &Arc<Group>,
        term: u64,
        last: EntryNumber,
    ) -> (Arc<RaftJournal>, Arc<Office>) {
        let (entries, queue) = mpsc::unbounded_channel();
        let (proposed, reports) = mpsc::unbounded_channel();
        let (rounds, asked) = mpsc::unbounded_channel();
        let office = Arc::new(Office {
            term,
            node: node.clone(),
            events: OnceLock::new(),
            is_over: Mutex::new(false),
            gate: Mutex::new(Gate { last: Some(last), openings: 0, under_way: 0, is_closing: false }),
            reported: Notify::new(),
        });
        group.is_led_by(&office);
        node.spawn(propose(office.clone(), group.clone(), queue, proposed));
        node.spawn(report(office.clone(), group.clone(), reports, last));
        node.spawn(confirm(office.clone(), group.clone(), asked));
        (Arc::new(RaftJournal { entries, rounds, office: office.clone() }), office)
    }
}

impl Journal for RaftJournal {
    fn append(&self, entry: Arc<Entry>) {
        // fails only if the leadership is over; the hive is told
        let _ = self.entries.send(entry);
    }

    fn may_lose_leadership(&self) -> bool {
        true
    }

    fn confirm(&self, round: u64) {
        // fails only if the leadership is over
        let _ = self.rounds.send(round);
    }

    fn attach(&self, events: Arc<dyn JournalEvents>) {
        let _ = self.office.events.set(events.clone());
        if *self.office.is_over.lock() {
            // the leadership has ended before the hive could be told, and it must not be told in this call
            self.office.node.platform.spawn(Box::pin(async move { events.deposed() }))
        }
    }
}

impl Office {
    /// The leadership is over. Tells the hive, once.
    pub(crate) fn depose(&self) {
        let mut is_over = self.is_over.lock();
        if !std::mem::replace(&mut *is_over, true)
            && let Some(events) = self.events.get()
        {
            events.deposed()
        }
    }

    fn is_over(&self) -> bool {
        *self.is_over.lock()
    }

    fn tell(&self, report: impl FnOnce(&dyn JournalEvents)) {
        let is_over = self.is_over.lock();
        if let Some(events) = self.events.get().filter(|_| !*is_over) {
            report(&**events)
        }
    }

    /// Lets an entry pass if it was executed on the newest one that has passed. Returns [`Gate::openings`].
    fn passes(&self, entry: &Entry) -> Option<u64> {
        let mut gate = self.gate.lock();
        let passes = gate.last == Some(entry.after);
        if passes {
            gate.last = Some(entry.number);
            gate.under_way += 1
        }
        passes.then_some(gate.openings)
    }

    /// The group is handed over. Lets no more entries pass, and waits until the hive knows what became of those that have:
    /// it withholds the answers to requests until then, and drops them when it is deposed. What it executes from now on is dead.
    /// Cancel-safe.
    pub(crate) async fn finish(&self) {
        {
            let mut gate = self.gate.lock();
            (gate.last, gate.is_closing) = (None, true)
        }
        loop {
            let reported = self.reported.notified();
            if self.gate.lock().under_way == 0 || self.is_over() {
                return;
            }
            reported.await
        }
    }

    /// The hive knows what became of some entries.
    fn reported(&self, count: u64) {
        let mut gate = self.gate.lock();
        gate.under_way -= count;
        if gate.is_closing {
            self.reported.notify_waiters()
        }
    }
}

/// Proposes entries in order.
async fn propose(
    office: Arc<Office>,
    group: Arc<Group>,
    mut queue: mpsc::UnboundedReceiver<Arc<Entry>>,
    proposed: mpsc::UnboundedSender<Proposed>,
) {
    while let Some(entry) = queue.recv().await {
        let Some(openings) = office.passes(&entry) else { continue };
        let (number, command) = (entry.number, Command(entry.encode().into()));
        drop(entry);
        let (responder, answer) = ProgressResponder::complete_only();
        // in a later term, the entry would be dead
        let write = group.raft.write(command).with_leader(office.term).responder(responder).await;
        if write.is_err() || proposed.send(Proposed { number, openings, answer }).is_err() {
            return office.depose();
        }
    }
}

/// Reports what became of the entries, in order.
async fn report(
    office: Arc<Office>,
    group: Arc<Group>,
    mut reports: mpsc::UnboundedReceiver<Proposed>,
    mut last: EntryNumber,
) {
    while let Some(Proposed { number, openings, answer }) = reports.recv().await {
        if openings < office.gate.lock().openings {
            // it was executed on an entry that was refused
            office.reported(1);
            continue;
        }
        let mut count = 1;
        let mut outcome = outcome(answer.await);
        let mut known = matches!(outcome, Outcome::Committed).then_some(number);
        // those that are decided, too
        while known.is_some()
            && let Ok(next) = reports.try_recv()
        {
            let Proposed { number, mut answer, .. } = next;
            count += 1;
            let decided = match (&mut answer).now_or_never() {
                Some(decided) => decided,
                None => {
                    office.tell(|events| events.released(known.unwrap_or(last)));
                    last = known.unwrap_or(last);
                    answer.await
                }
            };
            outcome = self::outcome(decided);
            match outcome {
                Outcome::Committed => known = Some(number),
                Outcome::Refused | Outcome::Unknown => break,
            }
        }
        if let Some(known) = known {
            last = known;
            office.tell(|events| events.released(known))
        }
        office.reported(count);
        match outcome {
            Outcome::Committed => {}
            Outcome::Unknown => return office.depose(),
            Outcome::Refused => {
                office.gate.lock().last = None;
                if !confirmed(&office, &group).await {
                    return office.depose();
                }
                {
                    let mut gate = office.gate.lock();
                    gate.last = Some(last).filter(|_| !gate.is_closing);
                    gate.openings += 1
                }
                tracing::warn!(
                    colony = group.id.0,
                    term = office.term,
                    "the leader was not confirmed in time and is again"
                );
                office.tell(|events| events.aborted(last))
            }
        }
        if office.is_over() {
            return;
        }
    }
}

/// Confirms that the hive leads, as often as it asks.
async fn confirm(office: Arc<Office>, group: Arc<Group>, mut rounds: mpsc::UnboundedReceiver<u64>) {
    while let Some(round) = rounds.recv().await {
        loop {
            let confirmed = group.raft.get_read_linearizer(ReadPolicy::ReadIndex).await;
            if office.is_over() || group.leadership().term != office.term {
                return;
            }
            match confirmed {
                Ok(read) if read.read_log_id().committed_leader_id().term == office.term => {
                    break office.tell(|events| events.confirmed(round));
                }
                // this member leads a later term, and has missed what was between the two
                Ok(_) | Err(RaftError::Fatal(_)) => return,
                // there is no majority, or the group is handed over
                Err(RaftError::APIError(_)) => office.node.platform.sleep(RETRY).await,
            }
        }
    }
}

fn outcome<E>(answer: Result<ClientWriteResult<Types>, E>) -> Outcome {
    match answer {
        Ok(Ok(written)) => match written.data {
            Reply::Applied(true) => Outcome::Committed,
            _ => Outcome::Refused,
        },
        // it was not appended
        Ok(Err(ClientWriteError::ForwardToLeader(to))) if to.reason == ForwardReason::LeaseExpired => {
            Outcome::Refused
        }
        Ok(Err(_)) | Err(_) => Outcome::Unknown,
    }
}

/// Waits until a majority confirms the leader. Returns whether this member still leads in its term.
async fn confirmed(office: &Office, group: &Group) -> bool {
    let half = office.node.options.lease / 2;
    loop {
        let leadership = group.leadership();
        if !leadership.is_here || leadership.term != office.term || office.is_over() {
            return false;
        }
        let age = group.raft.data_metrics().borrow_watched().last_quorum_acked.map(|at| at.elapsed());
        if age.is_some_and(|age| age < half) {
            return true;
        }
        if group.raft.trigger().heartbeat().await.is_err() {
            return false;
        }
        office.node.platform.sleep(RETRY).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::errors::ForwardToLeader;

    #[test]
    fn only_an_entry_that_is_not_in_the_log_is_refused() {
        let to = |reason| ForwardToLeader { leader_id: None, leader_node: None, reason };
        let of = |error| outcome::<()>(Ok(Err(error)));
        let expired = ClientWriteError::ForwardToLeader(to(ForwardReason::LeaseExpired));
        assert!(matches!(of(expired), Outcome::Refused));
        let elsewhere = ClientWriteError::ForwardToLeader(to(ForwardReason::NotLeader));
        assert!(matches!(of(elsewhere), Outcome::Unknown), "the term is over");
        let discarded = ClientWriteError::LogEntryDiscarded(to(ForwardReason::NotLeader));
        assert!(matches!(of(discarded), Outcome::Unknown), "another leader may commit it");
        assert!(matches!(outcome(Err(())), Outcome::Unknown), "the group has stopped");
    }
}
