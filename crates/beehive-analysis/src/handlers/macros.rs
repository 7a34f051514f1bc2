//! Lets the compiler check that the macros known to the analysis by a bare name are those of the standard
//! library.
//!
//! The check calls each macro in a place where all of them are imported from the standard library. If the name has a
//! different meaning in the user's code, through `macro_rules!` or an import, it is ambiguous there, which is an error
//! at the user's own call. Otherwise both meanings are the same macro.

use crate::emit::allowances;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// Prints the checks, in a function that is never called.
pub(crate) fn checks(macros: &[Ident]) -> TokenStream {
    let calls: Vec<TokenStream> = macros.iter().filter_map(call).collect();
    if calls.is_empty() {
        return TokenStream::new();
    }

    let allowances = allowances();
    quote! {
        #allowances
        fn __macros() {
            use ::beehive::__private::macros::*;
            #(let _ = || { #calls };)*
        }
    }
}

/// Returns a call accepted by the standard library's macro.
fn call(name: &Ident) -> Option<TokenStream> {
    let arguments = match name.to_string().as_str() {
        "vec" => return Some(quote!(let _: ::std::vec::Vec<()> = #name![];)),
        // their values must be used
        "format" | "format_args" => return Some(quote!(let _ = #name!("");)),
        "concat" | "stringify" | "line" | "file" | "column" | "module_path" => {
            return Some(quote!(let _ = #name!();));
        }
        "write" | "writeln" => {
            return Some(quote! {
                use ::core::fmt::Write as _;
                let _ = #name!(::std::string::String::new(), "");
            });
        }
        "print" | "eprint" | "panic" | "println" | "eprintln" => quote!(""),
        "matches" | "assert_eq" | "debug_assert_eq" => quote!((), ()),
        "assert_ne" | "debug_assert_ne" => quote!(1, 2),
        "assert" | "debug_assert" => quote!(true),
        "cfg" => quote!(all()),
        "pure" => quote!(()),
        "dbg" | "todo" | "unimplemented" | "unreachable" => quote!(),
        _ => return None,
    };

    Some(quote!(#name!(#arguments);))
}
