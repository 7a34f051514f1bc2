//! Makes `#[derive(App)]` report a type that cannot be a row key with a single error, no matter how many
//! derives the type lacks.
//!
//! If generated code had the bound [`RowKey`], the compiler would report each missing trait separately.
//! Instead, that code calls `(&&&RowDerives::of(&app.table)).row_key()`. The compiler chooses the first of
//! the three impls below that fits, and only then checks the method's bound, so that is the bound it reports.

use crate::state::{RowKey, Table};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::hash::Hash;
use std::marker::PhantomData;

/// The type of a table's row keys.
#[derive(Debug)]
pub struct RowDerives<R>(PhantomData<R>);

impl<R> RowDerives<R> {
    /// Returns the value on which the generated code calls the check.
    pub fn of<K, V>(_: &Table<K, R, V>) -> RowDerives<R> {
        RowDerives(PhantomData)
    }
}

/// Implemented if the type is a row key.
pub trait RowWithAll {
    /// Accepts the type.
    fn row_key(&self) {}
}
impl<R: RowKey> RowWithAll for &&RowDerives<R> {}

/// Implemented if the type lacks at most `Hash`, which is the derive most often forgotten, because cell keys
/// do not need it.
pub trait RowWithoutHash<R> {
    /// Reports the missing `Hash`.
    fn row_key(&self)
    where
        R: HashedRow,
    {
    }
}
impl<R: Ord + Clone + Serialize + DeserializeOwned + Send + Sync + 'static> RowWithoutHash<R>
    for &RowDerives<R>
{
}

/// Implemented for all types.
pub trait RowOtherwise<R> {
    /// Reports that the type is not a row key.
    fn row_key(&self)
    where
        R: StoredRow,
    {
    }
}
impl<R> RowOtherwise<R> for RowDerives<R> {}

/// Stand-in for `Hash`, whose error names the remedy.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a table's rows, because it is not `Hash`",
    label = "not `Hash`",
    note = "add `Hash` to its derives, or to the derives of the types in it: rows in a large cell are found by hash",
    note = "more: beehive::guide::errors::derives"
)]
pub trait HashedRow {}
#[diagnostic::do_not_recommend]
impl<R: Hash> HashedRow for R {}

/// Stand-in for [`RowKey`], whose error names all derives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a table's rows",
    label = "not a row key",
    note = "derive whichever of these are missing: Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize (serde with its feature `derive` in Cargo.toml)",
    note = "more: beehive::guide::errors::derives"
)]
pub trait StoredRow {}
#[diagnostic::do_not_recommend]
impl<R: RowKey> StoredRow for R {}
