//! How lane ids are laid out, and how the messages of a batch are numbered.
//!
//! ```text
//!            63                                  17 16            1 0
//!  bee      | bee id                               | app           |0|
//!  passing  | random number                                    |0 1|    ends with the process
//!  lasting  | number that the sender keeps                     |1 1|    its sender goes on with it after a crash
//! ```

use crate::{AppId, BeeId, CellHasher, HandlerId, LaneId, MessageId, Part, Seq};

impl LaneId {
    /// No lane: its messages are not remembered, and nobody sends them again.
    pub const NONE: LaneId = LaneId(0);

    /// The lane of a bee.
    #[inline]
    pub const fn of_bee(app: AppId, bee: BeeId) -> LaneId {
        LaneId((bee.0 << 17) | ((app.0 as u64) << 1))
    }

    /// The lane of a sender outside that ends with the process. `number` distinguishes it from others; take it at random.
    #[inline]
    pub const fn passing(number: u64) -> LaneId {
        LaneId((number << 2) | 1)
    }

    /// The lane of a sender outside that continues its numbers after a crash. `number` is the sender's own.
    #[inline]
    pub const fn lasting(number: u64) -> LaneId {
        LaneId((number << 2) | 3)
    }

    /// Whether the sender is outside: a socket or a client, and not a bee.
    #[inline]
    pub const fn is_outside(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether the sender may continue this lane after a crash of the hive. The other lanes of senders outside end with
    /// the process.
    #[inline]
    pub const fn is_lasting(self) -> bool {
        self.0 & 3 == 3
    }
}

/// Distinguishes what a handler derives from a message from a sweep that it begins because of the same message.
const SWEEP: u64 = 1 << 24;

impl Part {
    /// The part of what handler `handler` of app `app` derives from part `self` of a message. It depends on nothing
    /// else, so it is the same each time that the message is handled.
    ///
    /// The log remembers under the same part that this handler has consumed the message: several handlers may consume one.
    pub const fn derived(self, app: AppId, handler: HandlerId) -> Part {
        self.hashed(app, handler.0 as u64)
    }

    /// As [`Part::derived`], for a sweep that the handler begins.
    pub const fn sweep(self, app: AppId, handler: HandlerId) -> Part {
        self.hashed(app, handler.0 as u64 | SWEEP)
    }

    const fn hashed(self, app: AppId, handler: u64) -> Part {
        let mut hasher = CellHasher::new(self.0);
        hasher.word((handler << 16) | app.0 as u64);
        Part(hasher.finish())
    }

    /// The part `count` further on; never [`Part::WHOLE`].
    const fn plus(self, count: u64) -> Part {
        match self.0.wrapping_add(count) {
            0 => Part(1),
            part => Part(part),
        }
    }
}

/// The numbers of a batch's messages, by their index in the batch.
///
/// Either each message has a number of its own in the sender's lane, or all of them are parts of one number: those that a
/// stateless handler derived from one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// The sender's lane; [`LaneId::NONE`] if nobody would send the messages again.
    pub lane: LaneId,
    seq: Seq,
    /// The part of the first message; [`Part::WHOLE`] if each message has a number of its own.
    part: Part,
}

impl Numbers {
    /// The numbers of messages that nobody would send again.
    pub const NONE: Numbers = Numbers { lane: LaneId::NONE, seq: Seq::ZERO, part: Part::WHOLE };

    /// The numbers of `lane` from `seq` on.
    pub const fn new(lane: LaneId, seq: Seq) -> Numbers {
        Numbers { lane, seq, part: Part::WHOLE }
    }

    /// The numbers of what handler `handler` of app `id.app` derives from the message `id` without writing a record.
    pub const fn parts(id: MessageId, handler: HandlerId) -> Numbers {
        Numbers { lane: id.lane, seq: id.seq, part: id.part.derived(id.app, handler) }
    }

    /// The number of the sweep that handler `handler` of app `id.app` begins because of the message `id`.
    pub const fn sweep(id: MessageId, handler: HandlerId) -> Numbers {
        Numbers { lane: id.lane, seq: id.seq, part: id.part.sweep(id.app, handler) }
    }

    /// The number of a message that a log remembers.
    pub const fn again(id: MessageId) -> Numbers {
        Numbers { lane: id.lane, seq: id.seq, part: id.part }
    }

    /// The number of the first message.
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// The id of message `index`, as app `app` handles it.
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
        assert_eq!([bee, passing, lasting].map(LaneId::is_lasting), [false, false, true]);
    }

    /// Parts are in logs: another hash would handle a message twice.
    #[test]
    fn parts_never_change() {
        let (app, handler) = (AppId(2), HandlerId(3));
        let mut hasher = CellHasher::new(7);
        hasher.word(3 << 16 | 2);
        assert_eq!(Part(7).derived(app, handler), Part(hasher.finish()));
        assert_eq!(Part(7).derived(app, handler), Part(PINNED.0));
        assert_eq!(Part(7).sweep(app, handler), Part(PINNED.1));
    }

    const PINNED: (u64, u64) = (4_729_842_359_602_287_595, 17_699_929_147_938_395_581);

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
