//! `#[derive(App)]`: generates the constants used by maps, and the code that opens and visits all of an app's
//! dictionaries.

use super::also;
use super::parts::{borrows, changes_behind_a_shared_reference};
use crate::emit::field_constant;
use crate::handlers::milliseconds;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericArgument, LitInt, LitStr, PathArguments, Type};

/// Limit on an app's dictionaries, because a dictionary's index is a bit in a `u64` mask.
const DICTIONARIES_MAX: usize = 64;

const FIELDS: &str = "a field of an application is a `Dict<K, V>`, a `Table<K, Row, V>` or a `Config<T>`, written as such\n\
    note: any other field would be private to each bee, so that what a handler sees would depend on how cells are spread\n\
    help: state goes into a `Dict` or a `Table`, settings into a `Config`, and constants into a `const`";

const BORROWED: &str = "what a dictionary holds cannot be borrowed, because it is stored and decoded again\n\
    help: use an owned type: `String` instead of `&str`, `Vec<T>` instead of `&[T]`";

const CHANGES_UNSEEN: &str = "what a dictionary holds cannot be a lock or an atomic, because a change of it would not be undone if the handler fails\n\
    help: leave the lock out: only one handler at a time uses a cell, and `entry`, `update` and `get_mut` change its value";

/// A field of the app.
struct Field<'a> {
    name: &'a Ident,
    ty: &'a Type,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Dictionary {
        container: &'a Ident,
        key: &'a Type,
        /// The other types it holds: the row keys of a table, then the values.
        contents: Vec<&'a Type>,
        index: u32,
        volatile: bool,
        rows: Option<RowLimit>,
        shared: Option<Share>,
    },
    Config,
}

/// Contents of a `#[shared]` attribute.
struct Share {
    /// Maximum age, in milliseconds, of a view that a reader may see; `None` for the runtime's default.
    max_age: Option<u64>,
    span: Span,
}

/// Contents of a `#[rows(..)]` attribute.
struct RowLimit {
    max: u32,
    /// Name of a variant of the runtime's `Evict`.
    evict: Ident,
}

/// Contents of an `#[app(..)]` attribute.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    replication: Option<LitInt>,
    cells: Option<LitInt>,
    in_memory: Option<Span>,
}

pub(super) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "an application is a struct of `Dict`, `Table` and `Config` fields\nhelp: `struct App { counts: Dict<String, u64> }`",
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
    let in_memory = options.in_memory.is_some();
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
                in_memory: #in_memory,
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

fn options(input: &DeriveInput) -> syn::Result<Options> {
    let mut options = Options::default();
    for a in input.attrs.iter().filter(|a| a.path().is_ident("app")) {
        a.parse_nested_meta(|m| {
            if m.path.is_ident("name") {
                let name: LitStr = m.value()?.parse()?;
                if !is_kebab_case(&name.value()) {
                    return Err(Error::new(
                        name.span(),
                        "an application's name is in kebab case, such as \"learning-switch\"",
                    ));
                }

                options.name = Some(name);
                return Ok(());
            }

            if m.path.is_ident("replication") {
                const EXPECTED: &str = "replication is a number of hives from 1 to 15";
                let replication = m.value().and_then(|number| number.parse::<LitInt>());
                let replication = replication.map_err(|error| Error::new(error.span(), EXPECTED))?;
                if !replication.base10_parse::<u32>().is_ok_and(|number| (1..=15).contains(&number)) {
                    return Err(Error::new(replication.span(), EXPECTED));
                }

                options.replication = Some(replication);
                return Ok(());
            }

            if m.path.is_ident("cells") {
                let cells: LitInt = m.value()?.parse()?;
                if cells.base10_parse::<u32>()? == 0 {
                    return Err(Error::new(
                        cells.span(),
                        "an application without cells can handle no message\nhelp: leave `cells` out for no limit",
                    ));
                }

                options.cells = Some(cells);
                return Ok(());
            }

            if m.path.is_ident("in_memory") {
                if !m.input.is_empty() && !m.input.peek(syn::Token![,]) {
                    return Err(m.error("`in_memory` takes nothing"));
                }

                options.in_memory = Some(m.path.span());
                return Ok(());
            }

            Err(m.error("expected `name = \"..\"`, `replication = ..`, `cells = ..` or `in_memory`"))
        })?;
    }

    match (options.in_memory, &options.replication) {
        (Some(span), Some(_)) => Err(Error::new(
            span,
            "the state of an `in_memory` application has no copies\nhelp: leave out `in_memory` or `replication`",
        )),
        _ => Ok(options),
    }
}

