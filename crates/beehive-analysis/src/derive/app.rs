//! `#[derive(App)]`: generates the constants used by maps, and the code that opens and visits all dictionaries of an
//! app.

use super::app_options::{Durability, kebab_case, options};
use super::fields::{DICTIONARIES_MAX, Field, Kind, RowLimit, Share, container, fields};
use crate::emit::field_constant;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Type};

pub(super) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "an app is a struct of `Dict`, `Table` and `Config` fields\nhelp: `struct App { counts: Dict<String, u64> }`",
        ));
    };

    let (options, fields) = match (options(input), fields(&input.ident, &data.fields)) {
        (Ok(options), Ok(fields)) => (options, fields),
        (Err(mut e), Err(also)) => {
            e.combine(also);
            return Err(e);
        }
        (Err(e), _) | (_, Err(e)) => return Err(e),
    };

    let name = match &options.name {
        Some(name) => name.value(),
        None => kebab_case(&input.ident.to_string()),
    };

    let constants = fields.iter().map(|f| constant(f, &name));
    let (replication, cells) = (options.replication.iter(), options.cells.iter());
    let durability = options.durability.map(|durability| match durability {
        Durability::Disk => quote!(Disk),
        Durability::Memory => quote!(Memory),
    });
    let durability = durability.iter();
    let ident = &input.ident;
    let bounded = with_bounds(input, &fields);
    let (_, _, checked) = bounded.split_for_impl();
    let generics = state_generics(input, &fields);

    let (generics, arguments, bounds) = generics.split_for_impl();
    let state = state(input, &fields);
    let row_checks = row_checks(input, &fields);
    let implementation = quote_spanned!(ident.span()=> impl);
    Ok(quote! {
        #[automatically_derived]
        #[allow(non_upper_case_globals, dead_code, trivial_bounds, private_bounds)]
        #implementation #generics #ident #arguments #checked { #(#constants)* }
        #[automatically_derived]
        #[allow(trivial_bounds, clippy::needless_update)]
        impl #generics ::beehive::App for #ident #arguments #bounds {
            const NAME: &'static str = #name;
            const PLACE: &'static str = ::core::concat!(::core::file!(), ":", ::core::line!());
            const OPTIONS: ::beehive::__private::AppOptions = ::beehive::__private::AppOptions {
                #(replication: #replication,)*
                #(cells: ::core::option::Option::Some(#cells),)*
                #(durability: ::core::option::Option::Some(::beehive::__private::Durability::#durability),)*
                ..::beehive::__private::AppOptions::DEFAULT
            };
        }
        #state
        #row_checks
    })
}

/// Generates an app without dictionaries after an error. It still defines the constants used by maps, so that
/// the macros report no further errors.
pub(super) fn stand_in(input: &DeriveInput) -> TokenStream {
    let mut fields: Vec<Field> = vec![];
    if let Data::Struct(data) = &input.data {
        for (f, name) in data.fields.iter().filter_map(|f| Some((f, f.ident.as_ref()?))) {
            let kind = match container(&f.ty) {
                Some((container, Some((key, contents)))) if container == "Dict" || container == "Table" => {
                    let index = fields.len().min(DICTIONARIES_MAX - 1) as u32;
                    Kind::Dictionary {
                        container,
                        key,
                        contents,
                        index,
                        volatile: false,
                        rows: None,
                        shared: None,
                    }
                }
                _ => Kind::Config,
            };

            fields.push(Field { name, ty: &f.ty, kind })
        }
    }

    let (ident, name) = (&input.ident, kebab_case(&input.ident.to_string()));
    let constants = fields.iter().map(|f| constant(f, &name));
    let generics = with_key_bounds(input, &fields);
    let (generics, arguments, bounds) = generics.split_for_impl();

    quote! {
        #[automatically_derived]
        #[allow(non_upper_case_globals, dead_code, trivial_bounds)]
        impl #generics #ident #arguments #bounds { #(#constants)* }
        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #generics ::beehive::App for #ident #arguments #bounds {
            const NAME: &'static str = #name;
            const PLACE: &'static str = ::core::concat!(::core::file!(), ":", ::core::line!());
            const OPTIONS: ::beehive::__private::AppOptions = ::beehive::__private::AppOptions::DEFAULT;
        }
        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #generics ::beehive::__private::State for #ident #arguments #bounds {
            const DICTS: &'static [::beehive::__private::DictInfo] = &[];
            fn configured(_: &::beehive::__private::ConfigSource)
                -> ::core::result::Result<Self, ::beehive::__private::ConfigError>
            {
                loop {}
            }
            fn fresh(&self) -> Self { loop {} }
            const HAS_SETTINGS: bool = false;
            fn configure_as(&mut self, _: &Self) {}
            fn visit<__V: ::beehive::__private::Visitor>(&mut self, _: &mut __V) {}
            fn visit_pair<__V: ::beehive::__private::PairVisitor>(&mut self, _: &mut Self, _: &mut __V) {}
        }
    }
}

