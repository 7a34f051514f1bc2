//! Tests of the table of lanes: floors, the order of an outbox, and what moves leave of it.

use super::*;
use crate::limits;
use beehive_protocol::{Address, HiveId, MessageTypeId, Payload};

fn lanes() -> (Arc<BeeLanes>, Arc<Mutex<Vec<LaneId>>>) {
    let retiring = Arc::<Mutex<Vec<LaneId>>>::default();
    (Arc::new(BeeLanes::new(true, false, retiring.clone(), Mutation::default())), retiring)
}

const BEE: (AppId, BeeId) = (AppId(3), BeeId(9));
const LANE: LaneId = LaneId::of_bee(BEE.0, BEE.1);

fn clustered() -> (Arc<BeeLanes>, Arc<Mutex<Vec<LaneId>>>) {
    let retiring = Arc::<Mutex<Vec<LaneId>>>::default();
    (Arc::new(BeeLanes::new(true, true, retiring.clone(), Mutation::default())), retiring)
}

fn id(app: u16, seq: u64) -> MessageId {
    MessageId { lane: LANE, seq: Seq(seq), part: Part::WHOLE, app: AppId(app) }
}

pub(crate) fn emit(id: MessageId) -> Emit {
    Emit {
        id,
        message_type: MessageTypeId(1),
        payload: Payload::from(&[][..]),
        at: None,
        is_sweep: false,
        position: None,
        origin: HiveId(0),
        sender: Address::Outside,
        hops: 0,
        chain: 0,
        chance: 0,
    }
}

/// Begins an office in which the hive leads the log at a position.
pub(crate) fn at(lanes: &BeeLanes, log: usize) -> Office {
    lanes.offices.begin(log)
}

/// Sends messages from the first log.
fn send(lanes: &BeeLanes, ids: &[MessageId]) {
    lanes.sent(at(lanes, 0), &ids.iter().copied().map(emit).collect::<Vec<_>>());
}

fn acked(id: MessageId) -> Acked {
    Acked { app: id.app, lane: id.lane, seq: id.seq, count: 1, part: id.part }
}

/// A packet of a few bytes acknowledges four thousand million messages.
#[test]
fn an_acknowledgment_of_more_messages_than_there_are() {
    let (lanes, _) = lanes();
    send(&lanes, &[id(1, 0), id(1, 1), id(2, 1), id(1, 7)]);
    lanes.acknowledged(0, &Acked { count: u32::MAX, ..acked(id(1, 1)) });
    assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)), "the first one is open");
    lanes.acknowledged(0, &acked(id(1, 0)));
    assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(8)));
    assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(1)), "those of another app are");
}

#[test]
fn each_app_has_the_floor_of_its_own_oldest_message() {
    let (lanes, _) = lanes();
    assert_eq!(lanes.floor(LANE, AppId(1)), None);
    send(&lanes, &[id(1, 0), id(2, 0), id(1, 2)]);
    assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)));
    lanes.acknowledged(0, &acked(id(1, 0)));
    assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(2)));
    assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(0)));
    lanes.acknowledged(0, &acked(id(1, 2)));
    assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(3)));
    assert_eq!(lanes.floor(LANE, AppId(7)), Some(Seq(3)), "it never got one");
    assert!(lanes.is_open(LANE));
    lanes.acknowledged(0, &acked(id(2, 0)));
    assert!(!lanes.is_open(LANE));
}

#[test]
fn a_lane_retires_when_it_has_ended_and_all_is_acknowledged() {
    let (lanes, retiring) = lanes();
    send(&lanes, &[id(1, 4)]);
    lanes.end(LANE);
    assert!(lanes.knows(LANE) && retiring.lock().is_empty());
    lanes.acknowledged(0, &acked(id(1, 4)));
    lanes.acknowledged(0, &acked(id(1, 4)));
    assert_eq!(*retiring.lock(), [LANE], "once");
    lanes.remove(&retiring.lock());
    assert!(!lanes.knows(LANE));
}

fn reserve(lanes: &Arc<BeeLanes>) -> Reserved {
    lanes.reserve(LaneId::of_app(AppId(3)), AppId(3), at(lanes, 0))
}

