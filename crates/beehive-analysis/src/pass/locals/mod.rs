//! Locals: which local a name denotes, into which other locals a value is a view, and which local owns a moved value.
//!
//! - [`scope`]: names, and the effect of a change on the known value of a local.
//! - [`views`]: through which values a local may change; `borrows` finds the `&mut` in an expression.
//! - `destructors`: which values may change a local where they go out of scope.
//! - [`owners`]: the known properties of a local's type.
//! - [`keeping`]: how a map keeps a local that the handler moves.
//! - `rebinding`: macros that may bind a name to a different local.

mod borrows;
mod destructors;
pub(super) mod keeping;
pub(super) mod owners;
pub(crate) mod read;
mod rebinding;
pub(super) mod scope;
pub(super) mod views;