fn constant(f: &Field, app: &str) -> TokenStream {
    let (constant, name) = (field_constant(f.name), f.name.to_string());
    match &f.kind {
        Kind::Dictionary { key, index, volatile, rows, shared, .. } => {
            let share = shared.iter().map(|Share { max_age, span }| match max_age {
                Some(ms) => quote_spanned!(*span=> .share_for(::core::time::Duration::from_millis(#ms))),
                None => quote_spanned!(*span=> .share()),
            });
            let limit = rows.iter().map(|RowLimit { max, evict }| {
                quote_spanned!(evict.span()=> .limit_rows(#max, ::beehive::__private::Evict::#evict))
            });

            quote_spanned! {key.span()=>
                #[doc(hidden)]
                pub(crate) const #constant: &'static ::beehive::__private::DictMeta<#key> =
                    &::beehive::__private::DictMeta::new(#app, #name, #index, #volatile) #(#limit)* #(#share)*;
            }
        }
        Kind::Config => quote_spanned! {f.name.span()=>
            #[doc(hidden)]
            pub(crate) const #constant: &'static ::beehive::__private::PlainField = &::beehive::__private::PlainField;
        },
    }
}

/// Returns the generics with bounds that require keys to be keys and values to be values. A missing derive is
/// reported through these bounds, at the field's type, and nowhere else.
fn with_bounds(input: &DeriveInput, fields: &[Field]) -> syn::Generics {
    let mut generics = match is_generic(input) {
        true => with_key_bounds(input, fields),
        false => input.generics.clone(),
    };

    let bounds = generics.make_where_clause();
    for f in fields {
        let Kind::Dictionary { key, contents, .. } = &f.kind else { continue };

        if !is_generic(input) {
            // the first bound reports, at the type, which traits a derived key lacks; the second never reports
            // anything, but lets the rest of the impl assume that the type is a key
            let same = as_argument(key);
            let declared = quote_spanned!(key.span()=> #same: ::beehive::__private::KeyType);
            let key = quote_spanned!(key.span()=> for<'__key> #same: ::beehive::__private::KeyFor<'__key>);

            bounds
                .predicates
                .extend([syn::parse_quote!(#declared), syn::parse_quote!(#key)] as [syn::WherePredicate; 2]);
        }

        let (value, rows) = match contents.split_last() {
            Some((value, rows)) => (value, rows),
            None => continue,
        };

        let same = as_argument(value);
        let value = quote_spanned!(value.span()=> #same: ::beehive::__private::Stored);
        bounds.predicates.push(syn::parse_quote!(#value));

        if is_generic(input) {
            for row in rows {
                let same = as_argument(row);
                let row = quote_spanned!(row.span()=> #same: ::beehive::__private::StoredRow);
                bounds.predicates.push(syn::parse_quote!(#row));
            }
        }
    }

    generics
}

/// Generates the checks that the types used as row keys are row keys. Which check reports an error depends on
/// the traits the type lacks, which are unknown here if the app has generic parameters. The type is inferred
/// from the field: if it were repeated in a function, the compiler would report a misspelled type a second
/// time, with different advice.
fn row_checks(input: &DeriveInput, fields: &[Field]) -> TokenStream {
    let tables: Vec<(&Ident, &Type)> = fields
        .iter()
        .filter_map(|f| match &f.kind {
            Kind::Dictionary { contents, .. } if contents.len() > 1 => Some((f.name, *contents.first()?)),
            _ => None,
        })
        .collect();
    if is_generic(input) || tables.is_empty() {
        return TokenStream::new();
    }

    let ident = &input.ident;
    let checks = tables.iter().map(|(table, row)| {
        quote_spanned!(row.span()=> (&&&::beehive::__private::RowDerives::of(&app.#table)).row_key();)
    });

    quote! {
        const _: () = {
            #[allow(dead_code, clippy::needless_borrow)]
            fn row_keys(app: &#ident) {
                #[allow(unused_imports)]
                use ::beehive::__private::{RowOtherwise as _, RowWithAll as _, RowWithoutHash as _};
                #(#checks)*
            }
        };
    }
}

/// Returns a field's type in such a way that an error about it underlines the type as written.
fn as_argument(ty: &Type) -> TokenStream {
    let tokens = ty.to_token_stream();
    let end = tokens.clone().into_iter().last().map_or_else(Span::call_site, |t| t.span());
    let (of, end) = (quote_spanned!(ty.span()=> ::beehive::__private::Same), quote_spanned!(end=> >));
    quote!(#of<#tokens #end)
}

/// Returns the generics of the `State` impl. Without type parameters, there are no bounds: [`with_bounds`]
/// has already reported their violations, and the type should count as an app even then.
fn state_generics(input: &DeriveInput, fields: &[Field]) -> syn::Generics {
    match is_generic(input) {
        true => with_key_bounds(input, fields),
        false => input.generics.clone(),
    }
}

/// Checks whether the app has generic parameters, in which case its field types are known only where it is
/// used.
fn is_generic(input: &DeriveInput) -> bool {
    !input.generics.params.is_empty()
}

fn with_key_bounds(input: &DeriveInput, fields: &[Field]) -> syn::Generics {
    let mut generics = input.generics.clone();
    let bounds = generics.make_where_clause();
    for f in fields {
        if let Kind::Dictionary { key, .. } = &f.kind {
            let bound = quote_spanned!(key.span()=> #key: ::beehive::Key);
            bounds.predicates.push(syn::parse_quote!(#bound));
        }
    }

    generics
}

/// Generates fallbacks for field constants, used where a field's type lacks a derive. Inherent constants take
/// precedence over them.
fn undeclared(input: &DeriveInput, fields: &[Field]) -> TokenStream {
    if is_generic(input) {
        return TokenStream::new();
    }

    let constants = fields.iter().filter_map(|f| match &f.kind {
        Kind::Dictionary { key, .. } => {
            let constant = field_constant(f.name);
            Some(quote! {
                const #constant: &'static ::beehive::__private::DictMeta<#key> =
                    &::beehive::__private::DictMeta::undeclared();
            })
        }
        Kind::Config => None,
    });

    // with the span of the struct's name, an unknown type name produces the same error here as in the struct,
    // so the compiler shows it only once
    let undeclared = Ident::new("__Undeclared", input.ident.span());
    quote! {
        #[allow(non_upper_case_globals, dead_code, private_interfaces)]
        trait #undeclared { #(#constants)* }
        impl<__T: ?Sized> #undeclared for __T {}
    }
}

fn state(input: &DeriveInput, fields: &[Field]) -> TokenStream {
    let mut configure = Vec::new();
    let (mut infos, mut configured, mut fresh, mut visits, mut pairs) =
        (vec![], vec![], vec![], vec![], vec![]);

    for f in fields {
        let (name, constant, ty) = (f.name, field_constant(f.name), f.ty);
        match &f.kind {
            Kind::Dictionary { container, index, key, .. } => {
                let span = key.span();
                infos.push(quote!(Self::#constant.info()));

                // uses the path in the library, so that a different type named `Dict` is a type error
                let open = quote_spanned!(span=> ::beehive::#container::open);
                configured.push(quote_spanned!(span=> #name: #open(Self::#constant)));
                fresh.push(quote_spanned!(span=> #name: #open(Self::#constant)));
                let field = quote_spanned!(span=> ::beehive::__private::Field(&mut self.#name));
                visits.push(quote_spanned!(span=> #field.visit(#index, visitor);));

                pairs.push(quote_spanned!(span=> #field.visit_pair(#index, &mut other.#name, visitor);));
            }
            Kind::Config => {
                configured.push(quote_spanned!(ty.span()=> #name: source.config()?));
                fresh.push(quote!(#name: ::core::clone::Clone::clone(&self.#name)));
                configure.push(quote!(self.#name = ::core::clone::Clone::clone(&other.#name);));
            }
        }
    }

    let has_settings = !configure.is_empty();
    // settings for an app without `Config` fields are a mistake in the configuration
    let none = (!has_settings).then(|| quote!(source.none()?;));
    let ident = &input.ident;
    let generics = state_generics(input, fields);
    let (generics, arguments, bounds) = generics.split_for_impl();

    let undeclared = undeclared(input, fields);
    quote! {
        const _: () = {
        #undeclared
        #[allow(unused_imports)]
        use ::beehive::__private::FieldOtherwise as _;
        #[automatically_derived]
        #[allow(unused_variables, trivial_bounds)]
        impl #generics ::beehive::__private::State for #ident #arguments #bounds {
            const DICTS: &'static [::beehive::__private::DictInfo] = &[#(#infos),*];
            fn configured(source: &::beehive::__private::ConfigSource)
                -> ::core::result::Result<Self, ::beehive::__private::ConfigError>
            {
                #none
                ::core::result::Result::Ok(Self { #(#configured),* })
            }
            fn fresh(&self) -> Self {
                Self { #(#fresh),* }
            }
            const HAS_SETTINGS: bool = #has_settings;
            fn configure_as(&mut self, other: &Self) { #(#configure)* }
            #[inline]
            fn visit<__V: ::beehive::__private::Visitor>(&mut self, visitor: &mut __V) { #(#visits)* }
            #[inline]
            fn visit_pair<__V: ::beehive::__private::PairVisitor>(&mut self, other: &mut Self, visitor: &mut __V) { #(#pairs)* }
        }
        };
    }
}
