//! The derive macros: apps, keys, messages.

mod app;
mod key;
mod message;
mod mirror;
mod parts;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Error};

/// What a derive makes of an item.
struct Derive {
    expand: fn(&DeriveInput) -> syn::Result<TokenStream>,
    /// What stands in its place after an error: the same promises, kept by nobody. Else the compiler would miss them
    /// wherever the item is used, and one mistake would be many errors.
    stand_in: fn(&DeriveInput) -> TokenStream,
}

impl Derive {
    fn run(&self, item: TokenStream) -> TokenStream {
        let input = match syn::parse2(item) {
            Ok(input) => input,
            Err(e) => return crate::pages::compile_error(&e),
        };
        (self.expand)(&input).unwrap_or_else(|e| {
            let (error, stand_in) = (crate::pages::compile_error(&e), (self.stand_in)(&outliving(input)));
            quote::quote!(#error #stand_in)
        })
    }
}

/// Refuses a type with lifetimes, for it borrows something.
fn refuse_lifetimes(input: &DeriveInput) -> syn::Result<()> {
    match input.generics.lifetimes().next() {
        Some(lifetime) => Err(Error::new_spanned(lifetime, parts::BORROWED)),
        None => Ok(()),
    }
}

/// The same item, whose lifetimes are said not to end.
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
