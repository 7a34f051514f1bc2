//! Locals: which of them a name denotes, into which others a value is a view, and who owns what is moved.
//!
//! - [`scope`]: names, and what a change means for the value of a local.
//! - [`views`]: through which values a local may change; `borrows` finds the `&mut` in an expression.
//! - `destructors`: which values may change a local where they go out of scope.
//! - [`owners`]: what is known about the type of a local.
//! - [`keeping`]: how a map keeps a local that the handler moves.
//! - `rebinding`: macros that may give a name to another local.

mod borrows;
mod destructors;
pub(super) mod keeping;
pub(super) mod owners;
pub(crate) mod read;
mod rebinding;
pub(super) mod scope;
pub(super) mod views;
