//! Messages that this hive has sent to bees of other hives, until these have handled them.

use crate::cell::{CellId, HiveId};
use crate::hash::HashMap;
use crate::hive::links::frame::Report;
use beehive_protocol::{Acked, AppId, ColonyId, LaneId, MessageId};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The fate of messages that were sent to another hive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// They are under way.
    UnderWay,
    /// The other hive has committed the records that consumed them.
    Handled,
    /// They come back, and must be routed again when the replica of the registry has reached this index.
    Back(u64),
    /// They must be routed again now.
    Route,
}

/// The fate of messages, shared with the sender's queue, in which they wait.
pub(crate) struct Sent {
    fate: Mutex<Fate>,
    /// Wakes the sender's queue.
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Sent {
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Arc<Sent> {
        Arc::new(Sent { fate: Mutex::new(Fate::UnderWay), wake: Box::new(wake) })
    }

    pub(crate) fn fate(&self) -> Fate {
        *self.fate.lock()
    }

    pub(crate) fn decide(&self, fate: Fate) {
        *self.fate.lock() = fate;
        (self.wake)()
    }
}

/// The receiver of the reports about messages that were sent to another hive.
pub(crate) trait Requester: Send + Sync {
    /// Takes the report about the message at position `at`.
    fn report(&self, at: u32, report: Report);
}

/// Messages that were sent together.
pub(crate) struct Entry {
    /// The hive to which they were sent.
    pub(crate) to: HiveId,
    /// The colony of the bee to which they were sent.
    pub(crate) colony: ColonyId,
    /// A cell of that bee.
    pub(crate) cell: Option<CellId>,
    /// The ones that are not handled yet.
    pub(crate) ids: BTreeSet<MessageId>,
    /// Their fate.
    pub(crate) sent: Arc<Sent>,
    /// The requester that waits for reports, if there is one.
    pub(crate) requester: Option<Arc<dyn Requester>>,
}

/// All messages that are under way to other hives, by ticket.
#[derive(Default)]
pub(super) struct SentMessages {
    newest: u64,
    entries: BTreeMap<u64, Entry>,
    /// The ticket of each message that is not handled yet.
    tickets: HashMap<MessageId, u64>,
    /// The requesters that are waiting for reports, and the hives that will send them. A report may come after the
    /// acknowledgment, for example from the next app of the answer chain.
    requesters: BTreeMap<u64, (HiveId, Arc<dyn Requester>)>,
}

impl SentMessages {
    /// Adds messages. Returns their ticket.
    pub(super) fn add(&mut self, mut entry: Entry) -> u64 {
        self.newest += 1;
        let ticket = self.newest;
        self.tickets.extend(entry.ids.iter().map(|id| (*id, ticket)));
        if let Some(requester) = entry.requester.take() {
            self.requesters.insert(ticket, (entry.to, requester));
        }
        self.entries.insert(ticket, entry);
        ticket
    }

    /// Adds a requester without messages, which waits for [`Body::Closed`](super::frame::Body::Closed) alone. Returns the ticket.
    pub(super) fn wait(&mut self, to: HiveId, requester: Arc<dyn Requester>) -> u64 {
        self.newest += 1;
        self.requesters.insert(self.newest, (to, requester));
        self.newest
    }

    fn remove(&mut self, ticket: u64) -> Option<Entry> {
        let entry = self.entries.remove(&ticket)?;
        for id in &entry.ids {
            if self.tickets.get(id) == Some(&ticket) {
                self.tickets.remove(id);
            }
        }
        Some(entry)
    }

    /// Notes that messages are handled. Returns what the caller must decide, without the lock.
    pub(super) fn acked(&mut self, acked: &Acked) -> Vec<Arc<Sent>> {
        let ids: Vec<MessageId> = match acked.count as usize <= self.tickets.len() {
            true => acked.messages().collect(),
            // nothing bounds the length of a run in a packet
            false => self.tickets.keys().filter(|id| acked.contains(id)).copied().collect(),
        };
        let mut handled = Vec::new();
        for id in ids {
            let Some(ticket) = self.tickets.remove(&id) else { continue };
            let Some(entry) = self.entries.get_mut(&ticket) else { continue };
            entry.ids.remove(&id);
            if entry.ids.is_empty() {
                handled.extend(self.entries.remove(&ticket).map(|entry| entry.sent))
            }
        }
        handled
    }

    /// Notes that messages come back.
    pub(super) fn refused(&mut self, ticket: u64) -> Option<Arc<Sent>> {
        self.remove(ticket).map(|entry| entry.sent)
    }

    /// Notes that the session with a hive has ended. Returns the messages that come back, and the requesters that get no
    /// further report, which the caller must drop without the lock.
    pub(super) fn lost(&mut self, hive: HiveId) -> (Vec<Arc<Sent>>, Vec<Arc<dyn Requester>>) {
        let of_hive = self.entries.iter().filter(|(_, entry)| entry.to == hive);
        let tickets: Vec<u64> = of_hive.map(|(ticket, _)| *ticket).collect();
        let back = tickets.into_iter().filter_map(|ticket| Some(self.remove(ticket)?.sent)).collect();
        let gone = self.requesters.extract_if(.., |_, (to, _)| *to == hive);
        (back, gone.map(|(_, (_, requester))| requester).collect())
    }

