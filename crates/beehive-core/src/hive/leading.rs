//! The beginning of a hive's leadership: what a hive does with a log before its bees handle messages. A hive that starts does
//! this for all its logs, and a running hive for each colony that it begins to lead.
//!
//! A running hive first begins the journal, and tells the registry that it leads the colony (`become_leader`).
//!
//! ```text
//!  compare   the log with the registry: new bees, moved bees, the lanes of other hives and those that have ended
//!  restore   the lanes, the outline, and the bees, which are asleep
//!  go_on     bees into the routing tables ─► the log is led ─► outbox, timers and sweeps again ─► the bees handle messages
//! ```

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::consensus::journal::{
    AppId, Journal, LaneId, LogPlace, LogState, LoggedSettings, Record, Shapes,
};
use crate::hive::consensus::logs::remembered_lanes;
use crate::hive::consensus::registry::{ColonyId, Decision, Proposal};
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::hive::dispatch::turn::{LedLog, Link, Place, Turn};
use crate::hive::joining;
use crate::hive::links::links::Links;
use crate::hive::ownership::foreign;
use crate::hive::ownership::queen::RETRY;
use crate::hive::ownership::reconciler::Reconciler;
use crate::hive::route::recovery::{self, SenderQueues};
use crate::hive::run::log_events;
use crate::hive::settings;
use crate::limits;
use crate::mutant::Mutant;
use crate::state::DecodeError;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The reason why a hive does not lead a colony.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeadError {
    /// The hive is not in a cluster, or the registry does not know the colony, or says that it is dead.
    NoColony,
    /// The hive is not a member of the colony.
    NoMember,
    /// The hive leads the colony already, or is about to.
    Led,
    /// The registry knows the leader of this term or of a later one. The hive may have learned of it while it waited for the
    /// journal.
    Superseded,
    /// The hive leads too many colonies ([`limits::COLONIES_TAKEN_MAX`]).
    TooMany,
    /// The log does not fit the apps of the hive, or its last entry is of another term.
    Log {
        /// A description of the mismatch.
        why: String,
    },
    /// The journal cannot begin.
    Journal {
        /// The journal's error.
        why: String,
    },
    /// The hive has stopped.
    Stopped,
}

impl std::fmt::Display for LeadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeadError::NoColony => write!(f, "there is no such colony in the cluster of the hive"),
            LeadError::NoMember => write!(f, "the hive is not a member of the colony"),
            LeadError::Led => write!(f, "the hive leads the colony already"),
            LeadError::Superseded => write!(f, "the colony has a leader of this term or of a later one"),
            LeadError::TooMany => {
                write!(f, "a hive can take over at most {} colonies", limits::COLONIES_TAKEN_MAX)
            }
            LeadError::Log { why } => write!(f, "the log does not fit the apps: {why}"),
            LeadError::Journal { why } => write!(f, "the log cannot be continued: {why}"),
            LeadError::Stopped => write!(f, "the hive has stopped"),
        }
    }
}

beehive_protocol::debug_is_display!(LeadError);

impl std::error::Error for LeadError {}

/// The difference between some logs and the registry, from the registry's side.
pub(in crate::hive) struct Compared {
    /// The records that the hive has to append, each with its log. They are in effect in the states of the logs.
    pub(in crate::hive) unsaid: Vec<(Arc<Link>, Record)>,
    /// The lanes of other hives.
    foreign: BTreeSet<LaneId>,
    /// The lanes that have ended, of senders outside the hive.
    ended: Vec<LaneId>,
}

/// Compares logs with the replica of the registry, if the hive is in a cluster.
pub(in crate::hive) fn compare(hive: &HiveInner, logs: &mut [LedLog]) -> Compared {
    let mut ended = recovery::dead_lanes(logs);
    let (mut unsaid, mut foreign) = (Vec::new(), BTreeSet::new());
    if let (Some(links), Some(clients)) = (&hive.links, &hive.logs) {
        let mutation = clients.lanes.bees.mutation;
        links.registry.read(&mut |view| {
            unsaid = joining::reconcile(logs, view, mutation);
            let is_foreign = |lane: &LaneId| joining::is_foreign(*lane, links.lane, view, mutation);
            foreign =
                remembered_lanes(logs.iter().map(|(_, state)| state)).into_iter().filter(is_foreign).collect()
        });
        // on some lanes, this hive itself has sent to the bees of a log that another hive has led so far
        ended.retain(|lane| !foreign.contains(lane) && !clients.lanes.is_of_this_hive(*lane))
    }
    Compared { unsaid, foreign, ended }
}

