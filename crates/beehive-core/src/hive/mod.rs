//! One hive: apps, their bees, and the way of a message from where it is emitted to where it is handled.
//!
//! An emitting task maps a message, finds the bee of its cells in a local table, and puts it into that bee's mailbox. It
//! then runs, as one *turn*, the bees it has woken, and those that they wake, until nothing is left or its share is used
//! up. A bee that somebody else is running takes what comes when it is through with what it has.

pub(crate) mod admission;
pub(crate) mod bee;
mod builder;
pub(crate) mod consensus;
pub(crate) mod dispatch;
pub(crate) mod edge;
pub(crate) mod message;
pub(crate) mod observe;
pub(crate) mod ownership;
mod registration;
pub(crate) mod route;
pub(crate) mod run;
mod scheduling;
mod settings;
mod stop;
pub(crate) mod sweep;

pub use admission::lifecycle::Stopped;
pub use builder::{Builder, StartError};
pub use consensus::{journal, registry};
pub use dispatch::inner::Hive;
pub use edge::io_bee::{Busy, Io};
pub use edge::read::ReadError;
pub use edge::request::{Asked, RequestError};
pub use edge::supervise::Restart;
pub use message::batch::{Address, Shared};
pub use message::dead_letters::{DeadLetter, Provenance, ResendError};
pub use message::inbox::{Answers, Mail};
pub use message::reports::{
    AppStatus, BeeStatus, EmitStatus, HandlerStatus, PeerStatus, Status, StuckStatus,
};
pub use registration::Registrar;
pub use settings::{ReconfigureError, Reconfigured};

use crate::cell::HiveId;
use crate::hive::dispatch::turn::Place;
use crate::message::Message;

use crate::shape::Shape;
use crate::state::{DecodeError, guard};
use crate::time::Time;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

impl Hive {
    /// Settings of a hive, and its apps.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Its number in the cluster.
    pub fn id(&self) -> HiveId {
        self.0.id
    }

    /// Its time.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Emits a message from outside; waits while too many are under way.
    ///
    /// Messages that one task emits one after the other arrive in that order. An IO bee does it in batches and is faster.
    pub async fn emit<M: Message>(&self, message: M) {
        if self.0.is_over() {
            return tracing::debug!(message = M::NAME, "emitted after the hive has stopped; dropped");
        }
        tokio::select! {
            biased;
            () = self.0.room_for_one() => self.emit_with_credit(message),
            () = self.stopped() => tracing::debug!(message = M::NAME, "emitted after the hive has stopped; dropped"),
        }
    }

    /// As [`Hive::emit`], for threads that run no tasks.
    ///
    /// # Panics
    ///
    /// In a task, and in a handler, as [`Hive::request_blocking`] does.
    pub fn emit_blocking<M: Message>(&self, message: M) {
        edge::request::wait_for(self, |hive| async move { hive.emit(message).await });
    }

    /// Emits a message from outside if there is a credit for it.
    pub fn try_emit<M: Message>(&self, message: M) -> Result<(), Busy> {
        let room = self.0.link.as_ref().is_none_or(|link| link.own_lane.has_room_for_next());
        if !room || !self.0.credits.take_all(1) {
            return Err(Busy);
        }
        self.emit_with_credit(message);
        Ok(())
    }

    fn emit_with_credit<M: Message>(&self, message: M) {
        let inner = &self.0;
        if guard::in_transaction() {
            // a handler that should have used its context: its transaction must not see another one start
            let hive = self.clone();
            return inner.platform.spawn(Box::pin(async move { hive.emit_with_credit(message) }));
        }
        inner.route_from_outside(message, None, Place::Runners)
    }

    /// A message that was encoded, in log records or dead letters, in words (JSON); of what type it is, its name says.
    pub fn message_in_words(&self, name: &str, bytes: &[u8]) -> Result<String, DecodeError> {
        self.0.types.in_words(name, bytes)
    }

    /// The messages that some app handles, by name: what they are encoded like.
    pub fn message_shapes(&self) -> BTreeMap<String, Shape> {
        self.0.types.shapes()
    }

    /// The hands of a new IO bee, with the usual number of credits.
    pub fn io(&self) -> Io {
        self.io_with_credits(crate::limits::CREDITS_PER_IO_BEE)
    }

    /// The hands of a new IO bee that may have `credits` messages under way.
    pub fn io_with_credits(&self, credits: u32) -> Io {
        Io::new(self, credits)
    }

    /// Waits until the hive has been told to stop. Cancel-safe.
    pub async fn stopping(&self) {
        loop {
            let stopping = self.0.stopping.notified();
            if self.0.is_stopped() {
                return;
            }
            stopping.await
        }
    }

    /// Waits until it has stopped altogether. Cancel-safe.
    pub(crate) async fn over(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.is_over() {
                return;
            }
            ended.await
        }
    }

    pub(crate) async fn stopped(&self) {
        loop {
            let done = self.0.stop_done.notified();
            if self.0.is_stopped() && self.0.tasks.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await
        }
    }

    /// Completes when nothing is under way: all that came in from outside is handled, with everything that it caused, and
    /// IO bees have looked at what was sent to them. Timers that have not fired do not count. Cancel-safe.
    pub async fn idle(&self) {
        self.0.in_flight.done().await
    }
}
