//! Placement of handlers: a handler runs on the worker of the task that sends the request or that commits the
//! log entry with the message, unless the handler has recently blocked a thread.

use crate::load::{On, alone, on_workers, start};
use beehive_core::journal::{Entry, EntryNumber, Journal, JournalEvents, LogState};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

#[derive(Message)]
#[message(reply = u64)]
struct Find {
    place: u64,
    milliseconds: u64,
}

#[derive(App)]
struct Places {
    asked: Dict<u64, u64>,
}
#[handlers]
impl Places {
    #[rcv(sharded)]
    fn find(&mut self, msg: &Find) -> u64 {
        *self.asked.entry(msg.place).or_default() += 1;
        if msg.milliseconds > 0 {
            std::thread::sleep(Duration::from_millis(msg.milliseconds))
        }
        this_thread()
    }
}

fn this_thread() -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(std::thread::current().id())
}

const QUESTIONS: usize = 200;
/// Time for which a hive takes a handler that has held a thread for one that blocks.
const LATELY: Duration = Duration::from_secs(1);

/// Returns how many requests are answered on the thread that sends them.
async fn answered_here(hive: &Hive) -> usize {
    let mut here = 0;
    for place in 0..QUESTIONS as u64 {
        let asking = this_thread();
        here += usize::from(hive.request(Find { place, milliseconds: 0 }).await == Ok(asking))
    }
    here
}

#[test]
fn requests_run_on_the_worker_of_the_caller_unless_the_handler_has_recently_blocked() {
    let _alone = alone();
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Places>(), On::Memory);
        // This code is not in a task, so no handler runs on its thread.
        assert_eq!(answered_here(&hive).await, 0);

        let asking = hive.clone();
        let asked = tokio::spawn(async move {
            let quick = answered_here(&asking).await;
            let held = asking.request(Find { place: 0, milliseconds: 100 }).await;
            (quick, held.is_ok(), answered_here(&asking).await)
        });

        let (quick, held, lately) = asked.await.unwrap();
        // The other worker may take some of the requests.
        assert!(quick > QUESTIONS / 4, "{quick} of {QUESTIONS}");
        assert!(held);
        assert_eq!(lately, 0, "on the worker of who waits, though it has held a thread");
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// A journal that commits in a task of the hive's runtime.
#[derive(Default)]
struct InATask {
    last: AtomicU64,
    appended: Notify,
    events: OnceLock<Arc<dyn JournalEvents>>,
}

impl Journal for InATask {
    fn append(&self, entry: Arc<Entry>) {
        self.last.store(entry.number.0, Ordering::Relaxed);
        self.appended.notify_one()
    }
    fn attach(&self, events: Arc<dyn JournalEvents>) {
        let _ = self.events.set(events);
    }
}

#[derive(Message)]
struct Forward {
    place: u64,
    milliseconds: u64,
}
/// A forwarded message. Its handler sleeps.
#[derive(Message)]
struct Forwarded {
    place: u64,
    milliseconds: u64,
}

#[derive(App)]
struct Forwards {
    forwarded: Dict<u64, u64>,
}
#[handlers]
impl Forwards {
    #[rcv(sharded)]
    fn forward(&mut self, msg: &Forward, ctx: &mut Ctx) {
        *self.forwarded.entry(msg.place).or_default() += 1;
        ctx.emit(Forwarded { place: msg.place, milliseconds: msg.milliseconds })
    }
}

/// The threads that have handled forwarded messages.
static THREADS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

#[derive(App)]
struct Receives {
    received: Dict<u64, u64>,
}
#[handlers]
impl Receives {
    #[rcv(sharded)]
    fn forwarded(&mut self, msg: &Forwarded) {
        *self.received.entry(msg.place).or_default() += 1;
        THREADS.lock().unwrap().push(this_thread());
        if msg.milliseconds > 0 {
            std::thread::sleep(Duration::from_millis(msg.milliseconds))
        }
    }
}

/// Returns the threads of both workers of this runtime.
async fn two_workers() -> BTreeSet<u64> {
    let both = Arc::new(Barrier::new(2));
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let both = both.clone();
            tokio::spawn(async move {
                both.wait();
                this_thread()
            })
        })
        .collect();
    let mut threads = BTreeSet::new();
    for task in tasks {
        threads.insert(task.await.unwrap());
    }
    threads
}

/// Sends messages, one after the other. Returns how many of the forwarded ones are handled on a worker.
async fn forwarded_on_workers(hive: &Hive, workers: &BTreeSet<u64>, within: Duration) -> usize {
    THREADS.lock().unwrap().clear();
    let (began, mut asked) = (Instant::now(), 0);
    while asked < QUESTIONS && began.elapsed() < within {
        hive.emit(Forward { place: 0, milliseconds: 0 }).await;
        hive.idle().await;
        asked += 1
    }
    let threads = THREADS.lock().unwrap();
    assert_eq!(threads.len(), asked);
    threads.iter().filter(|thread| workers.contains(thread)).count()
}

/// The message itself is handled on a runner, because `Hive::emit` runs no bee on its thread. The effects leave when the
/// journal has committed the entry, and with them the forwarded message.
#[test]
fn a_few_bees_run_on_the_worker_of_the_journal_unless_their_handler_has_recently_blocked() {
    let _alone = alone();
    on_workers(2, async {
        let journal = Arc::new(InATask::default());
        let committing = journal.clone();
        tokio::spawn(async move {
            loop {
                committing.appended.notified().await;
                if let Some(events) = committing.events.get() {
                    events.released(EntryNumber(committing.last.load(Ordering::Relaxed)))
                }
            }
        });

        let workers = two_workers().await;
        let hive = Hive::builder().app::<Forwards>().app::<Receives>();
        let hive = hive.journal(journal, LogState::default()).start().unwrap();

        let quick = forwarded_on_workers(&hive, &workers, Duration::MAX).await;
        assert!(quick > QUESTIONS / 2, "{quick} of {QUESTIONS}");

        hive.emit(Forward { place: 0, milliseconds: 100 }).await;
        hive.idle().await;
        let blocked = forwarded_on_workers(&hive, &workers, LATELY / 2).await;
        assert_eq!(blocked, 0, "though the handler has held a thread");
        hive.stop(Duration::from_secs(5)).await;
    })
}
