//! Atomicity of transactions: each one commits completely or leaves nothing (state, messages, timers). A
//! failed one is answered with its error, and the bee continues.

use crate::load::{EVERYWHERE, On, cells_needed, eventually, on_workers, start, unheard};
use beehive_core::{
    App, Ctx, Dict, Error, ErrorKind, Hive, Key, Mapper, Message, RequestError, Table, handlers, limits,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How a transaction ends after it has changed everything it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum End {
    Well,
    Error,
    Panic,
    /// Touches a cell outside its map.
    Stray,
    /// Touches a cell outside its map, catches the unwind, and returns normally.
    StrayAndHide,
    /// Emits more than the limit, and returns normally.
    Flood,
    /// Emits more than the limit, and then returns an error.
    FloodAndError,
}

impl End {
    fn kind(self) -> Option<ErrorKind> {
        match self {
            End::Well => None,
            End::Error | End::FloodAndError => Some(ErrorKind::Handler),
            End::Panic => Some(ErrorKind::Panicked),
            End::Stray | End::StrayAndHide => Some(ErrorKind::Unmapped),
            End::Flood => Some(ErrorKind::Limit),
        }
    }
}

const BAD: [End; 6] = [End::Error, End::Panic, End::Stray, End::StrayAndHide, End::Flood, End::FloodAndError];

#[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Spot(u64);

/// Changes everything at a spot, emits messages about it, and then ends in the way that `end` specifies.
#[derive(Message, Clone, Debug)]
#[message(reply = u64)]
struct Change {
    spot: Spot,
    end: End,
}
/// Reads the content of a spot.
#[derive(Message)]
#[message(reply = Content)]
struct Look(Spot);
/// Reads everything that a spot could hold, without changing it.
#[derive(Message)]
#[message(reply = bool)]
struct Glance(Spot);
/// Removes the content of a spot.
#[derive(Message)]
#[message(reply = ())]
struct Clear(Spot);

type Content = (Option<Vec<u64>>, Vec<(u64, u64)>);

/// Emitted by a change, at once or by a timer.
#[derive(Message)]
struct Said {
    spot: Spot,
    later: bool,
}
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Heard(Spot);

#[derive(App)]
struct Subject {
    list: Dict<Spot, Vec<u64>>,
    rows: Table<Spot, u64, u64>,
    other: Dict<u64, u64>,
}

/// A map that names fewer cells than the handler touches.
fn change_map(msg: &Change, mapper: &mut Mapper) {
    mapper.cell(Subject::__bh_list, &msg.spot);
}

#[handlers]
impl Subject {
    #[rcv(map = change_map)]
    fn change(&mut self, msg: &Change, ctx: &mut Ctx) -> Result<u64, Error> {
        ctx.emit(Said { spot: msg.spot, later: false });
        ctx.after(Duration::from_millis(1), Later { spot: msg.spot });
        let list = self.list.entry(msg.spot).or_default();
        list.push(list.len() as u64);

        let count = list.len() as u64;
        // Enough rows to outgrow the part of the undo log that is searched linearly, each changed more than
        // once.
        for row in 0..20 {
            *self.rows.at(msg.spot).entry(row).or_default() += 1;
            self.rows.at(msg.spot).insert(row, count);
        }

        self.rows.at(msg.spot).remove(&3);
        self.rows.at(msg.spot).retain(|row, _| row % 5 != 4);
        match msg.end {
            End::Well => {}
            End::Error => return Err("as asked".into()),
            End::Panic => unheard("as asked"),
            End::Stray => drop(self.other.put(msg.spot.0, 1)),
            End::StrayAndHide => {
                let hidden = catch_unwind(AssertUnwindSafe(|| self.other.put(msg.spot.0, 1)));
                assert!(hidden.is_err());
                self.list.entry(msg.spot).or_default().push(99);
                ctx.emit(Said { spot: msg.spot, later: false });
            }
            End::Flood | End::FloodAndError => {
                for _ in 0..limits::EMITS_PER_TRANSACTION_MAX {
                    ctx.emit(Said { spot: msg.spot, later: false })
                }
                if msg.end == End::FloodAndError {
                    return Err("as asked".into());
                }
            }
        }

        Ok(count)
    }
    #[rcv(sharded)]
    fn later(&mut self, msg: &Later, ctx: &mut Ctx) {
        let _ = self.list.contains(&msg.spot);
        ctx.emit(Said { spot: msg.spot, later: true })
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &Look) -> Content {
        let rows = self.rows.at(msg.0).iter().map(|(row, value)| (*row, *value)).collect();
        (self.list.get(&msg.0).cloned(), rows)
    }
    #[rcv(sharded)]
    fn glance(&mut self, msg: &Glance) -> bool {
        self.list.get(&msg.0).is_some()
            || self.list.get_mut(&msg.0).is_some()
            || !self.rows.at(msg.0).is_empty()
            || self.list.remove(&msg.0).is_some()
    }
    #[rcv(sharded)]
    fn clear(&mut self, msg: &Clear) {
        self.list.remove(&msg.0);
        self.rows.at(msg.0).clear();
    }
}
#[derive(Message)]
struct Later {
    spot: Spot,
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
        let heard = self.heard.entry(msg.spot.0).or_default();
        if msg.later { heard.1 += 1 } else { heard.0 += 1 }
    }
    #[rcv(sharded)]
    fn heard(&mut self, msg: &Heard) -> (u64, u64) {
        self.heard.get(&msg.0.0).copied().unwrap_or_default()
    }
}

