//! A hive that has stopped is dropped, together with its journals, whatever they have not decided.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Entry, Journal, JournalEvents, LogState, Record};
use beehive_core::{App, Dict, Hive, Message, handlers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::Duration;

/// A journal that commits all entries before the first one with a certain kind of record, and decides nothing from then
/// on.
struct StopsAt {
    entries: mpsc::Sender<Arc<Entry>>,
    events: Arc<OnceLock<Arc<dyn JournalEvents>>>,
    has_stopped: Arc<AtomicBool>,
}

impl StopsAt {
    fn new(is_last: fn(&Record) -> bool) -> Arc<Self> {
        let (entries, appended) = mpsc::channel::<Arc<Entry>>();
        let journal = StopsAt { entries, events: Arc::default(), has_stopped: Arc::default() };
        let (events, has_stopped) = (journal.events.clone(), journal.has_stopped.clone());
        // it ends when the journal is dropped
        std::thread::spawn(move || {
            for entry in appended {
                has_stopped.fetch_or(is_last(&entry.record), Ordering::Relaxed);
                if let Some(events) = events.get()
                    && !has_stopped.load(Ordering::Relaxed)
                {
                    events.released(entry.number)
                }
            }
        });
        Arc::new(journal)
    }
}

impl Journal for StopsAt {
    fn append(&self, entry: Arc<Entry>) {
        self.entries.send(entry).unwrap()
    }
    fn attach(&self, events: Arc<dyn JournalEvents>) {
        let _ = self.events.set(events);
    }
}

#[derive(Message)]
struct Put(u64);
/// Its cells belong to several bees, which merge.
#[derive(Message)]
struct Sum(u64, u64);

#[derive(App)]
struct Table {
    values: Dict<u64, u64>,
}
#[handlers]
impl Table {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) {
        *self.values.entry(msg.0).or_default() += 1
    }
    #[rcv(joins)]
    fn sum(&mut self, msg: &Sum) {
        let sum = self.values.get(&msg.0).copied().unwrap_or_default();
        *self.values.entry(msg.1).or_default() += sum
    }
}

fn is_dropped_with(logs: usize, is_last: fn(&Record) -> bool) {
    on_workers(2, async move {
        let journals: Vec<Arc<StopsAt>> = (0..logs).map(|_| StopsAt::new(is_last)).collect();
        let weak: Vec<Weak<StopsAt>> = journals.iter().map(Arc::downgrade).collect();
        let has_stopped: Vec<_> = journals.iter().map(|journal| journal.has_stopped.clone()).collect();
        let logs = journals.into_iter().map(|journal| (journal as Arc<dyn Journal>, LogState::default()));
        let hive = Hive::builder().app::<Table>().seed(3).journals(logs).start().unwrap();
        for key in 0..40 {
            hive.emit(Put(key)).await
        }
        for key in 0..10 {
            hive.emit(Sum(key, key + 1)).await
        }
        eventually("a journal decides nothing", Duration::from_secs(10), || {
            has_stopped.iter().any(|has_stopped| has_stopped.load(Ordering::Relaxed))
        })
        .await;
        tokio::time::sleep(Duration::from_millis(20)).await;

        hive.stop(Duration::ZERO).await;
        assert!(weak.iter().all(|journal| journal.strong_count() > 0), "the hive still has them");
        drop(hive);
        let is_gone = || weak.iter().all(|journal| journal.strong_count() == 0);
        eventually("the journals are dropped", Duration::from_secs(5), is_gone).await
    })
}

#[test]
fn a_stopped_hive_is_dropped_although_its_journal_is_silent() {
    is_dropped_with(1, |_| true);
    is_dropped_with(3, |_| true)
}

#[test]
fn a_stopped_hive_is_dropped_although_runs_are_not_committed() {
    is_dropped_with(1, |record| matches!(record, Record::Turn(_)))
}

#[test]
fn a_stopped_hive_is_dropped_although_merges_are_under_way() {
    is_dropped_with(1, |record| matches!(record, Record::Fuse { .. }));
    is_dropped_with(3, |record| matches!(record, Record::Fuse { .. }));
    is_dropped_with(3, |record| matches!(record, Record::Freeze { .. }));
    is_dropped_with(3, |record| matches!(record, Record::Stage { .. }));
    is_dropped_with(3, |record| matches!(record, Record::Adopt { .. }));
    is_dropped_with(3, |record| matches!(record, Record::Drop { .. }))
}
