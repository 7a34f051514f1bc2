//! The macros of Beehive. A thin shell: every decision lives in `beehive-analysis`, an ordinary library.
//!
//! They are re-exported by the `beehive` facade and by `beehive-core`; the code they print names everything as
//! `::beehive::..`.

use proc_macro::TokenStream;

/// Makes a struct of `Dict<K, V>`, `Table<K, Row, V>` and `Config<T>` fields an application.
///
/// - `#[app(name = "learning-switch")]`: its stable name; the struct's in kebab case if left out.
/// - `#[app(replication = 3)]`: how many hives should keep a copy. It has no effect yet, and a hive warns about it when it starts.
/// - `#[app(cells = 100_000)]`: how many cells it may have on a hive. A message that needs one more is answered with an
///   error of kind `Limit`; a few more are possible where messages race for the last ones. Empty cells do not count for longer than a moment.
/// - `#[rows(max = 4096)]` on a `Table`: how many rows a cell may have when a transaction ends; one that leaves more fails
///   with an error of kind `Limit`. With `evict = first` (or `last`) the rows with the lowest (highest) keys go instead, as
///   part of the transaction: undone with it, and logged.
/// - `#[volatile]` on a `Dict` or a `Table`: moves and rolls back with its bee, is not logged, is empty after failover.
#[proc_macro_derive(App, attributes(app, rows, shared, volatile))]
pub fn app(item: TokenStream) -> TokenStream {
    beehive_analysis::derive_app(item.into()).into()
}

/// Makes a type a cell key: a canonical encoding that is the same on all platforms, a stable name, and serde.
///
/// The type itself derives `Clone, PartialEq, Eq, PartialOrd, Ord`. Dictionaries of one app with the same derived key
/// type are columns of one cell.
///
/// - `#[key(name = "..")]`: its stable name, instead of crate and type.
/// - `#[key(serde = false)]`: it has `Serialize` and `Deserialize` of its own. `#[serde(..)]` attributes work without it.
#[proc_macro_derive(Key, attributes(key, serde))]
pub fn key(item: TokenStream) -> TokenStream {
    beehive_analysis::derive_key(item.into()).into()
}

/// Makes a type a message: what it is answered with, a stable name, and serde.
///
/// - `#[message(reply = T)]`: it is answered with a `T`; with `()`, "handled and committed", if left out.
/// - `#[message(name = "..")]`: its stable name, instead of crate and type.
/// - `#[message(serde = false)]`: it has `Serialize` and `Deserialize` of its own. `#[serde(..)]` attributes work
///   without it.
#[proc_macro_derive(Message, attributes(message, serde))]
pub fn message(item: TokenStream) -> TokenStream {
    beehive_analysis::derive_message(item.into()).into()
}

/// Derives a map for every handler of an impl block: from a message, the cells that its handler may touch.
///
/// A handler is a method with one of these attributes:
/// - `#[rcv] fn name(&mut self, msg: &Message, ctx: &mut Ctx)`: runs for every such message; `ctx` may be left out. What
///   it returns is the answer: `R`, `Option<R>`, `Result<R>`, `Result<Option<R>>`, or nothing.
/// - `#[rcv(each = d)] fn name(&mut self, key: &Key, msg: &Message, ctx: &mut Ctx)`: runs once for every cell of `d`.
/// - `#[every("10s")] fn name(&mut self, ctx: &mut Ctx)`: a timer.
/// - `#[every("10s", each = d)] fn name(&mut self, key: &Key, ctx: &mut Ctx)`: a timer for every cell of `d`.
///
/// In the parentheses may also stand what the map is expected to be, and the program compiles only if it is:
/// - `sharded`, `centralized`, `stateless`: its kind. Without `centralized`, a key that is the same for every message,
///   and a dictionary that another handler uses whole, are warned about.
/// - `observes`: that it only sees messages that others answer. Without it a handler that answers nothing does not compile
///   where its message has an answer.
/// - `joins`: that one message may tie cells of different keys together. Without it that is warned about.
/// - `expect = "d[msg.a]"`: its cells, as the report shows them. What is written down is meant: nothing is warned about.
/// - `map = f`: a map written by hand, `fn f(msg: &Message, mapper: &mut Mapper)`; `whole(d)` says which dictionaries it
///   uses whole.
///
/// *Joins*: keys are compared as they are written. References, copies and names of a value are that value; two dictionaries
/// at the same key are not joined, whatever their key types; two keys that cannot be shown to be equal are, and so is a
/// key that changes from round to round of a loop.
///
/// Other methods of the block are helpers: their accesses are part of the map of whoever calls them. A key has to be a
/// function of the message. Methods of message data and constructors are trusted to be that; other functions are not,
/// unless they are associated functions of the block, or promised: `pure!(f(msg.a))`, or `#[handlers(pure(f))]`.
#[proc_macro_attribute]
pub fn handlers(attribute: TokenStream, item: TokenStream) -> TokenStream {
    beehive_analysis::expand_handlers(attribute.into(), item.into()).into()
}

/// Marks a handler in a block with [`#[handlers]`](macro@handlers), which reads it. Without that it does nothing, and says so.
#[proc_macro_attribute]
pub fn rcv(_: TokenStream, item: TokenStream) -> TokenStream {
    beehive_analysis::expand_outside("rcv", item.into()).into()
}

/// Marks a timer in a block with [`#[handlers]`](macro@handlers), which reads it. Without that it does nothing, and says so.
#[proc_macro_attribute]
pub fn every(_: TokenStream, item: TokenStream) -> TokenStream {
    beehive_analysis::expand_outside("every", item.into()).into()
}
