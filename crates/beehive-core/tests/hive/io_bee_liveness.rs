//! An IO bee stays responsive no matter what the handlers of its messages do: its timers fire on time, it
//! reads its mail, and other IO bees are served.

use crate::load::{Lateness, On, alone, credits_are_back, on_workers, start};
use beehive_core::{App, Ctx, Dict, Error, Hive, Io, Message, Restart, handlers};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How a handler uses its thread, and for how many milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Manner {
    Spins(u64),
    Blocks(u64),
}

impl Manner {
    fn behave(self) {
        match self {
            Manner::Spins(milliseconds) => {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(milliseconds) {
                    std::hint::spin_loop()
                }
            }
            Manner::Blocks(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
        }
    }
    fn milliseconds(self) -> u64 {
        match self {
            Manner::Spins(milliseconds) | Manner::Blocks(milliseconds) => milliseconds,
        }
    }
}

#[derive(Message)]
#[message(reply = u64)]
struct Visit {
    place: u64,
    manner: Manner,
}
/// Needs no cell. A stateless handler passes it on to a place, in order.
#[derive(Message)]
struct Pass {
    place: u64,
    number: u64,
    manner: Manner,
}
/// The same message, sent directly to its cell.
#[derive(Message)]
struct Passed {
    place: u64,
    number: u64,
}
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Numbers(u64);
/// A request that the first app passes on or drops, and that the place answers.
#[derive(Message)]
#[message(reply = u64)]
struct Ask {
    place: u64,
    number: u64,
    looked_at: bool,
    milliseconds: u64,
}

const WELL: Manner = Manner::Blocks(0);

/// An app that gets some messages before the other apps.
#[derive(App)]
struct Gate {
    nothing: Dict<u64, u64>,
}
#[handlers]
impl Gate {
    #[rcv(stateless)]
    fn pass(&mut self, msg: &Pass, ctx: &mut Ctx) {
        msg.manner.behave();
        ctx.emit(Passed { place: msg.place, number: msg.number })
    }
    #[rcv(stateless)]
    fn ask(&mut self, msg: &Ask) -> Option<u64> {
        if !msg.looked_at {
            return None;
        }
        std::thread::sleep(Duration::from_millis(msg.milliseconds));
        None
    }
}

#[derive(App)]
struct Places {
    visits: Dict<u64, u64>,
    numbers: Dict<u64, Vec<u64>>,
}
#[handlers]
impl Places {
    #[rcv(sharded)]
    fn visit(&mut self, msg: &Visit) -> u64 {
        let visits = self.visits.entry(msg.place).or_default();
        *visits += 1;
        msg.manner.behave();
        *visits
    }
    #[rcv(sharded)]
    fn passed(&mut self, msg: &Passed) {
        self.numbers.entry(msg.place).or_default().push(msg.number)
    }
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask) -> Option<u64> {
        self.numbers.entry(msg.place).or_default().push(msg.number);
        Some(msg.number)
    }
    #[rcv(sharded)]
    fn numbers(&mut self, msg: &Numbers) -> Vec<u64> {
        self.numbers.get(&msg.0).cloned().unwrap_or_default()
    }
}

fn visit(place: u64, manner: Manner) -> Visit {
    Visit { place, manner }
}

/// Measurements of two IO bees while a handler is stuck.
#[derive(Default, Debug)]
struct Seen {
    /// Maximum delay of a timer of the IO bee whose message is stuck.
    late: Duration,
    /// Maximum latency of answers from other places to the same IO bee.
    answered: Duration,
    rounds: u64,
    /// 99th percentile of the latency of answers to the other IO bee.
    other: Duration,
    asked: usize,
    /// Maximum delay of a thread that only sleeps.
    machine: Duration,
}

type Shared = Arc<Mutex<Seen>>;

