//! `#[derive(Message)]`: generates the reply type of a message, its stable name and its serde
//! implementations.

use super::parts::Whole;
use super::{mirror, stable_name};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, LitBool, LitStr, Type};

struct Options {
    reply: Type,
    name: Option<LitStr>,
    own_serde: bool,
}

pub(super) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    super::refuse_lifetimes(input)?;
    let Options { reply, name, own_serde } = options(input)?;
    let serde = if own_serde { quote!() } else { mirror::serde(input, Whole::Message)? };
    let message = message(input, &reply, &name);
    Ok(quote!(#message #serde))
}

fn message(input: &DeriveInput, reply: &Type, name: &Option<LitStr>) -> TokenStream {
    let ident = &input.ident;
    let name = stable_name(name, ident);
    let mut bounded = input.generics.clone();

    for p in bounded.type_params_mut() {
        p.bounds.push(syn::parse_quote!(::beehive::__private::serde::Serialize));
        p.bounds.push(syn::parse_quote!(::beehive::__private::serde::de::DeserializeOwned));
        p.bounds.push(syn::parse_quote!(::core::marker::Send));
        p.bounds.push(syn::parse_quote!(::core::marker::Sync));
        p.bounds.push(syn::parse_quote!('static));
    }

    let (generics, arguments, bounds) = bounded.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #generics ::beehive::Message for #ident #arguments #bounds {
            type Reply = #reply;
            const NAME: &'static str = #name;
            const PLACE: &'static str = ::core::concat!(::core::file!(), ":", ::core::line!());
        }
    }
}

/// Generates a message with an empty encoding, as a stand-in after an error. The reply type is any type found
/// in the attribute, even under a misspelled option.
pub(super) fn stand_in(input: &DeriveInput) -> TokenStream {
    let mut reply: Option<Type> = None;
    for a in input.attrs.iter().filter(|a| a.path().is_ident("message")) {
        // errors in the attribute have already been reported
        let _ = a.parse_nested_meta(|m| {
            let value = m.value()?;
            match value.peek(syn::Lit) {
                true => drop(value.parse::<syn::Lit>()?),
                false => reply = Some(value.parse()?),
            }
            Ok(())
        });
    }

    let message = message(input, &reply.unwrap_or_else(|| syn::parse_quote!(())), &None);
    let serde = mirror::stand_in(input, "message");
    quote!(#message #serde)
}

fn options(input: &DeriveInput) -> syn::Result<Options> {
    let mut options = Options { reply: syn::parse_quote!(()), name: None, own_serde: false };
    for a in input.attrs.iter().filter(|a| a.path().is_ident("message")) {
        a.parse_nested_meta(|m| {
            if m.path.is_ident("reply") {
                options.reply = m.value()?.parse()?;
                return Ok(());
            }

            if m.path.is_ident("name") {
                options.name = Some(m.value()?.parse()?);
                return Ok(());
            }

            if m.path.is_ident("serde") {
                options.own_serde = !m.value()?.parse::<LitBool>()?.value;
                return Ok(());
            }

            Err(m.error("expected `reply = Type`, `name = \"..\"` or `serde = false`"))
        })?;
    }

    Ok(options)
}
