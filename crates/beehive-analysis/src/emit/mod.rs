//! Turns nodes into a map function: removes nodes on which no key depends, then checks and prints the rest.

pub(crate) mod effects;
pub(crate) mod helper;
mod integer_types;
mod integers;
pub(crate) mod leave;
pub(crate) mod needed;
pub(crate) mod panics;
pub(crate) mod print;
pub(crate) mod typed;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

/// Returns the name of the mapper in a map function. It is hygienic, so it cannot collide with any of the
/// user's names.
pub(crate) fn mapper() -> Ident {
    Ident::new("__m", Span::mixed_site())
}

/// Returns the name of the constant generated for a field by derive(App).
pub(crate) fn field_constant(f: &Ident) -> Ident {
    format_ident!("__bh_{}", f, span = f.span())
}

/// Silences lints in printed code, which repeats code that the compiler lints anyway.
pub(crate) fn allowances() -> TokenStream {
    quote!(#[allow(warnings, clippy::all, clippy::pedantic)])
}