/// The expected content of a spot after this many successful changes.
fn content(changes: u64) -> Content {
    if changes == 0 {
        return (None, Vec::new());
    }
    let rows = (0..20).filter(|row| *row != 3 && row % 5 != 4).map(|row| (row, changes)).collect();
    (Some((0..changes).collect()), rows)
}

async fn heard(hive: &Hive, spot: Spot, want: (u64, u64)) {
    let mut got = (0, 0);
    for _ in 0..1_000 {
        got = hive.request(Heard(spot)).await.unwrap();
        if got == want {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await
    }

    assert_eq!(got, want, "{spot:?}")
}

#[test]
fn a_transaction_that_fails_leaves_nothing_and_the_bee_goes_on() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Subject>().app::<Ear>(), on);
            for (at, end) in BAD.into_iter().enumerate() {
                let spot = Spot(at as u64);
                let mut good = 0;
                for _ in 0..3 {
                    let failed = hive.request(Change { spot, end }).await;
                    let kind = failed.as_ref().err().and_then(RequestError::kind);
                    assert_eq!(kind, end.kind(), "{end:?} on {on:?}: {failed:?}");
                    assert_eq!(hive.request(Look(spot)).await.unwrap(), content(good), "{end:?} on {on:?}");
                    assert_eq!(hive.request(Change { spot, end: End::Well }).await, Ok(good + 1));
                    good += 1;
                    assert_eq!(hive.request(Look(spot)).await.unwrap(), content(good), "{end:?} on {on:?}");
                }

                heard(&hive, spot, (good, good)).await;
            }

            // Wait, in case a message arrives late.
            tokio::time::sleep(Duration::from_millis(20)).await;
            for at in 0..BAD.len() as u64 {
                heard(&hive, Spot(at), (3, 3)).await
            }

            eventually("credits", Duration::from_secs(5), || {
                hive.status().credits_free == limits::CREDITS_PER_IO_BEE
            })
            .await;
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

/// All messages are in one batch, so the output of the failed messages lies between the output of the
/// successful ones.
#[test]
fn a_batch_keeps_what_its_good_messages_did_and_nothing_else() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Subject>().app::<Ear>(), on);
            let spot = Spot(7);
            let mut io = hive.io();
            let ends = [End::Error, End::Panic, End::Stray, End::StrayAndHide];
            let mut good = 0;

            for round in 0..40 {
                io.emit(Change { spot, end: ends[round % 4] });
                if round % 3 != 0 {
                    io.emit(Change { spot, end: End::Well });
                    good += 1;
                }
            }

            io.flush().await;
            let (mut wells, mut kinds) = (Vec::new(), Vec::new());
            while wells.len() + kinds.len() < 40 + good as usize {
                let mail = tokio::time::timeout(Duration::from_secs(20), io.receive()).await.unwrap();
                for answer in mail.into_answers::<Change>().ok().unwrap() {
                    match answer {
                        Ok(count) => wells.push(count),
                        Err(error) => kinds.push(error.kind()),
                    }
                }
            }

            assert_eq!(wells, (1..=good).collect::<Vec<_>>(), "{on:?}");
            assert!(kinds.iter().enumerate().all(|(at, kind)| *kind == ends[at % 4].kind()), "{kinds:?}");

            assert_eq!(hive.request(Look(spot)).await.unwrap(), content(good));
            heard(&hive, spot, (good, good)).await;
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

