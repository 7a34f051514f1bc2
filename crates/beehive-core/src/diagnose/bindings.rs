//! Checks that a macro of the user's does not give a name another meaning.
//!
//! `#[handlers]` cannot see into a macro. As a statement, a macro that gets `msg.port` may take the tokens apart and
//! bind `msg` anew for the rest of the block. The map does not run the macro, so its `msg` would be another one. Where a
//! key depends on that name, the generated code therefore repeats the statement in a branch that never runs, with
//! the name bound to a type that nothing but that name can have, and asks for that type after the statement.

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

/// Stands for the reference inside the branch that never runs. The fields of the value can be read through it.
pub fn watched<M: ?Sized>(_: &M) -> &Watched<M> {
    unreachable!("in a branch that never runs")
}

/// Implemented by what [`watched`] returns.
#[diagnostic::on_unimplemented(
    message = "this macro gives a name another meaning, so Beehive cannot tell which value a later key depends on",
    label = "binds a name of the handler anew",
    note = "bind the key before this statement, `let key = ..;` (more: beehive::guide::errors::key_from_unknown_code)"
)]
pub trait StillBound {}
impl<M: ?Sized> StillBound for &Watched<M> {}

/// Accepts a name that still has the meaning given to it by [`watched`].
pub fn still_bound<T: StillBound>(_: T) {}
