//! The layout of lane ids, and the numbering of messages in a batch.
//!
//! ```text
//!            63                                  17 16            1 0
//!  bee      | bee id                               | app           |0|
//!  app      | all ones, minus the colony          | app           |0|    for messages of the app's stateless handlers
//!  passing  | random number                                    |0 1|    ends with the process
//!  lasting  | number that the sender keeps                     |1 1|    the sender continues it after a crash
//! ```

use crate::limits::REGISTRY_NUMBER_MAX;
use crate::{AppId, BeeId, CellHasher, CellId, ColonyId, HandlerId, LaneId, MessageId, Part, Seq};

impl LaneId {
    /// No lane. Messages without a lane are neither deduplicated nor resent.
    pub const NONE: LaneId = LaneId(0);

    /// Returns a bee's lane.
    #[inline]
    pub const fn of_bee(app: AppId, bee: BeeId) -> LaneId {
        LaneId((bee.0 << 17) | ((app.0 as u64) << 1))
    }

    /// Returns the lane for messages from an app's stateless handlers that are contained in a record. No bee uses this
    /// lane. The hive is alone, so that no other hive has the app's stateless handlers as well.
    #[inline]
    pub const fn of_app(app: AppId) -> LaneId {
        LaneId::of_app_in(app, ColonyId(0))
    }

    /// Returns the lane for messages from an app's stateless handlers that are contained in a record of this colony's log.
    /// The hives of a cluster have the same apps, but not the same colonies.
    #[inline]
    pub const fn of_app_in(app: AppId, colony: ColonyId) -> LaneId {
        LaneId::of_bee(app, BeeId((u64::MAX >> 17) - colony.0 as u64))
    }

    /// Returns the colony to whose log the lane of an app's stateless handlers belongs. Returns `None` for all other lanes,
    /// and if the hive is alone.
    pub const fn colony_of_app(self) -> Option<ColonyId> {
        if !self.is_of_app() {
            return None;
        }
        match (u64::MAX >> 17).checked_sub(self.0 >> 17) {
            Some(colony) if colony > 0 && colony <= u32::MAX as u64 => Some(ColonyId(colony as u32)),
            _ => None,
        }
    }

    /// Checks whether this is the lane of an app's stateless handlers.
    #[inline]
    pub const fn is_of_app(self) -> bool {
        !self.is_outside() && self.0 >> 17 > REGISTRY_NUMBER_MAX
    }

    /// Returns the app and the bee to which the lane belongs. Returns `None` for the lane of an app or of a sender outside
    /// the hive.
    pub const fn bee(self) -> Option<(AppId, BeeId)> {
        if self.is_outside() || self.0 == LaneId::NONE.0 || self.is_of_app() {
            return None;
        }
        Some((AppId((self.0 >> 1) as u16), BeeId(self.0 >> 17)))
    }

    /// Returns the app that sends on the lane. Returns `None` for the lane of a sender outside the hive.
    #[inline]
    pub const fn app(self) -> Option<AppId> {
        if self.is_outside() || self.0 == LaneId::NONE.0 {
            return None;
        }
        Some(AppId((self.0 >> 1) as u16))
    }

    /// Returns a lane for a sender outside the hive. The lane ends with the process. `number` distinguishes it from other
    /// lanes, and should be random.
    #[inline]
    pub const fn passing(number: u64) -> LaneId {
        LaneId((number << 2) | 1)
    }

    /// Returns a lane for an outside sender that continues its numbers after a crash. No other sender may use `number`.
    #[inline]
    pub const fn lasting(number: u64) -> LaneId {
        LaneId((number << 2) | 3)
    }

    /// Returns the number that the registry assigned for the lane of a bee, or of an outside sender whose lane ends with
    /// its process. Returns `None` for all other lanes, whose numbers the registry does not assign.
    pub const fn number(self) -> Option<u64> {
        let number = match (self.is_outside(), self.is_lasting()) {
            (true, true) => return None,
            (true, false) => self.0 >> 2,
            (false, _) => self.0 >> 17,
        };
        if number == 0 || self.is_of_app() { None } else { Some(number) }
    }

