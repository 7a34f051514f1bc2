//! Prints nodes as the body of a map function, with the user's spans, so that the compiler reports type
//! errors in keys at the user's code.

use super::leave::branch_label;
use super::needed::{keeps, meets, needed_parameters};
use super::panics::{is_caught, is_caught_around, leaves, may_panic};
use super::{field_constant, mapper};
use crate::node::{Access, HelperCall, Node, touches_state};
use crate::value::{Value, Variables};
use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};

/// Prints the nodes kept by a map that needs the variables `needs`.
pub(crate) fn print(nodes: &[Node], needs: &Variables) -> TokenStream {
    let mut out = TokenStream::new();
    let any = nodes.iter().any(|n| keeps(n, needs));
    for n in nodes {
        if let Node::Item(tokens) = n
            && any
        {
            out.extend(tokens.clone());
        }

        if keeps(n, needs) {
            out.extend(node(n, needs));
        }
    }

    out
}

fn node(n: &Node, needs: &Variables) -> TokenStream {
    match n {
        Node::Let { defines, value, .. } if is_left_out(value, defines, needs) => effect(),
        Node::LetElse { defines, value, otherwise, .. }
            if is_left_out(value, defines, needs) && !touches_state(otherwise) =>
        {
            effect()
        }
        Node::Let { tokens, .. } | Node::Pure { tokens, .. } => tokens.clone(),
        Node::LetElse { pattern, initial, otherwise, .. } => {
            let otherwise = print(otherwise, needs);
            quote!(let #pattern = #initial else { #otherwise };)
        }
        Node::Access(a) => access(a),
        Node::Whole { field } => {
            let (constant, mapper) = (field_constant(field), mapper());
            quote_spanned!(field.span()=> #mapper.whole(Self::#constant);)
        }
        Node::Effect => effect(),
        Node::Maybe | Node::Item(_) | Node::Gap => quote!(),
        Node::Condition { condition, then, otherwise, .. } => {
            let (then, otherwise) = (print(then, needs), print(otherwise, needs));
            match otherwise.is_empty() {
                true => quote!(if #condition { #then }),
                false => quote!(if #condition { #then } else { #otherwise }),
            }
        }
        Node::OrElse { flag, left, leave, condition, state, then, otherwise, .. } => {
            let leaves = leaves(std::slice::from_ref(then));
            let state = print(state, needs);
            let then = print(std::slice::from_ref(then), needs);
            let otherwise = print(std::slice::from_ref(otherwise), needs);
            let (left, leave) = match leaves {
                true => (quote!(let mut #left = false;), quote!(if #left { #leave })),
                false => Default::default(),
            };
            quote! {
                let #flag: bool = #condition;
                if !#flag { #state }
                #left
                #then
                #leave
                if !#flag { #otherwise }
            }
        }
        Node::Match { scrutinee, arms, .. } => {
            let arms = arms.iter().map(|(p, n)| {
                let body = print(n, needs);
                quote!(#p => { #body })
            });
            quote!(match #scrutinee { #(#arms)* })
        }
        Node::Arms { scrutinee, arms, .. } => {
            let arms = arms.iter().map(|(p, n)| {
                let body = print(n, needs);
                quote!(if let #p = #scrutinee { #body })
            });
            quote!(#(#arms)*)
        }
        Node::For { label, pattern, iterator, body, .. } => {
            let (body, mapper) = (print(body, needs), mapper());
            let all = quote!(#label for #pattern in #iterator { #mapper.step(); #body });
            match is_caught_around(n) {
                true => quote!(#mapper.branch(|#mapper| { #all });),
                false => all,
            }
        }
        Node::While { label, condition, body, .. } => {
            let (body, mapper) = (print(body, needs), mapper());
            quote!(#label while #condition { #mapper.step(); #body })
        }
        Node::Loop { label, body } => {
            let (body, mapper) = (print(body, needs), mapper());
            quote!(#label loop { #mapper.step(); #body })
        }
        Node::Block { label, body } => {
            let body = print(body, needs);
            quote!(#label { #body })
        }
        Node::Either(depth, branches) => either(*depth, branches, needs),
        Node::Helper(h) => helper_call(h),
        Node::Exit { tokens, .. } | Node::Jump(tokens) => quote!(#tokens;),
    }
}

fn effect() -> TokenStream {
    let mapper = mapper();
    quote!(#mapper.effect();)
}

/// Checks for a local that the map does not need and whose type it could not infer. The handler may leave at
/// its declaration; the map continues.
fn is_left_out(value: &Value, defines: &Variables, needs: &Variables) -> bool {
    value.open && !meets(defines, needs) && !meets(&value.changes, needs)
}

fn access(a: &Access) -> TokenStream {
    let (constant, mapper, key) = (field_constant(&a.field), mapper(), &a.key);
    match a.by_reference {
        true => {
            quote_spanned!(a.field.span()=> ::beehive::__private::At(Self::#constant, &(#key)).cell(#mapper);)
        }
        false => {
            quote_spanned!(a.field.span()=> ::beehive::__private::AtValue(Self::#constant, &(#key)).cell(#mapper);)
        }
    }
}

fn either(depth: usize, branches: &[Vec<Node>], needs: &Variables) -> TokenStream {
    let label = branch_label(depth);
    let kept = branches.iter().filter(|b| b.iter().any(|n| keeps(n, needs)));
    let printed = kept.map(|b| {
        let (body, mapper) = (print(b, needs), mapper());
        let block = match leaves(b) {
            true => quote!(#label: { #body }),
            false => quote!({ #body }),
        };
        match may_panic(b, needs) {
            true => quote!(#mapper.branch(|#mapper| #block);),
            false => block,
        }
    });

    quote!(#(#printed)*)
}

fn helper_call(h: &HelperCall) -> TokenStream {
    let name = Ident::new(&h.map.map_name.to_string(), h.name.span());
    let mapper = mapper();
    let needed = needed_parameters(&h.map).iter().zip(&h.arguments).filter(|(needs, _)| **needs);
    let arguments = needed.map(|(_, a)| &a.tokens);
    let (call, conditions) = (quote!(Self::#name(#(#arguments,)* #mapper)), &h.conditions);
    match is_caught(h) {
        true => quote!(#conditions #mapper.branch(|#mapper| #call);),
        false => quote!(#conditions #call;),
    }
}
