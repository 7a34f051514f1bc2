//! Gives the integers of a map the types that they have in the handler.
//!
//! The use that determines the type of an integer may be missing from the map (see [`super::integers`]). The map then
//! starts with a copy of the handler's body that never runs. Both contain, after each declaration of such a local, a
//! call `same(&witness, &local)`, whose two parameters have the same type. The compiler thus infers the type of the
//! witness from the handler's own code, and the type of the map's local from the witness, whichever use determines it
//! in the handler.
//!
//! If the copy cannot declare the parameters of a helper, because their types have no name or are type parameters
//! themselves, the helper gets an error that asks for the type.

use super::integers::{Integers, Place, Use};
use crate::errors::diagnostics::extent;
use crate::syntax::find_name;
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Error, Expr, FnArg, ImplItemFn, Pat, ReturnType, Stmt};

/// Returns the map of a handler, with the types of its integers. `generic` lists the block's functions that have type
/// parameters.
pub(crate) fn typed(map: TokenStream, item: &ImplItemFn, generic: &[String]) -> (TokenStream, Option<Error>) {
    let handler = Integers::of_handler(&item.block, generic);
    if !handler.any() {
        return (map, None);
    }
    // the code that the map repeats is Rust that has already been parsed
    let Ok(block) = syn::parse2::<Block>(quote!({ #map })) else { return (map, None) };

    match witnessed(&handler, block, item, generic) {
        Ok(Some(block)) => {
            let statements = block.stmts;
            (quote!(#(#statements)*), None)
        }
        Ok(None) => (map, None),
        Err(e) => (map, Some(e)),
    }
}

/// Like [`typed`], for the map function of a helper.
pub(crate) fn typed_helper(
    function: TokenStream,
    item: &ImplItemFn,
    generic: &[String],
) -> (TokenStream, Option<Error>) {
    let handler = Integers::of_handler(&item.block, generic);
    if !handler.any() {
        return (function, None);
    }
    let Ok(mut parsed) = syn::parse2::<syn::ItemFn>(function.clone()) else { return (function, None) };

    match witnessed(&handler, (*parsed.block).clone(), item, generic) {
        Ok(Some(block)) => {
            *parsed.block = block;
            (parsed.into_token_stream(), None)
        }
        Ok(None) => (function, None),
        Err(e) => (function, Some(e)),
    }
}

/// Returns the body of a map with the types of its integers, or `None` if the compiler can infer them from the map
/// itself.
fn witnessed(
    handler: &Integers,
    mut map: Block,
    item: &ImplItemFn,
    generic: &[String],
) -> Result<Option<Block>, Error> {
    let read = Integers::of_map(&map, generic);
    let undetermined = read.undetermined();
    if undetermined.is_empty() {
        return Ok(None);
    }

    let places = read.locals_of(&undetermined);
    let ties = Ties::of(places.into_iter().filter(|p| declared_once(&item.block, *p)).collect());
    let copy = match can_be_copied(item) {
        true => ties.tie(&mut map).and_then(|tied| Some((tied.clone(), never(item, &tied)?))),
        false => None,
    };
    let Some((tied, copy)) = copy else {
        let known: Vec<Place> = handler.undetermined().iter().map(|u| extent(u.span)).collect();
        // the types of the others may follow from the first one
        let first = undetermined.into_iter().find(|u| !known.contains(&extent(u.span)));
        return first.map_or(Ok(None), |u| Err(error(u)));
    };

    let (same, like) = (name("same"), name("like"));
    let witnesses = tied.0.values();
    let start: Block = syn::parse2(quote!({
        fn #same<T>(_: &::core::option::Option<T>, _: &T) {}
        fn #like<T>(_: &::core::option::Option<T>) -> T { ::core::unreachable!() }
        #(let #witnesses = ::core::option::Option::None;)*
        #copy
    }))
    .map_err(|e| Error::new(item.sig.ident.span(), e))?;
    map.stmts.splice(0..0, start.stmts);
    Ok(Some(map))
}

fn name(of: &str) -> Ident {
    Ident::new(&format!("__{of}"), Span::mixed_site())
}

fn error(u: &Use) -> Error {
    let name = u.name.as_ref().map_or("this integer".into(), |n| format!("`{n}`"));
    let effect = match &u.method {
        Some(method) => format!("but the map calls `.{method}()` on it"),
        None => "but the map's result depends on that type".into(),
    };
    let help = match &u.name {
        Some(n) => format!("write the type where `{n}` is declared: `let {n}: u64 = ..`"),
        None => "write the type where the integer is declared: `let n: u64 = ..`, or at the literal: `1u64`"
            .into(),
    };
    Error::new(
        u.span,
        format!("the type of {name} is inferred from code that the map omits, {effect}\nhelp: {help}"),
    )
}

/// Checks whether a copy of a function's body compiles in its map.
fn can_be_copied(item: &ImplItemFn) -> bool {
    let named = item.sig.inputs.iter().all(|i| match i {
        FnArg::Typed(t) => find_name(t.ty.to_token_stream(), "impl").is_none(),
        FnArg::Receiver(_) => true,
    });
    let returns = find_name(item.sig.output.to_token_stream(), "impl").is_none();
    // an attempt is analyzed in a form that the compiler does not receive
    let attempts = item.block.to_token_stream().to_string().contains("__attempt");
    named && returns && item.sig.generics.params.is_empty() && !attempts
}

/// Checks whether a function declares exactly one local at this place, and not several through a repetition in a macro.
fn declared_once(body: &Block, place: Place) -> bool {
    struct Count(Place, usize);
    impl<'ast> Visit<'ast> for Count {
        fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
            self.1 += usize::from(extent(p.ident.span()) == self.0);
            visit::visit_pat_ident(self, p)
        }
    }
    let mut count = Count(place, 0);
    count.visit_block(body);
    count.1 == 1
}

/// Returns a closure that is never called, with a copy of the body of a function.
fn never(item: &ImplItemFn, ties: &Ties) -> Option<TokenStream> {
    let this = name("this");
    let mut body = item.block.clone();
    ties.tie(&mut body)?;
    Renaming(&this).visit_block_mut(&mut body);
    let parameters = item.sig.inputs.iter().map(|i| match i {
        FnArg::Typed(t) => {
            let (pattern, ty) = (&t.pat, &t.ty);
            quote!(let #pattern: #ty = ::core::unreachable!();)
        }
        FnArg::Receiver(_) => quote!(let #this: &mut Self = ::core::unreachable!();),
    });
    let returned = match &item.sig.output {
        ReturnType::Type(_, ty) => quote!(#ty),
        ReturnType::Default => quote!(()),
    };
    Some(quote!(let _ = || -> #returned { #(#parameters)* #body };))
}

/// Gives `self` another name, because a map has no `self`.
struct Renaming<'n>(&'n Ident);

impl Renaming<'_> {
    fn renamed(&self, tokens: TokenStream) -> TokenStream {
        let renamed = tokens.into_iter().map(|t| match t {
            TokenTree::Ident(i) if i == "self" => self.0.clone().into(),
            TokenTree::Group(g) => {
                let mut group = Group::new(g.delimiter(), self.renamed(g.stream()));
                group.set_span(g.span());
                group.into()
            }
            other => other,
        });
        renamed.collect()
    }
}

impl VisitMut for Renaming<'_> {
    fn visit_ident_mut(&mut self, i: &mut Ident) {
        if i == "self" {
            *i = self.0.clone()
        }
    }

    fn visit_macro_mut(&mut self, m: &mut syn::Macro) {
        m.tokens = self.renamed(std::mem::take(&mut m.tokens));
    }

    // an item has a `self` of its own
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// Locals of a function, by their places, with the witnesses of their types.
#[derive(Clone)]
struct Ties(BTreeMap<Place, Ident>);

impl Ties {
    fn of(places: Vec<Place>) -> Ties {
        let numbered = places.into_iter().collect::<BTreeSet<_>>().into_iter().enumerate();
        Ties(
            numbered
                .map(|(n, place)| (place, format_ident!("__witness{n}", span = Span::mixed_site())))
                .collect(),
        )
    }

    /// Ties the locals that a block declares to their witnesses. Returns those that were found, if there are any.
    fn tie(&self, block: &mut Block) -> Option<Ties> {
        let mut tying = Tying { ties: self, done: BTreeMap::new() };
        tying.visit_block_mut(block);
        let found = Ties(tying.done);
        (!found.0.is_empty()).then_some(found)
    }
}

struct Tying<'t> {
    ties: &'t Ties,
    done: BTreeMap<Place, Ident>,
}

impl Tying<'_> {
    /// Returns the names of a pattern that are tied, with their witnesses.
    fn bound(&mut self, pattern: &Pat) -> Vec<(Ident, Ident)> {
        struct Names(Vec<Ident>);
        impl<'ast> Visit<'ast> for Names {
            fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
                self.0.push(p.ident.clone());
                visit::visit_pat_ident(self, p)
            }
        }

        let mut names = Names(vec![]);
        names.visit_pat(pattern);
        let mut bound = vec![];
        for name in names.0 {
            if let Some(witness) = self.ties.0.get(&extent(name.span())) {
                self.done.insert(extent(name.span()), witness.clone());
                bound.push((name, witness.clone()));
            }
        }
        bound
    }

    fn statements(&mut self, pattern: &Pat, is_assigned: bool) -> Vec<Stmt> {
        let (same, like) = (name("same"), name("like"));
        let bound = self.bound(pattern).into_iter();
        bound
            .map(|(name, witness)| match is_assigned {
                true => syn::parse_quote!(#same(&#witness, &#name);),
                false => syn::parse_quote!(if false { #name = #like(&#witness); loop {} }),
            })
            .collect()
    }

    fn start(&mut self, pattern: &Pat, body: &mut Block) {
        let first = self.statements(pattern, true);
        body.stmts.splice(0..0, first);
    }

    fn start_expression(&mut self, pattern: &Pat, body: &mut Expr) {
        let first = self.statements(pattern, true);
        if !first.is_empty() {
            *body = syn::parse_quote!({ #(#first)* #body });
        }
    }
}

/// Collects the patterns of the `let`s in a condition.
fn patterns(condition: &Expr) -> Vec<Pat> {
    struct Lets(Vec<Pat>);
    impl<'ast> Visit<'ast> for Lets {
        fn visit_expr_let(&mut self, l: &'ast syn::ExprLet) {
            self.0.push((*l.pat).clone());
        }
        fn visit_block(&mut self, _: &'ast Block) {}
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    }
    let mut lets = Lets(vec![]);
    lets.visit_expr(condition);
    lets.0
}

impl VisitMut for Tying<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        visit_mut::visit_block_mut(self, block);
        let mut statements = Vec::with_capacity(block.stmts.len());
        for s in std::mem::take(&mut block.stmts) {
            let ties = match &s {
                Stmt::Local(l) => self.statements(&l.pat, l.init.is_some()),
                _ => vec![],
            };
            statements.push(s);
            statements.extend(ties);
        }
        block.stmts = statements;
    }

    fn visit_expr_for_loop_mut(&mut self, f: &mut syn::ExprForLoop) {
        visit_mut::visit_expr_for_loop_mut(self, f);
        self.start(&f.pat, &mut f.body);
    }

    fn visit_expr_if_mut(&mut self, i: &mut syn::ExprIf) {
        visit_mut::visit_expr_if_mut(self, i);
        patterns(&i.cond).iter().for_each(|p| self.start(p, &mut i.then_branch));
    }

    fn visit_expr_while_mut(&mut self, w: &mut syn::ExprWhile) {
        visit_mut::visit_expr_while_mut(self, w);
        patterns(&w.cond).iter().for_each(|p| self.start(p, &mut w.body));
    }

    fn visit_arm_mut(&mut self, a: &mut syn::Arm) {
        visit_mut::visit_arm_mut(self, a);
        self.start_expression(&a.pat, &mut a.body);
    }

    fn visit_expr_closure_mut(&mut self, c: &mut syn::ExprClosure) {
        visit_mut::visit_expr_closure_mut(self, c);
        for p in c.inputs.iter() {
            let first = self.statements(p, true);
            if !first.is_empty() {
                let body = &c.body;
                *c.body = syn::parse_quote!({ #(#first)* #body });
            }
        }
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}
