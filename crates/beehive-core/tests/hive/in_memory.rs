//! Apps whose state is in memory only, beside apps with a log; and the assignment of logs to apps.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{AppId, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Builder, Ctx, Dict, Durability, Handlers, Hive, Message, StartError, handlers};
use std::sync::Arc;
use std::time::Duration;

/// Both apps can answer: `Front` counts the message and passes it on to `Ledger`.
#[derive(Message)]
#[message(reply = u64)]
struct Put(u64);
/// A message to `Front`, which sends one to `Ledger`.
#[derive(Message)]
struct Tell(u64);
#[derive(Message)]
struct Told(u64);
/// A message to `Ledger`, which sends one to `Front`.
#[derive(Message)]
struct Notify(u64);
#[derive(Message)]
struct Notified(u64);
/// A message to each cell of `Front`.
#[derive(Message)]
struct Sweep;
/// A message from `Front` to each cell of `Ledger`.
#[derive(Message)]
struct Audit;
#[derive(Message)]
#[message(reply = (u64, u64, u64))]
struct InFront(u64);
#[derive(Message)]
#[message(reply = (u64, u64, u64))]
struct InLedger(u64);

/// In memory only. Counts the puts, notices and sweeps of each key.
#[derive(App)]
struct Front {
    counts: Dict<u64, (u64, u64, u64)>,
}
#[handlers]
impl Front {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> Option<u64> {
        self.counts.entry(msg.0 % 8).or_default().0 += 1;
        None
    }
    #[rcv(sharded)]
    fn tell(&mut self, msg: &Tell, ctx: &mut Ctx) {
        self.counts.entry(msg.0 % 8).or_default();
        ctx.emit(Told(msg.0));
        if msg.0 == 0 {
            ctx.emit(Audit)
        }
    }
    #[rcv(sharded)]
    fn notified(&mut self, msg: &Notified) {
        self.counts.entry(msg.0 % 8).or_default().1 += 1
    }
    #[rcv(each = counts)]
    fn sweep(&mut self, key: &u64, _: &Sweep) {
        self.counts.entry(*key).or_default().2 += 1
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &InFront) -> (u64, u64, u64) {
        self.counts.get(&msg.0).copied().unwrap_or_default()
    }
}

/// In the log. Counts the puts, the messages from `Front`, and the audits of each key.
#[derive(App)]
struct Ledger {
    counts: Dict<u64, (u64, u64, u64)>,
}
#[handlers]
impl Ledger {
    #[rcv(sharded)]
    fn put(&mut self, msg: &Put) -> u64 {
        let count = self.counts.entry(msg.0 % 8).or_default();
        count.0 += 1;
        count.0
    }
    #[rcv(sharded)]
    fn told(&mut self, msg: &Told) {
        self.counts.entry(msg.0 % 8).or_default().1 += 1
    }
    #[rcv(sharded)]
    fn notify(&mut self, msg: &Notify, ctx: &mut Ctx) {
        self.counts.entry(msg.0 % 8).or_default();
        ctx.emit(Notified(msg.0));
        if msg.0 == 0 {
            ctx.emit(Sweep)
        }
    }
    #[rcv(each = counts)]
    fn audit(&mut self, key: &u64, _: &Audit) {
        self.counts.entry(*key).or_default().2 += 1
    }
    #[rcv(sharded)]
    fn look(&mut self, msg: &InLedger) -> (u64, u64, u64) {
        self.counts.get(&msg.0).copied().unwrap_or_default()
    }
}

fn apps() -> Builder {
    Hive::builder().app::<Front>().app::<Ledger>().seed(4)
}

const MESSAGES: u64 = 4_000;
const LANE: u64 = 3;

/// A sender outside the hive resends all messages that were not done when the hive was killed.
#[test]
fn an_app_in_memory_beside_a_log() {
    let mut log: Vec<Vec<u8>> = Vec::new();
    let mut done = 0;
    const LIVES: u64 = 4;
    for life in 0..LIVES {
        (log, done) = on_workers(2, async {
            let state = crate::load::killed(&log);
            assert!(state.bees.keys().all(|(app, _)| *app == AppId(1)), "{:?}", state.bees.keys());
            assert!(state.outbox.is_empty() && state.sweeps.is_empty(), "nothing waits for an app in memory");
            let journal = TestJournal::start(5 + life, 30, state.last);
            let hive = apps().journal(journal.clone(), state).in_memory(["front"]).start().unwrap();
            for key in 0..8 {
                assert_eq!(hive.request(InFront(key)).await, Ok((0, 0, 0)), "it starts empty");
            }

            let mut io = hive.io();
            io.resume(LANE, done);
            let until = MESSAGES * (life + 1) / LIVES;
            for id in done..until {
                io.emit(Put(id));
                if id % 50 == 0 {
                    io.flush().await;
                    while io.try_receive().is_some() {}
                }
            }
            io.flush().await;

            if life + 1 == LIVES {
                eventually("all are done", Duration::from_secs(30), || io.floor() == MESSAGES).await;
                // a hive is not idle while an IO bee has mail
                while io.try_receive().is_some() {}
                both_ways(&hive, life).await;
                for key in 0..8 {
                    let (puts, told, audits) = hive.request(InLedger(key)).await.unwrap();
                    assert_eq!((puts, told, audits), (MESSAGES / 8, 5, 1), "key {key}");
                }
            } else {
                tokio::time::sleep(Duration::from_millis(3)).await
            }

            journal.stop();
            log.extend(journal.log());
            let floor = io.floor();
            hive.stop(Duration::ZERO).await;
            (log, floor)
        });
    }
}

