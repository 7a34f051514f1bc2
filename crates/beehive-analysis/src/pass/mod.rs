//! One pass over one function: code that depends only on the message is kept as nodes, while values that depend on
//! state are tainted. Each file handles one kind of syntax (`closures`, `loops`, `calls` and so on) or one question
//! about values (`scope`, `views`, `order`, `keeping`).

mod access;
mod branches;
mod calls;
mod closures;
mod expressions;
pub(crate) mod locals;
mod loops;
pub(crate) mod macros;
mod matches;
pub(crate) mod order;
mod statements;
mod stops;

use crate::emit::leave::{Control, Keeping, Locals, Use, moved};
use crate::errors::missing::Missing;
use crate::node::{Assumption, FunctionMap, Node};
use crate::syntax::is_context;
use crate::unit::{Facts, Once, Unit};
use crate::value::{Site, Sources, Taint, Value, Variables, Why};
use crate::words::placeholder;
use access::KeyError;
use locals::owners::owner_of_parameter;
use locals::scope::{Alias, Kind, Known, Scopes};
use locals::views::{Views, of_parameter};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident};
use std::cell::OnceCell;
use stops::Stop;
use syn::visit::{self, Visit};
use syn::{Error, Expr, FnArg, ImplItemFn};

/// A loop or a labeled block around the current point.
struct Enclosing {
    site: Site,
    label: Option<String>,
    /// Number of conditions on state around it. Leaving it from a greater depth is not certain.
    depth: usize,
    is_loop: bool,
    /// Whether its value is used by an expression, rather than discarded by a statement.
    is_value: bool,
    /// The merged properties of the values given by `break`.
    yields: Value,
    /// The sources that determine how often it runs, as far as the pass has found them.
    decided_by: Sources,
    /// Number of conditions on the message around it.
    conditions: usize,
}

/// The state of one pass over one function.
pub(crate) struct Pass<'u, 'a> {
    unit: &'u Unit<'a>,
    facts: &'u Facts,
    learned: Facts,
    /// Whether this round only looks for facts. Its nodes have no texts, because the next round creates them again.
    only_learns: bool,
    scopes: Scopes,
    /// The conditions on state around the current point, outermost first.
    control: Vec<Control>,
    /// The loops around the current point that the handler may leave earlier than the map, outermost first.
    stops: Vec<Stop>,
    enclosing: Vec<Enclosing>,
    /// The origins of the conditions on the message around the current point, outermost first.
    conditions: Vec<Sources>,
    /// Number of closures around the current point.
    closures: usize,
    /// Number of those closures that are arguments of methods.
    direct_closures: usize,
    /// Whether the closure under analysis contains a macro that ends the handler with a panic.
    diverged: bool,
    /// Number of `pure!` macros around the current point.
    trust: usize,
    /// Whether the function returns the value of the expression under analysis.
    tail: bool,
    /// Whether the expression analyzed next may be unordered.
    order_open: bool,
    /// Number of expressions around the current one that compute a value by branches or blocks.
    computing: usize,
    /// Whether the current statement contains logging left out of the map.
    logged: bool,
    /// Number of flags made so far for `pure || state` conditions, used to name the next one.
    flags: usize,
    errors: Vec<Error>,
    /// Whether a refused construct may bind names unknown to the pass. Errors about keys are then suppressed, because
    /// they may only be consequences.
    blind: bool,
    key_errors: Vec<KeyError>,
    parameter_keys: Vec<(usize, String)>,
    plain: Vec<Ident>,
    shared: Vec<Ident>,
    missing: Vec<Missing>,
    /// Standard library macros called by a bare name.
    macros: Vec<Ident>,
    /// The function under analysis.
    item: &'u ImplItemFn,
    /// The facts about the function that are determined once for all rounds.
    once: &'u Once,
    /// Types and traits declared by the function itself.
    own_types: Vec<Ident>,
    /// The types among them that neither derive nor implement `Clone`.
    uncloned_types: Vec<Ident>,
    /// Names of macros declared or imported by the function itself.
    own_macros: Vec<String>,
    /// The locals below this number are the function's parameters.
    parameters_end: usize,
    /// The parameters whose patterns are a name and whose types are `&`.
    borrowed: Variables,
    /// The assumptions of the map about names that macros may rebind.
    assumptions: Vec<Assumption>,
    /// Locals that certainly contain no hash maps and no hash sets.
    ordered: Variables,
    /// Locals that are certainly not hash maps or hash sets, though their elements may be.
    lists: Variables,
    /// Maps whose values are certainly not hash maps or hash sets.
    plain_maps: Variables,
    /// Locals whose types may be aliases of hash maps or hash sets.
    unknown_types: Variables,
}

