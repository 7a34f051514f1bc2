//! Placement of handlers: a handler runs on the worker of the task that sends the request, unless the handler
//! has recently blocked a thread.

use crate::load::{On, alone, on_workers, start};
use beehive_core::{App, Dict, Hive, Message, handlers};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

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
