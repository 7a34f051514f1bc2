//! Checks that the field types of a message or a key can be encoded, and reports each type that cannot be encoded only
//! once, at the field.
//!
//! serde's code mentions a field's type in four places, each of which would produce an error. Therefore that
//! code is printed under bounds that merely claim, unchecked, that all types can be encoded, and separate
//! code checks the claim.

use super::mirror::{mentions, name_self};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit::{self, Visit};
use syn::{Attribute, Data, DeriveInput, Error, Field, Type, TypePath, TypeReference, WherePredicate};

/// Types that can be encoded, and whose names hardly any program gives to other types.
const KNOWN: [&str; 14] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "isize", "bool", "char", "String",
];

/// Options of a `#[serde(..)]` attribute that make serde encode something other than the field's type.
const OTHERWISE: [&str; 12] = [
    "skip",
    "skip_serializing",
    "skip_deserializing",
    "with",
    "serialize_with",
    "deserialize_with",
    "getter",
    "bound",
    "borrow",
    "from",
    "try_from",
    "into",
];

/// The kind of type to which the fields belong.
#[derive(Clone, Copy)]
pub(super) enum Whole {
    Message,
    Key,
}

impl Whole {
    /// Returns the attribute that takes `serde = false`.
    pub(super) fn attribute(self) -> &'static str {
        match self {
            Whole::Message => "message",
            Whole::Key => "key",
        }
    }
}

/// The field types to check, each once.
pub(super) struct Parts {
    of: Whole,
    types: Vec<TokenStream>,
}

pub(super) const BORROWED: &str = "a field of a message or a key cannot be borrowed, because both are sent, stored and decoded again\n\
    help: use an owned type: `String` instead of `&str`, `Vec<T>` instead of `&[T]`";

/// Checks whether a value of this type borrows: whether the type's name contains a reference.
pub(super) fn borrows(ty: &Type) -> bool {
    struct Find(bool);

    impl<'ast> Visit<'ast> for Find {
        fn visit_type_reference(&mut self, _: &'ast TypeReference) {
            self.0 = true
        }

        fn visit_type_path(&mut self, path: &'ast TypePath) {
            // `PhantomData` holds no value
            if path.path.segments.last().is_none_or(|s| s.ident != "PhantomData") {
                visit::visit_type_path(self, path)
            }
        }
    }

    let mut find = Find(false);
    find.visit_type(ty);
    find.0
}

/// Checks whether a value of this type can be changed through a shared reference: whether the type's name contains a
/// lock or an atomic of the standard library. Other such types either are not `Sync` or cannot be encoded, so no
/// dictionary can hold them.
pub(super) fn changes_behind_a_shared_reference(ty: &Type) -> bool {
    struct Find(bool);

    impl<'ast> Visit<'ast> for Find {
        fn visit_type_path(&mut self, path: &'ast TypePath) {
            let last = path.path.segments.last().map(|segment| segment.ident.to_string());
            self.0 |= last.is_some_and(|name| ["Mutex", "RwLock"].contains(&&*name) || is_atomic(&name));
            visit::visit_type_path(self, path)
        }
    }

    /// `AtomicU64`, `AtomicBool`, but not `AtomicClock`.
    fn is_atomic(name: &str) -> bool {
        let of = name.strip_prefix("Atomic").unwrap_or_default();
        of == "Bool"
            || of.strip_prefix(['U', 'I']).is_some_and(|n| ["8", "16", "32", "64", "size"].contains(&n))
    }

    let mut find = Find(false);
    find.visit_type(ty);
    find.0
}

impl Parts {
    /// Returns an error for each field that borrows.
    pub(super) fn borrowed(&self) -> Option<Error> {
        let mut error = None;
        let types = self.types.iter().filter_map(|ty| syn::parse2::<Type>(ty.clone()).ok());
        for ty in types.filter(borrows) {
            super::also(&mut error, Error::new_spanned(ty, BORROWED))
        }

        error
    }

    /// Collects the types of `input`. A generic type has none here, because its field types are known only
    /// where it is used.
    pub(super) fn of(input: &DeriveInput, of: Whole, original: &TokenStream) -> Parts {
        let mut parts = Parts { of, types: vec![] };
        if !input.generics.params.is_empty() || is_otherwise(&input.attrs) {
            return parts;
        }

        match &input.data {
            Data::Struct(s) => s.fields.iter().for_each(|f| parts.add(f, original)),
            Data::Enum(e) => {
                let variants = e.variants.iter().filter(|v| !is_otherwise(&v.attrs));
                variants.flat_map(|v| &v.fields).for_each(|f| parts.add(f, original))
            }
            Data::Union(_) => {}
        }

        parts
    }

    fn add(&mut self, field: &Field, original: &TokenStream) {
        let is_known = matches!(&field.ty, Type::Path(p) if KNOWN.iter().any(|k| p.path.is_ident(k)));
        if is_known || is_otherwise(&field.attrs) {
            return;
        }
        let ty = name_self(field.ty.to_token_stream(), original);
        if !self.has(&ty) {
            self.types.push(ty)
        }
    }

    /// Checks whether a type is among those to check.
    pub(super) fn has(&self, ty: &impl ToTokens) -> bool {
        let words = ty.to_token_stream().to_string();
        self.types.iter().any(|other| other.to_string() == words)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Returns the bounds that claim that all types can be encoded.
    pub(super) fn assumed(&self) -> Vec<WherePredicate> {
        let assumed = |ty| syn::parse_quote!(for<'__part> #ty: ::beehive::__private::EncodedFor<'__part>);
        self.types.iter().map(assumed).collect()
    }

    /// Generates the code that reports types that cannot be encoded, and the functions `write` and `read`,
    /// which serialize and deserialize `input` through `mirror`, a copy of the type that has serde's derives.
    pub(super) fn checked(&self, input: &DeriveInput, mirror: &Ident) -> TokenStream {
        // with the span of the type's name, an unknown type name produces the same error here as in the type
        // itself, and the compiler shows it once
        let (original, implementation) = (&input.ident, quote_spanned!(input.ident.span()=> impl));
        let part = match self.of {
            Whole::Message => quote!(MessagePart),
            Whole::Key => quote!(KeyTypePart),
        };

        let parts = self.types.iter().enumerate().map(|(index, ty)| {
            quote! {
                #implementation ::beehive::__private::#part<#index> for __Through {
                    type Part = #ty;
                }
            }
        });

        let assumed = self.assumed();
        quote! {
            #[allow(unused_imports)]
            use ::beehive::__private::MirrorOtherwise as _;
            struct __Through;
            #(#parts)*
            #implementation __Through where #(#assumed),* {
                #[inline]
                fn write<__S: ::beehive::__private::serde::Serializer>(original: &#original, serializer: __S)
                    -> ::core::result::Result<__S::Ok, __S::Error>
                {
                    #mirror::serialize(original, serializer)
                }

                #[inline]
                fn read<'__from, __D: ::beehive::__private::serde::Deserializer<'__from>>(deserializer: __D)
                    -> ::core::result::Result<#original, __D::Error>
                {
                    #mirror::deserialize(deserializer)
                }
            }
        }
    }
}

fn is_otherwise(attributes: &[Attribute]) -> bool {
    let serde = attributes.iter().filter(|a| a.path().is_ident("serde"));
    let mut tokens = serde.map(ToTokens::to_token_stream);
    tokens.any(|tokens| OTHERWISE.iter().any(|name| mentions(tokens.clone(), name)))
}
