//! Checks that a user's macro does not rebind a name.
//!
//! `#[handlers]` cannot see into a macro. A macro statement that gets `msg.port` may take the tokens apart and rebind
//! `msg` for the rest of the block. The map does not run the macro, so its `msg` would be a different value. If a key
//! depends on such a name, the generated code therefore repeats the statement in a branch that never runs. In that
//! branch, the name has a type that no other name can have, and the code after the statement requires this type.

use std::convert::Infallible;
use std::ops::Deref;

/// A value that cannot exist, so that only a name bound by [`watched`] has a reference to it.
#[derive(Debug)]
pub struct Watched<M: ?Sized>(Infallible, M);

impl<M: ?Sized> Deref for Watched<M> {
    type Target = M;

    fn deref(&self) -> &M {
        match self.0 {}
    }
}

/// Returns the stand-in for the reference inside the branch that never runs. The fields of the value can be read
/// through it.
pub fn watched<M: ?Sized>(_: &M) -> &Watched<M> {
    unreachable!("in a branch that never runs")
}

/// Implemented only by the return type of [`watched`].
#[diagnostic::on_unimplemented(
    message = "this macro rebinds a name, so Beehive cannot tell which value a later key depends on",
    label = "rebinds a name of the handler",
    note = "bind the key before this statement, `let key = ..;` (more: beehive::guide::errors::key_from_unknown_code)"
)]
pub trait StillBound {}
impl<M: ?Sized> StillBound for &Watched<M> {}

/// Accepts a name that still has the meaning given to it by [`watched`].
pub fn still_bound<T: StillBound>(_: T) {}
