//! A handler with a hand-written map may do anything with the dictionaries that it borrows, as far as the compiler is
//! concerned. Whatever it does, they are back in their fields when it ends, and its transaction fails.

use crate::load::{EVERYWHERE, On, on_workers, start};
use beehive_core::{App, Ctx, Dict, Error, ErrorKind, Hive, Mapper, Message, Table, attempt, handlers};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How a handler moves dictionaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Move {
    Dicts,
    Tables,
    /// Three dictionaries, each into the next one's field.
    Around,
    /// Through references that an array and an option hold.
    Held,
    /// A reference that a function returns.
    Chosen,
    /// Into a savepoint, which must not be applied to another dictionary.
    InAttempt,
    BeforeAttempt,
    /// In an attempt, and goes on after it has caught its end.
    InAttemptAndHide,
}

/// How it ends then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum End {
    Well,
    Error,
    Panic,
}

const MOVES: [Move; 8] = [
    Move::Dicts,
    Move::Tables,
    Move::Around,
    Move::Held,
    Move::Chosen,
    Move::InAttempt,
    Move::BeforeAttempt,
    Move::InAttemptAndHide,
];

#[derive(Message, Clone, Debug)]
struct Exchange {
    key: u64,
    how: Move,
    end: End,
}
/// Exchanges two dictionaries twice.
#[derive(Message)]
struct ThereAndBack(u64);
#[derive(Message)]
struct Fill(u64);
#[derive(Message)]
#[message(reply = Content)]
struct Look(u64);

type Content = ([Option<u64>; 3], [Vec<(u64, u64)>; 2]);

#[derive(App)]
struct Shop {
    stock: Dict<u64, u64>,
    ordered: Dict<u64, u64>,
    shelves: Table<u64, u64, u64>,
    returned: Dict<u64, u64>,
    carts: Table<u64, u64, u64>,
}

fn all(key: u64, mapper: &mut Mapper) {
    mapper.cell(Shop::__bh_stock, &key);
    mapper.cell(Shop::__bh_ordered, &key);
    mapper.cell(Shop::__bh_returned, &key);
    mapper.cell(Shop::__bh_shelves, &key);
    mapper.cell(Shop::__bh_carts, &key);
}

fn all_of_exchange(msg: &Exchange, mapper: &mut Mapper) {
    all(msg.key, mapper)
}

fn all_of_both(msg: &ThereAndBack, mapper: &mut Mapper) {
    all(msg.0, mapper)
}

type Counts = Dict<u64, u64>;

fn the_larger<'a>(one: &'a mut Counts, other: &'a mut Counts, key: u64) -> &'a mut Counts {
    if one.get(&key) > other.get(&key) { one } else { other }
}

fn exchange<T>(one: &mut T, other: &mut T) {
    std::mem::swap(one, other)
}

#[handlers]
impl Shop {
    #[rcv(map = all_of_exchange)]
    fn exchange(&mut self, msg: &Exchange, ctx: &mut Ctx) -> Result<(), Error> {
        let key = msg.key;
        // changes before and after the move, whose undo entries move as well
        *self.stock.entry(key).or_default() += 100;
        self.shelves.at(key).insert(7, 100);
        ctx.emit(Fill(key + 1_000));

        match msg.how {
            Move::Dicts => exchange(&mut self.stock, &mut self.ordered),
            Move::Tables => exchange(&mut self.shelves, &mut self.carts),
            Move::Around => {
                exchange(&mut self.stock, &mut self.ordered);
                exchange(&mut self.ordered, &mut self.returned);
            }
            Move::Held => {
                let mut held = [Some(&mut self.stock), Some(&mut self.returned)];
                let [Some(one), Some(other)] = &mut held else { unreachable!("both are there") };
                exchange(&mut **one, &mut **other)
            }
            Move::Chosen => {
                let Shop { stock, ordered, returned, .. } = self;
                exchange(the_larger(stock, ordered, key), returned)
            }
            Move::InAttempt => {
                let _: Result<(), Error> = attempt! {
                    self.ordered.put(key, 5);
                    exchange(&mut self.stock, &mut self.ordered);
                    self.ordered.put(key, 6);
                    Err("as asked".into())
                };
            }
            Move::BeforeAttempt => {
                exchange(&mut self.stock, &mut self.ordered);
                let _: Result<(), Error> = attempt! {
                    self.ordered.put(key, 5);
                    Ok(())
                };
            }
            Move::InAttemptAndHide => {
                let hidden = catch_unwind(AssertUnwindSafe(|| self.move_in_attempt(key)));
                assert!(hidden.is_err());
            }
        }

        *self.stock.entry(key).or_default() += 1_000;
        self.carts.at(key).insert(8, 1_000);
        match msg.end {
            End::Well => Ok(()),
            End::Error => Err("as asked".into()),
            End::Panic => crate::load::unheard("as asked"),
        }
    }

