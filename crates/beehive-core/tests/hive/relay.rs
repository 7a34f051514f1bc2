//! Four apps that send to each other in every way that a log has to remember: directly, along an answer chain, by
//! timers, through stateless handlers, to every cell, and to bees that merge or soon retire. Each app counts what
//! arrives, so a message that is lost, handled twice or out of order is noticed.

use crate::findings::{Checker, Finding};
use beehive_core::{App, Builder, Ctx, Dict, Hive, Message, handlers};
use std::collections::BTreeMap;
use std::time::Duration;

/// The messages that have arrived at a cell: their count, the sum of the squares of their ids, the last number
/// from each sending cell, and the number of messages out of order.
type Arrivals = (u64, u64, BTreeMap<u64, u64>, u64);

/// Records a message in its receiver's cell. Messages of one cell must arrive in the order of their numbers.
fn add(arrivals: &mut Arrivals, id: u64, from: u64, number: u64) {
    let (count, sum, last, disorder) = arrivals;
    *count += 1;
    *sum = sum.wrapping_add(id.wrapping_mul(id));
    *disorder += u64::from(last.insert(from, number).is_some_and(|before| before >= number));
}

/// A message from outside to a cell of `First`.
#[derive(Message)]
pub(crate) struct Begin(pub(crate) u64);
#[derive(Message)]
struct ToSecond {
    id: u64,
    from: u64,
    number: u64,
}
/// A message that no app answers. `Second` and `Third` both get it, in this order.
#[derive(Message)]
#[message(reply = u64)]
struct Both {
    id: u64,
    from: u64,
    number: u64,
}
#[derive(Message)]
struct ToFourth {
    id: u64,
    from: u64,
    number: u64,
}
/// A timer of `First`.
#[derive(Message)]
struct Late {
    id: u64,
    from: u64,
}
/// A message to a stateless handler of `Third`, which sets a timer.
#[derive(Message)]
struct Later {
    id: u64,
    from: u64,
}
/// The timer of that handler sends this message to another stateless handler.
#[derive(Message)]
struct Drift {
    id: u64,
    from: u64,
}
/// A timer that a stateless handler of `Third` sets for a message from outside.
#[derive(Message)]
struct LateFromOutside(u64);
/// What a bee of `Third` sends that soon has only empty cells and retires.
#[derive(Message)]
struct Brief {
    id: u64,
    from: u64,
    number: u64,
}
/// A message to each cell of `Fourth`.
#[derive(Message)]
struct Round(u64);
#[derive(Message)]
pub(crate) struct Plant(pub(crate) u64);
/// Merges the owners of two cells of `Second`.
#[derive(Message)]
pub(crate) struct Unite(pub(crate) u64, pub(crate) u64);
#[derive(Message)]
pub(crate) struct Clear(pub(crate) u64);
#[derive(Message)]
#[message(reply = Arrivals)]
struct AtSecond(u64);
#[derive(Message)]
#[message(reply = Arrivals)]
struct AtThird(u64);
#[derive(Message)]
#[message(reply = Arrivals)]
struct AtFourth(u64);
#[derive(Message)]
#[message(reply = (u64, u64))]
struct RoundsAt(u64);

pub(crate) const KEYS: u64 = 24;
/// Number of cells of `Fourth` that exist from the start and that rounds visit.
pub(crate) const PLANTED: u64 = 40;
const ROUND_EVERY: u64 = 50;
/// Added to the ids of messages that timers send.
const LATE: u64 = 1 << 40;
const OUTSIDE_EVERY: u64 = 11;
/// The first of the cells of `Third` that count what timers for messages from outside send.
const FROM_OUTSIDE: u64 = 500;
/// Number of cells of `Fourth` that count what bees of `Third` send that soon retire.
const BRIEF: u64 = 8;

#[derive(App)]
pub(crate) struct First {
    numbers: Dict<u64, u64>,
}
#[handlers]
impl First {
    #[rcv(sharded)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        let (id, from) = (msg.0, msg.0 % KEYS);
        let number = self.numbers.entry(from).or_default();
        *number += 1;
        ctx.emit(ToSecond { id, from, number: *number });
        if id.is_multiple_of(3) {
            ctx.emit(Both { id, from, number: *number });
        }
        if id.is_multiple_of(7) {
            ctx.after(Duration::from_millis(id % 5), Late { id, from });
        }
        if id.is_multiple_of(ROUND_EVERY) {
            ctx.emit(Round(id))
        }
    }
    #[rcv(sharded)]
    fn late(&mut self, msg: &Late, ctx: &mut Ctx) {
        *self.numbers.entry(msg.from).or_default() += 1;
        ctx.emit(Later { id: msg.id, from: msg.from })
    }
}

