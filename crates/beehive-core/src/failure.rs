//! `RequestError`, the reason why a request has no answer, and `Failed`, the reason why a transaction failed.

use crate::message::{Error, ErrorKind, MessageError};
use crate::panics;
use std::time::Duration;

/// The reason why a request has no answer. `E` is the error type of its message: `#[message(error = E)]`, by default
/// [`Error`].
///
/// No variant contains the text of a panic, so errors may be shown to clients. The text is in the log and in
/// [`Hive::dead_letters`](crate::Hive::dead_letters).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError<E = Error> {
    /// A handler returned this error. Its changes were rolled back.
    Handler(E),
    /// No app answered the message, although at least one app can. Each of these apps either returned `None`, or its
    /// map dropped the message. This usually means "not found". Changes made by a handler that returned `None` are
    /// kept.
    NoAnswer {
        /// The message's name.
        message: &'static str,
    },
    /// The hive has no app that can answer the message. Usually a call to `Builder::app` is missing. Apps that only
    /// observe the message may have run.
    NoApp {
        /// The message's name.
        message: &'static str,
    },
    /// The handler panicked. Its changes were rolled back, and the message is kept as a dead letter.
    Panicked,
    /// A crash left the message unfinished, and later the process ended twice while the message was running alone. The
    /// message is set aside: it is not run again but kept as a dead letter.
    Aborted,
    /// The handler touched a cell outside its map, because of a wrong hand-written map or a false `pure!`, or it moved a
    /// dictionary out of its field.
    /// Its changes were rolled back, and the message is kept as a dead letter.
    Unmapped,
    /// A limit of the app or of the platform, such as `#[app(cells = ..)]`, was exceeded. The text names the
    /// limit. If the handler ran, its changes were rolled back.
    Limit(Error),
    /// A view read by the handler was too old. The handler's changes were rolled back. A later retry may succeed.
    Stale(Error),
    /// Too many messages were in flight during the whole timeout. The message was not accepted and is not
    /// handled, so a retry is safe.
    Overloaded {
        /// The timeout.
        after: Duration,
    },
    /// The answer did not arrive in time. The message may already have been handled, may be handled later, or may
    /// never be handled.
    Timeout {
        /// The timeout.
        after: Duration,
    },
    /// The hive has stopped. A previously accepted message may or may not have been handled.
    Unavailable,
}

impl<E> RequestError<E> {
    /// Converts a failure of the platform. Only an exceeded limit and a stale view keep their text for the
    /// requester.
    #[cold]
    pub(crate) fn of(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Panicked => RequestError::Panicked,
            ErrorKind::Aborted => RequestError::Aborted,
            ErrorKind::Unmapped => RequestError::Unmapped,
            ErrorKind::Stale => RequestError::Stale(error),
            ErrorKind::Limit | ErrorKind::Handler => RequestError::Limit(error),
        }
    }

    /// Returns the kind of the transaction's failure. Returns `None` if no transaction is known to have failed: the
    /// message was not answered or not accepted, or its outcome is unknown.
    pub fn kind(&self) -> Option<ErrorKind> {
        match self {
            RequestError::Handler(_) => Some(ErrorKind::Handler),
            RequestError::Panicked => Some(ErrorKind::Panicked),
            RequestError::Aborted => Some(ErrorKind::Aborted),
            RequestError::Unmapped => Some(ErrorKind::Unmapped),
            RequestError::Limit(_) => Some(ErrorKind::Limit),
            RequestError::Stale(_) => Some(ErrorKind::Stale),
            RequestError::NoAnswer { .. }
            | RequestError::NoApp { .. }
            | RequestError::Overloaded { .. }
            | RequestError::Timeout { .. }
            | RequestError::Unavailable => None,
        }
    }

    /// Converts an error returned by a handler and leaves all other variants as they are.
    pub fn map_handler<F>(self, convert: impl FnOnce(E) -> F) -> RequestError<F> {
        match self {
            RequestError::Handler(error) => RequestError::Handler(convert(error)),
            RequestError::NoAnswer { message } => RequestError::NoAnswer { message },
            RequestError::NoApp { message } => RequestError::NoApp { message },
            RequestError::Panicked => RequestError::Panicked,
            RequestError::Aborted => RequestError::Aborted,
            RequestError::Unmapped => RequestError::Unmapped,
            RequestError::Limit(error) => RequestError::Limit(error),
            RequestError::Stale(error) => RequestError::Stale(error),
            RequestError::Overloaded { after } => RequestError::Overloaded { after },
            RequestError::Timeout { after } => RequestError::Timeout { after },
            RequestError::Unavailable => RequestError::Unavailable,
        }
    }
}

impl<E: MessageError> std::fmt::Display for RequestError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestError::Handler(error) => write!(f, "{}", error.describe()),
            RequestError::NoAnswer { message } => {
                write!(f, "no answer to `{message}`: no handler that can answer it returned an answer")
            }
            RequestError::NoApp { message } => {
                write!(f, "no app on this hive answers `{message}`: add one with `Builder::app`")
            }
            RequestError::Panicked => {
                write!(
                    f,
                    "the handler panicked; for the reason, see the hive's dead letters or the log output of the program"
                )
            }
            RequestError::Aborted => {
                write!(
                    f,
                    "set aside: the process ended twice while this message was running alone; it will not be handled again"
                )
            }
            RequestError::Unmapped => {
                write!(
                    f,
                    "the handler touched state that its map does not name; the log and the dead letters of the hive say \
                     which"
                )
            }
            RequestError::Limit(error) | RequestError::Stale(error) => write!(f, "{error}"),
            RequestError::Overloaded { after } => {
                write!(f, "overloaded: the message was not accepted within {after:?} and is not handled")
            }
            RequestError::Timeout { after } => {
                write!(f, "no answer within {after:?}; whether the message was handled is not known")
            }
            RequestError::Unavailable => write!(f, "the hive has stopped"),
        }
    }
}
impl<E: MessageError> std::error::Error for RequestError<E> {}

/// The same as `Display`: a `main` that returns the error prints this one.
impl<E: MessageError> std::fmt::Debug for RequestError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The reason why a transaction failed. `E` is the error type of its message.
pub(crate) enum Failed<E> {
    /// The handler returned this error.
    Handler(E),
    /// The platform ended the transaction.
    Platform(Error),
}

impl<E> Failed<E> {
    /// Returns a failure of a transaction that the platform ended, in a box, so that the result of a transaction is not
    /// larger than its answer.
    #[cold]
    pub(crate) fn platform(error: Error) -> Box<Self> {
        Box::new(Failed::Platform(error))
    }

    /// Returns the failure of a transaction whose handler returned an error, in a box.
    #[cold]
    pub(crate) fn handler(error: E) -> Box<Self> {
        Box::new(Failed::Handler(error))
    }
}

impl<E: MessageError> Failed<E> {
    /// Returns the failure as text and kind.
    #[cold]
    pub(crate) fn in_words(&self) -> Error {
        match self {
            // `describe` runs the app's code, which may panic.
            Failed::Handler(error) => Error::new(panics::harmless(|| error.describe()).unwrap_or_default()),
            Failed::Platform(error) => error.clone(),
        }
    }

    /// Returns the failure as reported to the requester.
    #[cold]
    pub(crate) fn into_request_error(self) -> RequestError<E> {
        match self {
            Failed::Handler(error) => RequestError::Handler(error),
            Failed::Platform(error) => RequestError::of(error),
        }
    }
}
