//! Lanes: the number line of a sender, and how its ids are laid out.

use crate::{BeeId, CellHasher, Fact};

/// The lane of a bee. Even, as those of the outside are odd.
pub fn lane_of(app: u16, bee: BeeId) -> u64 {
    (bee.0 << 17) | ((app as u64) << 1)
}

/// The lane of somebody outside who goes on with it after a crash.
pub fn lasting(number: u64) -> u64 {
    (number << 2) | 3
}

/// Whether a lane may be gone on with by the next life of the hive. The others end with the process.
pub fn is_lasting(lane: u64) -> bool {
    lane & 3 == 3
}

/// Whether it is the lane of somebody outside.
pub fn is_outside(lane: u64) -> bool {
    lane & 1 == 1
}

/// How something that was consumed without a bee is remembered: several handlers may consume the same message.
pub fn part_of(part: u64, app: u16, handler: usize) -> u64 {
    let mut hasher = CellHasher::new(part);
    hasher.word(((handler as u64) << 16) | app as u64);
    hasher.finish()
}

/// Where the numbers of a batch's messages come from. A number is either a new one of the lane, or a part of the number
/// of the message from which it was made without a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// Zero: nobody would send them again.
    pub lane: u64,
    seq: u64,
    /// Zero: each has a number of its own.
    part: u64,
}

impl Numbers {
    /// Of what nobody would send again.
    pub const NONE: Numbers = Numbers { lane: 0, seq: 0, part: 0 };

    /// The numbers of `lane` from `seq` on.
    pub fn new(lane: u64, seq: u64) -> Numbers {
        Numbers { lane, seq, part: 0 }
    }

    /// The numbers of what handler `handler` of app `app` makes of the message `fact` when no record says so: the same
    /// whenever it is run.
    pub fn parts(fact: Fact, handler: usize) -> Numbers {
        Numbers { lane: fact.lane, seq: fact.seq, part: part_of(fact.part, fact.app, handler) }
    }

    /// Of one message that a log remembers.
    pub fn again(fact: Fact) -> Numbers {
        Numbers { lane: fact.lane, seq: fact.seq, part: fact.part }
    }

    /// The number of the first message.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What identifies message `index` for one app.
    pub fn fact(&self, index: u32, app: u16) -> Fact {
        match self.part {
            0 => Fact { lane: self.lane, seq: self.seq + index as u64, part: 0, app },
            part => {
                let part = part.wrapping_add(index as u64).max(1);
                Fact { lane: self.lane, seq: self.seq, part, app }
            }
        }
    }

    /// The next `count` numbers.
    pub fn take(&mut self, count: usize) -> Numbers {
        let taken = *self;
        match self.part {
            0 => self.seq += count as u64,
            part => self.part = part.wrapping_add(count as u64).max(1),
        }
        taken
    }
}
