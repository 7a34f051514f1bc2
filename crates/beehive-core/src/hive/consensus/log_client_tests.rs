//! Tests of [`LogClient`]: which entries it appends, and what they contain.

use super::*;
use crate::cell::BeeId;
use crate::hive::consensus::journal::{Part, Seq, Visited};
use crate::hive::consensus::logs::Logs;
use crate::mutant::Mutation;
use crate::time::Time;

/// A journal that keeps its entries.
#[derive(Default)]
struct Kept(Mutex<Vec<Arc<Entry>>>);

impl Journal for Kept {
    fn append(&self, entry: Arc<Entry>) {
        self.0.lock().push(entry)
    }
    fn attach(&self, _: Arc<dyn JournalEvents>) {}
}

impl Kept {
    /// Returns each entry's number, the number of the entry it was executed on, and the bees whose runs it
    /// contains.
    fn entries(&self) -> Vec<(u64, u64, Vec<u64>)> {
        let bees = |record: &Record| match record {
            Record::Turn(works) => works.iter().map(|work| work.bee.0).collect(),
            _ => Vec::new(),
        };
        self.0.lock().iter().map(|entry| (entry.number.0, entry.after.0, bees(&entry.record))).collect()
    }
}

fn client() -> (Arc<Kept>, Arc<LogClient<u64>>) {
    let journal = Arc::new(Kept::default());
    (journal.clone(), client_of(journal))
}

fn client_of(journal: Arc<dyn Journal>) -> Arc<LogClient<u64>> {
    let journals = [(journal, LogState::default())];
    let logs = Logs::new(&journals, vec![vec![0]], Time::ZERO, None, Mutation::default());
    logs.clients().get(0).unwrap().clone()
}

fn run(client: &LogClient<u64>, bee: u64, newest: Option<EntryNumber>) -> Option<EntryNumber> {
    run_of(client, bee, newest, 100)
}

/// Returns the cells whose visits the journal's entries contain, in order.
fn visits(journal: &Kept) -> Vec<Vec<u64>> {
    let cells = |visited: &[Visited]| -> Vec<u64> {
        visited.iter().flat_map(|visited| &visited.cells).map(|cell| cell.0).collect()
    };
    let of_record = |record: &Record| match record {
        Record::Turn(works) => works.iter().flat_map(|work| cells(&work.visits)).collect(),
        Record::Visited(visited) => cells(visited),
        _ => Vec::new(),
    };
    journal.0.lock().iter().map(|entry| of_record(&entry.record)).collect()
}

fn visit(client: &LogClient<u64>, cell: u64) {
    let lane = LaneId::of_bee(AppId(0), BeeId(9));
    let sweep = MessageId { lane, seq: Seq(0), part: Part::WHOLE, app: AppId(0) };
    client.visited(sweep, &[CellId(cell)])
}

fn run_of(
    client: &LogClient<u64>,
    bee: u64,
    newest: Option<EntryNumber>,
    bytes: usize,
) -> Option<EntryNumber> {
    let (app, now, next_seq) = (AppId(0), Time::ZERO, Seq(0));
    let (cells, inputs, visits, redo, emits) = Default::default();
    let work = Work { app, bee: BeeId(bee), cells, inputs, visits, redo, emits, next_seq, now };
    client.append(Arc::new(bee), newest, work, bytes).ok().map(|appended| appended.number)
}

fn fates(client: &LogClient<u64>, numbers: &[u64]) -> Vec<Fate> {
    numbers.iter().map(|number| client.fate(EntryNumber(*number))).collect()
}

fn retire(client: &LogClient<u64>) {
    drop(client.say(Record::Retire { lanes: Vec::new(), view: 0 }))
}

#[test]
#[cfg_attr(debug_assertions, should_panic = "the journal released")]
fn an_entry_that_was_not_appended_is_not_released() {
    let (_, client) = client();
    retire(&client);
    assert!(client.released(EntryNumber(1)).is_empty());
    client.released(EntryNumber(2));
}

#[test]
fn runs_share_an_entry_until_the_turn_ends_or_the_hive_says_something() {
    let (journal, client) = client();
    let first = run(&client, 1, None);
    assert_eq!([run(&client, 2, None), run(&client, 1, first)], [first; 2]);
    assert!(journal.entries().is_empty(), "the turn goes on");

    client.append_open();
    client.append_open();
    assert_eq!(journal.entries(), [(1, 0, vec![1, 2, 1])]);

    run(&client, 3, None);
    retire(&client);
    assert_eq!(journal.entries()[1..], [(2, 1, vec![3]), (3, 2, vec![])], "in the order of their numbers");

    assert_eq!(client.released(EntryNumber(2)).iter().map(|bee| **bee).collect::<Vec<_>>(), [1, 2, 1, 3]);
    assert_eq!(fates(&client, &[1, 2, 3]), [Fate::Committed, Fate::Committed, Fate::Open]);
}

