//! Mutants: a test breaks one rule of the protocol on purpose, to prove that a checker notices.
//!
//! The code that keeps a rule calls [`Mutation::breaks`]. Without the `testing` feature the result is a constant, and
//! the compiler removes the call.

macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A broken rule of the protocol. Each variant describes the fault of a hive with this mutant.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        // `testing` exports it
        #[cfg_attr(not(feature = "testing"), allow(unreachable_pub))]
        pub enum Mutant {
            $($(#[$doc])* $name,)*
        }

        impl Mutant {
            /// All mutants.
            #[cfg(feature = "testing")]
            pub const ALL: &'static [Mutant] = &[$(Mutant::$name),*];
        }
    };
}

mutants! {
    // Dedup tables and floors.
    /// A bee forgets the lanes of bees of other logs as if they had ended.
    UnknownForgotten,
    /// A restart forgets the lanes of senders outside, although the senders resume them.
    TakeoverRetires,
    /// A restart gives the lane of the earlier process to the messages that enter through the hive.
    SameLane,
    /// A lane is retired while its outbox is not empty.
    RetireBusy,
    /// A message from the outbox of the receiver's own log is removed from that outbox, but not remembered.
    LocalUnmarked,
    /// Receivers are not told the floors of bees.
    FloorUnstated,
    /// The floor for an app is taken from the messages to other apps.
    FloorOfOneApp,
    /// The floor passes numbers of records that are not committed.
    FloorFromSpeculation,
    /// The floor passes a message when the acknowledgment arrives, before it is committed.
    FloorOnVolatileAck,
    /// A message that no bee consumes is not remembered.
    WithoutBeeUnmarked,
    /// The log's own dedup table gets the floor of one app, although all apps of the log share the table.
    WithoutBeeFloorOfOneApp,

    // Acknowledgments.
    /// An acknowledgment counts for all apps that get the message.
    AckIgnoresApp,
    /// A message is acknowledged before the record that consumes it is committed.
    AckBeforeCommit,
    /// The acknowledgment of a message without effect comes from memory: the receiver acknowledges it although no committed entry
    /// names it.
    AckFromMemory,
    /// An acknowledgment that arrives during a move takes effect in memory, although the log of the outbox ignores it.
    FrozenTakesAcks,
    /// An acknowledgment that arrives during a move is dropped.
    MisdirectedDropped,

    // Passing on, and order.
    /// An app passes a message on under the number of the original sender.
    PassOnSameNumber,
    /// A message that an app passes on loses its requester.
    AskerForgotten,
    /// A message overtakes an earlier one of the same sender to the same cells.
    NoAfter,
    /// A restart resends an outbox in the wrong order.
    ResentInReverse,

    // Refused appends.
    /// Effects leave before the record is committed.
    EmitBeforeCommit,
    /// A read is answered before the changes that it has read are committed.
    ReadTail,
    /// A read is answered although another hive may lead the log.
    ReadUnconfirmed,
    /// A refused run stays in the dedup table.
    RefusedRemembered,
    /// A refused run stays in the state.
    RefusedKept,
    /// The numbers of dead entries are used again.
    NumberReused,
    /// A refused record of the hive itself is not appended again.
    RefusedRecordDropped,
    /// An entry does not name the messages that its bee previously handled without effect.
    OneMark,

    // Ends of bees.
    /// A bee ends although its senders may still resend messages that it has handled.
    ReleaseNaive,
    /// A bee ends although its outbox is not empty.
    ReleaseBusy,
    /// The log learns late that a bee has ended, after its cells have another owner.
    ReleaseRegistryFirst,
    /// A bee ends although a log that it has left still contains it.
    EndsBeforeDropped,
    /// Bee ids are assigned again after a restart.
    IdReused,
    /// A bee that has ended accepts messages.
    StaleRouteAccepted,

    // Merges.
    /// The dedup table of a bee that merges is lost.
    DedupNotMerged,
    /// A bee that merges takes over no lanes.
    OutboxNotMerged,
    /// The log forgets a bee that merges without knowing which messages the bee has handled without effect.
    MarksNotMerged,

    // Moves.
    /// A bee moves without a record that freezes it.
    SkipFreeze,
    /// A staged copy becomes the bee without a record that adopts it.
    ActivateOnStage,
    /// A copy is adopted before its rows and its outbox are staged.
    OwnBeforeStage,
    /// The old log drops the bee before the new log has adopted it.
    DropBeforeOwn,
    /// A move keeps the epoch.
    EpochReused,
    /// The dedup table does not move.
    DedupNotMoved,
    /// The outbox does not move.
    OutboxNotMoved,
    /// The next number of the lane does not move.
    LaneNotMoved,
    /// The rows do not move.
    RowsNotMoved,

    // Sweeps.
    /// Visits are marked in the log of the visited bee instead of being remembered by the bee.
    Visited,
    /// A later message of the sender of a sweep overtakes the visit of its cell.
    EachOvertaken,
    /// A restart does not notice that a sweep ends that began before.
    OpenSweepsForgotten,

    // Messages between hives.
    /// A bee forgets the lanes of senders in other hives.
    ForeignForgotten,
    /// A restart takes the lanes of other hives for its own, which have ended.
    RestartRetiresForeign,
    /// The floor stated to another hive passes the messages that are under way to it.
    ForeignFloorTooHigh,
    /// The stateless handlers of an app number their messages on the same lane in every hive.
    SameAppLane,
    /// A message to another hive returns its credits when it is sent.
    CreditAtSend,
    /// A restart does not create the bees that the registry assigned before the crash.
    MissingNotCreated,

    // Moves between hives.
    /// The acknowledgment of a message goes where its lane seems to be, and not to the hive that sent the message.
    AckByLane,
    /// Receivers forget the lane of a bee when the hive that had it last says that it has ended, although copies of its
    /// messages may come from a hive that had it before.
    RetiredUnheard,
    /// A bee that has come to a hive handles messages before the hive has routed what it had sent.
    AdoptedOvertakes,

    // The end of a hive.
    /// Handlers begin although the hive is over.
    RunsWhenOver,
    /// A run is recorded although the hive ended before its last messages.
    RecordsWhenOver,
    /// A merge whose record was never committed is carried out when the hive is over.
    MergesWhenOver,

    // Another hive leads a colony.
    /// A hive begins to lead before its replica of the registry is as new as the log.
    LeadsBehind,
    /// Messages under way to the old leader of a colony never come back.
    OldLeaderKept,
    /// The new leader of a log does not send the messages in its outbox again.
    TakenNotResent,
    /// The new leader of a log does not look at the crash marker of the old one.
    TakenUnmarked,
    /// A message is remembered in the log of the app whose stateless handler has handled it, and not in that of its sender.
    StatelessAtHome,
    /// A bee of a log with a new leader handles messages before those that it had sent are on their way.
    TakenOvertakes,

    // A hive loses a colony and lives on.
    /// A hive goes on with the bees of a log as if it still led it.
    DeposedStays,
    /// A hive that no longer leads a log releases the effects of what was not reported as committed.
    DeposedReleases,
    /// A hive that no longer leads a log goes on sending what it has sent for it.
    DeposedSends,
    /// The messages in the mailboxes of bees that a hive has lost are dropped.
    MailboxLost,
    /// The messages that come back from the bees that a hive has lost go behind later ones of the same sender.
    GivenBackLast,
    /// A bee without records ends before its log has committed that.
    UnloggedEndsAtOnce,

    // Poison messages.
    /// The crash marker does not name the message that runs.
    PoisonUnmarked,
    /// A message runs before the crash marker that names it is committed.
    PoisonBeforeMarker,
}

/// The mutant of a hive; a hive outside tests has none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mutation {
    #[cfg(feature = "testing")]
    mutant: Option<Mutant>,
}

impl Mutation {
    /// Breaks the rule of this mutant.
    #[cfg(feature = "testing")]
    pub(crate) fn of(mutant: Option<Mutant>) -> Mutation {
        Mutation { mutant }
    }

    /// Checks whether the hive breaks the rule of this mutant.
    #[inline(always)]
    pub(crate) fn breaks(self, mutant: Mutant) -> bool {
        #[cfg(feature = "testing")]
        let broken = self.mutant;
        #[cfg(not(feature = "testing"))]
        let broken = None;
        broken == Some(mutant)
    }
}
