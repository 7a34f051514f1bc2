//! Messages, their answers, and the errors returned by handlers.

use crate::hive::Shared;
use crate::key::KeyType;
use crate::state::image::{decode, encode, words};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::{Any, type_name};
use std::marker::PhantomData;

/// A dictionary's value type. Undo needs `Clone`; migration and replication need the encoding.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a dictionary",
    label = "not a value",
    note = "a value is cloned and encoded; derive whichever of these are missing: Clone, serde::Serialize, serde::Deserialize (serde with its feature `derive` in Cargo.toml)",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Value: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static> Value for T {}

/// Stand-in for [`Value`] in `#[derive(App)]`. With it, the compiler reports a type that is not a value only once,
/// rather than once for each missing trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a dictionary",
    label = "not a value",
    note = "a value is cloned and encoded; derive whichever of these are missing: Clone, serde::Serialize, serde::Deserialize (serde with its feature `derive` in Cargo.toml)",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Stored {}
#[diagnostic::do_not_recommend]
impl<T: Value> Stored for T {}

/// The type of an answer to a message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an answer",
    label = "not an answer",
    note = "an answer is encoded; derive whichever of these are missing: serde::Serialize, serde::Deserialize (serde with its feature `derive` in Cargo.toml)",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Reply: Send + Sync + 'static {
    /// Encodes the answer. This is a method rather than a supertrait, because the compiler would report each
    /// supertrait separately.
    #[doc(hidden)]
    fn encoded(&self) -> Vec<u8>;
    /// Decodes an answer of another hive.
    #[doc(hidden)]
    fn decoded(bytes: &[u8]) -> Option<Self>
    where
        Self: Sized;
    /// Renders the answer as text.
    #[doc(hidden)]
    fn words(&self) -> String;
}
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Reply for T {
    fn encoded(&self) -> Vec<u8> {
        encode(self)
    }
    fn decoded(bytes: &[u8]) -> Option<Self> {
        decode("an answer", bytes).ok()
    }
    fn words(&self) -> String {
        words(self)
    }
}

/// The type of error returned by a message's handlers. Implemented for every type that is `Debug`, `Serialize`,
/// `Deserialize`, `Send`, `Sync` and `'static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a message",
    label = "not an error",
    note = "an error is encoded and logged; derive whichever of these are missing: Debug, serde::Serialize, serde::Deserialize (serde with its feature `derive` in Cargo.toml)",
    note = "more: beehive::guide::errors::typed_errors"
)]
pub trait MessageError: Send + Sync + 'static {
    /// Encodes the error. This is a method rather than a supertrait for the same reason as in [`Reply`].
    #[doc(hidden)]
    fn encoded(&self) -> Vec<u8>;
    /// Decodes an error of another hive.
    #[doc(hidden)]
    fn decoded(bytes: &[u8]) -> Option<Self>
    where
        Self: Sized;
    /// Renders the error for the log and for people.
    #[doc(hidden)]
    fn describe(&self) -> String;
}
#[diagnostic::do_not_recommend]
impl<T: std::fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static> MessageError for T {
    fn encoded(&self) -> Vec<u8> {
        encode(self)
    }
    fn decoded(bytes: &[u8]) -> Option<Self> {
        decode("an error", bytes).ok()
    }
    fn describe(&self) -> String {
        match (self as &dyn Any).downcast_ref::<Error>() {
            Some(error) => error.to_string(),
            None => format!("{self:?}"),
        }
    }
}

/// Checks that the reply type `R` of a message is neither a `Result` nor an `Option` of one, unless the message
/// `COMMITS_ERRORS`. If `R` is such a type, even through an alias, a call of `check` resolves to an associated function
/// whose bound never holds. For all other types it resolves to [`NoResult::check`].
///
/// Derived code calls it where the message is declared, and again at each of its handlers: there the type is known even
/// if it depends on a generic parameter, or if `Message` is implemented by hand. In a generic app it may not be known
/// there either; such a message is refused when the hive starts.
#[derive(Debug)]
pub struct ReplyCheck<R, const COMMITS_ERRORS: bool>(PhantomData<R>);

impl<T, E> ReplyCheck<Result<T, E>, false> {
    /// Whether the type is a `Result`, or an `Option` of one.
    pub const IS_RESULT: bool = true;
    /// Never holds, so calling it is an error at the reply type, or at the message type of a handler.
    pub fn check()
    where
        AResult: PlainReply<T, E>,
    {
    }
}