/// Any later run of the visited bee must come after the record of the visit. The next run of any bee therefore
/// contains all visits so far.
#[test]
fn the_next_run_of_any_bee_records_the_visits_without_effect() {
    let (journal, client) = client();
    visit(&client, 7);
    visit(&client, 8);
    run(&client, 1, None);
    run(&client, 2, None);
    client.append_open();
    visit(&client, 9);
    client.log_consumed();
    client.log_consumed();
    assert_eq!(visits(&journal), [vec![7, 8], vec![9]]);
}

/// If the entry with the visits is dead, the next run of any bee records them again, even if the bee whose run
/// contained them has not processed the abort yet.
#[test]
fn visits_in_a_dead_entry_are_recorded_by_the_next_run() {
    let (journal, client) = client();
    visit(&client, 7);
    run(&client, 1, None);
    client.append_open();
    visit(&client, 8);
    run(&client, 1, None);
    client.aborted(EntryNumber(0));
    run(&client, 2, None);
    client.append_open();
    assert_eq!(visits(&journal), [vec![7], vec![7, 8]]);

    client.released(EntryNumber(3));
    client.log_consumed();
    assert_eq!(journal.entries().len(), 2, "the committed entry has recorded them");
}

/// The record of visits waits for those that a refused entry contained.
#[test]
fn visits_are_recorded_when_their_record_is_committed_also_after_a_refusal() {
    let (journal, client) = client();
    visit(&client, 7);
    run(&client, 1, None);
    client.append_open();
    let mut told = client.log_visits();
    assert_eq!(visits(&journal), [vec![7], vec![]]);
    client.aborted(EntryNumber(0));
    assert_eq!(visits(&journal)[2..], [vec![7]]);
    assert!(told.try_recv().is_err());
    client.released(EntryNumber(3));
    assert!(told.try_recv().is_ok())
}

#[test]
fn many_visits_are_recorded_at_once() {
    let (journal, client) = client();
    (0..=limits::VISITS_NOTED_MAX as u64).for_each(|cell| visit(&client, cell));
    assert_eq!(visits(&journal), [(0..=limits::VISITS_NOTED_MAX as u64).collect::<Vec<_>>()]);
}

/// Notes that a bee has handled a message on a lane whose floor is `floor`.
fn note(client: &LogClient<u64>, bee: u64, (floor, seq): (u64, u64)) {
    let (lane, part) = (LaneId::lasting(1), Part::WHOLE);
    let inputs =
        [Input { lane, floor: Some(Seq(floor)), seq: Seq(seq), count: 1, part }].into_iter().collect();
    client.note_consumed(Consumed { app: AppId(0), bee: BeeId(bee), inputs, visits: Vec::new() })
}

/// A log that commits nothing gets one entry of notes. Those that follow wait for it, and the floor removes them.
#[test]
fn notes_wait_while_an_entry_of_notes_is_in_flight() {
    let (journal, client) = client();
    note(&client, 1, (0, 0));
    client.log_consumed_if_due();
    assert_eq!(journal.entries().len(), 1);

    for seq in 1..100_000 {
        note(&client, 1 + seq % 2, (seq, seq));
        if seq.is_multiple_of(1_000) {
            client.log_consumed_if_due()
        }
    }
    assert_eq!(journal.entries().len(), 1, "one is in flight");
    let bytes = client.state.lock().consumed_bytes;
    assert!(bytes <= limits::CONSUMED_BYTES_MAX, "{bytes} bytes");

    // a refused entry is appended again, and is still the only one
    client.aborted(EntryNumber(0));
    client.log_consumed_if_due();
    assert_eq!(journal.entries().len(), 2);
    client.released(EntryNumber(2));
    client.log_consumed_if_due();
    assert_eq!(journal.entries().len(), 3);
    assert_eq!(client.state.lock().consumed_bytes, 0);
}

#[test]
fn an_entry_that_stays_open_is_appended() {
    let (journal, client) = client();
    client.append_old();
    run(&client, 1, None);
    client.append_old();
    run(&client, 2, None);
    assert!(journal.entries().is_empty());
    client.append_old();
    assert_eq!(journal.entries(), [(1, 0, vec![1, 2])]);

    run(&client, 3, None);
    client.append_old();
    assert_eq!(journal.entries().len(), 1, "the next one is new");
}

