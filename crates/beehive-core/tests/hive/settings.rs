//! Settings that change at run time: each transaction sees one version, versions never go back, a change is
//! all or nothing, and a log keeps it.

use crate::load::{On, eventually, on_workers, start};
use beehive_core::journal::{Entry, LogState, Record};
use beehive_core::testing::TestJournal;
use beehive_core::{
    App, Builder, Config, Ctx, Dict, Hive, Message, ReconfigureError, Reconfigured, Table, handlers,
};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default, deny_unknown_fields)]
struct Rules {
    level: u64,
    strict: bool,
}

/// Begins a chain.
#[derive(Message)]
#[message(reply = u64)]
struct Begin(u64);
/// Continues a chain: the cell, and the level that its sender saw.
#[derive(Message)]
struct Step(u64, u64, u8);
/// Same as [`Step`], for a stateless handler.
#[derive(Message)]
struct Pass(u64, u64, u8);
/// A stateless handler has got a [`Pass`] whose sender's level was above its own.
#[derive(Message)]
struct Passed(u64);
/// Answers with the number of times that a sender's level was above the receiver's.
#[derive(Message)]
#[message(reply = u64)]
struct Behind(u64);
#[derive(Message)]
#[message(reply = Vec<u32>)]
struct Told(u64);

#[derive(App)]
#[app(name = "ruled")]
struct Ruled {
    behind: Dict<u64, u64>,
    told: Table<u64, u32, u32>,
    config: Config<Rules>,
}

#[handlers]
impl Ruled {
    #[rcv(sharded)]
    fn begin(&mut self, msg: &Begin, ctx: &mut Ctx) -> u64 {
        self.behind.entry(msg.0).or_default();
        let level = self.config.level;
        ctx.emit(Step(msg.0 + 1, level, 8));
        ctx.emit(Pass(msg.0 + 2, level, 8));
        level
    }

    #[rcv(sharded)]
    fn step(&mut self, msg: &Step, ctx: &mut Ctx) {
        let level = self.config.level;
        let behind = self.behind.entry(msg.0 % 64).or_default();
        *behind += u64::from(level < msg.1);
        if msg.2 > 0 {
            ctx.emit(Pass(msg.0 + 7, level, msg.2 - 1))
        }
    }

    #[rcv(stateless)]
    fn pass(&mut self, msg: &Pass, ctx: &mut Ctx) {
        // Sends the level seen here to the next cell, which counts the message if its own level is lower.
        let level = self.config.level;
        ctx.emit(Step(msg.0 % 64, level.max(msg.1), msg.2));
        if level < msg.1 {
            ctx.emit(Passed(msg.0 % 64))
        }
    }

    #[rcv(sharded)]
    fn passed(&mut self, msg: &Passed) {
        *self.behind.entry(msg.0).or_default() += 1
    }

    #[rcv(sharded)]
    fn behind(&mut self, msg: &Behind) -> u64 {
        self.behind.get(&msg.0).copied().unwrap_or(0)
    }

    #[rcv(each = behind)]
    fn reconfigured(&mut self, cell: &u64, msg: &Reconfigured) {
        *self.told.at(*cell).entry(msg.version).or_default() += 1;
    }

    #[rcv(sharded)]
    fn told(&mut self, msg: &Told) -> Vec<u32> {
        self.told.at(msg.0).keys().copied().collect()
    }
}

/// An app without settings.
#[derive(App)]
struct Plain {
    seen: Dict<u64, u64>,
}
#[handlers]
impl Plain {
    #[rcv(sharded)]
    fn begin(&mut self, msg: &Begin) -> Option<u64> {
        self.seen.put(msg.0, 1);
        None
    }
}

fn rules(text: &str) -> toml::Table {
    text.parse().unwrap()
}

fn level(level: u64) -> toml::Table {
    rules(&format!("[ruled]\nlevel = {level}\n"))
}

fn ruled() -> Builder {
    Hive::builder().app::<Plain>().app::<Ruled>().seed(7).settings(level(1))
}

