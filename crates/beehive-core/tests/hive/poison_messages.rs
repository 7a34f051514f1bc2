//! Poison messages: child processes that call `abort` repeatedly, until the fifth incarnation sets the message
//! aside.

use crate::load::{eventually, on_workers};
use beehive_core::journal::{Entry, Journal, JournalEvents, LogState};
use beehive_core::{
    App, Ctx, Dict, Error, ErrorKind, HandlerReport, Handlers, Handles, Hive, Mapper, Message, handlers,
};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

/// A journal in a file.
struct FileJournal {
    entries: Mutex<mpsc::Sender<Arc<Entry>>>,
    events: OnceLock<Arc<dyn JournalEvents>>,
}

impl FileJournal {
    fn open(path: &Path) -> (Arc<FileJournal>, LogState) {
        let log = std::fs::read(path).unwrap_or_default();
        let mut rest = log.as_slice();
        let mut entries: Vec<&[u8]> = Vec::new();

        while let Some((length, more)) = rest.split_first_chunk::<4>()
            && let Some((entry, more)) = more.split_at_checked(u32::from_le_bytes(*length) as usize)
        {
            entries.push(entry);
            rest = more
        }

        let colony = LogState::replay(entries).unwrap();
        let (sender, receiver) = mpsc::channel::<Arc<Entry>>();
        let journal = Arc::new(FileJournal { entries: Mutex::new(sender), events: OnceLock::new() });

        let writer = Arc::downgrade(&journal);
        let mut file: File = OpenOptions::new().create(true).append(true).open(path).unwrap();
        std::thread::spawn(move || {
            for entry in receiver {
                let bytes = entry.encode();
                let mut record = (bytes.len() as u32).to_le_bytes().to_vec();
                record.extend(bytes);
                file.write_all(&record).unwrap();
                let Some(journal) = writer.upgrade() else { return };
                journal.events.get().unwrap().released(entry.number)
            }
        });

        (journal, colony)
    }
}

impl Journal for FileJournal {
    fn append(&self, entry: Arc<Entry>) {
        self.entries.lock().unwrap().send(entry).unwrap()
    }
    fn attach(&self, events: Arc<dyn JournalEvents>) {
        let _ = self.events.set(events);
    }
}

/// The step that crashes the process.
const POISON: u64 = 2;

/// Runs the steps 1 to 4 one after the other. `Way` says how each step is delivered.
#[derive(Message)]
struct Order(Way);
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Way {
    Bee,
    /// A timer sends the step to a stateless handler.
    Stateless,
    Sweep,
    /// A sweep of another app.
    SweepOfOther,
    /// A sender outside sends the step, and resends everything after a crash.
    Outside,
}
#[derive(Message, Clone)]
#[message(reply = u64)]
struct Step(u64);
#[derive(Message, Clone)]
struct Drift(u64);
#[derive(Message)]
struct Taken(u64);
#[derive(Message)]
struct Prepare(u64);
#[derive(Message)]
struct Sweep;
/// Answers with the steps that were executed.
#[derive(Message)]
#[message(reply = Vec<u64>)]
struct Steps;

fn take(step: u64) {
    if step == POISON {
        std::process::abort()
    }
}

