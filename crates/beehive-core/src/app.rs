//! The traits that `#[derive(App)]` and `#[handlers]` implement.

use crate::context::Ctx;
use crate::mapper::Mapper;
use crate::message::Message;
use crate::report;
use crate::report::HandlerReport;
use crate::state::State;

/// An application: handlers over dictionaries. Derive it, and write its handlers in one `#[handlers] impl`
/// block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an app",
    label = "not an `App`",
    note = "derive it: `#[derive(App)]`",
    note = "more: beehive::guide::errors::derives"
)]
pub trait App: State {
    /// Stable name in kebab case. It is also the name of the app's table in the configuration.
    const NAME: &'static str;
    /// Source file and line of the declaration.
    #[doc(hidden)]
    const PLACE: &'static str = "(somewhere)";
    /// Options from `#[app(..)]`.
    const OPTIONS: AppOptions;
}

/// Options of an app, as given in `#[app(..)]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppOptions {
    /// Number of hives that should keep a copy of the app's state. This has no effect yet: a hive runs alone and keeps
    /// one copy of each app's state. The hive warns at startup if an app asks for more.
    pub replication: u32,
    /// Maximum number of cells on one hive; `None` means unlimited.
    pub cells: Option<u32>,
    /// Whether the app keeps its state on disk. `None` lets the hive decide ([`Builder::durability`](crate::Builder::durability)).
    pub durability: Option<Durability>,
}

/// Whether the state of an app outlives the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// In the log of the hive, if it has one: whatever was answered outlives the process.
    #[default]
    Disk,
    /// In memory only: state, timers and unhandled messages end with the process. The app does not pay for the log.
    Memory,
}

impl std::fmt::Display for Durability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Durability::Disk => "disk",
            Durability::Memory => "memory",
        })
    }
}

impl AppOptions {
    /// Options of an app without `#[app(..)]`.
    pub const DEFAULT: AppOptions = AppOptions { replication: 1, cells: None, durability: None };
}

/// Number of hives that keep a copy of an app's state: one, because there is no cluster yet.
pub(crate) const COPIES: u32 = 1;

/// An app that handles messages of type `M`.
#[diagnostic::on_unimplemented(message = "`{Self}` has no handler for `{M}`")]
pub trait Handles<M>: Sized {
    /// Index of the handler in [`Handlers::REPORT`].
    const HANDLER: usize;
    /// Whether the handler can answer. Handlers that can answer form a chain, through which a message passes in the
    /// order of the apps. All other handlers only observe.
    const ANSWERS: bool;
    /// Runs the derived map: adds the cells that `msg` touches to `mapper`.
    fn map(msg: &M, mapper: &mut Mapper);
    /// Runs the handler. Returns its answer, or `None` to leave the answer to the next app.
    fn handle(&mut self, msg: &M, ctx: &mut Ctx) -> Result<Option<M::Reply>, M::Error>
    where
        M: Message;
}

/// The handlers of an app. Implemented by `#[handlers]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handlers",
    label = "an app without `#[handlers]`",
    note = "write `#[handlers] impl {Self} {{ #[rcv] fn .. }}`; without `#[handlers]`, `#[rcv]` and `#[every]` do nothing",
    note = "more: beehive::guide::errors::derives"
)]
pub trait Handlers: App {
    /// Bit mask of the dictionaries used as a whole (`whole()`) by at least one handler.
    const MONOLITHIC: u64;
    /// Bit mask of the dictionaries whose views (`shared()`) are read by at least one handler.
    const SHARED: u64 = 0;
    /// Result of the derivation for each handler.
    const REPORT: &'static [HandlerReport];
    /// Registers every handler with the runtime.
    fn register(registrar: &mut crate::hive::Registrar<'_, Self>);

    /// Returns the result of the derivation as a table for people. It shows the replication if the app asks for
    /// more than one copy, where its state is if the app says so, and for each handler the kind of its map, its cells, the
    /// cells that it joins, the line that centralizes it, and how to avoid that.
    fn map_report() -> String {
        report::table(Self::NAME, Self::OPTIONS, Self::REPORT)
    }
}
