//! Sweeps that began before bees could move from one log to another: a hive that has more logs than before gives them numbers of
//! their own.
//!
//! While all bees of an app stay in one log, a sweep of the app has the id that its sender gave it, and a visit is in the log's list of
//! open cells until the record of the visit takes it out. If bees may move, the record of a visit may be in another log, so the sweep
//! needs a number on the lane of its app: see [`open_sweeps`](super::open_sweeps). Logs may be added behind the others, so the first start
//! with more logs may find unfinished sweeps of the former kind.
//!
//! The log of the app says how far such a sweep has come, because each visit is in the same log. The start appends three records
//! for it before all others: a sweep with a number of its own begins, it gets the cursor and the open cells of the former one, and the
//! former one ends. No visit of the new one precedes them in any log. A crash may leave only the first ones of them. Then the former
//! sweep is still there, unchanged, and the next start appends the missing ones.

use crate::cell::CellId;
use crate::hive::consensus::former_homes::next_number;
use crate::hive::consensus::journal::{
    AppId, CrashMarker, Emit, Emits, HandlerId, Input, LaneId, LogState, MessageId, Part, Record, Seq, Sweep,
};
use crate::hive::consensus::open_sweeps::has_own_number;
use std::collections::BTreeMap;

/// Gives numbers of their own to the sweeps that have begun without one. `of_apps` contains the positions of each app's logs, starting
/// with its home log. The hive is alone, and bees may move from one log to another. Returns the records that it must append before all
/// others, each with the position of its log. They are in effect in the states.
pub(crate) fn number_begun(logs: &mut [&mut LogState], of_apps: &[Vec<usize>]) -> Vec<(usize, Record)> {
    let mut records = Vec::new();
    for log in 0..logs.len() {
        let Some(state) = logs.get(log) else { break };
        let is_elsewhere =
            |id: &MessageId| (0..).zip(&*logs).any(|(at, other)| at != log && other.sweeps.contains_key(id));
        let begun = state
            .sweeps
            .iter()
            .filter(|(id, sweep)| has_begun_without((log, is_elsewhere(id)), id, sweep, of_apps));
        let begun: Vec<MessageId> = begun.map(|(id, _)| *id).collect();
        for id in begun {
            let next = next_number(logs.iter().map(|state| &**state), LaneId::of_app(id.app));
            let Some(state) = logs.get_mut(log) else { break };
            for record in numbered(state, id, next) {
                state.carry_out(&record);
                records.push((log, record))
            }
        }
    }
    name_again(logs);
    records
}

/// Checks whether a sweep in the log at position `log` has begun, although it has no number of its own.
///
/// A sweep that has not begun is in the log of its sender, as the sender has emitted it. If that log is also the home of the visited
/// app, and bees do not move, the sweep begins without another record. As long as it has reached no cell, it may as well begin now.
/// If a stateless handler has sent it, `began_by` is the message that this handler has handled, and does not say that it has begun.
/// If another log has it as well (`is_elsewhere`), that is the log of its sender.
fn has_begun_without(
    (log, is_elsewhere): (usize, bool),
    id: &MessageId,
    sweep: &Sweep,
    of_apps: &[Vec<usize>],
) -> bool {
    let logs_of = |app: AppId| of_apps.get(app.index()).map_or(&[][..], Vec::as_slice);
    let is_home = logs_of(id.app).first() == Some(&log);
    let is_of_sender = id.lane.app().is_some_and(|sender| logs_of(sender).contains(&log));
    let has_progress = sweep.next != Some(CellId(0)) || !sweep.open.is_empty();
    is_home && !has_own_number(id) && (!is_of_sender || has_progress || is_elsewhere)
}

/// Returns the records that give a number of its own to a sweep: the number `seq`, or the one that it has got already.
fn numbered(state: &LogState, id: MessageId, seq: Seq) -> Vec<Record> {
    let Some(Sweep { waiting, next, open, .. }) = state.sweeps.get(&id) else { return Vec::new() };
    let cells: Vec<CellId> = open.iter().copied().collect();
    let mut records = Vec::with_capacity(3);

    let is_it = |(new, sweep): &(&MessageId, &Sweep)| sweep.began_by == Some(id) && has_own_number(new);
    let new = match state.sweeps.iter().find(is_it) {
        // a start that crashed has begun it
        Some((new, _)) => *new,
        None => {
            let lane = LaneId::of_app(id.app);
            let new = MessageId { lane, seq, part: Part::WHOLE, app: id.app };
            let MessageId { lane, seq, part, app } = id;
            let input = Input { lane, floor: None, seq, count: 1, part };
            let handler = HandlerId::from(waiting.emit.message_type);
            let emits = Emits(vec![Emit { id: new, ..waiting.emit.clone() }]);
            records.push(Record::Admit { app, handler, input, emits });
            new
        }
    };
    records.push(Record::Expand { sweep: new, cells: cells.clone(), gone: Vec::new(), next: *next });
    records.push(Record::Expand { sweep: id, cells: Vec::new(), gone: cells, next: None });
    records
}

