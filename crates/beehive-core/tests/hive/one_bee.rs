//! Many bees on several workers do what a single bee could have done: each transaction is noted as it ends, in one order for
//! all; run again in that order on a single instance, each must leave the same, and so must all of them together.
//!
//! The notes are taken by the handlers themselves, while nobody else can touch their cells. So the order of notes is one in
//! which each bee's transactions stand as they were committed.

use crate::load::{Chance, On, on_workers, start};
use beehive_core::testing::maps::{deliver, instance};
use beehive_core::{App, Ctx, Dict, Error, Hive, Message, Table, handlers};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// A bug that a hive might have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// What a failed transaction did to an account stays.
    LostUndo,
    /// Two messages of one sender to one account are handled in the other order.
    Overtaken,
    /// A handler sees something that depends on where it runs.
    UnmappedRead,
    /// A message is handled twice.
    HandledTwice,
}

// ---- the notes ----

/// What a transaction was given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Given {
    Move(Move),
    Moved(Moved),
    Look(Look),
}

/// What it left, besides its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Left {
    /// Its answer, and what it emitted.
    Committed(i64, Vec<Moved>),
    Failed,
    Panicked,
}

type Notes = Vec<(Given, Left)>;

static NOTES: Mutex<Notes> = Mutex::new(Vec::new());

/// Notes how a transaction ended when that is dropped.
struct Note(Option<(Given, Left)>);

impl Note {
    fn of(given: Given) -> Note {
        Note(Some((given, Left::Panicked)))
    }

    fn end(mut self, left: Left) {
        if let Some((_, noted)) = &mut self.0 {
            *noted = left
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        NOTES.lock().extend(self.0.take())
    }
}

// ---- the apps ----

/// An amount whose clone may be no copy.
#[derive(Debug, Default)]
struct Amount(Arc<AtomicI64>);

static CLONES_ARE_SHARED: AtomicBool = AtomicBool::new(false);
static READS_ELSEWHERE: AtomicBool = AtomicBool::new(false);

thread_local!(static MOVES_HERE: Cell<i64> = const { Cell::new(0) });

impl Amount {
    fn add(&self, amount: i64) -> i64 {
        self.0.fetch_add(amount, Ordering::Relaxed) + amount
    }
}

impl Clone for Amount {
    fn clone(&self) -> Self {
        match CLONES_ARE_SHARED.load(Ordering::Relaxed) {
            true => Amount(self.0.clone()),
            false => Amount(Arc::new(AtomicI64::new(self.0.load(Ordering::Relaxed)))),
        }
    }
}
impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.load(Ordering::Relaxed).serialize(serializer)
    }
}
impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Amount(Arc::new(AtomicI64::new(i64::deserialize(deserializer)?))))
    }
}

/// What becomes of a transfer when all is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum End {
    Committed,
    Failed,
    Panicked,
}

#[derive(Message, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[message(reply = i64)]
struct Move {
    sender: u64,
    number: u64,
    from: u64,
    to: u64,
    amount: i64,
    end: End,
}
/// Number `number` of what account `from` says to account `to` of the other app.
#[derive(Message, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moved {
    from: u64,
    to: u64,
    number: i64,
    amount: i64,
}
/// What there is about an account: in the first app (0) or in the second (1).
#[derive(Message, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[message(reply = i64)]
struct Look {
    app: u64,
    account: u64,
}

#[derive(App)]
struct Bank {
    amounts: Dict<u64, Amount>,
    /// How many messages an account has sent.
    sent: Dict<u64, i64>,
}
#[handlers]
impl Bank {
    #[rcv(joins)]
    fn transfer(&mut self, msg: &Move, ctx: &mut Ctx) -> Result<i64, Error> {
        let note = Note::of(Given::Move(msg.clone()));
        let mut less = self.amounts.entry(msg.from).or_default().add(-msg.amount);
        let number = self.sent.entry(msg.from).or_default();
        *number += 1;
        let moved = Moved { from: msg.from, to: msg.to, number: *number, amount: msg.amount };
        ctx.emit(moved.clone());
        self.amounts.entry(msg.to).or_default().add(msg.amount);
        if READS_ELSEWHERE.load(Ordering::Relaxed) {
            MOVES_HERE.set(MOVES_HERE.get() + 1);
            less += MOVES_HERE.get()
        }
        match msg.end {
            End::Committed => {}
            End::Failed => {
                note.end(Left::Failed);
                return Err("as asked".into());
            }
            // without the report that a panic of its own would make
            End::Panicked => std::panic::resume_unwind(Box::new("as asked")),
        }
        note.end(Left::Committed(less, vec![moved]));
        Ok(less)
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &Look) -> Option<i64> {
        if msg.app != 0 {
            return None;
        }
        let amount = self.amounts.get(&msg.account).map_or(0, |amount| amount.add(0));
        Note::of(Given::Look(msg.clone())).end(Left::Committed(amount, vec![]));
        Some(amount)
    }
}

