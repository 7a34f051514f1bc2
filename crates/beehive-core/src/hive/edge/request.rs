//! Questions from outside: every one ends in exactly one way.

use crate::hive::admission::credits::Cause;
use crate::hive::admission::deferred_wakes;
use crate::hive::dispatch::inner::Hive;
use crate::hive::dispatch::turn::Place;
use crate::hive::message::batch::{AnswerRun, AnswerSink, Batch};
use crate::message::{Error, Message};
use crate::panics;
use crate::state::guard;
use parking_lot::Mutex;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The handler answered with an error. Nothing was changed.
    Handler(Error),
    /// No app that handles the message answered it. Handlers that only observe may have run.
    NoAnswer {
        /// The message's name.
        message: &'static str,
    },
    /// The answer did not come in time. Whether the message was handled is not known.
    Timeout {
        /// How long it was waited for.
        after: Duration,
    },
    /// The hive has stopped. If the message was handed over before, whether it was handled is not known.
    Unavailable,
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestError::Handler(error) => write!(f, "{error}"),
            RequestError::NoAnswer { message } => {
                write!(f, "nobody answered `{message}`: no handler takes it, or none returned an answer")
            }
            RequestError::Timeout { after } => {
                write!(f, "no answer within {after:?}; whether the message was handled is not known")
            }
            RequestError::Unavailable => write!(f, "the hive has stopped"),
        }
    }
}
impl std::error::Error for RequestError {}

type Outcome<M> = Result<<M as Message>::Reply, RequestError>;

struct Waiting<M: Message> {
    expected: Option<u32>,
    seen: u32,
    failed: Option<Error>,
    sender: Option<oneshot::Sender<Outcome<M>>>,
}

/// One question that waits for its answer.
struct Question<M: Message>(Mutex<Waiting<M>>);

impl<M: Message> Question<M> {
    fn finish(waiting: &mut Waiting<M>, outcome: Outcome<M>) {
        if let Some(sender) = waiting.sender.take() {
            deferred_wakes::call(move || {
                if let Err(outcome) = sender.send(outcome) {
                    // nobody waits any more: timed out
                    panics::harmless(|| drop(outcome));
                }
            })
        }
    }

    /// All who handle it have reported.
    fn settle(waiting: &mut Waiting<M>) {
        if waiting.expected != Some(waiting.seen) {
            return;
        }
        let outcome = match waiting.failed.take() {
            Some(error) => Err(RequestError::Handler(error)),
            // "handled and committed" is the answer of a message whose answer is `()`
            None => match (Box::new(()) as Box<dyn Any>).downcast::<M::Reply>() {
                Ok(unit) if waiting.seen > 0 => Ok(*unit),
                _ => Err(RequestError::NoAnswer { message: M::NAME }),
            },
        };
        Self::finish(waiting, outcome)
    }
}

impl<M: Message> AnswerSink<M> for Question<M> {
    fn expect(&self, _: &Batch<M>, _: u32, handlers: u32) {
        let mut waiting = self.0.lock();
        waiting.expected = Some(handlers);
        Self::settle(&mut waiting)
    }

    fn answers(&self, answers: AnswerRun<M>, _: &Option<Arc<Cause>>) {
        let mut waiting = self.0.lock();
        for answer in answers {
            Self::finish(&mut waiting, answer.map_err(RequestError::Handler))
        }
    }

    fn observed(&self, _: &Batch<M>, _: u32, result: Result<(), Error>) {
        let mut waiting = self.0.lock();
        waiting.seen += 1;
        if let Err(error) = result {
            waiting.failed.get_or_insert(error);
        }
        Self::settle(&mut waiting)
    }

    fn unanswered(&self, _: &Batch<M>, _: u32) {
        Self::finish(&mut self.0.lock(), Err(RequestError::NoAnswer { message: M::NAME }))
    }

    fn counts(&self) -> bool {
        true
    }
}