/// The IO bee whose message is stuck. It ticks like a keep-alive timer, and emits messages to other places at
/// the same time.
async fn driver(mut io: Io, here: bool, warm: u64, stuck: StuckBy, over: Arc<AtomicBool>, seen: Shared) {
    if here {
        io.run_here()
    }

    for round in 0..warm {
        io.emit(visit(round % 4, WELL));
        io.emit(Pass { place: 1, number: 0, manner: WELL });
        io.flush().await;
        io.receive().await;
    }

    while io.try_receive().is_some() {}
    io.emit(visit(1, WELL));
    match stuck {
        StuckBy::Place(manner) => io.emit(visit(0, manner)),
        StuckBy::Stateless(manner) => io.emit(Pass { place: 0, number: 0, manner }),
    }

    io.flush_control();
    let mut due = Instant::now();
    let mut round = 0;

    while !over.load(Ordering::Relaxed) {
        due += Duration::from_millis(10);
        tokio::time::sleep_until(due.into()).await;
        let late = due.elapsed();
        while io.try_receive().is_some() {}
        let asked = Instant::now();

        io.emit(visit(100 + round, WELL));
        io.flush_control();
        loop {
            let mail = io.receive().await;
            let answers = mail.into_answers::<Visit>().ok().unwrap().into_iter();
            if answers.filter(|answer| *answer == Ok(1)).count() > 0 {
                break;
            }
        }

        let mut seen = seen.lock().unwrap();
        seen.late = seen.late.max(late);
        seen.answered = seen.answered.max(asked.elapsed());
        seen.rounds += 1;
        round += 1;

        // A late round does not make the next ones late.
        due = due.max(Instant::now() - Duration::from_millis(10))
    }
}

/// A second IO bee, which has one message in flight at a time.
async fn neighbor(mut io: Io, over: Arc<AtomicBool>, seen: Shared) {
    io.run_here();
    let mut took = Vec::new();
    let mut place = 1_000_000;

    while !over.load(Ordering::Relaxed) {
        let asked = Instant::now();
        io.emit(visit(place % 50 + 1_000_000, WELL));
        io.flush().await;
        io.receive().await;
        took.push(asked.elapsed());
        place += 1;
        tokio::time::sleep(Duration::from_micros(500)).await
    }

    took.sort_unstable();
    let mut seen = seen.lock().unwrap();
    seen.asked = took.len();
    seen.other = took.get(took.len() * 99 / 100).copied().unwrap_or(Duration::MAX)
}

#[derive(Clone, Copy, Debug)]
enum StuckBy {
    Place(Manner),
    Stateless(Manner),
}

fn seen_while(here: bool, warm: u64, stuck: StuckBy) -> Seen {
    let (StuckBy::Place(manner) | StuckBy::Stateless(manner)) = stuck;
    let seen = Shared::default();
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Gate>().app::<Places>(), On::Memory);
        let over = Arc::new(AtomicBool::new(false));
        let (ends, shown) = (over.clone(), seen.clone());
        hive.spawn_io("a driver", Restart::Never, move |io| {
            let (over, seen) = (ends.clone(), shown.clone());
            async move {
                driver(io, here, warm, stuck, over, seen).await;
                Ok::<_, Error>(())
            }
        });

        let (ends, shown) = (over.clone(), seen.clone());
        hive.spawn_io("its neighbor", Restart::Never, move |io| {
            let (over, seen) = (ends.clone(), shown.clone());
            async move {
                neighbor(io, over, seen).await;
                Ok::<_, Error>(())
            }
        });

        let machine = Lateness::measure();
        tokio::time::sleep(Duration::from_millis(manner.milliseconds())).await;
        over.store(true, Ordering::Relaxed);
        hive.stop(Duration::from_secs(5)).await;
        seen.lock().unwrap().machine = machine.worst()
    });

    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

/// Checks that no delay exceeds the tolerance of a keep-alive plus the delay of the machine itself.
fn both_go_on(here: bool, warm: u64, stuck: StuckBy) {
    let seen = seen_while(here, warm, stuck);
    println!("{stuck:?}, here: {here}, after {warm} messages: {seen:?}");
    let (StuckBy::Place(manner) | StuckBy::Stateless(manner)) = stuck;
    let bound = Duration::from_millis(100) + seen.machine;
    assert!(seen.late <= bound && seen.answered <= bound, "{stuck:?}, here: {here}, after {warm}: {seen:?}");
    assert!(
        seen.other <= Duration::from_millis(20) + seen.machine,
        "{stuck:?}, here: {here}, after {warm}: {seen:?}"
    );
    let enough = seen.rounds > manner.milliseconds() / 40 && seen.asked as u64 > manner.milliseconds() / 20;
    assert!(enough, "{stuck:?}, here: {here}, after {warm}: {seen:?}")
}