impl<T, E> ReplyCheck<Option<Result<T, E>>, false> {
    /// Whether the type is a `Result`, or an `Option` of one.
    pub const IS_RESULT: bool = true;
    /// Never holds either: `Some(Err(..))` would keep the changes as well.
    pub fn check()
    where
        AResult: PlainReply<Option<T>, E>,
    {
    }
}

/// Checks in the same way that the error type `E` of a message is not a `Result`.
#[derive(Debug)]
pub struct ErrorCheck<E>(PhantomData<E>);

impl<T, E> ErrorCheck<Result<T, E>> {
    /// Never holds, so calling it is an error at the error type.
    pub fn check()
    where
        AResult: PlainError<T, E>,
    {
    }
}

/// Fallback of [`ReplyCheck`] and [`ErrorCheck`], for types other than a `Result`.
pub trait NoResult {
    /// Whether the type is a `Result`, or an `Option` of one.
    const IS_RESULT: bool = false;
    /// Does nothing.
    #[inline(always)]
    fn check() {}
}
impl<R, const COMMITS_ERRORS: bool> NoResult for ReplyCheck<R, COMMITS_ERRORS> {}
impl<E> NoResult for ErrorCheck<E> {}

/// Checks whether `R` is a `Result`, or an `Option` of one, by the type's name, because generic code cannot test for
/// the type itself.
pub(crate) fn is_result<R>() -> bool {
    let start = |name: &'static str| name.split_inclusive('<').next().unwrap_or(name);
    let result = start(type_name::<Result<(), ()>>());
    let option = start(type_name::<Option<()>>());
    let mut name = type_name::<R>();
    while let Some(inner) = name.strip_prefix(option) {
        name = inner
    }
    name.starts_with(result)
}

/// Stand-in for a reply or error type that is a `Result`.
#[derive(Debug)]
pub struct AResult;

/// Never implemented: reports that a reply type is a `Result<T, E>`.
#[diagnostic::on_unimplemented(
    message = "the reply of this message is a `Result`, so a handler that returns `Err` would keep its changes",
    label = "a `Result` of `{T}` and `{E}`",
    note = "where the message is declared, name the error, and let the handler return a `Result` as before: `#[message(reply = {T}, error = {E})]`; an `Err` then rolls back, and the requester gets it as `RequestError::Handler`",
    note = "if an `Err` is an answer like any other, and the changes are to be kept: `#[message(reply = Result<{T}, {E}>, commits_errors)]`, or `const COMMITS_ERRORS: bool = true;` in a hand-written `impl Message`",
    note = "more: beehive::guide::errors::typed_errors"
)]
pub trait PlainReply<T, E> {}

/// Never implemented: reports that an error type is a `Result<T, E>`.
#[diagnostic::on_unimplemented(
    message = "the error of this message is a `Result`, so its handlers would fail with an `Ok` or an `Err`",
    label = "a `Result` of `{T}` and `{E}`",
    note = "name the error alone, and let the handler return a `Result` with it: `#[message(reply = {T}, error = {E})]`",
    note = "more: beehive::guide::errors::typed_errors"
)]
pub trait PlainError<T, E> {}

/// `#[derive(Message)]` uses this bound to check the type of each field of a message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a message",
    label = "not encoded",
    note = "a message is encoded; for each of your own types in it, derive whichever of these are missing: serde::Serialize, serde::Deserialize (serde with its feature `derive` in Cargo.toml)",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Encoded {}
#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Encoded for T {}

/// Names a field type of a message. `N` numbers the distinct field types.
pub trait MessagePart<const N: usize> {
    /// The field type.
    type Part: Encoded;
}

/// Same as `Encoded`, for generated code that must not cause a compile error of its own. If a type `T` cannot be
/// encoded, the compiler rejects the bound `T: Encoded` where it is written, but accepts the bound
/// `for<'a> T: EncodedFor<'a>`.
pub trait EncodedFor<'a>: Serialize + DeserializeOwned {}
impl<T: Serialize + DeserializeOwned> EncodedFor<'_> for T {}

