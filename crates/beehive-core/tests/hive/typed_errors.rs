//! Typed errors: regardless of the form in which a handler returns an error, its transaction leaves no
//! changes, and the requester gets the error with its type.

use crate::load::{Chance, EVERYWHERE, On, cells_needed, on_workers, start};
use beehive_core::{App, Ctx, Dict, Error, Hive, Message, RequestError, Table, attempt, handlers};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The error type of the messages that declare one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum No {
    SoldOut { left: u64 },
    Closed(String),
}

/// Converts into `No` with `?`.
struct Closed;
impl From<Closed> for No {
    fn from(_: Closed) -> No {
        No::Closed("closed".into())
    }
}

/// A change that a handler makes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Step {
    Put(u64),
    Remove,
    Insert(u64, u64),
    Clear,
    Emit,
    After,
    Postpone,
    /// An `attempt!` that makes changes and yields an error.
    Undone,
}

/// How a handler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum End {
    Well,
    /// `return Err(..)`.
    Return,
    /// `?` with an error that converts.
    Question,
    /// `?` after an `attempt!`.
    Attempt,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Script {
    place: u64,
    steps: Vec<Step>,
    end: End,
}

#[derive(Message)]
#[message(reply = u64, error = No)]
struct Typed(Script);
#[derive(Message)]
#[message(reply = u64, error = No)]
struct TypedOrNone(Script);
#[derive(Message)]
#[message(error = No)]
struct TypedWithoutAnswer(Script);
#[derive(Message)]
#[message(error = No)]
struct TypedAtEach(Script);
#[derive(Message)]
#[message(reply = u64)]
struct Plain(Script);
#[derive(Message)]
#[message(reply = u64)]
struct PlainString(Script);
#[derive(Message)]
struct PlainWithoutAnswer(Script);
/// A reply that is a `Result`: its `Err` is an answer.
#[derive(Message)]
#[message(reply = Result<u64, No>, commits_errors)]
struct Committing(Script);

#[derive(Message)]
#[message(reply = Content)]
struct Look(u64);
#[derive(Message)]
struct Said {
    place: u64,
    later: bool,
}
#[derive(Message)]
struct Later(u64);
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Heard(u64);

type Content = (Option<u64>, Vec<(u64, u64)>);

#[derive(App)]
struct Shop {
    value: Dict<u64, u64>,
    rows: Table<u64, u64, u64>,
}

const ATTEMPTS: &str = "as asked";

#[handlers]
impl Shop {
    fn work(&mut self, script: &Script, ctx: &mut Ctx) {
        for step in &script.steps {
            match *step {
                Step::Put(value) => drop(self.value.put(script.place, value)),
                Step::Remove => drop(self.value.remove(&script.place)),
                Step::Insert(row, value) => drop(self.rows.at(script.place).insert(row, value)),
                Step::Clear => self.rows.at(script.place).clear(),
                Step::Emit => ctx.emit(Said { place: script.place, later: false }),
                Step::After => ctx.after(Duration::from_millis(1), Later(script.place)),
                // a message is postponed only if its transaction commits
                Step::Postpone if script.end == End::Well => {}
                Step::Postpone => ctx.postpone(Duration::from_millis(1)),
                Step::Undone => {
                    let undone = attempt!(-> Result<(), No> {
                        self.value.put(script.place, 1_000_000);
                        self.rows.at(script.place).insert(1_000_000, 1);
                        ctx.emit(Said { place: script.place, later: false });
                        ctx.after(Duration::from_millis(1), Later(script.place));
                        Err(Closed)?;
                        Ok(())
                    });
                    assert_eq!(undone, Err(Closed.into()));
                }
            }
        }
    }

    #[rcv(sharded)]
    fn typed(&mut self, msg: &Typed, ctx: &mut Ctx) -> Result<u64, No> {
        self.work(&msg.0, ctx);
        match msg.0.end {
            End::Well => Ok(1),
            End::Return => Err(No::SoldOut { left: msg.0.place }),
            End::Question => Err(Closed)?,
            End::Attempt => {
                let number: u64 = attempt! {
                    self.work(&msg.0, ctx);
                    Err(No::SoldOut { left: msg.0.place })
                }?;
                Ok(number)
            }
        }
    }