/// How long an answer is waited for, unless something else is said.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// Has the hive's runtime do something, and waits for it. Nothing if that is shut down.
pub(crate) fn wait_for<T, F>(hive: &Hive, ask: impl FnOnce(Hive) -> F) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    assert!(!guard::in_transaction(), "a handler cannot wait for an answer; emit the question as a message");
    may_block();
    let (sender, receiver) = oneshot::channel();
    let asked = ask(hive.clone());
    hive.inner().platform.spawn(Box::pin(async move {
        // nobody waits any more only if the thread is gone
        let _ = sender.send(asked.await);
    }));
    receiver.blocking_recv().ok()
}

/// Panics where a thread must not be held, before anything has been done.
pub(crate) fn may_block() {
    // whoever waits for what has come already does not wait; but the runtime looks whether it may
    let (sender, receiver) = oneshot::channel();
    let _ = sender.send(());
    let _ = receiver.blocking_recv();
}

/// A question that is asked when it is first polled, and its answer `R` in time.
///
/// A type of its own, so that what is no message is reported once, where it is handed over: that of an `async fn` is reported
/// again where it is built, and where it is awaited.
#[must_use = "a question is asked when it is awaited"]
pub struct Asked<'a, R>(Pin<Box<dyn Future<Output = Result<R, RequestError>> + Send + 'a>>);

impl<R> Future for Asked<'_, R> {
    type Output = Result<R, RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<R> std::fmt::Debug for Asked<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asked(..)")
    }
}

impl Hive {
    /// Asks a question and waits for its answer, five seconds at most.
    ///
    /// Cancel-safe in the sense that nothing breaks; whether a message that was handed over is handled is then not known.
    pub fn request<M: Message>(&self, message: M) -> Asked<'_, M::Reply> {
        self.request_within(REQUEST_LIMIT, message)
    }

    /// As [`Hive::request`], for threads that run no tasks: a thread of one's own, or one that
    /// `tokio::task::spawn_blocking` has.
    ///
    /// # Panics
    ///
    /// In a task, which would hold its worker until the answer is there, and for ever if that is the worker that has to
    /// give it: `request(..).await` is the way there. And in a handler, which would hold up its own cells: a question to
    /// another app is a message out, and another one back.
    pub fn request_blocking<M: Message>(&self, message: M) -> Result<M::Reply, RequestError> {
        self.request_blocking_within(REQUEST_LIMIT, message)
    }

    /// As [`Hive::request_blocking`], with another limit of time. Waiting for a credit counts. It is the hive's runtime
    /// that looks at the time: who does not run it waits for ever.
    pub fn request_blocking_within<M: Message>(
        &self,
        limit: Duration,
        message: M,
    ) -> Result<M::Reply, RequestError> {
        wait_for(self, |hive| async move { hive.request_within(limit, message).await })
            .unwrap_or(Err(RequestError::Unavailable))
    }

    /// As [`Hive::request`], with another limit of time. Waiting for a credit counts.
    pub fn request_within<M: Message>(&self, limit: Duration, message: M) -> Asked<'_, M::Reply> {
        Asked(Box::pin(self.answer_of(limit, message)))
    }

    async fn answer_of<M: Message>(&self, limit: Duration, message: M) -> Result<M::Reply, RequestError> {
        let inner = self.inner();
        let late = inner.platform.sleep(limit);
        let answer = async {
            if inner.is_stopped() {
                return Err(RequestError::Unavailable);
            }
            inner.room_for_one().await;
            let (sender, receiver) = oneshot::channel();
            let waiting = Waiting { expected: None, seen: 0, failed: None, sender: Some(sender) };
            // who asks waits: its worker is free for the answer, and no other thread has to be woken
            let place = if inner.platform.spawns_here() { Place::WorkerIfQuick } else { Place::Runners };
            // the question lives on where the message goes, and nowhere else
            inner.route_from_outside(message, Some(Arc::new(Question(Mutex::new(waiting)))), place);
            tokio::select! {
                answer = receiver => answer.unwrap_or(Err(RequestError::Unavailable)),
                () = self.stopped() => Err(RequestError::Unavailable),
            }
        };
        tokio::select! {
            biased;
            answer = answer => answer,
            () = late => Err(RequestError::Timeout { after: limit }),
        }
    }
}