#[derive(App)]
struct Books {
    /// A number that depends on all that was entered, and on its order.
    entries: Table<u64, u64, i64>,
}
#[handlers]
impl Books {
    #[rcv(sharded)]
    fn moved(&mut self, msg: &Moved) {
        let note = Note::of(Given::Moved(msg.clone()));
        let entries = self.entries.at(msg.to).entry(msg.from % 4).or_default();
        *entries = entries.wrapping_mul(31).wrapping_add(msg.amount + msg.number);
        note.end(Left::Committed(*entries, vec![]))
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &Look) -> Option<i64> {
        if msg.app != 1 {
            return None;
        }
        let sum = self.entries.at(msg.account).values().fold(0i64, |sum, entry| sum.wrapping_add(*entry));
        Note::of(Given::Look(msg.clone())).end(Left::Committed(sum, vec![]));
        Some(sum)
    }
}

// ---- a run ----

const ACCOUNTS: u64 = 60;
const SENDERS: u64 = 6;

/// What a run showed to those outside.
struct Seen {
    notes: Notes,
    /// What each transfer was answered with.
    answers: BTreeMap<Move, Result<i64, String>>,
}

async fn sender(
    hive: Hive,
    sender: u64,
    seed: u64,
    count: u64,
    bug: Bug,
) -> Vec<(Move, Result<i64, String>)> {
    let mut chance = Chance(seed);
    let mut io = hive.io();
    let (mut asked, mut answers) = (vec![], vec![]);
    let mut number = 0;
    while number < count {
        let mut batch: Vec<Move> = (0..1 + chance.below(16))
            .map(|_| {
                number += 1;
                let from = chance.below(ACCOUNTS);
                // mostly one bee's affair; now and then two merge
                let to = if chance.below(40) == 0 { chance.below(ACCOUNTS) } else { from };
                let end = match chance.below(10) {
                    0 => End::Failed,
                    1 => End::Panicked,
                    _ => End::Committed,
                };
                Move { sender, number, from, to, amount: chance.below(100) as i64, end }
            })
            .collect();
        if bug == Bug::Overtaken && number > count / 2 {
            batch.reverse()
        }
        if bug == Bug::HandledTwice && number > count / 2 {
            batch.insert(1, batch[0].clone())
        }
        asked.extend(batch.iter().cloned());
        batch.into_iter().for_each(|message| io.emit(message));
        io.flush().await;
    }
    while answers.len() < asked.len() {
        if let Ok(run) = io.receive().await.into_answers::<Move>() {
            answers.extend(run.into_iter().map(|answer| answer.map_err(|error| error.text().to_string())))
        }
    }
    // answers of different bees overtake each other; which is whose, the notes say
    asked.into_iter().zip(answers).collect()
}

fn run(seed: u64, count: u64, bug: Bug) -> Seen {
    NOTES.lock().clear();
    CLONES_ARE_SHARED.store(bug == Bug::LostUndo, Ordering::Relaxed);
    READS_ELSEWHERE.store(bug == Bug::UnmappedRead, Ordering::Relaxed);
    let answers = on_workers(3, async {
        let (hive, _) = start(Hive::builder().app::<Bank>().app::<Books>(), On::Memory);
        let senders: Vec<_> = (0..SENDERS)
            .map(|s| tokio::spawn(sender(hive.clone(), s, seed * 100 + s, count / SENDERS, bug)))
            .collect();
        let mut answers = Vec::new();
        for sender in senders {
            answers.extend(sender.await.unwrap())
        }
        hive.idle().await;
        for account in 0..ACCOUNTS {
            for app in [0, 1] {
                hive.request(Look { app, account }).await.unwrap();
            }
        }
        hive.stop(Duration::from_secs(5)).await;
        answers
    });
    CLONES_ARE_SHARED.store(false, Ordering::Relaxed);
    Seen { notes: std::mem::take(&mut *NOTES.lock()), answers: answers.into_iter().collect() }
}

