//! Requests from outside. Every request ends exactly once: with an answer, an error or a timeout.

use crate::failure::RequestError;
use crate::hive::admission::credits::Cause;
use crate::hive::admission::deferred_wakes;
use crate::hive::dispatch::inner::Hive;
use crate::hive::dispatch::turn::Place;
use crate::hive::message::batch::{AnswerRun, AnswerSink, Answered, Batch, Observed};
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

/// State of a request in flight.
struct RequestState<M: Message> {
    /// Number of handlers that will report. `None` until the message is routed, or if no app handles it.
    expected: Option<u32>,
    /// Number of handlers that have reported success or failure.
    seen: u32,
    /// The first error that was reported.
    failed: Option<RequestError<M::Error>>,
    /// The channel to the requester; `None` once the outcome has been sent.
    sender: Option<oneshot::Sender<Answered<M>>>,
}

/// A request in flight. Only the batch holds it, so it is dropped together with the message.
struct PendingRequest<M: Message>(Mutex<RequestState<M>>);

impl<M: Message> PendingRequest<M> {
    /// Sends the outcome, unless an outcome has already been sent.
    fn finish(state: &mut RequestState<M>, outcome: Answered<M>) {
        if let Some(sender) = state.sender.take() {
            deferred_wakes::call(move || {
                if let Err(outcome) = sender.send(outcome) {
                    // the requester has timed out
                    panics::harmless(|| drop(outcome));
                }
            })
        }
    }

    /// Ends the request once as many handlers as expected have reported, unless an outcome has already been
    /// sent.
    fn settle(state: &mut RequestState<M>) {
        if state.expected != Some(state.seen) {
            return;
        }

        let outcome = match state.failed.take() {
            Some(error) => Err(error),
            // if the answer type is `()`, no handler produces the answer, which only says that the message
            // was handled and committed
            None => match (Box::new(()) as Box<dyn Any>).downcast::<M::Reply>() {
                Ok(unit) if state.seen > 0 => Ok(*unit),
                // the maps of all handlers drop the message
                Ok(_) => Err(RequestError::NoAnswer { message: M::NAME }),
                // an answer chain would have ended the request by itself, so this message has only observers
                Err(_) => Err(RequestError::NoApp { message: M::NAME }),
            },
        };
        Self::finish(state, outcome)
    }
}

impl<M: Message> AnswerSink<M> for PendingRequest<M> {
    fn expect(&self, _: &Batch<M>, _: u32, handlers: Option<u32>) {
        let mut state = self.0.lock();
        match handlers {
            Some(_) => {
                state.expected = handlers;
                Self::settle(&mut state)
            }
            None => Self::finish(&mut state, Err(RequestError::NoApp { message: M::NAME })),
        }
    }

    fn answers(&self, answers: AnswerRun<M>, _: &Option<Arc<Cause>>) {
        let mut state = self.0.lock();
        for answer in answers {
            Self::finish(&mut state, answer)
        }
    }

    fn observed(&self, _: &Batch<M>, _: u32, result: Observed<M>) {
        let mut state = self.0.lock();
        state.seen += 1;
        match result {
            Err(error) if state.failed.is_none() => state.failed = Some(error),
            // dropping the error runs the app's code, which may panic
            result => drop(panics::harmless(|| drop(result))),
        }
        Self::settle(&mut state)
    }

    fn unanswered(&self, _: &Batch<M>, _: u32) {
        Self::finish(&mut self.0.lock(), Err(RequestError::NoAnswer { message: M::NAME }))
    }

    fn counts(&self) -> bool {
        true
    }
}

/// Default timeout of a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// Runs a future on the hive's runtime and blocks this thread until the future completes. Returns `None` if
/// that runtime has been shut down.
#[track_caller]
pub(crate) fn wait_for<T, F>(hive: &Hive, ask: impl FnOnce(Hive) -> F) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    assert!(!guard::in_transaction(), "a handler cannot wait for an answer; emit the request as a message");

    may_block();
    let (sender, receiver) = oneshot::channel();
    let asked = ask(hive.clone());

    hive.inner().platform.spawn(Box::pin(async move {
        // this fails only if the waiting thread no longer exists
        let _ = sender.send(asked.await);
    }));

    receiver.blocking_recv().ok()
}

