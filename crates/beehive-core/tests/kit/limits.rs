//! Limits on rows and cells: excess rows are evicted, or the transaction fails, and nothing else changes.

use beehive_core::testing::Kit;
use beehive_core::{App, Ctx, Dict, ErrorKind, Message, RequestError, Result, Table, handlers};
use std::time::Duration;

#[derive(Message)]
#[message(reply = u64)]
struct Add {
    key: u64,
    rows: Vec<u64>,
    fails: bool,
}
#[derive(Message)]
struct Remove(u64);
#[derive(Message, PartialEq, Debug)]
struct Added(u64);

#[derive(App)]
#[app(cells = 6)]
struct Bounded {
    #[rows(max = 20, evict = first)]
    newest: Table<u64, u64, u64>,
}
#[handlers]
impl Bounded {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add, ctx: &mut Ctx) -> Result<u64> {
        for row in &msg.rows {
            self.newest.at(msg.key).insert(*row, 1);
        }
        ctx.emit(Added(msg.key));
        if msg.fails {
            Err("no")?
        }
        Ok(self.newest.at(msg.key).len() as u64)
    }
    #[rcv(sharded)]
    fn remove(&mut self, msg: &Remove) {
        self.newest.at(msg.0).clear()
    }
}

fn add(key: u64, rows: std::ops::Range<u64>) -> Add {
    Add { key, rows: rows.collect(), fails: false }
}

fn rows(kit: &Kit, key: u64) -> Vec<u64> {
    kit.look::<Bounded, _>(|app| app.newest.at(key).keys().copied().collect())
}

#[test]
fn the_first_rows_go_when_the_transaction_ends() {
    let mut kit = Kit::of::<Bounded>().start();
    kit.emit(add(1, 0..20));
    assert_eq!(rows(&kit, 1), (0..20).collect::<Vec<_>>());
    assert_eq!(kit.request(add(1, 20..23)), Ok(23), "the handler sees what it did");
    assert_eq!(rows(&kit, 1), (3..23).collect::<Vec<_>>());

    kit.emit(add(1, 0..1));
    assert_eq!(rows(&kit, 1), (3..23).collect::<Vec<_>>(), "what is new may be what goes");
    kit.emit(add(1, 1_000..2_000));
    assert_eq!(rows(&kit, 1), (1_980..2_000).collect::<Vec<_>>());
}

#[test]
fn a_rolled_back_insert_evicts_nothing() {
    let mut kit = Kit::of::<Bounded>().start();
    kit.emit(add(1, 0..20));
    assert!(kit.request(Add { fails: true, ..add(1, 20..40) }).is_err());
    assert_eq!(rows(&kit, 1), (0..20).collect::<Vec<_>>());
}

#[derive(App)]
struct Strict {
    #[rows(max = 3)]
    few: Table<u64, u64, u64>,
    #[rows(max = 3, evict = last)]
    lowest: Table<u64, u64, u64>,
    count: Dict<u64, u64>,
}
#[handlers]
impl Strict {
    #[rcv(sharded)]
    fn add(&mut self, msg: &Add, ctx: &mut Ctx) -> u64 {
        *self.count.entry(msg.key).or_default() += 1;
        ctx.emit(Added(msg.key));
        for row in &msg.rows {
            self.lowest.at(msg.key).insert(*row, 1);
            if !msg.fails {
                self.few.at(msg.key).insert(*row, 1);
            }
        }

        0
    }
}

#[test]
fn without_eviction_a_transaction_over_the_row_limit_fails() {
    let mut kit = Kit::of::<Strict>().failures_allowed().start();
    assert_eq!(kit.request(add(1, 0..3)), Ok(0));

    let Err(RequestError::Limit(error)) = kit.request(add(1, 3..5)) else { panic!("it is full") };
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.text(), "`few[1]` would have 5 rows; `#[rows(max = 3)]` allows at most 3");
    assert_eq!(kit.sent::<Added>(), [Added(1)]);
    assert_eq!(kit.look::<Strict, _>(|app| app.count.get(&1).copied()), Some(1));

    // This evicts the last rows.
    assert_eq!(kit.request(Add { fails: true, ..add(2, 5..50) }), Ok(0));
    let kept: Vec<u64> = kit.look::<Strict, _>(|app| app.lowest.at(2).keys().copied().collect());
    assert_eq!(kept, [5, 6, 7]);
}

#[test]
fn no_more_cells_than_allowed() {
    let mut kit = Kit::of::<Bounded>().failures_allowed().start();
    for key in 0..6 {
        assert_eq!(kit.request(add(key, 0..1)), Ok(1));
    }

    for key in 6..100 {
        let Err(RequestError::Limit(error)) = kit.request(add(key, 0..1)) else { panic!("it is full") };
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert_eq!(error.text(), "cell limit reached: the app may have 6 cells (`#[app(cells = 6)]`)");
    }

    assert_eq!(kit.request(add(5, 1..2)), Ok(2), "what is there goes on");
    assert_eq!(kit.bees::<Bounded>(), 6);

    // An empty cell makes room once its bee has retired.
    kit.emit(Remove(3)).advance(Duration::from_secs(1));
    assert_eq!(kit.request(add(50, 0..1)), Ok(1));
    assert!(kit.request(add(51, 0..1)).is_err());
}

#[test]
fn many_keys_at_once_get_no_more_cells_either() {
    let mut kit = Kit::of::<Bounded>().failures_allowed().start();
    // The hive claims owners in advance for all messages of a batch.
    kit.emit_all((0..500).map(|key| add(key, 0..1)));
    assert_eq!((kit.state_copy::<Bounded>().cells().len(), kit.bees::<Bounded>()), (6, 6));
    assert_eq!(kit.sent::<Added>(), (0..6).map(Added).collect::<Vec<_>>());
}

#[test]
fn limits_do_not_depend_on_bees() {
    Kit::of::<Bounded>().check(|kit| {
        for from in 0..30 {
            kit.emit_all((0..6).map(|key| add(key, from * key..from * key + 7)));
        }
    });
}