/// A message between apps. Derive this trait.
///
/// A message is plain data. Once emitted, it is immutable and shared by all apps that handle it. It is encoded only
/// when it leaves the process or enters a log.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    label = "not a `Message`",
    note = "derive it: `#[derive(Message)]`",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Message: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The type of the answer. `()` means "handled and committed".
    type Reply: Reply;
    /// The type of the error that a handler returns instead of an answer. Returning it rolls the transaction back.
    type Error: MessageError;
    /// Stable name: the crate's name followed by the type's.
    const NAME: &'static str;
    /// Whether the reply may be a `Result`, whose `Err` is an answer like any other: the handler's changes are kept. A
    /// hive that handles a message with such a reply but without this declaration does not start.
    const COMMITS_ERRORS: bool = false;
    /// Source file and line of the declaration.
    #[doc(hidden)]
    const PLACE: &'static str = "(somewhere)";
    /// Code that compiles only if the reply and error types are acceptable. It is never called.
    #[doc(hidden)]
    const CHECKED: fn() = || {};
    /// Whether the message is a sweep's visit to one cell.
    #[doc(hidden)]
    const OF_A_SWEEP: bool = false;
    /// Whether the message is a periodic tick.
    #[doc(hidden)]
    const IS_TICK: bool = false;
}

/// An error as a text and a kind. Handlers return it if their message declares no error type, and the platform returns
/// it for its own failures.
///
/// Any error or text converts into it, so `?` works on all of them. Only the text and kind are sent between processes.
/// To let requesters tell errors apart, declare an error type: `#[message(reply = T, error = E)]`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    kind: ErrorKind,
    text: String,
}

/// Cause of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The handler returned an error. Its transaction was rolled back. The caller decides whether to retry.
    Handler,
    /// The handler panicked. Its transaction was rolled back, and the message is kept as a dead letter.
    Panicked,
    /// A crash left the message unfinished, and later the process ended twice while the message was running alone. The
    /// message is set aside: it is not run again but kept as a dead letter.
    Aborted,
    /// The handler touched a cell outside its map, because of a wrong hand-written map or a false `pure!`. Or it moved a
    /// dictionary out of its field, which would give the dictionary's cells to another one. Its transaction was rolled
    /// back, and the message is kept as a dead letter.
    Unmapped,
    /// A limit of the platform was exceeded. The text names the limit.
    Limit,
    /// A view read by the handler was older than its dictionary allows. The transaction was rolled back; a retry later,
    /// or on another hive, may succeed.
    Stale,
}

impl Error {
    /// Returns an error of kind [`ErrorKind::Handler`].
    pub fn new(text: impl Into<String>) -> Self {
        Error { kind: ErrorKind::Handler, text: text.into() }
    }

    pub(crate) fn of(kind: ErrorKind, text: impl Into<String>) -> Self {
        Error { kind, text: text.into() }
    }

    /// Truncates the text to at most `bytes_max` bytes, at a character boundary.
    pub(crate) fn cut(&mut self, bytes_max: usize) {
        if self.text.len() > bytes_max {
            self.text.truncate(self.text.floor_char_boundary(bytes_max));
            self.text.shrink_to_fit()
        }
    }

    /// Returns the cause.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the text of the error.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            ErrorKind::Handler | ErrorKind::Limit | ErrorKind::Stale | ErrorKind::Aborted => {
                write!(f, "{}", self.text)
            }
            ErrorKind::Panicked => write!(f, "the handler panicked: {}", self.text),
            ErrorKind::Unmapped => write!(f, "{}", self.text),
        }
    }
}
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            ErrorKind::Handler => write!(f, "{:?}", self.text),
            kind => write!(f, "{kind:?}: {}", self.text),
        }
    }
}

// `Error` does not implement `std::error::Error`, because this conversion would then overlap with
// `impl From<T> for T`.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Self {
        Error::new(error.into().to_string())
    }
}

/// An error type that converts into `F`. A handler may return such errors for a message whose error type is `F`.
#[diagnostic::on_unimplemented(
    message = "the error of this message is `{F}`, and `{Self}` does not convert into it",
    label = "not a `{F}`",
    note = "declare it on the message: `#[message(error = {Self})]`",
    note = "or return a `Result` with the error `{F}`, or write `impl From<{Self}> for {F}`",
    note = "more: beehive::guide::errors::typed_errors"
)]
pub trait Fails<F> {
    /// Converts the error.
    fn into_error(self) -> F;
}
#[diagnostic::do_not_recommend]
impl<F, E: Into<F>> Fails<F> for E {
    #[inline(always)]
    fn into_error(self) -> F {
        self.into()
    }
}

