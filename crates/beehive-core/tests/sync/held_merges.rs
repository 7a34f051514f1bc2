//! A merge whose source waits for a handler: the two bees go on handling messages.

use crate::merge_storm::on_workers;
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Message)]
#[message(reply = u64)]
struct Add(Vec<u64>);
/// Sets a timer for a [`Wait`].
#[derive(Message)]
struct Arm(u64);
/// Goes to a handler without state, which waits until the test lets it end.
#[derive(Message)]
struct Wait(u64);
#[derive(Message)]
struct Waited(u64);

static IS_WAITING: AtomicBool = AtomicBool::new(false);
static MAY_END: AtomicBool = AtomicBool::new(false);

const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until a flag is set.
fn wait_for(flag: &AtomicBool) {
    let began = Instant::now();
    while !flag.load(Ordering::Acquire) && began.elapsed() < 2 * PATIENCE {
        std::thread::sleep(Duration::from_millis(1))
    }
}

fn wait_in_handler() {
    IS_WAITING.store(true, Ordering::Release);
    wait_for(&MAY_END)
}

#[derive(App)]
struct Counter {
    counts: Dict<u64, u64>,
}
#[handlers]
impl Counter {
    #[rcv(joins)]
    fn add(&mut self, msg: &Add) -> u64 {
        let mut total = 0;
        for key in &msg.0 {
            let count = self.counts.entry(*key).or_default();
            *count += 1;
            total += *count;
        }
        total
    }
    #[rcv(sharded)]
    fn arm(&mut self, msg: &Arm, ctx: &mut Ctx) {
        *self.counts.entry(msg.0).or_default() += 1;
        ctx.after(Duration::from_millis(1), Wait(msg.0))
    }
    #[rcv(stateless)]
    fn wait(&self, msg: &Wait, ctx: &mut Ctx) {
        wait_in_handler();
        ctx.emit(Waited(msg.0))
    }
    #[rcv(sharded)]
    fn waited(&mut self, msg: &Waited) {
        *self.counts.entry(msg.0).or_default() += 1;
    }
}

/// A timer of a bee has sent a message to a handler that does not end. The bee is to merge into another one.
#[test]
fn a_merge_of_a_bee_whose_timer_waits_for_a_handler_does_not_freeze_it() {
    on_workers(4, async {
        let hive = Hive::builder().app::<Counter>().seed(7).start().unwrap();
        for key in [1, 2] {
            assert_eq!(hive.request(Add(vec![key])).await, Ok(1));
        }
        hive.emit(Arm(2)).await;
        tokio::task::spawn_blocking(|| wait_for(&IS_WAITING)).await.unwrap();
        // another sender than that of the requests, which would wait behind this message
        let mut io = hive.io();
        io.emit(Add(vec![1, 2]));
        let merging = tokio::spawn(async move {
            io.flush().await;
            let mail = io.receive().await;
            mail.into_answers::<Add>().ok().unwrap().into_iter().next().expect("an answer")
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        for count in 2..5 {
            assert_eq!(
                hive.request_within(PATIENCE, Add(vec![1])).await,
                Ok(count),
                "the target is not held"
            );
        }
        assert_eq!(hive.request_within(PATIENCE, Add(vec![2])).await, Ok(3), "the source is not held");
        assert!(!merging.is_finished());

        MAY_END.store(true, Ordering::Release);
        let merged = merging.await.unwrap().unwrap();
        assert!((9..=10).contains(&merged), "{merged}: the end of the handler counts before or after");
        hive.stop(PATIENCE).await;
    })
}
