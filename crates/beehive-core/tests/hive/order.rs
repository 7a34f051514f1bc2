//! Order of messages: the messages of each sender arrive in order, without loss or duplicates, and no two
//! handlers run on one key at the same time, even while cells are emptied and recreated.

use crate::load::{Chance, On, cells_needed, on_workers, start};
use beehive_core::{App, Ctx, Dict, Hive, Message, handlers};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Message number `seq` from `sender` to `key`.
#[derive(Message, Debug)]
struct Numbered {
    key: u64,
    sender: u64,
    seq: u64,
}

/// Answers with the messages that a key has received from each sender.
#[derive(Message)]
#[message(reply = Vec<(u64, u64)>)]
struct Seen(u64);

static INSIDE: [AtomicBool; 1024] = [const { AtomicBool::new(false) }; 1024];
static OVERLAPS: AtomicU64 = AtomicU64::new(0);

#[derive(App)]
struct Log {
    seen: Dict<u64, Vec<(u64, u64)>>,
}

#[handlers]
impl Log {
    #[rcv(sharded)]
    fn numbered(&mut self, msg: &Numbered) {
        // Each key below 1024 has a flag of its own, so the flags of two such keys cannot collide.
        let flag = &INSIDE[(msg.key % 1024) as usize];
        if msg.key < 1024 {
            if flag.swap(true, Ordering::AcqRel) {
                OVERLAPS.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::yield_now();
        }

        self.seen.entry(msg.key).or_default().push((msg.sender, msg.seq));
        if msg.key < 1024 {
            flag.store(false, Ordering::Release);
        }
    }

    #[rcv(sharded)]
    fn read(&mut self, msg: &Seen) -> Vec<(u64, u64)> {
        self.seen.get(&msg.0).cloned().unwrap_or_default()
    }
}

async fn fresh_keys_twice(hive: &Hive, emitters: u64, messages: u64) {
    let mut tasks = Vec::new();
    for sender in 0..emitters {
        let hive = hive.clone();
        tasks.push(tokio::spawn(async move {
            let mut io = hive.io();
            let keys = messages / 2 / emitters;
            for n in 0..keys {
                let key = 1_000_000 + sender * keys + n;
                io.emit(Numbered { key, sender, seq: 0 });
                io.emit(Numbered { key, sender, seq: 1 });
                if n % 64 == 63 {
                    io.flush().await
                }
            }

            io.flush().await
        }))
    }

    for task in tasks {
        task.await.unwrap()
    }

    let keys = messages / 2 / emitters * emitters;
    let mut chance = Chance(7);
    for _ in 0..2_000 {
        let key = 1_000_000 + chance.below(keys);
        let seen = hive.request_within(Duration::from_secs(60), Seen(key)).await.unwrap();
        let sender = (key - 1_000_000) / (keys / emitters);
        assert_eq!(seen, [(sender, 0), (sender, 1)], "key {key}");
    }

    let app = &hive.status().apps[0];
    assert_eq!(app.bees_merged, 0);
}

async fn shared_keys_in_order(hive: &Hive, emitters: u64, keys: u64, each: u64) {
    let mut tasks = Vec::new();
    for sender in 0..emitters {
        let hive = hive.clone();
        tasks.push(tokio::spawn(async move {
            let mut io = hive.io();
            let mut chance = Chance(sender);
            for seq in 0..each {
                io.emit(Numbered { key: chance.below(keys), sender, seq });
                if chance.below(16) == 0 {
                    io.flush().await
                }
            }

            io.flush().await
        }))
    }

    for task in tasks {
        task.await.unwrap()
    }

    let mut total = 0;
    for key in 0..keys {
        let seen = hive.request_within(Duration::from_secs(60), Seen(key)).await.unwrap();
        let mut last: HashMap<u64, u64> = HashMap::new();
        for (sender, seq) in &seen {
            if let Some(before) = last.insert(*sender, *seq) {
                assert!(before < *seq, "key {key}: {seq} of {sender} came after {before}");
            }
        }
        total += seen.len() as u64
    }

    assert_eq!(total, emitters * each);
    assert_eq!(OVERLAPS.load(Ordering::Relaxed), 0);
}

/// Tests that use the same flags take turns.
static TURN: Mutex<()> = Mutex::new(());

/// `BEEHIVE_LONG=1` sends a million messages.
#[test]
fn messages_to_fresh_keys_arrive_once_and_in_order() {
    let messages = if std::env::var_os("BEEHIVE_LONG").is_some() { 1_000_000 } else { 250_000 };
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Log>(), On::Memory);
        fresh_keys_twice(&hive, 8, messages).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn fresh_keys_on_a_journal() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    on_workers(4, async {
        let (hive, journal) = start(Hive::builder().app::<Log>(), On::Journal);
        fresh_keys_twice(&hive, 8, 20_000).await;
        assert!(journal.unwrap().refused() > 0);
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn fresh_keys_while_bees_move() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Log>(), On::Journals);
        fresh_keys_twice(&hive, 8, 20_000).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn senders_keep_their_order_on_shared_keys_while_bees_move() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Log>(), On::Journals);
        shared_keys_in_order(&hive, 8, 16, 1_000).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn senders_keep_their_order_on_shared_keys_and_nothing_overlaps() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Log>(), On::Memory);
        shared_keys_in_order(&hive, 8, 64, 20_000).await;
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn senders_keep_their_order_on_a_journal_while_bees_are_taken_apart() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    on_workers(4, async {
        let (hive, journal) = start(Hive::builder().app::<Log>(), On::Journal);
        let shaken = hive.clone();
        let shaking = tokio::spawn(async move {
            let mut count = 0;
            loop {
                count += shaken.reimport().await.unwrap();
                tokio::time::sleep(Duration::from_millis(3)).await;
                if count > 2_000 {
                    return;
                }
            }
        });

        shared_keys_in_order(&hive, 8, 16, 1_000).await;
        shaking.abort();
        assert!(journal.unwrap().refused() > 0);
        hive.stop(Duration::from_secs(5)).await;
    })
}

