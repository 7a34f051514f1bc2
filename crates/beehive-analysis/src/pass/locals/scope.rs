//! Tracks locals: which variable a name denotes, and how a change to a variable affects the known values.
//!
//! A variable is *known* while its value in the map equals its value in the handler. Some changes make it
//! *poisoned* in all later rounds of the fixpoint: by a value that depends on state, under a condition that
//! depends on state, in an expression that the map does not run, or through a mutable borrow that the
//! analysis cannot follow. A change through a view (`for x in v.iter_mut()`) is a change to every variable
//! into which the view may point.

use super::owners::Owner;
use super::views::{EXCLUSIVE, GLOBAL, INTERIOR, Views, pseudo_variables};
use crate::errors::similar::similar;
use crate::faults::Fault;
use crate::pass::Pass;
use crate::syntax::{bound_inside, peel, peel_copies};
use crate::value::{Site, Sources, Taint, Value, VariableId, Variables, Why};
use crate::words::words;
use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::{Expr, Pat};

/// Maximum length of the text that stands for a local in reports.
const ALIAS_MAX: usize = 60;

/// The expression that an immutable local represents in reports.
#[derive(Clone, Debug, Default)]
pub(in crate::pass) struct Alias {
    pub words: String,
    pub identity: String,
}

/// The known value of a local that is a function of the message.
#[derive(Clone, Debug, Default)]
pub(in crate::pass) struct Known {
    pub sources: Sources,
    pub varies: BTreeSet<Site>,
    pub alias: Option<Alias>,
    /// The reason why the order of its elements differs between runs; `None` if it does not.
    pub unordered: Option<Taint>,
}

#[derive(Clone, Debug)]
pub(in crate::pass) enum Kind {
    Known(Known),
    Tainted(Taint),
    /// An alias of `self.field`.
    Field(Ident),
    Context,
}

impl Variable {
    /// Returns a nameless variable whose value is never known.
    pub(in crate::pass) fn nameless() -> Variable {
        Variable {
            name: String::new(),
            kind: Kind::Context,
            mutable: false,
            depth: 0,
            stops: 0,
            nesting: 0,
            conditions: 0,
            scope: 0,
            site: Site::of(&()),
            version: 0,
            views: Views::new(),
            yields_values: false,
            late: false,
            is_option: false,
            owner: Owner::Unknown,
            first_moved: OnceCell::new(),
        }
    }
}

impl Kind {
    /// Returns the kind of a binding inside a pattern. It keeps no alias, because the binding gets only part of the
    /// initializer.
    fn part(&self) -> Kind {
        match self {
            Kind::Known(k) => Kind::Known(Known { alias: None, ..k.clone() }),
            other => other.clone(),
        }
    }
}

#[derive(Debug)]
pub(in crate::pass) struct Variable {
    pub name: String,
    pub kind: Kind,
    pub mutable: bool,
    /// Number of conditions on state around its declaration, as [`Pass::depth`] counts them.
    pub depth: usize,
    /// Number of loops around its declaration that the handler may leave earlier than the map.
    pub stops: usize,
    /// Number of loops and labeled blocks around its declaration.
    pub nesting: usize,
    /// Number of conditions on the message around its declaration.
    conditions: usize,
    /// Number of scopes around its declaration.
    pub scope: usize,
    pub site: Site,
    /// Number of changes to it that have been seen so far.
    version: usize,
    /// The locals into which it may be a mutable view.
    pub views: Views,
    /// Whether it is a closure whose result cannot be a view into its captured values.
    pub yields_values: bool,
    /// Whether it is declared without a value.
    pub late: bool,
    /// Whether it is known to be an `Option`.
    pub is_option: bool,
    /// The known properties of its type, which determine how the map can keep it where it is moved.
    pub owner: Owner,
    /// The first place at which the map would have to keep the local but cannot. All such places are reported as one
    /// error.
    pub first_moved: OnceCell<Span>,
}

#[derive(Debug)]
pub(in crate::pass) struct Scopes {
    pub variables: Vec<Variable>,
    /// The names in scope, innermost last.
    names: Vec<(String, VariableId)>,
    /// For each scope around the current point, the number of names before it.
    starts: Vec<usize>,
    /// Locals that the bindings being declared may borrow mutably.
    pub views: Views,
    /// The known properties of the type of the binding being declared.
    pub owner: Owner,
    /// Whether the parameters of the closure that is analyzed next are certainly not hash maps or hash sets.
    pub ordered: bool,
}