/// A bee that is not in the routing table yet.
struct Arriving {
    app: Arc<AppRuntime>,
    id: BeeId,
    cells: Vec<CellId>,
    asleep: Box<Asleep>,
}

/// The bees and the senders of some logs, before the bees are in the routing tables.
pub(in crate::hive) struct Restored {
    bees: Vec<Arriving>,
    queues: SenderQueues,
    ended: Vec<LaneId>,
}

impl Restored {
    /// Returns the bees of an app, with the colonies of their logs and their cells.
    pub(in crate::hive) fn of_app(&self, app: u16) -> impl Iterator<Item = (BeeId, ColonyId, &[CellId])> {
        let bees = self.bees.iter().filter(move |bee| bee.app.index == app);
        bees.map(|bee| (bee.id, bee.asleep.colony(), bee.cells.as_slice()))
    }

    /// Decodes the images of all bees, to check them and to fill the views.
    ///
    /// # Errors
    ///
    /// Returns an error for the first bee that cannot be decoded.
    pub(in crate::hive) fn show(&mut self) -> Result<(), DecodeError> {
        self.bees.iter_mut().try_for_each(|bee| bee.asleep.show(&bee.app))
    }
}

/// Restores the lanes of logs, their outlines if the hive is in a cluster, and their bees, which it takes out of the states.
/// Decodes nothing. `apps` are all apps of the hive, by number.
pub(in crate::hive) fn restore(
    hive: &HiveInner,
    apps: &[Arc<AppRuntime>],
    logs: &mut [LedLog],
    compared: &mut Compared,
) -> Restored {
    let mut ended = std::mem::take(&mut compared.ended);
    ended.extend(hive.logs.iter().flat_map(|clients| clients.restore_lanes(logs, &compared.foreign)));
    if hive.links.is_some() {
        for (link, state) in &mut *logs {
            *link.outline.lock() = link.split_outline(state)
        }
    }
    let mut queues = SenderQueues::new(hive, logs);
    let mut bees = Vec::new();
    for (link, state) in logs {
        for ((app, id), image) in std::mem::take(&mut state.bees) {
            let Some(runtime) = apps.get(app.index()) else { continue };
            let queue = match hive.breaks(Mutant::TakenOvertakes) {
                true => Default::default(),
                false => queues.of_bee(LaneId::of_bee(app, id), &image.heir_of),
            };
            let cells = image.cells.iter().copied().collect();
            let asleep = Asleep::new(*image, link, queue);
            bees.push(Arriving { app: runtime.clone(), id, cells, asleep })
        }
    }
    Restored { bees, queues, ended }
}

