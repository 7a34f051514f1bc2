//! Recovers a hive from its logs: restores the senders' queues, resends unhandled messages, and resumes
//! unfinished sweeps.

use crate::hash::HashMap;
use crate::hive::admission::offices::Office;
use crate::hive::consensus::journal::{
    Acked, AppId, Emit, LaneId, LogState, MessageId, Part, Seq, Suspect, Sweep, Waiting,
};
use crate::hive::consensus::open_sweeps::has_own_number;
use crate::hive::dispatch::effects::RouteContext;
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::{LedLog, Place, Stateless, Turn};
use crate::mutant::Mutant;
use crate::state::DecodeError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The queues of the restored senders that have messages to resend, by lane. A sender's resent and later
/// messages go through the same queue, so they keep their order.
pub(crate) struct SenderQueues {
    queues: HashMap<LaneId, SenderQueue>,
    /// The lanes with messages to resend.
    lanes: BTreeSet<LaneId>,
    /// The messages to resend that a bee has handled already. Their acknowledgments were lost.
    handled: BTreeSet<MessageId>,
    /// The sweeps that have begun and are not over: what has begun them, as their senders have sent it, and their own ids.
    begun: BTreeMap<MessageId, MessageId>,
    places: Places,
}

impl SenderQueues {
    /// Creates no queues yet, for the senders in these logs.
    pub(crate) fn new(hive: &HiveInner, logs: &[LedLog]) -> SenderQueues {
        let all = || logs.iter().flat_map(unhandled);
        let places = Places::new(logs);
        let begun = all().filter(|message| message.has_begun_apart);
        // A message that needs no acknowledgment leaves the outbox when it is handled: see
        // `HiveInner::is_handled_without_bee`. In a cluster, a bee of another hive may have handled a message
        let is_acknowledged =
            |id: &&MessageId| hive.log_of(id.app).is_some_and(|home| home.acknowledges(id.lane));
        let outboxes =
            logs.iter().filter(|_| hive.links.is_none()).flat_map(|(_, state)| state.outbox.keys());
        SenderQueues {
            queues: HashMap::default(),
            lanes: all().map(|message| places.of(&message).lane).collect(),
            begun: begun.map(|sweep| (sweep.sent_as(), sweep.waiting.emit.id)).collect(),
            places,
            handled: handled(outboxes.filter(is_acknowledged), logs.iter().map(|(_, state)| state)),
        }
    }

    /// Returns a lane's queue, creating it if necessary.
    pub(crate) fn of(&mut self, lane: LaneId) -> SenderQueue {
        self.queues.entry(lane).or_insert_with(SenderQueue::shared).clone()
    }

    /// Returns a bee's queue. From now on, the lanes of bees that merged into this bee (`heir_of`) share the
    /// queue. A bee without messages to resend gets an empty queue.
    pub(crate) fn of_bee(&mut self, lane: LaneId, heir_of: &BTreeSet<LaneId>) -> SenderQueue {
        if !heir_of.iter().chain([&lane]).any(|lane| self.lanes.contains(lane)) {
            return SenderQueue::default();
        }
        let own = self.of(lane);

        heir_of.iter().for_each(|other| {
            self.queues.insert(*other, own.clone());
        });

        own
    }
}

/// An unhandled message, or an unfinished sweep.
#[derive(Clone, Copy)]
struct Unhandled<'a> {
    /// The position of its log.
    log: usize,
    state: &'a LogState,
    waiting: &'a Waiting,
    sweep: Option<&'a Sweep>,
    /// Whether this is a sweep that has begun, in the log of the app that it visits, and the sender's messages need acknowledgments.
    /// Then the sender's log has the message that has begun it, as the sender has sent it, until the sweep is over.
    has_begun_apart: bool,
}

impl Unhandled<'_> {
    /// Returns the id that the sender gave the message. A sweep that has begun may have another one.
    fn sent_as(&self) -> MessageId {
        let began_by = self.sweep.and_then(|sweep| sweep.began_by);
        began_by.filter(|_| self.has_begun_apart).unwrap_or(self.waiting.emit.id)
    }

    /// If this is a sweep that a stateless handler has sent, returns the message that the handler has handled.
    fn handled_before(&self) -> Option<MessageId> {
        self.sweep.and_then(|sweep| sweep.began_by).filter(|_| !self.has_begun_apart)
    }
}

