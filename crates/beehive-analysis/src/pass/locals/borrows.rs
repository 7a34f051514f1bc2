//! Finds the names that an expression may change or borrow mutably, without knowing the variables in scope.
//!
//! A branch, a block or a closure that merely reads a local holds no mutable view into it.

use crate::known::only_reads;
use crate::syntax::{names, peel};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, UnOp};

/// Returns the names through which an expression may change a value, or whose mutable borrow its value may
/// hold.
pub(crate) fn borrowed_mutably(e: &Expr) -> BTreeSet<String> {
    let mut found = Borrows::default();
    found.visit_expr(e);
    found.names
}

#[derive(Default)]
struct Borrows {
    names: BTreeSet<String>,
}

impl Borrows {
    /// Records the names in code that may have an unknown effect on them.
    fn all(&mut self, of: impl ToTokens) {
        let mut mentioned = vec![];
        names(of.to_token_stream(), &mut mentioned);
        self.names.extend(mentioned);
    }

    /// Records the name at the root of a place.
    fn root(&mut self, place: &Expr) {
        match peel(place) {
            Expr::Path(_) => self.all(place),
            Expr::Field(f) => self.root(&f.base),
            Expr::Index(i) => self.root(&i.expr),
            Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => self.root(&u.expr),
            Expr::Reference(r) => self.root(&r.expr),
            Expr::Try(t) => self.root(&t.expr),
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.root(e)),
            // the names borrowed by a method are found at the method call itself
            Expr::MethodCall(_) => {}
            other => self.all(other),
        }
    }
}

impl<'ast> Visit<'ast> for Borrows {
    fn visit_expr_reference(&mut self, r: &'ast syn::ExprReference) {
        if r.mutability.is_some() {
            self.root(&r.expr);
        }
        visit::visit_expr_reference(self, r)
    }

    fn visit_expr_assign(&mut self, a: &'ast syn::ExprAssign) {
        self.root(&a.left);
        visit::visit_expr_assign(self, a)
    }

    fn visit_expr_binary(&mut self, b: &'ast syn::ExprBinary) {
        if assigns(&b.op) {
            self.root(&b.left);
        }
        visit::visit_expr_binary(self, b)
    }

    fn visit_expr_method_call(&mut self, c: &'ast syn::ExprMethodCall) {
        if !only_reads(&c.method.to_string()) {
            self.root(&c.receiver);
        }
        visit::visit_expr_method_call(self, c)
    }

    fn visit_expr_let(&mut self, l: &'ast syn::ExprLet) {
        if takes_mutable_references(&l.pat) {
            self.root(&l.expr);
        }
        visit::visit_expr_let(self, l)
    }

    fn visit_expr_match(&mut self, m: &'ast syn::ExprMatch) {
        if m.arms.iter().any(|arm| takes_mutable_references(&arm.pat)) {
            self.root(&m.expr);
        }
        visit::visit_expr_match(self, m)
    }

    fn visit_local(&mut self, l: &'ast syn::Local) {
        if let Some(init) = &l.init
            && takes_mutable_references(&l.pat)
        {
            self.root(&init.expr);
        }
        visit::visit_local(self, l)
    }

    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.all(&m.tokens);
    }
}

/// Checks whether a pattern contains `ref mut`.
pub(crate) fn takes_mutable_references(p: &syn::Pat) -> bool {
    struct Found(bool);

    impl<'ast> Visit<'ast> for Found {
        fn visit_pat_ident(&mut self, i: &'ast syn::PatIdent) {
            self.0 |= i.by_ref.is_some() && i.mutability.is_some();
            visit::visit_pat_ident(self, i)
        }
    }

    let mut found = Found(false);
    found.visit_pat(p);
    found.0
}

fn assigns(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}