/// Goes on with logs: adds their bees to the routing tables, appends what the logs must know before anything else, sends what
/// is unhandled again, and lets the bees handle messages. Returns the bees.
///
/// The bees accept messages from the beginning, but no bee runs before all unhandled messages of these logs have been routed.
/// Otherwise bee A, handling one of the first messages, could send a new message to bee B before B has received what A sent
/// before the crash.
///
/// # Errors
///
/// Returns an error if a logged message cannot be decoded, which [`recovery::check`] tells beforehand.
pub(in crate::hive) fn go_on(
    hive: &Arc<HiveInner>,
    logs: &[LedLog],
    (compared, restored): (Compared, Restored),
    shapes: &Shapes,
) -> Result<Vec<Arc<Bee>>, DecodeError> {
    let Restored { bees, mut queues, ended } = restored;
    let mut bees: Vec<(Arc<Bee>, Box<Asleep>)> =
        bees.into_iter().map(|bee| (bee.app.restore(bee.id, &bee.cells, &bee.asleep), bee.asleep)).collect();
    if let Some(reconciler) = Reconciler::of(hive) {
        logs.iter().for_each(|(link, _)| reconciler.begin(link))
    }

    say_first(hive, compared.unsaid, &mut bees);
    for (link, state) in logs {
        if *shapes != state.shapes {
            // the log must contain the shapes before any entry encoded with them
            drop(link.say(Record::Shapes(shapes.clone())))
        }
        let place = place(link, logs.len());
        if !link.is_clustered() && state.place != Some(place) {
            drop(link.say(Record::Place(place)))
        }
    }
    if let Some(clients) = &hive.logs {
        logs.iter().for_each(|(link, _)| clients.clients().publish(link))
    }
    if hive.is_over() {
        // the hive may have stopped before it could see these clients
        logs.iter().for_each(|(link, _)| link.end())
    }

    foreign::retire_lanes(hive, ended);
    recovery::send_again(hive, logs, &mut queues)?;
    Ok(Turn::with(hive, Place::Runners, |turn| {
        turn.keeps_woken();
        let begin = |(bee, asleep): (Arc<Bee>, Box<Asleep>)| {
            bee.begin(asleep, turn);
            bee
        };
        bees.into_iter().map(begin).collect()
    }))
}

/// Appends what the logs must know before anything else, also before the reconciler sees the logs.
///
/// A bee whose old copy is to be dropped must not end before that is committed, in a hive that decides alone: if the process ended
/// after the bee and before the `Drop`, the next one would find only the old copy, and thaw it. In a cluster, the registry remembers
/// the move.
fn say_first(hive: &Arc<HiveInner>, unsaid: Vec<(Arc<Link>, Record)>, bees: &mut [(Arc<Bee>, Box<Asleep>)]) {
    let dropped = |record: &Record| match record {
        Record::Drop { app, bee, .. } if hive.links.is_none() => Some((*app, *bee)),
        _ => None,
    };
    let moved: BTreeSet<_> = unsaid.iter().filter_map(|(_, record)| dropped(record)).collect();
    let name = |bee: &Bee| (AppId(bee.app.index), bee.id);
    let asleep = bees.iter_mut().filter(|(bee, _)| moved.contains(&name(bee)));
    let mut asleep: BTreeMap<_, _> = asleep.map(|(bee, asleep)| (name(bee), asleep)).collect();

    for (link, record) in unsaid {
        let moved = dropped(&record).and_then(|name| asleep.get_mut(&name));
        let said = link.say(record);
        if let Some(moved) = moved {
            hive.spawn(Box::pin(moved.left().clone().add(said)))
        }
    }
}

/// Shows the rows of bees in the views of their apps, some of them at a time, so that other tasks are not held up.
fn show(hive: Arc<HiveInner>, mut bees: VecDeque<Arc<Bee>>) {
    hive.clone().spawn(Box::pin(async move {
        let some = bees.len().min(limits::BEES_SHOWN_AT_ONCE);
        Turn::with(&hive, Place::Runners, |turn| {
            for bee in bees.drain(..some) {
                if let Err(error) = bee.show(turn) {
                    tracing::error!(app = bee.app.name, bee = %bee.id, %error, "a bee of a log that this hive has taken over cannot be decoded")
                }
            }
        });
        if !bees.is_empty() && !hive.is_over() {
            show(hive, bees)
        }
    }))
}

/// Returns the place of a log among the logs of a hive that decides alone.
fn place(link: &Link, logs: usize) -> LogPlace {
    LogPlace { number: link.position() as u32, of: logs as u32 }
}

/// Checks that logs are in the order in which a hive that decides alone had them before, and that their number is not smaller. A log
/// that says nothing is new, or its first entries were not committed; the hive cannot tell such a log from an empty one that was
/// given instead of another log. In a cluster, the caller says whose log each one is.
///
/// # Errors
///
/// Returns a description of the first mismatch.
pub(in crate::hive) fn check_places(logs: &[LedLog]) -> Result<(), String> {
    let mut alone = logs.iter().filter(|(link, _)| !link.is_clustered());
    alone.try_for_each(|(link, state)| LogPlace::check(state.place, place(link, logs.len())))
}

