//! `AnyState`: the dictionaries and settings of an app, for code that does not know the app's type.
//!
//! The bees, the queen, the routing table and the commit path are compiled once, and reach the state through this trait.
//! Only the code that calls a handler knows the type; it gets it back with [`of`].

use crate::cell::CellId;
#[cfg(feature = "testing")]
use crate::panics;
use crate::shape::Shape;
use crate::state::column::{Columns, State};
use crate::state::config::{ConfigError, ConfigSource};
use crate::state::image::{CellImage, DecodeError, Op, Redo};
use crate::time::Time;
use crate::view::Views;
use std::any::Any;
#[cfg(feature = "testing")]
use std::panic::AssertUnwindSafe;

/// An instance of an app, whose type the caller does not know.
///
/// The functions with two instances expect instances of one app.
pub(crate) trait AnyState: Any + Send + Sync {
    /// Returns empty dictionaries with the same settings.
    fn fresh(&self) -> Box<dyn AnyState>;
    /// Returns empty dictionaries with the settings read from `source`.
    fn configured(&self, source: &ConfigSource) -> Result<Box<dyn AnyState>, ConfigError>;
    /// Adopts the settings of `other` and leaves the dictionaries unchanged.
    fn configure_as(&mut self, other: &dyn AnyState);
    /// Checks whether all dictionaries are empty.
    fn is_empty(&mut self) -> bool;
    /// Passes the undo buffers on to `to`. Returns whether these dictionaries are empty: a caller that gives a bee back
    /// needs both, for every run.
    fn lend(&mut self, to: &mut dyn AnyState) -> bool;
    /// Moves all cells of `other` into these dictionaries.
    fn absorb(&mut self, other: &mut dyn AnyState);
    /// Exchanges the two states.
    #[cfg(feature = "testing")]
    fn swap(&mut self, other: &mut dyn AnyState);
    /// Removes all cells and pending changes.
    fn clear(&mut self);
    /// Returns all cells as bytes, including those of volatile dictionaries.
    fn export(&mut self) -> Vec<CellImage>;
    /// Inserts a cell, and returns its id, computed with `seed`.
    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError>;
    /// Sets or removes the row or value of `op`, outside any transaction. `seed` is that of the cells.
    fn set(&mut self, seed: u64, op: &Op) -> Result<(), DecodeError>;
    /// Removes all cells of volatile dictionaries.
    fn clear_volatile(&mut self);
    /// Undoes the changes of the transaction.
    fn rollback(&mut self);
    /// Calls `with` for every cell of dictionary number `dict` in key order, with its id and its key.
    fn cells_of(&mut self, dict: u32, with: &mut dyn FnMut(CellId, &dyn Any));
    /// Returns the name of each dictionary and the shape of its encoded cells.
    fn shapes(&mut self) -> Vec<(String, Shape)>;
    /// Hands the changes of a committed record over to the app's views.
    fn publish_committed(&mut self, views: &Views, redo: &Redo, now: Time);
    /// Hands the whole content over to the app's views.
    fn publish_restored(&mut self, views: &Views, now: Time);
    /// Returns the transaction's changes, as far as they can be encoded.
    #[cfg(feature = "testing")]
    fn changes(&mut self) -> Redo;
    /// Makes the transaction's changes permanent.
    #[cfg(feature = "testing")]
    fn commit(&mut self);
    /// Returns the name and content of every cell as readable text.
    #[cfg(feature = "testing")]
    fn in_words(&mut self) -> Vec<(String, String)>;
}

/// Returns a state as an instance of its app.
///
/// # Panics
///
/// Panics if the state belongs to another app. The callers are handlers' code, compiled for the app whose bee they run.
#[inline(always)]
pub(crate) fn of<S: State>(state: &mut dyn AnyState) -> &mut S {
    let state: &mut dyn Any = state;
    state.downcast_mut().expect("a handler runs on the state of its own app")
}

/// Like [`of`], for a shared reference.
pub(crate) fn same<S: State>(state: &dyn AnyState) -> &S {
    let state: &dyn Any = state;
    state.downcast_ref().expect("both states belong to the same app")
}

impl<S: State> AnyState for S {
    fn fresh(&self) -> Box<dyn AnyState> {
        Box::new(State::fresh(self))
    }

    fn configured(&self, source: &ConfigSource) -> Result<Box<dyn AnyState>, ConfigError> {
        S::configured(source).map(|state| Box::new(state) as Box<dyn AnyState>)
    }

    fn configure_as(&mut self, other: &dyn AnyState) {
        State::configure_as(self, same(other))
    }

    #[inline]
    fn is_empty(&mut self) -> bool {
        Columns::is_empty(self)
    }

    #[inline]
    fn lend(&mut self, to: &mut dyn AnyState) -> bool {
        Columns::lend(self, of(to));
        Columns::is_empty(self)
    }

    fn absorb(&mut self, other: &mut dyn AnyState) {
        Columns::absorb(self, of(other))
    }

    #[cfg(feature = "testing")]
    fn swap(&mut self, other: &mut dyn AnyState) {
        std::mem::swap(self, of(other))
    }

    fn clear(&mut self) {
        Columns::clear(self)
    }

    fn export(&mut self) -> Vec<CellImage> {
        Columns::export(self, true)
    }

    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError> {
        Columns::import(self, seed, image)
    }

    fn set(&mut self, seed: u64, op: &Op) -> Result<(), DecodeError> {
        Columns::set(self, seed, op)
    }

    fn clear_volatile(&mut self) {
        Columns::clear_volatile(self)
    }

    fn rollback(&mut self) {
        Columns::rollback(self)
    }

    fn cells_of(&mut self, dict: u32, with: &mut dyn FnMut(CellId, &dyn Any)) {
        Columns::cells_of(self, dict, with)
    }

    fn shapes(&mut self) -> Vec<(String, Shape)> {
        Columns::shapes(self)
    }

    fn publish_committed(&mut self, views: &Views, redo: &Redo, now: Time) {
        views.committed(self, redo, now)
    }

    fn publish_restored(&mut self, views: &Views, now: Time) {
        views.restored(self, now)
    }

    #[cfg(feature = "testing")]
    fn changes(&mut self) -> Redo {
        let mut changes = Redo::default();
        let _ = panics::catch(AssertUnwindSafe(|| Columns::redo(self, &mut changes)));
        changes
    }

    #[cfg(feature = "testing")]
    fn commit(&mut self) {
        Columns::commit(self)
    }

    #[cfg(feature = "testing")]
    fn in_words(&mut self) -> Vec<(String, String)> {
        Columns::in_words(self)
    }
}
