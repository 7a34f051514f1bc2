//! Decides, for the locals that the handler moves, how the map keeps each of them, and which of them it cannot keep.
//!
//! If state decides between branches, the map runs all of them. A local moved by one branch would no longer exist in
//! the others. The map therefore moves a clone of the local, or reborrows the local if it is a `&mut`. If neither is
//! possible, a key that depends on the moved value is an error.

use super::owners::Owner;
use super::scope::Kind;
use crate::emit::leave::{Keeping, captured, part};
use crate::known::methods::takes_itself;
use crate::pass::Pass;
use crate::syntax::{names, peel};
use crate::value::{Taint, Value, VariableId, Why};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Expr;

impl Pass<'_, '_> {
    /// Checks whether a local is declared outside the innermost condition on state.
    pub(in crate::pass) fn is_outside(&self, name: &Ident) -> bool {
        !self.control.is_empty()
            && self.find(name).is_some_and(|id| {
                let v = self.variable(id);
                (v.depth < self.depth() || v.stops < self.stops.len()) && matches!(v.kind, Kind::Known(_))
            })
    }

    /// Returns how the map keeps a local where the handler moves it. If state decides between several branches that may
    /// move the local, the map runs all of these branches, so it must keep the local. A local that is used only once is
    /// moved, because its type need not be `Clone`.
    pub(in crate::pass) fn keeping(&self, name: &Ident) -> Keeping {
        if self.control.is_empty() {
            return Keeping::Moved;
        }
        let again = || {
            let name = name.to_string();
            self.mentions().iter().filter(|n| **n == name).nth(2).is_some()
        };
        match self.find(name).filter(|_| self.is_outside(name)) {
            Some(id) if again() || self.is_in_loop_of(id) => self.kept(id),
            _ => Keeping::Moved,
        }
    }

    /// Checks whether the map clones a field where the handler moves it out of its local. A pattern that destructures
    /// the field (`matched`) may leave it in place, unless the local is certain to own it.
    pub(in crate::pass) fn keeps_part(&self, name: &Ident, member: &syn::Member, matched: bool) -> bool {
        let Some(id) = self.find(name).filter(|_| self.is_outside(name)) else { return false };
        let built = matches!(self.variable(id).owner, Owner::Built { .. }) && !self.has_stored(id);
        (built || !matched && self.kept(id) == Keeping::Cloned)
            && (self.is_in_loop_of(id) || self.is_used_again(name, member))
    }

    /// Checks whether a field may hold a `&mut` and is moved out of its local where several branches may do so.
    fn loses_part(&self, name: &Ident, member: &syn::Member) -> bool {
        self.find(name).filter(|_| self.is_outside(name)).is_some_and(|id| {
            self.kept(id) == Keeping::Impossible
                && !self.keeps_part(name, member, false)
                && (self.is_in_loop_of(id) || self.is_used_again(name, member))
        })
    }

    /// Checks whether a field of a local, or the whole local, is mentioned elsewhere.
    fn is_used_again(&self, name: &Ident, member: &syn::Member) -> bool {
        let member = member.to_token_stream().to_string();
        // the declaration of the local is one of the mentions
        mentions_of(self.unit.tokens(self.item), name, &member) > 2
    }

    /// Returns how the map can keep a local that it also uses by value.
    pub(in crate::pass) fn kept(&self, id: VariableId) -> Keeping {
        let v = self.variable(id);
        match v.owner {
            Owner::Reference { .. } => Keeping::Reborrowed,
            Owner::Shared => Keeping::Moved,
            Owner::Cloneable => Keeping::Cloned,
            Owner::Opaque | Owner::Built { cloned: false } => Keeping::Impossible,
            Owner::Unknown | Owner::Built { .. } if self.has_stored(id) => Keeping::Impossible,
            Owner::Unknown | Owner::Built { .. } => Keeping::Cloned,
        }
    }

    /// Checks whether a view is stored in a local after its declaration.
    pub(in crate::pass) fn has_stored(&self, id: VariableId) -> bool {
        let site = &self.variable(id).site;
        self.facts.stored.contains_key(site) || self.learned.stored.contains_key(site)
    }

    /// Checks whether the current point is in a loop that uses a local declared outside that loop.
    fn is_in_loop_of(&self, id: VariableId) -> bool {
        self.enclosing.iter().skip(self.variable(id).nesting).any(|l| l.is_loop)
    }

