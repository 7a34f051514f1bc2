//! Stand-ins for methods and functions that the block calls but does not define, so that the compiler does
//! not report them a second time after the analysis has.

use crate::known::is_standard_function;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{ExprCall, ExprMethodCall};

/// A called method or associated function not defined in this block; it may be defined elsewhere or not at
/// all.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    name: Ident,
    arguments: usize,
    is_method: bool,
}

impl Missing {
    /// Records the call `self.name(..)`.
    pub(crate) fn method(call: &ExprMethodCall) -> Missing {
        Missing { name: call.method.clone(), arguments: call.args.len(), is_method: true }
    }

    /// Records the call `Self::name(..)`; returns `None` if a trait of the standard library may provide the
    /// function.
    pub(crate) fn function(name: &Ident, call: &ExprCall) -> Option<Missing> {
        let standard = is_standard_function(&name.to_string());
        (!standard).then(|| Missing { name: name.clone(), arguments: call.args.len(), is_method: false })
    }

    fn printed(&self) -> TokenStream {
        let name = Ident::new(&self.name.to_string(), Span::call_site());
        let types: Vec<Ident> = (0..self.arguments).map(|i| format_ident!("__T{i}")).collect();
        let receiver = self.is_method.then(|| quote!(&self,));
        quote! {
            fn #name<#(#types),*>(#receiver #(_: #types),*) -> ::beehive::__private::Unknown<__REFUSED> {
                loop {}
            }
        }
    }
}

/// Returns the errors of a block together with stand-ins for the functions it lacks. A stand-in returns a
/// type whose evaluation has already failed, so the compiler reports nothing more about it. The stand-in
/// methods are implemented for references, which method resolution tries last, so that an existing method
/// takes precedence.
pub(crate) fn refused(of: &str, missing: &[Missing], errors: TokenStream) -> TokenStream {
    let printed = |methods: bool| {
        let mut seen: Vec<&Ident> = vec![];
        let mut tokens = TokenStream::new();
        for m in missing.iter().filter(|m| m.is_method == methods) {
            if !seen.contains(&&m.name) {
                seen.push(&m.name);
                tokens.extend(m.printed())
            }
        }

        tokens
    };

    let (methods, functions) = (printed(true), printed(false));
    if methods.is_empty() && functions.is_empty() {
        return errors;
    }

    let module = format_ident!("__refused_{of}");
    quote! {
        #[doc(hidden)]
        #[allow(warnings, clippy::all, clippy::pedantic)]
        mod #module {
            const __REFUSED: usize = { #errors 0 };
            pub(super) trait __Methods { #methods }
            impl<__T: ?Sized> __Methods for &__T {}
            impl<__T: ?Sized> __Methods for &mut __T {}
            pub(super) trait __Functions { #functions }
            impl<__T: ?Sized> __Functions for __T {}
        }
        #[allow(unused_imports)]
        use #module::{__Functions as _, __Methods as _};
    }
}
