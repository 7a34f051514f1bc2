//! The inbox of an IO bee is bounded, holds credits until it is read, and blocks no sender.

use crate::load::{On, credits_are_back, eventually, on_workers, start};
use crate::memory::{alone, load_time, memory_is_flat};
use beehive_core::{Address, App, Busy, Ctx, Dict, Hive, Io, Mail, Message, handlers, limits};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(Message)]
#[message(reply = u64)]
struct Work {
    place: u64,
}
/// Makes a handler send `letters` messages to an address.
#[derive(Message)]
struct Write {
    place: u64,
    to: Address,
    letters: u64,
}
#[derive(Message)]
struct Letter {
    number: u64,
    bytes: Vec<u8>,
}
#[derive(App)]
struct Worker {
    done: Dict<u64, u64>,
}
#[handlers]
impl Worker {
    #[rcv(sharded)]
    fn work(&mut self, msg: &Work) -> u64 {
        let done = self.done.entry(msg.place).or_default();
        *done += 1;
        *done
    }
    #[rcv(sharded)]
    fn write(&mut self, msg: &Write, ctx: &mut Ctx) {
        let done = self.done.entry(msg.place).or_default();
        for _ in 0..msg.letters {
            ctx.send(msg.to, Letter { number: *done, bytes: vec![1; 200] });
            *done += 1;
        }
    }
}

/// Reads everything in the inbox. Returns the numbers of the letters, and the number of answers.
fn read_all(io: &mut Io) -> (Vec<u64>, usize) {
    let (mut letters, mut answers) = (Vec::new(), 0);
    while let Some(mail) = io.try_receive() {
        if let Some(some) = mail.messages::<Letter>() {
            assert!(some.iter().all(|letter| letter.bytes.len() == 200));
            letters.extend(some.iter().map(|letter| letter.number));
        } else {
            answers += mail.into_answers::<Work>().ok().unwrap().into_iter().count()
        }
    }

    (letters, answers)
}

/// Unread messages hold credits. An IO bee that waits for credits must not wait for its own unread mail.
#[test]
fn an_io_bee_that_reads_no_mail_does_not_lock_itself_out() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Worker>(), On::Memory);
        let mut io = hive.io_with_credits(8);
        const MESSAGES: u64 = 400;
        let flushing = async {
            for place in 0..MESSAGES {
                io.emit(Work { place });
                io.flush().await
            }

            // A batch larger than all credits takes all of them.
            for place in 0..MESSAGES {
                io.emit(Work { place })
            }

            io.flush().await;
        };

        tokio::time::timeout(Duration::from_secs(20), flushing).await.expect("credits come back");
        let mut answers = 0;
        while answers < 2 * MESSAGES as usize {
            let mail = tokio::time::timeout(Duration::from_secs(20), io.receive()).await.unwrap();
            answers += mail.into_answers::<Work>().ok().unwrap().into_iter().count()
        }

        credits_are_back(&hive, &[&io], 8).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Set when the handler of `Held` may return.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Keeps the handler of `Held` from returning until this is dropped. A failing test drops it, too. Otherwise
/// the runtime would wait for the handler forever.
struct Closed;

impl Closed {
    fn new() -> Closed {
        IS_OPEN.store(false, Ordering::Release);
        Closed
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        IS_OPEN.store(true, Ordering::Release)
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Answered(u64);
#[derive(Message)]
struct Held(u64);
#[derive(App)]
struct Answering {
    answered: Dict<u64, u64>,
}
#[handlers]
impl Answering {
    #[rcv(sharded)]
    fn answered(&mut self, msg: &Answered, ctx: &mut Ctx) -> u64 {
        *self.answered.entry(msg.0).or_default() += 1;
        ctx.emit(Held(msg.0));
        msg.0
    }
}
#[derive(App)]
struct Holding {
    held: Dict<u64, u64>,
}
#[handlers]
impl Holding {
    #[rcv(sharded)]
    fn held(&mut self, msg: &Held) {
        while !IS_OPEN.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1))
        }
        *self.held.entry(msg.0).or_default() += 1
    }
}