#[derive(App)]
pub(crate) struct Second {
    arrivals: Dict<u64, Arrivals>,
    sent: Dict<u64, u64>,
}
#[handlers]
impl Second {
    #[rcv(sharded)]
    fn second(&mut self, msg: &ToSecond, ctx: &mut Ctx) {
        let key = msg.id % 10;
        add(self.arrivals.entry(key).or_default(), msg.id, msg.from, msg.number);
        let number = self.sent.entry(key).or_default();
        *number += 1;
        ctx.emit(ToFourth { id: msg.id, from: key, number: *number })
    }
    /// Passes every second message on.
    #[rcv(sharded)]
    fn both(&mut self, msg: &Both) -> Option<u64> {
        let key = 100 + msg.from;
        add(self.arrivals.entry(key).or_default(), msg.id, msg.from, msg.number);
        (msg.id.is_multiple_of(2)).then_some(msg.id)
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &AtSecond) -> Arrivals {
        self.arrivals.get(&msg.0).cloned().unwrap_or_default()
    }
    #[rcv(joins)]
    fn unite(&mut self, msg: &Unite) {
        self.arrivals.entry(msg.0).or_default();
        self.arrivals.entry(msg.1).or_default();
    }
}

#[derive(App)]
pub(crate) struct Third {
    arrivals: Dict<u64, Arrivals>,
}
#[handlers]
impl Third {
    #[rcv(sharded)]
    fn both(&mut self, msg: &Both) -> u64 {
        add(self.arrivals.entry(msg.from).or_default(), msg.id, msg.from, msg.number);
        msg.id
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &AtThird) -> Arrivals {
        self.arrivals.get(&msg.0).cloned().unwrap_or_default()
    }
    #[rcv(stateless)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) {
        if msg.0.is_multiple_of(OUTSIDE_EVERY) {
            ctx.after(Duration::from_millis(msg.0 % 4), LateFromOutside(msg.0))
        }
    }
    #[rcv(sharded)]
    fn late_from_outside(&mut self, msg: &LateFromOutside) {
        let cell = self.arrivals.entry(FROM_OUTSIDE + msg.0 % BRIEF).or_default();
        add(cell, msg.0, msg.0, 1);
        // the numbers of messages from timers are not recorded
        cell.2.remove(&msg.0);
    }
    #[rcv(stateless)]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        ctx.after(Duration::from_millis(msg.id % 3), Drift { id: msg.id, from: msg.from })
    }
    #[rcv(stateless)]
    fn drift(&mut self, msg: &Drift, ctx: &mut Ctx) {
        ctx.emit(ToFourth { id: msg.id, from: 1_000 + msg.from, number: 0 })
    }
    /// Empties cells so that their bees retire again and again.
    #[rcv(sharded)]
    fn clear(&mut self, msg: &Clear) {
        self.arrivals.remove(&(1_000 + msg.0));
    }
    #[rcv(sharded)]
    fn brief(&mut self, msg: &ToFourth, ctx: &mut Ctx) {
        let key = 1_000 + msg.id % 50;
        let (id, number) = (msg.id, msg.number);
        ctx.emit(match msg.from < 1_000 {
            true => Brief { id, from: key, number },
            false => Brief { id: id + LATE, from: u64::MAX - id, number: 1 },
        });
        if msg.id % 50 < 25 {
            self.arrivals.entry(key).or_default();
        } else {
            self.arrivals.remove(&(key - 25));
        }
    }
}

#[derive(App)]
pub(crate) struct Fourth {
    arrivals: Dict<u64, Arrivals>,
    rounds: Dict<u64, (u64, u64)>,
}
#[handlers]
impl Fourth {
    #[rcv(sharded)]
    fn fourth(&mut self, msg: &ToFourth) {
        // messages that timers send have no particular order
        let (from, number) = match msg.from < 1_000 {
            true => (msg.from, msg.number),
            false => (u64::MAX - msg.id, 1),
        };
        let cell = self.arrivals.entry(msg.from % 1_000 % 16).or_default();
        let is_late = msg.from >= 1_000;
        add(cell, msg.id.wrapping_add(if is_late { LATE } else { 0 }), from, number);
        if is_late {
            // the numbers of messages from timers are not recorded
            cell.2.remove(&from);
        }
    }
    #[rcv(sharded)]
    fn brief(&mut self, msg: &Brief) {
        let cell = self.arrivals.entry(100 + msg.id % BRIEF).or_default();
        add(cell, msg.id, msg.from, msg.number);
        if msg.id >= LATE {
            // the numbers of messages from timers are not recorded
            cell.2.remove(&msg.from);
        }
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &AtFourth) -> Arrivals {
        self.arrivals.get(&msg.0).cloned().unwrap_or_default()
    }
    #[rcv(sharded)]
    fn rounds(&mut self, msg: &RoundsAt) -> (u64, u64) {
        self.rounds.get(&msg.0).copied().unwrap_or_default()
    }
    #[rcv(sharded)]
    fn plant(&mut self, msg: &Plant) {
        self.rounds.entry(msg.0).or_default();
    }
    #[rcv(each = rounds)]
    fn round(&mut self, key: &u64, msg: &Round) {
        let (count, sum) = self.rounds.entry(*key).or_default();
        *count += 1;
        *sum += msg.0
    }
}

