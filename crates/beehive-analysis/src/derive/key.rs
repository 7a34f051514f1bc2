//! `#[derive(Key)]`: generates the canonical encoding of a key, its stable name and its serde
//! implementations.

use super::parts::{Parts, Whole};
use super::{mirror, stable_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, LitBool, LitStr};

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    own_serde: bool,
}

pub(super) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    super::refuse_lifetimes(input)?;
    let options = options(input)?;
    let ident = &input.ident;

    // a derived type without generic parameters has no generic arguments either
    let parts = match options.own_serde {
        true => None,
        false => Some(Parts::of(input, Whole::Key, &ident.to_token_stream())),
    };

    let destructure = |fields: &Fields| destructure(fields, parts.as_ref());
    let (feed, describe) = match &input.data {
        Data::Struct(s) => {
            let (pattern, names) = destructure(&s.fields);
            let (feed, describe) = (feeds(&names), describes(&names, &quote!(", ")));
            (quote!(let Self #pattern = self; #feed), quote!(let Self #pattern = self; #describe))
        }
        Data::Enum(e) if e.variants.is_empty() => {
            return Err(Error::new_spanned(
                ident,
                "an enum without variants cannot be a key\nhelp: add a variant: the key of a cell is a value of this type",
            ));
        }
        Data::Enum(e) => {
            let (mut feed, mut describe) = (vec![], vec![]);
            for (index, v) in e.variants.iter().enumerate() {
                let (pattern, names) = destructure(&v.fields);
                let (variant, index, label) = (&v.ident, index as u64, v.ident.to_string());
                let (f, d) = (feeds(&names), describes(&names, &quote!(" ")));
                let space = (!names.is_empty()).then(|| quote!(__out.push(' ');));
                feed.push(quote!(Self::#variant #pattern => { __hasher.word(#index); #f }));
                describe.push(quote!(Self::#variant #pattern => { __out.push_str(#label); #space #d }));
            }

            (quote!(match self { #(#feed)* }), quote!(match self { #(#describe)* }))
        }
        Data::Union(_) => {
            return Err(Error::new_spanned(ident, "a union cannot be a key\nhelp: use a struct or an enum"));
        }
    };

    let name = stable_name(&options.name, ident);
    let encoding = bounded(input, &quote!(::beehive::__private::KeyEncoding));
    let key = bounded(input, &quote!(::beehive::__private::KeyType));
    let (encoding_generics, arguments, encoding_bounds) = encoding.split_for_impl();
    let (key_generics, _, key_bounds) = key.split_for_impl();
    let serde = if options.own_serde { quote!() } else { mirror::serde(input, Whole::Key)? };

    let ordered = ordered(input);
    let otherwise = quote! {
        #[allow(unused_imports)]
        use ::beehive::__private::KeyPartOtherwise as _;
    };

    Ok(quote! {
        #[automatically_derived]
        impl #encoding_generics ::beehive::__private::KeyEncoding for #ident #arguments #encoding_bounds {
            #[allow(unused_variables)]
            #[inline]
            fn feed(&self, __hasher: &mut ::beehive::__private::CellHasher) { #otherwise #feed }
            #[allow(unused_variables)]
            fn describe(&self, __out: &mut ::std::string::String) { #otherwise #describe }
        }
        #[automatically_derived]
        impl #key_generics ::beehive::__private::KeyType for #ident #arguments #key_bounds {
            const TYPE_NAME: &'static str = #name;
            const IS_FUSED: bool = true;
        }
        #serde
        #ordered
    })
}

/// Names the type in a position that only a key type may take. Missing derives (such as `Ord`) are reported here, at
/// the type's name.
fn ordered(input: &DeriveInput) -> TokenStream {
    let ident = &input.ident;
    let key = bounded(input, &quote!(::beehive::Key));
    let (generics, arguments, bounds) = key.split_for_impl();
    let checked = quote_spanned!(ident.span()=> ::beehive::__private::OrderedKey<#ident #arguments>);

    quote! {
        const _: () = {
            #[allow(dead_code)]
            fn __ordered #generics(_: #checked) #bounds {}
        };
    }
}

/// Generates a key with an empty encoding, as a stand-in after an error.
pub(super) fn stand_in(input: &DeriveInput) -> TokenStream {
    let ident = &input.ident;
    let name = stable_name(&None, ident);
    let encoding = bounded(input, &quote!(::beehive::__private::KeyEncoding));
    let key = bounded(input, &quote!(::beehive::__private::KeyType));
    let (encoding_generics, arguments, encoding_bounds) = encoding.split_for_impl();
    let (key_generics, _, key_bounds) = key.split_for_impl();

    let serde = mirror::stand_in(input, "key");
    quote! {
        #[automatically_derived]
        impl #encoding_generics ::beehive::__private::KeyEncoding for #ident #arguments #encoding_bounds {
            fn feed(&self, _: &mut ::beehive::__private::CellHasher) {}
            fn describe(&self, _: &mut ::std::string::String) {}
        }
        #[automatically_derived]
        impl #key_generics ::beehive::__private::KeyType for #ident #arguments #key_bounds {
            const TYPE_NAME: &'static str = #name;
            const IS_FUSED: bool = true;
        }
        #serde
    }
}

fn options(input: &DeriveInput) -> syn::Result<Options> {
    let mut options = Options::default();
    for a in input.attrs.iter().filter(|a| a.path().is_ident("key")) {
        a.parse_nested_meta(|m| {
            if m.path.is_ident("name") {
                options.name = Some(m.value()?.parse()?);
                return Ok(());
            }

            if m.path.is_ident("serde") {
                options.own_serde = !m.value()?.parse::<LitBool>()?.value;
                return Ok(());
            }

            Err(m.error("expected `name = \"..\"` or `serde = false`"))
        })?;
    }

    Ok(options)
}

/// Returns the generics of a type, with `bound` on each type parameter.
fn bounded(input: &DeriveInput, bound: &TokenStream) -> syn::Generics {
    let mut generics = input.generics.clone();
    for p in generics.type_params_mut() {
        p.bounds.push(syn::parse_quote!(#bound));
    }
    generics
}

/// A field as bound by the printed pattern; the name has the span of the field's type.
struct Bound {
    name: Ident,
    /// Whether [`Parts`] reports the field if its type cannot be encoded.
    is_checked: bool,
}

/// Returns a pattern that binds all fields, and the names it gives them.
fn destructure(fields: &Fields, parts: Option<&Parts>) -> (TokenStream, Vec<Bound>) {
    let bound = |(i, f): (usize, &syn::Field)| Bound {
        name: format_ident!("__field{i}", span = f.ty.span()),
        is_checked: parts.is_some_and(|parts| parts.has(&f.ty)),
    };

    let bound: Vec<Bound> = fields.iter().enumerate().map(bound).collect();
    let names = bound.iter().map(|b| &b.name);
    let pattern = match fields {
        Fields::Named(named) => {
            let idents = named.named.iter().map(|f| &f.ident);
            quote!({ #(#idents: #names),* })
        }
        Fields::Unnamed(_) => quote!((#(#names),*)),
        Fields::Unit => quote!(),
    };

    (pattern, bound)
}

impl Bound {
    /// Prints a call to a method of `KeyEncoding`. If the field's type lacks that trait and [`Parts`] reports
    /// this, the call compiles without a second error.
    fn call(&self, method: &str, argument: &str) -> TokenStream {
        let span = self.name.span();
        let (name, method) = (&self.name, Ident::new(method, span));
        // uses call-site hygiene, so that the name refers to the generated function's parameter
        let argument = Ident::new(argument, Span::call_site());
        match self.is_checked {
            true => quote_spanned!(span=> ::beehive::__private::KeyPart(#name).#method(#argument);),
            false => quote_spanned!(span=> ::beehive::__private::KeyEncoding::#method(#name, #argument);),
        }
    }
}

fn feeds(fields: &[Bound]) -> TokenStream {
    fields.iter().map(|f| f.call("feed", "__hasher")).collect()
}

fn describes(fields: &[Bound], separator: &TokenStream) -> TokenStream {
    let parts = fields.iter().enumerate().map(|(i, f)| {
        let (before, part) =
            ((i > 0).then(|| quote!(__out.push_str(#separator);)), f.call("describe", "__out"));
        quote!(#before #part)
    });
    parts.collect()
}