    /// Checks whether the sender is outside the hive, such as a socket or a client.
    #[inline]
    pub const fn is_outside(self) -> bool {
        self.0 & 1 == 1
    }

    /// Checks whether the sender may continue this lane after the hive has crashed. All other lanes of outside senders
    /// end with the process.
    #[inline]
    pub const fn is_lasting(self) -> bool {
        self.0 & 3 == 3
    }
}

/// A bit that distinguishes the sweep begun by a handler for a message from the messages that the handler derives from
/// it. The bits below it are those of the handler.
const SWEEP: u64 = 1 << 32;

/// Distinguishes the parts of visits from those of handlers.
const VISIT: u64 = 1 << 24;

impl Part {
    /// Returns the part of the messages that handler `handler` of app `app` derives from part `self` of a message. The
    /// result depends on nothing else, so it is the same every time the message is handled.
    ///
    /// The log also uses this part to record that the handler has consumed the message, because several handlers may
    /// consume one message.
    pub const fn derived(self, app: AppId, handler: HandlerId) -> Part {
        self.hashed(app, handler.0 as u64)
    }

    /// Same as [`Part::derived`], for a sweep begun by the handler.
    pub const fn sweep(self, app: AppId, handler: HandlerId) -> Part {
        self.hashed(app, handler.0 as u64 | SWEEP)
    }

    /// Returns the part for the visit to a cell by a sweep that has its own number.
    pub const fn of_visit(cell: CellId) -> Part {
        let mut hasher = CellHasher::new(VISIT);
        hasher.word(cell.0);
        Part::WHOLE.plus(hasher.finish())
    }

    const fn hashed(self, app: AppId, handler: u64) -> Part {
        let mut hasher = CellHasher::new(self.0);
        hasher.word((handler << 16) | app.0 as u64);
        Part(hasher.finish())
    }

    /// Returns the part that is greater by `count`. Never returns [`Part::WHOLE`].
    const fn plus(self, count: u64) -> Part {
        match self.0.wrapping_add(count) {
            0 => Part(1),
            part => Part(part),
        }
    }
}

/// The numbers of a batch's messages, by their index in the batch.
///
/// Either each message has its own number in the sender's lane, or all messages are parts of one number, because a
/// stateless handler derived them from one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// The sender's lane, or [`LaneId::NONE`] if the messages are never resent.
    pub lane: LaneId,
    seq: Seq,
    /// The part of the first message, or [`Part::WHOLE`] if each message has its own number.
    part: Part,
}

impl Numbers {
    /// The numbers of messages that are never resent.
    pub const NONE: Numbers = Numbers { lane: LaneId::NONE, seq: Seq::ZERO, part: Part::WHOLE };

    /// Returns the numbers of `lane`, starting at `seq`.
    pub const fn new(lane: LaneId, seq: Seq) -> Numbers {
        Numbers { lane, seq, part: Part::WHOLE }
    }

    /// Returns the numbers of messages derived from message `id` by handler `handler` of app `id.app`, without writing
    /// a record.
    pub const fn parts(id: MessageId, handler: HandlerId) -> Numbers {
        Numbers { lane: id.lane, seq: id.seq, part: id.part.derived(id.app, handler) }
    }

    /// Returns the number of the sweep that handler `handler` of app `id.app` begins for message `id`.
    pub const fn sweep(id: MessageId, handler: HandlerId) -> Numbers {
        Numbers { lane: id.lane, seq: id.seq, part: id.part.sweep(id.app, handler) }
    }

    /// Returns the number of a logged message.
    pub const fn again(id: MessageId) -> Numbers {
        Numbers { lane: id.lane, seq: id.seq, part: id.part }
    }

    /// Returns the number of the first message.
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// Returns the id of message `index` as handled by `app`.
    #[inline]
    pub const fn id(&self, index: u32, app: AppId) -> MessageId {
        if self.part.is_whole() {
            MessageId { lane: self.lane, seq: self.seq.plus(index as u64), part: Part::WHOLE, app }
        } else {
            MessageId { lane: self.lane, seq: self.seq, part: self.part.plus(index as u64), app }
        }
    }