/// Returns the schema of the hive's program.
pub(in crate::hive) fn shapes(hive: &HiveInner, apps: Vec<beehive_protocol::AppShapes>) -> Shapes {
    Shapes { apps, messages: hive.types.shapes(), names: hive.types.logged.names() }
}

impl Hive {
    /// Begins to lead a colony: goes on with the bees in its log, like a hive that restarts on that log, and tells the registry.
    /// The election of the colony's leader calls this for its winner, when the first entry of the term has been committed.
    ///
    /// `state` is the state that results from the log, including the first entry of `term`
    /// ([`LogState::begin_term`]). The journal continues from there. Completes when the registry knows the leader, and the
    /// hive has the bees. From then on, the hives of the cluster send the colony's messages here. The time that this takes
    /// does not depend on the size of the bees' rows: they are decoded when a bee first runs, or later. A bee that cannot be
    /// decoded then is set aside, with an error in the log of the program: its messages wait, and other bees go on. A hive
    /// takes over one colony at a time; other calls wait. A hive that has [lost](super::journal::JournalEvents::deposed) the colony may
    /// lead it again in a later term; the call waits until nothing of the earlier term is left, which takes as long as the
    /// handlers of its bees that are still running.
    ///
    /// The previous leader may still run, and need not know that it leads no longer. An entry that it appends later must have no
    /// effect, which the first entry of the term ensures.
    ///
    /// If the previous leader has died, the caller also proposes [`Proposal::HiveDead`]. Until then, the hives of the cluster
    /// keep what they know about it: requests that it was handling get no answer, what senders outside of its bees have
    /// sent is remembered, and packets to it are repeated.
    ///
    /// The time of the hive stays as it is, even if the time in `state` is far from it. If it is behind, a bee's time stands
    /// still until the hive's time has reached it, and timers fire late by the difference. If it is ahead, timers fire early
    /// by the difference, and a handler sees the time jump.
    ///
    /// If the log contains a crash marker, the unfinished messages in this log, and those that the marker names, are handled
    /// under a crash marker. If the registry does not know that the previous leader is dead, no message is accused of having
    /// ended it. Other messages in the logs of other hives are not suspected, although one of them may have
    /// ended the previous leader.
    ///
    /// Dropping the future does not stop this.
    ///
    /// # Errors
    ///
    /// See [`LeadError`]. After an error, the hive does not lead the colony: none of its bees has begun, and nothing was sent
    /// for them. The hive has not used the journal, other than calling [`Journal::begin`]; except that after
    /// [`LeadError::Superseded`] and [`LeadError::Stopped`], it may have appended a crash marker. After all of them but
    /// `Stopped`, it may be told to lead the colony again.
    pub async fn lead(
        &self,
        colony: ColonyId,
        term: u64,
        journal: Arc<dyn Journal>,
        state: LogState,
    ) -> Result<(), LeadError> {
        let hive = self.inner().clone();
        let (sender, receiver) = oneshot::channel();
        self.inner().platform.spawn(Box::pin(async move {
            let begins =
                hive.logs.as_ref().filter(|_| hive.links.is_some()).map(|logs| logs.begin_to_take(colony));
            let led = match begins {
                None => Err(LeadError::NoColony),
                Some(false) => Err(LeadError::Led),
                Some(true) => tokio::select! {
                    biased;
                    led = lead(&hive, (colony, term), journal, state) => led,
                    () = hive.over() => Err(LeadError::Stopped),
                },
            };
            if let (Some(true), Some(logs)) = (begins, &hive.logs) {
                logs.end_to_take(colony)
            }
            // the caller may no longer wait
            let _ = sender.send(led);
        }));
        receiver.await.unwrap_or(Err(LeadError::Stopped))
    }
}

