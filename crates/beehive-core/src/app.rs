//! Apps: what `#[derive(App)]` and `#[handlers]` implement.

use crate::context::Ctx;
use crate::mapper::Mapper;
use crate::message::{Error, Message};
use crate::state::State;

/// An application: handlers over dictionaries. Derive it; write its handlers in one `#[handlers] impl` block.
#[diagnostic::on_unimplemented(message = "`{Self}` is not an app", note = "derive it: `#[derive(App)]`")]
pub trait App: State {
    /// Stable name, in kebab case; also the name of its settings' table.
    const NAME: &'static str;
    /// What `#[app(..)]` says.
    const OPTIONS: AppOptions;
}

/// What `#[app(..)]` says about an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppOptions {
    /// Number of hives that keep a copy. One: the app's state lives and dies with its hive.
    pub replication: u32,
}

impl AppOptions {
    /// An app that says nothing.
    pub const DEFAULT: AppOptions = AppOptions { replication: 1 };
}

/// An app that handles messages of type `M`.
#[diagnostic::on_unimplemented(message = "`{Self}` has no handler for `{M}`")]
pub trait Handles<M: Message>: Handlers {
    /// Index of the handler in [`Handlers::REPORT`].
    const HANDLER: usize;
    /// Whether it can answer: it is then part of the chain, else it observes.
    const ANSWERS: bool;
    /// The derived map.
    fn map(msg: &M, mapper: &mut Mapper);
    /// The handler.
    fn handle(&mut self, msg: &M, ctx: &mut Ctx) -> Result<Option<M::Reply>, Error>;
}

/// The handlers of an app; derived with `#[handlers]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handlers",
    note = "write `#[handlers] impl {Self} {{ #[rcv] fn .. }}`"
)]
pub trait Handlers: App {
    /// Dictionaries that some handler reads whole.
    const MONOLITHIC: u64;
    /// What was derived for each handler.
    const REPORT: &'static [HandlerReport];
    /// Names every handler to the runtime.
    fn register(registrar: &mut crate::hive::Registrar<'_, Self>);

    /// What was derived, as a table for people.
    fn map_report() -> String {
        let mut out = String::new();
        for r in Self::REPORT {
            out += &format!("{:<16} {:<18} {:<12} {}", r.name, r.message, r.kind, r.cells);
            if !r.joins.is_empty() {
                out += &format!("  joins {}", r.joins);
            }
            out += &format!("  (line {})\n", r.line);
            if !r.note.is_empty() {
                out += &format!("{:<16} {}\n", "", r.note);
            }
        }
        out
    }
}

/// What was derived for one handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerReport {
    /// The method.
    pub name: &'static str,
    /// The message it handles.
    pub message: &'static str,
    /// `sharded`, `centralised`, `stateless` or `drop`.
    pub kind: &'static str,
    /// The cells, as the programmer would write them.
    pub cells: &'static str,
    /// Cells that its messages tie together for good.
    pub joins: &'static str,
    /// Line in its source file.
    pub line: u32,
    /// What to do about it.
    pub note: &'static str,
}