    #[rcv(sharded)]
    fn typed_or_none(&mut self, msg: &TypedOrNone, ctx: &mut Ctx) -> core::result::Result<Option<u64>, No> {
        self.work(&msg.0, ctx);
        match msg.0.end {
            End::Well => Ok(Some(1)),
            End::Return => Err(No::SoldOut { left: msg.0.place }),
            End::Question => Err(Closed)?,
            End::Attempt => attempt! {
                self.work(&msg.0, ctx);
                Err(No::SoldOut { left: msg.0.place })
            },
        }
    }

    #[rcv(sharded)]
    fn typed_without_answer(&mut self, msg: &TypedWithoutAnswer, ctx: &mut Ctx) -> Result<(), No> {
        self.work(&msg.0, ctx);
        match msg.0.end {
            End::Well => Ok(()),
            End::Return => Err(No::SoldOut { left: msg.0.place }),
            End::Question => Err(Closed)?,
            End::Attempt => attempt! {
                self.work(&msg.0, ctx);
                Err(No::SoldOut { left: msg.0.place })?;
                Ok(())
            },
        }
    }

    #[rcv(each = value)]
    fn typed_at_each(&mut self, key: &u64, msg: &TypedAtEach) -> Result<(), No> {
        if let Some(value) = self.value.get_mut(key) {
            *value += 1
        }
        match msg.0.end {
            End::Well => Ok(()),
            _ => Err(No::SoldOut { left: msg.0.place }),
        }
    }

    #[rcv(sharded)]
    fn plain(&mut self, msg: &Plain, ctx: &mut Ctx) -> Result<u64, Error> {
        self.work(&msg.0, ctx);
        match msg.0.end {
            End::Well => Ok(1),
            End::Return => Err(Error::new("as asked")),
            End::Question => Err("as asked")?,
            End::Attempt => attempt! {
                self.work(&msg.0, ctx);
                Err::<(), _>(ATTEMPTS)?;
                Ok(1)
            },
        }
    }

    #[rcv(sharded)]
    fn plain_string(&mut self, msg: &PlainString, ctx: &mut Ctx) -> Result<u64, String> {
        self.work(&msg.0, ctx);
        match msg.0.end {
            End::Well => Ok(1),
            End::Return => Err("as asked".into()),
            End::Question => Err("as asked")?,
            End::Attempt => attempt! {
                self.work(&msg.0, ctx);
                Err::<(), _>(ATTEMPTS)?;
                Ok(1)
            },
        }
    }

    #[rcv(sharded)]
    fn plain_without_answer(&mut self, msg: &PlainWithoutAnswer, ctx: &mut Ctx) -> beehive_core::Result {
        self.work(&msg.0, ctx);
        match msg.0.end {
            End::Well => Ok(()),
            End::Return => Err("as asked".into()),
            End::Question => Err("as asked")?,
            End::Attempt => attempt! {
                self.work(&msg.0, ctx);
                Err(ATTEMPTS)?;
                Ok(())
            },
        }
    }

    #[rcv(sharded)]
    fn committing(&mut self, msg: &Committing, ctx: &mut Ctx) -> Result<u64, No> {
        self.work(&msg.0, ctx);
        if msg.0.end == End::Well { Ok(1) } else { Err(No::SoldOut { left: msg.0.place }) }
    }

    #[rcv(sharded)]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        let _ = self.value.contains(&msg.0);
        ctx.emit(Said { place: msg.0, later: true })
    }

    #[rcv(sharded)]
    fn look(&mut self, msg: &Look) -> Content {
        let rows = self.rows.at(msg.0).iter().map(|(row, value)| (*row, *value)).collect();
        (self.value.get(&msg.0).copied(), rows)
    }
}

/// Counts the messages that committed transactions have emitted.
#[derive(App)]
struct Ear {
    heard: Dict<u64, (u64, u64)>,
}
#[handlers]
impl Ear {
    #[rcv(sharded)]
    fn said(&mut self, msg: &Said) {
        let heard = self.heard.entry(msg.place).or_default();
        if msg.later { heard.1 += 1 } else { heard.0 += 1 }
    }
    #[rcv(sharded)]
    fn heard(&mut self, msg: &Heard) -> (u64, u64) {
        self.heard.get(&msg.0).copied().unwrap_or_default()
    }
}

/// The content of a place, and the messages that committed transactions at this place have sent.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    value: Option<u64>,
    rows: std::collections::BTreeMap<u64, u64>,
    heard: (u64, u64),
}