impl Default for Scopes {
    fn default() -> Self {
        Scopes {
            variables: pseudo_variables(),
            names: vec![],
            starts: vec![0],
            views: Views::new(),
            owner: Owner::Unknown,
            ordered: false,
        }
    }
}

impl Pass<'_, '_> {
    pub(in crate::pass) fn find(&self, name: &Ident) -> Option<VariableId> {
        self.find_name(&name.to_string())
    }

    pub(in crate::pass) fn find_name(&self, name: &str) -> Option<VariableId> {
        let name = unraw(name);
        self.scopes.names.iter().rfind(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// Returns the variable that the user probably meant by an unknown name.
    pub(in crate::pass) fn similar(&self, name: &Ident) -> Option<String> {
        let known = self.scopes.names.iter().map(|(known, _)| known.as_str());
        similar(&name.to_string(), known).map(str::to_string)
    }

    pub(in crate::pass) fn variable(&self, id: VariableId) -> &Variable {
        &self.scopes.variables[id]
    }

    pub(in crate::pass) fn open_scope(&mut self) {
        self.scopes.starts.push(self.scopes.names.len())
    }

    /// Returns the number of scopes around the current point.
    pub(in crate::pass) fn scope(&self) -> usize {
        self.scopes.starts.len()
    }

    pub(in crate::pass) fn close_scope(&mut self) {
        let start = self.scopes.starts.pop();
        self.scopes.names.truncate(start.unwrap_or_default())
    }

    /// Returns the value of reading a local, or `None` for the context and for an alias of a field.
    pub(in crate::pass) fn read(&self, id: VariableId) -> Option<Value> {
        let uses = Variables::from([id]);
        match &self.variable(id).kind {
            Kind::Known(k) => {
                let (sources, varies) = (k.sources.clone(), k.varies.clone());
                Some(Value { uses, sources, varies, unordered: k.unordered.clone(), ..Value::default() })
            }
            Kind::Tainted(t) => Some(Value { taint: Some(t.clone()), ..Value::default() }),
            Kind::Field(_) | Kind::Context => None,
        }
    }

    /// Returns the number of conditions on state, and of closures that may run at a different time, around the
    /// current point. Inside them, the handler may skip code that the map runs, and may leave out the rest.
    pub(in crate::pass) fn depth(&self) -> usize {
        self.control.len().saturating_sub(self.direct_closures + self.stops.len())
    }

    /// Checks whether a name denotes the context.
    pub(in crate::pass) fn is_envelope(&self, name: &Ident) -> bool {
        self.find(name).is_some_and(|id| matches!(self.variable(id).kind, Kind::Context) && id > GLOBAL)
    }

    /// Declares a local; `site` identifies its declaration.
    pub(in crate::pass) fn declare(
        &mut self,
        name: &str,
        site: Site,
        kind: &Kind,
        mutable: bool,
        defines: &mut Variables,
    ) {
        let mut kind = match (kind, self.facts.poisoned.get(&site)) {
            (Kind::Known(_), Some(t)) => Kind::Tainted(t.clone()),
            _ => kind.clone(),
        };

        if let Kind::Known(k) = &mut kind {
            for l in self.facts.varying.get(&site).into_iter().flatten() {
                k.varies.insert(*l);
                self.facts.decided_by.get(l).into_iter().for_each(|sources| k.sources.and(sources));
            }
            // a mutable local does not stand for its initializer
            k.alias.take_if(|_| mutable);
        }

        let id = self.scopes.variables.len();
        self.scopes.variables.push(Variable {
            name: name.to_string(),
            kind,
            mutable,
            depth: self.depth(),
            stops: self.stops.len(),
            nesting: self.enclosing.len(),
            conditions: self.conditions.len(),
            scope: self.scope(),
            site,
            version: 0,
            views: self.scopes.views.clone(),
            yields_values: false,
            late: false,
            is_option: false,
            owner: self.scopes.owner,
            first_moved: OnceCell::new(),
        });

        self.add_stored(id, site);
        self.scopes.names.push((unraw(name).to_string(), id));

        defines.insert(id);
    }

    /// Adds the views stored after the declaration: the views that this local will hold, and the views into this local
    /// that other locals will hold.
    fn add_stored(&mut self, id: VariableId, site: Site) {
        if self.facts.stored.is_empty() {
            return;
        }

        for other in 0..self.scopes.variables.len() {
            let Some((sites, nameless)) = self.facts.stored.get(&self.scopes.variables[other].site) else {
                continue;
            };

            if other == id {
                let of = |v: &VariableId| sites.contains(&self.scopes.variables[*v].site);
                let views: Vec<_> = (0..id).filter(of).chain(nameless.iter().copied()).collect();
                self.scopes.variables[id].views.extend(views)
            } else if sites.contains(&site) {
                self.scopes.variables[other].views.insert(id);
            }
        }
    }

    /// Records that a local may hold these views from now on and, because of loops, earlier.
    pub(in crate::pass) fn stores(&mut self, id: VariableId, views: Views) {
        let exclusive = |v: &VariableId| self.reaches(*v, |v, _| v == EXCLUSIVE);
        if self.unit.faults.has(Fault::ViewsIgnored) || !views.iter().any(exclusive) {
            return;
        }

        let site = self.scopes.variables[id].site;
        for view in views.into_iter().filter(|v| *v != id) {
            let known = self.facts.stored.get(&site);
            if view <= GLOBAL {
                if !known.is_some_and(|known| known.1.contains(&view)) {
                    self.learned.stored.entry(site).or_default().1.insert(view);
                }
            } else {
                let of = self.scopes.variables[view].site;
                if !known.is_some_and(|known| known.0.contains(&of)) {
                    self.learned.stored.entry(site).or_default().0.insert(of);
                }
            }
            self.scopes.variables[id].views.insert(view);
        }
    }

    /// Declares the bindings of a pattern. In a refutable pattern an upper-case name is a constant, not a
    /// binding.
    pub(in crate::pass) fn bind(&mut self, p: &Pat, kind: &Kind, refutable: bool) -> Variables {
        let mut defines = Variables::new();
        self.bind_into(p, kind, refutable, &mut defines);
        defines
    }

    fn bind_into(&mut self, p: &Pat, kind: &Kind, refutable: bool, defines: &mut Variables) {
        match p {
            Pat::Ident(i) => {
                let bare = i.by_ref.is_none() && i.mutability.is_none() && i.subpat.is_none();
                if !(refutable && bare && i.ident.to_string().starts_with(char::is_uppercase)) {
                    let by_reference = i.by_ref.is_some() && i.mutability.is_some();
                    let holds = matches!(self.scopes.owner, Owner::Reference { .. } | Owner::Opaque);
                    let owner = if by_reference { Owner::Reference { holds } } else { self.scopes.owner };
                    self.with_owner(owner, |pass| {
                        pass.declare(&i.ident.to_string(), Site::of(i), kind, i.mutability.is_some(), defines)
                    });
                }

                if let Some((_, inner)) = &i.subpat {
                    self.bind_into(inner, &kind.part(), refutable, defines);
                }
            }
            Pat::Type(t) => self.bind_into(&t.pat, kind, refutable, defines),
            Pat::Paren(t) => self.bind_into(&t.pat, kind, refutable, defines),
            Pat::Guard(t) => self.bind_into(&t.pat, kind, refutable, defines),
            Pat::Reference(t) => self.bind_into(&t.pat, kind, refutable, defines),
            // every alternative binds the same names, so the last declaration stands for all of them
            Pat::Or(o) => o.cases.iter().for_each(|c| self.bind_into(c, &kind.part(), true, defines)),
            Pat::Tuple(t) => t.elems.iter().for_each(|e| self.bind_into(e, &kind.part(), refutable, defines)),
            Pat::TupleStruct(t) => {
                t.elems.iter().for_each(|e| self.bind_into(e, &kind.part(), refutable, defines))
            }
            Pat::Slice(t) => t.elems.iter().for_each(|e| self.bind_into(e, &kind.part(), refutable, defines)),
            Pat::Struct(s) => {
                for f in &s.fields {
                    self.bind_into(&f.pat, &kind.part(), refutable && f.colon_token.is_some(), defines)
                }
            }
            Pat::Macro(mac) => {
                self.blind = true;
                self.error(mac, "Beehive cannot see into a macro in a pattern\nhelp: write out the pattern, or compare in an `if`");
            }
            _ => {}
        }
    }

    /// Records that, from here on, this local and every local into which it may be a view are not functions
    /// of the message. If the handler may return to code before this point, in a loop or a closure, the next
    /// round assumes this from the declaration on.
    pub(in crate::pass) fn poison(&mut self, id: VariableId, taint: Taint) {
        let mut todo = vec![id];
        let mut seen = Variables::new();
        while let Some(id) = todo.pop() {
            if !seen.insert(id) {
                continue;
            }

            let v = &self.scopes.variables[id];
            let comes_back = self.closures > 0 || self.enclosing.iter().skip(v.nesting).any(|l| l.is_loop);
            let (known, site) = (matches!(v.kind, Kind::Known(_)), v.site);
            if known && !comes_back {
                self.scopes.variables[id].kind = Kind::Tainted(taint.clone());
            } else if known && !self.facts.poisoned.contains_key(&site) {
                self.learned.poisoned.entry(site).or_insert(taint.clone());
            }
            let v = &self.scopes.variables[id];

            if !self.unit.faults.has(Fault::ViewsIgnored) {
                todo.extend(&v.views);
            }
        }
    }

    /// Handles an expression that the map does not run: the locals it changes are poisoned.
    pub(in crate::pass) fn dropped(&mut self, value: &Value, at: &impl Spanned) {
        if self.unit.faults.has(Fault::DroppedChangesIgnored) {
            return;
        }

        if value.jumps {
            self.undecide_all();
        }

        for id in value.changes.clone() {
            let why = Why::Dropped(self.variable(id).name.clone());
            self.poison(id, Taint::new(why, at.span()));
        }
    }

    /// Returns the local that contains the place named by an expression. The result of a call is not part of a local.
    pub(in crate::pass) fn place(&self, e: &Expr) -> Option<VariableId> {
        match peel(e) {
            Expr::Path(p) => p.path.get_ident().and_then(|i| self.find(i)),
            Expr::Field(f) => self.place(&f.base),
            Expr::Index(f) => self.place(&f.expr),
            Expr::Unary(u) if matches!(u.op, syn::UnOp::Deref(_)) => self.place(&u.expr),
            _ => None,
        }
    }

    /// Returns the local to which a place expression belongs.
    pub(in crate::pass) fn root(&self, e: &Expr) -> Option<VariableId> {
        match peel(e) {
            Expr::Path(p) => p.path.get_ident().and_then(|i| self.find(i)),
            Expr::Field(f) => self.root(&f.base),
            Expr::Index(f) => self.root(&f.expr),
            Expr::MethodCall(f) => self.root(&f.receiver),
            Expr::Reference(r) => self.root(&r.expr),
            Expr::Try(r) => self.root(&r.expr),
            Expr::Unary(u) if matches!(u.op, syn::UnOp::Deref(_)) => self.root(&u.expr),
            _ => None,
        }
    }

    /// Records that a local, and every local into which it is a view, may be changed here by an expression
    /// with the given value.
    pub(in crate::pass) fn changed(&mut self, id: VariableId, value: &mut Value, span: Span) {
        let mut todo = vec![id];
        let mut seen = Variables::new();
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                self.changed_itself(id, value, span);
                todo.extend(self.scopes.variables[id].views.clone());
            }
        }
    }