/// An answer may arrive before the credit of its message is back. If `try_flush` has kept a batch and the IO
/// bee then waits only for mail, the batch is flushed when the credit comes back.
#[test]
fn a_batch_that_try_flush_has_kept_is_flushed_while_its_io_bee_waits_for_mail() {
    for on in [On::Memory, On::Journal] {
        for waits_for_the_wake_up_alone in [false, true] {
            on_workers(2, async {
                let closed = Closed::new();
                let (hive, _journal) = start(Hive::builder().app::<Answering>().app::<Holding>(), on);
                let mut io = hive.io_with_credits(1);
                io.emit(Answered(1));
                io.flush().await;
                assert_eq!(answers(io.receive().await), [1]);

                io.emit(Answered(2));
                assert_eq!(io.try_flush(), Err(Busy), "what the first message caused is in flight");
                // `arrived` may return once because of the answer that was read without waiting for it
                let waits = tokio::time::timeout(Duration::from_millis(20), async {
                    while io.try_receive().is_none() {
                        io.arrived().await
                    }
                });
                assert!(waits.await.is_err(), "there is neither mail nor a credit");

                drop(closed);
                let mail = tokio::time::timeout(Duration::from_secs(20), async {
                    if waits_for_the_wake_up_alone {
                        while io.buffered() > 0 {
                            io.arrived().await
                        }
                    }
                    io.receive().await
                });
                assert_eq!(answers(mail.await.expect("the batch was flushed")), [2]);
                credits_are_back(&hive, &[&io], 1).await;
                hive.stop(Duration::from_secs(5)).await;
            })
        }
    }
}

fn answers(mail: Mail) -> Vec<u64> {
    mail.into_answers::<Answered>().ok().unwrap().into_iter().map(Result::unwrap).collect()
}

/// The credits of its flushes come back, and its inbox does not grow beyond the limit.
#[test]
fn an_io_bee_that_floods_and_never_reads_grows_no_further_than_the_limit() {
    alone(|| {
        on_workers(2, async {
            let (hive, _) = start(Hive::builder().app::<Worker>(), On::Memory);
            let mut io = hive.io_with_credits(1_000);
            let to = io.address();
            let (mut asked, mut written) = (0u64, 0u64);
            memory_is_flat("unread mail", async {
                let until = Instant::now() + load_time();
                while Instant::now() < until {
                    for _ in 0..100 {
                        io.emit(Work { place: asked % 64 });
                        asked += 1
                    }
                    io.emit(Write { place: 64, to, letters: 100 });
                    written += 100;
                    io.flush().await
                }
            })
            .await;

            let sent = asked + written;
            assert!(sent > 4 * limits::MAIL_UNREAD_MAX as u64, "{sent} is no flood");

            let waiting = || hive.status().mail_shed + limits::MAIL_UNREAD_MAX as u64 >= sent;
            eventually("all is thrown away or waits", Duration::from_secs(20), waiting).await;
            let (letters, answers) = read_all(&mut io);
            let kept = letters.len() + answers;

            assert!(kept <= limits::MAIL_UNREAD_MAX, "{kept}");
            // The hive may have dropped the rest of a whole batch together with the rejected letter.
            assert!(kept + 1_000 > limits::MAIL_UNREAD_MAX, "{kept}");
            assert_eq!(kept as u64 + hive.status().mail_shed, sent, "kept or counted");
            assert!(letters.is_sorted(), "what is kept is in order");

            credits_are_back(&hive, &[&io], 1_000).await;
            // An IO bee that reads again is served again.
            io.emit(Write { place: 65, to, letters: 3 });
            io.flush().await;
            credits_are_back(&hive, &[], 0).await;
            io.arrived().await;

            assert_eq!(read_all(&mut io), (vec![0, 1, 2], 0));
            hive.stop(Duration::from_secs(5)).await;
        })
    })
}

/// The answers to messages that were flushed without credits hold no credits either.
#[test]
fn mail_that_never_held_a_credit_is_bounded_too() {
    alone(|| {
        on_workers(2, async {
            let (hive, _) = start(Hive::builder().app::<Worker>(), On::Memory);
            let (mut io, deaf) = (hive.io(), hive.io());
            let most = limits::MAIL_UNREAD_MAX as u64;
            let letters = 3 * most / 4;

            for _ in 0..4 {
                io.emit(Write { place: 1, to: deaf.address(), letters });
                io.flush_control()
            }

            let lost = 4 * letters - most;
            eventually("two thirds are thrown away", Duration::from_secs(20), || {
                hive.status().mail_shed == lost
            })
            .await;

            let mut deaf = deaf;
            assert_eq!(read_all(&mut deaf).0, (0..most).collect::<Vec<_>>(), "all that there is room for");
            assert_eq!((deaf.take_lost(), deaf.take_lost()), (lost, 0), "it can know what it has missed");
            hive.stop(Duration::from_secs(5)).await;
        })
    })
}
