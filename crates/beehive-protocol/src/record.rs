//! The records written to a log by bees and hives, and the entries that contain them.

use crate::codec::{DecodeError, decode_many, encode_many, encode_many_into};
use crate::limits::ADMITTED_MESSAGES_MAX;
use crate::{
    AppId, BeeId, BeeImage, CellId, CellImage, ColonyId, CrashMarker, DedupTable, Emits, EntryNumber, Epoch,
    HandlerId, LaneId, LogPlace, LoggedSettings, MessageId, Part, Redo, Seq, Shapes, Time, Untold,
};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// Messages of one lane that were consumed: either a run of `count` numbers from `seq` on, or one part of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AnyInput")]
pub struct Input {
    /// The sender's lane.
    pub lane: LaneId,
    /// The lane's low-water mark, as announced by the sender, which never resends a message below it. The receiver
    /// remembers each message until the mark has passed it. `None` if the messages can come only from this log's
    /// outbox. The record then removes them from the outbox, so they never arrive again.
    pub floor: Option<Seq>,
    /// The first number.
    pub seq: Seq,
    /// Length of the run.
    pub count: u32,
    /// See [`MessageId::part`]. If it is not [`Part::WHOLE`], the count is one.
    pub part: Part,
}

/// An [`Input`] whose count has not been checked.
#[derive(Deserialize)]
struct AnyInput {
    lane: LaneId,
    floor: Option<Seq>,
    seq: Seq,
    count: u32,
    part: Part,
}

impl TryFrom<AnyInput> for Input {
    type Error = &'static str;

    fn try_from(AnyInput { lane, floor, seq, count, part }: AnyInput) -> Result<Input, &'static str> {
        match part.is_whole() || count == 1 {
            true => Ok(Input { lane, floor, seq, count, part }),
            false => {
                Err("an input stands for the parts of several messages, and may stand for one part only")
            }
        }
    }
}

impl Input {
    /// Returns the number after the last one.
    pub(crate) fn end(&self) -> Seq {
        self.seq.plus(u64::from(self.count))
    }

    /// Returns the consumed numbers, each together with the part.
    pub fn messages(&self) -> impl Iterator<Item = (Seq, Part)> {
        (self.seq.0..self.seq.plus(self.count as u64).0).map(|seq| (Seq(seq), self.part))
    }
}

/// Inputs of a record. Nearly all records have one.
pub type InputRuns = SmallVec<[Input; 1]>;

/// Decodes inputs. Unlike `SmallVec`, reserves no memory for the number of inputs that damaged bytes claim.
fn input_runs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<InputRuns, D::Error> {
    struct Runs;

    impl<'de> Visitor<'de> for Runs {
        type Value = InputRuns;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of inputs")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<InputRuns, A::Error> {
            let mut runs = InputRuns::new();
            while let Some(input) = list.next_element()? {
                runs.push(input)
            }
            Ok(runs)
        }
    }

    deserializer.deserialize_seq(Runs)
}

/// Decodes the input of a [`Record::Admit`].
fn admitted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Input, D::Error> {
    let input = Input::deserialize(deserializer)?;
    match input.count <= ADMITTED_MESSAGES_MAX {
        true => Ok(input),
        false => Err(D::Error::custom(format_args!(
            "{} messages are consumed without a bee; `limits::ADMITTED_MESSAGES_MAX` allows {ADMITTED_MESSAGES_MAX}",
            input.count
        ))),
    }
}

/// Cells that a sweep has visited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visited {
    /// The sweep.
    pub sweep: MessageId,
    /// The cells.
    pub cells: Vec<CellId>,
}

/// The result of one bee's run of transactions, including the stateless handlers that ran as part of it.
///
/// It is complete, so a follower applies it without running a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The app.
    pub app: AppId,
    /// The bee.
    pub bee: BeeId,
    /// Cells that the bee owns but whose owner is not in the log yet.
    pub cells: Vec<CellId>,
    /// Messages that the bee consumed, except those that are never resent.
    #[serde(deserialize_with = "input_runs")]
    pub inputs: InputRuns,
    /// Visits of sweeps that the bee handled.
    pub visits: Vec<Visited>,
    /// Changes to the bee's cells, in order.
    pub redo: Redo,
    /// Messages emitted to journaled apps, in order.
    pub emits: Emits,
    /// The next free number of the bee's lane.
    pub next_seq: Seq,
    /// The time seen by the handlers.
    pub now: Time,
}