fn fields<'a>(app: &Ident, fields: &'a Fields) -> syn::Result<Vec<Field<'a>>> {
    let named = match fields {
        Fields::Named(named) => &named.named,
        Fields::Unit => return Ok(vec![]),
        Fields::Unnamed(_) => {
            return Err(Error::new_spanned(
                app,
                "an application has named fields, because its dictionaries have names\nhelp: `struct App { counts: Dict<String, u64> }`",
            ));
        }
    };

    let (mut out, mut index, mut errors) = (vec![], 0u32, None);
    for f in named {
        let Some(name) = &f.ident else { continue };

        let volatile = f.attrs.iter().find(|a| a.path().is_ident("volatile"));
        if let Some(a) = volatile
            && !matches!(a.meta, syn::Meta::Path(_))
        {
            also(&mut errors, Error::new_spanned(a, "`#[volatile]` takes nothing"));
        }

        let rows = match row_limit(f) {
            Ok(rows) => rows,
            Err(e) => {
                also(&mut errors, e);
                None
            }
        };

        let shared = match share(f, volatile.is_some()) {
            Ok(shared) => shared,
            Err(e) => {
                also(&mut errors, e);
                None
            }
        };

        let kind = match container(&f.ty) {
            Some((container, Some((key, contents)))) if container == "Dict" || container == "Table" => {
                index += 1;
                Kind::Dictionary {
                    container,
                    key,
                    contents,
                    index: index - 1,
                    volatile: volatile.is_some(),
                    rows,
                    shared,
                }
            }
            Some((container, _)) if container == "Config" => {
                if let Some(a) = volatile {
                    also(
                        &mut errors,
                        Error::new_spanned(
                            a,
                            "`#[volatile]` goes on a `Dict` or a `Table`; a `Config` is not state",
                        ),
                    );
                }

                Kind::Config
            }
            _ => {
                also(&mut errors, Error::new_spanned(&f.ty, FIELDS));
                continue;
            }
        };

        if borrows(&f.ty) {
            also(&mut errors, Error::new_spanned(&f.ty, BORROWED));
        }

        if matches!(kind, Kind::Dictionary { .. }) && changes_behind_a_shared_reference(&f.ty) {
            also(&mut errors, Error::new_spanned(&f.ty, CHANGES_UNSEEN));
        }

        out.push(Field { name, ty: &f.ty, kind });
    }

    if index as usize > DICTIONARIES_MAX {
        also(
            &mut errors,
            Error::new_spanned(
                app,
                format!(
                    "an application has at most {DICTIONARIES_MAX} dictionaries\nhelp: split it into several applications that send each other messages"
                ),
            ),
        );
    }

    errors.map_or(Ok(out), Err)
}

/// Parses `#[rows(max = 4096, evict = first)]`.
fn row_limit(f: &syn::Field) -> syn::Result<Option<RowLimit>> {
    const EXPECTED: &str = "expected `#[rows(max = 4096)]`, `#[rows(max = 4096, evict = first)]` or `evict = last`\n\
        note: without `evict` a transaction that leaves more rows fails; first and last are by their keys\n\
        help: the age of a row is not kept; to have the oldest go, put a time into the row's key";

    let Some(a) = f.attrs.iter().find(|a| a.path().is_ident("rows")) else { return Ok(None) };
    if container(&f.ty).is_none_or(|(name, _)| name != "Table") {
        return Err(Error::new_spanned(a, "`#[rows(..)]` goes on a `Table`: only its cells have rows"));
    }

    let (mut max, mut evict) = (None, Ident::new("Nothing", a.span()));
    let parsed = a.parse_nested_meta(|m| {
        if m.path.is_ident("max") {
            let rows = m.value().and_then(|rows| rows.parse::<LitInt>()?.base10_parse());
            max = Some(rows.map_err(|error| Error::new(error.span(), EXPECTED))?);
            return Ok(());
        }

        if m.path.is_ident("evict") {
            let which: Ident = m
                .value()
                .and_then(|which| which.parse())
                .map_err(|error| Error::new(error.span(), EXPECTED))?;
            evict = match which.to_string().as_str() {
                "first" => Ident::new("First", which.span()),
                "last" => Ident::new("Last", which.span()),
                _ => return Err(Error::new(which.span(), EXPECTED)),
            };

            return Ok(());
        }

        Err(m.error(EXPECTED))
    });

    parsed?;
    match max {
        Some(max) if max > 0 => Ok(Some(RowLimit { max, evict })),
        _ => Err(Error::new_spanned(a, EXPECTED)),
    }
}

