//! `Ctx`: what a handler may ask of the platform. Everything it does through it is part of its transaction.

use crate::cell::HiveId;
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::message::batch::Address;
use crate::key::CellHasher;
use crate::limits;
use crate::message::Message;
use crate::time::Time;
use std::time::Duration;

/// The context of a transaction.
///
/// What is emitted, sent or asked for through it leaves only when the transaction commits.
pub struct Ctx {
    pub(crate) now: Time,
    pub(crate) origin: HiveId,
    pub(crate) sender: Address,
    /// What chance is derived from: the same for the same message.
    pub(crate) chance: u64,
    pub(crate) out: Outputs,
    /// When the message is to be handled again.
    pub(crate) postponed: Option<Time>,
}

impl Ctx {
    pub(crate) fn new(out: Outputs) -> Ctx {
        Ctx { now: Time::ZERO, origin: HiveId(0), sender: Address::Outside, chance: 0, out, postponed: None }
    }

    /// Sends `message` to every app that handles it; which of its cells, its own map says.
    #[inline]
    pub fn emit<M: Message>(&mut self, message: M) {
        self.out.emit(message)
    }

    /// Sends `message` to an IO bee, or to one app. Nothing happens if it is no more.
    #[inline]
    pub fn send<M: Message>(&mut self, to: Address, message: M) {
        self.out.send(to, message)
    }

    /// Handles `message` in this app after `delay`.
    pub fn after<M: Message>(&mut self, delay: Duration, message: M) {
        self.out.after(self.now + delay, message)
    }

    /// Puts the message off: it is handled again, by this very handler, after `delay`, and answered then. What the handler
    /// returns now is no answer, unless it is an error, which ends the matter as always.
    ///
    /// The transaction commits, and what it changed and emitted stays. Messages that come meanwhile are not held up: a
    /// message that is put off gives up its place in their order. Nobody who waits for the answer waits for longer because
    /// of it. Where there is a log, it remembers the message until it is handled to its end; after a crash the delay is
    /// over at once. A delay below [`limits::POSTPONE_MIN`] is made that long.
    ///
    /// A tick (`#[every]`) cannot be put off, as the next one comes by itself: its handler fails that says so.
    ///
    /// Said twice, the later word counts.
    pub fn postpone(&mut self, delay: Duration) {
        if self.postponed.is_some() || self.out.take_timer() {
            self.postponed = Some(self.now + delay.max(limits::POSTPONE_MIN))
        }
    }

    /// The time: the same for all messages of a batch, and never before that of an earlier transaction of the cell.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The hive where the chain of messages came in from outside. A property of the message, so it may be a key.
    #[inline]
    pub fn origin(&self) -> HiveId {
        self.origin
    }

    /// Who sent the message: an IO bee, or an app.
    #[inline]
    pub fn sender(&self) -> Address {
        self.sender
    }

    /// Chance: a function of the message, so that running it again gives the same.
    pub fn rng(&mut self) -> Rng<'_> {
        Rng(&mut self.chance)
    }
}

/// A source of chance that is the same whenever the message is run again.
pub struct Rng<'a>(&'a mut u64);

impl Rng<'_> {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let mut hasher = CellHasher::new(*self.0);
        hasher.word(0x52_4e_47);
        *self.0 = hasher.finish();
        *self.0
    }

    /// A number below `bound`; zero if that is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}