    /// Like [`Self::changed`], but without the locals into which this one is a view.
    pub(in crate::pass) fn changed_itself(&mut self, id: VariableId, value: &mut Value, span: Span) {
        let loops: BTreeSet<Site> = {
            let from = self.variable(id).nesting;
            self.enclosing.iter().skip(from).filter(|l| l.is_loop).map(|l| l.site).collect()
        };

        let depth = self.depth();
        self.changed_until_stop(id, span);
        let v = &mut self.scopes.variables[id];
        v.version += 1;
        let Kind::Known(known) = &mut v.kind else { return };

        if v.views.contains(&INTERIOR) && !self.facts.touched.contains(&v.site) {
            self.learned.touched.insert(v.site);
        }

        if let Some(t) = &value.taint {
            let t = t.clone();
            return self.poison(id, t);
        }

        if depth > v.depth && !self.unit.faults.has(Fault::AssignmentsUnderStateIgnored) {
            let closures = self.closures.saturating_sub(self.direct_closures);
            let why = match depth > v.depth + closures {
                true => Why::Assigned(v.name.clone()),
                false => Why::InClosure(v.name.clone()),
            };
            return self.poison(id, Taint::new(why, span));
        }

        if let Some(t) = &value.unordered {
            // a loop may already have used the local
            if !loops.is_empty() {
                let t = t.clone();
                return self.poison(id, t);
            }
            known.unordered = Some(t.clone());
        }

        known.alias = None;
        known.sources.and(&value.sources);
        self.conditions.iter().skip(v.conditions).for_each(|sources| known.sources.and(sources));
        if !loops.is_empty() {
            // the value also depends on the sources that determine the number of iterations
            for l in self.enclosing.iter().filter(|l| loops.contains(&l.site)) {
                known.sources.and(&l.decided_by);
                self.facts.decided_by.get(&l.site).into_iter().for_each(|sources| known.sources.and(sources));
            }
            known.varies.extend(&loops);
            let already = self.facts.varying.get(&v.site);

            if already.is_none_or(|a| !loops.is_subset(a)) {
                for l in self.enclosing.iter().filter(|l| loops.contains(&l.site)) {
                    self.learned.decided_by.entry(l.site).or_default().and(&l.decided_by);
                }
                self.learned.varying.entry(v.site).or_default().extend(loops);
            }
        }

        value.changes.insert(id);
    }

