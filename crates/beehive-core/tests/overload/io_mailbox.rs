//! The inbox of an IO bee: bounded, holds credits until it is read, and blocks nobody.

use crate::load::{On, credits_are_back, eventually, on_workers, start};
use crate::memory::{alone, load_time, memory_is_flat};
use beehive_core::{Address, App, Ctx, Dict, Hive, Io, Message, handlers, limits};
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

/// Unread messages hold credits. A sender that waits for credits must not wait for itself.
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

/// Its flushes get their credits back, and its inbox does not grow.
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
            // A rejected letter may stand for a whole batch of them.
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

/// Messages flushed without credits also produce answers without credits.
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
