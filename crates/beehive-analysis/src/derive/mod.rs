//! The derive macros: apps, keys, messages.

mod app;
mod key;
mod message;
mod mirror;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Error};

fn expand(item: TokenStream, with: fn(DeriveInput) -> syn::Result<TokenStream>) -> TokenStream {
    match syn::parse2(item).and_then(with) {
        Ok(tokens) => tokens,
        Err(e) => crate::pages::compile_error(&e),
    }
}

/// Expands `#[derive(App)]`.
pub fn derive_app(item: TokenStream) -> TokenStream {
    expand(item, app::expand)
}

/// Expands `#[derive(Key)]`.
pub fn derive_key(item: TokenStream) -> TokenStream {
    expand(item, key::expand)
}

/// Expands `#[derive(Message)]`.
pub fn derive_message(item: TokenStream) -> TokenStream {
    expand(item, message::expand)
}

/// Both errors, if there are two.
fn also(known: &mut Option<Error>, error: Error) {
    match known {
        Some(k) => k.combine(error),
        None => *known = Some(error),
    }
}

/// The stable name of a type: its crate's and its own, unless it is given another.
fn stable_name(given: &Option<syn::LitStr>, ident: &syn::Ident) -> TokenStream {
    let name = ident.to_string();
    match given {
        Some(given) => quote::quote!(#given),
        None => quote::quote!(::core::concat!(::core::env!("CARGO_PKG_NAME"), "::", #name)),
    }
}