async fn lead(
    hive: &Arc<HiveInner>,
    (colony, term): (ColonyId, u64),
    journal: Arc<dyn Journal>,
    state: LogState,
) -> Result<(), LeadError> {
    let reconciler = Reconciler::of(hive).ok_or(match hive.is_over() {
        // it ends with the hive
        true => LeadError::Stopped,
        false => LeadError::NoColony,
    })?;
    let (Some(links), Some(clients)) = (&hive.links, &hive.logs) else { return Err(LeadError::NoColony) };
    if state.last.term() != term {
        let why = format!("its last entry is of term {}, and not of term {term}", state.last.term());
        return Err(LeadError::Log { why });
    }

    if !hive.breaks(Mutant::LeadsBehind) {
        links.registry.wait(state.known.max(present_index(hive, links, colony).await)).await
    }
    // The hive may still have bees and messages of an earlier term, and may not know that it has lost that term. They have to go
    // first
    links.registry.read(&mut |view| clients.clients().lost(view).iter().for_each(|link| link.depose()));
    if !clients.clients().have_left(colony).await {
        return Err(LeadError::Led);
    }
    may_lead(hive, links, (colony, term))?;
    let apps = reconciler.apps();
    let app_shapes = apps.iter().map(|app| app.shapes()).collect();
    let shapes = shapes(hive, app_shapes);
    shapes.read(&state).map_err(|why| LeadError::Log { why })?;
    let unknown = state.bees.keys().find(|(app, _)| app.index() >= apps.len());
    if let Some((app, _)) = unknown {
        let why = format!("it contains bees of app number {}, but the hive has no such app", app.0);
        return Err(LeadError::Log { why });
    }
    recovery::check(hive, std::iter::once(&state))
        .map_err(|error| LeadError::Log { why: error.to_string() })?;

    let link = clients.take(journal, &state, colony).ok_or(LeadError::TooMany)?;
    if let Err(error) = become_leader(hive, links, (&link, term), &state).await {
        clients.give_back(link);
        return Err(error);
    }

    let mut logs = [(link, state)];
    // if the hive stops, the caller gives up this future
    let one_at_a_time = clients.one_at_a_time.lock().await;
    let mut compared = compare(hive, &mut logs);
    let restored = restore(hive, apps, &mut logs, &mut compared);
    if hive.breaks(Mutant::TakenNotResent) {
        logs.iter_mut().for_each(|(_, state)| state.outbox.clear())
    }
    // `recovery::check` has decoded all that this decodes
    let bees = go_on(hive, &logs, (compared, restored), &shapes)
        .map_err(|error| LeadError::Log { why: error.to_string() })?;
    drop(one_at_a_time);
    reconciler.look_again();
    note_settings(apps, &logs);
    settings::settle(hive, Vec::new(), true);
    let shown = bees.into_iter().filter(|bee| bee.app.own_views().is_some());
    show(hive.clone(), shown.collect());
    tracing::info!(colony = colony.0, term, "the hive leads a colony that another hive led");
    Ok(())
}

/// Checks that the registry, as far as this hive's replica knows it, lets the hive lead a colony in this term.
fn may_lead(hive: &HiveInner, links: &Links, (colony, term): (ColonyId, u64)) -> Result<(), LeadError> {
    let mut may = Err(LeadError::NoColony);
    links.registry.read(&mut |view| {
        let Some(entry) = view.colony(colony).filter(|entry| !entry.is_dead) else { return };
        may = match entry.members.contains(&hive.id) {
            false => Err(LeadError::NoMember),
            true if entry.term >= term => Err(LeadError::Superseded),
            true => Ok(()),
        }
    });
    may
}