/// The names of the apps, in order.
pub(crate) const APPS: [&str; 4] = ["first", "second", "third", "fourth"];

pub(crate) fn apps() -> Builder {
    Hive::builder().app::<First>().app::<Second>().app::<Third>().app::<Fourth>().seed(3)
}

/// Adds the counts of one cell: the number of messages, the sum of the squares of their ids, and the number
/// of messages out of order.
fn plus((count, sum, disorder): (u64, u64, u64), cell: &Arrivals) -> (u64, u64, u64) {
    (count + cell.0, sum.wrapping_add(cell.1), disorder + cell.3)
}

fn squares(ids: impl Iterator<Item = u64>) -> (u64, u64, u64) {
    ids.fold((0, 0, 0), |(count, sum, _), id| (count + 1, sum.wrapping_add(id.wrapping_mul(id)), 0))
}

/// Compares what arrived at some cells with what should have arrived there.
fn compare(what: &str, seen: (u64, u64, u64), due: (u64, u64, u64)) -> Result<(), Finding> {
    let (count, sum, disorder) = seen;
    if (count, sum) != (due.0, due.1) {
        return Err(Finding::new(Checker::Counts, format!("{what}: {seen:?} instead of {due:?}")));
    }
    match disorder {
        0 => Ok(()),
        _ => Err(Finding::new(Checker::Order, format!("{what}: {disorder} messages out of order"))),
    }
}

/// Checks that each app has handled each of the first `messages` messages once, and the messages of each sender in
/// order.
pub(crate) async fn check(hive: &Hive, messages: u64) -> Result<(), Finding> {
    let all = || 0..messages;
    let zero = (0, 0, 0);
    let (mut second, mut both, mut third, mut fourth, mut brief) = (zero, zero, zero, zero, zero);
    let mut outside = zero;
    for key in 0..10 {
        second = plus(second, &ask(hive, AtSecond(key)).await?)
    }
    for key in 0..KEYS {
        both = plus(both, &ask(hive, AtSecond(100 + key)).await?);
        third = plus(third, &ask(hive, AtThird(key)).await?)
    }
    for key in 0..16 {
        fourth = plus(fourth, &ask(hive, AtFourth(key)).await?)
    }
    for key in 0..BRIEF {
        brief = plus(brief, &ask(hive, AtFourth(100 + key)).await?);
        outside = plus(outside, &ask(hive, AtThird(FROM_OUTSIDE + key)).await?)
    }
    compare("third, late", outside, squares(all().filter(|id| id % OUTSIDE_EVERY == 0)))?;
    compare("second", second, squares(all()))?;
    compare("second, both", both, squares(all().filter(|id| id % 3 == 0)))?;
    compare("third, both", third, squares(all().filter(|id| id % 3 == 0 && id % 2 != 0)))?;
    let late = || all().filter(|id| id % 7 == 0).map(|id| id + LATE);
    compare("fourth", fourth, squares(all().chain(late())))?;
    compare("third, brief", brief, squares(all().chain(late())))?;

    let rounds = all().filter(|id| id % ROUND_EVERY == 0);
    let (count, sum) = rounds.fold((0, 0), |(count, sum), id| (count + 1, sum + id));
    for key in 0..PLANTED {
        let (seen, of_all) = ask(hive, RoundsAt(key)).await?;
        if (seen, of_all) != (count, sum) {
            let what =
                format!("cell {key} has {seen} visits with sum {of_all} instead of {count} with {sum}");
            return Err(Finding::new(Checker::Visits, what));
        }
    }
    Ok(())
}

async fn ask<M: Message>(hive: &Hive, question: M) -> Result<M::Reply, Finding>
where
    M::Reply: Clone,
{
    let answer = hive.request_within(Duration::from_secs(20), question).await;
    answer.map_err(|error| Finding::new(Checker::Liveness, format!("no answer: {error:?}")))
}
