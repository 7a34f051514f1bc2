//! A dictionary as its bee sees it: commit, roll back, redo, export, import, absorb.

use crate::cell::CellId;
use crate::mapper::DictInfo;
use crate::shape::Shape;
use crate::state::config::{ConfigError, ConfigSource};
use crate::state::image::{CellImage, DecodeError, Op};
use crate::view::Mirror;
use std::any::Any;

/// A dictionary field of an app.
pub trait Column: Send + Sync {
    /// A point in a transaction that can be gone back to.
    type Mark: Send + 'static;
    /// What a snapshot of it is made of.
    type Mirror: Mirror;
    /// What the field is.
    fn info(&self) -> DictInfo;
    /// Keeps what the transaction changed; cells left empty free their memory.
    fn commit(&mut self);
    /// Undoes what the transaction changed.
    fn rollback(&mut self);
    /// Appends what the transaction changed; called before [`Column::commit`].
    fn redo(&self, out: &mut Vec<Op>);
    /// Appends what the transaction changed, for snapshots; called before [`Column::commit`].
    fn changes(&self, out: &mut Vec<<Self::Mirror as Mirror>::Change>);
    /// Appends all that it holds, for snapshots.
    fn contents(&self, out: &mut Vec<<Self::Mirror as Mirror>::Change>);
    /// What a snapshot is told of a committed change of this dictionary.
    fn change_of(&self, seed: u64, op: &Op) -> Result<<Self::Mirror as Mirror>::Change, DecodeError>;
    /// Evicts the rows that are too many; called before [`Column::redo`]. If none may go, says what there is too much of.
    fn evict(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// Begins a part of the transaction that can be undone by itself.
    fn mark(&mut self) -> Self::Mark;
    /// Ends the part that began at `mark`; what it changed stays if it is to be kept.
    fn settle(&mut self, mark: Self::Mark, keep: bool);
    /// Whether the transaction changed anything.
    fn is_dirty(&self) -> bool;
    /// Whether there is no cell.
    fn is_empty(&self) -> bool;
    /// Number of cells.
    fn len(&self) -> usize;
    /// Appends all cells as bytes.
    fn export(&self, out: &mut Vec<CellImage>);
    /// Puts a cell in place; returns its id under `seed`.
    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError>;
    /// Calls `with` for every cell, in key order: with its id, and its key, of whatever type that is.
    fn cells(&self, with: &mut dyn FnMut(CellId, &dyn Any));
    /// What its cells are encoded like.
    fn shape(&self) -> Shape;
    /// Appends every cell in words: dictionary and key, and what is in it.
    fn in_words(&self, out: &mut Vec<(String, String)>);
    /// Forgets everything.
    fn clear(&mut self);
    /// Gives `other`, unless it has some, the room in which it notes what a transaction changes. That is no state; where it
    /// is kept between transactions, each bee would have some. Called between transactions only.
    fn lend(&mut self, _other: &mut Self)
    where
        Self: Sized,
    {
    }
    /// Takes over all cells of the same dictionary of another bee.
    fn absorb(&mut self, other: &mut Self)
    where
        Self: Sized;
}

/// Something to do with every dictionary of an app.
pub trait Visitor {
    /// Called for each dictionary, in the order of the fields.
    fn column<C: Column>(&mut self, index: u32, column: &mut C);
}

/// Something to do with every dictionary of two bees of one app.
pub trait PairVisitor {
    /// Called for each dictionary, in the order of the fields.
    fn columns<C: Column>(&mut self, index: u32, column: &mut C, other: &mut C);
}

/// The dictionaries of an app; derived with `#[derive(App)]`.
pub trait State: Sized + Send + Sync + 'static {
    /// The dictionaries, in the order of the fields.
    const DICTS: &'static [DictInfo];
    /// Empty dictionaries and the configuration from `source`.
    fn configured(source: &ConfigSource) -> Result<Self, ConfigError>;
    /// Empty dictionaries and the same configuration.
    fn fresh(&self) -> Self;
    /// Whether it has settings.
    const HAS_SETTINGS: bool;
    /// Takes the settings of `other`; dictionaries stay as they are.
    fn configure_as(&mut self, other: &Self);
    /// Visits every dictionary.
    fn visit<V: Visitor>(&mut self, visitor: &mut V);
    /// Visits every dictionary together with that of `other`.
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

/// The mark of one dictionary, whose type it knows.
pub(crate) type ColumnMark = Box<dyn Any + Send>;

/// What a bee does with all its dictionaries at once.
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

    /// Whether anything may be too much: decided when the app is compiled.
    const LIMITED: bool = any_limited(Self::DICTS);

    /// Evicts what is too much, in the order of the fields.
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

    /// Begins a part of the transaction that can be undone by itself.
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

    /// Ends the part that began at `marks`.
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

    fn redo(&mut self, out: &mut Vec<Op>) {
        struct Redo<'a>(&'a mut Vec<Op>);
        impl Visitor for Redo<'_> {
            fn column<C: Column>(&mut self, _: u32, column: &mut C) {
                if !column.info().volatile {
                    column.redo(self.0)
                }
            }
        }
        self.visit(&mut Redo(out))
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

    /// All cells as bytes; those of volatile dictionaries only for a move.
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

    /// Gives `to` the room that transactions need.
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

    /// Its dictionaries: names, and what their cells are encoded like.
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

    /// All cells in words.
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

    /// Calls `with` for every cell of one dictionary, in key order: with its id, and its key, of whatever type that is.
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