impl Model {
    fn run(&mut self, script: &Script) {
        for step in &script.steps {
            match *step {
                Step::Put(value) => self.value = Some(value),
                Step::Remove => self.value = None,
                Step::Insert(row, value) => drop(self.rows.insert(row, value)),
                Step::Clear => self.rows.clear(),
                Step::Emit => self.heard.0 += 1,
                Step::After => self.heard.1 += 1,
                Step::Postpone | Step::Undone => {}
            }
        }
    }

    fn content(&self) -> Content {
        (self.value, self.rows.clone().into_iter().collect())
    }
}

fn any_step(chance: &mut Chance) -> Step {
    match chance.below(10) {
        0 | 1 => Step::Put(chance.below(100)),
        2 => Step::Remove,
        3..=5 => Step::Insert(chance.below(30), chance.below(100)),
        6 => Step::Clear,
        7 => Step::Emit,
        8 => [Step::After, Step::Postpone][chance.below(2) as usize],
        _ => Step::Undone,
    }
}

/// Sends a script as one of the messages. Returns whether the request succeeded, after checking its error.
async fn send(hive: &Hive, form: u64, script: Script) -> bool {
    let limit = Duration::from_secs(30);
    let typed = match script.end {
        End::Question => No::Closed("closed".into()),
        _ => No::SoldOut { left: script.place },
    };
    let (typed, plain) =
        (Err(RequestError::Handler(typed)), Err(RequestError::Handler(Error::new("as asked"))));

    let (wanted, got) = match form {
        0 => (typed.clone(), hive.request_within(limit, Typed(script)).await.map(drop)),
        1 => (typed.clone(), hive.request_within(limit, TypedOrNone(script)).await.map(drop)),
        2 => (typed.clone(), hive.request_within(limit, TypedWithoutAnswer(script)).await),
        _ => {
            let got = match form {
                3 => hive.request_within(limit, Plain(script)).await.map(drop),
                4 => hive.request_within(limit, PlainString(script)).await.map(drop),
                _ => hive.request_within(limit, PlainWithoutAnswer(script)).await,
            };
            assert!(got.is_ok() || got == plain || is_dropped(&got), "form {form}: {got:?}");
            return got.is_ok() || is_dropped(&got);
        }
    };

    assert!(got.is_ok() || got == wanted || is_dropped(&got), "form {form}: {got:?}");
    got.is_ok() || is_dropped(&got)
}

/// Checks whether the map has dropped a message without an answer, because the handler would do nothing.
fn is_dropped<E>(got: &Result<(), RequestError<E>>) -> bool {
    matches!(got, Err(RequestError::NoAnswer { .. }))
}

const FORMS: u64 = 6;
const PLACES: u64 = 4;