#[derive(App)]
struct Front {
    places: Dict<u64, u64>,
}
#[handlers]
impl Front {
    #[rcv(centralized)]
    fn order(&mut self, msg: &Order, ctx: &mut Ctx) {
        // All messages have the same sender.
        self.places.put(0, 1);
        match msg.0 {
            Way::Bee => (1..=4).for_each(|step| ctx.emit(Step(step))),
            Way::Stateless => (1..=4).for_each(|step| ctx.after(Duration::from_millis(step), Drift(step))),
            Way::Sweep => {
                (1..=4).for_each(|place| ctx.emit(Prepare(place)));
                ctx.after(Duration::from_millis(50), Sweep)
            }
            Way::SweepOfOther => {
                (1..=4).for_each(|row| ctx.emit(Seed(row)));
                ctx.emit(Reap)
            }
            Way::Outside => {}
        }
    }
    #[rcv(sharded)]
    fn prepare(&mut self, msg: &Prepare) {
        self.places.put(msg.0, 1);
    }
    #[rcv(each = places)]
    fn sweep(&mut self, place: &u64, _msg: &Sweep, ctx: &mut Ctx) {
        if *place > 0 {
            take(*place);
            ctx.emit(Taken(*place))
        }
    }
    #[rcv(stateless)]
    fn drift(&mut self, msg: &Drift, ctx: &mut Ctx) {
        take(msg.0);
        ctx.emit(Taken(msg.0))
    }
}
#[derive(Message)]
struct Seed(u64);
#[derive(Message)]
struct Reap;
#[derive(App)]
struct Back {
    taken: Dict<u64, Vec<u64>>,
    rows: Dict<u64, u64>,
}
#[handlers]
impl Back {
    #[rcv(sharded)]
    fn seed(&mut self, msg: &Seed) {
        self.rows.put(msg.0, 1);
    }
    #[rcv(each = rows)]
    fn reap(&mut self, row: &u64, _: &Reap, ctx: &mut Ctx) {
        take(*row);
        ctx.emit(Taken(*row))
    }
    #[rcv(centralized)]
    fn step(&mut self, msg: &Step) -> u64 {
        take(msg.0);
        self.taken.entry(0).or_default().push(msg.0);
        msg.0
    }
    #[rcv(centralized)]
    fn taken(&mut self, msg: &Taken) {
        self.taken.entry(0).or_default().push(msg.0)
    }
    #[rcv(centralized)]
    fn steps(&mut self, _: &Steps) -> Vec<u64> {
        self.taken.get(&0).cloned().unwrap_or_default()
    }
}

/// The map drops it. The handler does nothing, or ends the process.
#[derive(Message)]
struct Dropped(u64);

/// An app whose map is not derived.
#[derive(App)]
struct Picky {
    picked: Dict<u64, u64>,
}

impl Handlers for Picky {
    const MONOLITHIC: u64 = 0;
    const REPORT: &'static [HandlerReport] = &[HandlerReport {
        name: "dropped",
        message: "dropped",
        answer: "",
        kind: "sharded",
        cells: "picked[..]",
        joins: "",
        views: "",
        file: "picky.rs",
        line: 1,
        reason: "",
        reason_line: 0,
        note: "",
    }];

    fn register(registrar: &mut beehive_core::__private::Registrar<'_, Self>) {
        beehive_core::__private::Registration::<Self, (), Dropped>::of(registrar).rcv();
    }
}

impl Handles<Dropped> for Picky {
    const HANDLER: usize = 0;
    const ANSWERS: bool = false;

    fn map(_: &Dropped, _: &mut Mapper) {}
    fn handle(&mut self, msg: &Dropped, _: &mut Ctx) -> Result<Option<()>, Error> {
        take(msg.0);
        Ok(None)
    }
}

/// The report of the incarnation that survives.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Told {
    steps: Vec<u64>,
    letters: Vec<(String, String, bool)>,
    /// Answers to the sender of the steps.
    answers: Vec<Result<u64, Option<ErrorKind>>>,
    /// Number of unfinished messages in the log at the end.
    unfinished: usize,
}

/// Opens the journals of a hive with this number of logs.
fn open(directory: &Path, logs: usize) -> Vec<(Arc<dyn Journal>, LogState)> {
    let open = |at: usize| FileJournal::open(&directory.join(format!("log{at}")));
    (0..logs).map(open).map(|(journal, colony)| (journal as Arc<dyn Journal>, colony)).collect()
}

/// Returns the states of the logs.
fn states(directory: &Path, logs: usize) -> Vec<LogState> {
    open(directory, logs).into_iter().map(|(_, colony)| colony).collect()
}

/// The logs of a hive.
#[derive(Clone, Copy)]
enum Logs {
    /// The bees of both apps are spread over this many logs.
    Shared(usize),
    /// Each app has a log of its own.
    Apart,
}

