//! Task queues: first in, first out; a task that is not done in time is put back.
//! `cargo run --example task_queue`
//!
//! Each queue is a cell. A timer is a message that an app sends to itself; if the task is done by then, the
//! message has no effect.
#![allow(missing_docs)]

use beehive::prelude::*;

/// Time limit for a task, after which another worker may take it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Adds a task. The answer is its number.
#[derive(Message)]
#[message(reply = u64)]
pub(crate) struct Enqueue {
    pub(crate) queue: String,
    pub(crate) text: String,
}

/// Takes the first task. The answer is its number and its text, or `None` if the queue is empty.
#[derive(Message)]
#[message(reply = Option<(u64, String)>)]
pub(crate) struct Take(pub(crate) String);

/// Reports a task as done. The answer says whether the task was still assigned to the worker.
#[derive(Message)]
#[message(reply = bool)]
pub(crate) struct Done {
    pub(crate) queue: String,
    pub(crate) task: u64,
}

#[derive(Message)]
struct TooLate {
    queue: String,
    task: u64,
    attempt: u32,
}

#[derive(App)]
pub(crate) struct TaskQueues {
    /// Waiting tasks by number, with the attempts so far.
    ready: Table<String, u64, (String, u32)>,
    /// Assigned tasks by number, with the attempts so far.
    taken: Table<String, u64, (String, u32)>,
    last: Dict<String, u64>,
}

#[handlers]
impl TaskQueues {
    #[rcv(sharded)]
    fn enqueue(&mut self, msg: &Enqueue) -> u64 {
        let last = self.last.entry(msg.queue.clone()).or_default();
        *last += 1;
        self.ready.at(msg.queue.clone()).insert(*last, (msg.text.clone(), 0));
        *last
    }

    // `Ok(None)` answers that the queue is empty. If the return type were `Option`, `None` would pass the
    // question on to the next app
    #[rcv(sharded)]
    fn take(&mut self, Take(queue): &Take, ctx: &mut Ctx) -> Result<Option<(u64, String)>> {
        let ready = self.ready.at(queue.clone());
        let Some((task, (text, attempts))) = ready.first().map(|(task, what)| (*task, what.clone())) else {
            return Ok(None);
        };
        ready.remove(&task);
        self.taken.at(queue.clone()).insert(task, (text.clone(), attempts + 1));
        ctx.after(PATIENCE, TooLate { queue: queue.clone(), task, attempt: attempts + 1 });
        Ok(Some((task, text)))
    }

    #[rcv(sharded)]
    fn done(&mut self, msg: &Done) -> bool {
        self.taken.at(msg.queue.clone()).remove(&msg.task).is_some()
    }

    #[rcv(sharded)]
    fn too_late(&mut self, msg: &TooLate) {
        let taken = self.taken.at(msg.queue.clone());
        if taken.get(&msg.task).is_some_and(|(_, attempt)| *attempt == msg.attempt)
            && let Some(what) = taken.remove(&msg.task)
        {
            self.ready.at(msg.queue.clone()).insert(msg.task, what);
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hive = Hive::builder().app::<TaskQueues>().start()?;
    let queue = || "mail".to_string();
    for text in ["to Ada", "to Grace"] {
        println!("task {}: {text}", hive.request(Enqueue { queue: queue(), text: text.into() }).await?);
    }

    println!("worker 1 takes {:?}", hive.request(Take(queue())).await?);
    println!("worker 2 takes {:?}", hive.request(Take(queue())).await?);
    println!("worker 3 takes {:?}", hive.request(Take(queue())).await?);
    println!("worker 2 is done: {}", hive.request(Done { queue: queue(), task: 2 }).await?);
    tokio::time::sleep(3 * PATIENCE).await;
    println!("worker 1 is done, too late: {}", hive.request(Done { queue: queue(), task: 1 }).await?);

    println!("worker 3 takes {:?}", hive.request(Take(queue())).await?);
    println!("worker 3 is done: {}", hive.request(Done { queue: queue(), task: 1 }).await?);
    hive.stop(Duration::from_secs(1)).await;
    Ok(())
}
