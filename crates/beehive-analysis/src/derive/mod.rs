//! The derive macros for apps, keys and messages.

mod app;
mod app_options;
mod fields;
mod key;
mod message;
mod mirror;
mod parts;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Error};

/// The two expansions of a derive macro.
struct Derive {
    expand: fn(&DeriveInput) -> syn::Result<TokenStream>,
    /// Printed in place of the expansion after an error: implementations of the same traits that do nothing. Without
    /// them, one mistake would cause many errors, because the compiler would report a missing trait at every use of the
    /// item.
    stand_in: fn(&DeriveInput) -> TokenStream,
}

impl Derive {
    fn run(&self, item: TokenStream) -> TokenStream {
        let input = match syn::parse2(item) {
            Ok(input) => input,
            Err(e) => return crate::errors::pages::compile_error(&e),
        };
        (self.expand)(&input).unwrap_or_else(|e| {
            let (error, stand_in) =
                (crate::errors::pages::compile_error(&e), (self.stand_in)(&outliving(input)));
            quote::quote!(#error #stand_in)
        })
    }
}

/// Refuses a type with lifetime parameters, because such a type borrows.
fn refuse_lifetimes(input: &DeriveInput) -> syn::Result<()> {
    match input.generics.lifetimes().next() {
        Some(lifetime) => Err(Error::new_spanned(lifetime, parts::BORROWED)),
        None => Ok(()),
    }
}

/// Returns the same item with its lifetimes bounded by `'static`.
fn outliving(mut input: DeriveInput) -> DeriveInput {
    for lifetime in input.generics.lifetimes_mut() {
        lifetime.bounds.push(syn::Lifetime::new("'static", proc_macro2::Span::call_site()))
    }
    input
}

/// Expands `#[derive(App)]`.
pub fn derive_app(item: TokenStream) -> TokenStream {
    Derive { expand: app::expand, stand_in: app::stand_in }.run(item)
}

/// Expands `#[derive(Key)]`.
pub fn derive_key(item: TokenStream) -> TokenStream {
    Derive { expand: key::expand, stand_in: key::stand_in }.run(item)
}

/// Expands `#[derive(Message)]`.
pub fn derive_message(item: TokenStream) -> TokenStream {
    Derive { expand: message::expand, stand_in: message::stand_in }.run(item)
}

/// Combines an error with those found so far.
fn also(known: &mut Option<Error>, error: Error) {
    match known {
        Some(k) => k.combine(error),
        None => *known = Some(error),
    }
}

/// Returns a type's stable name: the given name or, by default, the names of its crate and itself.
fn stable_name(given: &Option<syn::LitStr>, ident: &syn::Ident) -> TokenStream {
    let name = ident.to_string();
    match given {
        Some(given) => quote::quote!(#given),
        None => quote::quote!(::core::concat!(::core::env!("CARGO_PKG_NAME"), "::", #name)),
    }
}