/// Property: if a handler changes cells and rows, emits, sets timers and postpones its message, and then
/// returns an error in any form, all of this is undone.
#[test]
fn a_handler_that_returns_an_error_of_any_form_leaves_nothing_behind() {
    for (on, messages) in [(On::Memory, 3_000), (On::Journal, 600), (On::Journals, 600)] {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Shop>().app::<Ear>(), on);
            let mut places = vec![Model::default(); PLACES as usize];
            let (mut chance, mut failed) = (Chance(0x5eed), [0; FORMS as usize]);

            for _ in 0..messages {
                let (place, form) = (chance.below(PLACES), chance.below(FORMS));
                let steps = (0..chance.below(8)).map(|_| any_step(&mut chance)).collect();
                let end = [End::Well, End::Return, End::Question, End::Attempt][chance.below(4) as usize];
                let script = Script { place, steps, end };

                let model = &mut places[place as usize];
                if end == End::Well {
                    model.run(&script)
                } else {
                    failed[form as usize] += 1
                }

                let told = format!("form {form} on {on:?}: {script:?}");
                assert_eq!(send(&hive, form, script).await, end == End::Well, "{told}");
                assert_eq!(hive.request(Look(place)).await, Ok(model.content()), "{told}");
            }

            assert!(failed.iter().all(|count| *count > 30), "{failed:?}");
            // wait, in case a message arrives late
            tokio::time::sleep(Duration::from_millis(50)).await;
            for (place, model) in places.iter().enumerate() {
                let mut heard = (0, 0);
                for _ in 0..1_000 {
                    heard = hive.request(Heard(place as u64)).await.unwrap();
                    if heard == model.heard {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                assert_eq!(heard, model.heard, "place {place} on {on:?}");
            }

            let status = hive.status();
            assert_eq!((status.dead_letters, status.timers), (0, 0), "{on:?}");
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// A visit that returns a typed error leaves its cell as it was, and the error reaches the requester of the
/// sweep.
#[test]
fn the_typed_error_of_a_visit_rolls_back_and_reaches_the_requester() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Shop>(), on);
            for place in 0..3 {
                let script = Script { place, steps: vec![Step::Put(7)], end: End::Well };
                hive.request(Typed(script)).await.unwrap();
            }

            let sweep = |end| hive.request(TypedAtEach(Script { place: 9, steps: vec![], end }));
            assert_eq!(
                sweep(End::Return).await,
                Err(RequestError::Handler(No::SoldOut { left: 9 })),
                "{on:?}"
            );
            for place in 0..3 {
                assert_eq!(hive.request(Look(place)).await, Ok((Some(7), vec![])), "{on:?}");
            }

            assert_eq!(sweep(End::Well).await, Ok(()));
            assert_eq!(hive.request(Look(0)).await, Ok((Some(8), vec![])));
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

#[test]
fn an_error_inside_a_reply_that_commits_errors_is_an_answer() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Shop>(), on);
            let script = |value, end| Script { place: 1, steps: vec![Step::Put(value)], end };
            assert_eq!(hive.request(Committing(script(1, End::Well))).await, Ok(Ok(1)));

            let answer = hive.request(Committing(script(2, End::Return))).await;
            assert_eq!(answer, Ok(Err(No::SoldOut { left: 1 })), "{on:?}");
            assert_eq!(hive.request(Look(1)).await, Ok((Some(2), vec![])), "its changes are kept");
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// Sells a ticket of a show to a buyer who tries only once: if the sale is taken back and the message is run again, the
/// buyer does not buy.
#[derive(Message)]
#[message(reply = Option<u64>, error = No)]
struct Buy {
    show: u64,
    buyer: usize,
}

const SHOWS: u64 = 100;
const TICKETS: u64 = 10;
const BUYERS: usize = SHOWS as usize * (TICKETS as usize + 2);
static TRIED: [AtomicBool; BUYERS * EVERYWHERE.len()] =
    [const { AtomicBool::new(false) }; BUYERS * EVERYWHERE.len()];

#[derive(App)]
struct Tickets {
    sold: Dict<u64, u64>,
}

#[handlers]
impl Tickets {
    #[rcv(sharded)]
    fn buy(&mut self, msg: &Buy) -> Result<Option<u64>, No> {
        let sold = self.sold.entry(msg.show).or_default();
        *sold += 1;
        match TICKETS.checked_sub(*sold) {
            None => Err(No::SoldOut { left: *sold - TICKETS }),
            Some(_) if TRIED[msg.buyer].swap(true, Ordering::Relaxed) => {
                *sold -= 1;
                Ok(None)
            }
            Some(left) => Ok(Some(left)),
        }
    }
}

/// With many messages in flight, a handler computes its error from changes that are not committed yet. If such a change
/// is taken back, so is the error that follows from it. Otherwise a buyer would be told that a show is sold out while a
/// ticket is left: the journal refuses the last sale, and the one who had bought the ticket does not try again.
#[test]
fn errors_that_follow_from_uncommitted_changes_are_true() {
    for (round, on) in EVERYWHERE.into_iter().enumerate() {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Tickets>(), on);
            let mut buyers = tokio::task::JoinSet::new();
            for buyer in 0..BUYERS {
                let (hive, show) = (hive.clone(), buyer as u64 % SHOWS);
                let buyer = round * BUYERS + buyer;
                buyers.spawn(async move { (show, hive.request(Buy { show, buyer }).await) });
            }

            let mut sold = vec![Vec::new(); SHOWS as usize];
            let mut is_sold_out = vec![false; SHOWS as usize];
            for (show, answer) in buyers.join_all().await {
                match answer {
                    Ok(left) => sold[show as usize].extend(left),
                    Err(error) => {
                        // the error took its own change back
                        assert_eq!(error, RequestError::Handler(No::SoldOut { left: 1 }), "{on:?}");
                        is_sold_out[show as usize] = true
                    }
                }
            }

            for (mut lefts, is_sold_out) in sold.into_iter().zip(is_sold_out) {
                lefts.sort_unstable();
                let unsold = TICKETS - lefts.len() as u64;
                assert_eq!(
                    lefts,
                    (unsold..TICKETS).collect::<Vec<_>>(),
                    "each ticket is sold once on {on:?}"
                );
                assert!(
                    !is_sold_out || unsold == 0,
                    "a show with {unsold} tickets left is sold out on {on:?}"
                );
            }
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// An IO bee gets the typed errors among its answers.
#[test]
fn the_answers_of_an_io_bee_contain_the_typed_errors() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Shop>(), On::Memory);
        let mut io = hive.io();
        for end in [End::Return, End::Well, End::Question] {
            io.emit(Typed(Script { place: 3, steps: vec![Step::Put(1)], end }))
        }

        io.flush().await;
        let mut answers = Vec::new();
        while answers.len() < 3 {
            answers.extend(io.receive().await.into_answers::<Typed>().ok().unwrap())
        }

        let closed = No::Closed("closed".into());
        let wanted =
            [Err(RequestError::Handler(No::SoldOut { left: 3 })), Ok(1), Err(RequestError::Handler(closed))];
        assert_eq!(answers, wanted);
        drop(io);
        hive.stop(Duration::from_secs(5)).await;
    })
}

