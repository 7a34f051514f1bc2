//! Reads the text of a branch, a block or a closure once, and finds the views that its value may hold. The findings
//! answer all questions in all rounds.

use super::borrows::borrowed_mutably;
use crate::known::methods::returns_mutable_view;
use crate::known::types::Last;
use crate::syntax::names;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::Expr;

/// The findings in an expression.
#[derive(Default)]
pub(crate) struct Read {
    /// All identifiers, including those captured by format strings.
    pub names: Vec<String>,
    /// The names that it may change or borrow mutably.
    pub borrowed: BTreeSet<String>,
    /// Whether its value may hold a `&mut` created inside; see
    /// [`mentions_mutable_views`](crate::known::types::mentions_mutable_views).
    pub mutable: bool,
    /// Whether a value of an unknown type may be built inside; see
    /// [`builds_unknown_types`](crate::known::types::builds_unknown_types).
    pub unknown: bool,
}

impl Read {
    pub(crate) fn of(e: &Expr) -> Read {
        let mut read = Read { borrowed: borrowed_mutably(e), ..Read::default() };
        read.add(e.to_token_stream());
        read
    }

    fn add(&mut self, tokens: TokenStream) {
        let mut last = Last::default();
        for t in tokens {
            match t {
                TokenTree::Ident(i) => {
                    let name = i.to_string();
                    self.mutable |= name == "mut" || returns_mutable_view(&name);
                    self.unknown |= last.builds(&name);
                    self.names.push(name.clone());
                    last = Last::name(name);
                }
                TokenTree::Group(g) => {
                    self.add(g.stream());
                    last = Last::default();
                }
                t => {
                    last.pass(&t);
                    if let TokenTree::Literal(_) = t {
                        names(t.into(), &mut self.names)
                    }
                }
            }
        }
    }
}
