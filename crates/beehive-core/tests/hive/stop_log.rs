//! A hive is stopped while it handles a batch. Its log must not record a message as consumed if no handler
//! has seen the message.

use crate::load::on_workers;
use beehive_core::journal::LogState;
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Io, Message, handlers};
use std::time::{Duration, Instant};

const LANE: u64 = 5;
const MESSAGES: u64 = 60;

/// Takes some milliseconds in its handler.
#[derive(Message)]
struct Slow {
    number: u64,
    milliseconds: u64,
}
/// A message without a cell, which is passed on as `Slow`.
#[derive(Message)]
struct Pass {
    number: u64,
    milliseconds: u64,
}
/// A message that is passed on as `Pass` a millisecond later. All such messages are passed on at the same
/// time.
#[derive(Message)]
struct Plan {
    numbers: Vec<u64>,
    milliseconds: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Handled;

#[derive(App)]
struct Numbers {
    handled: Dict<(), Vec<u64>>,
    planned: Dict<(), u64>,
}
#[handlers]
impl Numbers {
    #[rcv(centralized)]
    fn slow(&mut self, msg: &Slow) {
        self.handled.entry(()).or_default().push(msg.number);
        std::thread::sleep(Duration::from_millis(msg.milliseconds))
    }
    #[rcv(stateless)]
    fn pass(&mut self, msg: &Pass, ctx: &mut Ctx) {
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        ctx.emit(Slow { number: msg.number, milliseconds: 0 })
    }
    #[rcv(centralized)]
    fn plan(&mut self, msg: &Plan, ctx: &mut Ctx) {
        self.planned.put((), msg.numbers.len() as u64);
        for number in &msg.numbers {
            let pass = Pass { number: *number, milliseconds: msg.milliseconds };
            ctx.after(Duration::from_millis(1), pass)
        }
    }
    #[rcv(centralized)]
    fn handled(&mut self, _: &Handled) -> Vec<u64> {
        self.handled.get(&()).cloned().unwrap_or_default()
    }
}

/// Runs two incarnations that get the same messages. The first one is stopped after `after` milliseconds and
/// gets no time to finish. Returns the numbers of the messages that were handled in the end, and how many of
/// them the first incarnation handled.
fn handled_after_a_stop(after: u64, send: fn(&mut Io, u64, u64)) -> (Vec<u64>, usize) {
    let mut log: Vec<Vec<u8>> = Vec::new();
    let mut first = 0;

    for life in 0..2 {
        let state = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        let journal = TestJournal::start(life, 0, state.last);
        let milliseconds = if life == 0 { 2 } else { 0 };

        let (entries, handled) = on_workers(2, async {
            let builder = Hive::builder().app::<Numbers>().seed(42).journal(journal.clone(), state);
            let hive = builder.start().unwrap();
            if life == 1 {
                first = hive.request(Handled).await.unwrap().len()
            }

            let mut io = hive.io();
            io.resume(LANE, 0);
            (0..MESSAGES).for_each(|number| send(&mut io, number, milliseconds));
            io.flush().await;

            if life == 0 {
                tokio::time::sleep(Duration::from_millis(after)).await;
                hive.stop(Duration::ZERO).await;
                // by then, the running handler has ended and its record is written
                tokio::time::sleep(Duration::from_millis(30)).await;
                (journal.log(), Vec::new())
            } else {
                // a timer that has been set is nothing that the hive is busy with
                let began = Instant::now();
                let mut handled = Vec::new();
                while handled.len() < MESSAGES as usize && began.elapsed() < Duration::from_secs(20) {
                    hive.idle().await;
                    handled = hive.request(Handled).await.unwrap()
                }
                handled.sort_unstable();
                hive.stop(Duration::from_secs(5)).await;
                (journal.log(), handled)
            }
        });

        log.extend(entries);
        if life == 1 {
            return (handled, first);
        }
    }
    unreachable!("the second incarnation returns")
}

fn all_are_handled_once(send: fn(&mut Io, u64, u64)) {
    let want: Vec<u64> = (0..MESSAGES).collect();
    for after in [3, 10, 25, 60] {
        let (handled, first) = handled_after_a_stop(after, send);
        assert_eq!(handled, want, "stopped after {after} ms, with {first} messages in the log");
    }
}

#[test]
fn a_bee_that_is_stopped_in_a_run_consumes_only_what_it_handled() {
    all_are_handled_once(|io, number, milliseconds| io.emit(Slow { number, milliseconds }))
}

#[test]
fn a_stateless_handler_that_is_stopped_consumes_only_what_it_handled() {
    all_are_handled_once(|io, number, milliseconds| io.emit(Pass { number, milliseconds }))
}

#[test]
fn a_stateless_handler_of_a_timer_that_is_stopped_consumes_only_what_it_handled() {
    all_are_handled_once(|io, number, milliseconds| {
        if number == 0 {
            io.emit(Plan { numbers: (0..MESSAGES).collect(), milliseconds })
        }
    })
}