// ---- a postponed message ----

/// Postpones its answer `times` times, and then fails.
#[derive(Message)]
#[message(reply = u64, error = No)]
struct Wait {
    place: u64,
    times: u64,
}

#[derive(App)]
struct Queue {
    tries: Dict<u64, u64>,
}
#[handlers]
impl Queue {
    #[rcv(sharded)]
    fn wait(&mut self, msg: &Wait, ctx: &mut Ctx) -> Result<Option<u64>, No> {
        let tries = self.tries.entry(msg.place).or_default();
        if *tries == msg.times {
            *tries += 100;
            return Err(No::SoldOut { left: msg.times });
        }

        *tries += 1;
        ctx.postpone(Duration::from_millis(1));
        Ok(None)
    }
}

#[test]
fn a_postponed_message_is_answered_with_the_typed_error() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Queue>(), on);
            for place in 0..3 {
                let failed = hive.request_within(Duration::from_secs(20), Wait { place, times: 3 }).await;
                assert_eq!(failed, Err(RequestError::Handler(No::SoldOut { left: 3 })), "{on:?}");
                // the changes of the failed run are undone, so the next run fails in the same way
                let failed = hive.request_within(Duration::from_secs(20), Wait { place, times: 3 }).await;
                assert_eq!(failed, Err(RequestError::Handler(No::SoldOut { left: 3 })), "{on:?}");
            }
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

// ---- errors whose code panics ----

/// Panics when it is described or dropped.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Bad(u64);
impl std::fmt::Debug for Bad {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::load::unheard("it is not shown")
    }
}
impl Drop for Bad {
    fn drop(&mut self) {
        if self.0 == 13 {
            crate::load::unheard("it is not dropped")
        }
    }
}
#[derive(Message)]
#[message(reply = u64, error = Bad)]
struct Fail(u64);
#[derive(App)]
struct Fails {
    count: Dict<u64, u64>,
}
#[handlers]
impl Fails {
    #[rcv(sharded)]
    fn fail(&mut self, msg: &Fail) -> Result<u64, Bad> {
        let count = self.count.entry(msg.0 % 2).or_default();
        *count += 1;
        if msg.0 % 2 == 1 { Err(Bad(msg.0)) } else { Ok(*count) }
    }
}

#[test]
fn an_error_that_panics_when_it_is_shown_or_dropped_harms_nobody() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Fails>(), On::Memory);
        for round in 1..10 {
            // no requester waits for these messages, so the hive drops the error
            hive.emit(Fail(13)).await;
            hive.emit(Fail(1)).await;
            let failed = hive.request(Fail(1)).await;
            assert!(matches!(failed, Err(RequestError::Handler(Bad(1)))));
            assert_eq!(hive.request(Fail(0)).await.ok(), Some(round));
        }
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn maps_name_all_that_is_touched() {
    use beehive_core::testing::maps::instance;
    let mut shop: Shop = instance(Default::default()).unwrap();
    for place in 0..5 {
        let steps = vec![Step::Put(1), Step::Insert(1, 2)];
        assert_eq!(cells_needed(&mut shop, &Typed(Script { place, steps, end: End::Well })), 2);
    }
}
