//! The fields of an app: dictionaries with their attributes, and settings.

use super::also;
use super::parts::{borrows, changes_behind_a_shared_reference};
use crate::handlers::milliseconds;
use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{Error, Fields, GenericArgument, LitInt, LitStr, PathArguments, Type};

/// Limit on an app's dictionaries, because a dictionary's index is a bit in a `u64` mask.
pub(super) const DICTIONARIES_MAX: usize = 64;

/// With two of one type, a handler could also exchange them.
const SECOND_CONFIG: &str = "an app has at most one `Config`, because all its settings are in one table\n\
    help: combine the fields of both in one struct";

const FIELDS: &str = "a field of an app must be a `Dict<K, V>`, a `Table<K, Row, V>` or a `Config<T>`, and not a type alias of one\n\
    note: any other field would be private to each bee, so a handler's result would depend on how the cells are distributed\n\
    help: put state into a `Dict` or a `Table`, settings into a `Config`, and constants into a `const`";

const BORROWED: &str = "a dictionary cannot hold borrowed data, because its contents are stored and decoded again\n\
    help: use an owned type: `String` instead of `&str`, `Vec<T>` instead of `&[T]`";

const CHANGES_UNSEEN: &str = "a dictionary cannot hold a lock or an atomic, because a change through it would not be undone if the handler fails\n\
    help: remove the lock: only one handler at a time uses a cell, and `entry`, `update` and `get_mut` change its value";

/// A field of the app.
pub(super) struct Field<'a> {
    pub(super) name: &'a Ident,
    pub(super) ty: &'a Type,
    pub(super) kind: Kind<'a>,
}

pub(super) enum Kind<'a> {
    Dictionary {
        container: &'a Ident,
        key: &'a Type,
        /// The type arguments after the key: the row keys of a table, then the values.
        contents: Vec<&'a Type>,
        index: u32,
        volatile: bool,
        rows: Option<RowLimit>,
        shared: Option<Share>,
    },
    Config,
}

/// Contents of a `#[shared]` attribute.
pub(super) struct Share {
    /// Maximum age, in milliseconds, of a view that a reader may see; `None` for the runtime's default.
    pub(super) max_age: Option<u64>,
    pub(super) span: Span,
}

/// Contents of a `#[rows(..)]` attribute.
pub(super) struct RowLimit {
    pub(super) max: u32,
    /// Name of a variant of the runtime's `Evict`.
    pub(super) evict: Ident,
}

pub(super) fn fields<'a>(app: &Ident, fields: &'a Fields) -> syn::Result<Vec<Field<'a>>> {
    let named = match fields {
        Fields::Named(named) => &named.named,
        Fields::Unit => return Ok(vec![]),
        Fields::Unnamed(_) => {
            return Err(Error::new_spanned(
                app,
                "an app must have named fields, because they name its dictionaries\nhelp: `struct App { counts: Dict<String, u64> }`",
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
            also(&mut errors, Error::new_spanned(a, "`#[volatile]` takes no arguments"));
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
                            "`#[volatile]` belongs on a `Dict` or a `Table`; a `Config` is not state",
                        ),
                    );
                }

                if out.iter().any(|field: &Field| matches!(field.kind, Kind::Config)) {
                    also(&mut errors, Error::new_spanned(&f.ty, SECOND_CONFIG));
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
                    "an app has at most {DICTIONARIES_MAX} dictionaries\nhelp: split it into several apps that send each other messages"
                ),
            ),
        );
    }

    errors.map_or(Ok(out), Err)
}

/// Parses `#[rows(max = 4096, evict = first)]`.
fn row_limit(f: &syn::Field) -> syn::Result<Option<RowLimit>> {
    const EXPECTED: &str = "expected `#[rows(max = 4096)]`, `#[rows(max = 4096, evict = first)]` or `evict = last`\n\
        note: without `evict`, a transaction that leaves more rows fails; `first` and `last` refer to the order of the rows' keys\n\
        help: the age of a row is not recorded; to evict the oldest row, put a time into the row's key";

    let Some(a) = f.attrs.iter().find(|a| a.path().is_ident("rows")) else { return Ok(None) };
    if container(&f.ty).is_none_or(|(name, _)| name != "Table") {
        return Err(Error::new_spanned(
            a,
            "`#[rows(..)]` belongs on a `Table`: only the cells of a `Table` have rows",
        ));
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
        note: a view older than `max_age` is refused; the default is ten seconds";

    let Some(a) = f.attrs.iter().find(|a| a.path().is_ident("shared")) else { return Ok(None) };
    if container(&f.ty).is_none_or(|(name, _)| name != "Table" && name != "Dict") {
        return Err(Error::new_spanned(
            a,
            "`#[shared]` belongs on a `Dict` or a `Table`; a `Config` is already the same everywhere",
        ));
    }

    if volatile {
        return Err(Error::new_spanned(
            a,
            "`#[shared]` cannot be combined with `#[volatile]`\n\
             note: a view contains only committed changes, and changes to a volatile dictionary are not logged\n\
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
pub(super) fn container(ty: &Type) -> Option<(&Ident, Option<Contents<'_>>)> {
    let Type::Path(p) = ty else { return None };
    let last = p.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Some((&last.ident, None)) };
    let mut types = arguments.args.iter().filter_map(|a| match a {
        GenericArgument::Type(t) => Some(t),
        _ => None,
    });
    Some((&last.ident, types.next().map(|first| (first, types.collect()))))
}