/// Two stateless handlers reserve numbers, and the second handler's record is committed first.
#[test]
fn a_reserved_number_holds_up_the_floors() {
    let (lanes, _) = lanes();
    let (first, second) = (reserve(&lanes), reserve(&lanes));
    let to = |reserved: &Reserved| MessageId { app: AppId(1), ..reserved.id };
    let lane = LaneId::of_app(AppId(3));

    let newer = to(&second);
    send(&lanes, &[newer]);
    drop(second);
    lanes.acknowledged(0, &acked(newer));
    assert_eq!(lanes.floor(lane, AppId(1)), Some(first.id.seq));

    let older = to(&first);
    send(&lanes, &[older]);
    drop(first);
    assert_eq!(lanes.floor(lane, AppId(1)), Some(older.seq));
    lanes.acknowledged(0, &acked(older));
    assert_eq!(lanes.floor(lane, AppId(1)), Some(newer.seq.next()));
}

/// A receiver that knows this floor would mistake the message with the reserved number for a duplicate.
#[cfg(feature = "testing")]
#[test]
fn the_floor_of_a_mutant_passes_a_reserved_number() {
    let mutation = Mutation::of(Some(Mutant::FloorFromSpeculation));
    let lanes = Arc::new(BeeLanes::new(true, false, Arc::default(), mutation));
    let (first, second) = (reserve(&lanes), reserve(&lanes));
    let newer = MessageId { app: AppId(1), ..second.id };
    send(&lanes, &[newer]);
    drop(second);
    lanes.acknowledged(0, &acked(newer));
    assert!(lanes.floor(newer.lane, AppId(1)) > Some(first.id.seq));
}

/// A bee that has merged has messages on two lanes, and those on the lane with the higher id are older. A start, or the hive
/// to which the bee moves, takes them from a log.
#[test]
fn what_several_lanes_of_a_bee_had_sent_stays_in_order() {
    let (lanes, _) = lanes();
    let own = |seq| MessageId { lane: LaneId::of_bee(BEE.0, BeeId(2)), ..id(1, seq) };
    let emits: Vec<Emit> = [id(1, 3), own(7), id(2, 4), own(8)].into_iter().map(emit).collect();
    let office = at(&lanes, 0);
    for (_, emits) in lanes.by_lane(emits.iter()) {
        lanes.sent_in_order(office, emits);
    }
    lanes.sent(office, &[emit(own(9))]);
    let outbox: Vec<_> = lanes.outbox(&[own(0).lane, LANE]).iter().map(|emit| emit.id).collect();
    assert_eq!(outbox, [id(1, 3), own(7), id(2, 4), own(8), own(9)]);
}

/// Acknowledgments arrive while the outbox moves from the first log to the second one.
#[test]
fn what_is_acknowledged_during_a_move_is_acknowledged_to_the_new_log() {
    let (lanes, _) = lanes();
    send(&lanes, &[id(1, 0), id(2, 1), id(1, 2)]);
    lanes.acknowledged(0, &acked(id(2, 1)));
    lanes.leave(BEE, 0, &[LANE], None);
    // the record of this acknowledgment comes after the record that freezes the bee
    lanes.acknowledged(0, &acked(id(1, 0)));
    assert_eq!(lanes.log_for(&acked(id(1, 2))), None);
    let moves: Vec<_> = lanes.outbox(&[LANE]).iter().map(|emit| emit.id).collect();
    assert_eq!(moves, [id(1, 0), id(1, 2)], "both are in the outbox that moves");

    lanes.arrive(BEE, 1, Epoch(1), |_| ());
    let again = lanes.take_misdirected();
    assert_eq!(again, [acked(id(1, 0)), acked(id(1, 2))]);
    assert_eq!(lanes.log_for(&again[0]), Some(1));
    assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(0)), "no log has said so yet");
    again.iter().for_each(|acked| lanes.acknowledged(1, acked));
    assert!(!lanes.is_open(LANE));

    // the acknowledgment is committed in a log that the outbox has already left
    lanes.sent(at(&lanes, 1), &[emit(id(1, 5))]);
    lanes.acknowledged(0, &acked(id(1, 5)));
    assert!(lanes.is_open(LANE));
    assert_eq!(lanes.take_misdirected(), [acked(id(1, 5))]);
}

