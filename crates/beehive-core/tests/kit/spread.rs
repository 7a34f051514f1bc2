//! Runs the same scenario with different distributions of cells: correct apps pass, and each kind of mistake
//! is found.

use beehive_core::testing::{Kit, Spread};
use beehive_core::{App, Ctx, Dict, Key, Message, Table, handlers};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Account(u64);

#[derive(Message)]
struct Deposit {
    to: Account,
    amount: u64,
}
#[derive(Message)]
#[message(reply = u64)]
struct Transfer {
    from: Account,
    to: Account,
    amount: u64,
}
#[derive(Message)]
#[message(reply = u64)]
struct Balance(Account);
#[derive(Message, PartialEq, Eq, Debug)]
struct Interest(u64);

#[derive(App)]
struct Bank {
    balance: Dict<Account, u64>,
    log: Table<Account, u64, u64>,
}
#[handlers]
impl Bank {
    #[rcv]
    fn deposit(&mut self, msg: &Deposit) {
        *self.balance.entry(msg.to).or_default() += msg.amount
    }
    #[rcv(joins)]
    fn transfer(&mut self, msg: &Transfer) -> beehive_core::Result<u64> {
        let from = self.balance.get_mut(&msg.from).ok_or("no such account")?;
        *from = from.checked_sub(msg.amount).ok_or("not enough")?;
        let left = *from;
        *self.balance.entry(msg.to).or_default() += msg.amount;
        let log = self.log.at(msg.from);
        let number = log.last().map_or(0, |(n, _)| n + 1);
        log.insert(number, msg.amount);
        Ok(left)
    }
    #[rcv]
    fn balance(&mut self, msg: &Balance) -> u64 {
        self.balance.get(&msg.0).copied().unwrap_or(0)
    }
    #[every("1h", each = balance)]
    fn interest(&mut self, key: &Account, ctx: &mut Ctx) {
        if let Some(balance) = self.balance.get_mut(key) {
            *balance += *balance / 10;
            ctx.emit(Interest(*balance))
        }
    }
}

fn banking(kit: &mut Kit) {
    kit.emit_all((0..20).map(|n| Deposit { to: Account(n), amount: 100 + n }));
    for n in 0..10 {
        let (from, to) = (Account(n), Account(n * 7 % 20));
        let _ = kit.request(Transfer { from, to, amount: 30 * n });
    }

    kit.advance(Duration::from_secs(2 * 3600 + 60));
    for n in 0..20 {
        kit.request(Balance(Account(n))).unwrap();
    }
}

#[test]
fn a_correct_app_passes_every_distribution() {
    Kit::of::<Bank>().merging_runs(20).check(banking);
}

#[test]
fn cells_are_distributed_as_configured() {
    let bees = |spread| {
        let mut kit = Kit::of::<Bank>().start_spread(spread);
        kit.emit_all((0..20).map(|n| Deposit { to: Account(n), amount: 1 }));
        let alone = kit.bees::<Bank>();
        for _ in 0..40 {
            kit.emit(Deposit { to: Account(3), amount: 1 });
        }
        (alone, kit.bees::<Bank>())
    };

    assert_eq!(bees(Spread::Apart), (20, 20));
    assert_eq!(bees(Spread::Together), (1, 1));
    let (before, after) = bees(Spread::Merging { seed: 5 });
    assert!(after < before && before > 10, "{before} bees, later {after}");
}

/// Numbers the messages that it gets with a global counter, which is not in a cell.
#[derive(App)]
struct Outsider {
    number: Dict<u64, u64>,
}
static NEXT: AtomicU64 = AtomicU64::new(0);
#[derive(Message)]
struct See(u64);
#[handlers]
impl Outsider {
    #[rcv]
    fn see(&mut self, msg: &See) {
        self.number.put(msg.0, NEXT.fetch_add(1, Ordering::Relaxed));
    }
}

#[test]
fn state_outside_of_cells_is_found() {
    let found = Kit::of::<Outsider>()
        .compare(|kit| {
            kit.emit(See(1));
        })
        .unwrap_err();

    assert_eq!(found.at, "the final cells of `outsider` differ");
    assert_eq!(
        (found.together.as_slice(), found.spread),
        (&["number[1] = 0".to_string()][..], Spread::Apart)
    );
}

