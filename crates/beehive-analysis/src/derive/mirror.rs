//! Implements serde for types in crates that do not depend on serde: a hidden copy of the type derives
//! serde's traits, and the type calls the copy's functions.
//!
//! In serde's terms, the copy is a remote derive: a private type of the same shape whose functions serialize
//! the original, placed next to the original so that it can access private fields. The user's `#[serde(..)]`
//! attributes are copied to it.

use super::parts::{Parts, Whole};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Generics, WherePredicate};

/// Implements `Serialize` and `Deserialize`. `of` determines which attribute the error for a union suggests for turning
/// this off.
pub(super) fn serde(input: &DeriveInput, of: Whole) -> syn::Result<TokenStream> {
    let ident = &input.ident;
    if let Data::Union(_) = &input.data {
        let attribute = of.attribute();
        return Err(Error::new_spanned(
            ident,
            format!(
                "a union cannot be encoded\n\
                 help: use an enum, or implement `Serialize` and `Deserialize` yourself and write `#[{attribute}(serde = false)]`"
            ),
        ));
    }

    let mirror = format_ident!("__Serde{}", ident, span = ident.span());
    let (_, arguments, _) = input.generics.split_for_impl();
    let original = quote!(#ident #arguments);

    // serde adds the copy's generics to the remote path
    let name = ident.to_string();
    let renamed =
        input.attrs.iter().any(|a| a.path().is_ident("serde") && mentions(a.to_token_stream(), "rename"));
    let rename = (!renamed).then(|| quote!(#[serde(rename = #name)]));
    let attributes = input.attrs.iter().filter(|a| a.path().is_ident("serde"));

    let parts = Parts::of(input, of, &original);
    if let Some(borrowed) = parts.borrowed() {
        return Err(borrowed);
    }

    let body = body(input, &original, &parts.assumed());
    let serialize = bounded(&input.generics, &quote!(::beehive::__private::serde::Serialize), None);
    let de: syn::Lifetime = syn::Lifetime::new("'__de", Span::mixed_site());
    let deserialize =
        bounded(&input.generics, &quote!(::beehive::__private::serde::Deserialize<#de>), Some(&de));
    let (serialize_generics, _, serialize_bounds) = serialize.split_for_impl();

    let (deserialize_generics, _, deserialize_bounds) = deserialize.split_for_impl();
    let turbofish = arguments.as_turbofish();
    let (checked, write, read) = match parts.is_empty() {
        true => (quote!(), quote!(#mirror #turbofish::serialize), quote!(#mirror #turbofish::deserialize)),
        false => (parts.checked(input, &mirror), quote!(__Through::write), quote!(__Through::read)),
    };

    Ok(quote! {
        #[doc(hidden)]
        #[allow(warnings, clippy::all, clippy::pedantic)]
        const _: () = {
            #[derive(::beehive::__private::serde::Serialize, ::beehive::__private::serde::Deserialize)]
            #[serde(crate = "::beehive::__private::serde", remote = #name)]
            #rename
            #(#attributes)*
            #body
            #checked

            #[automatically_derived]
            impl #serialize_generics ::beehive::__private::serde::Serialize for #original #serialize_bounds {
                #[inline]
                fn serialize<__S: ::beehive::__private::serde::Serializer>(&self, __serializer: __S)
                    -> ::core::result::Result<__S::Ok, __S::Error>
                {
                    #write(self, __serializer)
                }
            }

            #[automatically_derived]
            impl #deserialize_generics ::beehive::__private::serde::Deserialize<#de> for #original #deserialize_bounds {
                #[inline]
                fn deserialize<__D: ::beehive::__private::serde::Deserializer<#de>>(__deserializer: __D)
                    -> ::core::result::Result<Self, __D::Error>
                {
                    #read(__deserializer)
                }
            }
        };
    })
}

/// Implements `Serialize` and `Deserialize` with functions that are never called, unless the attribute
/// `attribute` mentions `serde`.
pub(super) fn stand_in(input: &DeriveInput, attribute: &str) -> TokenStream {
    let own = |a: &syn::Attribute| a.path().is_ident(attribute) && mentions(a.to_token_stream(), "serde");
    if input.attrs.iter().any(own) {
        return TokenStream::new();
    }

    let ident = &input.ident;
    let (serialize_generics, arguments, bounds) = input.generics.split_for_impl();
    let de: syn::Lifetime = syn::Lifetime::new("'__de", Span::mixed_site());
    let mut deserialize = input.generics.clone();
    deserialize.params.insert(0, GenericParam::Lifetime(syn::LifetimeParam::new(de.clone())));
    let (deserialize_generics, _, _) = deserialize.split_for_impl();

    quote! {
        #[automatically_derived]
        impl #serialize_generics ::beehive::__private::serde::Serialize for #ident #arguments #bounds {
            fn serialize<__S: ::beehive::__private::serde::Serializer>(&self, _: __S)
                -> ::core::result::Result<__S::Ok, __S::Error>
            {
                loop {}
            }
        }
        #[automatically_derived]
        impl #deserialize_generics ::beehive::__private::serde::Deserialize<#de> for #ident #arguments #bounds {
            fn deserialize<__D: ::beehive::__private::serde::Deserializer<#de>>(_: __D)
                -> ::core::result::Result<Self, __D::Error>
            {
                loop {}
            }
        }
    }
}

pub(super) fn mentions(tokens: TokenStream, name: &str) -> bool {
    crate::syntax::find_name(tokens, name).is_some()
}

/// Prints the copy of the type.
fn body(input: &DeriveInput, original: &TokenStream, assumed: &[WherePredicate]) -> TokenStream {
    let mirror = format_ident!("__Serde{}", input.ident, span = input.ident.span());
    let generics = without_bounds(&input.generics);
    let mut bounded = input.generics.clone();
    if !assumed.is_empty() {
        bounded.make_where_clause().predicates.extend(assumed.iter().cloned())
    }

    let bounds = &bounded.where_clause;
    match &input.data {
        Data::Struct(s) => {
            let fields = fields(&s.fields, original);
            match &s.fields {
                Fields::Named(_) => quote!(struct #mirror #generics #bounds #fields),
                _ => quote!(struct #mirror #generics #fields #bounds;),
            }
        }
        Data::Enum(e) => {
            let variants = e.variants.iter().map(|v| {
                let attributes = v.attrs.iter().filter(|a| a.path().is_ident("serde"));
                let (ident, fields) = (&v.ident, fields(&v.fields, original));
                quote!(#(#attributes)* #ident #fields)
            });
            quote!(enum #mirror #generics #bounds { #(#variants),* })
        }
        Data::Union(_) => quote!(),
    }
}

fn fields(fields: &Fields, original: &TokenStream) -> TokenStream {
    let all = fields.iter().map(|f| {
        let attributes = f.attrs.iter().filter(|a| a.path().is_ident("serde"));
        let ty = name_self(f.ty.to_token_stream(), original);
        match &f.ident {
            Some(ident) => quote!(#(#attributes)* #ident: #ty),
            None => quote!(#(#attributes)* #ty),
        }
    });

    match fields {
        Fields::Named(_) => quote!({ #(#all),* }),
        Fields::Unnamed(_) => quote!((#(#all),*)),
        Fields::Unit => quote!(),
    }
}

/// Replaces `Self` with the original type; inside the copy, `Self` would be the copy.
pub(super) fn name_self(tokens: TokenStream, original: &TokenStream) -> TokenStream {
    let replace = |t: TokenTree| -> TokenStream {
        match t {
            TokenTree::Ident(i) if i == Ident::new("Self", i.span()) => original.clone(),
            TokenTree::Group(g) => {
                let mut inner = Group::new(g.delimiter(), name_self(g.stream(), original));
                inner.set_span(g.span());
                TokenTree::from(inner).into()
            }
            t => t.into(),
        }
    };

    tokens.into_iter().flat_map(replace).collect()
}

/// Returns the generics as used in a declaration, without the `where` clause.
fn without_bounds(generics: &Generics) -> Generics {
    Generics { where_clause: None, ..generics.clone() }
}

fn bounded(generics: &Generics, bound: &TokenStream, lifetime: Option<&syn::Lifetime>) -> Generics {
    let mut generics = generics.clone();
    for p in generics.type_params_mut() {
        p.bounds.push(syn::parse_quote!(#bound));
    }
    if let Some(lifetime) = lifetime {
        generics.params.insert(0, GenericParam::Lifetime(syn::LifetimeParam::new(lifetime.clone())));
    }
    generics
}
