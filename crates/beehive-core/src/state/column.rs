//! `Column`: the interface through which a bee commits, rolls back, logs, exports, imports and merges a
//! dictionary.

use crate::cell::CellId;
use crate::mapper::DictInfo;
use crate::message::{Error, ErrorKind};
use crate::shape::Shape;
use crate::state::config::{ConfigError, ConfigSource};
use crate::state::image::{CellImage, DecodeError, Op, Redo};
use crate::view::Mirror;
use std::any::Any;

/// A dictionary field of an app.
pub trait Column: Send + Sync + 'static {
    /// A savepoint: a point in a transaction to which the dictionary can be rolled back.
    type Mark: Send + 'static;
    /// The type of the copies read by the dictionary's views.
    type Mirror: Mirror;
    /// Returns the field's description.
    fn info(&self) -> DictInfo;
    /// Returns the dictionary's own position among the app's dictionaries. If a handler has exchanged two dictionaries,
    /// this is not the position of the field in which it now is.
    fn index(&self) -> u32;
    /// Moves the dictionary out of the field, and leaves an empty one.
    fn take(&mut self) -> Self
    where
        Self: Sized;
    /// Keeps the transaction's changes and frees the memory of cells that are now empty.
    fn commit(&mut self);
    /// Undoes the transaction's changes.
    fn rollback(&mut self);
    /// Appends the transaction's changes as redo operations. Called before [`Column::commit`].
    fn redo(&self, out: &mut Redo);
    /// Appends the transaction's changes for the dictionary's views. Called before [`Column::commit`].
    fn changes(&self, out: &mut Vec<<Self::Mirror as Mirror>::Change>);
    /// Appends the whole content for the dictionary's views.
    fn contents(&self, out: &mut Vec<<Self::Mirror as Mirror>::Change>);
    /// Converts a committed redo operation into a change to the dictionary's views.
    fn change_of(&self, seed: u64, op: &Op) -> Result<<Self::Mirror as Mirror>::Change, DecodeError>;
    /// Evicts the excess rows of each cell. Called before [`Column::redo`]. If the dictionary does not allow
    /// eviction, returns an error text that names the cell and the limit.
    fn evict(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Takes a savepoint inside the transaction.
    fn mark(&mut self) -> Self::Mark;
    /// Releases the savepoint `mark`. Changes made after it are kept if `keep` is true, and rolled back
    /// otherwise.
    fn settle(&mut self, mark: Self::Mark, keep: bool);
    /// Checks whether the transaction has changed anything.
    fn is_dirty(&self) -> bool;
    /// Checks whether the dictionary has no cells.
    fn is_empty(&self) -> bool;
    /// Number of cells.
    fn len(&self) -> usize;
    /// Appends all cells in encoded form.
    fn export(&self, out: &mut Vec<CellImage>);
    /// Inserts an encoded cell, replacing one with the same key. Returns the cell's id under `seed`.
    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError>;
    /// Sets or removes the row or value of `op`, outside any transaction. `seed` is that of the cells.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes cannot be decoded. If they are those of a value, there is then no such row or value.
    fn set(&mut self, seed: u64, op: &Op) -> Result<(), DecodeError>;
    /// Calls `with` for every cell in key order, with its id and its key.
    fn cells(&self, with: &mut dyn FnMut(CellId, &dyn Any));
    /// Returns the shape of its encoded cells.
    fn shape(&self) -> Shape;
    /// Appends every cell as text: its dictionary and key, and its content.
    fn in_words(&self, out: &mut Vec<(String, String)>);
    /// Removes all cells and pending changes.
    fn clear(&mut self);
    /// Passes the undo buffer on to `other`, unless `other` has one. The buffer is not part of the state.
    /// Bees pass it to one another, so that idle bees do not need one of their own. Called only between
    /// transactions.
    fn lend(&mut self, _other: &mut Self)
    where
        Self: Sized,
    {
    }
    /// Moves all cells of `other`, the same dictionary of another bee, into this one.
    fn absorb(&mut self, other: &mut Self)
    where
        Self: Sized;
}

/// An operation on each of an app's dictionaries.
pub trait Visitor {
    /// Called for each dictionary, in the order of the fields.
    fn column<C: Column>(&mut self, index: u32, column: &mut C);
}

/// An operation on each dictionary of two bees of the same app.
pub trait PairVisitor {
    /// Called for each dictionary, in the order of the fields.
    fn columns<C: Column>(&mut self, index: u32, column: &mut C, other: &mut C);
}

