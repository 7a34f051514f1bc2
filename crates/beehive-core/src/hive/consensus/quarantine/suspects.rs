//! The messages that may have crashed the process: which of them wait, which run alone, and which do not run again.

use crate::cell::BeeId;
use crate::hash::HashMap;
use crate::hive::consensus::journal::{AppId, CrashMarker, LaneId, LogState, MessageId, Part, Seq, Suspect};
use crate::limits;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Suspects, each with the position of the log whose marker lists it.
type Listed = BTreeMap<Suspect, usize>;

/// The messages that may have crashed the process. Each app's part of a message counts as a message of its own.
#[derive(Default)]
pub(super) struct Suspects {
    /// Messages that were unfinished in the logs at startup and have not been run since, each with the position of its log.
    pub(super) message_ids: BTreeMap<MessageId, usize>,
    /// Sweeps that were unfinished in the logs at startup and still are, each with the position of its log.
    pub(super) sweeps: HashMap<MessageId, usize>,
    /// Resumed lanes, each with a number below which messages may have been sent before the crash.
    pub(super) lanes: HashMap<LaneId, Seq>,
    /// Messages that the markers named together when a process ended, and that have not been run since.
    suspected: Listed,
    /// Messages that the markers named alone when a process ended, and that have not been run since.
    pub(super) accused: Listed,
    /// Messages that must not be run again.
    pub(super) set_aside: Listed,
}

impl Suspects {
    /// Returns the messages that are unfinished in the logs, and what the markers in the logs say about them.
    /// Each log comes with its position among the hive's logs. `have_ended` says whether the processes that wrote the markers have
    /// ended. If not, they may just lead no longer: then no message is accused, however often the log gets another leader.
    pub(super) fn in_logs(logs: &[(usize, &LogState)], have_ended: bool) -> Suspects {
        let mut suspects = Suspects {
            message_ids: logs.iter().flat_map(|(at, log)| log.outbox.keys().map(|id| (*id, *at))).collect(),
            sweeps: logs.iter().flat_map(|(at, log)| log.sweeps.keys().map(|id| (*id, *at))).collect(),
            ..Suspects::default()
        };

        let listed = |list: fn(&CrashMarker) -> &Vec<Suspect>| -> Listed {
            let markers = logs.iter().filter_map(|(at, log)| Some((*at, log.marker.as_ref()?)));
            markers.flat_map(|(at, marker)| list(marker).iter().map(move |one| (*one, at))).collect()
        };
        let unfinished = |mut listed: Listed| {
            listed.retain(|suspect, _| is_unfinished(logs, suspect));
            listed
        };
        suspects.suspected = unfinished(listed(|marker| &marker.suspected));
        suspects.accused = unfinished(listed(|marker| &marker.accused));
        suspects.set_aside = unfinished(listed(|marker| &marker.set_aside));

        // a log may have stalled, and its marker then names messages that had ended or waited when the process ended
        let markers = || logs.iter().filter_map(|(_, log)| log.marker.as_ref());
        let newest = markers().map(|marker| marker.number).max();
        let named_last: BTreeSet<Suspect> = markers()
            .filter(|marker| Some(marker.number) == newest)
            .flat_map(|marker| marker.running.iter().copied())
            .collect();
        for (suspect, at) in unfinished(listed(|marker| &marker.running)) {
            // a message runs alone only if a marker has named it before
            let was_alone = have_ended && named_last.len() == 1 && named_last.contains(&suspect);
            let was_accused = suspects.accused.contains_key(&suspect);
            let was_suspected = suspects.suspected.contains_key(&suspect);
            match (was_alone, was_accused, was_suspected) {
                (true, true, _) => {
                    suspects.accused.remove(&suspect);
                    add(suspect, at, &mut suspects.set_aside)
                }
                (true, false, true) => {
                    suspects.suspected.remove(&suspect);
                    add(suspect, at, &mut suspects.accused)
                }
                (false, true, _) | (false, _, true) => {}
                (_, false, false) => add(suspect, at, &mut suspects.suspected),
            }
        }

        suspects
    }

