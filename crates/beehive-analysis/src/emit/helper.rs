//! Prints the map function of a helper, with only the parameters needed by its keys and only the generics
//! needed by those parameters.

use super::needed::{needed, needed_parameters};
use super::print::print;
use super::{allowances, mapper};
use crate::node::FunctionMap;
use crate::pass::typed_parameters;
use crate::syntax::{conditions, is_context, names};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{GenericParam, ImplItemFn, WherePredicate};

/// Prints the map function of a helper.
pub(crate) fn helper_function(map: &FunctionMap, item: &ImplItemFn) -> TokenStream {
    let mapper = mapper();
    let kept = typed_parameters(item).zip(needed_parameters(map)).filter(|(_, needs)| **needs);
    let parameters: Vec<_> = kept.map(|(t, _)| t.to_token_stream()).collect();
    let mut mentioned = vec![];
    parameters.iter().for_each(|p| names(p.clone(), &mut mentioned));
    let generics = item.sig.generics.params.iter().filter(|p| {
        let name = match p {
            GenericParam::Type(t) => t.ident.to_string(),
            GenericParam::Const(t) => t.ident.to_string(),
            GenericParam::Lifetime(t) => t.lifetime.ident.to_string(),
        };
        mentioned.contains(&name)
    });

    let bounds = item.sig.generics.where_clause.as_ref().map(|w| {
        let kept = w.predicates.iter().filter(|p| match p {
            WherePredicate::Type(t) => {
                let mut of = vec![];
                names(t.bounded_ty.to_token_stream(), &mut of);
                let mut generic = item.sig.generics.type_params().map(|g| g.ident.to_string());
                !generic.any(|g| of.contains(&g) && !mentioned.contains(&g))
            }
            _ => true,
        });

        quote!(where #(#kept),*)
    });

    let body = print(&map.nodes, &needed(&map.nodes));
    let context = typed_parameters(item).find(|t| is_context(&t.ty)).map(|t| &t.pat);
    let envelope = context.map(|c| quote!(let #c = #mapper.envelope();));
    let (name, allowances, conditions) = (&map.map_name, allowances(), conditions(item));

    quote! {
        #[doc(hidden)] #allowances #conditions
        fn #name<#(#generics),*>(#(#parameters,)* #mapper: &mut ::beehive::__private::Mapper) #bounds { #envelope #body }
    }
}