    fn move_in_attempt(&mut self, key: u64) -> Result<(), Error> {
        attempt! {
            self.ordered.put(key, 5);
            exchange(&mut self.stock, &mut self.ordered);
            Err("as asked".into())
        }
    }

    #[rcv(map = all_of_both)]
    fn there_and_back(&mut self, msg: &ThereAndBack) {
        exchange(&mut self.stock, &mut self.ordered);
        exchange(&mut self.stock, &mut self.ordered);
        *self.stock.entry(msg.0).or_default() += 1;
    }

    #[rcv(joins)]
    fn fill(&mut self, msg: &Fill) {
        self.stock.put(msg.0, 1);
        self.ordered.put(msg.0, 2);
        self.returned.put(msg.0, 3);
        self.shelves.at(msg.0).insert(4, 5);
        self.carts.at(msg.0).insert(6, 7);
    }

    #[rcv(joins)]
    fn look(&mut self, msg: &Look) -> Content {
        let counts = [self.stock.get(&msg.0), self.ordered.get(&msg.0), self.returned.get(&msg.0)];
        let counts = counts.map(|count| count.copied());
        let shelves = self.shelves.at(msg.0).iter().map(|(row, value)| (*row, *value)).collect();
        let carts = self.carts.at(msg.0).iter().map(|(row, value)| (*row, *value)).collect();
        (counts, [shelves, carts])
    }
}

fn filled() -> Content {
    ([Some(1), Some(2), Some(3)], [vec![(4, 5)], vec![(6, 7)]])
}

#[test]
fn a_handler_that_moves_a_dictionary_fails_and_leaves_nothing() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Shop>(), on);
            for (at, how) in MOVES.into_iter().enumerate() {
                for end in [End::Well, End::Error, End::Panic] {
                    let (key, what) = (at as u64, format!("{how:?}, {end:?}, {on:?}"));
                    hive.request(Fill(key)).await.unwrap();

                    let error = hive.request(Exchange { key, how, end }).await.unwrap_err();
                    assert_eq!(error.kind(), Some(ErrorKind::Unmapped), "{what}: {error:?}");
                    let letters = hive.dead_letters();
                    let text = letters.last().unwrap().error.text();
                    let parts =
                        ["out of its field", "`std::mem::swap`", "exchange at ", "moved_dictionaries.rs"];
                    assert!(parts.iter().all(|part| text.contains(part)), "{what}: {text}");

                    assert_eq!(hive.request(Look(key)).await.unwrap(), filled(), "{what}");
                    assert_eq!(hive.request(Look(key + 1_000)).await.unwrap(), Content::default(), "{what}");
                }
            }
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// The transactions of a batch share the dictionaries.
#[test]
fn the_next_transaction_of_a_batch_finds_every_dictionary_in_its_field() {
    on_workers(1, async {
        let (hive, _) = start(Hive::builder().app::<Shop>(), On::Memory);
        hive.request(Fill(1)).await.unwrap();
        let mut io = hive.io();
        for how in MOVES {
            io.emit(Exchange { key: 1, how, end: End::Well });
            io.emit(ThereAndBack(1));
        }
        io.flush().await;

        let want = ([Some(1 + MOVES.len() as u64), Some(2), Some(3)], filled().1);
        let mut got = Content::default();
        for _ in 0..1_000 {
            got = hive.request(Look(1)).await.unwrap();
            if got == want {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await
        }
        assert_eq!(got, want);
        hive.stop(Duration::from_secs(5)).await;
    })
}