fn a_message_never_meets_older_settings_than_its_sender_had(on: On) {
    on_workers(4, async {
        let (hive, journal) = start(ruled(), on);
        let senders: Vec<_> = (0..3)
            .map(|sender| {
                let hive = hive.clone();
                tokio::spawn(async move {
                    let (mut last, mut seen) = (0, 0);
                    for n in 0..400 {
                        let level = hive.request(Begin((sender * 400 + n) % 64)).await.unwrap();
                        assert!(level >= last, "{level} after {last}");
                        seen += u64::from(level > last);
                        last = level
                    }
                    seen
                })
            })
            .collect();

        let mut current = 1;
        while !senders.iter().all(|sender| sender.is_finished()) {
            current += 1;
            assert_eq!(hive.reconfigure(level(current)).await, Ok(vec!["ruled"]));
            // A request sent afterwards sees the new settings.
            assert_eq!(hive.request(Begin(current % 64)).await, Ok(current));
        }

        for sender in senders {
            assert!(sender.await.unwrap() > 1, "settings did not change meanwhile");
        }

        hive.idle().await;
        for cell in 0..64 {
            assert_eq!(hive.request(Behind(cell)).await, Ok(0), "cell {cell}");
        }

        let status = hive.status();
        assert_eq!(
            status.apps.iter().map(|app| app.settings_version).collect::<Vec<_>>(),
            [1, current as u32]
        );

        // Each existing cell was notified at least of the last version.
        assert!(hive.request(Told(current % 64)).await.unwrap().contains(&(current as u32)));
        hive.stop(Duration::from_secs(5)).await;
        drop(journal)
    })
}

#[test]
fn a_message_never_meets_older_settings_than_its_sender_had_in_memory() {
    a_message_never_meets_older_settings_than_its_sender_had(On::Memory)
}

#[test]
fn a_message_never_meets_older_settings_than_its_sender_had_on_a_journal() {
    a_message_never_meets_older_settings_than_its_sender_had(On::Journal)
}

#[test]
fn a_message_never_meets_older_settings_than_its_sender_had_while_bees_move() {
    a_message_never_meets_older_settings_than_its_sender_had(On::Journals)
}

#[test]
fn settings_that_one_app_refuses_change_nothing() {
    on_workers(2, async {
        let hive = ruled().start().unwrap();
        let refused = |text: &str| {
            let (hive, table) = (hive.clone(), rules(text));
            async move { hive.reconfigure(table).await.unwrap_err() }
        };

        for (text, words) in [
            ("[ruled]\nlevl = 2\n", "[apps.ruled]: unknown key `levl`; did you mean `level`?"),
            ("[ruled]\nlevel = -2\n", "[apps.ruled]"),
            ("ruled = 2\n", "[apps.ruled]: expected a table of settings"),
            ("[ruled]\nlevel = 2\n[plain]\ncolor = 1\n", "[apps.plain]: unknown key `color`"),
            ("[ruled]\nlevel = 2\n[ruler]\n", "[apps.ruler]: unknown app `ruler`; did you mean `ruled`?"),
            ("[elsewhere]\nlevel = 2\n", "[apps.elsewhere]: unknown app `elsewhere` (expected plain, ruled)"),
        ] {
            let error = refused(text).await;
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(hive.request(Begin(1)).await, Ok(1));
        }

        assert_eq!(hive.reconfigure(level(1)).await, Ok(vec![]), "these are in force");
        assert_eq!(hive.status().apps[1].settings_version, 1);

        assert_eq!(hive.reconfigure(rules("")).await, Ok(vec!["ruled"]), "defaults");
        assert_eq!(hive.request(Begin(1)).await, Ok(0));
        hive.stop(Duration::from_secs(1)).await;
        assert_eq!(hive.reconfigure(level(3)).await, Err(ReconfigureError::Stopped));
    })
}

fn logged(journal: &TestJournal) -> Vec<(u32, String)> {
    let entries = journal.log().into_iter().map(|bytes| Entry::decode(&bytes).unwrap());
    let records = entries.filter_map(|entry| match entry.record {
        Record::Settings { settings } => Some(settings),
        _ => None,
    });
    records.flatten().map(|(_, logged)| (logged.version, logged.table)).collect()
}

fn colony(journal: &TestJournal) -> LogState {
    let log = journal.log();
    crate::load::killed(&log)
}

