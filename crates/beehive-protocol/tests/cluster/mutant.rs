//! The rules of the protocol that a test breaks, to see that a checker notices.

use beehive_protocol::Record;

/// A kind of record that is based on the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Create,
    Freeze,
    Stage,
    Unstage,
    Adopt,
    Drop,
    Thaw,
    Fuse,
    Split,
    Release,
    Told,
    Retire,
}

/// Returns the kind of a record, or `None` if it is not based on the registry.
pub(crate) fn kind(record: &Record) -> Option<Kind> {
    Some(match record {
        Record::Create { .. } => Kind::Create,
        Record::Freeze { .. } => Kind::Freeze,
        Record::Stage { .. } => Kind::Stage,
        Record::Unstage { .. } => Kind::Unstage,
        Record::Adopt { .. } => Kind::Adopt,
        Record::Drop { .. } => Kind::Drop,
        Record::Thaw { .. } => Kind::Thaw,
        Record::Fuse { .. } => Kind::Fuse,
        Record::Split { .. } => Kind::Split,
        Record::Release { .. } => Kind::Release,
        Record::Told { .. } => Kind::Told,
        Record::Retire { .. } => Kind::Retire,
        _ => return None,
    })
}

/// A broken rule. Each variant describes the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mutant {
    // Moves.
    /// The copy of a bee is sent although the bee is not frozen.
    SkipFreeze,
    /// A copy becomes the bee as soon as it is staged.
    ActivateOnStage,
    /// The target tells the registry that it has the bee before it has staged the copy.
    OwnBeforeStage,
    /// A frozen bee is dropped when its copy is sent.
    DropBeforeOwn,
    /// The registry moves a bee without raising its epoch.
    EpochReused,
    /// The registry moves a bee although the proposal names another epoch.
    CommitIgnoresEpoch,
    /// The dedup table does not move.
    DedupNotMoved,
    /// The outbox does not move.
    OutboxNotMoved,
    /// The next number of the lane does not move.
    LaneNotMoved,
    /// A message gets another identity when its sender moves.
    EpochInIdentity,
    /// The target counts a part that arrives twice as the next one.
    PartTwice,
    /// The copy of a bee that has merged away is staged.
    StageAfterFuse,
    /// The copy of a bee that has ended is staged.
    StageAfterRelease,
    // Merges.
    /// The dedup table of a bee that merges is lost.
    DedupNotMerged,
    /// The outbox of a bee that merges is lost.
    OutboxNotMerged,
    // Messages.
    /// A message is acknowledged before the record that consumes it is committed.
    AckBeforeCommit,
    /// A message is sent before the record that emits it is committed.
    EmitBeforeCommit,
    /// The floor passes numbers of records that are not committed.
    FloorFromSpeculation,
    /// The floor passes a message when the acknowledgment arrives, before it is committed.
    FloorOnVolatileAck,
    /// The floor for an app is taken from the messages to another app.
    FloorOfOneApp,
    /// An acknowledgment counts for all apps that get the message.
    AckIgnoresApp,
    /// A bee handles a message to cells that it does not have.
    StaleRouteAccepted,
    /// A message overtakes an earlier one of the same sender to the same cell.
    NoAfter,
    /// A message of the receiver's own log is taken out of the outbox, but not remembered.
    LocalUnmarked,
    /// The same, unless the sender is frozen.
    LocalUnmarkedActive,
    /// It is remembered, but also taken out of the outbox of a frozen sender.
    LocalTakesFrozen,
    // The registry's replica.
    /// A leader works although its replica is older than what its log is based on.
    StaleReplicaTrusted,
    /// A deposed leader goes on to send by what it learns from the registry.
    DeposedRefreshes,
    /// Records of this kind do not raise the fence.
    Unfenced(Kind),
    /// The record that a release is known does not raise the fence.
    ReleaseToldUnfenced,
    // Changes.
    /// A bee that is named in an untold change takes part in another one.
    ChangeUntold,
    /// A bee is split while its outbox is not empty.
    SplitBusy,
    /// The new bee of a split does not remember what the old one has handled.
    SplitDedupNotCopied,
    /// The registry lets a reserved id be used twice: a late proposal splits a bee again.
    SplitIdReused,
    /// A lane is retired while a message on it is unhandled.
    RetireBusy,
    /// A log forgets a lane that has not ended.
    ForgetWithoutRetire,
    /// A log forgets a lane that a frozen bee remembers, whose copy then changes.
    ForgetWhileFrozen,
    /// A bee ends although its senders may resend what it has handled.
    ReleaseNaive,
    /// A bee handles a message for another bee that had the same cell.
    ReleaseUnaddressed,
    /// A bee ends although its outbox is not empty.
    ReleaseBusy,
    /// The registry learns that a bee has ended before the log has committed it.
    ReleaseRegistryFirst,
    /// The log creates a bee again that has ended.
    CreateAfterRelease,
    // Entries.
    /// An entry takes effect whatever it was executed on.
    PredecessorIgnored,
    /// The numbers of dead entries are used again.
    NumberReused,
    /// Only records of bees that handle messages depend on what they were executed on.
    OnlyWorkNumbered,
}

impl Mutant {
    /// All mutants.
    pub(crate) fn all() -> Vec<Mutant> {
        use Mutant::*;
        let unfenced = [
            Kind::Create,
            Kind::Freeze,
            Kind::Stage,
            Kind::Unstage,
            Kind::Adopt,
            Kind::Drop,
            Kind::Thaw,
            Kind::Fuse,
            Kind::Told,
            Kind::Retire,
        ];
        let mut all = vec![
            SkipFreeze,
            ActivateOnStage,
            OwnBeforeStage,
            DropBeforeOwn,
            EpochReused,
            CommitIgnoresEpoch,
            DedupNotMoved,
            OutboxNotMoved,
            LaneNotMoved,
            EpochInIdentity,
            PartTwice,
            StageAfterFuse,
            StageAfterRelease,
            DedupNotMerged,
            OutboxNotMerged,
            AckBeforeCommit,
            EmitBeforeCommit,
            FloorFromSpeculation,
            FloorOnVolatileAck,
            FloorOfOneApp,
            AckIgnoresApp,
            StaleRouteAccepted,
            NoAfter,
            LocalUnmarked,
            LocalUnmarkedActive,
            LocalTakesFrozen,
            StaleReplicaTrusted,
            DeposedRefreshes,
            ReleaseToldUnfenced,
            ChangeUntold,
            SplitBusy,
            SplitDedupNotCopied,
            SplitIdReused,
            RetireBusy,
            ForgetWithoutRetire,
            ForgetWhileFrozen,
            ReleaseNaive,
            ReleaseUnaddressed,
            ReleaseBusy,
            ReleaseRegistryFirst,
            CreateAfterRelease,
            PredecessorIgnored,
            NumberReused,
            OnlyWorkNumbered,
        ];
        all.extend(unfenced.map(Unfenced));
        all
    }
}
