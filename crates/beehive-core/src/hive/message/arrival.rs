//! Messages that came from another hive, and the requesters that wait there.

use crate::cell::{BeeId, HiveId};
use crate::failure::RequestError;
use crate::hive::admission::credits::Cause;
use crate::hive::links::frame::{Body, Failure, Report};
use crate::hive::links::links::Links;
use crate::hive::links::sent::Requester;
use crate::hive::message::batch::{AnswerRun, AnswerSink, Batch, Observed};
use crate::message::{Error, ErrorKind, Message, MessageError, Reply};
use crate::panics;
use beehive_protocol::Acked;
use smallvec::smallvec;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Messages that another hive has sent to a bee of this hive.
pub(crate) struct Arrival {
    links: Arc<Links>,
    from: HiveId,
    /// The only bee that may handle the messages.
    pub(crate) bee: BeeId,
    /// The number under which the other hive keeps the messages.
    ticket: u64,
    /// Dropped when no report can be made any more; `None` if nobody waits for reports.
    asking: Option<Arc<Asking>>,
    is_refused: AtomicBool,
}

impl Arrival {
    pub(crate) fn new(links: Arc<Links>, from: HiveId, bee: BeeId, ticket: u64, asks: bool) -> Arrival {
        let asking = asks.then(|| Arc::new(Asking::new(links.clone(), from, ticket)));
        Arrival { links, from, bee, ticket, asking, is_refused: AtomicBool::new(false) }
    }

    /// Sends the messages back: their sender has to route them again.
    pub(crate) fn refuse(&self) {
        if !self.is_refused.swap(true, Ordering::AcqRel) {
            let index = self.links.registry.index();
            self.links.send(self.from, Body::Refused { ticket: self.ticket, index })
        }
    }

    /// Acknowledges some of the messages. Their sender may have come from this hive, which has not dropped it yet, so its
    /// lane does not say which hive waits for the acknowledgment.
    pub(crate) fn acknowledge(&self, acked: Acked) {
        self.links.send(self.from, Body::Acked(acked))
    }

    /// Checks whether any of the messages has been sent back.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Acquire)
    }

    /// Returns the receiver of reports about the message at position `at`, if a requester is waiting.
    pub(crate) fn sink<M: Message>(&self, at: u32) -> Option<Arc<dyn AnswerSink<M>>> {
        let asking = self.asking.clone()?;
        Some(Arc::new(ToHive { asking, at, kind: PhantomData }))
    }
}

/// The right to report to a requester in another hive. When it is dropped, the requester learns that no further report
/// comes.
pub(crate) struct Asking {
    links: Arc<Links>,
    from: HiveId,
    ticket: u64,
}

impl Asking {
    pub(crate) fn new(links: Arc<Links>, from: HiveId, ticket: u64) -> Asking {
        Asking { links, from, ticket }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.links.send(self.from, Body::Closed { ticket: self.ticket })
    }
}

/// Reports about one message to its requester in another hive.
struct ToHive<M> {
    asking: Arc<Asking>,
    at: u32,
    kind: PhantomData<fn(M)>,
}

impl<M: Message> ToHive<M> {
    fn report(&self, report: Report) {
        let Asking { links, from, ticket } = &*self.asking;
        links.send(*from, Body::Report { ticket: *ticket, at: self.at, report })
    }

    fn failure(error: &RequestError<M::Error>) -> Failure {
        let kind = match error {
            // an error that cannot be encoded ends the request all the same
            RequestError::Handler(error) => match panics::harmless(|| error.encoded()) {
                Some(bytes) => return Failure::Handler(bytes),
                None => ErrorKind::Panicked,
            },
            RequestError::Limit(error) | RequestError::Stale(error) => {
                return Failure::Platform(error.clone());
            }
            RequestError::Aborted => ErrorKind::Aborted,
            RequestError::Unmapped => ErrorKind::Unmapped,
            _ => ErrorKind::Panicked,
        };
        Failure::Platform(Error::of(kind, String::new()))
    }
}

impl<M: Message> AnswerSink<M> for ToHive<M> {
    fn expect(&self, _: &Batch<M>, _: u32, _: Option<u32>) {}

    fn answers(&self, answers: AnswerRun<M>, _: &Option<Arc<Cause>>) {
        for answer in answers {
            let answer = match &answer {
                Ok(reply) => panics::harmless(|| reply.encoded())
                    .ok_or_else(|| Failure::Platform(Error::of(ErrorKind::Panicked, String::new()))),
                Err(error) => Err(Self::failure(error)),
            };
            self.report(Report::Answered(answer))
        }
    }

    fn observed(&self, _: &Batch<M>, _: u32, result: Observed<M>) {
        self.report(Report::Observed(result.map_err(|error| Self::failure(&error))))
    }

    fn unanswered(&self, _: &Batch<M>, _: u32) {
        self.report(Report::Unanswered)
    }

    fn counts(&self) -> bool {
        true
    }
}

/// The requester of messages that were sent to another hive.
pub(crate) struct FromHive<M: Message> {
    batch: Arc<Batch<M>>,
    /// Index in the batch of the first message that was sent.
    first: u32,
}

impl<M: Message> FromHive<M> {
    /// Returns `None` if nobody is waiting for reports.
    pub(crate) fn of(batch: &Arc<Batch<M>>, first: u32) -> Option<Arc<dyn Requester>> {
        batch.sink.is_some().then(|| Arc::new(FromHive { batch: batch.clone(), first }) as _)
    }

    fn error(failure: Failure) -> RequestError<M::Error> {
        match failure {
            // a hive with another version of the program sends another error
            Failure::Handler(bytes) => match M::Error::decoded(&bytes) {
                Some(error) => RequestError::Handler(error),
                None => RequestError::Unavailable,
            },
            Failure::Platform(error) => RequestError::of(error),
        }
    }
}

impl<M: Message> Requester for FromHive<M> {
    fn report(&self, at: u32, report: Report) {
        let Some(sink) = &self.batch.sink else { return };
        let index = self.first + at;
        match report {
            Report::Answered(answer) => {
                let answer = answer.map_err(Self::error);
                let answer =
                    answer.and_then(|bytes| M::Reply::decoded(&bytes).ok_or(RequestError::Unavailable));
                sink.answers(smallvec![answer], &None)
            }
            Report::Observed(result) => sink.observed(&self.batch, index, result.map_err(Self::error)),
            Report::Unanswered => sink.unanswered(&self.batch, index),
        }
    }
}