    /// Notes who leads the colonies now. Returns the messages that were sent to another hive, which come back. A requester
    /// still gets the reports of the hive that had them, if that hive lives.
    pub(super) fn led_by(&mut self, leader: impl Fn(ColonyId) -> Option<HiveId>) -> Vec<Arc<Sent>> {
        let is_late = |entry: &Entry| leader(entry.colony).is_some_and(|hive| hive != entry.to);
        let late = self.entries.iter().filter(|(_, entry)| is_late(entry));
        let tickets: Vec<u64> = late.map(|(ticket, _)| *ticket).collect();
        tickets.into_iter().filter_map(|ticket| Some(self.remove(ticket)?.sent)).collect()
    }

    /// Returns the messages that are under way to hives: the ticket, the hive, and a cell of the bee to which they were sent.
    pub(super) fn under_way_to(&self, hives: &BTreeSet<HiveId>) -> Vec<(u64, HiveId, (AppId, CellId))> {
        let cell = |entry: &Entry| Some((entry.ids.first()?.app, entry.cell?));
        let to_hives = self.entries.iter().filter(|(_, entry)| hives.contains(&entry.to));
        to_hives.filter_map(|(ticket, entry)| Some((*ticket, entry.to, cell(entry)?))).collect()
    }

    /// Takes back messages that are not sent after all. The caller must drop the requester without the lock.
    pub(super) fn take_back(&mut self, ticket: u64) -> (Option<Arc<Sent>>, Option<Arc<dyn Requester>>) {
        (self.remove(ticket).map(|entry| entry.sent), self.closed(ticket))
    }

    /// A hive is dead. Returns the requesters that get no further report from it, which the caller must drop without the
    /// lock. The messages stay under way until another hive has their bee.
    pub(super) fn dead(&mut self, hive: HiveId) -> Vec<Arc<dyn Requester>> {
        let gone = self.requesters.extract_if(.., |_, (to, _)| *to == hive);
        gone.map(|(_, (_, requester))| requester).collect()
    }

    /// Forgets the messages of a sender that has moved to another hive. That hive sends them again. Requesters still get
    /// their reports.
    pub(super) fn forget(&mut self, lane: LaneId) -> Vec<Entry> {
        let of_lane = self.tickets.iter().filter(|(id, _)| id.lane == lane).map(|(_, ticket)| *ticket);
        let tickets: BTreeSet<u64> = of_lane.collect();
        tickets.into_iter().filter_map(|ticket| self.remove(ticket)).collect()
    }

    /// Forgets the messages of many senders, like [`SentMessages::forget`].
    pub(super) fn forget_all(&mut self, lanes: &BTreeSet<LaneId>) -> Vec<Entry> {
        let of_lanes = self.tickets.iter().filter(|(id, _)| lanes.contains(&id.lane));
        let tickets: BTreeSet<u64> = of_lanes.map(|(_, ticket)| *ticket).collect();
        tickets.into_iter().filter_map(|ticket| self.remove(ticket)).collect()
    }

    pub(super) fn requester(&self, ticket: u64) -> Option<Arc<dyn Requester>> {
        self.requesters.get(&ticket).map(|(_, requester)| requester.clone())
    }

    pub(super) fn closed(&mut self, ticket: u64) -> Option<Arc<dyn Requester>> {
        self.requesters.remove(&ticket).map(|(_, requester)| requester)
    }

    #[cfg(feature = "testing")]
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.requesters.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.requesters.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_protocol::{BeeId, Part, Seq};

    /// A packet of a few bytes acknowledges four thousand million messages.
    #[test]
    fn an_acknowledgment_of_more_messages_than_there_are() {
        let lane = LaneId::of_bee(AppId(1), BeeId(2));
        let id = |app, seq| MessageId { lane, seq: Seq(seq), part: Part::WHOLE, app: AppId(app) };
        let mut all = SentMessages::default();
        for ids in [vec![id(3, 0), id(3, 1)], vec![id(3, 7), id(4, 7)]] {
            let sent = Sent::new(|| {});
            let ids = ids.into_iter().collect();
            all.add(Entry { to: HiveId(1), colony: ColonyId(1), cell: None, ids, sent, requester: None });
        }
        let acked = Acked { app: AppId(3), lane, seq: Seq(1), count: u32::MAX, part: Part::WHOLE };
        assert_eq!(all.acked(&acked).len(), 0, "one message of each is left");
        assert_eq!(all.acked(&Acked { seq: Seq(0), count: 1, ..acked }).len(), 1);
        assert_eq!(all.acked(&Acked { app: AppId(4), ..acked }).len(), 1);
        assert!(all.is_empty());
    }
}