/// The dictionaries of an app. Implemented by `#[derive(App)]`.
pub trait State: Sized + Send + Sync + 'static {
    /// Descriptions of the dictionaries, in the order of the fields.
    const DICTS: &'static [DictInfo];
    /// Returns empty dictionaries and the configuration read from `source`.
    fn configured(source: &ConfigSource) -> Result<Self, ConfigError>;
    /// Returns empty dictionaries and the same configuration.
    fn fresh(&self) -> Self;
    /// Whether the app has settings.
    const HAS_SETTINGS: bool;
    /// Adopts the settings of `other` and leaves the dictionaries unchanged.
    fn configure_as(&mut self, other: &Self);
    /// Calls `visitor` for every dictionary.
    fn visit<V: Visitor>(&mut self, visitor: &mut V);
    /// Calls `visitor` for every dictionary together with the same dictionary of `other`.
    fn visit_pair<V: PairVisitor>(&mut self, other: &mut Self, visitor: &mut V);
}

const fn any_limited(dicts: &[DictInfo]) -> bool {
    let mut at = 0;
    while at < dicts.len() {
        if dicts[at].limited {
            return true;
        }
        at += 1;
    }
    false
}

/// A savepoint of one dictionary, with its type erased.
pub(crate) type ColumnMark = Box<dyn Any + Send>;

