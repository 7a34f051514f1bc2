//! Macro statements that Beehive cannot see into, and the check that such a macro does not rebind a name on which a map
//! depends.
//!
//! `macro_rules! next { ($m:ident . $f:ident) => { let $m = ..; } }` rebinds the handler's `msg` in `next!(msg.a);`.
//! Only the compiler knows the expansion of a macro. The code passed to the compiler therefore repeats the statement in
//! a branch that never runs, where the name has a type of its own, and where the name must still have that type
//! afterwards (`beehive::__private::watched`). The statement itself stays unchanged.

use crate::emit::allowances;
use crate::node::Assumption;
use crate::syntax::names;
use crate::value::Site;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, ImplItemFn, Stmt, StmtMacro};

/// Returns the macro statements of a function. [`Assumption`] counts them in this order.
pub(crate) fn macro_statements(f: &ImplItemFn) -> Vec<Site> {
    struct Found(Vec<Site>);

    impl<'ast> Visit<'ast> for Found {
        fn visit_stmt_macro(&mut self, m: &'ast StmtMacro) {
            self.0.push(Site::of(&m.mac));
            visit::visit_stmt_macro(self, m)
        }
    }

    let mut found = Found(vec![]);
    found.visit_impl_item_fn(f);
    found.0
}

/// Checks that a name occurs in the arguments of a macro only as `name.field`, and returns its first occurrence. A
/// method of the value, or one that comes from a trait, might not be found if the name has a different type.
pub(crate) fn only_reads_fields(arguments: &TokenStream, name: &str) -> Option<Ident> {
    let mut found = None;
    occurrences(arguments.clone(), name, &mut found).then_some(found).flatten()
}

/// Returns `false` if the name occurs in any form other than `name.field`.
fn occurrences(tokens: TokenStream, name: &str, found: &mut Option<Ident>) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: usize, wanted: char| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == wanted);
    tokens.iter().enumerate().all(|(at, t)| match t {
        TokenTree::Group(g) => occurrences(g.stream(), name, found),
        TokenTree::Ident(i) if i == name => {
            found.get_or_insert(i.clone());
            let field = match tokens.get(at + 2) {
                Some(TokenTree::Ident(_)) => true,
                Some(TokenTree::Literal(l)) => l.to_string().chars().all(|c| c.is_ascii_digit() || c == '.'),
                _ => false,
            };
            let called = matches!(tokens.get(at + 3), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis)
                || is(at + 3, ':');
            is(at + 1, '.') && field && !called
        }
        // `{name}` in a format string
        TokenTree::Literal(_) => {
            let mut captured = vec![];
            names(t.clone().into(), &mut captured);
            !captured.iter().any(|n| n == name)
        }
        _ => true,
    })
}

/// Inserts the checks of a function's assumptions before its statements.
pub(crate) fn checked(f: &mut ImplItemFn, assumptions: &[Assumption]) {
    if !assumptions.is_empty() {
        Checked { assumptions, next: 0 }.visit_impl_item_fn_mut(f)
    }
}

struct Checked<'a> {
    assumptions: &'a [Assumption],
    next: usize,
}

impl VisitMut for Checked<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        for mut statement in std::mem::take(&mut block.stmts) {
            let number = self.next;
            self.visit_stmt_mut(&mut statement);
            if let Stmt::Macro(m) = &statement {
                let here = self.assumptions.iter().filter(|a| a.statement == number);
                block.stmts.extend(here.map(|a| check(m, &a.name)))
            }
            block.stmts.push(statement)
        }
    }

    fn visit_stmt_macro_mut(&mut self, m: &mut StmtMacro) {
        self.next += 1;
        visit_mut::visit_stmt_macro_mut(self, m)
    }
}

/// Returns a statement that fails to compile if a macro rebinds a name.
fn check(m: &StmtMacro, name: &Ident) -> Stmt {
    let allowances = allowances();
    let asked = quote_spanned!(m.mac.path.span()=> ::beehive::__private::still_bound(#name));
    let tokens = quote! {
        #allowances {
            if false {
                let #name = ::beehive::__private::watched(#name);
                #m
                #asked;
                loop {}
            }
        }
    };
    syn::parse_quote!(#tokens)
}
