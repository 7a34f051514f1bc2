//! Items that exist only to shape compiler errors. No program that compiles runs any of them.
//!
//! - [`fallbacks`]: what derived code resolves to if a type lacks a derive, so that rustc reports the missing
//!   derive once.
//! - [`row_derives`]: what derived code checks the keys of rows with.
//! - `unusable`: stand-ins for the methods of dictionaries whose key or value type lacks a derive.
//! - `renamed`: methods of `HashMap` that a dictionary has under another name; the error names the right
//!   method.
//! - `all_cells`: iteration over all cells of a dictionary, which is rejected; the error lists the
//!   alternatives.

mod all_cells;
pub(crate) mod fallbacks;
mod renamed;
pub(crate) mod row_derives;
mod unusable;