    /// Adds what is suspected in another log.
    pub(super) fn extend(&mut self, other: Suspects) {
        let Suspects { message_ids, sweeps, lanes, suspected, accused, set_aside } = other;
        self.message_ids.extend(message_ids);
        self.sweeps.extend(sweeps);
        self.lanes.extend(lanes);
        self.suspected.extend(suspected);
        self.accused.extend(accused);
        self.set_aside.extend(set_aside);
    }

    /// Forgets what is suspected in the log at a position, because the hive no longer leads it.
    pub(super) fn forget(&mut self, log: usize) {
        self.message_ids.retain(|_, at| *at != log);
        self.sweeps.retain(|_, at| *at != log);
        for listed in [&mut self.suspected, &mut self.accused, &mut self.set_aside] {
            listed.retain(|_, at| *at != log)
        }
    }

    /// Checks whether every message may run as usual. A suspected or accused message is also in one of the other sets, as
    /// long as it may still arrive.
    pub(super) fn is_empty(&self) -> bool {
        self.message_ids.is_empty()
            && self.sweeps.is_empty()
            && self.lanes.is_empty()
            && self.set_aside.is_empty()
    }

    /// Ends the quarantine of all messages that are not set aside.
    pub(super) fn clear(&mut self) {
        *self = Suspects { set_aside: std::mem::take(&mut self.set_aside), ..Suspects::default() }
    }

    /// Checks whether any message from `first` to `last` (on the same lane) may be quarantined or set aside.
    pub(super) fn concerns(&mut self, first: MessageId, last: MessageId) -> bool {
        if self.lanes.get(&first.lane).is_some_and(|end| first.seq >= *end) {
            // the lane has passed all numbers that the previous incarnation could have admitted
            self.lanes.remove(&first.lane);
        }

        let first = MessageId { part: Part::WHOLE, app: AppId(0), ..first };
        let last = MessageId { part: Part(u64::MAX), app: AppId(u16::MAX), ..last };
        let (from, to) = (Suspect { id: first, cell: None }, Suspect { id: last, cell: None });
        self.message_ids.range(first..=last).next().is_some()
            || self.lanes.contains_key(&first.lane)
            || self.set_aside.range(from..=to).next().is_some()
    }

    /// Checks whether the previous incarnation may have run the message.
    pub(super) fn may_have_been_run(&mut self, message_id: MessageId) -> bool {
        if self.message_ids.contains_key(&message_id) || self.sweeps.contains_key(&message_id) {
            return true;
        }
        match self.lanes.get(&message_id.lane) {
            Some(end) if message_id.seq < *end => true,
            Some(_) => {
                self.lanes.remove(&message_id.lane);
                false
            }
            None => false,
        }
    }

    /// Checks whether the message must run alone.
    pub(super) fn runs_alone(&self, suspect: &Suspect) -> bool {
        self.suspected.contains_key(suspect) || self.accused.contains_key(suspect)
    }

    /// Returns the messages that may run together with others and that follow `suspect` in the logs.
    pub(super) fn behind<'a>(&'a self, suspect: &Suspect) -> impl Iterator<Item = Suspect> + 'a {
        let behind = self.message_ids.range((Bound::Excluded(suspect.id), Bound::Unbounded));
        behind.map(|(id, _)| Suspect { id: *id, cell: None }).filter(|suspect| !self.runs_alone(suspect))
    }

    /// Removes a message that has been run.
    pub(super) fn is_run(&mut self, suspect: &Suspect) {
        self.message_ids.remove(&suspect.id);
        self.suspected.remove(suspect);
        self.accused.remove(suspect);
    }

    /// Returns the marker for a log, with a number: the messages that run or are next, and those that the log's marker lists.
    pub(super) fn marker(&self, (log, number): (usize, u64), running: Vec<Suspect>) -> CrashMarker {
        let of_log =
            |all: &Listed| all.iter().filter(|(_, at)| **at == log).map(|(suspect, _)| *suspect).collect();
        let (suspected, accused) = (of_log(&self.suspected), of_log(&self.accused));
        CrashMarker { running, suspected, accused, set_aside: of_log(&self.set_aside), number }
    }
}