/// Messages that a bee handled without changing or sending anything. They do not get a record of their own. Either runs
/// of several bees share one [`Record::Consumed`], or the bee's next [`Work`] lists the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumed {
    /// The app.
    pub app: AppId,
    /// The bee.
    pub bee: BeeId,
    /// The messages.
    #[serde(deserialize_with = "input_runs")]
    pub inputs: InputRuns,
    /// The visits of sweeps.
    pub visits: Vec<Visited>,
}

impl Consumed {
    /// Adds messages and visits that the same bee handled later.
    pub fn absorb(&mut self, later: Consumed) {
        debug_assert_eq!((self.app, self.bee), (later.app, later.bee), "the two are of different bees");
        self.inputs.extend(later.inputs);
        self.visits.extend(later.visits)
    }

    /// Returns the estimated size in a record, in bytes.
    pub fn size(&self) -> usize {
        const FIXED_FIELDS: usize = 64;
        let visits =
            self.visits.iter().map(|visited| FIXED_FIELDS + size_of_val(&*visited.cells)).sum::<usize>();
        FIXED_FIELDS + size_of_val(&*self.inputs) + visits
    }
}

/// Messages of one lane that an app in another log has handled: either a run of `count` numbers starting at `seq`, or
/// one part of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acked {
    /// The app that has handled them.
    pub app: AppId,
    /// The sender's lane.
    pub lane: LaneId,
    /// The first number.
    pub seq: Seq,
    /// Length of the run.
    pub count: u32,
    /// See [`MessageId::part`]. If it is not [`Part::WHOLE`], the count is one.
    pub part: Part,
}

impl Acked {
    /// Returns the ids of the messages.
    pub fn messages(self) -> impl Iterator<Item = MessageId> {
        let Acked { app, lane, seq, count, part } = self;
        (seq.0..seq.plus(u64::from(count)).0).map(move |seq| MessageId { lane, seq: Seq(seq), part, app })
    }

    /// Checks whether the message with this id is acknowledged.
    pub fn contains(&self, id: &MessageId) -> bool {
        let Acked { app, lane, seq, count, part } = *self;
        (app, lane, part) == (id.app, id.lane, id.part) && (seq..seq.plus(u64::from(count))).contains(&id.seq)
    }

    /// Adds the messages in `later` if they follow immediately. Returns whether they were added.
    pub fn extend(&mut self, later: &Acked) -> bool {
        let follows = (self.app, self.lane, self.part, self.seq.plus(u64::from(self.count)))
            == (later.app, later.lane, later.part, later.seq);
        let count = self.count.checked_add(later.count).filter(|_| follows && self.part.is_whole());
        count.map(|count| self.count = count).is_some()
    }
}