/// What no single bee would have done; nothing, if all is well.
fn difference(seen: &Seen) -> Option<String> {
    in_order(&seen.notes).or_else(|| once(seen)).or_else(|| again(&seen.notes))
}

/// Messages of one sender to one cell stand in the order in which they were sent.
fn in_order(notes: &Notes) -> Option<String> {
    let mut last: HashMap<(bool, u64, u64), i64> = HashMap::new();
    for (given, _) in notes {
        let (sent, number) = match given {
            Given::Move(m) => ([(false, m.sender, m.from), (false, m.sender, m.to)], m.number as i64),
            Given::Moved(m) => ([(true, m.from, m.to); 2], m.number),
            Given::Look(_) => continue,
        };
        for sent in sent {
            let before = last.insert(sent, number).unwrap_or(0);
            if before > number {
                return Some(format!("{given:?} was handled after number {before}"));
            }
        }
    }
    None
}

/// What was emitted was handled, once, and so was what came from outside; each answer is one that a handler gave.
fn once(seen: &Seen) -> Option<String> {
    let mut open: BTreeMap<Given, i64> = BTreeMap::new();
    let (mut given_answers, mut noted_answers) = (vec![], vec![]);
    for (asked, answer) in &seen.answers {
        *open.entry(Given::Move(asked.clone())).or_default() += 1;
        given_answers.push(answer.clone());
    }
    for (given, left) in &seen.notes {
        if !matches!(given, Given::Look(_)) {
            *open.entry(given.clone()).or_default() -= 1
        }
        if let Left::Committed(_, emitted) = left {
            for moved in emitted {
                *open.entry(Given::Moved(moved.clone())).or_default() += 1
            }
        }
        if let Given::Move(_) = given {
            noted_answers.push(match left {
                Left::Committed(answer, _) => Ok(*answer),
                Left::Failed | Left::Panicked => Err("as asked".to_string()),
            })
        }
    }
    let wrong = open.into_iter().find(|(_, count)| *count != 0);
    if let Some((given, count)) = wrong {
        return Some(format!(
            "{given:?} was handled {} times too {}",
            count.abs(),
            if count > 0 { "few" } else { "many" }
        ));
    }
    given_answers.sort();
    noted_answers.sort();
    (given_answers != noted_answers).then(|| "the answers are others than those that handlers gave".into())
}

/// The same transactions in the same order on a single bee leave the same, one by one.
fn again(notes: &Notes) -> Option<String> {
    let none = toml::Table::new;
    let (mut bank, mut books) = (instance::<Bank>(none()).unwrap(), instance::<Books>(none()).unwrap());
    NOTES.lock().clear();
    for (given, left) in notes {
        match given {
            Given::Move(message) => drop(deliver(&mut bank, message)),
            Given::Moved(message) => drop(deliver(&mut books, message)),
            Given::Look(message) if message.app == 0 => drop(deliver(&mut bank, message)),
            Given::Look(message) => drop(deliver(&mut books, message)),
        }
        let noted = NOTES.lock().pop();
        if noted.as_ref() != Some(&(given.clone(), left.clone())) {
            return Some(format!("{given:?} left {left:?}; with a single bee: {noted:?}"));
        }
    }
    None
}

#[test]
fn many_bees_do_what_one_could_have_done() {
    for seed in 1..=4 {
        let seen = run(seed, 12_000, Bug::None);
        let moves = seen.notes.iter().filter(|(given, _)| matches!(given, Given::Move(_))).count();
        assert!(moves >= 12_000 && seen.answers.len() == moves);
        if let Some(found) = difference(&seen) {
            panic!("seed {seed}: {found}")
        }
        // and one that did not is told apart from it: the notes are looked at, not merely taken
        let mut cut = Seen { notes: seen.notes.clone(), answers: seen.answers.clone() };
        cut.notes.remove(cut.notes.len() / 2);
        assert!(difference(&cut).is_some());
    }
    // in one test, since the bugs are everybody's while they last
    for (bug, said) in [
        (Bug::LostUndo, "with a single bee"),
        (Bug::Overtaken, "was handled after number"),
        (Bug::UnmappedRead, "with a single bee"),
        (Bug::HandledTwice, "too many"),
    ] {
        let found = difference(&run(9, 6_000, bug)).unwrap_or_default();
        assert!(found.contains(said), "{bug:?}: {found:?}");
    }
}
