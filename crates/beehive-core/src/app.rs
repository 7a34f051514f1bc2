//! Apps: what `#[derive(App)]` and `#[handlers]` implement.

use crate::context::Ctx;
use crate::mapper::Mapper;
use crate::message::{Error, Message};
use crate::report;
use crate::report::HandlerReport;
use crate::state::State;

/// An application: handlers over dictionaries. Derive it; write its handlers in one `#[handlers] impl` block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an app",
    label = "not an `App`",
    note = "derive it: `#[derive(App)]`",
    note = "more: beehive::guide::errors::derives"
)]
pub trait App: State {
    /// Stable name, in kebab case; also the name of its settings' table.
    const NAME: &'static str;
    /// Where it is declared: file and line.
    #[doc(hidden)]
    const PLACE: &'static str = "(somewhere)";
    /// What `#[app(..)]` says.
    const OPTIONS: AppOptions;
}

/// What `#[app(..)]` says about an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppOptions {
    /// Number of hives that should keep a copy of the app's state. It has no effect yet: a hive runs alone, keeps
    /// one copy of each app, and warns about it when it starts.
    pub replication: u32,
    /// Number of cells that it may have on a hive.
    pub cells: Option<u32>,
}

impl AppOptions {
    /// An app that says nothing.
    pub const DEFAULT: AppOptions = AppOptions { replication: 1, cells: None };
}

/// Number of hives that keep a copy of an app's state: there is no cluster yet.
pub(crate) const COPIES: u32 = 1;

/// An app that handles messages of type `M`.
#[diagnostic::on_unimplemented(message = "`{Self}` has no handler for `{M}`")]
pub trait Handles<M>: Sized {
    /// Index of the handler in [`Handlers::REPORT`].
    const HANDLER: usize;
    /// Whether it can answer: it is then part of the chain, else it observes.
    const ANSWERS: bool;
    /// The derived map.
    fn map(msg: &M, mapper: &mut Mapper);
    /// The handler.
    fn handle(&mut self, msg: &M, ctx: &mut Ctx) -> Result<Option<M::Reply>, Error>
    where
        M: Message;
}

/// The handlers of an app; derived with `#[handlers]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handlers",
    label = "an app without `#[handlers]`",
    note = "write `#[handlers] impl {Self} {{ #[rcv] fn .. }}`; without `#[handlers]`, `#[rcv]` and `#[every]` do nothing",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Handlers: App {
    /// Dictionaries that some handler reads whole.
    const MONOLITHIC: u64;
    /// Dictionaries that some handler reads snapshots of.
    const SHARED: u64 = 0;
    /// What was derived for each handler.
    const REPORT: &'static [HandlerReport];
    /// Names every handler to the runtime.
    fn register(registrar: &mut crate::hive::Registrar<'_, Self>);

    /// What was derived, as a table for people: the replication if more than one copy is asked for, and for each handler the kind of its map, its cells, what they join, the line
    /// that centralises it, and what to do about that.
    fn map_report() -> String {
        report::table(Self::NAME, Self::OPTIONS.replication, Self::REPORT)
    }
}
