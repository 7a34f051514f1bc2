//! Changes of state that a handler makes behind the back of the dictionaries, so that no undo entry records them: a
//! dictionary is moved out of its field. The transaction fails.

use crate::failure::Failed;
use crate::hive::run::transaction::unwanted;
use crate::message::Error;
use crate::state::column::Columns;
use crate::state::guard::Held;

/// Puts dictionaries that a handler has moved out of their fields back, and fails the transaction. This has precedence
/// over whatever the handler returned, because the cells that it touched were those of other dictionaries than its map
/// names.
#[cold]
pub(crate) fn moved<A: Columns, T, E>(
    state: &mut A,
    result: T,
    held: &Held,
    place: fn() -> String,
) -> Failed<E> {
    // a violation is a consequence of the move
    unwanted((result, held.violation()));
    let error = state.put_in_place();
    Failed::Platform(Error::of(error.kind(), format!("{}{}", error.text(), place())))
}