/// One change of the state that results from a log (see [`LogState`](crate::LogState)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Record {
    /// Bees handled messages, in this order. The record contains everything done by one or more workers between two
    /// entries, and may contain several runs of one bee.
    Turn(Vec<Arc<Work>>),
    /// A message was consumed without a bee: it began a sweep, or a stateless handler derived other messages from it.
    Admit {
        /// The app.
        app: AppId,
        /// The handler.
        handler: HandlerId,
        /// The consumed message.
        #[serde(deserialize_with = "admitted")]
        input: Input,
        /// The emitted messages, which still have to be handled.
        emits: Emits,
    },
    /// A sweep advanced, and now visits these cells.
    Expand {
        /// The sweep.
        sweep: MessageId,
        /// The cells it now visits.
        cells: Vec<CellId>,
        /// Cells from earlier steps that lost their owner before being visited, and will no longer be visited.
        gone: Vec<CellId>,
        /// The first cell, in the order of [`sweep_order`], that the sweep has not reached. `None` if it has reached all
        /// cells.
        next: Option<CellId>,
    },
    /// Two bees merged: the cells of `from` now belong to `into`.
    Fuse {
        /// The app of both bees.
        app: AppId,
        /// The bee that ceased to exist.
        from: BeeId,
        /// The bee that took over the cells.
        into: BeeId,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// A bee gave back its cells and ceased to exist. The floors of its senders' lanes are above every message that it
    /// had handled.
    Release {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// Low-water marks of the lanes that may continue after a crash ([`LaneId::is_lasting`]). From now on, the log
        /// keeps them in place of the bee.
        floors: Vec<(LaneId, Seq)>,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// Lanes have ended: their senders send no more messages, so the log forgets the lanes.
    Retire {
        /// The lanes.
        lanes: Vec<LaneId>,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// Apps have new settings.
    Settings {
        /// The settings, by app.
        settings: Vec<(AppId, LoggedSettings)>,
    },
    /// The following records are encoded in these shapes.
    Shapes(Shapes),
    /// Bees handled messages that had no effect. Until this is logged, the messages count as unhandled, so they are
    /// handled again after a crash.
    Consumed(Vec<Consumed>),
    /// Messages of this log were handled, and their receivers' logs have committed the records that say so. This log need
    /// not resend the messages. The record has no effect on the lanes of a frozen bee.
    Acked(Vec<Acked>),
    /// This log's sweeps visited cells of bees in other logs, which have committed the records of the visits.
    Visited(Vec<Visited>),
    /// A bee is about to move to another log. From now on, it handles no messages, and its outbox does not change.
    Freeze {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The bee's own lane, and the lanes of bees that merged into it and still have messages in the outbox.
        lanes: Vec<LaneId>,
        /// The colony to which it is about to move.
        to: ColonyId,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// Part of a bee frozen in another log. This log stores the part but does not yet use it.
    Stage {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The bee's epoch after the move.
        epoch: Epoch,
        /// The part. The first one is a [`StagePart::Bee`].
        part: StagePart,
        /// Number of parts before this one.
        at: u32,
        /// Number of parts in all.
        of: u32,
        /// The highest index of the registry known to the log that the bee is about to leave. Zero if the logs decide
        /// alone.
        view: u64,
    },
    /// All parts of a bee are staged, and it is now a bee of this log. This record decides the move.
    Adopt {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The bee's epoch after the move.
        epoch: Epoch,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// A move to this log was abandoned, so the log forgets the staged parts of the bee.
    Unstage {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// A frozen bee has moved: another log has adopted it, so this log forgets the bee and its outbox.
    Drop {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// The move of a frozen bee was abandoned, so the bee stays in this log.
    Thaw {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The bee's epoch from now on. The registry raises it when it decides that the bee stays.
        epoch: Epoch,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// The log's new crash marker. A hive appends a marker when it starts and removes it when it stops cleanly. After a
    /// crash, the marker names each message left unfinished by the crash before the message is handled.
    Mark {
        /// The marker. `None` removes it.
        marker: Option<CrashMarker>,
    },
    /// The registry has given cells to a new bee of this log. The bee is empty so far. A log that decides alone has no such
    /// records: its bees begin with their first [`Work`].
    Create {
        /// The app.
        app: AppId,
        /// The bee.
        bee: BeeId,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// A bee gave some of its cells to a new one, whose id the registry had reserved. Its outbox is empty. The new bee
    /// sends on a lane of its own, and remembers the messages that the old one has handled.
    Split {
        /// The app.
        app: AppId,
        /// The bee that had the cells.
        bee: BeeId,
        /// The new bee.
        new: BeeId,
        /// The cells.
        cells: Vec<CellId>,
        /// The dictionaries and the encoded keys of these cells.
        keys: Vec<(u32, Vec<u8>)>,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// The registry knows a change that this log decided.
    Told {
        /// The change.
        what: Untold,
        /// The registry's index on which the record is based. Zero if the log decides alone.
        view: u64,
    },
    /// A term begins: a hive begins to use the log, because it has started or, in a cluster, because it was elected. The
    /// entry has the term's first number, and takes effect whatever [`Entry::after`] says. From then on, no entry of an
    /// earlier term takes effect. Nothing is executed before the entry is committed.
    Blank,
    /// The hive's time. It is logged at intervals, so that a process that goes on knows until when the last one ran,
    /// although nothing may have happened for hours.
    Time(Time),
    /// The log's place among the logs of its hive. A hive that decides alone logs it when it starts, unless the log says so
    /// already.
    Place(LogPlace),
}

impl Record {
    /// Returns the bees that the record may change, or on which its effect depends, except for the lanes that
    /// [`Record::Retire`] makes every bee forget. A state that contains no other bees gets the same changes from the
    /// record.
    pub fn bees(&self) -> SmallVec<[(AppId, BeeId); 2]> {
        match self {
            Record::Turn(works) => works.iter().map(|work| (work.app, work.bee)).collect(),
            Record::Consumed(all) => all.iter().map(|one| (one.app, one.bee)).collect(),
            Record::Fuse { app, from, into, .. } => [(*app, *from), (*app, *into)].into(),
            Record::Split { app, bee, new, .. } => [(*app, *bee), (*app, *new)].into(),
            Record::Release { app, bee, .. }
            | Record::Freeze { app, bee, .. }
            | Record::Adopt { app, bee, .. }
            | Record::Drop { app, bee, .. }
            | Record::Thaw { app, bee, .. }
            | Record::Create { app, bee, .. } => SmallVec::from_iter([(*app, *bee)]),
            Record::Admit { .. }
            | Record::Expand { .. }
            | Record::Retire { .. }
            | Record::Settings { .. }
            | Record::Shapes(_)
            | Record::Acked(_)
            | Record::Visited(_)
            | Record::Stage { .. }
            | Record::Unstage { .. }
            | Record::Told { .. }
            | Record::Mark { .. }
            | Record::Blank
            | Record::Time(_)
            | Record::Place(_) => SmallVec::new(),
        }
    }

    /// Returns the registry's index on which the record is based. Zero if it is not based on the registry.
    pub fn view(&self) -> u64 {
        match self {
            Record::Fuse { view, .. }
            | Record::Release { view, .. }
            | Record::Retire { view, .. }
            | Record::Freeze { view, .. }
            | Record::Stage { view, .. }
            | Record::Adopt { view, .. }
            | Record::Unstage { view, .. }
            | Record::Drop { view, .. }
            | Record::Thaw { view, .. }
            | Record::Create { view, .. }
            | Record::Split { view, .. }
            | Record::Told { view, .. } => *view,
            Record::Turn(_)
            | Record::Admit { .. }
            | Record::Expand { .. }
            | Record::Settings { .. }
            | Record::Shapes(_)
            | Record::Consumed(_)
            | Record::Acked(_)
            | Record::Visited(_)
            | Record::Mark { .. }
            | Record::Blank
            | Record::Time(_)
            | Record::Place(_) => 0,
        }
    }
}

/// Part of a bee that is being moved from one log to another. A bee is moved in parts, because it may be larger than an
/// entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StagePart {
    /// Everything except the contents of the bee's cells, its outbox, and what is too large for one part.
    Bee(Box<BeeImage>),
    /// Some of the bee's rows. One cell's rows may be in several parts.
    Rows(Vec<CellImage>),
    /// Some of the messages in the bee's outbox, in the order in which they were emitted.
    Outbox(Emits),
    /// Some of the bee's cells, if all of them are too large for [`StagePart::Bee`].
    Cells(Vec<CellId>),
    /// Some of the messages that the bee has handled, if all of them are too large for [`StagePart::Bee`].
    Seen(DedupTable),
}

/// Number of parts into which a sweep divides the cells, visiting one part after the other.
pub const SWEEP_PARTS: u64 = 64;

/// Returns the sort key by which a sweep orders the cells it visits.
pub fn sweep_order(cell: CellId) -> (u8, CellId) {
    (((cell.0 >> 48) % SWEEP_PARTS) as u8, cell)
}

/// A record with its position in the log.
///
/// An entry takes effect only if `after` is the number of the last entry that took effect, or if it begins a later term
/// ([`Record::Blank`]). An entry that does not take
/// effect is dead, and so is every entry executed on top of it. In Raft's terms, `number` is the entry's index and
/// `after` the previous entry's index. The hive checks `after` again when it applies the entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of this entry. No other entry has the same number.
    pub number: EntryNumber,
    /// Number of the entry on whose state the record was executed.
    pub after: EntryNumber,
    /// The change.
    pub record: Record,
}

impl Entry {
    /// Encodes the entry.
    ///
    /// # Panics
    ///
    /// Panics if the entry takes more than [`ENCODED_BYTES_MAX`](crate::limits::ENCODED_BYTES_MAX) bytes.
    pub fn encode(&self) -> Vec<u8> {
        encode_many(self)
    }

    /// Appends the encoded entry to a buffer.
    ///
    /// # Panics
    ///
    /// See [`Entry::encode`].
    pub fn encode_into(&self, bytes: &mut Vec<u8>) {
        encode_many_into(self, bytes)
    }

    /// Decodes an entry encoded by [`Entry::encode`].
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not exactly one entry.
    pub fn decode(bytes: &[u8]) -> Result<Entry, DecodeError> {
        decode_many("a log entry", bytes)
    }
}
