//! An app's state: typed dictionaries, which guard accesses and can undo and log their changes.

pub(crate) mod any;
pub(crate) mod column;
pub(crate) mod config;
pub(crate) mod dict;
pub(crate) mod guard;
pub(crate) mod image;
pub(crate) mod names;
pub(crate) mod ordered;
pub(crate) mod rows;
mod slots;
pub(crate) mod table;
pub(crate) mod undo;

pub use column::{Column, PairVisitor, State, Visitor};
pub use config::{Config, ConfigError, ConfigSource};
pub use dict::{Dict, Entry, WholeDict};
pub use image::{CellImage, DecodeError, EncodedCells, Op, Redo};
pub use names::nearest_name;
pub use rows::{OwnedRows, RowEntry, RowKey, Rows};
pub use table::{Table, WholeTable};
