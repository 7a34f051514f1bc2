//! From nodes to a map function: what no key depends on is removed, what remains is checked and printed.

pub(crate) mod effects;
pub(crate) mod helper;
pub(crate) mod leave;
pub(crate) mod needed;
pub(crate) mod partial;
pub(crate) mod print;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

/// The mapper in a map function; hygienic, so that no name of the user's meets it.
pub(crate) fn mapper() -> Ident {
    Ident::new("__m", Span::mixed_site())
}

/// The constant that derive(App) makes for a field.
pub(crate) fn field_constant(f: &Ident) -> Ident {
    format_ident!("__bh_{}", f, span = f.span())
}

/// Printed code is a slice of code that the compiler has already warned about.
pub(crate) fn allowances() -> TokenStream {
    quote!(#[allow(warnings, clippy::all, clippy::pedantic)])
}
