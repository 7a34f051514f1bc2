//! The macros of Beehive. This crate only forwards to `beehive-analysis`, an ordinary library that contains all
//! logic.
//!
//! The `beehive` facade and `beehive-core` re-export the macros. All paths in generated code start with
//! `::beehive::`.

use proc_macro::TokenStream;

/// Makes a struct an app. Its fields are of the types `Dict<K, V>`, `Table<K, Row, V>` and `Config<T>`.
///
/// - `#[app(name = "learning-switch")]`: stable name of the app. Default: the name of the struct in kebab case.
/// - `#[app(replication = 3)]`: number of hives that keep a copy of the app's state, from 1 to 15. Default: 1. This has
///   no effect, because hives do not form clusters yet.
/// - `#[app(cells = 100_000)]`: maximum number of cells on a hive. A message that needs another cell is answered with an
///   error of kind `Limit`. Messages that race for the last cells may exceed the limit by a few cells. An empty cell
///   stops counting once its bee has retired, within a fraction of a second. Default: no limit.
/// - `#[app(durability = "memory")]`: the state of the app is in memory only, even in a hive with a journal. With
///   `durability = "disk"`, the app is in the log if the hive has one. Default: that of the hive (see
///   `Builder::durability`), which is `"disk"`.
/// - `#[rows(max = 4096)]` on a `Table`: maximum number of rows in a cell at the end of a transaction. A transaction that
///   leaves more fails with an error of kind `Limit`. With `evict = first` (or `last`), the rows with the lowest (or
///   highest) keys are removed instead. The removal is part of the transaction, so it is logged and rolled back with it.
/// - `#[volatile]` on a `Dict` or a `Table`: the contents move and roll back with their bee, but are not logged and are
///   lost on failover.
/// - `#[shared]` on a `Dict` or a `Table`: makes the committed contents readable from outside the app. With
///   `#[shared(max_age = "5s")]`, a handler that would read older contents fails. Default: ten seconds.
#[proc_macro_derive(App, attributes(app, rows, shared, volatile))]
pub fn app(item: TokenStream) -> TokenStream {
    beehive_analysis::derive_app(item.into()).into()
}

/// Makes a type a cell key. Implements a canonical encoding that is the same on all platforms, a stable name, and
/// serde's traits.
///
/// The type must also derive `Clone, PartialEq, Eq, PartialOrd, Ord`. Dictionaries of one app with the same derived key
/// type share their cells.
///
/// - `#[key(name = "..")]`: stable name. Default: the name of the crate and of the type.
/// - `#[key(serde = false)]`: the type implements `Serialize` and `Deserialize` itself. `#[serde(..)]`
///   attributes work without this option.
#[proc_macro_derive(Key, attributes(key, serde))]
pub fn key(item: TokenStream) -> TokenStream {
    beehive_analysis::derive_key(item.into()).into()
}

/// Makes a type a message. Sets the types of its reply and its error, and implements a stable name and serde's traits.
///
/// - `#[message(reply = T)]`: the message is answered with a `T`. Default: `()`, which means "handled and committed".
/// - `#[message(error = E)]`: the handlers of the message return errors that convert into `E`. The requester gets them as
///   `RequestError::Handler(E)`. Default: `beehive::Error`, into which every error and text converts. `E` must derive
///   `Debug`, `Serialize` and `Deserialize`. An error always rolls the transaction back.
/// - `#[message(reply = Result<T, E>, commits_errors)]`: the reply itself is a `Result`. Its `Err` is an answer, so the
///   handler's changes are kept. Without `commits_errors`, the macro rejects such a reply.
/// - `#[message(name = "..")]`: stable name. Default: the name of the crate and of the type.
/// - `#[message(serde = false)]`: the type implements `Serialize` and `Deserialize` itself. `#[serde(..)]`
///   attributes work without this option.
#[proc_macro_derive(Message, attributes(message, serde))]
pub fn message(item: TokenStream) -> TokenStream {
    beehive_analysis::derive_message(item.into()).into()
}

/// Derives a map for every handler of an impl block. A map is a function from a message to the cells that its handler may
/// touch.
///
/// A handler is a method with one of these attributes:
/// - `#[rcv] fn name(&mut self, msg: &Message, ctx: &mut Ctx)`: runs for every message of this type. `ctx` may be omitted.
///   The return value is the answer: `R`, `Option<R>`, `Result<R, E>`, `Result<Option<R>, E>`, or nothing. `E` must
///   convert into the error type of the message.
/// - `#[rcv(each = d)] fn name(&mut self, key: &Key, msg: &Message, ctx: &mut Ctx)`: runs once for every cell
///   of `d`.
/// - `#[every("10s")] fn name(&mut self, ctx: &mut Ctx)`: a timer.
/// - `#[every("10s", each = d)] fn name(&mut self, key: &Key, ctx: &mut Ctx)`: a timer for every cell of `d`.
///
/// The parentheses may also assert properties of the handler. The program compiles only if they hold:
/// - `sharded`, `centralized`, `stateless`: the kind of the map. Without `centralized`, the macro warns about a key that is
///   the same for every message, and about a dictionary that another handler uses as a whole.
/// - `observes`: the handler only observes messages that other handlers answer. A handler that answers nothing needs this
///   option if its message has a reply type other than `()`.
/// - `joins`: a message may join the owners of cells with different keys. Without this option, the macro warns about such a
///   handler.
/// - `expect = "d[msg.a]"`: the cells as the report shows them. With this option, the macro does not warn.
/// - `map = f`: a map written by hand, `fn f(msg: &Message, mapper: &mut Mapper)`. `whole(d)` lists the dictionaries that
///   the map uses as a whole.
///
/// *Joins*: The macro compares keys as they are written. References, copies and aliases of a value count as the same
/// value. Accesses to two dictionaries with the same key are not a join, regardless of the key types. Accesses with two
/// keys that are not provably equal are a join, and so are accesses with a key that changes between the iterations of a
/// loop.
///
/// All other methods of the block are helpers. The accesses of a helper are part of the map of each handler that calls it.
/// A key must be a function of the message. The macro assumes that methods of message data and constructors are
/// deterministic. It does not assume this of other functions, unless they are associated functions of the block or the
/// programmer asserts it: `pure!(f(msg.a))`, or `#[handlers(pure(f))]`.
#[proc_macro_attribute]
pub fn handlers(attribute: TokenStream, item: TokenStream) -> TokenStream {
    beehive_analysis::expand_handlers(attribute.into(), item.into()).into()
}

/// Marks a handler in a block with [`#[handlers]`](macro@handlers), which reads the attribute. Outside such a block, the
/// attribute only causes a warning.
#[proc_macro_attribute]
pub fn rcv(_: TokenStream, item: TokenStream) -> TokenStream {
    beehive_analysis::expand_outside("rcv", item.into()).into()
}

/// Marks a timer in a block with [`#[handlers]`](macro@handlers), which reads the attribute. Outside such a block, the
/// attribute only causes a warning.
#[proc_macro_attribute]
pub fn every(_: TokenStream, item: TokenStream) -> TokenStream {
    beehive_analysis::expand_outside("every", item.into()).into()
}
