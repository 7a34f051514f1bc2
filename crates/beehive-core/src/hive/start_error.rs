//! The reasons why a hive may fail to start.

use crate::shape::Shape;
use crate::state::{ConfigError, names};

/// The reasons why a hive may fail to start.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// Two apps have the same name.
    SameName {
        /// The name.
        app: &'static str,
        /// The places of the two declarations.
        places: [&'static str; 2],
    },
    /// Two message types have the same name.
    SameMessageName {
        /// The name.
        message: &'static str,
        /// The places of the two declarations.
        places: [&'static str; 2],
    },
    /// The names of two message types have the same number in a log (see
    /// [`MessageTypeId`](crate::journal::MessageTypeId)).
    SameMessageNumber {
        /// The names.
        messages: [String; 2],
    },
    /// The reply of a message is a `Result`, so a handler that returns `Err` would keep its changes, and the message
    /// does not declare this with `commits_errors`. The compiler rejects most such messages, but not those that a
    /// generic app handles.
    ResultReply {
        /// The app.
        app: &'static str,
        /// The message's name.
        message: &'static str,
        /// The place of the message's declaration.
        place: &'static str,
    },
    /// The configuration has a table for an app that the hive does not have.
    UnknownApp {
        /// The table's name.
        table: String,
        /// Names of the hive's apps.
        known: Vec<&'static str>,
    },
    /// [`Builder::journal_of`](crate::Builder::journal_of) or
    /// [`Builder::in_memory`](crate::Builder::in_memory) names an app that the hive does not have.
    NoSuchApp {
        /// The name.
        app: String,
        /// Names of the hive's apps.
        known: Vec<&'static str>,
    },
    /// [`Builder::journal_of`](crate::Builder::journal_of) and
    /// [`Builder::in_memory`](crate::Builder::in_memory) name an app more than once.
    TwoLogs {
        /// The app.
        app: String,
    },
    /// [`Builder::journal_of`](crate::Builder::journal_of) names an app that is declared with
    /// `#[app(durability = "memory")]`.
    LogInMemory {
        /// The app.
        app: &'static str,
    },
    /// An app rejected its settings.
    Settings(ConfigError),
    /// `start` was called outside a tokio runtime, and no platform was set.
    NoRuntime,
    /// The hive's own runtime could not be created.
    Runtime {
        /// The operating system's error.
        why: String,
    },
    /// The log does not fit these apps.
    Log {
        /// A description of the mismatch.
        why: String,
    },
    /// The hive does not fit its cluster.
    Cluster {
        /// A description of the mismatch.
        why: String,
    },
    /// A journal cannot begin.
    Journal {
        /// The journal's error.
        why: String,
    },
    /// Two dictionaries of an app have key types with the same name.
    SameKeyName {
        /// The app.
        app: &'static str,
        /// The name.
        key: &'static str,
    },
    /// A dictionary's values can be encoded for the log, but the encoding cannot be decoded.
    Unreadable {
        /// The app.
        app: &'static str,
        /// The dictionary.
        dictionary: String,
        /// Shape of the values.
        shape: Shape,
    },
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::SameName { app, places: [one, other] } => write!(
                f,
                "two apps are called `{app}`, at {one} and at {other}; rename one of them with \
                 `#[app(name = \"..\")]`"
            ),
            StartError::SameMessageName { message, places: [one, other] } => write!(
                f,
                "two message types are called `{message}`, at {one} and at {other}; rename one of them with \
                 `#[message(name = \"..\")]`"
            ),
            StartError::SameMessageNumber { messages: [one, other] } => write!(
                f,
                "the names of the message types `{one}` and `{other}` have the same hash, so a log cannot distinguish \
                 them; rename one of them with `#[message(name = \"..\")]`"
            ),
            StartError::ResultReply { app, message, place } => write!(
                f,
                "app `{app}`: the reply of `{message}`, at {place}, is a `Result`, so a handler that returns `Err` would keep \
                 its changes; name the error separately, `#[message(reply = .., error = ..)]`, or declare with \
                 `#[message(reply = .., commits_errors)]` that it is an answer"
            ),
            StartError::UnknownApp { table, known } => {
                write!(f, "[apps.{table}]: {}", names::refusal("app", table, known))
            }
            StartError::NoSuchApp { app, known } => {
                write!(
                    f,
                    "`journal_of` or `in_memory` names an app that the hive does not have: {}",
                    names::refusal("app", app, known)
                )
            }
            StartError::TwoLogs { app } => {
                write!(f, "`journal_of` and `in_memory` name the app `{app}` twice; name each app once")
            }
            StartError::LogInMemory { app } => write!(
                f,
                "`journal_of` names the app `{app}`, which is declared with `#[app(durability = \"memory\")]`: remove one of the two"
            ),
            StartError::Settings(error) => write!(f, "{error}"),
            StartError::NoRuntime => {
                write!(f, "no tokio runtime: start the hive from within one, or give the builder a platform")
            }
            StartError::Runtime { why } => write!(f, "cannot create a runtime for the hive: {why}"),
            StartError::Cluster { why } => write!(f, "the hive cannot take its place in the cluster: {why}"),
            StartError::Log { why } => write!(f, "the log does not fit these apps: {why}"),
            StartError::Journal { why } => write!(f, "the log cannot be continued: {why}"),
            StartError::SameKeyName { app, key } => {
                write!(
                    f,
                    "app `{app}`: two key types are called `{key}`; rename one of them with `#[key(name = \"..\")]`"
                )
            }
            StartError::Unreadable { app, dictionary, shape } => write!(
                f,
                "app `{app}`: the values of `{dictionary}` can be encoded but not decoded: the type is {shape}, and \
                 `anything` can only be decoded from a text format such as JSON; use an enumeration without `#[serde(untagged)]` and \
                 `#[serde(tag = ..)]`, keep JSON as a `String`, or make the dictionary `#[volatile]`"
            ),
        }
    }
}
beehive_protocol::debug_is_display!(StartError);

impl std::error::Error for StartError {}
impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        StartError::Settings(error)
    }
}