#[test]
fn an_io_bee_goes_on_while_a_handler_spins_for_ten_seconds() {
    both_go_on(true, 200, StuckBy::Place(Manner::Spins(10_000)))
}

#[test]
fn an_io_bee_goes_on_when_its_first_message_is_stuck() {
    let _alone = alone();
    both_go_on(true, 0, StuckBy::Place(Manner::Spins(1_500)));
    both_go_on(false, 0, StuckBy::Place(Manner::Blocks(1_500)))
}

#[test]
fn an_io_bee_goes_on_while_a_handler_blocks() {
    let _alone = alone();
    both_go_on(true, 200, StuckBy::Place(Manner::Blocks(1_500)))
}

#[test]
fn an_io_bee_goes_on_while_a_stateless_handler_spins() {
    let _alone = alone();
    both_go_on(true, 200, StuckBy::Stateless(Manner::Spins(1_500)));
    both_go_on(false, 0, StuckBy::Stateless(Manner::Spins(1_500)))
}

/// The answer is produced first, and a stuck handler follows in the same turn. The IO bee must receive the
/// answer without waiting for that handler.
#[test]
fn an_io_bee_is_told_of_an_answer_though_the_next_handler_is_stuck() {
    let _alone = alone();
    let seen = Shared::default();
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Places>(), On::Memory);
        let over = Arc::new(AtomicBool::new(false));
        let (shown, ends) = (seen.clone(), over.clone());
        let machine = Lateness::measure();
        hive.spawn_io("a driver", Restart::Never, move |mut io| {
            let (seen, over) = (shown.clone(), ends.clone());
            async move {
                io.run_here();
                let asked = Instant::now();
                io.emit(visit(1, WELL));
                io.emit(visit(0, Manner::Spins(1_500)));
                io.flush().await;
                io.receive().await;
                seen.lock().unwrap().answered = asked.elapsed();
                over.store(true, Ordering::Relaxed);
                Ok::<_, Error>(())
            }
        });

        while !over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await
        }

        hive.stop(Duration::from_secs(5)).await;
        seen.lock().unwrap().machine = machine.worst()
    });

    let seen = Arc::into_inner(seen).unwrap().into_inner().unwrap();
    assert!(seen.answered <= Duration::from_millis(100) + seen.machine, "{seen:?}")
}

/// Some messages of a sender go through a stateless handler, and others go directly to the same place.
#[test]
fn messages_through_a_stateless_handler_keep_their_order() {
    for here in [true, false] {
        on_workers(3, async {
            let (hive, _) = start(Hive::builder().app::<Gate>().app::<Places>(), On::Memory);
            let mut io = hive.io();
            if here {
                io.run_here()
            }

            const MESSAGES: u64 = 2_000;
            let mut answered = Vec::new();
            for number in 0..MESSAGES {
                // Some of the messages take longer.
                let milliseconds = if number % 100 == 7 { 3 } else { 0 };
                io.emit(Ask { place: 1, number, looked_at: number % 3 == 0, milliseconds });
                io.emit(Pass { place: 2, number, manner: WELL });
                if number % 7 == 0 {
                    io.flush().await
                }

                while let Some(mail) = io.try_receive() {
                    answered.extend(mail.into_answers::<Ask>().ok().unwrap())
                }
            }

            io.flush().await;
            while answered.len() < MESSAGES as usize {
                answered.extend(io.receive().await.into_answers::<Ask>().ok().unwrap())
            }

            credits_are_back(&hive, &[&io], beehive_core::limits::CREDITS_PER_IO_BEE).await;
            let all: Vec<u64> = (0..MESSAGES).collect();
            assert_eq!(hive.request(Numbers(1)).await, Ok(all.clone()), "here: {here}");
            assert_eq!(hive.request(Numbers(2)).await, Ok(all.clone()), "here: {here}");
            assert_eq!(answered, all.into_iter().map(Ok).collect::<Vec<_>>());
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}
