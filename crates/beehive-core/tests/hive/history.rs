//! `History`: replays with a single bee the messages that many bees on several workers handled while they
//! merged and moved. The hive runs in memory, and on a journal that refuses entries and crashes. Injected
//! bugs prove that the history finds deviations.

use crate::load::{Chance, On, journals, on_workers, start};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::{Deviation, Fault, History, HistorySummary, TestJournal, shake};
use beehive_core::{App, Builder, Ctx, Dict, Error, Hive, Message, Table, handlers};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// A bug of an app, which stands for a bug of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// The changes that a failed transaction made to an account remain.
    LostUndo,
    /// A handler reads something that depends on where it runs.
    UnmappedRead,
}

static CLONES_ARE_SHARED: AtomicBool = AtomicBool::new(false);
static READS_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Bugs affect every run in the process, so tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

thread_local!(static READ_HERE: Cell<i64> = const { Cell::new(0) });

/// An amount whose clone may share its value.
#[derive(Debug, Default)]
struct Amount(Arc<AtomicI64>);

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

#[derive(Message, Clone, Debug)]
#[message(reply = i64)]
struct Move {
    from: u64,
    to: u64,
    amount: i64,
    /// Selects how the transaction ends.
    end: u8,
}
#[derive(Message, Debug)]
struct Moved {
    from: u64,
    to: u64,
    number: i64,
    amount: i64,
}
#[derive(Message, Debug)]
struct Reminder {
    account: u64,
    left: u64,
}
/// A message to every account.
#[derive(Message, Debug)]
struct Interest(i64);
/// A message that a stateless handler passes on.
#[derive(Message, Debug)]
struct Rumor(u64);
#[derive(Message, Debug)]
struct Heard(u64);
/// Answered by `Bank` if it knows the account, otherwise by `Books`.
#[derive(Message, Debug)]
#[message(reply = i64)]
struct Ask(u64);

#[derive(App)]
struct Bank {
    amounts: Dict<u64, Amount>,
    sent: Dict<u64, i64>,
    #[volatile]
    hot: Dict<u64, u64>,
}
#[handlers]
impl Bank {
    #[rcv(joins)]
    fn transfer(&mut self, msg: &Move, ctx: &mut Ctx) -> Result<i64, Error> {
        let mut less = self.amounts.entry(msg.from).or_default().add(-msg.amount);
        let number = self.sent.entry(msg.from).or_default();
        *number += 1;
        ctx.emit(Moved { from: msg.from, to: msg.to, number: *number, amount: msg.amount });
        self.amounts.entry(msg.to).or_default().add(msg.amount);

        let hot = self.hot.entry(msg.from).or_default();
        *hot += 1;
        if hot.is_multiple_of(5) {
            ctx.after(Duration::from_millis(*hot % 4), Reminder { account: msg.from, left: 3 });
            ctx.emit(Rumor(msg.from))
        }

        if READS_ELSEWHERE.load(Ordering::Relaxed) {
            READ_HERE.set(READ_HERE.get() + 1);
            less += READ_HERE.get()
        }

        match msg.end {
            0 => Err("as asked".into()),
            // Unwinds without the panic hook, to keep the output of the test clean.
            1 => std::panic::resume_unwind(Box::new("as asked")),
            _ => Ok(less + (ctx.rng().below(3) as i64)),
        }
    }
    #[rcv(sharded)]
    fn remind(&mut self, msg: &Reminder, ctx: &mut Ctx) {
        let sent = self.sent.entry(msg.account).or_default();
        *sent += 1;
        // In one of three cases, the clock decides that this was the last reminder. A rule that depends on
        // `sent` alone would let three reminders of one account postpone one another forever.
        if msg.left > 0 && !(ctx.now().as_nanoseconds() / 1_000).is_multiple_of(3) {
            ctx.postpone(Duration::from_millis(msg.left));
        }

        if msg.left > 0 && ctx.rng().below(2) == 0 {
            ctx.after(Duration::from_millis(1), Reminder { account: msg.account, left: 0 })
        }
    }
    #[rcv(each = amounts)]
    fn interest(&mut self, account: &u64, msg: &Interest, ctx: &mut Ctx) {
        let amount = self.amounts.entry(*account).or_default().add(msg.0);
        ctx.emit(Moved { from: *account, to: account % 7, number: amount, amount: msg.0 })
    }
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask) -> Option<i64> {
        self.amounts.get(&msg.0).map(|amount| amount.add(0)).filter(|amount| amount % 2 == 0)
    }
}