    /// Splits off the numbers of the next `count` messages.
    pub fn take(&mut self, count: usize) -> Numbers {
        let taken = *self;

        if self.part.is_whole() {
            self.seq = self.seq.plus(count as u64)
        } else {
            self.part = self.part.plus(count as u64)
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_of_lanes_never_changes() {
        assert_eq!(LaneId::of_bee(AppId(3), BeeId(5)), LaneId(0xa_0006));
        assert_eq!(LaneId::passing(5), LaneId(0x15));
        assert_eq!(LaneId::lasting(5), LaneId(0x17));

        let (bee, passing, lasting) =
            (LaneId::of_bee(AppId(3), BeeId(5)), LaneId::passing(5), LaneId::lasting(5));
        assert_eq!([bee, passing, lasting].map(LaneId::is_outside), [false, true, true]);
        assert_eq!(LaneId::of_app(AppId(3)), LaneId(0xffff_ffff_fffe_0006));
        assert_eq!(
            [bee, LaneId::of_app(AppId(3)), passing, LaneId::NONE].map(LaneId::app),
            [Some(AppId(3)), Some(AppId(3)), None, None]
        );
        assert_eq!(
            [bee, LaneId::of_app(AppId(3)), passing].map(LaneId::bee),
            [Some((AppId(3), BeeId(5))), None, None]
        );
        assert_eq!([bee, passing, lasting].map(LaneId::is_lasting), [false, false, true]);
    }

    /// The lanes of the last bee and of the last colony's stateless handlers are neighbors.
    #[test]
    fn no_bee_has_the_lane_of_an_app() {
        let bee = LaneId::of_bee(AppId(3), BeeId(REGISTRY_NUMBER_MAX));
        assert_eq!((bee.bee(), bee.is_of_app()), (Some((AppId(3), BeeId(REGISTRY_NUMBER_MAX))), false));
        for colony in [0, 1, u32::MAX] {
            let lane = LaneId::of_app_in(AppId(3), ColonyId(colony));
            assert_eq!((lane.bee(), lane.is_of_app(), lane.app()), (None, true, Some(AppId(3))));
            assert!(lane.0 > bee.0)
        }
    }

    /// Logs contain parts. If the hash changed, a resent message would not be recognized and so would be handled twice.
    #[test]
    fn parts_never_change() {
        let (app, handler) = (AppId(2), HandlerId(3));
        let mut hasher = CellHasher::new(7);
        hasher.word(3 << 16 | 2);
        assert_eq!(Part(7).derived(app, handler), Part(hasher.finish()));
        assert_eq!(Part(7).derived(app, handler), Part(PINNED.0));
        assert_eq!(Part(7).sweep(app, handler), Part(PINNED.1));
        assert_eq!(Part::of_visit(CellId(5)), Part(PINNED.2));
    }

    const PINNED: (u64, u64, u64) =
        (4_729_842_359_602_287_595, 11_877_049_125_315_737_784, 4_303_430_267_569_541_675);

    #[test]
    fn a_batch_has_numbers_of_its_own_or_parts_of_one() {
        let lane = LaneId::passing(1);
        let mut numbers = Numbers::new(lane, Seq(10));
        let first = numbers.take(3);
        assert_eq!((first.id(2, AppId(0)).seq, numbers.seq()), (Seq(12), Seq(13)));

        let id = MessageId { lane, seq: Seq(4), part: Part::WHOLE, app: AppId(1) };
        let mut parts = Numbers::parts(id, HandlerId(0));
        let (a, b) = (parts.take(1).id(0, AppId(1)), parts.take(1).id(0, AppId(1)));
        assert_eq!((a.seq, b.seq), (Seq(4), Seq(4)));
        assert!(a.part != b.part && !a.part.is_whole() && !b.part.is_whole());
    }
}