/// Operations on all of a bee's dictionaries at once.
pub(crate) trait Columns: State {
    #[inline(always)]
    fn commit(&mut self) {
        struct Commit;
        impl Visitor for Commit {
            #[inline(always)]
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                column.commit()
            }
        }
        self.visit(&mut Commit)
    }

    #[cold]
    fn rollback(&mut self) {
        struct Rollback;
        impl Visitor for Rollback {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                column.rollback()
            }
        }
        self.visit(&mut Rollback)
    }

    /// Checks whether every dictionary is in its own field.
    #[inline(always)]
    fn is_in_place(&mut self) -> bool {
        struct InPlace(bool);

        impl Visitor for InPlace {
            #[inline(always)]
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                self.0 &= column.index() == index
            }
        }

        // A dictionary can be exchanged only with another one.
        if Self::DICTS.len() < 2 {
            return true;
        }
        let mut in_place = InPlace(true);
        self.visit(&mut in_place);
        in_place.0
    }

    /// Puts every dictionary back into its own field. Returns an error that names one of the moved dictionaries.
    ///
    /// A handler borrows its app and cannot create a dictionary, so it can only exchange the dictionaries of the app. Each
    /// of them is therefore in some field of the app, and its type fits its own field.
    #[cold]
    fn put_in_place(&mut self) -> Error {
        #[derive(Default)]
        struct Take {
            name: &'static str,
            taken: Vec<(u32, Box<dyn Any>)>,
        }

        impl Visitor for Take {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if column.index() != index {
                    self.name = column.info().name;
                    self.taken.push((column.index(), Box::new(column.take())))
                }
            }
        }

        struct PutBack(Vec<(u32, Box<dyn Any>)>);

        impl Visitor for PutBack {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if column.index() != index
                    && let Some(at) = self.0.iter().position(|(own, _)| *own == index)
                    && let Ok(own) = self.0.swap_remove(at).1.downcast::<C>()
                {
                    *column = *own
                }
            }
        }

        let mut take = Take::default();
        self.visit(&mut take);
        self.visit(&mut PutBack(take.taken));
        Error::of(
            ErrorKind::Unmapped,
            format!(
                "the handler moved the dictionary `{}` out of its field, for example with `std::mem::swap`; \
                 move its values or its rows instead",
                take.name
            ),
        )
    }

    /// Whether any dictionary limits the number of its rows.
    const LIMITED: bool = any_limited(Self::DICTS);

    /// Evicts excess rows from all dictionaries, in the order of the fields.
    fn evict(&mut self) -> Result<(), String> {
        struct Evict(Result<(), String>);

        impl Visitor for Evict {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                if self.0.is_ok() {
                    self.0 = column.evict()
                }
            }
        }

        let mut evict = Evict(Ok(()));
        self.visit(&mut evict);
        evict.0
    }

    /// Takes a savepoint of every dictionary.
    fn mark(&mut self) -> Vec<ColumnMark> {
        struct Marks(Vec<ColumnMark>);

        impl Visitor for Marks {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                self.0.push(Box::new(column.mark()))
            }
        }

        let mut marks = Marks(Vec::new());
        self.visit(&mut marks);
        marks.0
    }

    /// Releases the savepoints `marks`; see [`Column::settle`].
    fn settle(&mut self, marks: Vec<ColumnMark>, keep: bool) {
        struct Settle {
            marks: std::vec::IntoIter<ColumnMark>,
            keep: bool,
        }

        impl Visitor for Settle {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                if let Some(mark) = self.marks.next()
                    && let Ok(mark) = mark.downcast::<C::Mark>()
                {
                    column.settle(*mark, self.keep)
                }
            }
        }

        self.visit(&mut Settle { marks: marks.into_iter(), keep })
    }

    fn redo(&mut self, out: &mut Redo) {
        struct Append<'a>(&'a mut Redo);

        impl Visitor for Append<'_> {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                if !column.info().volatile {
                    column.redo(self.0)
                }
            }
        }

        self.visit(&mut Append(out))
    }

    #[inline]
    fn is_empty(&mut self) -> bool {
        struct Empty(bool);

        impl Visitor for Empty {
            #[inline(always)]
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                self.0 &= column.is_empty()
            }
        }

        let mut empty = Empty(true);
        self.visit(&mut empty);
        empty.0
    }

    /// Returns all cells in encoded form. With `volatile`, which is set when the bee is moved, this includes
    /// the cells of volatile dictionaries.
    fn export(&mut self, volatile: bool) -> Vec<CellImage> {
        struct Export {
            out: Vec<CellImage>,
            volatile: bool,
        }

        impl Visitor for Export {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                if self.volatile || !column.info().volatile {
                    column.export(&mut self.out)
                }
            }
        }

        let mut export = Export { out: Vec::new(), volatile };
        self.visit(&mut export);
        export.out
    }

    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError> {
        struct Import<'a> {
            seed: u64,
            image: &'a CellImage,
            done: Option<Result<CellId, DecodeError>>,
        }

        impl Visitor for Import<'_> {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if index == self.image.dict {
                    self.done = Some(column.import(self.seed, self.image))
                }
            }
        }

        let mut import = Import { seed, image, done: None };
        self.visit(&mut import);
        import.done.unwrap_or_else(|| {
            Err(DecodeError {
                what: "a cell",
                why: format!("the app has no dictionary number {}", image.dict),
            })
        })
    }

    /// Sets or removes a row or value; see [`Column::set`].
    fn set(&mut self, seed: u64, op: &Op) -> Result<(), DecodeError> {
        struct Set<'a> {
            seed: u64,
            op: &'a Op<'a>,
            done: Result<(), DecodeError>,
        }

        impl Visitor for Set<'_> {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if index == self.op.dict {
                    self.done = column.set(self.seed, self.op)
                }
            }
        }

        let mut set = Set { seed, op, done: Ok(()) };
        self.visit(&mut set);
        set.done
    }

    /// Removes all cells of volatile dictionaries.
    fn clear_volatile(&mut self) {
        struct ClearVolatile;
        impl Visitor for ClearVolatile {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                if column.info().volatile {
                    column.clear()
                }
            }
        }
        self.visit(&mut ClearVolatile)
    }

    /// Passes the undo buffers on to `to`; see [`Column::lend`].
    #[inline]
    fn lend(&mut self, to: &mut Self) {
        struct Lend;
        impl PairVisitor for Lend {
            #[inline(always)]
            fn columns<C: Column>(&mut self, _: u32, column: &mut C, other: &mut C) {
                column.lend(other)
            }
        }
        self.visit_pair(to, &mut Lend)
    }

    fn absorb(&mut self, other: &mut Self) {
        struct Absorb;
        impl PairVisitor for Absorb {
            fn columns<C: Column>(&mut self, _: u32, column: &mut C, other: &mut C) {
                column.absorb(other)
            }
        }
        self.visit_pair(other, &mut Absorb)
    }

    fn clear(&mut self) {
        struct Clear;
        impl Visitor for Clear {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                column.clear()
            }
        }
        self.visit(&mut Clear)
    }

    /// Returns the name of each dictionary and the shape of its encoded cells.
    fn shapes(&mut self) -> Vec<(String, Shape)> {
        struct Shapes(Vec<(String, Shape)>);

        impl Visitor for Shapes {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                self.0.push((column.info().name.to_string(), column.shape()))
            }
        }

        let mut shapes = Shapes(Vec::new());
        self.visit(&mut shapes);
        shapes.0
    }

    /// Returns all cells as text.
    #[cfg(feature = "testing")]
    fn in_words(&mut self) -> Vec<(String, String)> {
        struct InWords(Vec<(String, String)>);

        impl Visitor for InWords {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                column.in_words(&mut self.0)
            }
        }

        let mut words = InWords(Vec::new());
        self.visit(&mut words);
        words.0
    }

    /// Calls `with` for every cell of dictionary number `dict` in key order, with its id and its key.
    fn cells_of(&mut self, dict: u32, with: &mut dyn FnMut(CellId, &dyn Any)) {
        struct Cells<'w> {
            dict: u32,
            with: &'w mut dyn FnMut(CellId, &dyn Any),
        }

        impl Visitor for Cells<'_> {
            fn column<C: Column>(&mut self, index: u32, column: &mut C) {
                if index == self.dict {
                    column.cells(self.with)
                }
            }
        }

        self.visit(&mut Cells { dict, with })
    }
}
impl<S: State> Columns for S {}