async fn live(directory: &Path, way: Way, layout: Logs) {
    let logs = match layout {
        Logs::Shared(logs) => logs,
        Logs::Apart => 2,
    };
    let journals = open(directory, logs);
    let fresh = journals.iter().all(|(_, colony)| colony.last.0 == 0);
    let builder = Hive::builder().seed(7).app::<Front>().app::<Back>();
    let builder = match layout {
        Logs::Shared(_) => builder.journals(journals),
        Logs::Apart => ["front", "back"]
            .into_iter()
            .zip(journals)
            .fold(builder, |builder, (app, (journal, colony))| builder.journal_of([app], journal, colony)),
    };
    let hive = builder.start().unwrap();
    let mut io = hive.io();

    if way == Way::Outside {
        io.resume(77, 0);
        (1..=4).for_each(|step| io.emit(Step(step)));
        io.flush().await
    } else if fresh {
        hive.emit(Order(way)).await
    }

    let mut steps = Vec::new();
    for _ in 0..1_000 {
        steps = hive.request(Steps).await.unwrap();
        if steps.len() == 3 && hive.dead_letters().len() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await
    }

    let mut answers = Vec::new();
    while let Some(mail) = io.try_receive() {
        let of_steps = mail.into_answers::<Step>().into_iter().flatten();
        answers.extend(of_steps.map(|answer| answer.map_err(|error| error.kind())))
    }

    let letter = |l: beehive_core::DeadLetter| {
        (l.message.to_string(), l.words.clone(), l.error.kind() == ErrorKind::Aborted)
    };
    let letters = hive.dead_letters().into_iter().map(letter).collect();
    eventually("the log has it", Duration::from_secs(10), || {
        states(directory, logs).iter().all(|colony| colony.outbox.is_empty() && colony.sweeps.is_empty())
    })
    .await;

    hive.stop(Duration::from_secs(5)).await;
    let left = states(directory, logs);
    assert!(left.iter().all(|colony| colony.marker.is_none()), "it has ended well");

    let unfinished = left.iter().map(|colony| colony.outbox.len()).sum();
    let told = Told { steps, letters, answers, unfinished };
    std::fs::write(directory.join("told"), serde_json::to_vec(&told).unwrap()).unwrap()
}

const CHILD: &str = "BEEHIVE_TEST_ABORTS_IN";

/// A hive to which a sender outside sends messages that the map drops. The verification of the map for one of them ends the
/// process.
async fn dropping(directory: &Path) {
    let builder = Hive::builder().seed(7).app::<Picky>().verify_maps(1);
    let hive = builder.journals(open(directory, 1)).start().unwrap();
    // the next process must know that this one has begun
    eventually("the log has a marker", Duration::from_secs(10), || states(directory, 1)[0].marker.is_some())
        .await;
    // The hive learns a moment later what is in the file. A lane that is resumed before that is quarantined
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut io = hive.io();
    io.resume(77, 0);
    (1..=4).for_each(|step| io.emit(Dropped(step)));
    io.flush().await;
    let letters = hive.dead_letters().len();
    hive.stop(Duration::from_secs(5)).await;
    std::fs::write(directory.join("told"), letters.to_string()).unwrap()
}