/// A bee leaves the first log, is in another hive for a while, and comes to the second log before the first one has
/// dropped it.
#[test]
fn what_was_unacknowledged_before_a_bee_was_elsewhere_says_nothing() {
    let (lanes, _) = clustered();
    let departed = Mutex::new(Vec::new());
    let departs = |lane| {
        assert!(lanes.shard(lane).is_locked(), "nobody sees the lane in no table");
        departed.lock().push(lane)
    };
    send(&lanes, &[id(1, 0)]);
    lanes.leave(BEE, 0, &[LANE], Some(Epoch(3)));
    lanes.arrive(BEE, 1, Epoch(5), departs);
    assert_eq!((lanes.is_in(LANE, 1), lanes.outbox(&[LANE]).len()), (false, 0));
    assert_eq!(*departed.lock(), [LANE]);
    // the new log says what is unacknowledged
    lanes.sent(at(&lanes, 1), &[emit(id(1, 7))]);
    lanes.depart(BEE, 0, departs);
    assert_eq!(lanes.floor(LANE, AppId(1)), Some(Seq(7)), "the bee is in the second log");

    lanes.leave(BEE, 1, &[LANE], Some(Epoch(5)));
    lanes.arrive(BEE, 0, Epoch(6), departs);
    assert_eq!((lanes.is_in(LANE, 0), lanes.floor(LANE, AppId(1))), (true, Some(Seq(7))));
    lanes.leave(BEE, 0, &[LANE], Some(Epoch(6)));
    lanes.depart(BEE, 0, departs);
    assert!(!lanes.knows(LANE));
    assert_eq!(*departed.lock(), [LANE, LANE]);
}

/// A bee moves to another log of this hive, and is about to leave that one when the first log drops it.
#[test]
fn a_log_that_drops_a_bee_late_does_not_end_its_next_move() {
    let (lanes, _) = clustered();
    let departs = |lane| panic!("{lane:?} is still here");
    send(&lanes, &[id(1, 0)]);
    lanes.leave(BEE, 0, &[LANE], Some(Epoch(0)));
    lanes.arrive(BEE, 1, Epoch(1), departs);
    lanes.leave(BEE, 1, &[LANE], Some(Epoch(1)));
    lanes.depart(BEE, 0, departs);
    assert!(lanes.is_moving(LANE));
    // it stays after all
    lanes.arrive(BEE, 1, Epoch(2), departs);
    assert_eq!((lanes.is_moving(LANE), lanes.log_for(&acked(id(1, 0)))), (false, Some(1)))
}

/// An acknowledgment arrives while the outbox moves. In a cluster, another hive may get the outbox and send the message
/// again, so the acknowledgment must not take effect later.
#[test]
fn what_is_acknowledged_during_a_move_in_a_cluster_is_acknowledged_again() {
    let (lanes, _) = clustered();
    send(&lanes, &[id(1, 0), id(1, 2)]);
    lanes.leave(BEE, 0, &[LANE], Some(Epoch(0)));
    lanes.acknowledged(0, &acked(id(1, 0)));
    assert_eq!(lanes.log_for(&acked(id(1, 2))), None);
    lanes.arrive(BEE, 0, Epoch(1), |_| ());
    assert_eq!(lanes.take_misdirected(), []);
    assert_eq!(lanes.outbox(&[LANE]).len(), 2);
}

/// A cause with credits, which a lane may hold.
struct Outside {
    credits: Arc<crate::hive::admission::credits::Credits>,
    in_flight: Arc<crate::hive::admission::credits::InFlight>,
}

impl Outside {
    fn new() -> Outside {
        Outside { credits: crate::hive::admission::credits::Credits::new(1), in_flight: Arc::default() }
    }

    /// Sends messages to an app with these numbers, each of which is acknowledged, until one is held. Returns its number.
    fn send(&self, lanes: &BeeLanes, app: u16, numbers: impl Iterator<Item = u64>) -> Option<u64> {
        let office = at(lanes, 0);
        for seq in numbers {
            let is_behind = lanes.sent(office, &[emit(id(app, seq))]);
            lanes.acknowledged(0, &acked(id(app, seq)));
            if is_behind {
                assert!(self.credits.take_all(1));
                let cause = Cause::new(&self.credits, 1, &self.in_flight);
                lanes.hold(LANE, Some(&cause));
                lanes.hold(LANE, Some(&cause));
                return Some(seq);
            }
        }
        None
    }