    /// Returns an expression as a person would write it: without copies of and references to the whole value, and with
    /// each immutable local replaced by the expression that it represents.
    pub(in crate::pass) fn words(&self, e: &Expr) -> String {
        if self.only_learns {
            return String::new();
        }
        let e = peel_copies(e);
        match self.field_in_words(e) {
            Some(known) => known.words,
            None => self.words_of(e.to_token_stream(), &bound_inside(e)),
        }
    }

    /// Returns an expression in words, like [`Self::words`], and a text that two expressions share only if they have the
    /// same value. Locals are identified by their declaration and their number of changes; references, copies and
    /// aliases of a value count as that value.
    pub(in crate::pass) fn in_words(&self, e: &Expr) -> Alias {
        if self.only_learns {
            return Alias::default();
        }
        let e = peel_copies(e);
        self.field_in_words(e).unwrap_or_else(|| {
            let (tokens, bound) = (e.to_token_stream(), bound_inside(e));
            Alias { words: self.words_of(tokens.clone(), &bound), identity: self.identity_of(tokens, &bound) }
        })
    }

    /// Like [`Self::in_words`], but only for the name of a local or a field of a local, which is the form of most keys.
    /// Printing these directly takes much less time than turning them into tokens.
    fn field_in_words(&self, e: &Expr) -> Option<Alias> {
        match e {
            Expr::Path(p) if p.attrs.is_empty() && p.qself.is_none() => {
                let name = p.path.get_ident()?.to_string();
                let words = self.word(&name, &[]).unwrap_or_else(|| name.clone());
                Some(Alias { words, identity: self.identified(&name, &[]).unwrap_or(name) })
            }
            Expr::Field(f) if f.attrs.is_empty() => {
                let syn::Member::Named(member) = &f.member else { return None };
                let mut known = self.field_in_words(&f.base)?;
                for text in [&mut known.words, &mut known.identity] {
                    text.push('.');
                    text.push_str(&member.to_string());
                }
                Some(known)
            }
            _ => None,
        }
    }

