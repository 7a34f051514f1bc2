//! A hive's side of the log, as small as possible: entries whose content follows from their number, and a check of what
//! is left of them.

use beehive_core::journal::{Journal, JournalEvents};
use beehive_protocol::{
    Address, AppId, BeeId, Emit, Emits, EncodedCells, Entry, EntryNumber, HiveId, LaneId, LogState,
    LoggedSettings, MessageId, MessageTypeId, Op, Part, Payload, Record, Redo, Seq, Time, Work,
};
use beehive_raft::files::SimulatedFiles;
use beehive_raft::{Data, OpenError, Options};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The folder of all tests.
pub(crate) const FOLDER: &str = "/data";

/// The number of logs.
pub(crate) const LOGS: usize = 2;

pub(crate) fn open(files: &SimulatedFiles) -> Result<Data, OpenError> {
    open_with(files, 4_000)
}

/// Opens the folder, and carries out the start, as a hive does.
pub(crate) fn open_with(files: &SimulatedFiles, checkpoint_after: u64) -> Result<Data, OpenError> {
    let data = Options::default()
        .files(Arc::new(files.clone()))
        .logs(LOGS as u16)
        .sizes(2_000, checkpoint_after)
        .open(FOLDER)?;
    data.begin()?;
    Ok(data)
}

/// The payload of the message that an entry emits.
fn payload(log: usize, number: u64) -> Vec<u8> {
    let length = number.wrapping_mul(0x9e37_79b9) >> 7 & 0xff;
    (0..length).map(|at| (at ^ number ^ log as u64) as u8).collect()
}

fn id(log: usize, number: u64) -> MessageId {
    let lane = LaneId::of_bee(AppId(0), BeeId(log as u64 + 1));
    MessageId { lane, seq: Seq(number), part: Part::WHOLE, app: AppId(1) }
}

/// The bee of an entry. Each bee has eight entries in a row, and then rests for a while.
fn bee(log: usize, number: u64) -> BeeId {
    BeeId(log as u64 + 1 + 10 * (number / 8 % 6))
}

/// The row that an entry writes.
fn row(log: usize, number: u64, value: &[u8], mut write: impl FnMut(Op)) {
    let key = (number * 2 + log as u64).to_le_bytes();
    write(Op { dict: 0, key: &key, row: None, value: Some(value) })
}

/// Returns the record of entry `number` of a log, counted over all terms. It writes a row, and emits one message, which stays
/// in the outbox.
fn record(log: usize, number: u64) -> Record {
    let mut redo = Redo::default();
    row(log, number, &payload(log, number), |op| redo.push(op));
    let emit = Emit {
        id: id(log, number),
        message_type: MessageTypeId(1),
        payload: Payload::from(&*payload(log, number)),
        at: None,
        is_sweep: false,
        position: None,
        origin: HiveId(0),
        sender: Address::App(AppId(0)),
        hops: 0,
        chain: 0,
        chance: 0,
    };
    let work = Work {
        app: AppId(0),
        bee: bee(log, number),
        cells: Vec::new(),
        inputs: Default::default(),
        visits: Vec::new(),
        redo,
        emits: Emits(vec![emit]),
        next_seq: Seq(number + 1),
        now: Time::ZERO,
    };
    Record::Turn(vec![Arc::new(work)])
}

/// Checks that the state of a log is that of its first entries, whole and in order, up to at least `acknowledged`. The
/// entries that begin a term do not count.
pub(crate) fn check(log: usize, state: &LogState, acknowledged: u64) -> Result<(), String> {
    let last = state.emitted;
    if last < acknowledged {
        return Err(format!("log {log} ends with entry {last}, but {acknowledged} was acknowledged"));
    }
    if state.outbox.len() as u64 != last {
        return Err(format!("log {log} has {} messages of {last} entries", state.outbox.len()));
    }
    for number in 1..=last {
        let waiting = state.outbox.get(&id(log, number));
        let waiting = waiting.ok_or_else(|| format!("log {log}: entry {number} is not there"))?;
        if waiting.order != number || *waiting.emit.payload != *payload(log, number) {
            return Err(format!("log {log}: entry {number} is not as it was written"));
        }
    }

    let mut bees: BTreeMap<BeeId, EncodedCells> = BTreeMap::new();
    for number in 1..=last {
        let cells = bees.entry(bee(log, number)).or_default();
        row(log, number, &payload(log, number), |op| cells.apply(op))
    }
    let found = state.bees.iter().map(|((_, bee), image)| (*bee, &image.state));
    match found.eq(bees.iter().map(|(bee, cells)| (*bee, cells))) {
        true => Ok(()),
        false => Err(format!("log {log}: the rows are not as they were written")),
    }
}

