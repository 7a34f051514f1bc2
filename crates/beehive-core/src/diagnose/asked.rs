//! Rejects a handler that asks another app and waits for the answer. It would hold its cells and its thread while it
//! waits, and the other app may need both. [`Ctx`] therefore has no such method, and the compiler error names the
//! alternatives.

use crate::context::Ctx;
use crate::diagnose::fallbacks::unbuildable;
use crate::message::Message;

/// A message whose answer a handler can wait for. No message implements this trait.
#[diagnostic::on_unimplemented(
    message = "a handler cannot wait for the answer of another app",
    label = "emit it: `ctx.emit(message)`",
    note = "the other app replies with a message; give it all fields that the rest of the work needs, and handle it in a second handler of this app",
    note = "if a requester waits for the outcome: `ctx.postpone(..)` (beehive::guide::recipes::waiting_requests)",
    note = "more: beehive::guide::errors::handler_waits"
)]
pub trait IsAnsweredAtOnce {
    /// The answer. It is a parameter of the method, so the compiler reports no further error about its use.
    type Answer;
}

impl Ctx {
    #[doc(hidden)]
    pub fn request<M, Answer>(&self, _: M) -> Answer
    where
        M: Message + IsAnsweredAtOnce<Answer = Answer>,
    {
        unbuildable!()
    }

    #[doc(hidden)]
    pub fn ask<M, Answer>(&self, _: M) -> Answer
    where
        M: Message + IsAnsweredAtOnce<Answer = Answer>,
    {
        unbuildable!()
    }
}
