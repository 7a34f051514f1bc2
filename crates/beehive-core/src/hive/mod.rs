//! One hive: its apps, their bees, and the path of a message from its sender to its handler.
//!
//! An emitting task maps a message to cells, finds the bee that owns them in a local table, and puts the
//! message into that bee's mailbox. A thread then runs the scheduled bees, and any that these schedule, in
//! one *turn*, until none is left or the turn's budget is used up. If messages arrive for a running bee, the
//! thread already running it handles them.

pub(crate) mod admission;
mod app_logs;
pub(crate) mod bee;
mod builder;
pub(crate) mod consensus;
pub(crate) mod dispatch;
pub(crate) mod edge;
mod fingerprint;
mod following;
mod joining;
mod leading;
pub(crate) mod links;
pub(crate) mod message;
mod moving;
pub(crate) mod observe;
pub(crate) mod ownership;
mod registration;
pub(crate) mod route;
pub(crate) mod run;
mod scheduling;
mod settings;
mod start_error;
mod stop;
pub(crate) mod sweep;
#[cfg(feature = "testing")]
mod under_way;

pub use admission::lifecycle::Stopped;
pub use builder::Builder;
pub use consensus::{journal, registry};
pub use dispatch::inner::Hive;
pub use edge::io_bee::{Busy, Io};
pub use edge::read::ReadError;
pub use edge::request::Asked;
pub use edge::supervise::Restart;
pub use following::Followed;
pub use leading::LeadError;
pub use message::batch::{Address, Shared};
pub use message::dead_letters::{DeadLetter, Provenance, ResendError};
pub use message::inbox::{Answers, Mail};
pub use message::reports::{
    AppStatus, BeeStatus, EmitStatus, HandlerStatus, PeerStatus, Status, StuckStatus,
};
pub use moving::MoveError;
pub use registration::Registrar;
pub use settings::{ReconfigureError, Reconfigured};
pub use start_error::StartError;
#[cfg(feature = "testing")]
pub use under_way::UnderWay;

use crate::cell::HiveId;
use crate::hive::admission::entrances::Entrance;
use crate::hive::dispatch::turn::Place;
use crate::message::Message;

use crate::shape::Shape;
use crate::state::{DecodeError, guard};
use crate::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Hive {
    /// Returns a builder for a hive with its apps and settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the number of the hive in the cluster.
    pub fn id(&self) -> HiveId {
        self.0.id
    }

    /// Returns the current time on the hive's clock.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Emits a message from outside. Waits while no credit is free.
    ///
    /// Messages emitted by a task one after the other arrive in that order. An IO bee is faster, because it
    /// emits batches.
    pub async fn emit<M: Message>(&self, message: M) {
        if self.0.is_over() {
            return tracing::debug!(message = M::NAME, "message dropped: emitted after the hive has stopped");
        }
        let entrance = self.0.entrance::<M>();
        tokio::select! {
            biased;
            () = self.0.room_at(&entrance) => self.emit_with_credit(message, entrance),
            () = self.stopped() => tracing::debug!(message = M::NAME, "message dropped: emitted after the hive has stopped"),
        }
    }

    /// Like [`Hive::emit`], for threads that run no tasks.
    ///
    /// # Panics
    ///
    /// Panics in a task and in a handler, as [`Hive::request_blocking`] does.
    #[track_caller]
    pub fn emit_blocking<M: Message>(&self, message: M) {
        edge::request::wait_for(self, |hive| async move { hive.emit(message).await });
    }

    /// Emits a message from outside if a credit is free. Otherwise returns [`Busy`].
    pub fn try_emit<M: Message>(&self, message: M) -> Result<(), Busy> {
        let entrance = self.0.entrance::<M>();
        if !entrance.take_one(|| self.0.platform.random()) {
            return Err(Busy);
        }
        self.emit_with_credit(message, entrance);
        Ok(())
    }

    /// Routes a message for which the caller has taken a credit of its entrance.
    fn emit_with_credit<M: Message>(&self, message: M, entrance: Arc<Entrance>) {
        let inner = &self.0;
        if guard::in_transaction() {
            // a handler called this instead of emitting through its context. Another task emits the message,
            // because a transaction must not run inside another transaction
            let hive = self.clone();
            return inner.platform.spawn(Box::pin(async move { hive.emit_with_credit(message, entrance) }));
        }

        inner.route_from_outside(message, &entrance, None, Place::Runners)
    }

    /// Returns an encoded message from a log record or a dead letter as JSON. `name` is the name of its
    /// type.
    pub fn message_in_words(&self, name: &str, bytes: &[u8]) -> Result<String, DecodeError> {
        self.0.types.in_words(name, bytes)
    }

    /// Returns the encoding shapes of all message types handled by at least one app, by message name.
    pub fn message_shapes(&self) -> BTreeMap<String, Shape> {
        self.0.types.shapes()
    }

    /// Creates an IO bee with the default number of credits.
    pub fn io(&self) -> Io {
        self.io_with_credits(crate::limits::CREDITS_PER_IO_BEE)
    }

    /// Creates an IO bee that may have `credits` messages in flight.
    pub fn io_with_credits(&self, credits: u32) -> Io {
        Io::new(self, credits)
    }

    /// Waits until the hive begins to stop. Cancel-safe.
    pub async fn stopping(&self) {
        loop {
            let stopping = self.0.stopping.notified();
            if self.0.is_stopped() {
                return;
            }
            stopping.await
        }
    }

    /// Waits until the hive is over, that is, until no further handler begins. Cancel-safe.
    pub(crate) async fn over(&self) {
        self.0.over().await
    }

    /// Waits until the hive has begun to stop and no IO bee is left. Cancel-safe.
    pub(crate) async fn stopped(&self) {
        loop {
            let done = self.0.stop_done.notified();
            if self.0.is_stopped() && self.0.tasks.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await
        }
    }

    /// Waits until no work is in flight: all messages from outside and everything caused by them have been
    /// handled, and IO bees have read their mail. Timers that have not yet fired do not count. Cancel-safe.
    pub async fn idle(&self) {
        self.0.in_flight.done().await
    }
}