    /// Taints the value of an expression that moves a local that the map cannot keep.
    pub(in crate::pass) fn moves(&self, e: &Expr, value: &mut Value) {
        // a closure is printed unchanged
        if self.closures > 0 || self.control.is_empty() || value.taint.is_some() {
            return;
        }
        self.moves_by(e, value, &|name| self.keeping(name));
    }

    /// Like [`Self::moves`]. `keeping` returns how the map keeps each local.
    pub(in crate::pass) fn moves_by(&self, e: &Expr, value: &mut Value, keeping: &dyn Fn(&Ident) -> Keeping) {
        match peel(e) {
            Expr::Path(p) => {
                let Some(name) = p.path.get_ident() else { return };
                if keeping(name) == Keeping::Impossible {
                    value.taint.get_or_insert(self.cannot_keep(name));
                }
            }
            Expr::Field(f) => {
                if let Some((name, member)) = part(f)
                    && self.loses_part(name, member)
                {
                    value.taint.get_or_insert(self.cannot_keep(name));
                }
            }
            // a name declared by the branch itself is no longer in scope
            Expr::If(i) => {
                let otherwise = i.else_branch.iter().map(|(_, e)| &**e);
                let then = yielded(&i.then_branch).into_iter();
                then.chain(otherwise).for_each(|e| self.moves_by(e, value, keeping))
            }
            Expr::Block(b) => yielded(&b.block).into_iter().for_each(|e| self.moves_by(e, value, keeping)),
            Expr::Match(m) => m.arms.iter().for_each(|a| self.moves_by(&a.body, value, keeping)),
            _ => {}
        }
    }

    fn cannot_keep(&self, name: &Ident) -> Taint {
        let first = self.find(name).map(|id| *self.variable(id).first_moved.get_or_init(|| name.span()));
        Taint::new(Why::Moved(name.to_string()), first.unwrap_or(name.span()))
    }

    /// Taints the value of an expression with an operand that moves a local that the map cannot keep.
    pub(in crate::pass) fn moves_operands(&self, e: &Expr, value: &mut Value) {
        if self.closures > 0 || self.control.is_empty() || value.taint.is_some() {
            return;
        }

        match e {
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.moves(e, value)),
            Expr::Array(t) => t.elems.iter().for_each(|e| self.moves(e, value)),
            Expr::Struct(s) => s.fields.iter().for_each(|f| self.moves(&f.expr, value)),
            Expr::Call(c) => c.args.iter().for_each(|e| self.moves(e, value)),
            Expr::MethodCall(c) => {
                if takes_itself(&c.method.to_string()) {
                    self.moves(&c.receiver, value)
                }
                c.args.iter().for_each(|e| self.moves(e, value))
            }
            Expr::Let(l) => self.moves(&l.expr, value),
            Expr::Match(m) => self.moves(&m.expr, value),
            Expr::Assign(a) => self.moves(&a.right, value),
            Expr::Repeat(r) => self.moves(&r.expr, value),
            Expr::Break(b) => b.expr.iter().for_each(|e| self.moves(e, value)),
            Expr::Closure(c) => {
                let lost = |name: &Ident| self.keeping(name) == Keeping::Impossible;
                if let Some(name) = captured(c).into_iter().find(lost) {
                    value.taint = Some(self.cannot_keep(&name));
                }
            }
            _ => {}
        }
    }
}

/// Returns how often tokens mention a name. Mentions of its fields other than `member` do not count.
fn mentions_of(tokens: TokenStream, name: &Ident, member: &str) -> usize {
    let mut found = 0;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(t) = tokens.next() {
        match t {
            TokenTree::Ident(i) if i == *name => {
                let dot = tokens.next_if(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == '.'));
                // `local.0.1` has one token, `0.1`, for both fields
                let other = dot.and(tokens.peek()).is_some_and(|t| {
                    let field = t.to_string();
                    field.split('.').next() != Some(member)
                });
                found += usize::from(!other);
            }
            TokenTree::Group(g) => found += mentions_of(g.stream(), name, member),
            literal => {
                let mut captured = vec![];
                names(literal.into(), &mut captured);
                found += captured.iter().filter(|n| name == *n).count()
            }
        }
    }
    found
}

/// Returns the expression whose value is yielded by a block.
fn yielded(b: &syn::Block) -> Option<&Expr> {
    match b.stmts.last() {
        Some(syn::Stmt::Expr(e, None)) => Some(e),
        _ => None,
    }
}
