//! Items that exist to improve compiler errors.
//!
//! - [`fallbacks`]: methods to which derived code resolves if a type lacks a derive, so rustc reports the missing
//!   derive only once.
//! - [`row_derives`]: the check of the types of row keys.
//! - `unusable`: stand-ins for the methods of dictionaries whose key or value type lacks a derive.
//! - `renamed`: methods of `HashMap` that dictionaries have under another name. The error names the right method.
//! - `all_cells`: methods that iterate over all cells of a dictionary, which is rejected. The error lists the
//!   alternatives.

mod all_cells;
pub(crate) mod fallbacks;
mod renamed;
pub(crate) mod row_derives;
mod unusable;