fn goes_on(table: toml::Table, colony: LogState) -> (Hive, Arc<TestJournal>) {
    let journal = TestJournal::start(9, 3, colony.last);
    let builder = Hive::builder().app::<Plain>().app::<Ruled>().seed(7).settings(table);
    (builder.journal(journal.clone(), colony).start().unwrap(), journal)
}

#[test]
fn a_log_knows_the_settings_before_anybody_sees_them_and_versions_go_on_after_a_restart() {
    on_workers(2, async {
        let (hive, journal) = goes_on(level(1), LogState::default());
        hive.request(Begin(5)).await.unwrap();
        assert_eq!(hive.reconfigure(level(2)).await, Ok(vec!["ruled"]));

        let two = [(1, "level = 1\n".to_string()), (2, "level = 2\n".to_string())];
        assert_eq!(logged(&journal), two);

        hive.idle().await;
        // Nothing is committed from here on, so the new settings never take effect.
        journal.stop();
        let (asking, asked) = (hive.clone(), level(3));
        let waits = tokio::spawn(async move { asking.reconfigure(asked).await });

        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!waits.is_finished());
        assert_eq!(hive.status().apps[1].settings_version, 2);

        hive.stop(Duration::from_millis(10)).await;
        assert_eq!(waits.await.unwrap(), Err(ReconfigureError::Stopped));

        // The settings are the same as before, so there is no new version, but the apps that handle
        // `Reconfigured` are notified again.
        let (hive, again) = goes_on(level(2), colony(&journal));
        let told = tokio::time::timeout(Duration::from_secs(30), async {
            while hive.request(Told(5)).await.unwrap().last() != Some(&2) {
                tokio::time::sleep(Duration::from_millis(5)).await
            }
        });

        told.await.expect("nobody was told");
        assert_eq!(hive.request(Begin(5)).await, Ok(2));

        hive.idle().await;
        assert_eq!(logged(&again), []);

        hive.stop(Duration::from_secs(1)).await;

        let (hive, third) = goes_on(level(7), colony(&journal));
        assert_eq!(hive.request(Begin(5)).await, Ok(7));

        eventually("logged", Duration::from_secs(10), || logged(&third) == [(3, "level = 7\n".to_string())])
            .await;
        assert_eq!(hive.status().apps[1].settings_version, 3);
        hive.stop(Duration::from_secs(1)).await;
    })
}

/// Has the same settings as `Ruled`, and can be in another log.
#[derive(App)]
#[app(name = "other")]
struct Other {
    levels: Dict<u64, u64>,
    config: Config<Rules>,
}

/// Answers with the level of `Other`.
#[derive(Message)]
#[message(reply = u64)]
struct Level(u64);

#[handlers]
impl Other {
    #[rcv(sharded)]
    fn level(&mut self, msg: &Level) -> u64 {
        self.levels.put(msg.0, self.config.level);
        self.config.level
    }
}

fn both(level: u64) -> toml::Table {
    rules(&format!("[ruled]\nlevel = {level}\n[other]\nlevel = {level}\n"))
}

/// Starts a hive on two logs: that of `ruled`, and that of `other`.
fn on_two(settings: toml::Table, logs: [LogState; 2]) -> (Hive, [Arc<TestJournal>; 2]) {
    let journals = [0, 1].map(|at: usize| TestJournal::start(at as u64, 0, logs[at].last));
    let [ruled, other] = logs;
    let builder = Hive::builder().app::<Ruled>().app::<Other>().seed(7).settings(settings);
    let builder = builder.journal_of(["ruled"], journals[0].clone(), ruled);
    (builder.journal_of(["other"], journals[1].clone(), other).start().unwrap(), journals)
}

/// Changes settings, and expects an answer soon although a log stalls.
fn change(
    hive: &Hive,
    table: toml::Table,
) -> tokio::task::JoinHandle<Result<Vec<&'static str>, ReconfigureError>> {
    let hive = hive.clone();
    tokio::spawn(async move { hive.reconfigure(table).await })
}