impl<'u, 'a> Pass<'u, 'a> {
    pub(crate) fn new(
        unit: &'u Unit<'a>,
        item: &'u ImplItemFn,
        once: &'u Once,
        facts: &'u Facts,
        only_learns: bool,
    ) -> Self {
        Pass {
            unit,
            facts,
            learned: Facts::default(),
            only_learns,
            scopes: Scopes::default(),
            control: vec![],
            stops: vec![],
            enclosing: vec![],
            conditions: vec![],
            closures: 0,
            direct_closures: 0,
            diverged: false,
            trust: 0,
            tail: false,
            order_open: false,
            computing: 0,
            logged: false,
            flags: 0,
            errors: vec![],
            blind: false,
            key_errors: vec![],
            parameter_keys: vec![],
            plain: vec![],
            shared: vec![],
            missing: vec![],
            macros: vec![],
            item,
            once,
            own_types: vec![],
            uncloned_types: vec![],
            own_macros: vec![],
            parameters_end: 0,
            borrowed: Variables::new(),
            assumptions: vec![],
            ordered: Variables::new(),
            lists: Variables::new(),
            plain_maps: Variables::new(),
            unknown_types: Variables::new(),
        }
    }

    /// Returns the facts found in this round, with which the next round must start.
    pub(crate) fn into_learned(self) -> Facts {
        self.learned
    }

    /// Analyzes the function. `mask` holds for each parameter whether it depends on state.
    pub(crate) fn function(&mut self, mask: &[bool], handler: bool) -> FunctionMap {
        let item = self.item;
        self.refuse_conditional_compilation(item);
        let mut parameters = vec![];
        for (index, typed) in typed_parameters(item).enumerate() {
            let kind = if is_context(&typed.ty) {
                Kind::Context
            } else if mask.get(index).copied().unwrap_or(false) {
                Kind::Tainted(Taint::new(Why::Parameter(index), typed_span(typed)))
            } else if handler {
                Kind::Known(Known { sources: Sources::message(), ..Known::default() })
            } else {
                let sources = Sources { message: false, parameters: [index].into() };
                let alias = Alias { words: placeholder(index), identity: placeholder(index) };
                Kind::Known(Known { sources, alias: Some(alias), ..Known::default() })
            };

            let views = if handler { Views::new() } else { of_parameter(&typed.ty, item) };
            let owner = owner_of_parameter(&typed.ty, item);
            let bound = self.with_owner(owner, |pass| pass.bind_views(&typed.pat, views, &kind, false));
            if is_borrowed(typed) {
                self.borrowed.extend(&bound);
            }
            parameters.push(bound);
        }

        self.parameters_end = self.scopes.variables.len();
        let mut nodes = vec![];
        let statement = handler || item.sig.receiver().is_some();

        // an answer is an effect: an answered message must not be dropped
        self.tail = statement && !matches!(item.sig.output, syn::ReturnType::Default);
        let tail = self.statements(&item.block.stmts, &mut nodes, statement);
        self.report_keys();
        let pattern: String = mask.iter().map(|state| if *state { 's' } else { 'm' }).collect();

        FunctionMap {
            map_name: format_ident!("__bh_map_{}_{}", item.sig.ident, pattern, span = item.sig.ident.span()),
            name: item.sig.ident.to_string(),
            version: 0,
            nodes,
            parameters,
            mask: mask.to_vec(),
            errors: std::mem::take(&mut self.errors),
            parameter_keys: std::mem::take(&mut self.parameter_keys),
            plain: std::mem::take(&mut self.plain),
            shared: std::mem::take(&mut self.shared),
            missing: std::mem::take(&mut self.missing),
            macros: std::mem::take(&mut self.macros),
            assumptions: std::mem::take(&mut self.assumptions),
            tail,
            is_method: item.sig.receiver().is_some(),
            needed: OnceCell::new(),
            summary: OnceCell::new(),
            may_panic: OnceCell::new(),
        }
    }

