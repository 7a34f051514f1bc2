//! Whose turn it is: quarantined messages run together, or one of them runs alone. What the committed markers say about it.
//!
//! A message waits for the marker of its own log only, and it does not keep others from running while it waits. A log that
//! commits nothing therefore holds up its own messages, and no others; a message that is to run alone is the exception, and
//! its log has [`limits::SUSPECT_TURN_MAX`](crate::limits::SUSPECT_TURN_MAX) to commit the marker if others wait.
//!
//! A marker may thus be committed late, when the message that it names has given up its turn, or the marker that no longer
//! names a message may never be. The number of a marker says which of them counts after a crash: it is higher with every turn.

use crate::hive::consensus::journal::{CrashMarker, Suspect};

/// The state of one log.
#[derive(Clone, Default)]
struct OfLog {
    /// The number of the last committed marker of this incarnation, and the messages that it names. `None` if there is none.
    marker: Option<(u64, Vec<Suspect>)>,
    /// Number of committed markers.
    commits: u64,
    /// The value of `commits` when a message gave up its turn, because the log committed nothing.
    gave_up_at: Option<u64>,
}

/// The committed markers of this incarnation, and the right to run.
pub(super) struct Turns {
    logs: Vec<OfLog>,
    /// The number of the markers that are appended now.
    number: u64,
    /// Whether a message has the right to run alone. It may still wait for its marker.
    is_taken: bool,
    /// Number of messages that run together.
    together: usize,
    /// Number of messages that wait until nobody has the right to run alone, and want it themselves.
    wait_alone: usize,
    /// Number of messages that wait until nobody has the right to run alone, or wants it.
    wait_together: usize,
    /// Whether the hive has stopped, so that nobody should wait for a marker any more.
    pub(super) is_over: bool,
}

impl Turns {
    /// Nobody runs. There are never more than `room` logs, and their markers so far have numbers below `number`.
    pub(super) fn new(room: usize, number: u64) -> Turns {
        let logs = vec![OfLog::default(); room];
        Turns { logs, number, is_taken: false, together: 0, wait_alone: 0, wait_together: 0, is_over: false }
    }

    /// Returns the number of the markers that are appended now.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// From now on, markers have a number that is higher than that of a marker in another log.
    pub(super) fn count_on_from(&mut self, number: u64) {
        self.number = self.number.max(number.saturating_add(1))
    }

    /// Notes that a marker is committed to a log.
    pub(super) fn committed(&mut self, log: usize, marker: Option<&CrashMarker>) {
        if let Some(of_log) = self.logs.get_mut(log) {
            let named = marker.map(|marker| (marker.number, marker.running.clone()));
            of_log.marker = Some(named.unwrap_or((self.number, Vec::new())));
            of_log.commits += 1
        }
    }

    /// Forgets a log. Another one may get its position.
    pub(super) fn forget(&mut self, log: usize) {
        if let Some(of_log) = self.logs.get_mut(log) {
            *of_log = OfLog::default()
        }
    }

    /// Checks whether a marker is committed, so that the end of the process counts as a crash.
    pub(super) fn is_any(&self) -> bool {
        self.logs.iter().any(|of_log| of_log.marker.is_some())
    }

    /// Returns the messages that the log's marker names, if the marker has this number or a higher one.
    fn named(&self, log: usize, number: u64) -> &[Suspect] {
        let marker = self.logs.get(log).and_then(|of_log| of_log.marker.as_ref());
        marker.filter(|(of_marker, _)| *of_marker >= number).map_or(&[], |(_, named)| named)
    }

    /// Checks whether the log's marker names a message. An older marker than the one with this number does not count.
    pub(super) fn has(&self, log: usize, suspect: &Suspect, number: u64) -> bool {
        self.named(log, number).contains(suspect)
    }

    /// Checks whether the log's marker names this message only. An older marker than the one with this number does not count.
    pub(super) fn has_only(&self, log: usize, suspect: &Suspect, number: u64) -> bool {
        self.named(log, number) == [*suspect]
    }

    /// Checks whether a message has the right to run alone, so that no other one may begin or be named.
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Checks whether messages may be named and run together. Those that run alone go first: each of them ends a group, whose
    /// messages have to be named again.
    pub(super) fn is_open(&self) -> bool {
        !self.is_taken && self.wait_alone == 0
    }