async fn other_sees(hive: &Hive, level: u64) {
    let sees = async {
        while hive.request(Level(1)).await != Ok(level) {
            tokio::time::sleep(Duration::from_millis(2)).await
        }
    };
    tokio::time::timeout(Duration::from_secs(5), sees).await.expect("its log commits")
}

fn versions(journal: &TestJournal) -> Vec<u32> {
    logged(journal).into_iter().map(|(version, _)| version).collect()
}

#[test]
fn a_log_that_stalls_does_not_hold_up_the_settings_of_other_logs() {
    on_workers(2, async {
        let (hive, [of_ruled, of_other]) = on_two(both(1), [LogState::default(), LogState::default()]);
        other_sees(&hive, 1).await;
        eventually("logged", Duration::from_secs(5), || versions(&of_ruled) == [1]).await;

        of_ruled.stall(true);
        let waits = change(&hive, both(2));
        other_sees(&hive, 2).await;
        let mixed = "[ruled]\nlevel = 2\n[other]\nlevel = 3\n";
        let waits_too = change(&hive, rules(mixed));
        other_sees(&hive, 3).await;
        assert!(!waits.is_finished() && !waits_too.is_finished(), "one app has the old settings");
        // a change of an app whose log commits does not wait for a change of another app, but for the call's own apps
        let last = change(&hive, both(5));
        other_sees(&hive, 5).await;
        // these have not begun when the next ones replace them
        let back = change(&hive, both(1));
        other_sees(&hive, 1).await;
        assert_eq!(hive.status().apps.iter().map(|app| app.settings_version).collect::<Vec<_>>(), [1, 5]);

        of_ruled.stall(false);
        let everything = async { (waits.await, waits_too.await, last.await, back.await) };
        let (first, second, third, fourth) =
            tokio::time::timeout(Duration::from_secs(10), everything).await.expect("the log commits");
        for outcome in [first, second, third, fourth] {
            assert_eq!(outcome.unwrap(), Ok(vec!["ruled", "other"]))
        }
        assert_eq!((hive.request(Begin(1)).await, hive.request(Level(1)).await), (Ok(1), Ok(1)));
        assert_eq!((versions(&of_ruled), versions(&of_other)), (vec![1, 2, 3], vec![1, 2, 3, 4, 5]));
        hive.stop(Duration::from_secs(1)).await;
    })
}

/// A hive is killed when one log has the new settings and the other one does not.
#[test]
fn new_settings_that_only_one_log_has_are_compared_at_the_next_start() {
    for (settings, expected) in [(both(2), [2, 2]), (both(1), [1, 3]), (both(9), [2, 3])] {
        on_workers(2, async {
            let (hive, [of_ruled, of_other]) = on_two(both(1), [LogState::default(), LogState::default()]);
            assert_eq!((hive.request(Begin(1)).await, hive.request(Level(1)).await), (Ok(1), Ok(1)));
            eventually("logged", Duration::from_secs(5), || versions(&of_ruled) == [1]).await;
            hive.idle().await;
            of_ruled.stop();
            let waits = change(&hive, both(2));
            other_sees(&hive, 2).await;
            assert!(!waits.is_finished());
            of_other.stop();
            let logs = [&of_ruled, &of_other].map(|journal| colony(journal));
            hive.stop(Duration::from_millis(10)).await;

            let level = settings["ruled"]["level"].as_integer().unwrap() as u64;
            let (hive, journals) = on_two(settings, logs);
            assert_eq!((hive.request(Begin(1)).await, hive.request(Level(1)).await), (Ok(level), Ok(level)));
            let status = hive.status();
            assert_eq!(status.apps.iter().map(|app| app.settings_version).collect::<Vec<_>>(), expected);
            eventually("told", Duration::from_secs(10), || {
                let in_log = |at: usize, was: u32| match expected[at] {
                    version if version == was => versions(&journals[at]).is_empty(),
                    version => versions(&journals[at]) == [version],
                };
                in_log(0, 1) && in_log(1, 2)
            })
            .await;
            assert_eq!(hive.reconfigure(both(4)).await, Ok(vec!["ruled", "other"]));
            assert_eq!((hive.request(Begin(1)).await, hive.request(Level(1)).await), (Ok(4), Ok(4)));
            hive.stop(Duration::from_secs(1)).await;
        })
    }
}