/// Parses `#[shared]` and `#[shared(max_age = "5s")]`.
fn share(f: &syn::Field, volatile: bool) -> syn::Result<Option<Share>> {
    const EXPECTED: &str = "expected `#[shared]` or `#[shared(max_age = \"5s\")]`\n\
        note: a view that is older is refused; without `max_age` that is ten seconds";

    let Some(a) = f.attrs.iter().find(|a| a.path().is_ident("shared")) else { return Ok(None) };
    if container(&f.ty).is_none_or(|(name, _)| name != "Table" && name != "Dict") {
        return Err(Error::new_spanned(
            a,
            "`#[shared]` goes on a `Dict` or a `Table`; a `Config` is the same everywhere anyway",
        ));
    }

    if volatile {
        return Err(Error::new_spanned(
            a,
            "`#[shared]` does not go with `#[volatile]`\n\
             note: a view holds what is committed, and changes of a volatile dictionary are not logged\n\
             help: leave one of them out",
        ));
    }

    let mut max_age = None;
    match &a.meta {
        syn::Meta::Path(_) => {}
        syn::Meta::List(_) => a.parse_nested_meta(|m| {
            if !m.path.is_ident("max_age") {
                return Err(m.error(EXPECTED));
            }
            let age: LitStr = m.value()?.parse()?;
            max_age = Some(milliseconds(&age).map_err(|_| Error::new(age.span(), EXPECTED))?);
            Ok(())
        })?,
        syn::Meta::NameValue(_) => return Err(Error::new_spanned(a, EXPECTED)),
    }

    Ok(Some(Share { max_age, span: a.span() }))
}

/// The type arguments of a dictionary: its key type, and the others.
type Contents<'a> = (&'a Type, Vec<&'a Type>);

/// Returns the last name of a type's path, and its type arguments.
fn container(ty: &Type) -> Option<(&Ident, Option<Contents<'_>>)> {
    let Type::Path(p) = ty else { return None };
    let last = p.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Some((&last.ident, None)) };
    let mut types = arguments.args.iter().filter_map(|a| match a {
        GenericArgument::Type(t) => Some(t),
        _ => None,
    });
    Some((&last.ident, types.next().map(|first| (first, types.collect()))))
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
            // the first bound reports, at the type, what a derived key lacks; the second never reports
            // anything but lets the rest of the impl assume that the type is a key
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

                // uses the path in the library, so that another type named `Dict` is a type error
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

/// Converts `LearningSwitch` to `learning-switch` and `HTTPApi` to `http-api`.
fn kebab_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, c) in letters.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|b| letters.get(b));
        let after = letters.get(i + 1);
        let starts = c.is_uppercase()
            && before.is_some_and(|b| !b.is_uppercase() || after.is_some_and(|a| a.is_lowercase()))
            && !out.ends_with('-');
        if starts {
            out.push('-');
        }

        match c {
            '_' => out.push('-'),
            c => out.extend(c.to_lowercase()),
        }
    }

    out
}

fn is_kebab_case(name: &str) -> bool {
    let word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    !name.is_empty() && name.split('-').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_kebab_case() {
        for (name, want) in [
            ("LearningSwitch", "learning-switch"),
            ("HTTPApi", "http-api"),
            ("L3Router", "l3-router"),
            ("Hub", "hub"),
            ("T", "t"),
            ("Key_Value", "key-value"),
        ] {
            assert_eq!(kebab_case(name), want);
            assert!(is_kebab_case(want));
        }

        assert!(!is_kebab_case("Learning"));
        assert!(!is_kebab_case("a--b"));
    }
}
