//! Several logs in one hive: apps exchange messages, and each app has its own log. When the hive is killed,
//! one log may be ahead of the others.

use crate::load::{Chance, eventually, on_workers};
use beehive_core::journal::{BeeImage, Entry, Journal, LaneId, LogState, MessageId, Record};
use beehive_core::testing::{TestJournal, move_one};
use beehive_core::{App, Builder, Ctx, Dict, Hive, Io, Message, handlers};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
struct Begin(u64);
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
/// A message to each cell of `Fourth`.
#[derive(Message)]
struct Round(u64);
#[derive(Message)]
struct Plant(u64);
/// Merges the owners of two cells of `Second`.
#[derive(Message)]
struct Unite(u64, u64);
#[derive(Message)]
struct Clear(u64);
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

const KEYS: u64 = 24;
/// Number of cells of `Fourth` that exist from the start and that rounds visit.
const PLANTED: u64 = 40;
const ROUND_EVERY: u64 = 50;

#[derive(App)]
struct First {
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
struct Second {
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
struct Third {
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
    fn brief(&mut self, msg: &ToFourth) {
        let key = 1_000 + msg.id % 50;
        if msg.id % 50 < 25 {
            self.arrivals.entry(key).or_default();
        } else {
            self.arrivals.remove(&(key - 25));
        }
    }
}

#[derive(App)]
struct Fourth {
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
        add(cell, msg.id.wrapping_add(if is_late { 1 << 40 } else { 0 }), from, number);
        if is_late {
            // the numbers of messages from timers are not recorded
            cell.2.remove(&from);
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

const APPS: [&str; 4] = ["first", "second", "third", "fourth"];
const LANE: u64 = 9;

fn apps() -> Builder {
    Hive::builder().app::<First>().app::<Second>().app::<Third>().app::<Fourth>().seed(3)
}

fn replay(log: &[Vec<u8>]) -> LogState {
    LogState::replay(log.iter().map(Vec::as_slice)).unwrap()
}

/// How a hive divides apps and bees among its logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Divided {
    /// Each app has its own log.
    ByApp,
    /// The bees of every app are spread over all logs, and move between them.
    ByBee,
}

/// Starts a hive on several logs.
fn start(logs: &[Vec<Vec<u8>>], divided: Divided, seed: u64, refuse: u64) -> (Hive, Vec<Arc<TestJournal>>) {
    let mut builder = apps();
    let (mut journals, mut spread) = (Vec::new(), Vec::new());
    for (at, log) in logs.iter().enumerate() {
        let state = replay(log);
        let journal = TestJournal::start(seed.wrapping_mul(31) + at as u64, refuse, state.last);
        journal.depose(4);
        journals.push(journal.clone());
        if divided == Divided::ByBee {
            spread.push((journal as Arc<dyn Journal>, state));
            continue;
        }
        let its_apps = APPS.iter().skip(at).step_by(logs.len()).copied();
        builder = builder.journal_of(its_apps, journal, state);
    }
    if divided == Divided::ByBee {
        builder = builder.journals(spread)
    }
    (builder.start().unwrap(), journals)
}

/// Number of bees that move at the same time.
const MOVERS: u64 = 8;

/// Moves one bee after the other until `end` is set. Counts the completed moves in `moved`.
async fn move_bees(hive: Hive, seed: u64, end: Arc<AtomicBool>, moved: Arc<AtomicU64>) {
    for round in 0.. {
        if end.load(Ordering::Acquire) {
            break;
        }
        let has_moved = move_one(&hive, seed.wrapping_mul(1 << 20) + round).await;
        moved.fetch_add(u64::from(has_moved), Ordering::Relaxed);
        tokio::task::yield_now().await
    }
}

/// Adds the counts of one cell: the number of messages, the sum of the squares of their ids, and the number
/// of messages out of order.
fn plus((count, sum, disorder): (u64, u64, u64), cell: &Arrivals) -> (u64, u64, u64) {
    (count + cell.0, sum.wrapping_add(cell.1), disorder + cell.3)
}

fn squares(ids: impl Iterator<Item = u64>) -> (u64, u64, u64) {
    ids.fold((0, 0, 0), |(count, sum, _), id| (count + 1, sum.wrapping_add(id.wrapping_mul(id)), 0))
}

/// Checks that each app has handled each message once, and the messages of each sender in order.
async fn check(hive: &Hive, messages: u64) {
    let all = || 0..messages;
    let (mut second, mut both, mut third, mut fourth) = ((0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0));
    for key in 0..10 {
        second = plus(second, &hive.request(AtSecond(key)).await.unwrap())
    }
    for key in 0..KEYS {
        both = plus(both, &hive.request(AtSecond(100 + key)).await.unwrap());
        third = plus(third, &hive.request(AtThird(key)).await.unwrap())
    }
    for key in 0..16 {
        fourth = plus(fourth, &hive.request(AtFourth(key)).await.unwrap())
    }
    assert_eq!(second, squares(all()));
    assert_eq!(both, squares(all().filter(|id| id % 3 == 0)));
    assert_eq!(third, squares(all().filter(|id| id % 3 == 0 && id % 2 != 0)));
    let late = all().filter(|id| id % 7 == 0).map(|id| id + (1 << 40));
    assert_eq!(fourth, squares(all().chain(late)));

    let rounds = all().filter(|id| id % ROUND_EVERY == 0);
    let rounds = rounds.fold((0, 0), |(count, sum), id| (count + 1, sum + id));
    for key in 0..PLANTED {
        assert_eq!(hive.request(RoundsAt(key)).await, Ok(rounds), "cell {key}")
    }
}

/// Checks an idle hive: all outboxes are empty, no bee is moving, and each cell has one owner.
fn check_at_rest(logs: &[Vec<Vec<u8>>]) {
    let mut owned = BTreeSet::new();
    for (at, log) in logs.iter().enumerate() {
        let state = replay(log);
        assert!(state.outbox.is_empty(), "log {at}: {:?}", state.outbox.keys());
        assert!(state.sweeps.is_empty(), "log {at}: {:?}", state.sweeps.keys());
        assert!(state.staged.is_empty() && state.frozen.is_empty(), "log {at}");
        assert!(state.has_one_owner_per_cell());
        for ((app, bee), image) in &state.bees {
            assert!(!image.is_frozen, "log {at}: {bee}");
            assert!(image.cells.iter().all(|cell| owned.insert((*app, *cell))), "log {at}: {bee}")
        }
    }
    check_moves(logs)
}

/// Checks that each adopted bee has the cells, rows and outbox that it had in the other log when it was
/// frozen.
fn check_moves(logs: &[Vec<Vec<u8>>]) {
    let mut frozen: BTreeMap<_, Vec<(BeeImage, Vec<MessageId>)>> = BTreeMap::new();
    let mut staged: BTreeMap<_, Vec<(BeeImage, Vec<MessageId>)>> = BTreeMap::new();
    for log in logs {
        let mut state = LogState::default();
        for entry in log.iter().map(|bytes| Entry::decode(bytes).unwrap()) {
            if let Record::Adopt { app, bee, epoch } = entry.record {
                let copy = state.staged[&(app, bee)].clone();
                let outbox = copy.outbox.iter().map(|emit| emit.id).collect();
                staged.entry((app, bee, epoch)).or_default().push((copy.bee, outbox))
            }
            let has_effect = state.apply(&entry);
            if let Record::Freeze { app, bee, lanes } = entry.record
                && has_effect
            {
                let image = state.bees[&(app, bee)].clone();
                let of_lane = |lane: &LaneId| {
                    let sweeps = state.sweeps.range(MessageId::all_of(*lane)).map(|(id, _)| *id);
                    state
                        .outbox
                        .range(MessageId::all_of(*lane))
                        .map(|(id, _)| *id)
                        .chain(sweeps)
                        .collect::<Vec<_>>()
                };
                let outbox = lanes.iter().flat_map(of_lane).collect();
                frozen.entry((app, bee, image.epoch.next())).or_default().push((image, outbox))
            }
        }
    }
    for (of, copies) in staged {
        let [(copy, outbox)] = &copies[..] else { panic!("{of:?} is adopted {} times", copies.len()) };
        // an earlier move, which was abandoned, froze the bee at the same epoch
        let ids = |ids: &[MessageId]| ids.iter().copied().collect::<BTreeSet<_>>();
        let differences = |(image, before): &(BeeImage, Vec<MessageId>)| {
            let (before, after) = (ids(before), ids(outbox));
            let lost: Vec<_> = before.difference(&after).copied().collect();
            let added: Vec<_> = after.difference(&before).copied().collect();
            // The sequence numbers of refused records are not reused, and the newest cells may not be in the
            // log yet.
            let is_copy = image.state == copy.state
                && image.next_seq <= copy.next_seq
                && image.cells.is_subset(&copy.cells);
            (is_copy, lost, added)
        };
        let found: Vec<_> = frozen[&of].iter().map(differences).collect();
        let is_copy =
            found.iter().any(|(is_copy, lost, added)| *is_copy && lost.is_empty() && added.is_empty());
        assert!(is_copy, "what is adopted of {of:?} is not what was frozen: {found:?}")
    }
}

async fn emit(io: &mut Io, messages: std::ops::Range<u64>, chance: &mut Chance) {
    for id in messages {
        io.emit(Begin(id));
        if id.is_multiple_of(64) {
            io.flush().await;
            while io.try_receive().is_some() {}
            if chance.below(8) == 0 {
                tokio::task::yield_now().await
            }
        }
    }
    io.flush().await
}

/// Sends messages to a hive that is killed `lives - 1` times, each time with its logs at different points.
fn live_and_die((divided, count_of_logs): (Divided, usize), seed: u64, messages: u64, lives: u64) {
    let mut logs: Vec<Vec<Vec<u8>>> = vec![Vec::new(); count_of_logs];
    let (mut done, moved) = (0, Arc::<AtomicU64>::default());
    for life in 0..lives {
        (logs, done) = on_workers(3, async {
            let (hive, journals) = start(&logs, divided, seed * 100 + life, 50);
            let end_of_moves = Arc::<AtomicBool>::default();
            let mover = |number| {
                let seed = (seed * 100 + life) * MOVERS + number;
                tokio::spawn(move_bees(hive.clone(), seed, end_of_moves.clone(), moved.clone()))
            };
            let movers: Vec<_> = (0..MOVERS).map(mover).collect();
            let mut chance = Chance(seed * 7 + life);
            if life == 0 {
                for key in 0..PLANTED {
                    hive.emit(Plant(key)).await
                }
                hive.idle().await
            }

            let merging = hive.clone();
            let mut pick = Chance(seed + 99 * life);
            let merges = tokio::spawn(async move {
                for _ in 0..4 {
                    merging.emit(Unite(pick.below(10), pick.below(10))).await;
                    tokio::time::sleep(Duration::from_millis(3)).await
                }
            });

            let life_time = Duration::from_millis(20 + chance.below(60));
            let mut io = hive.io();
            io.resume(LANE, done);
            let until = messages * (life + 1) / lives;
            let is_last = life + 1 == lives;
            tokio::select! {
                biased;
                () = emit(&mut io, done..until, &mut chance) => {}
                () = tokio::time::sleep(life_time), if !is_last => {}
            }

            if is_last {
                let all = || io.floor() == messages;
                eventually("all are done", Duration::from_secs(60), all).await;
                merges.await.unwrap();
                end_of_moves.store(true, Ordering::Release);
                for mover in movers {
                    mover.await.unwrap()
                }
                loop {
                    hive.idle().await;
                    if hive.status().timers == 0 {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                hive.idle().await;
                check(&hive, messages).await;
                journals.iter().for_each(|journal| journal.accept_all());
                // long enough for two rounds of the acknowledgments that the hive writes ten times a second
                tokio::time::sleep(Duration::from_millis(400)).await
            }

            end_of_moves.store(true, Ordering::Release);
            let floor = io.floor();
            for (journal, log) in journals.iter().zip(&mut logs) {
                journal.stop();
                log.extend(journal.log())
            }
            hive.stop(Duration::ZERO).await;
            (logs, floor)
        });
    }
    check_at_rest(&logs);
    let moved = moved.load(Ordering::Relaxed);
    let must_move = if divided == Divided::ByBee && count_of_logs > 1 { messages / 100 } else { 0 };
    assert!(moved >= must_move, "{moved} moves");
}

#[test]
fn each_message_is_handled_once_wherever_the_logs_end() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { 40 } else { 2 };
    for seed in 1..=seeds {
        for logs in [1, 2, 4] {
            live_and_die((Divided::ByApp, logs), seed, 6_000, 5)
        }
    }
}

/// The bees of all apps are spread over the logs, and move all the time.
#[test]
fn each_message_is_handled_once_wherever_bees_move() {
    let seeds = if std::env::var_os("BEEHIVE_LONG").is_some() { 40 } else { 2 };
    for seed in 1..=seeds {
        for logs in [1, 2, 8] {
            live_and_die((Divided::ByBee, logs), seed, 6_000, 5)
        }
    }
}

/// A receiver in another log remembers a sender's messages only until the sender announces a floor above
/// them. From then on, the sender does not resend them.
#[test]
fn what_came_from_another_log_is_forgotten() {
    on_workers(2, async {
        let (hive, journals) = start(&[const { Vec::new() }; 4], Divided::ByApp, 5, 0);
        let mut io = hive.io();
        for id in 0..4_000 {
            io.emit(Begin(id));
            if id.is_multiple_of(100) {
                io.flush().await;
                while io.try_receive().is_some() {}
            }
        }
        io.flush().await;
        hive.idle().await;
        let brief =
            |state: &LogState| state.bees.values().filter(|bee| bee.state.images().next().is_none()).count();
        eventually("bees without cells have ended", Duration::from_secs(20), || {
            let log = journals[2].log();
            brief(&replay(&log)) == 0
        })
        .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        // the next messages announce a floor above the earlier ones
        for id in 4_000..4_000 + 10 * KEYS {
            io.emit(Begin(id))
        }
        io.flush().await;
        hive.idle().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        for journal in &journals {
            let state = replay(&journal.log());
            let numbers: usize = state.bees.values().map(|bee| bee.seen.size()).sum();
            let lanes: usize = state.bees.values().map(|bee| bee.seen.floors().count()).sum();
            assert!(numbers <= 4 * lanes + 300, "{numbers} numbers of {lanes} lanes");
            journal.stop()
        }
        hive.stop(Duration::ZERO).await;
    })
}

/// A message that no app answers must be neither lost nor delayed because another app's log commits nothing.
#[test]
fn a_log_that_cannot_commit_holds_up_only_its_own_apps() {
    on_workers(2, async {
        let (hive, journals) = start(&[const { Vec::new() }; 2], Divided::ByApp, 6, 0);
        // the log of `second` and `fourth`
        journals[1].stall(true);
        let (mut to_stalled, mut io) = (hive.io(), hive.io());
        to_stalled.emit(Plant(1));
        to_stalled.flush().await;
        for key in 0..20_000 {
            io.emit(Clear(key % 100));
            if key.is_multiple_of(100) {
                io.flush().await
            }
        }
        io.flush().await;
        let cleared = || io.floor() == 20_000;
        eventually("the other log goes on", Duration::from_secs(20), cleared).await;
        assert_eq!(to_stalled.floor(), 0);
        journals[1].stall(false);
        eventually("all are done", Duration::from_secs(20), || to_stalled.floor() == 1).await;
        hive.stop(Duration::from_secs(5)).await;
        journals.iter().for_each(|journal| journal.stop())
    })
}