    /// Refuses `#[cfg]` inside a body. An attribute macro sees the body before `#[cfg]` is applied, so a `let` that is
    /// later removed would shadow an earlier one.
    fn refuse_conditional_compilation(&mut self, item: &ImplItemFn) {
        let conditional = self.once.conditional.get_or_init(|| {
            let mentioned = self.mentions().iter().any(|name| name == "cfg" || name == "cfg_attr");
            if mentioned { conditional_parts(item) } else { vec![] }
        });
        self.blind |= !conditional.is_empty();

        for span in conditional {
            self.error_at(
                *span,
                "Beehive cannot tell whether this is compiled\n\
                 help: write two versions of a method of this impl block, and put a `#[cfg]` on each",
            );
        }
    }

    /// Checks whether the function under analysis is an associated function without `self`.
    fn is_free(&self) -> bool {
        self.item.sig.receiver().is_none()
    }

    fn error(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.errors.push(Error::new_spanned(tokens, message))
    }

    fn error_at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.errors.push(Error::new(span, message))
    }

    /// Returns an expression as printed into the map at this point.
    fn printed(&self, e: &Expr) -> TokenStream {
        self.printed_keeping(e, Use::Read, &|name| self.keeping(name))
    }

    /// Like [`Self::printed`], for an expression whose value is moved.
    fn printed_owned(&self, e: &Expr) -> TokenStream {
        self.printed_keeping(e, Use::Taken, &|name| self.keeping(name))
    }

    /// Like [`Self::printed`], for an expression destructured by a pattern.
    fn printed_matched(&self, e: &Expr) -> TokenStream {
        self.printed_keeping(e, Use::Matched, &|name| self.keeping(name))
    }

    fn printed_keeping(&self, e: &Expr, used: Use, keeping: &dyn Fn(&Ident) -> Keeping) -> TokenStream {
        if self.only_learns {
            return TokenStream::new();
        }
        let parts = |name: &Ident, member: &syn::Member, matched| self.keeps_part(name, member, matched);
        let locals = Locals { keeping, parts: &parts, context: &|name| self.is_envelope(name) };
        moved(e, used, &self.control, &locals, self.unit.faults)
    }

    /// Returns every name in the function, with repetitions.
    fn mentions(&self) -> &'u [String] {
        self.unit.names(self.item, self.once)
    }

    /// Enters a condition on state.
    fn under(&mut self) {
        self.control.push(Control::default())
    }

    fn is_clean(value: &Value, nodes: &[Node]) -> bool {
        value.taint.is_none() && crate::node::is_pure(nodes)
    }
}

/// Returns the places at which a body has attributes that decide whether part of it is compiled.
fn conditional_parts(item: &ImplItemFn) -> Vec<Span> {
    struct Conditional(Vec<Span>);

    impl<'ast> Visit<'ast> for Conditional {
        fn visit_attribute(&mut self, a: &'ast syn::Attribute) {
            if a.path().is_ident("cfg") || a.path().is_ident("cfg_attr") {
                self.0.push(syn::spanned::Spanned::span(a))
            }
            visit::visit_attribute(self, a)
        }
    }

    let mut found = Conditional(vec![]);
    found.visit_block(&item.block);
    found.0
}

/// Returns the parameters of a function other than `self`.
pub(crate) fn typed_parameters(item: &ImplItemFn) -> impl Iterator<Item = &syn::PatType> {
    item.sig.inputs.iter().filter_map(|a| match a {
        FnArg::Typed(t) => Some(t),
        FnArg::Receiver(_) => None,
    })
}

/// Checks for a parameter `name: &Type`.
fn is_borrowed(t: &syn::PatType) -> bool {
    matches!(&*t.pat, syn::Pat::Ident(p) if p.mutability.is_none() && p.by_ref.is_none() && p.subpat.is_none())
        && matches!(&*t.ty, syn::Type::Reference(r) if r.mutability.is_none())
}

fn typed_span(t: &syn::PatType) -> Span {
    syn::spanned::Spanned::span(&t.pat)
}