/// Returns the unhandled messages and unfinished sweeps in a log, in no order.
fn unhandled<'a>((log, state): &'a LedLog) -> impl Iterator<Item = Unhandled<'a>> {
    let has_begun_apart = |id: &MessageId| match log.bees_move() {
        true => has_own_number(id),
        false => log.acknowledges(id.lane),
    };
    let messages = state.outbox.values().map(|waiting| (waiting, None, false));
    let sweeps =
        state.sweeps.iter().map(move |(id, sweep)| (&sweep.waiting, Some(sweep), has_begun_apart(id)));
    messages.chain(sweeps).map(|(waiting, sweep, has_begun_apart)| Unhandled {
        log: log.position(),
        state,
        waiting,
        sweep,
        has_begun_apart,
    })
}

/// Which messages decide the places of the sweeps that stateless handlers have sent: those that they have handled. A stateless
/// handler runs in the queue of the sender of that message, so the sender's later messages wait behind the sweep.
struct Places(BTreeMap<MessageId, MessageId>);

impl Places {
    fn new(logs: &[LedLog]) -> Places {
        let all = logs.iter().flat_map(unhandled);
        Places(all.filter_map(|sweep| Some((sweep.sent_as(), sweep.handled_before()?))).collect())
    }

    /// Returns the message, as its sender has sent it, on whose lane a message has its place.
    fn of(&self, message: &Unhandled<'_>) -> MessageId {
        let sent_as = message.sent_as();
        self.0.get(&sent_as).copied().unwrap_or(sent_as)
    }
}

/// The messages in the outboxes on one lane, to one app, of which no bee is known yet that has handled them.
#[derive(Default)]
struct OnLane {
    whole: BTreeSet<Seq>,
    parts: BTreeSet<(Seq, Part)>,
}

impl OnLane {
    /// Takes the whole messages from `first` up to but not including `end`.
    fn take_run(&mut self, first: Seq, end: Seq) -> Vec<(Seq, Part)> {
        let taken: Vec<Seq> = self.whole.range(first..end.max(first)).copied().collect();
        taken.iter().for_each(|seq| {
            self.whole.remove(seq);
        });
        taken.into_iter().map(|seq| (seq, Part::WHOLE)).collect()
    }

    /// Takes all messages below `floor`.
    fn take_below(&mut self, floor: Seq) -> Vec<(Seq, Part)> {
        let mut taken = self.take_run(Seq::ZERO, floor);
        let rest = self.parts.split_off(&(floor, Part::WHOLE));
        taken.extend(std::mem::replace(&mut self.parts, rest));
        taken
    }
}

/// Returns those of the messages in the outboxes that bees have handled. The log of the bee contains that, and the log of the sender
/// does not contain the acknowledgment.
///
/// Many bees may know a lane on which much is unhandled. So this looks for what a bee has handled, instead of asking each
/// bee about each message, and what it has found it does not look for again.
fn handled<'a>(
    outboxes: impl Iterator<Item = &'a MessageId>,
    states: impl Iterator<Item = &'a LogState>,
) -> BTreeSet<MessageId> {
    let mut open: HashMap<(LaneId, AppId), OnLane> = HashMap::default();
    for id in outboxes {
        let on_lane = open.entry((id.lane, id.app)).or_default();
        match id.part.is_whole() {
            true => on_lane.whole.insert(id.seq),
            false => on_lane.parts.insert((id.seq, id.part)),
        };
    }
    let mut handled = BTreeSet::new();
    if open.is_empty() {
        return handled;
    }
    for ((app, _), bee) in states.flat_map(|state| &state.bees) {
        let mut take = |lane, take: &dyn Fn(&mut OnLane) -> Vec<(Seq, Part)>| {
            let taken = open.get_mut(&(lane, *app)).map(take).unwrap_or_default();
            handled.extend(taken.into_iter().map(|(seq, part)| MessageId { lane, seq, part, app: *app }))
        };
        for (lane, floor) in bee.seen.floors() {
            take(lane, &|on_lane| on_lane.take_below(floor))
        }
        for (lane, first, end) in bee.seen.runs() {
            take(lane, &|on_lane| on_lane.take_run(first, end))
        }
        for (lane, seq, part) in bee.seen.listed_parts() {
            take(lane, &|on_lane| on_lane.parts.take(&(seq, part)).into_iter().collect())
        }
    }
    handled
}

