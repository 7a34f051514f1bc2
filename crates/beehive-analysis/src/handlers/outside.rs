//! Expands `#[rcv]` and `#[every]` outside a `#[handlers]` block: either the block lacks that attribute, or
//! the item is not a method.

use crate::errors::pages;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Error, ImplItemFn};

/// Expands `#[rcv]` or `#[every]` by itself. The method is kept and only gets a warning. An app without
/// handlers is an error where the app is started; the warning is visible if there are no errors.
pub fn expand_outside(attribute: &str, item: TokenStream) -> TokenStream {
    let Ok(mut method) = syn::parse2::<ImplItemFn>(item.clone()) else {
        let text = format!("`#[{attribute}]` belongs on a method of a `#[handlers]` block");
        let error = pages::compile_error(&Error::new_spanned(&item, text));
        return quote!(#item #error);
    };

    let warning = quote_spanned!(method.sig.ident.span()=> ::beehive::__private::is_no_handler(););
    let statements = &method.block.stmts;
    method.block = syn::parse_quote!({ #warning #(#statements)* });
    method.into_token_stream()
}
