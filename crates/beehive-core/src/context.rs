//! `Ctx`: the platform services available to a handler. All effects of its methods are part of the handler's
//! transaction.

use crate::cell::HiveId;
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::message::batch::Address;
use crate::key::CellHasher;
use crate::limits;
use crate::message::Message;
use crate::time::Time;
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// Number of effects requested by handlers on this thread; it wraps around.
    static EFFECTS: Cell<u32> = const { Cell::new(0) };
}

/// Returns the number of effects requested by handlers on this thread. An `attempt!` compares this number with an
/// earlier one to detect effects that it cannot roll back.
pub(crate) fn effects() -> u32 {
    EFFECTS.get()
}

/// Counts a message, a timer or a postponement.
#[inline(always)]
fn count_effect() {
    EFFECTS.set(EFFECTS.get().wrapping_add(1))
}

/// A transaction's context.
///
/// Messages and timers emitted through the context take effect only when the transaction commits.
pub struct Ctx {
    pub(crate) now: Time,
    pub(crate) origin: HiveId,
    pub(crate) sender: Address,
    /// Seed of [`Ctx::rng`]: a function of the message, so that a re-run draws the same numbers.
    pub(crate) chance: u64,
    pub(crate) out: Outputs,
    /// Time at which the postponed message is handled again; `None` if the handler has not postponed it.
    pub(crate) postponed: Option<Time>,
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ctx { now, origin, sender, .. } = self;
        f.debug_struct("Ctx")
            .field("now", now)
            .field("origin", origin)
            .field("sender", sender)
            .finish_non_exhaustive()
    }
}

impl Ctx {
    pub(crate) fn new(out: Outputs) -> Ctx {
        Ctx { now: Time::ZERO, origin: HiveId(0), sender: Address::Outside, chance: 0, out, postponed: None }
    }

    /// Sends `message` to every app that handles it. The map of each handler decides which cells receive it.
    #[inline]
    pub fn emit<M: Message>(&mut self, message: M) {
        count_effect();
        self.out.emit(message)
    }

    /// Sends `message` to an IO bee or to one app. Does nothing if the receiver no longer exists.
    #[inline]
    pub fn send<M: Message>(&mut self, to: Address, message: M) {
        count_effect();
        self.out.send(to, message)
    }

    /// Delivers `message` to this app after `delay`.
    pub fn after<M: Message>(&mut self, delay: Duration, message: M) {
        count_effect();
        self.out.after(self.now + delay, message)
    }

    /// Postpones the message: the same handler handles it again after `delay`, and answers it then. The value returned
    /// now is ignored unless it is an error, in which case the error is the answer, and the message is not handled
    /// again.
    ///
    /// The current transaction commits, so its changes and the messages it emitted are kept. A postponed message does
    /// not delay later ones, so it loses its place in the order. If a requester waits for the answer, its deadline does
    /// not change. With a journal, the log keeps the message until it has been handled completely; after a crash, the
    /// message is handled again immediately, without waiting for the rest of the delay. A delay below
    /// [`limits::POSTPONE_MIN`] is raised to that value.
    ///
    /// A tick (`#[every]`) cannot be postponed, because the next tick comes anyway. A handler that tries to postpone
    /// one fails with an error.
    ///
    /// If a handler calls this more than once, the last call counts.
    pub fn postpone(&mut self, delay: Duration) {
        count_effect();
        if self.postponed.is_some() || self.out.take_timer() {
            self.postponed = Some(self.now + delay.max(limits::POSTPONE_MIN))
        }
    }

    /// Returns the current time. It is the same for all messages in a batch, and never earlier than in a previous
    /// transaction on the same cell.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the hive at which the chain of messages entered from outside. This is a property of the
    /// message, so it may be part of a key.
    #[inline]
    pub fn origin(&self) -> HiveId {
        self.origin
    }

    /// Returns the sender of the message: an IO bee or an app.
    #[inline]
    pub fn sender(&self) -> Address {
        self.sender
    }

    /// Returns a random number generator whose seed is a function of the message, so a re-run of the handler
    /// draws the same numbers.
    pub fn rng(&mut self) -> Rng<'_> {
        Rng(&mut self.chance)
    }
}

/// Deterministic random number generator of one transaction; see [`Ctx::rng`].
#[derive(Debug)]
pub struct Rng<'a>(&'a mut u64);

impl Rng<'_> {
    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let mut hasher = CellHasher::new(*self.0);
        hasher.word(0x52_4e_47);
        *self.0 = hasher.finish();
        *self.0
    }

    /// Returns a random number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}
