//! Items that exist to improve compiler errors.
//!
//! - [`fallbacks`]: methods to which generated code resolves if a type lacks a derive, so that rustc reports
//!   the missing derive only once.
//! - [`row_derives`]: the check of row-key types.
//! - `unusable`: stand-ins for the methods of dictionaries whose key or value type lacks a derive.
//! - `renamed`: `HashMap` methods that dictionaries have under another name. The error names the right
//!   method.
//! - [`bindings`]: the check that a user's macro does not rebind a name.
//! - `asked`: methods with which a handler would wait for the answer of another app.
//! - `all_cells`: methods that iterate over all cells of a dictionary. Calls are rejected with an error that
//!   lists the alternatives.

mod all_cells;
mod asked;
pub(crate) mod bindings;
pub(crate) mod fallbacks;
mod renamed;
pub(crate) mod row_derives;
mod unusable;