/// A return type of a handler that answers with an `R` or fails with an `F`.
#[diagnostic::on_unimplemented(
    message = "this message is answered with `{R}`, not with `{Self}`",
    label = "expected `{R}`, or an `Option` or a `Result` of it",
    note = "the type of the answer is declared on the message with `#[message(reply = ..)]`; the default is `()`",
    note = "more: beehive::guide::errors::answers"
)]
pub trait Answer<R, F> {
    /// Converts the return value: `Ok(None)` leaves the answer to the next app.
    fn split(self) -> Result<Option<R>, F>;
}
impl<R, F> Answer<R, F> for R {
    #[inline(always)]
    fn split(self) -> Result<Option<R>, F> {
        Ok(Some(self))
    }
}
impl<R, F> Answer<R, F> for Option<R> {
    #[inline(always)]
    fn split(self) -> Result<Option<R>, F> {
        Ok(self)
    }
}
impl<R, F, E: Fails<F>> Answer<R, F> for Result<R, E> {
    #[inline(always)]
    fn split(self) -> Result<Option<R>, F> {
        self.map(Some).map_err(E::into_error)
    }
}
impl<R, F, E: Fails<F>> Answer<R, F> for Result<Option<R>, E> {
    #[inline(always)]
    fn split(self) -> Result<Option<R>, F> {
        self.map_err(E::into_error)
    }
}

/// A return type of a handler that gives no answer, for a message that is answered with an `R` or fails with an `F`.
/// An observer leaves the answer to other apps, so its `R` is `()` whatever reply the message declares.
#[diagnostic::on_unimplemented(
    message = "this handler gives no answer, but it returns `{Self}`",
    label = "returns `{Self}`",
    note = "the macro sees only the name of the type, and a `Result` without arguments is no answer; to answer, write the type out: `-> {Self}`",
    note = "a handler that only observes returns nothing, or `Result<()>` if it can fail",
    note = "more: beehive::guide::errors::answers"
)]
pub trait Done<R, F> {
    /// Converts the return value, dropping everything but the error.
    fn done(self) -> Result<(), F>;
}
impl<R: NoAnswer, F> Done<R, F> for () {
    #[inline(always)]
    fn done(self) -> Result<(), F> {
        Ok(())
    }
}
impl<R: NoAnswer, F, E: Fails<F>> Done<R, F> for Result<(), E> {
    #[inline(always)]
    fn done(self) -> Result<(), F> {
        self.map_err(E::into_error)
    }
}

/// A return type of a timer: nothing, or a `Result` whose error is text. It differs from [`Done`] in the compiler
/// error for a wrong type, because a timer has no message whose declaration could be changed.
#[diagnostic::on_unimplemented(
    message = "a timer cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "nobody waits for a timer, so it has no answer: return nothing, or `Result<()>` if it can fail",
    note = "more: beehive::guide::errors::answers"
)]
pub trait TickDone {
    /// Converts the return value.
    fn ticked(self) -> Result<(), Error>;
}
impl TickDone for () {
    #[inline(always)]
    fn ticked(self) -> Result<(), Error> {
        Ok(())
    }
}
impl<E: TickFails> TickDone for Result<(), E> {
    #[inline(always)]
    fn ticked(self) -> Result<(), Error> {
        self.map_err(E::into_text)
    }
}

/// An error that a timer may return.
#[diagnostic::on_unimplemented(
    message = "the error of a timer is text, and `{Self}` does not convert into it",
    label = "neither text nor a `std::error::Error`",
    note = "nobody waits for a timer, so its error only rolls its changes back and is logged as text: return `Result<()>`, and convert `{Self}` into text: `.map_err(|_| \"why\")?`",
    note = "or implement `std::error::Error` for `{Self}`, or let the timer emit a message whose handler returns `{Self}`",
    note = "more: beehive::guide::errors::typed_errors"
)]
pub trait TickFails {
    /// Converts the error.
    fn into_text(self) -> Error;
}
#[diagnostic::do_not_recommend]
impl<E: Into<Error>> TickFails for E {
    #[inline(always)]
    fn into_text(self) -> Error {
        self.into()
    }
}

/// The answer type of a message that needs no answer; only `()`.
#[diagnostic::on_unimplemented(
    message = "this handler returns no answer, but its message is answered with `{Self}`",
    label = "no `-> {Self}`",
    note = "return the answer: `-> {Self}`, or `-> Option<{Self}>`, whose `None` passes the message to the next app, or a `Result` of either",
    note = "if it only observes messages that other apps answer: `#[rcv(observes)]`",
    note = "more: beehive::guide::errors::answers"
)]
pub trait NoAnswer {}
impl NoAnswer for () {}