/// Messages and sweeps from the app in memory to the one with a log, and back.
async fn both_ways(hive: &Hive, life: u64) {
    let before = hive.request(InFront(3)).await.unwrap().0;
    assert!(before > 0 && life > 0);
    for id in 0..40 {
        hive.emit(Notify(id)).await
    }
    hive.idle().await;
    for id in (0..40).rev() {
        hive.emit(Tell(id)).await
    }
    hive.idle().await;
    for key in 0..8 {
        let (_, notices, sweeps) = hive.request(InFront(key)).await.unwrap();
        assert_eq!((notices, sweeps), (5, 1), "key {key}");
    }
}

#[test]
fn an_app_has_one_log_and_keeps_it() {
    on_workers(1, async {
        let journal = || TestJournal::start(1, 0, 0);
        let (one, other) = (journal(), journal());
        let start = |builder: Builder| builder.start().map(|_| ()).unwrap_err();

        let unknown = start(apps().journal_of(["frnt"], one.clone(), LogState::default()));
        assert_eq!(
            unknown,
            StartError::NoSuchApp { app: "frnt".into(), known: vec!["front", "ledger"] },
            "{unknown}"
        );
        assert!(unknown.to_string().contains("front"), "{unknown}");
        let twice =
            start(apps().in_memory(["front"]).journal_of(["front"], one.clone(), LogState::default()));
        assert_eq!(twice, StartError::TwoLogs { app: "front".into() });
        assert!(twice.to_string().contains("`front` twice"), "{twice}");

        // one log for both apps
        let hive = apps().journal(one.clone(), LogState::default()).start().unwrap();
        for id in 0..16 {
            hive.request(Put(id)).await.unwrap();
        }
        hive.stop(Duration::from_secs(5)).await;
        one.stop();
        let state = || LogState::replay(one.log().iter().map(Vec::as_slice)).unwrap();
        assert!(state().bees.keys().any(|(app, _)| *app == AppId(0)));

        let moved = start(apps().journal(one.clone(), state()).journal_of(
            ["front"],
            other.clone(),
            LogState::default(),
        ));
        let forgotten = start(apps().journal(one.clone(), state()).in_memory(["front"]));
        for refused in [moved, forgotten] {
            let StartError::Log { why } = &refused else { panic!("{refused}") };
            assert!(why.contains("app `front`") && why.contains("the log that it had"), "{why}");
        }
        other.stop();
    })
}

/// The bee with the highest id has ended, but the log remembers its id.
#[test]
fn the_id_of_a_bee_that_is_gone_is_not_used_again() {
    #[derive(Message)]
    struct Touch(u64);
    #[derive(Message)]
    struct Leave(u64);
    #[derive(App)]
    struct Guests {
        rooms: Dict<u64, u64>,
    }
    #[handlers]
    impl Guests {
        #[rcv(sharded)]
        fn touch(&mut self, msg: &Touch) {
            self.rooms.put(msg.0, 1);
        }
        #[rcv(sharded)]
        fn leave(&mut self, msg: &Leave) {
            self.rooms.remove(&msg.0);
        }
    }
    let newest = |journals: &[&Arc<TestJournal>]| {
        let log: Vec<Vec<u8>> = journals.iter().flat_map(|journal| journal.log()).collect();
        let state = LogState::replay(log.iter().map(Vec::as_slice)).unwrap();
        (state.newest.get(&AppId(0)).copied(), state)
    };

    on_workers(2, async {
        let journal = TestJournal::start(1, 0, 0);
        let builder = || Hive::builder().app::<Guests>().seed(1);
        let hive = builder().journal(journal.clone(), LogState::default()).start().unwrap();
        let mut io = hive.io();
        (0..500).for_each(|key| io.emit(Touch(key)));
        // each bee that ends is an entry
        (400..500).for_each(|key| io.emit(Leave(key)));
        io.flush().await;
        hive.idle().await;
        let gone = || newest(&[&journal]).1.bees.len() == 400;
        eventually("all bees have ended", Duration::from_secs(20), gone).await;
        drop(io);
        hive.stop(Duration::from_secs(5)).await;
        journal.stop();

        let (before, state) = newest(&[&journal]);
        let before = before.unwrap();
        let newest_left = state.bees.keys().map(|(_, bee)| *bee).max().unwrap();
        assert!(before > newest_left && before.0 > state.last.0, "{before} {newest_left} {:?}", state.last);

        let later = TestJournal::start(2, 0, state.last);
        let hive = builder().journal(later.clone(), state).start().unwrap();
        hive.emit(Touch(1_000)).await;
        let logged = || newest(&[&journal, &later]).1.bees.len() == 401;
        eventually("the new bee is in the log", Duration::from_secs(20), logged).await;
        let after = newest(&[&journal, &later]).0.unwrap();
        assert!(after > before, "{after} {before}");
        hive.stop(Duration::from_secs(5)).await;
        later.stop()
    })
}