#[test]
fn a_run_that_is_too_large_for_the_open_entry_goes_into_the_next() {
    let (journal, client) = client();
    run_of(&client, 1, None, 10);
    run_of(&client, 2, None, limits::TURN_BYTES_MAX);
    run_of(&client, 3, None, 10);
    client.append_open();
    assert_eq!(journal.entries(), [(1, 0, vec![1]), (2, 1, vec![2]), (3, 2, vec![3])]);
}

/// The journal refuses an entry while the next one is still open. The open entry is dead too, although it was
/// never appended to the journal.
#[test]
fn an_open_entry_dies_with_the_entries_before_it() {
    let (journal, client) = client();
    let first = run(&client, 1, None);
    client.append_open();
    let second = run(&client, 1, first);
    assert_eq!(run(&client, 2, None), second);

    assert_eq!(client.aborted(EntryNumber(0)).len(), 3, "each is woken");
    client.append_open();
    assert_eq!(journal.entries().len(), 1, "it is not appended");
    assert_eq!(fates(&client, &[1, 2]), [Fate::Dead; 2]);

    // a bee that has not yet processed the abort cannot add a run on top of a dead entry
    assert_eq!(run(&client, 2, second), None);
    client.taken_back([EntryNumber(2)].into_iter());
    assert_eq!(run(&client, 2, None), Some(EntryNumber(3)));
    client.append_open();
    assert_eq!(journal.entries()[1..], [(3, 0, vec![2])], "it takes effect after the last entry that did");

    // committing an entry with a higher number does not commit a dead one
    client.released(EntryNumber(3));
    assert_eq!(fates(&client, &[1, 2, 3]), [Fate::Dead, Fate::Dead, Fate::Committed]);
    client.taken_back([EntryNumber(1), EntryNumber(2)].into_iter());
    assert!(client.state.lock().dead.is_empty(), "nobody asks any more");
}

/// A journal that takes its time: each call waits for a permit.
struct Slow {
    kept: Kept,
    entered: std::sync::mpsc::Sender<()>,
    permits: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Journal for Slow {
    fn append(&self, entry: Arc<Entry>) {
        self.entered.send(()).unwrap();
        self.permits.lock().recv().unwrap();
        self.kept.append(entry)
    }
    fn attach(&self, _: Arc<dyn JournalEvents>) {}
}

/// A thread has taken the open entry and is handing it to the journal. An abort that did not wait for it would be followed by
/// an entry that it concerns, and a journal that answers with another abort would kill entries that it accepts.
#[test]
fn while_the_journal_takes_an_entry_runs_are_added_and_an_abort_waits() {
    let ((entered, has_entered), (permit, permits)) =
        (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let journal = Arc::new(Slow { kept: Kept::default(), entered, permits: Mutex::new(permits) });
    let client = client_of(journal.clone());
    assert_eq!(run(&client, 1, None), Some(EntryNumber(1)));
    std::thread::scope(|scope| {
        scope.spawn(|| client.append_open());
        has_entered.recv().unwrap();

        // does not wait, although the journal has not got the first entry yet
        assert_eq!(run(&client, 2, None), Some(EntryNumber(2)));
        assert_eq!(fates(&client, &[1, 2]), [Fate::Open, Fate::Open]);

        let (aborted, is_aborted) = std::sync::mpsc::channel();
        scope.spawn(|| {
            let bees = client.aborted(EntryNumber(0));
            // moved into this thread, so that the channel closes when it ends
            let aborted = aborted;
            aborted.send((bees, journal.kept.entries().len())).unwrap()
        });
        let early = is_aborted.recv_timeout(std::time::Duration::from_millis(50));
        assert!(early.is_err(), "{early:?} before the journal has the entry");

        permit.send(()).unwrap();
        let (bees, entries) = is_aborted.recv().unwrap();
        assert_eq!((bees.iter().map(|bee| **bee).collect::<Vec<_>>(), entries), (vec![1, 2], 1));
    });
    assert_eq!(fates(&client, &[1, 2]), [Fate::Dead, Fate::Dead]);
    client.append_open();
    assert_eq!(journal.kept.entries(), [(1, 0, vec![1])], "the second entry was open, so it is dropped");
}

/// A dead entry stays dead until its runs are taken back, also when later entries have been committed.
#[test]
fn a_dead_entry_is_not_taken_for_committed() {
    let (_, client) = client();
    run(&client, 1, None);
    client.append_open();
    client.aborted(EntryNumber(0));
    let later = run(&client, 2, None).unwrap();
    client.append_open();
    client.released(later);

    assert_eq!(fates(&client, &[1, later.0]), [Fate::Dead, Fate::Committed]);
    client.taken_back([EntryNumber(1)].into_iter());
    assert_eq!(client.dead.load(Ordering::Relaxed), 0);
}
