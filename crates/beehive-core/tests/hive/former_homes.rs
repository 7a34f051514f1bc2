//! An app that has no bees gets another home log: what its former home has begun stays there, and what it begins later has numbers
//! that nobody knows yet.

use crate::load::{eventually, killed, on_workers};
use beehive_core::journal::{Journal, LogState};
use beehive_core::testing::TestJournal;
use beehive_core::{App, Ctx, Dict, Hive, Message, StartError, handlers};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// [`Relay`] sets a timer for each number.
#[derive(Message)]
struct Begin(Range<u64>);
#[derive(Message)]
struct Job(u64);
#[derive(Message)]
struct Done(u64);
#[derive(Message)]
#[message(reply = u64)]
struct Times(u64);
#[derive(Message)]
struct Nothing;

/// Has no bees.
#[derive(App)]
struct Relay {
    unused: Dict<u64, u64>,
}
#[handlers]
impl Relay {
    #[rcv(stateless)]
    fn begin(&self, msg: &Begin, ctx: &mut Ctx) {
        msg.0.clone().for_each(|number| ctx.after(Duration::from_millis(1), Job(number)))
    }
    #[rcv(stateless)]
    fn job(&self, msg: &Job, ctx: &mut Ctx) {
        ctx.emit(Done(msg.0))
    }
}

#[derive(App)]
struct Sink {
    times: Dict<u64, u64>,
}
#[handlers]
impl Sink {
    #[rcv(sharded)]
    fn done(&mut self, msg: &Done) {
        *self.times.entry(msg.0).or_default() += 1
    }
    #[rcv(sharded)]
    fn times(&mut self, msg: &Times) -> u64 {
        self.times.get(&msg.0).copied().unwrap_or(0)
    }
}

/// Keeps a log in use that was the home of [`Relay`].
#[derive(App)]
struct Spare {
    nothing: Dict<u64, u64>,
}
#[handlers]
impl Spare {
    #[rcv(centralized)]
    fn nothing(&mut self, _: &Nothing) {
        *self.nothing.entry(0).or_default() += 1
    }
}

const LIMIT: Duration = Duration::from_secs(20);

/// The entries of each log.
type Entries = Vec<Vec<Vec<u8>>>;

fn states(entries: &Entries) -> Vec<LogState> {
    entries.iter().map(|log| if log.is_empty() { LogState::default() } else { killed(log) }).collect()
}

/// A process. Each log is that of some apps.
struct Life {
    hive: Hive,
    logs: Vec<Arc<TestJournal>>,
    before: Entries,
}

impl Life {
    /// Goes on with the first logs, and begins the others.
    fn start(mut before: Entries, apps: &[&[&str]], stalled: &[usize]) -> Result<Life, StartError> {
        before.resize(apps.len(), Vec::new());
        let mut builder = Hive::builder().app::<Relay>().app::<Sink>().app::<Spare>().seed(3);
        let mut logs = Vec::new();
        for ((at, state), apps) in states(&before).into_iter().enumerate().zip(apps) {
            let log = TestJournal::start(91 + at as u64, 0, state.last);
            log.stall(stalled.contains(&at));
            builder = builder.journal_of(apps.iter().copied(), log.clone() as Arc<dyn Journal>, state);
            logs.push(log)
        }
        Ok(Life { hive: builder.start()?, logs, before })
    }

    fn entries(&self) -> Entries {
        let logs = self.before.iter().zip(&self.logs);
        logs.map(|(before, log)| [before.clone(), log.log()].concat()).collect()
    }

    /// Returns the number of unhandled messages in each log.
    fn unhandled(&self) -> Vec<usize> {
        states(&self.entries()).iter().map(|state| state.outbox.len()).collect()
    }

    /// Does jobs, and waits until each log knows that all of its messages are handled.
    async fn does(&self, jobs: Range<u64>) {
        self.hive.emit(Begin(jobs.clone())).await;
        self.has_done(jobs).await;
        eventually("all is handled", LIMIT, || self.unhandled().iter().all(|count| *count == 0)).await
    }

    /// Waits until these jobs have been done, and checks that each of them is done once.
    async fn has_done(&self, jobs: Range<u64>) {
        for job in jobs {
            let mut times = 0;
            for _ in 0..2_000 {
                times = self.hive.request_within(LIMIT, Times(job)).await.unwrap();
                if times > 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            assert_eq!(times, 1, "job {job}")
        }
    }

    async fn kill(self) -> Entries {
        self.logs.iter().for_each(|log| log.stop());
        self.hive.stop(Duration::ZERO).await;
        self.entries()
    }
}

fn refusal(before: Entries, apps: &[&[&str]]) -> String {
    match Life::start(before, apps, &[]) {
        Err(StartError::Log { why }) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the hive has started"),
    }
}

/// Nothing of the app is left in its former home. The new one is told what becomes of the app's later messages.
#[test]
fn an_app_whose_messages_are_all_handled_may_get_another_home() {
    on_workers(2, async {
        let life = Life::start(Vec::new(), &[&["relay", "spare"], &["sink"]], &[]).unwrap();
        life.does(0..10).await;
        let mut before = life.kill().await;

        let apart: &[&[&str]] = &[&["spare"], &["sink"], &["relay"]];
        for number in 1..3 {
            let life = Life::start(before, apart, &[]).unwrap();
            life.does(10 * number..10 * number + 10).await;
            life.has_done(0..10 * number).await;
            before = life.kill().await
        }
    })
}

#[test]
fn an_app_does_not_get_another_home_before_its_messages_are_handled() {
    on_workers(2, async {
        let together: &[&[&str]] = &[&["relay", "spare"], &["sink"]];
        let life = Life::start(Vec::new(), together, &[1]).unwrap();
        life.hive.emit(Begin(0..10)).await;
        eventually("the sink has none of them", LIMIT, || life.unhandled()[0] == 10).await;
        let before = life.kill().await;

        let why = refusal(before.clone(), &[&["spare"], &["sink"], &["relay"]]);
        assert!(why.contains("log number 0") && why.contains("`relay`"), "{why}");
        assert!(why.contains("give the app the log that it had"), "{why}");

        let life = Life::start(before, together, &[]).unwrap();
        life.has_done(0..10).await;
        life.kill().await;
    })
}