#[derive(App)]
struct Books {
    /// A number that depends on all entries and their order.
    entries: Table<u64, u64, i64>,
    #[rows(max = 5, evict = first)]
    last: Table<u64, i64, i64>,
}
#[handlers]
impl Books {
    #[rcv(sharded)]
    fn moved(&mut self, msg: &Moved) {
        let entries = self.entries.at(msg.to).entry(msg.from % 4).or_default();
        *entries = entries.wrapping_mul(31).wrapping_add(msg.amount + msg.number);
        self.last.at(msg.to).insert(*entries % 100, msg.amount);
    }
    #[rcv(stateless)]
    fn rumor(&mut self, msg: &Rumor, ctx: &mut Ctx) {
        ctx.emit(Heard(msg.0 % 11));
        ctx.emit(Heard(msg.0 % 13))
    }
    #[rcv(sharded)]
    fn heard(&mut self, msg: &Heard, ctx: &mut Ctx) {
        let now = ctx.now().as_nanoseconds() as i64 % 1_000;
        *self.entries.at(msg.0).entry(9).or_default() += now
    }
    #[rcv(sharded)]
    fn ask(&mut self, msg: &Ask) -> i64 {
        self.entries.at(msg.0).values().fold(0i64, |sum, entry| sum.wrapping_add(*entry))
    }
}

const ACCOUNTS: u64 = 60;
/// Few merges, so many bees remain.
const MERGES: u64 = 8;
const SENDERS: u64 = 5;

fn apps() -> Builder {
    Hive::builder().app::<Bank>().app::<Books>().seed(42)
}

async fn sender(hive: Hive, seed: u64, count: u64) {
    let mut chance = Chance(seed);
    let mut io = hive.io();
    let mut number = 0;

    while number < count {
        for _ in 0..1 + chance.below(16) {
            number += 1;
            let from = chance.below(ACCOUNTS);
            match chance.below(60) {
                0 => io.emit(Interest(chance.below(5) as i64)),
                1 => io.emit(Rumor(from)),
                2..=4 => io.emit(Ask(from)),
                pick => {
                    let to = if pick == 5 { chance.below(ACCOUNTS) } else { from };
                    let (amount, end) = (chance.below(100) as i64, chance.below(20) as u8);
                    io.emit(Move { from, to, amount, end })
                }
            }
        }

        io.flush().await;
        while io.try_receive().is_some() {}
    }
}

/// Sends messages from outside.
async fn load(hive: &Hive, seed: u64, count: u64) -> Vec<tokio::task::JoinHandle<()>> {
    (0..SENDERS).map(|s| tokio::spawn(sender(hive.clone(), seed * 100 + s, count / SENDERS))).collect()
}

/// Waits until the hive is idle and no timer is pending.
async fn done(hive: &Hive) {
    loop {
        hive.idle().await;
        if hive.status().timers == 0 {
            return hive.idle().await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await
    }
}

fn run(seed: u64, count: u64, on: On, bug: Bug, fault: Option<Fault>) -> Result<HistorySummary, Deviation> {
    CLONES_ARE_SHARED.store(bug == Bug::LostUndo, Ordering::Relaxed);
    READS_ELSEWHERE.store(bug == Bug::UnmappedRead, Ordering::Relaxed);
    let found = on_workers(3, async {
        let history = History::new();
        let (hive, journal) = start(history.record(apps()), on);
        let shaking = shake(&hive, seed, MERGES);
        for sender in load(&hive, seed, count).await {
            sender.await.unwrap()
        }

        shaking.end().await;
        done(&hive).await;
        if let Some(journal) = journal {
            assert!(journal.refused() > 0)
        }

        if let Some(fault) = fault {
            assert!(history.tamper(fault), "{fault:?}: there is nothing that can have it")
        }

        // The clones of the replay must be deep copies. Shared clones would change the amounts of the
        // original execution.
        CLONES_ARE_SHARED.store(false, Ordering::Relaxed);
        let found = history.compare(&hive).await;
        hive.stop(Duration::from_secs(5)).await;
        found
    });

    CLONES_ARE_SHARED.store(false, Ordering::Relaxed);
    READS_ELSEWHERE.store(false, Ordering::Relaxed);
    found
}

#[test]
fn many_bees_match_a_single_bee_and_injected_faults_are_found() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for seed in 1..=2 {
        for (on, count) in [(On::Memory, 6_000), (On::Journal, 1_500), (On::Journals, 1_500)] {
            let seen = run(seed, count, on, Bug::None, None);
            let seen = seen.unwrap_or_else(|found| panic!("seed {seed}, {on:?}: {found}"));
            assert!(seen.committed > count as usize && seen.failed > 50 && seen.bees > 20, "{seen:?}");
            assert!(seen.sent > count as usize / 2 && seen.cells > 100, "{seen:?}");
        }
    }

    for bug in [Bug::LostUndo, Bug::UnmappedRead] {
        let found = run(9, 3_000, On::Memory, bug, None);
        assert!(matches!(found, Err(Deviation::Otherwise { .. })), "{bug:?}: {found:?}");
    }

    for fault in [Fault::Overtaken, Fault::Twice, Fault::Lost, Fault::BeforeItsCause] {
        let found = run(9, 3_000, On::Memory, Bug::None, Some(fault));
        let bites = match &found {
            Err(Deviation::Overtaken { .. }) => fault == Fault::Overtaken,
            // A message that was moved forward may even precede its own emission.
            Err(Deviation::NotDue { .. }) => fault != Fault::Lost,
            // Without the preceding message, the next one ends differently.
            Err(Deviation::Otherwise { .. }) => fault == Fault::Lost || fault == Fault::Twice,
            _ => false,
        };
        assert!(bites, "{fault:?}: {found:?}");
    }
}