/// Lets the crash markers name visits by the numbers that their sweeps have now. Otherwise, a visit that is set aside would run again.
fn name_again(logs: &mut [&mut LogState]) {
    let mut numbers: BTreeMap<MessageId, MessageId> = BTreeMap::new();
    for (id, sweep) in logs.iter().flat_map(|state| &state.sweeps) {
        if let Some(former) = sweep.began_by.filter(|_| has_own_number(id)) {
            numbers.insert(former, *id);
        }
    }
    for CrashMarker { running, suspected, accused, set_aside, .. } in
        logs.iter_mut().filter_map(|state| state.marker.as_mut())
    {
        for suspect in [running, suspected, accused, set_aside].into_iter().flatten() {
            // only a visit names a cell
            if let Some(number) = numbers.get(&suspect.id).filter(|_| suspect.cell.is_some()) {
                suspect.id = *number
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::BeeId;
    use crate::hive::admission::bee_lanes::tests::emit;
    use crate::hive::consensus::journal::{Suspect, Waiting};
    use std::collections::BTreeSet;

    const APP: AppId = AppId(0);
    const SENDER: AppId = AppId(1);

    fn sent_by(lane: LaneId) -> MessageId {
        MessageId { lane, seq: Seq(5), part: Part(9), app: APP }
    }

    fn by_a_bee() -> MessageId {
        sent_by(LaneId::of_bee(SENDER, BeeId(3)))
    }

    fn cells(of: &[u64]) -> BTreeSet<CellId> {
        of.iter().copied().map(CellId).collect()
    }

    /// Returns the state of a log with one sweep.
    fn log(id: MessageId, next: Option<u64>, open: &[u64], began_by: Option<MessageId>) -> LogState {
        let waiting = Waiting { order: 1, emit: Emit { is_sweep: true, ..emit(id) } };
        let sweep = Sweep { waiting, next: next.map(CellId), open: cells(open), began_by };
        LogState { sweeps: [(id, sweep)].into(), ..LogState::default() }
    }

    /// Both apps have the same two logs.
    fn number(state: &mut LogState) -> Vec<Record> {
        let mut other = LogState::default();
        let records = number_begun(&mut [state, &mut other], &[vec![0, 1], vec![0, 1]]);
        records.into_iter().map(|(log, record)| (log == 0).then_some(record).unwrap()).collect()
    }

    #[test]
    fn a_sweep_keeps_its_progress_wherever_the_start_crashes() {
        let before = log(by_a_bee(), Some(7), &[1, 4], None);
        let mut after = before.clone();
        let records = number(&mut after);
        assert_eq!(records.len(), 3);
        let new = MessageId { lane: LaneId::of_app(APP), seq: Seq(0), part: Part::WHOLE, app: APP };
        let ids: Vec<_> = after.sweeps.keys().copied().collect();
        assert_eq!(ids, [new]);
        let Sweep { next, open, began_by, .. } = &after.sweeps[&new];
        assert_eq!((*next, open, *began_by), (Some(CellId(7)), &cells(&[1, 4]), Some(by_a_bee())));

        for kept in 0..=records.len() {
            let mut crashed = before.clone();
            records[..kept].iter().for_each(|record| crashed.carry_out(record));
            number(&mut crashed);
            assert_eq!(crashed, after, "{kept} records are left");
        }
    }

    #[test]
    fn only_a_sweep_that_has_begun_gets_a_number() {
        let is_numbered = |mut state: LogState| !number(&mut state).is_empty();
        let outside = LaneId::lasting(2);
        let of_app = MessageId { lane: LaneId::of_app(APP), ..by_a_bee() };
        assert!(!is_numbered(log(by_a_bee(), Some(0), &[], None)), "it has come from this log");
        assert!(!is_numbered(log(of_app, Some(0), &[], None)), "a stateless handler has sent it");
        assert!(
            !is_numbered(log(of_app, Some(0), &[], Some(sent_by(outside)))),
            "for a message from outside"
        );
        assert!(is_numbered(log(of_app, Some(0), &[1], None)));
        assert!(is_numbered(log(by_a_bee(), None, &[1], None)));
        assert!(is_numbered(log(sent_by(outside), Some(0), &[], Some(sent_by(outside)))));
        let own = MessageId { part: Part::WHOLE, ..of_app };
        assert!(!is_numbered(log(own, Some(7), &[1], Some(by_a_bee()))));

        // the sender was in another log, and both apps have both logs now
        let mut states = [log(by_a_bee(), Some(0), &[], None), log(by_a_bee(), Some(0), &[], None)];
        let [first, second] = &mut states;
        let records = number_begun(&mut [first, second], &[vec![0, 1], vec![0, 1]]);
        assert_eq!(records.iter().map(|(log, _)| *log).collect::<Vec<_>>(), [0, 0, 0]);

        // the sender is in another log
        let mut states = [log(by_a_bee(), Some(0), &[], None), log(by_a_bee(), Some(0), &[], None)];
        let [first, second] = &mut states;
        let records = number_begun(&mut [first, second], &[vec![1, 2], vec![0]]);
        assert_eq!(records.iter().map(|(log, _)| *log).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn a_visit_stays_set_aside() {
        let suspect = |id, cell: Option<u64>| Suspect { id, cell: cell.map(CellId) };
        let set_aside = vec![suspect(by_a_bee(), Some(4)), suspect(by_a_bee(), None)];
        let marker = Some(CrashMarker { set_aside, ..CrashMarker::default() });
        let mut state = LogState { marker, ..log(by_a_bee(), None, &[4], None) };
        let mut again = state.clone();
        for record in number(&mut state) {
            again.carry_out(&record)
        }
        number(&mut again);
        let new = MessageId { lane: LaneId::of_app(APP), seq: Seq(0), part: Part::WHOLE, app: APP };
        for state in [state, again] {
            let set_aside = state.marker.unwrap().set_aside;
            assert_eq!(set_aside, [suspect(new, Some(4)), suspect(by_a_bee(), None)])
        }
    }
}