    fn is_held(&self) -> bool {
        assert_eq!(self.credits.free() == 0, self.in_flight.count() > 0);
        self.credits.free() == 0
    }
}

const WINDOW: u64 = limits::BEE_LANE_WINDOW_MAX;

#[test]
fn a_cause_is_held_until_the_oldest_message_is_acknowledged() {
    // Numbers that only apps in memory get are not in the table
    for step in [1, 2, 512] {
        let (lanes, _) = lanes();
        send(&lanes, &[id(2, 0)]);
        let outside = Outside::new();
        let held = outside.send(&lanes, 1, (step..3 * WINDOW).step_by(step as usize)).expect("is held");
        assert!((WINDOW..WINDOW + 2048).contains(&held), "{held}");
        assert!(outside.is_held());
        lanes.acknowledged(0, &acked(id(2, 0)));
        assert!(!outside.is_held());
        assert_eq!(outside.send(&lanes, 1, 3 * WINDOW..6 * WINDOW), None, "nothing is open");

        // a cause without credits holds up nobody, and is not kept
        lanes.hold(LANE, Some(&outside.in_flight.begin()));
        assert!(!outside.is_held());
    }
}

#[test]
fn a_cause_is_held_while_a_number_is_reserved() {
    let (lanes, _) = lanes();
    let reserved = lanes.reserve(LANE, AppId(3), at(&lanes, 0));
    let outside = Outside::new();
    assert!(outside.send(&lanes, 1, 1..3 * WINDOW).is_some() && outside.is_held());
    drop(reserved);
    assert!(!outside.is_held());
}

#[test]
fn a_sweep_holds_no_cause_as_long_as_it_makes_steps() {
    let (lanes, _) = lanes();
    let sweep = Emit { is_sweep: true, ..emit(id(2, 0)) };
    lanes.sent(at(&lanes, 0), &[sweep]);
    let outside = Outside::new();
    for step in 1..6 {
        let numbers = step * WINDOW / 2..(step + 1) * WINDOW / 2;
        assert_eq!(outside.send(&lanes, 1, numbers), None, "step {step}");
        lanes.swept([id(2, 0), id(7, 0)])
    }
    // it makes no step
    assert!(outside.send(&lanes, 1, 3 * WINDOW..6 * WINDOW).is_some() && outside.is_held());
    lanes.swept([id(2, 0), id(7, 0)]);
    assert!(!outside.is_held());
    assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(0)));
    lanes.acknowledged(0, &acked(id(2, 0)));
    assert_eq!(outside.send(&lanes, 1, 6 * WINDOW..9 * WINDOW), None)
}

#[test]
fn what_a_timer_has_caused_is_not_held() {
    let (lanes, _) = lanes();
    send(&lanes, &[id(2, 0)]);
    let clock = Outside { credits: crate::hive::admission::credits::Credits::of_timers(1), ..Outside::new() };
    assert!(clock.send(&lanes, 1, 1..3 * WINDOW).is_some());
    assert!(!clock.is_held())
}

#[test]
fn timers_and_postponed_messages_hold_no_cause() {
    let (lanes, _) = lanes();
    let office = at(&lanes, 0);
    let timer = Emit { at: Some(beehive_protocol::Time::ZERO), ..emit(id(2, 0)) };
    lanes.sent(office, &[timer]);
    // a stateless handler of another app may postpone a message in a run of the bee
    lanes.sent_or_postponed(office, &[emit(id(3, 1))], true);
    assert_eq!(Outside::new().send(&lanes, 1, 2..3 * WINDOW), None);
    assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(0)));
    assert_eq!(lanes.floor(LANE, AppId(3)), Some(Seq(1)));
    lanes.acknowledged(0, &acked(id(2, 0)));
    assert_eq!(lanes.floor(LANE, AppId(2)), Some(Seq(3 * WINDOW)));
}