#[test]
fn an_error_is_no_dead_letter_and_dead_letters_are_bounded() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Subject>().app::<Ear>(), On::Memory);
        let spot = Spot(1);
        let _ = hive.request(Change { spot, end: End::Error }).await;
        assert_eq!((hive.dead_letters().len(), hive.status().dead_letters), (0, 0));

        let mut io = hive.io();
        let count = limits::DEAD_LETTERS_MAX as u64 + 300;
        for at in 0..count {
            io.emit(Change { spot: Spot(at), end: if at % 2 == 0 { End::Panic } else { End::Stray } })
        }

        io.flush().await;
        eventually("all have failed", Duration::from_secs(20), || hive.status().dead_letters == count).await;
        let letters = hive.dead_letters();
        assert_eq!(letters.len(), limits::DEAD_LETTERS_MAX);

        for letter in &letters {
            assert_eq!((letter.app, letter.handler), ("subject", "change"));
            assert!(matches!(letter.error.kind(), ErrorKind::Panicked | ErrorKind::Unmapped));
            assert!(letter.message.ends_with("Change") && letter.can_be_sent_again());
        }

        drop(io);
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn empty_cells_vanish_and_a_look_creates_nothing() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Subject>().app::<Ear>(), on);
            for at in 0..20 {
                let spot = Spot(at);
                assert!(!hive.request(Glance(spot)).await.unwrap());
                if at % 2 == 0 {
                    hive.request(Change { spot, end: End::Well }).await.unwrap();
                    hive.request(Clear(spot)).await.unwrap();
                }
                assert_eq!(hive.request(Look(spot)).await.unwrap(), content(0));
            }

            // A bee whose cells are all empty retires. The cells that `Said` has filled remain.
            let limit = Duration::from_secs(10);
            eventually("bees without content end", limit, || hive.status().apps[0].bees == 0).await;
            // they are counted when the last of them has ended
            eventually("all are counted", limit, || hive.status().apps[0].bees_retired >= 20).await;
            eventually("what is filled stays", limit, || hive.status().apps[1].bees == 10).await;
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

// ---- iteration ----

#[derive(Message)]
#[message(reply = ())]
struct Fill(Vec<u64>);
#[derive(Message)]
#[message(reply = Vec<Vec<u64>>)]
struct Orders;
#[derive(Message)]
#[message(reply = ())]
struct Trim {
    modulo: u64,
    fail: bool,
}
#[derive(App)]
struct Shelf {
    plain: Dict<u64, u64>,
    tables: Table<(u64, u64), u64, u64>,
}
#[handlers]
impl Shelf {
    #[rcv(centralized)]
    fn fill(&mut self, msg: &Fill) {
        for at in &msg.0 {
            self.plain.whole().put(*at, *at);
            self.tables.whole().at((at % 7, *at)).insert(at % 3, *at);
        }
    }
    #[rcv(centralized)]
    fn orders(&mut self, _: &Orders) -> Vec<Vec<u64>> {
        let (plain, tables) = (self.plain.whole(), self.tables.whole());
        vec![
            plain.keys().copied().collect(),
            plain.iter().map(|(key, _)| *key).collect(),
            tables.keys().map(|(group, at)| group * 1_000 + at).collect(),
            tables.iter().map(|((group, at), row, _)| (group * 1_000 + at) * 10 + row).collect(),
        ]
    }
    #[rcv(centralized)]
    fn trim(&mut self, msg: &Trim) -> Result<(), Error> {
        let mut seen = Vec::new();
        self.plain.whole().for_each_mut(|key, value| {
            seen.push(*key);
            *value += 1
        });

        self.plain.whole().retain(|key, _| key % msg.modulo != 0);
        let keys: Vec<_> = self.tables.whole().keys().copied().collect();
        for key in keys {
            self.tables.whole().at(key).retain(|_, value| *value % msg.modulo != 0)
        }

        if !seen.is_sorted() {
            return Err("not in order".into());
        }

        if msg.fail { Err("as asked".into()) } else { Ok(()) }
    }
}

#[test]
fn iteration_is_in_key_order_and_a_failed_transaction_over_all_of_it_is_undone() {
    for on in EVERYWHERE {
        on_workers(2, async {
            let (hive, _journal) = start(Hive::builder().app::<Shelf>(), on);
            let keys: Vec<u64> = (0..200).map(|n| n * 7_919 % 211).collect();
            hive.request(Fill(keys.clone())).await.unwrap();
            let before = hive.request(Orders).await.unwrap();

            assert!(before.iter().all(|list| list.len() == 200 && list.is_sorted()), "{before:?}");
            for modulo in [2, 3, 1] {
                let failed = hive.request(Trim { modulo, fail: true }).await;
                let Err(RequestError::Handler(error)) = failed else { panic!("{failed:?}") };
                assert_eq!(error.text(), "as asked");
                assert_eq!(hive.request(Orders).await.unwrap(), before, "{on:?}");
            }

            hive.request(Trim { modulo: 2, fail: false }).await.unwrap();
            let after = hive.request(Orders).await.unwrap();
            let odd = keys.iter().filter(|key| *key % 2 == 1).count();
            assert!(after.iter().all(|list| list.len() == odd && list.is_sorted()), "{after:?}");

            hive.request(Trim { modulo: 1, fail: false }).await.unwrap();
            assert!(hive.request(Orders).await.unwrap().iter().all(Vec::is_empty));
            hive.stop(Duration::from_secs(5)).await;
        })
    }
}