/// Checks that a handler whose return type looks like an answer does return one. The macro sees only the type's name:
/// an alias of `()` or `Result<()>` looks like an answer, and the next apps in the chain would never get the message.
///
/// As in [`ReplyCheck`], a call resolves to an associated function for the rejected types, and to
/// [`AnswerOtherwise::check`] for all others.
#[derive(Debug)]
pub struct AnswerCheck<R, F, T>(PhantomData<(R, F, T)>);

impl<R, F, T> AnswerCheck<R, F, T> {
    /// Infers `T` from the value returned by a handler.
    #[inline(always)]
    pub fn of(_: &T) -> AnswerCheck<R, F, T> {
        AnswerCheck(PhantomData)
    }
}

impl<F> AnswerCheck<(), F, ()> {
    /// The bound never holds, so a call is a compile error at the return type.
    pub fn check(self)
    where
        (): AnswerByName<F>,
    {
    }
}

impl<F, E> AnswerCheck<(), F, Result<(), E>> {
    /// The bound never holds here either.
    pub fn check(self)
    where
        Result<(), E>: AnswerByName<F>,
    {
    }
}

/// Fallback of [`AnswerCheck`], for return types that are an answer.
pub trait AnswerOtherwise: Sized {
    /// Does nothing.
    #[inline(always)]
    fn check(self) {}
}
impl<R, F, T> AnswerOtherwise for AnswerCheck<R, F, T> {}

/// A trait that is never implemented. Its error message says that a handler returns no answer although the name of its
/// return type suggests one.
#[diagnostic::on_unimplemented(
    message = "this handler returns no answer, but the name of its return type hides that it is `{Self}`",
    label = "another name of `{Self}`",
    note = "the macro sees only the name, and would not pass the message to the next apps; write `Result<()>` or `Result<(), YourError>`, or no return type if the handler cannot fail",
    note = "more: beehive::guide::errors::answers"
)]
pub trait AnswerByName<F> {}

/// A sweep's visit to one cell: the message that the sweep delivers to every cell of a dictionary, with the key.
pub struct Each<K, M: Message> {
    /// The cell's key.
    pub key: K,
    /// The message, shared by all cells.
    pub msg: Shared<M>,
}

impl<K: std::fmt::Debug, M: Message + std::fmt::Debug> std::fmt::Debug for Each<K, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Each").field("key", &self.key).field("msg", &*self.msg).finish()
    }
}

impl<K: Serialize, M: Message> Serialize for Each<K, M> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.key, &*self.msg).serialize(serializer)
    }
}
impl<'de, K: Deserialize<'de>, M: Message> Deserialize<'de> for Each<K, M> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (key, msg) = Deserialize::deserialize(deserializer)?;
        Ok(Each { key, msg: Shared::new(msg) })
    }
}
impl<K: KeyType, M: Message> Message for Each<K, M> {
    type Reply = ();
    type Error = M::Error;
    const NAME: &'static str = "beehive::Each";
    const OF_A_SWEEP: bool = true;
    const IS_TICK: bool = M::IS_TICK;
}

/// A tick of timer number `N` of an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick<const N: u32>;
impl<const N: u32> Message for Tick<N> {
    type Reply = ();
    type Error = Error;
    const NAME: &'static str = "beehive::Tick";
    const IS_TICK: bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(fail: bool) -> Result<u32, Error> {
        if fail {
            Err("no")?
        }
        let number: u32 = "7".parse()?;
        Ok(number)
    }

    #[test]
    fn a_result_is_known_by_the_name_of_its_type() {
        type Alias = Option<Option<std::io::Result<u8>>>;
        enum Outcome<T> {
            _Of(T),
        }
        assert!(is_result::<Result<u8, String>>() && is_result::<Option<Result<u8, Error>>>());
        assert!(is_result::<Alias>());
        assert!(!is_result::<u8>() && !is_result::<Option<String>>() && !is_result::<()>());
        // a `Result` inside other data does not make a handler fail
        assert!(!is_result::<Vec<Result<u8, u8>>>() && !is_result::<Outcome<Result<u8, u8>>>());
    }

    #[test]
    fn everything_converts() {
        assert_eq!(question(false).unwrap(), 7);
        assert_eq!(question(true).unwrap_err().text(), "no");
        let text = String::from("owned");
        assert_eq!(Error::from(text).to_string(), "owned");
    }
}