/// Returns the unhandled messages and unfinished sweeps of all logs, those of each sender in order of emission.
fn in_order<'a>(logs: &'a [LedLog], places: &Places) -> Vec<Unhandled<'a>> {
    let (mut all, mut sweeps) = (Vec::new(), Vec::new());
    for log in logs {
        let mut in_log: Vec<_> = unhandled(log).collect();
        in_log.sort_by_key(|message| message.waiting.order);
        let has_place_of_other = |message: &Unhandled<'_>| {
            message.has_begun_apart || places.of(message) != message.waiting.emit.id
        };
        let (of_other, mut rest): (Vec<_>, Vec<_>) = in_log.into_iter().partition(has_place_of_other);
        all.append(&mut rest);
        sweeps.extend(of_other)
    }
    if sweeps.is_empty() {
        return all;
    }

    // such a sweep goes before what its sender has sent with the same number, or a later one
    let mut of_lanes: BTreeMap<LaneId, Vec<(Seq, usize)>> = BTreeMap::new();
    for (at, message) in all.iter().enumerate() {
        let MessageId { lane, seq, .. } = places.of(message);
        of_lanes.entry(lane).or_default().push((seq, at))
    }
    let before = |sweep: Unhandled<'_>| {
        let MessageId { lane, seq, .. } = places.of(&sweep);
        let later = of_lanes.get(&lane).into_iter().flatten().filter(|(other, _)| *other >= seq);
        later.map(|(_, at)| *at).min().unwrap_or(all.len())
    };
    let sweeps = sweeps.into_iter().map(|sweep| ((before(sweep), false, places.of(&sweep)), sweep));
    let rest = all.iter().enumerate().map(|(at, message)| ((at, true, places.of(message)), *message));
    let mut placed: Vec<_> = sweeps.chain(rest).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, message)| message).collect()
}

/// Returns the lanes of outside senders that ended with the process that wrote the logs. The senders cannot
/// resume these lanes.
pub(crate) fn dead_lanes(logs: &[LedLog]) -> Vec<LaneId> {
    let bees = logs.iter().flat_map(|(_, state)| state.bees.values());
    let all = bees.flat_map(|bee| bee.seen.floors());
    let dead: BTreeSet<LaneId> =
        all.map(|(lane, _)| lane).filter(|lane| lane.is_outside() && !lane.is_lasting()).collect();
    dead.into_iter().collect()
}

/// Resends emitted but unhandled messages in all logs, and resumes the unfinished sweeps. Takes each sender's
/// messages and sweeps in order of emission.
///
/// No bee runs before all of these messages have been routed. Otherwise bee A, handling one of the first messages,
/// could send a new message to bee B before B has received what A sent it before the crash. Stateless handlers run on the
/// threads that run bees, so a log that commits nothing holds up neither the start nor the bees of other logs.
///
/// # Errors
///
/// Returns an error if a logged message cannot be decoded.
pub(crate) fn send_again(
    hive: &Arc<HiveInner>,
    logs: &[LedLog],
    queues: &mut SenderQueues,
) -> Result<(), DecodeError> {
    Turn::with(hive, Place::Runners, |turn| {
        turn.keeps_woken();
        turn.stateless = Stateless::AfterOthers;
        let mut all = in_order(logs, &queues.places);
        if hive.breaks(Mutant::ResentInReverse) {
            all.reverse()
        }

        for message in all {
            let Unhandled { log, state, waiting, sweep, has_begun_apart } = message;
            let id = waiting.emit.id;
            if let Some(sweep) =
                queues.begun.get(&id).filter(|_| !has_begun_apart && hive.log_of(id.app).is_some())
            {
                // The sweep goes on in the log of the app. When it is over, the message is acknowledged. If the sweep has the same
                // id, it stays suspected.
                if let Some(link) = hive.log_at(log).filter(|_| *sweep != id) {
                    link.quarantine.swept(&id);
                    link.quarantine.is_run(&Suspect { id, cell: None })
                }
                continue;
            }
            let is_handled = || queues.handled.contains(&id) || hive.is_handled_without_bee(&waiting.emit);
            if sweep.is_none()
                && hive.links.is_none()
                && is_handled()
                && let Some(link) = hive.log_at(log)
            {
                // The bee that remembers the message may not get it again: this program's map may drop it, or name another cell.
                link.acknowledge(Acked { app: id.app, lane: id.lane, seq: id.seq, count: 1, part: id.part });
                link.quarantine.is_run(&Suspect { id, cell: None });
                continue;
            }
            turn.office = hive.log_at(log).map_or(Office::NONE, |link| link.office());
            let mut queue = queues.of(queues.places.of(&message).lane);
            let cx = &mut RouteContext::new(&mut queue, turn);
            if hive.log_of(id.app).is_none() {
                give_to_app_in_memory(hive, log, waiting, name_of(&waiting.emit, state))
            }

            let logged = &hive.types.logged;
            let resumed = match sweep {
                Some(sweep) => logged.resume_sweep(log, sweep, cx),
                // in a cluster, a bee of another hive may have handled the message
                None if hive.links.is_some() => logged.resend(&waiting.emit, cx),
                None => logged.resend_at_start(&waiting.emit, cx),
            };
            resumed.map_err(|error| named(&waiting.emit, state, error))?
        }
        turn.office = Office::NONE;
        Ok(())
    })
}