// ---- values whose clone panics ----

static BRITTLE: AtomicBool = AtomicBool::new(false);

/// A value whose `clone` panics while `BRITTLE` is set.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Brittle(u64);
impl Clone for Brittle {
    fn clone(&self) -> Self {
        assert!(!BRITTLE.load(Ordering::Relaxed), "cannot be copied");
        Brittle(self.0)
    }
}
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
enum Way {
    Put,
    Remove,
    Change,
    InsertRow,
    RemoveRow,
    ChangeRow,
}
#[derive(Message)]
#[message(reply = ())]
struct Handle(Way);
#[derive(Message)]
#[message(reply = (Option<u64>, Option<u64>))]
struct Held(u64);
#[derive(App)]
struct Glass {
    one: Dict<Spot, Brittle>,
    row: Table<Spot, u64, Brittle>,
}
#[handlers]
impl Glass {
    #[rcv(centralized)]
    fn handle(&mut self, msg: &Handle) {
        let spot = Spot(0);
        match msg.0 {
            Way::Put => drop(self.one.put(spot, Brittle(2))),
            Way::Remove => drop(self.one.remove(&spot)),
            Way::Change => {
                if let Some(value) = self.one.get_mut(&spot) {
                    value.0 = 2
                }
            }
            Way::InsertRow => drop(self.row.at(spot).insert(1, Brittle(2))),
            Way::RemoveRow => drop(self.row.at(spot).remove(&1)),
            Way::ChangeRow => self.row.at(spot).entry(1).or_insert(Brittle(9)).0 = 2,
        }
    }
    #[rcv(centralized)]
    fn held(&mut self, msg: &Held) -> (Option<u64>, Option<u64>) {
        if msg.0 > 0 {
            self.one.put(Spot(0), Brittle(msg.0));
            self.row.at(Spot(0)).insert(1, Brittle(msg.0));
        }
        (self.one.get(&Spot(0)).map(|b| b.0), self.row.at(Spot(0)).get(&1).map(|b| b.0))
    }
}

#[test]
fn a_value_that_panics_when_it_is_copied_for_the_undo_is_as_it_was() {
    on_workers(2, async {
        let (hive, _) = start(Hive::builder().app::<Glass>(), On::Memory);
        assert_eq!(hive.request(Held(1)).await, Ok((Some(1), Some(1))));

        let ways = [Way::Put, Way::Remove, Way::Change, Way::InsertRow, Way::RemoveRow, Way::ChangeRow];
        for way in ways {
            BRITTLE.store(true, Ordering::Relaxed);
            let failed = hive.request(Handle(way)).await;
            BRITTLE.store(false, Ordering::Relaxed);
            assert_eq!(failed, Err(RequestError::Panicked), "{way:?}");
            assert_eq!(hive.request(Held(0)).await, Ok((Some(1), Some(1))), "{way:?}");
        }

        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn maps_name_all_that_is_touched_and_a_map_that_says_less_is_caught() {
    use beehive_core::testing::maps::{covers, describe, instance, record};
    let mut subject: Subject = instance(Default::default()).unwrap();
    let mut shelf: Shelf = instance(Default::default()).unwrap();

    for at in 0..50 {
        let spot = Spot(at % 3);
        // The handler of `Change` touches two dictionaries, but its map names only one of them.
        let change = Change { spot, end: if at % 2 == 0 { End::Well } else { End::Stray } };
        let (mapped, touched) =
            (describe::<Subject, Change>(&change), record::<Subject, Change>(&mut subject, &change));

        assert!(!covers(&mapped, &touched), "mapped {:?}, touched {touched:?}", mapped.words);
        assert_eq!(cells_needed(&mut subject, &Later { spot }), 1);
        assert_eq!(cells_needed(&mut subject, &Look(spot)), 2);
        assert_eq!(cells_needed(&mut subject, &Glance(spot)), 2);
        assert_eq!(cells_needed(&mut subject, &Clear(spot)), 2);
        assert_eq!(cells_needed(&mut shelf, &Fill(vec![at, at + 1])), 2);
        assert_eq!(cells_needed(&mut shelf, &Orders), 2);
        assert_eq!(cells_needed(&mut shelf, &Trim { modulo: 1 + at % 4, fail: at % 5 == 0 }), 2);
    }
}