/// Begins the journal, appends a crash marker, and tells the registry that this hive leads the colony. Nobody sees the log
/// meanwhile.
///
/// The registry is told before the hive has the bees. If it refuses, because another hive leads the colony by now, no bee has
/// begun. If it does not, the messages that come for the bees before the hive has them are sent back, and come again.
async fn become_leader(
    hive: &Arc<HiveInner>,
    links: &Links,
    (link, term): (&Arc<Link>, u64),
    state: &LogState,
) -> Result<(), LeadError> {
    let colony = link.colony();
    log_events::attach(link, hive);
    link.begin().map_err(|error| LeadError::Journal { why: error.to_string() })?;
    let mut has_ended = false;
    links.registry.read(&mut |view| {
        let last = view.colony(colony).and_then(|entry| view.hive(entry.leader?));
        has_ended = last.is_none_or(|hive| hive.is_dead())
    });
    link.quarantine.take_over(link.position(), state, has_ended);
    // Nothing of the log is sent or run before the next process could know that this one has begun
    for marked in link.quarantine.begin_life([link]) {
        // if the journal is that of an earlier term by now, it may never commit anything
        tokio::select! {
            biased;
            marked = marked => marked.map_err(|_| match link.is_deposed() {
                true => LeadError::Superseded,
                false => LeadError::Stopped,
            })?,
            refusal = may_not_lead(hive, links, (colony, term)) => return Err(refusal),
            // The registry need not hear of it: if this hive is elected again, it is the one that would tell the registry, and it
            // waits until this term is over
            () = is_deposed(hive, link) => return Err(LeadError::Superseded),
        }
    }

    let leader = Proposal::Leader { colony, term, hive: hive.id };
    let decision = loop {
        match links.registry.propose(vec![leader.clone()]).await {
            Ok(decisions) => break decisions.into_iter().next_back(),
            Err(_) => hive.platform.sleep(RETRY).await,
        }
    };
    if hive.breaks(Mutant::LeadsBehind) {
        return Ok(());
    }
    links.registry.wait(decision.map_or(0, |decision| decision.index())).await;
    // The decision does not say it: it is void, too, if the registry had decided an earlier proposal whose answer was lost
    let mut leads = false;
    links.registry.read(&mut |view| {
        leads = view.colony(colony).is_some_and(|entry| (entry.term, entry.leader) == (term, Some(hive.id)))
    });
    if leads { Ok(()) } else { Err(LeadError::Superseded) }
}

/// Waits until the journal says that the hive leads the log no more. Cancel-safe.
async fn is_deposed(hive: &HiveInner, link: &Link) {
    while !link.is_deposed() {
        hive.platform.sleep(RETRY).await
    }
}

/// Waits until the hive may not lead a colony in this term any more, and returns the reason. Cancel-safe.
async fn may_not_lead(hive: &HiveInner, links: &Links, of: (ColonyId, u64)) -> LeadError {
    loop {
        let next = links.registry.index() + 1;
        if let Err(refusal) = may_lead(hive, links, of) {
            return refusal;
        }
        links.registry.wait(next).await
    }
}

/// Returns an index of the registry that is not lower than any on which what the log says may depend.
///
/// The log names lanes of other hives, but not the indexes at which these hives have joined. If this hive's replica did not know
/// such an incarnation yet, this hive would take its lanes for ended ones, forget which of its messages were handled, and
/// handle them again.
async fn present_index(hive: &HiveInner, links: &Links, colony: ColonyId) -> u64 {
    // a hint of term 0 never has an effect
    let nothing = Proposal::Leader { colony, term: 0, hive: hive.id };
    loop {
        match links.registry.propose(vec![nothing.clone()]).await {
            Ok(decisions) => return decisions.last().map_or(0, Decision::index),
            Err(_) => hive.platform.sleep(RETRY).await,
        }
    }
}

/// Appends this hive's settings to a log if they differ from those in the log.
fn note_settings(apps: &[Arc<AppRuntime>], logs: &[LedLog]) {
    for (link, state) in logs {
        let differs = |app: &Arc<AppRuntime>| {
            let logged = state.settings.get(&AppId(app.index))?;
            // they could be encoded when the hive adopted them
            let now = app.settings.logged(app.name).ok().filter(|now| now.table != logged.table)?;
            let version = now.version.max(logged.version + 1);
            Some((AppId(app.index), LoggedSettings { version, table: now.table }))
        };
        let settings: Vec<_> = apps.iter().filter_map(differs).collect();
        if !settings.is_empty() {
            drop(link.say(Record::Settings { settings }))
        }
    }
}