/// A hive that crashes and restarts: the history in its log, across all incarnations, must be one that a
/// single bee would have produced.
#[test]
fn the_logged_history_of_many_incarnations_matches_a_single_bee() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for seed in 1..=2 {
        live_and_die(seed, 1, |builder, logs| builder.journals(logs))
    }
}

/// The same with one log for each app. Messages between the apps are in both logs, and one log may be ahead
/// of the other when the hive is killed.
#[test]
fn the_history_in_two_logs_matches_a_single_bee() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for seed in 1..=many(4) {
        live_and_die(seed, 2, |builder, logs| {
            let apps = [["bank"], ["books"]].into_iter();
            apps.zip(logs)
                .fold(builder, |builder, (apps, (log, colony))| builder.journal_of(apps, log, colony))
        })
    }
}

/// The same with the bees of both apps spread over the logs, while the bees move between the logs.
#[test]
fn the_history_of_bees_that_move_between_logs_matches_a_single_bee() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    for seed in 1..=many(2) {
        live_and_die(seed, journals() as usize, |builder, logs| builder.journals(logs))
    }
}

/// `BEEHIVE_LONG=1` runs 25 times as many seeds.
fn many(seeds: u64) -> u64 {
    if std::env::var_os("BEEHIVE_LONG").is_some() { seeds * 25 } else { seeds }
}

type Log = (Arc<dyn Journal>, LogState);

/// Runs a hive on this number of logs. The hive is killed and restarted. `divide` assigns apps to logs.
fn live_and_die(seed: u64, count_of_logs: usize, divide: impl Fn(Builder, Vec<Log>) -> Builder) {
    {
        let history = History::new();
        let mut logs: Vec<Vec<Vec<u8>>> = vec![Vec::new(); count_of_logs];
        let lives = 4;
        for life in 0..lives {
            on_workers(3, async {
                let (mut journals, mut colonies) = (Vec::new(), Vec::new());
                for log in &logs {
                    let mut colony = crate::load::killed(log);
                    if life % 2 == 1 {
                        // as after a clean stop, so that unfinished messages do not run under a marker
                        colony.marker = None
                    }
                    let journal = TestJournal::start(seed * 10 + life, 40, colony.last);
                    journal.depose(4);
                    colonies.push((journal.clone() as Arc<dyn Journal>, colony));
                    journals.push(journal)
                }
                let hive = history.record(divide(apps(), colonies)).start().unwrap();
                let shaking = shake(&hive, seed, MERGES);
                let senders = load(&hive, seed * 10 + life, 600).await;

                if life + 1 < lives {
                    tokio::time::sleep(Duration::from_millis(10 + 7 * life)).await
                } else {
                    for sender in senders {
                        sender.await.unwrap()
                    }
                    done(&hive).await
                }

                shaking.end().await;
                if life + 1 == lives {
                    let seen = history.compare(&hive).await;
                    let seen = seen.unwrap_or_else(|found| panic!("seed {seed}: {found}"));
                    assert!(seen.committed > 600 && seen.failed > 20, "{seen:?}");
                }

                for (journal, log) in journals.iter().zip(&mut logs) {
                    journal.stop();
                    log.extend(journal.log())
                }
                history.died_with(logs.iter().map(Vec::as_slice));
                hive.stop(Duration::ZERO).await;
            })
        }
    }
}