/// The map of a message that may have ended the process is not verified: otherwise each process would end.
#[test]
fn a_dropped_message_whose_verification_crashes_the_process_ends_one_process() {
    let test = "a_dropped_message_whose_verification_crashes_the_process_ends_one_process";
    if let Some(directory) = std::env::var_os(CHILD) {
        return on_workers(2, dropping(Path::new(&directory)));
    }
    let directory = std::env::temp_dir().join(format!("beehive-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let life = || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = format!("poison_messages::{test}");
        child.args(["--exact", &test, "--test-threads", "1"]).env(CHILD, &directory).output().unwrap()
    };
    let ended = life();
    assert!(ended.status.code().is_none(), "the first life: {ended:?}");
    let ended = life();
    assert!(ended.status.success(), "the second life: {ended:?}");
    assert_eq!(std::fs::read(directory.join("told")).unwrap(), b"0");
    std::fs::remove_dir_all(directory).unwrap()
}

/// Runs incarnations as child processes of this test, until one produces a report.
fn five_lives(test: &str, way: Way, logs: Logs) -> Option<Told> {
    if let Some(directory) = std::env::var_os(CHILD) {
        on_workers(2, live(Path::new(&directory), way, logs));
        return None;
    }

    let directory = std::env::temp_dir().join(format!("beehive-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let lives = || {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = format!("poison_messages::{test}");
        child.args(["--exact", &test, "--test-threads", "1"]).env(CHILD, &directory).output().unwrap()
    };

    for life in ["first", "second", "third", "fourth"] {
        let ended = lives();
        // The incarnation was killed by a signal. A failed test would exit with a status code instead.
        assert!(ended.status.code().is_none(), "the {life} life: {ended:?}");
        assert!(!directory.join("told").exists());
    }

    let ended = lives();
    assert!(ended.status.success(), "the fifth life: {ended:?}");

    let told = serde_json::from_slice(&std::fs::read(directory.join("told")).unwrap()).unwrap();
    std::fs::remove_dir_all(directory).unwrap();
    Some(told)
}

fn check(told: &Told, letter: (&str, &str)) {
    let mut steps = told.steps.clone();
    steps.sort_unstable();
    assert_eq!(steps, [1, 3, 4], "the others go on, once each: {told:?}");
    let [(message, words, aborted)] = &told.letters[..] else { panic!("{told:?}") };
    assert!(message.ends_with(letter.0) && words == letter.1 && *aborted, "{told:?}");
    assert_eq!(told.unfinished, 0, "it is not run by the next life, either");
}

#[test]
fn a_message_that_crashes_the_process_four_times_is_set_aside() {
    let test = "a_message_that_crashes_the_process_four_times_is_set_aside";
    let Some(told) = five_lives(test, Way::Bee, Logs::Shared(1)) else { return };
    assert_eq!(told.steps, [1, 3, 4], "in order");
    check(&told, ("Step", "2"))
}

#[test]
fn a_stateless_timer_message_that_crashes_the_process_four_times_is_set_aside() {
    let test = "a_stateless_timer_message_that_crashes_the_process_four_times_is_set_aside";
    let Some(told) = five_lives(test, Way::Stateless, Logs::Shared(1)) else { return };
    check(&told, ("Drift", "2"))
}

#[test]
fn a_sweep_visit_that_crashes_the_process_four_times_is_set_aside() {
    let test = "a_sweep_visit_that_crashes_the_process_four_times_is_set_aside";
    let Some(told) = five_lives(test, Way::Sweep, Logs::Shared(1)) else { return };
    check(&told, ("beehive::Each", "[2,null]"))
}

#[test]
fn a_resent_message_that_crashes_the_process_four_times_is_answered_with_an_error() {
    let test = "a_resent_message_that_crashes_the_process_four_times_is_answered_with_an_error";
    let Some(told) = five_lives(test, Way::Outside, Logs::Shared(1)) else { return };
    check(&told, ("Step", "2"));
    let errors: Vec<_> = told.answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert!(matches!(&errors[..], [Some(ErrorKind::Aborted)]), "{told:?}");
    assert!(told.answers.contains(&Ok(4)), "{told:?}");
}

#[test]
fn a_message_that_crashes_a_process_with_two_logs_four_times_is_set_aside() {
    let test = "a_message_that_crashes_a_process_with_two_logs_four_times_is_set_aside";
    let Some(told) = five_lives(test, Way::Bee, Logs::Shared(2)) else { return };
    check(&told, ("Step", "2"))
}

#[test]
fn a_resent_message_that_crashes_a_process_with_eight_logs_four_times_is_set_aside() {
    let test = "a_resent_message_that_crashes_a_process_with_eight_logs_four_times_is_set_aside";
    let Some(told) = five_lives(test, Way::Outside, Logs::Shared(8)) else { return };
    check(&told, ("Step", "2"))
}

#[test]
fn a_sweep_visit_that_crashes_a_process_with_eight_logs_four_times_is_set_aside() {
    let test = "a_sweep_visit_that_crashes_a_process_with_eight_logs_four_times_is_set_aside";
    let Some(told) = five_lives(test, Way::Sweep, Logs::Shared(8)) else { return };
    check(&told, ("beehive::Each", "[2,null]"))
}

#[test]
fn a_sweep_visit_that_crashes_a_process_with_a_log_for_each_app_four_times_is_set_aside() {
    let test = "a_sweep_visit_that_crashes_a_process_with_a_log_for_each_app_four_times_is_set_aside";
    let Some(told) = five_lives(test, Way::SweepOfOther, Logs::Apart) else { return };
    check(&told, ("beehive::Each", "[2,null]"))
}