/// Panics if this thread must not be blocked. Callers call this first, so that the panic interrupts nothing.
#[track_caller]
pub(crate) fn may_block() {
    // the value has already been sent, so this does not block, but tokio still checks whether the thread may
    // block
    let (sender, receiver) = oneshot::channel();
    let _ = sender.send(());
    let _ = receiver.blocking_recv();
}

/// A request, sent when the future is first polled. The future returns the answer `R`, or the handler's error
/// `E`.
///
/// This is a named type rather than the future of an `async fn`, because a named type gives better compiler
/// errors. If the argument is not a message, the compiler reports that once, at the call. With an `async fn`,
/// it would report it again where the future is created and where it is awaited.
#[must_use = "a request is sent only when it is awaited"]
pub struct Asked<'a, R, E = Error>(Pin<Box<dyn Future<Output = Result<R, RequestError<E>>> + Send + 'a>>);

impl<R, E> Future for Asked<'_, R, E> {
    type Output = Result<R, RequestError<E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl<R, E> std::fmt::Debug for Asked<'_, R, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asked(..)")
    }
}

impl Hive {
    /// Sends a request and waits for its answer, for at most five seconds.
    ///
    /// Dropping the future is safe, but a message that has already been sent may still be handled.
    pub fn request<M: Message>(&self, message: M) -> Asked<'_, M::Reply, M::Error> {
        self.request_within(REQUEST_LIMIT, message)
    }

    /// Like [`Hive::request`], for threads that run no tasks: threads started by the program itself, and
    /// threads of `tokio::task::spawn_blocking`.
    ///
    /// # Panics
    ///
    /// Panics in a task, because the call would block the task's worker, and would block it forever if the
    /// same worker had to produce the answer. Use `request(..).await` in a task. Also panics in a handler,
    /// because the call would block the handler's own cells. Emit a message to the other app instead, and let
    /// that app answer with another message.
    #[track_caller]
    pub fn request_blocking<M: Message>(&self, message: M) -> Result<M::Reply, RequestError<M::Error>> {
        self.request_blocking_within(REQUEST_LIMIT, message)
    }

    /// Like [`Hive::request_blocking`], with another timeout, which includes the wait for a credit. The
    /// hive's runtime measures the time. If nothing drives that runtime, the call never returns.
    #[track_caller]
    pub fn request_blocking_within<M: Message>(
        &self,
        limit: Duration,
        message: M,
    ) -> Result<M::Reply, RequestError<M::Error>> {
        wait_for(self, |hive| async move { hive.request_within(limit, message).await })
            .unwrap_or(Err(RequestError::Unavailable))
    }

    /// Like [`Hive::request`], with another timeout, which includes the wait for a credit.
    pub fn request_within<M: Message>(&self, limit: Duration, message: M) -> Asked<'_, M::Reply, M::Error> {
        Asked(Box::pin(self.answer_of(limit, message)))
    }

    /// Takes a credit, sends the request and waits for the answer, for at most `limit`.
    async fn answer_of<M: Message>(&self, limit: Duration, message: M) -> Answered<M> {
        let inner = self.inner();
        let mut late = inner.platform.sleep(limit);
        if inner.is_stopped() {
            return Err(RequestError::Unavailable);
        }

        let entrance = inner.entrance::<M>();
        tokio::select! {
            biased;
            () = inner.room_at(&entrance) => {}
            () = self.stopped() => return Err(RequestError::Unavailable),
            () = &mut late => return Err(RequestError::Overloaded { after: limit }),
        }

        let (sender, receiver) = oneshot::channel();
        let state = RequestState { expected: None, seen: 0, failed: None, sender: Some(sender) };
        // the requester is waiting, so its worker is free to run the handler, and no other thread has to be
        // woken
        let place = if inner.platform.spawns_here() { Place::WorkerIfQuick } else { Place::Runners };
        // only the batch holds the sending half, so `receiver` gets an error if the message is dropped
        let sink = Arc::new(PendingRequest(Mutex::new(state)));
        inner.route_from_outside(message, &entrance, Some(sink), place);

        tokio::select! {
            biased;
            answer = receiver => answer.unwrap_or(Err(RequestError::Unavailable)),
            () = self.stopped() => Err(RequestError::Unavailable),
            () = late => Err(RequestError::Timeout { after: limit }),
        }
    }
}