    fn words_of(&self, tokens: TokenStream, bound: &[String]) -> String {
        words(tokens, &|n| self.word(n, bound))
    }

    /// Returns the text that a name represents in an expression that itself binds the names `bound`.
    fn word(&self, n: &str, bound: &[String]) -> Option<String> {
        let id = self.find_name(n).filter(|_| bound.iter().all(|b| b != n))?;
        match &self.variable(id).kind {
            Kind::Known(Known { alias: Some(a), .. }) => Some(a.words.clone()),
            _ => None,
        }
    }

    fn identity_of(&self, tokens: TokenStream, bound: &[String]) -> String {
        words(tokens, &|n| self.identified(n, bound))
    }

    /// Returns the identity of a local in an expression that itself binds the names `bound`.
    fn identified(&self, n: &str, bound: &[String]) -> Option<String> {
        let id = self.find_name(n)?;
        let v = self.variable(id);
        Some(match &v.kind {
            // if a name is also bound inside the expression, it may denote the local in one place and a different value
            // in another
            Kind::Known(Known { alias: Some(a), .. }) if bound.iter().all(|b| b != n) => a.identity.clone(),
            _ => format!("{n}#{id}.{}", v.version),
        })
    }

    /// Returns the expression that an immutable local bound to `e` represents, or `None` if the local should keep its
    /// own name.
    pub(in crate::pass) fn alias(&self, e: &Expr, value: &Value) -> Option<Alias> {
        // a local that may change later does not keep its current value
        let stable = value.uses.iter().all(|id| {
            let v = self.variable(*id);
            let never_touched = !self.facts.touched.contains(&v.site);
            !v.mutable && v.views.iter().all(|view| *view == GLOBAL || *view == INTERIOR && never_touched)
        });
        if !stable || !value.changes.is_empty() || self.only_learns {
            return None;
        }

        let e = peel_copies(e);
        if let Some(known) = self.field_in_words(e) {
            return (known.words.len() <= ALIAS_MAX).then_some(known);
        }
        let (tokens, bound) = (e.to_token_stream(), bound_inside(e));
        let words = self.words_of(tokens.clone(), &bound);
        (words.len() <= ALIAS_MAX).then(|| Alias { words, identity: self.identity_of(tokens, &bound) })
    }
}

/// Returns a name without the prefix of a raw identifier. A format string captures `r#type` as `{type}`.
fn unraw(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}