/// Adds a message to a list. If the list is full, it loses another one: the added message has just ended a process, and
/// would do so again.
fn add(suspect: Suspect, at: usize, to: &mut Listed) {
    while to.len() >= limits::SET_ASIDE_MAX && to.pop_first().is_some() {}
    to.insert(suspect, at);
}

/// Checks whether the suspect's app may still have to handle the message. A message from outside is in no
/// log, so it counts as unfinished unless one of that app's bees has consumed it. Bees of other apps do not
/// count, because each app consumes the message separately.
fn is_unfinished(logs: &[(usize, &LogState)], Suspect { id: message_id, .. }: &Suspect) -> bool {
    let bees_of_app = (message_id.app, BeeId(0))..=(message_id.app, BeeId(u64::MAX));
    let mut bees = logs.iter().flat_map(|(_, log)| log.bees.range(bees_of_app.clone()));
    logs.iter().any(|(_, log)| log.outbox.contains_key(message_id) || log.sweeps.contains_key(message_id))
        || (message_id.lane.is_lasting()
            && !bees.any(|(_, bee)| bee.seen.contains(message_id.lane, message_id.seq, message_id.part)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::consensus::journal::BeeImage;

    /// Returns message number `seq` of a resumable lane.
    fn suspect(seq: u64) -> Suspect {
        Suspect {
            id: MessageId { lane: LaneId(7), seq: Seq(seq), part: Part::WHOLE, app: AppId(0) },
            cell: None,
        }
    }

    /// App 1 aborted the process while handling a message that app 0 had already consumed.
    #[test]
    fn a_message_that_another_app_has_consumed_is_set_aside() {
        let mut colony = LogState::default();
        colony.bees.insert((AppId(0), BeeId(3)), Box::new(BeeImage::default()));
        colony.bees.insert((AppId(1), BeeId(4)), Box::new(BeeImage::default()));
        let consumed_by = |colony: &mut LogState, app, bee| {
            let seen = &mut colony.bees.get_mut(&(AppId(app), BeeId(bee))).unwrap().seen;
            seen.insert(suspect(9).id.lane, Seq(9), Part::WHOLE);
        };

        let in_app_1 = Suspect { id: MessageId { app: AppId(1), ..suspect(9).id }, cell: None };
        consumed_by(&mut colony, 0, 3);
        let unfinished = |colony: &LogState, suspect: &Suspect| is_unfinished(&[(0, colony)], suspect);
        assert!(unfinished(&colony, &in_app_1) && !unfinished(&colony, &suspect(9)));
        consumed_by(&mut colony, 1, 4);
        assert!(!unfinished(&colony, &in_app_1));
    }

    /// Returns the suspects that the marker of a crashed process leaves.
    fn left_by(marker: CrashMarker) -> Suspects {
        let state = LogState { marker: Some(marker), ..LogState::default() };
        Suspects::in_logs(&[(0, &state)], true)
    }

    #[test]
    fn of_very_many_the_one_that_ended_the_last_life_is_set_aside() {
        let set_aside = (1..=limits::SET_ASIDE_MAX as u64).map(suspect).collect();
        let (running, accused) = (vec![suspect(0)], vec![suspect(0)]);
        let suspects = left_by(CrashMarker { running, accused, set_aside, ..CrashMarker::default() });
        assert_eq!(suspects.set_aside.len(), limits::SET_ASIDE_MAX);
        assert!(suspects.set_aside.contains_key(&suspect(0)) && suspects.accused.is_empty());
    }

    /// A process that is killed from outside may accuse a harmless message.
    #[test]
    fn a_message_that_is_accused_once_is_run_again() {
        let accused = (1..=limits::SET_ASIDE_MAX as u64).map(suspect).collect();
        let (running, suspected) = (vec![suspect(0)], vec![suspect(0)]);
        let mut suspects = left_by(CrashMarker { running, suspected, accused, ..CrashMarker::default() });
        assert!(suspects.runs_alone(&suspect(0)));

        let marker = suspects.marker((0, 0), vec![]);
        assert!(marker.set_aside.is_empty() && marker.suspected.is_empty());
        assert_eq!(marker.accused.len(), limits::SET_ASIDE_MAX);
        assert!(marker.accused.contains(&suspect(0)), "until it has run");
        suspects.is_run(&suspect(0));
        assert!(!suspects.marker((0, 0), vec![]).accused.contains(&suspect(0)));
    }

    /// Any one of the messages that were named together may have ended the process.
    #[test]
    fn messages_that_were_named_together_are_suspected() {
        let running = vec![suspect(1), suspect(2), suspect(3)];
        let (suspected, accused) = (vec![suspect(2)], vec![suspect(3)]);
        let suspects = left_by(CrashMarker { running, suspected, accused, ..CrashMarker::default() });
        let marker = suspects.marker((0, 0), vec![]);
        assert_eq!(marker.suspected, [suspect(1), suspect(2)]);
        assert_eq!((marker.accused, marker.set_aside), (vec![suspect(3)], vec![]));
    }

    /// The log of a message that had run alone commits nothing, so its marker still names the message. Another log names the
    /// message that runs alone when the process ends, and after that, messages that run together.
    #[test]
    fn of_several_markers_the_newest_accuses() {
        let left_by = |markers: [CrashMarker; 2]| {
            let states = markers.map(|marker| LogState { marker: Some(marker), ..LogState::default() });
            Suspects::in_logs(&[(0, &states[0]), (1, &states[1])], true)
        };
        let marker = |number, running: &[u64], listed: &[u64]| CrashMarker {
            number,
            running: running.iter().copied().map(suspect).collect(),
            suspected: listed.iter().copied().map(suspect).collect(),
            ..CrashMarker::default()
        };
        let keys = |listed: &Listed| listed.keys().copied().collect::<Vec<_>>();

        let alone = left_by([marker(5, &[1], &[1]), marker(7, &[2], &[2])]);
        assert_eq!((keys(&alone.accused), keys(&alone.suspected)), (vec![suspect(2)], vec![suspect(1)]));
        let group = left_by([marker(5, &[1], &[1]), marker(7, &[2], &[])]);
        assert_eq!((keys(&group.accused), keys(&group.suspected)), (vec![], vec![suspect(1), suspect(2)]));
        let before = left_by([marker(5, &[2, 3], &[]), marker(7, &[1], &[1])]);
        assert_eq!(
            (keys(&before.accused), keys(&before.suspected)),
            (vec![suspect(1)], vec![suspect(2), suspect(3)])
        );
        let ended = left_by([marker(5, &[1], &[1]), marker(6, &[], &[])]);
        assert_eq!((keys(&ended.accused), keys(&ended.suspected)), (vec![], vec![suspect(1)]));
    }

    /// A hive that loses a log, and lives on, leaves its marker there.
    #[test]
    fn a_leader_that_lives_accuses_nothing() {
        let (running, suspected) = (vec![suspect(1)], vec![suspect(1)]);
        let marker = CrashMarker { running, suspected, ..CrashMarker::default() };
        let state = LogState { marker: Some(marker), ..LogState::default() };
        let marker = Suspects::in_logs(&[(0, &state)], false).marker((0, 0), vec![]);
        assert_eq!((marker.suspected, marker.accused), (vec![suspect(1)], vec![]));
        let marker = Suspects::in_logs(&[(0, &state)], true).marker((0, 0), vec![]);
        assert_eq!((marker.suspected, marker.accused), (vec![], vec![suspect(1)]))
    }

    /// A message that was named alone may have been the last one of a group.
    #[test]
    fn a_message_is_accused_only_after_it_was_suspected() {
        let suspects = left_by(CrashMarker { running: vec![suspect(1)], ..CrashMarker::default() });
        let marker = suspects.marker((0, 0), vec![]);
        assert_eq!((marker.suspected, marker.accused), (vec![suspect(1)], vec![]));
    }
}
