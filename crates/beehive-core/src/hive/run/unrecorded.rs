//! Detects changes of state that bypass the dictionaries, so that no undo entry records them. Such a change fails its
//! transaction.
//!
//! - A dictionary is moved out of its field. Every transaction of a handler with a hand-written map is checked.
//! - A value is changed through a shared reference. Only a probe can detect this, by comparing the
//!   whole state before and after the transaction, so hives outside tests do not check it.

use crate::app::{Handlers, Handles};
use crate::failure::Failed;
use crate::hive::dispatch::probe::Probe;
use crate::hive::run::transaction::unwanted;
use crate::message::{Error, ErrorKind};
use crate::panics;
use crate::report::HandlerReport;
use crate::state::EncodedCells;
use crate::state::column::Columns;
use crate::state::guard::Held;

/// Checks whether a handler may move dictionaries. Only a handler with a hand-written map may: the analysis lets all
/// other handlers use dictionaries only through their methods, so they do not pay for the check.
#[inline(always)]
pub(crate) fn may_move<A: Handlers + Handles<M>, M>() -> bool {
    const { HandlerReport::is_written_by_hand(A::REPORT, A::HANDLER) }
}

/// Restores the fields of dictionaries that a handler has moved, and fails the transaction. The failure takes
/// precedence over the handler's result, because after the move the handler accessed the cells of the wrong
/// dictionary.
#[cold]
pub(crate) fn moved<A: Columns, T, E>(
    state: &mut A,
    result: T,
    held: &Held,
    place: fn() -> String,
) -> Box<Failed<E>> {
    // a violation is a consequence of the move
    unwanted((result, held.violation()));
    let error = state.put_in_place();
    Failed::platform(Error::of(error.kind(), format!("{}{}", error.text(), place())))
}

/// Fails a transaction that has changed a value without recording the change. Such a change is not undone, not logged
/// and not visible in views. It is made through a lock or an atomic inside the value, which no bound on the value's type
/// can exclude.
#[cold]
pub(crate) fn recorded<A: Columns, T, E>(
    probe: &dyn Probe,
    before: EncodedCells,
    state: &mut A,
    result: Result<T, Box<Failed<E>>>,
    place: fn() -> String,
) -> Result<T, Box<Failed<E>>> {
    if result.is_err() {
        panics::to_the_end(|| state.rollback())
    }
    let Some(name) = probe.hidden_change(before, state) else { return result };

    unwanted(result);
    let text = format!(
        "the handler changed a value of `{name}` through a shared reference, so the change would be neither undone nor \
         logged; the value must not have a lock or an atomic inside{}",
        place()
    );
    Err(Failed::platform(Error::of(ErrorKind::Unmapped, text)))
}