#[derive(Clone, Serialize, Deserialize)]
struct Draw {
    luck: u64,
}
/// Draws a random number for each message and for each cell.
#[derive(App)]
struct Lottery {
    draws: Table<u64, u64, Draw>,
}
#[derive(Message)]
struct Play(u64);
#[derive(Message)]
struct PlayAll;
#[handlers]
impl Lottery {
    #[rcv]
    fn play(&mut self, msg: &Play, ctx: &mut Ctx) {
        let luck = ctx.rng().below(1_000_000);
        let draws = self.draws.at(msg.0);
        draws.insert(draws.len() as u64, Draw { luck });
    }
    #[rcv(each = draws)]
    fn play_all(&mut self, key: &u64, _: &PlayAll, ctx: &mut Ctx) {
        let luck = ctx.rng().below(1_000_000);
        let draws = self.draws.at(*key);
        draws.insert(draws.len() as u64, Draw { luck });
    }
    #[every("10s", each = draws)]
    fn again(&mut self, key: &u64, ctx: &mut Ctx) {
        let luck = ctx.rng().below(1_000_000);
        let draws = self.draws.at(*key);
        draws.insert(draws.len() as u64, Draw { luck });
    }
}

#[test]
fn random_numbers_do_not_depend_on_bees() {
    Kit::of::<Lottery>().check(|kit| {
        kit.emit_all((0..12).map(Play)).emit_all((0..12).map(|n| Play(n / 2)));
        kit.emit(PlayAll).advance(Duration::from_secs(25));
    });
}

#[test]
fn swept_cells_draw_different_random_numbers() {
    let mut kit = Kit::of::<Lottery>().start();
    kit.emit_all((0..12).map(Play)).emit(PlayAll);
    let mut drawn: Vec<u64> = kit.look::<Lottery, _>(|app| {
        app.draws.whole().iter().filter(|(_, row, _)| **row == 1).map(|(_, _, draw)| draw.luck).collect()
    });
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 12);
}

/// Answers with the number of messages from all senders so far. All messages go to one cell.
#[derive(App)]
struct Queue {
    served: Dict<u64, u64>,
    next: Dict<u8, u64>,
}
#[derive(Message)]
struct Come(u64);
#[derive(Message)]
struct Served(u64);
#[handlers]
impl Queue {
    #[rcv]
    fn come(&mut self, msg: &Come, ctx: &mut Ctx) {
        self.served.put(msg.0, 0);
        ctx.emit(Served(msg.0))
    }
    #[rcv(centralized)]
    fn served(&mut self, msg: &Served, ctx: &mut Ctx) {
        let next = self.next.entry(0).or_default();
        *next += 1;
        if *next == 1 {
            ctx.emit(Interest(msg.0))
        }
    }
}

#[test]
fn a_race_of_two_senders_is_found() {
    let found = Kit::of::<Queue>()
        .merging_runs(30)
        .compare(|kit| {
            kit.emit_all([Come(1), Come(2)]);
        })
        .unwrap_err();

    assert!(
        found.at.starts_with("step 1 (emit ") && found.at.ends_with("the messages sent by the apps differ"),
        "{found}"
    );
    assert!(found.together.iter().any(|line| line.ends_with("Interest 1")), "{found}");
    assert!(found.spread_out.iter().any(|line| line.ends_with("Interest 2")), "{found}");
    assert!(found.to_string().contains("the outcome depends on how cells are distributed"));
}

/// Passes each message on once. The second handler must draw different random numbers for different messages.
#[derive(App)]
struct Relay {
    passed: Dict<u64, u64>,
    drawn: Dict<u32, u64>,
}
#[derive(Message)]
struct Pass(u64);
#[derive(Message)]
struct Passed(u32);
#[handlers]
impl Relay {
    #[rcv]
    fn pass(&mut self, msg: &Pass, ctx: &mut Ctx) {
        self.passed.put(msg.0, 1);
        ctx.emit(Passed(msg.0 as u32))
    }
    #[rcv]
    fn passed(&mut self, msg: &Passed, ctx: &mut Ctx) {
        let lot = ctx.rng().next_u64();
        self.drawn.put(msg.0, lot);
    }
}

#[test]
fn messages_of_one_batch_draw_different_random_numbers() {
    let mut kit = Kit::of::<Relay>().start();
    kit.emit_all((0..12).map(Pass));
    let mut drawn: Vec<u64> = kit.look::<Relay, _>(|app| app.drawn.whole().values().copied().collect());
    drawn.sort_unstable();
    drawn.dedup();

    assert_eq!(drawn.len(), 12);
    Kit::of::<Relay>().check(|kit| {
        kit.emit_all((0..12).map(Pass));
    });
}