/// An app may declare that its state is in memory only. The hive then needs not be told.
#[test]
fn an_app_that_declares_itself_in_memory_is_in_no_log() {
    #[derive(Message)]
    struct Note(u64);
    #[derive(App)]
    #[app(durability = "memory")]
    struct Cache {
        notes: Dict<u64, u64>,
    }
    #[handlers]
    impl Cache {
        #[rcv(sharded)]
        fn note(&mut self, msg: &Note) {
            *self.notes.entry(msg.0).or_default() += 1
        }
    }

    on_workers(2, async {
        let (journal, other) = (TestJournal::start(1, 0, 0), TestJournal::start(1, 0, 0));
        let start = |builder: Builder| {
            builder.app::<Ledger>().app::<Cache>().journal(journal.clone(), LogState::default()).start()
        };
        let both = start(Hive::builder().journal_of(["cache"], other.clone(), LogState::default()));
        let both = both.map(|_| ()).unwrap_err();
        assert_eq!(both, StartError::LogInMemory { app: "cache" });
        assert!(both.to_string().contains("`cache`"), "{both}");

        // naming it once more changes nothing
        let hive = start(Hive::builder().in_memory(["cache"])).unwrap();
        hive.request(Put(1)).await.unwrap();
        (0..8).for_each(|_| hive.try_emit(Note(1)).unwrap());
        hive.stop(Duration::from_secs(5)).await;
        journal.stop();
        other.stop();
        let state = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
        assert_eq!(state.bees.keys().map(|(app, _)| *app).collect::<Vec<_>>(), [AppId(0)]);
        assert!(Cache::map_report().contains("durability: memory"), "{}", Cache::map_report());
    })
}

/// The default of the hive concerns the apps that declare nothing, and the status says where each app's state is.
#[test]
fn the_hive_decides_for_apps_that_declare_no_durability() {
    #[derive(Message)]
    struct Keep(u64);
    #[derive(App)]
    #[app(durability = "disk")]
    struct Vault {
        kept: Dict<u64, u64>,
    }
    #[handlers]
    impl Vault {
        #[rcv(sharded)]
        fn keep(&mut self, msg: &Keep) {
            *self.kept.entry(msg.0).or_default() += 1
        }
    }

    on_workers(2, async {
        let journal = TestJournal::start(1, 0, 0);
        let builder = Hive::builder().app::<Ledger>().app::<Vault>();
        let builder = builder.journal(journal.clone(), LogState::default());
        let hive = builder.durability(Durability::Memory).start().unwrap();
        hive.request(Put(1)).await.unwrap();
        hive.try_emit(Keep(1)).unwrap();
        hive.stop(Duration::from_secs(5)).await;
        let of = |hive: &Hive| -> Vec<_> {
            hive.status().apps.iter().map(|app| (app.durability, app.durability_asked)).collect()
        };
        let (disk, memory) = (Durability::Disk, Durability::Memory);
        assert_eq!(of(&hive), [(memory, None), (disk, Some(disk))]);
        journal.stop();
        let state = LogState::replay(journal.log().iter().map(Vec::as_slice)).unwrap();
        assert_eq!(state.bees.keys().map(|(app, _)| *app).collect::<Vec<_>>(), [AppId(1)]);

        let hive = Hive::builder().app::<Vault>().start().unwrap();
        assert_eq!(of(&hive), [(memory, Some(disk))], "there is no log");
        hive.stop(Duration::from_secs(5)).await;
    })
}