/// What the journal has reported.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// What is added to the number of an entry to count it over all terms.
    offset: u64,
    state: Mutex<(u64, Vec<u64>)>,
    changed: Condvar,
}

impl JournalEvents for Reports {
    fn released(&self, upto: EntryNumber) {
        let mut state = self.state.lock();
        let upto = upto.0.wrapping_add(self.offset);
        assert!(upto >= state.0, "released {upto} after {}", state.0);
        state.0 = upto;
        self.changed.notify_all();
    }
    fn aborted(&self, last: EntryNumber) {
        self.state.lock().1.push(last.0.wrapping_add(self.offset));
        self.changed.notify_all();
    }
    fn deposed(&self) {
        panic!("nobody else leads a log on a disk")
    }
    fn confirmed(&self, round: u64) {
        panic!("nobody has asked for {round}")
    }
}

impl Reports {
    pub(crate) fn released_upto(&self) -> u64 {
        self.state.lock().0
    }
    pub(crate) fn aborted(&self) -> Vec<u64> {
        self.state.lock().1.clone()
    }
    /// Waits until entry `number` is released. Gives up after `timeout`, and returns whether it is.
    pub(crate) fn wait(&self, number: u64, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = self.state.lock();
        while state.0 < number && !self.changed.wait_until(&mut state, until).timed_out() {}
        state.0 >= number
    }
}

/// One log, as its hive sees it.
pub(crate) struct Client {
    journal: Arc<dyn Journal>,
    pub(crate) reports: Arc<Reports>,
    log: usize,
    /// The last entry that was appended, counted over all terms.
    pub(crate) last: u64,
}

impl Client {
    fn number(&self, last: u64) -> EntryNumber {
        EntryNumber(last.wrapping_sub(self.reports.offset))
    }
    pub(crate) fn append(&mut self) {
        self.append_after(self.last + 1, self.last)
    }
    /// Appends an entry and waits until it is on disk.
    pub(crate) fn commit(&mut self) {
        self.append();
        assert!(self.reports.wait(self.last, Duration::from_secs(20)), "entry {} is not released", self.last)
    }
    /// Appends an entry of this many bytes, whose content does not matter.
    pub(crate) fn append_large(&mut self, bytes: usize) {
        let (number, after) = (self.number(self.last + 1), self.number(self.last));
        let settings = LoggedSettings { version: self.last as u32 + 1, table: "x".repeat(bytes) };
        let record = Record::Settings { settings: vec![(AppId(0), settings)] };
        self.journal.append(Arc::new(Entry { number, after, record }));
        self.last += 1
    }
    /// Appends an entry that was executed on entry `after`.
    pub(crate) fn append_after(&mut self, number: u64, after: u64) {
        let record = record(self.log, number);
        let entry = Entry { number: self.number(number), after: self.number(after), record };
        self.journal.append(Arc::new(entry));
        self.last = number
    }
}

/// Returns the clients of all logs, and checks what the logs contain. `acknowledged` has the last released entry of each.
pub(crate) fn clients(data: &Data, acknowledged: &[u64]) -> Result<Vec<Client>, String> {
    let logs = data.journals().into_iter().enumerate();
    logs.map(|(log, (journal, state))| {
        check(log, &state, acknowledged.get(log).copied().unwrap_or_default())?;
        let offset = state.emitted.wrapping_sub(state.last.0);
        let reports = Arc::new(Reports { offset, ..Reports::default() });
        journal.attach(reports.clone());
        Ok(Client { journal, reports, log, last: state.emitted })
    })
    .collect()
}