/// Checks that [`send_again`] can decode the messages in these logs, and that the apps handle them.
///
/// # Errors
///
/// Returns an error for the first message of which this is not true.
pub(crate) fn check<'a>(
    hive: &HiveInner,
    mut logs: impl Iterator<Item = &'a LogState>,
) -> Result<(), DecodeError> {
    let logged = &hive.types.logged;
    logs.try_for_each(|state| {
        let named = |emit: &Emit, checked: Result<(), DecodeError>| {
            checked.map_err(|error| named(emit, state, error))
        };
        let mut messages = state.outbox.values().map(|waiting| &waiting.emit);
        messages.try_for_each(|emit| {
            named(emit, logged.check_message(emit.id.app.0, emit.message_type, &emit.payload))
        })?;
        let mut sweeps = state.sweeps.values().map(|sweep| &sweep.waiting.emit);
        sweeps.try_for_each(|emit| named(emit, logged.check_sweep(emit)))
    })
}

/// Adds the name of the message to an error.
fn named(emit: &Emit, log: &LogState, error: DecodeError) -> DecodeError {
    DecodeError { why: format!("`{}`: {}", name_of(emit, log), error.why), ..error }
}

/// Acknowledges a message to an app that is now in memory only. The app gets the message once more, but no
/// record will say that the app has handled it.
fn give_to_app_in_memory(hive: &HiveInner, log: usize, waiting: &Waiting, message: &str) {
    let MessageId { lane, seq, part, app } = waiting.emit.id;
    tracing::warn!(
        message,
        app = app.0,
        "the log contains a message for an app that is now in memory only; the app gets the message once more"
    );
    if let Some(link) = hive.log_at(log) {
        link.acknowledge(Acked { app, lane, seq, count: 1, part })
    }
}

/// Returns the name of a logged message's type.
fn name_of<'a>(emit: &Emit, log: &'a LogState) -> &'a str {
    log.shapes.name_of(emit.message_type).unwrap_or("a message without a name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::BeeId;
    use crate::hive::admission::bee_lanes::tests::emit;

    const APPS: u64 = 2;
    const LANES: u64 = 3;
    const NUMBERS: u64 = 30;

    fn id(at: u64) -> MessageId {
        MessageId {
            lane: LaneId::of_bee(AppId(9), BeeId(1 + at % LANES)),
            seq: Seq(at / LANES % NUMBERS),
            part: Part(at / LANES / NUMBERS % 3),
            app: AppId((at / LANES / NUMBERS / 3 % APPS) as u16),
        }
    }

    #[test]
    fn what_is_handled_is_what_a_bee_of_the_app_remembers() {
        let mut random = 7_u64;
        let mut chance = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let (mut in_all, mut handled_in_all) = (0, 0);
        for _ in 0..200 {
            let mut logs = [LogState::default(), LogState::default()];
            for _ in 0..60 {
                let emit = emit(id(chance(1 << 20)));
                logs[0].outbox.insert(emit.id, Waiting { order: 0, emit });
            }
            for _ in 0..40 {
                let MessageId { lane, seq, part, app } = id(chance(1 << 20));
                let bee = (app, BeeId(100 + chance(5)));
                let seen = &mut logs[1].bees.entry(bee).or_default().seen;
                match chance(8) {
                    0 => seen.raise(lane, Seq(seq.0 / 4)),
                    _ => seen.insert(lane, seq, part),
                }
            }
            let remembers = |id: &&MessageId| {
                let mut bees = logs[1].bees.iter().filter(|((app, _), _)| *app == id.app);
                bees.any(|(_, bee)| bee.seen.contains(id.lane, id.seq, id.part))
            };
            let expected: BTreeSet<MessageId> = logs[0].outbox.keys().filter(remembers).copied().collect();
            (in_all, handled_in_all) = (in_all + logs[0].outbox.len(), handled_in_all + expected.len());
            assert_eq!(handled(logs[0].outbox.keys(), logs.iter()), expected);
        }
        assert!(handled_in_all > 100 && handled_in_all < in_all, "{handled_in_all} of {in_all}");
    }
}