/// Inserts or removes a value so that cells come and go.
#[derive(Message)]
#[message(reply = bool)]
struct Toggle(u64);
#[derive(Message)]
struct Toggled {
    key: u64,
    now: bool,
}

#[derive(App)]
struct Toggles {
    on: Dict<u64, u64>,
}
#[handlers]
impl Toggles {
    #[rcv(sharded)]
    fn toggle(&mut self, msg: &Toggle, ctx: &mut Ctx) -> bool {
        let now = self.on.remove(&msg.0).is_none();
        if now {
            self.on.put(msg.0, 1);
        }
        ctx.emit(Toggled { key: msg.0, now });
        now
    }
}
#[derive(App)]
struct Watcher {
    count: Dict<u64, (u64, u64)>,
}
#[derive(Message)]
#[message(reply = (u64, u64))]
struct Count(u64);
#[handlers]
impl Watcher {
    #[rcv(sharded)]
    fn toggled(&mut self, msg: &Toggled) {
        let count = self.count.entry(msg.key).or_default();
        if msg.now { count.0 += 1 } else { count.1 += 1 }
    }
    #[rcv(sharded)]
    fn count(&mut self, msg: &Count) -> (u64, u64) {
        self.count.get(&msg.0).copied().unwrap_or_default()
    }
}

#[test]
fn cells_are_emptied_and_made_again_while_their_bees_retire() {
    on_workers(4, async {
        let (hive, _) = start(Hive::builder().app::<Toggles>().app::<Watcher>(), On::Memory);
        const KEYS: u64 = 50;
        let mut tasks = Vec::new();

        for sender in 0..6u64 {
            let hive = hive.clone();
            tasks.push(tokio::spawn(async move {
                let mut io = hive.io();
                let mut chance = Chance(sender + 100);
                // Long enough for many rounds of retirement, with pauses in which all bees are idle.
                for round in 0..30u64 {
                    for _ in 0..200 {
                        io.emit(Toggle(chance.below(KEYS)));
                    }
                    io.flush().await;
                    if round % 3 == 0 {
                        tokio::time::sleep(Duration::from_millis(60)).await
                    }
                }
            }))
        }

        for task in tasks {
            task.await.unwrap()
        }

        // All messages have been handled once the same keys answer.
        let mut toggles = 0;
        for key in 0..KEYS {
            let on = hive.request(Toggle(key)).await.unwrap();
            let (mut ons, mut offs) = (0, 0);
            for _ in 0..100 {
                (ons, offs) = hive.request(Count(key)).await.unwrap();
                if ons - offs == on as u64 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }

            assert_eq!(ons - offs, on as u64, "key {key}: on {ons} times, off {offs} times");
            toggles += ons + offs;
        }

        assert_eq!(toggles, 6 * 30 * 200 + KEYS);
        let status = hive.status();
        assert!(status.apps[0].bees_retired > 0, "{status:?}");
        hive.stop(Duration::from_secs(5)).await;
    })
}

#[test]
fn maps_name_all_that_is_touched() {
    use beehive_core::testing::maps::instance;
    let mut log: Log = instance(Default::default()).unwrap();
    let mut toggles: Toggles = instance(Default::default()).unwrap();
    let mut watcher: Watcher = instance(Default::default()).unwrap();
    let mut chance = Chance(3);

    for seq in 0..500 {
        let key = chance.below(5);
        let numbered = Numbered { key: 2_000 + key, sender: 1, seq };
        assert_eq!(cells_needed(&mut log, &numbered), 1);
        assert_eq!(cells_needed(&mut log, &Seen(2_000 + key)), 1);
        assert_eq!(cells_needed(&mut toggles, &Toggle(key)), 1);
        assert_eq!(cells_needed(&mut watcher, &Toggled { key, now: seq % 2 == 0 }), 1);
        assert_eq!(cells_needed(&mut watcher, &Count(key)), 1);
    }
}