    /// Checks whether messages wait for their turn.
    pub(super) fn is_waited_for(&self) -> bool {
        self.wait_alone + self.wait_together > 0
    }

    /// Returns the number of messages that wait for their turn to run alone, or together.
    pub(super) fn waiting(&mut self, alone: bool) -> &mut usize {
        if alone { &mut self.wait_alone } else { &mut self.wait_together }
    }

    /// Gives a message the right to run alone, when those that run together have ended.
    pub(super) fn take(&mut self) {
        debug_assert!(!self.is_taken, "only one message at a time runs alone");
        self.is_taken = true;
        self.number += 1
    }

    /// Ends the right to run alone.
    pub(super) fn end(&mut self) {
        debug_assert!(self.is_taken, "a message has run alone");
        self.is_taken = false;
        self.number += 1
    }

    /// Ends the right to run alone of a message that has not run, because its log committed nothing.
    pub(super) fn give_up(&mut self, log: usize) {
        if let Some(of_log) = self.logs.get_mut(log) {
            of_log.gave_up_at = Some(of_log.commits)
        }
        self.end()
    }

    /// Checks whether a log has committed nothing since a message gave up its turn.
    pub(super) fn is_stalled(&self, log: usize) -> bool {
        self.logs.get(log).is_some_and(|of_log| of_log.gave_up_at == Some(of_log.commits))
    }

    /// Checks whether messages run together.
    pub(super) fn is_together(&self) -> bool {
        self.together > 0
    }

    /// Notes that a message begins to run together with others.
    pub(super) fn begin_together(&mut self) {
        debug_assert!(!self.is_taken, "no message runs beside one that runs alone");
        self.together += 1
    }

    /// Notes that a message that ran together with others has ended.
    pub(super) fn end_together(&mut self) {
        self.together = self.together.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hive::consensus::journal::{AppId, LaneId, MessageId, Part, Seq};

    fn suspect(seq: u64) -> Suspect {
        let id = MessageId { lane: LaneId(7), seq: Seq(seq), part: Part::WHOLE, app: AppId(0) };
        Suspect { id, cell: None }
    }

    fn marker(number: u64, running: &[u64]) -> CrashMarker {
        let running = running.iter().copied().map(suspect).collect();
        CrashMarker { number, running, ..CrashMarker::default() }
    }

    /// A marker that was appended before the names were removed may be committed after that.
    #[test]
    fn a_marker_of_an_earlier_turn_names_nobody() {
        let mut turns = Turns::new(2, 5);
        turns.committed(0, Some(&marker(5, &[1, 2])));
        assert!(turns.has(0, &suspect(1), 5) && !turns.has(1, &suspect(1), 5));
        turns.take();
        assert_eq!(turns.number(), 6);
        assert!(!turns.has(0, &suspect(1), 6));
        turns.committed(0, Some(&marker(6, &[1])));
        assert!(turns.has_only(0, &suspect(1), 6) && !turns.has_only(0, &suspect(2), 6));
        turns.end();
        assert_eq!(turns.number(), 7, "what is appended now is newer than the marker that names the message");
        turns.count_on_from(20);
        turns.count_on_from(3);
        assert_eq!(turns.number(), 21);
    }

    #[test]
    fn a_log_is_stalled_until_it_commits_something() {
        let mut turns = Turns::new(2, 0);
        turns.take();
        turns.give_up(1);
        assert!(!turns.is_taken() && turns.is_stalled(1) && !turns.is_stalled(0));
        turns.committed(0, Some(&marker(1, &[])));
        assert!(turns.is_stalled(1));
        turns.committed(1, Some(&marker(1, &[9])));
        assert!(!turns.is_stalled(1));
    }

    #[test]
    fn those_that_run_alone_go_first() {
        let mut turns = Turns::new(1, 0);
        assert!(turns.is_open() && !turns.is_waited_for());
        *turns.waiting(true) += 1;
        assert!(!turns.is_open() && turns.is_waited_for() && !turns.is_taken());
        *turns.waiting(true) -= 1;
        *turns.waiting(false) += 1;
        assert!(turns.is_open() && turns.is_waited_for());
        turns.begin_together();
        assert!(turns.is_together());
        turns.end_together();
        assert!(!turns.is_together());
    }
}
