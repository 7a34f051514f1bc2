//! Apps whose home log is another one than before. A hive that decides alone checks at its start whether the former home has anything
//! unfinished.
//!
//! The home log of an app has everything of the app that belongs to no bee: what its stateless handlers have consumed and emitted, and
//! the sweeps that visit its cells. Another home would not know it. If the former home had emitted a message on the lane of the app,
//! its acknowledgment would go to the new one, and the message would stay in its outbox. If a sender's log did not know yet that a
//! stateless handler has consumed a message, the message would be consumed again.
//!
//! When nothing is unfinished, the app may have another home. Its lane goes on from the highest number in any log: see
//! [`next_number`].

use crate::cell::CellId;
use crate::hive::consensus::journal::{
    AppId, Emit, HandlerId, LaneId, LogState, MessageId, Seq, Sweep, Waiting,
};
use crate::hive::consensus::open_sweeps::has_own_number;

/// Checks that the former homes of apps have nothing unfinished. `of_apps` contains the positions of each app's logs, starting with its
/// home log, and `names` the names of the apps.
///
/// # Errors
///
/// Returns a description of the first app and log of which this is not true.
pub(crate) fn check(
    logs: &[&LogState],
    of_apps: &[Vec<usize>],
    names: &[&'static str],
) -> Result<(), String> {
    let Some((app, log)) = unfinished(logs, of_apps) else { return Ok(()) };
    let name = names.get(app.index()).unwrap_or(&"");
    Err(format!(
        "log number {log} contains messages or sweeps of the app `{name}` that are not finished, and the app now has another log for \
         them; give the app the log that it had, at least until they are"
    ))
}

/// Returns an app whose former home has something unfinished, and the position of that log. An app in memory only has no home, and
/// is not returned.
fn unfinished(logs: &[&LogState], of_apps: &[Vec<usize>]) -> Option<(AppId, usize)> {
    let logs_of = |app: AppId| of_apps.get(app.index()).map_or(&[][..], Vec::as_slice);
    let is_former = |app: AppId, log: usize| logs_of(app).first().is_some_and(|home| *home != log);
    let places = || logs.iter().enumerate();

    let in_log = |(log, state): (usize, &&LogState)| {
        let ids = state.outbox.keys().chain(state.sweeps.keys());
        let senders = ids.filter(|id| id.lane.is_of_app()).filter_map(|id| id.lane.app());
        // a sweep that has not begun is in the log of its sender
        let is_of_sender = |id: &MessageId| id.lane.app().is_some_and(|app| logs_of(app).contains(&log));
        let begun = state.sweeps.iter().filter(|(id, sweep)| !is_of_sender(id) || has_begun(sweep));
        let mut apps = senders.chain(begun.map(|(id, _)| id.app));
        apps.find(|app| is_former(*app, log)).map(|app| (app, log))
    };
    let sweeps = logs.iter().flat_map(|state| state.sweeps.values()).map(|sweep| &sweep.waiting);
    let mut sent = logs.iter().flat_map(|state| state.outbox.values()).chain(sweeps);
    let of_message = |Waiting { emit, .. }: &Waiting| {
        let mut former = places().filter(|(log, _)| is_former(emit.id.app, *log));
        former.find(|(_, state)| has_consumed(state, emit)).map(|(log, _)| (emit.id.app, log))
    };
    places().find_map(in_log).or_else(|| sent.find_map(of_message))
}

/// Checks whether a sweep has reached a cell, or has a number that only the home of the visited app gives. If a stateless handler has
/// sent it, `began_by` is the message that this handler has handled, and says nothing.
fn has_begun(sweep: &Sweep) -> bool {
    let has_progress = sweep.next != Some(CellId(0)) || !sweep.open.is_empty();
    has_own_number(&sweep.waiting.emit.id) || has_progress
}

/// Checks whether a log says that a message was consumed without a bee. The floor of a sender outside tells nothing: a handler may
/// have derived the message from one of that sender, and then it has the lane and the number of that one.
fn has_consumed(log: &LogState, emit: &Emit) -> bool {
    let (id, handler) = (emit.id, HandlerId::from(emit.message_type));
    !id.lane.is_outside()
        && log.seen.contains_lane(id.lane)
        && log.seen.contains(id.lane, id.seq, id.part.derived(id.app, handler))
}

/// Returns the next number of an app's lane that none of these logs has used.
pub(crate) fn next_number<'a>(logs: impl IntoIterator<Item = &'a LogState>, lane: LaneId) -> Seq {
    let numbers = logs.into_iter().filter_map(|state| state.next_seqs.get(&lane));
    numbers.max().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::BeeId;
    use crate::hive::admission::bee_lanes::tests::emit;
    use crate::hive::consensus::journal::{DedupTable, MessageTypeId, Part};

    const APP: AppId = AppId(0);
    const SENDER: AppId = AppId(1);
    const TO_APP: MessageId =
        MessageId { lane: LaneId::of_bee(SENDER, BeeId(3)), seq: Seq(5), part: Part::WHOLE, app: APP };

    fn waiting(id: MessageId) -> Waiting {
        Waiting { order: 1, emit: emit(id) }
    }

    fn sent(id: MessageId) -> LogState {
        LogState { outbox: [(id, waiting(id))].into(), ..LogState::default() }
    }

    fn sweeps(id: MessageId, next: u64, began_by: Option<MessageId>) -> LogState {
        let sweep =
            Sweep { waiting: waiting(id), next: Some(CellId(next)), open: Default::default(), began_by };
        LogState { sweeps: [(id, sweep)].into(), ..LogState::default() }
    }

    /// Returns a log that says that a handler of the app has consumed the message.
    fn consumed(id: MessageId) -> LogState {
        let mut seen = DedupTable::default();
        seen.insert(id.lane, id.seq, id.part.derived(APP, HandlerId::from(MessageTypeId(1))));
        LogState { seen, ..LogState::default() }
    }

    /// The home of the app was log 0 or 1, and is now log 2. The sender has log 0.
    fn found(logs: [LogState; 2]) -> Option<(AppId, usize)> {
        let logs = [&logs[0], &logs[1], &LogState::default()];
        let has_home = |home| unfinished(&logs, &[vec![home], vec![0]]);
        assert!((0..2).all(|home| has_home(home).is_none_or(|(_, log)| log != home)));
        assert_eq!(unfinished(&logs, &[vec![], vec![0]]), None, "the app is in memory");
        has_home(2)
    }

    #[test]
    fn work_of_a_former_home_is_found() {
        let none = LogState::default;
        let by_app = MessageId { lane: LaneId::of_app(APP), app: SENDER, ..TO_APP };
        assert_eq!(found([sent(by_app), none()]), Some((APP, 0)));
        assert_eq!(found([none(), sent(by_app)]), Some((APP, 1)));
        assert_eq!(found([sent(TO_APP), consumed(TO_APP)]), Some((APP, 1)));
        assert_eq!(found([sweeps(TO_APP, 0, None), consumed(TO_APP)]), Some((APP, 1)));
        assert_eq!(found([sweeps(TO_APP, 7, None), none()]), Some((APP, 0)));
        assert_eq!(
            found([none(), sweeps(TO_APP, 0, None)]),
            Some((APP, 1)),
            "only the home takes it from there"
        );
        let numbered = MessageId { lane: LaneId::of_app(APP), ..TO_APP };
        assert_eq!(found([none(), sweeps(numbered, 0, Some(TO_APP))]), Some((APP, 1)));
    }

    #[test]
    fn what_any_home_may_finish_is_not_found() {
        let none = LogState::default;
        assert_eq!(found([sent(TO_APP), none()]), None);
        assert_eq!(found([sweeps(TO_APP, 0, None), none()]), None);
        let by_stateless = MessageId { lane: LaneId::of_app(SENDER), part: Part(9), ..TO_APP };
        let handled = MessageId { lane: LaneId::lasting(2), app: SENDER, ..TO_APP };
        assert_eq!(found([sweeps(by_stateless, 0, Some(handled)), none()]), None);
        assert_eq!(found([sent(TO_APP), consumed(MessageId { seq: Seq(4), ..TO_APP })]), None);
        // the floor of the sender is above what is still to be sent
        let derived = MessageId { lane: LaneId::lasting(2), ..TO_APP };
        let mut raised = consumed(derived);
        raised.seen.raise(derived.lane, Seq(6));
        assert_eq!(found([sent(derived), raised]), None);
    }

    #[test]
    fn a_lane_goes_on_from_the_highest_number() {
        let lane = LaneId::of_app(APP);
        let used = |next| LogState { next_seqs: [(lane, Seq(next))].into(), ..LogState::default() };
        assert_eq!(next_number(&[used(3), used(9), LogState::default()], lane), Seq(9));
        assert_eq!(next_number(&[LogState::default()], lane), Seq::ZERO);
    }
}
