//! `#[derive(Message)]`: generates the reply and error types of a message, its stable name and its serde
//! implementations.

use super::parts::{Whole, borrows};
use super::{mirror, stable_name};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{DeriveInput, Error, Lit, LitBool, LitStr, Path, Token, Type};

struct Options {
    types: Types,
    name: Option<LitStr>,
    own_serde: bool,
}

/// The types returned by a message's handlers.
struct Types {
    reply: Type,
    error: Type,
    /// Whether the reply may be a `Result`, whose `Err` commits.
    commits_errors: bool,
}

impl Default for Types {
    fn default() -> Types {
        let (reply, error) = (syn::parse_quote!(()), syn::parse_quote!(::beehive::Error));
        Types { reply, error, commits_errors: false }
    }
}

pub(super) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    super::refuse_lifetimes(input)?;
    let Options { types, name, own_serde } = options(input)?;
    let serde = if own_serde { quote!() } else { mirror::serde(input, Whole::Message)? };
    let message = message(input, &types, &name);
    Ok(quote!(#message #serde))
}

fn message(input: &DeriveInput, types: &Types, name: &Option<LitStr>) -> TokenStream {
    let Types { reply, error, commits_errors } = types;
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

    // the types are named by way of `Self`, so that the compiler reports a nonexistent type only once
    let check_reply = (!commits_errors).then(|| {
        quote_spanned! {reply.span()=>
            ::beehive::__private::ReplyCheck::<<Self as ::beehive::Message>::Reply, false>::check();
        }
    });
    let check_error = quote_spanned! {error.span()=>
        ::beehive::__private::ErrorCheck::<<Self as ::beehive::Message>::Error>::check()
    };

    // a reply that is checked here must not be reported again at each handler
    let commits_errors = match commits_errors {
        true => quote!(true),
        false => quote!({
            #[allow(unused_imports)]
            use ::beehive::__private::NoResult as _;
            ::beehive::__private::ReplyCheck::<<Self as ::beehive::Message>::Reply, false>::IS_RESULT
        }),
    };

    let (generics, arguments, bounds) = bounded.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #generics ::beehive::Message for #ident #arguments #bounds {
            type Reply = #reply;
            type Error = #error;
            const NAME: &'static str = #name;
            const PLACE: &'static str = ::core::concat!(::core::file!(), ":", ::core::line!());
            const COMMITS_ERRORS: bool = #commits_errors;
            const CHECKED: fn() = || {
                #[allow(unused_imports)]
                use ::beehive::__private::NoResult as _;
                #check_reply
                #check_error
            };
        }
    }
}

/// Generates a message with an empty encoding, as a stand-in after an error. The error type comes from the
/// option `error`; the reply type is any other type found in the attribute, even under a misspelled option.
pub(super) fn stand_in(input: &DeriveInput) -> TokenStream {
    // the option itself may have been refused
    let mut types = Types { commits_errors: true, ..Types::default() };
    for a in input.attrs.iter().filter(|a| a.path().is_ident("message")) {
        // errors in the attribute have already been reported
        let _ = a.parse_nested_meta(|m| {
            if !m.input.peek(syn::Token![=]) {
                return Ok(());
            }
            let value = m.value()?;
            let meant = match value.peek(syn::Lit) {
                // a type in quotes
                true => match value.parse()? {
                    Lit::Str(quoted) if !m.path.is_ident("name") => quoted.parse().ok(),
                    _ => None,
                },
                false => Some(value.parse()?),
            };
            match meant {
                // the default error type accepts the text of a borrowed error
                Some(meant) if m.path.is_ident("error") && borrows(&meant) => {}
                Some(meant) if m.path.is_ident("error") => types.error = meant,
                Some(meant) => types.reply = owned(meant),
                None => {}
            }
            Ok(())
        });
    }

    let message = message(input, &types, &None);
    let serde = mirror::stand_in(input, "message");
    quote!(#message #serde)
}

/// The options that `#[message(..)]` may contain.
const EXPECTED: &str =
    "expected `reply = Type`, `error = Type`, `commits_errors`, `name = \"..\"` or `serde = false`";

const BORROWED_ERROR: &str = "the error type of a message cannot contain references, because errors are encoded, sent and decoded\n\
    help: if the error is a text, leave `error = ..` out: the default is `beehive::Error`, and every string converts to it\n\
    help: to distinguish errors, use an enum of your own: `#[message(error = Refused)]`";

const BORROWED_REPLY: &str = "the answer type of a message cannot contain references, because answers are encoded, sent and decoded\n\
    help: use an owned type, here and in the handlers: `String` instead of `&str`, `Vec<T>` instead of `&[T]`";

/// Returns the owned counterpart of a borrowing type: `String` for `&str`, `Vec<T>` for `&[T]`, `T` for `&T`.
fn owned(mut ty: Type) -> Type {
    struct Own;

    impl VisitMut for Own {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            visit_mut::visit_type_mut(self, ty);
            let Type::Reference(reference) = ty else { return };
            *ty = match &*reference.elem {
                Type::Path(path) if path.path.is_ident("str") => syn::parse_quote!(::std::string::String),
                Type::Slice(slice) => {
                    let element = &slice.elem;
                    syn::parse_quote!(::std::vec::Vec<#element>)
                }
                other => other.clone(),
            }
        }
    }

    Own.visit_type_mut(&mut ty);
    ty
}

/// Parses the value of an option.
fn value<T: Parse>(option: &ParseNestedMeta) -> syn::Result<T> {
    let value = option.value().and_then(|value| value.parse());
    value.map_err(|error| Error::new(error.span(), EXPECTED))
}

/// Parses the value of an option that must be a type without borrowed data.
fn owning(option: &ParseNestedMeta, refusal: &str) -> syn::Result<Type> {
    let ty: Type = value(option)?;
    match borrows(&ty) {
        true => Err(Error::new_spanned(ty, refusal)),
        false => Ok(ty),
    }
}

fn options(input: &DeriveInput) -> syn::Result<Options> {
    let mut options = Options { types: Types::default(), name: None, own_serde: false };
    let mut given: Vec<Path> = vec![];

    for a in input.attrs.iter().filter(|a| a.path().is_ident("message")) {
        a.parse_nested_meta(|m| {
            if given.contains(&m.path) {
                let text = format!("the same option is given twice\nhelp: {EXPECTED}, each at most once");
                return Err(m.error(text));
            }
            given.push(m.path.clone());

            if m.path.is_ident("reply") {
                options.types.reply = owning(&m, BORROWED_REPLY)?;
                return Ok(());
            }

            if m.path.is_ident("error") {
                options.types.error = owning(&m, BORROWED_ERROR)?;
                return Ok(());
            }

            if m.path.is_ident("commits_errors") && !m.input.peek(Token![=]) {
                options.types.commits_errors = true;
                return Ok(());
            }

            if m.path.is_ident("name") {
                options.name = Some(value(&m)?);
                return Ok(());
            }

            if m.path.is_ident("serde") {
                options.own_serde = !value::<LitBool>(&m)?.value;
                return Ok(());
            }

            Err(m.error(EXPECTED))
        })?;
    }

    Ok(options)
}
