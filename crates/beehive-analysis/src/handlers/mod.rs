//! Expands `#[handlers] impl App { #[rcv] fn .. }`: parses the block, derives the maps, checks the assertions
//! in attributes, and prints the result.

mod macros;
mod options;
mod output;
mod outside;
mod signature;
mod written;

use crate::emit::{effects, needed, print, typed};
use crate::errors::diagnostics::Diagnostics;
use crate::errors::missing::Missing;
use crate::errors::pages;
use crate::faults::Faults;
use crate::node::{Assumption, FunctionMap, Node};
use crate::pass::typed_parameters;
use crate::report::{Cell, Summary, Verdict, summarize, summary_of, verdicts};
use crate::rewrite::attempts;
use crate::syntax::{pattern_name, self_field};
use crate::unit::{Functions, Unit};
use crate::value::Sources;
use crate::words::plain_words;
pub(crate) use options::milliseconds;
use options::{BlockOptions, HandlerOptions};
pub use outside::expand_outside;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use signature::Signature;
use std::collections::BTreeMap;
use syn::visit::{self, Visit};
use syn::{Error, ImplItem, ImplItemFn, ItemImpl};
use written::Written;

/// The result for one handler.
#[derive(Clone, Debug)]
pub struct HandlerDerivation {
    /// The method's name.
    pub name: String,
    /// `sharded`, `centralized`, `stateless`, `drop` or `custom`.
    pub kind: String,
    /// The cells as a programmer would write them; `-` if there are none.
    pub cells: String,
    /// Different keys needed together by one message, so that their owners merge; empty if none.
    pub joins: String,
    /// Dictionaries whose shared views it reads; empty if none.
    pub views: String,
    /// The reason why it is centralized; empty if it is not.
    pub reason: String,
    /// Line of the code that centralizes it; zero if it is not centralized.
    pub reason_line: usize,
    /// Advice to the programmer; empty if none.
    pub note: String,
    /// Body of the derived map.
    pub map: TokenStream,
}

/// A warning: code that compiles but is probably not what was intended.
#[derive(Clone, Debug)]
pub struct Warning {
    /// Name of the handler, with the span of its declaration.
    pub handler: Ident,
    /// Name under which the compiler shows the warning, such as `count_is_centralized`.
    pub title: String,
    /// Description of the problem, and the option that declares it intended.
    pub text: String,
}

/// The result for a block.
#[derive(Debug)]
pub struct Derivation {
    /// The block as it is passed on to the compiler.
    pub block: TokenStream,
    /// The code that replaces the block: [`Self::block`] and everything else.
    pub tokens: TokenStream,
    /// The handlers in the order of the block.
    pub handlers: Vec<HandlerDerivation>,
    /// Map functions of the helpers.
    pub helpers: TokenStream,
    /// All errors.
    pub errors: Vec<Error>,
    /// All warnings.
    pub warnings: Vec<Warning>,
}

/// The assumptions that maps make in each function, by the function's index in the block.
type Assumptions = BTreeMap<Option<usize>, Vec<Assumption>>;

/// A handler of the block.
pub(crate) struct Handler<'a> {
    item: &'a ImplItemFn,
    options: HandlerOptions,
    signature: Signature,
    /// Index among the handlers of the block.
    index: usize,
}

impl Handler<'_> {
    fn name(&self) -> String {
        self.item.sig.ident.to_string()
    }

    /// Returns the message type in words, used to detect two handlers for the same message.
    fn message_words(&self) -> String {
        match (&self.signature.message, &self.options.every) {
            (Some((ty, _)), _) => plain_words(ty.to_token_stream()),
            (None, Some((_, period))) => format!("every {period}"),
            (None, None) => String::new(),
        }
    }
}

/// Expands `#[handlers]`.
pub fn expand_handlers(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let block = match Written::of(item.clone()) {
        Ok(block) => block,
        Err(e) => {
            return unread(item, &e);
        }
    };
    run(syn::parse2(attribute), &block, Faults::default()).tokens
}

/// Derives the maps of a block given its tokens and the tokens of its attribute, for tests and tools.
pub fn derivation(attribute: TokenStream, item: TokenStream) -> syn::Result<Derivation> {
    Ok(run(Ok(syn::parse2(attribute)?), &Written::of(item)?, Faults::default()))
}

/// Like [`derivation`], but with a fault seeded into the analysis.
#[cfg(feature = "faults")]
#[doc(hidden)]
pub fn faulty_derivation(
    attribute: TokenStream,
    item: TokenStream,
    faults: Faults,
) -> syn::Result<Derivation> {
    Ok(run(Ok(syn::parse2(attribute)?), &Written::of(item)?, faults))
}

/// Handles a block that does not parse. The item is kept, so that an editor still sees it. Usually the
/// compiler also fails to parse the item and reports that; if it succeeds, the panic in `register` reports
/// the error where the app is started.
fn unread(item: TokenStream, error: &Error) -> TokenStream {
    let header = syn::parse2::<Header>(item.clone());
    let item = without_handler_attributes(item);
    let Ok(Header { generics, of }) = header else {
        let error = pages::compile_error(error);
        return quote!(#item #error);
    };

    let (text, (generics, _, bounds)) = (error.to_string(), generics.split_for_impl());
    quote! {
        #item
        #[automatically_derived]
        impl #generics ::beehive::__private::Handlers for #of #bounds {
            const MONOLITHIC: u64 = 0;
            const REPORT: &'static [::beehive::__private::HandlerReport] = &[];
            fn register(_: &mut ::beehive::__private::Registrar<Self>) {
                const { ::core::panic!(#text) }
            }
        }
    }
}

/// The part of an impl block before its braces.
struct Header {
    generics: syn::Generics,
    of: Box<syn::Type>,
}

impl syn::parse::Parse for Header {
    fn parse(input: syn::parse::ParseStream) -> syn::Result<Self> {
        syn::Attribute::parse_outer(input)?;
        input.parse::<syn::Token![impl]>()?;
        let mut generics: syn::Generics = input.parse()?;
        let of = input.parse()?;
        generics.where_clause = input.parse()?;
        input.parse::<proc_macro2::Group>()?;
        Ok(Header { generics, of })
    }
}

/// Removes `#[rcv]` and `#[every]` from tokens that do not parse.
fn without_handler_attributes(tokens: TokenStream) -> TokenStream {
    let mut out: Vec<TokenTree> = vec![];
    for t in tokens {
        match t {
            TokenTree::Group(g) => {
                let ours = matches!(g.stream().into_iter().next(), Some(TokenTree::Ident(i)) if i == "rcv" || i == "every");
                if ours && matches!(out.last(), Some(TokenTree::Punct(p)) if p.as_char() == '#') {
                    out.pop();
                    continue;
                }

                let mut inner =
                    proc_macro2::Group::new(g.delimiter(), without_handler_attributes(g.stream()));
                inner.set_span(g.span());
                out.push(inner.into());
            }
            t => out.push(t),
        }
    }

    out.into_iter().collect()
}

fn is_handler_attribute(a: &syn::Attribute) -> bool {
    a.path().is_ident("rcv") || a.path().is_ident("every")
}

fn run(options: syn::Result<BlockOptions>, written: &Written, faults: Faults) -> Derivation {
    let block = &written.block;
    let mut diagnostics = Diagnostics::default();
    let (options, misread) = match options {
        Ok(options) => (options, None),
        Err(e) => (BlockOptions::default(), Some(e)),
    };

    if let Some((of, _)) = &block.trait_ {
        diagnostics.push(Error::new_spanned(
            of,
            "`#[handlers]` belongs on an inherent impl block\nhelp: `impl App { .. }`, without a trait",
        ));
    }

    let is_handler = |i: &ImplItem| matches!(i, ImplItem::Fn(f) if f.attrs.iter().any(is_handler_attribute));
    if diagnostics.is_empty() && !block.items.iter().any(is_handler) {
        diagnostics.push(Error::new_spanned(
            &block.self_ty,
            "this `#[handlers]` block has no handler, so the app would never receive a message\n\
             help: write `#[rcv]` above each method that handles a message, and `#[every(\"10s\")]` above each method \
             that runs periodically; a task that only brings in messages is an IO bee, and needs no app",
        ))
    }

    let any_attempts = written.mentions.attempts;
    let labeled = any_attempts.then(|| attempts::analyzed(block, &mut diagnostics)).flatten();
    let analyzed = labeled.as_ref().unwrap_or(block);
    let mut functions = Functions::new();
    for item in &analyzed.items {
        if let ImplItem::Fn(f) = item {
            functions.entry(f.sig.ident.to_string()).or_default().push(f)
        }
    }

    let handlers = collect_handlers(analyzed, &mut diagnostics);
    refuse_stateful_maps(&handlers, &functions, &mut diagnostics);
    let mut unit = Unit::new(functions, options.pure, faults);
    if labeled.is_none() {
        written.methods().for_each(|(f, tokens, names)| unit.add_tokens(f, tokens, names));
    }
    let generic = unit.generic();
    let mut derived: Vec<(TokenStream, Summary)> = vec![];
    let (mut plain, mut missing): (Vec<Ident>, Vec<Missing>) = (vec![], vec![]);
    let mut macros: Vec<Ident> = vec![];
    let mut assumptions: Assumptions = BTreeMap::new();
    let index_of = |f: &ImplItemFn| {
        analyzed.items.iter().position(|item| matches!(item, ImplItem::Fn(g) if std::ptr::eq(f, g)))
    };

    for h in &handlers {
        derived.push(match &h.options.map {
            Some(map) => {
                let (mapper, message) = (crate::emit::mapper(), output::message_name());
                (quote!(#map(#message, #mapper);), Summary { effect: true, ..Summary::default() })
            }
            None => {
                let map = unit.handler(h.item);
                missing.extend(map.missing.iter().cloned());
                macros.extend(map.macros.iter().cloned());
                let assumed = assumptions.entry(index_of(h.item)).or_default();
                derive_map(h, map, &mut diagnostics, &mut plain, assumed, &generic)
            }
        });
    }

    let mut helpers = TokenStream::new();
    let mut whole: Vec<Ident> = derived.iter().flat_map(|(_, s)| s.whole.iter().cloned()).collect();
    whole.extend(handlers.iter().flat_map(|h| h.options.whole.iter().cloned()));

    for map in unit.helpers() {
        diagnostics.extend(map.errors.iter().cloned());
        missing.extend(map.missing.iter().cloned());
        macros.extend(map.macros.iter().cloned());
        if !map.is_method {
            continue;
        }

        plain.extend(map.plain.iter().cloned());
        whole.extend(summary_of(&map).whole.iter().cloned());
        if let Some(item) = unit.versions(&map.name).get(map.version) {
            assumptions.entry(index_of(item)).or_default().extend(relied_on(&map.assumptions, &map.nodes));
            let printed = crate::emit::helper::helper_function(&map, item);
            let (printed, untyped) = match map.errors.is_empty() {
                true => typed::typed_helper(printed, item, &generic),
                false => (printed, None),
            };
            diagnostics.extend(untyped);
            helpers.extend(printed);
        }
    }

    let also: Vec<Ident> = handlers.iter().flat_map(|h| h.options.whole.iter().cloned()).collect();
    let names: Vec<String> = handlers.iter().map(Handler::name).collect();
    let summaries: Vec<(&str, &Summary)> =
        names.iter().map(String::as_str).zip(derived.iter().map(|d| &d.1)).collect();
    let mut warnings = vec![];
    let found: Vec<HandlerDerivation> = handlers
        .iter()
        .zip(verdicts(&summaries, &also))
        .zip(&derived)
        .map(|((h, verdict), (map, summary))| {
            let found = judge(h, verdict, map.clone(), &mut diagnostics, &mut warnings);
            HandlerDerivation { views: summary.views(), ..found }
        })
        .collect();

    dedup(&mut whole);
    let mut shared: Vec<Ident> = derived.iter().flat_map(|(_, s)| s.shared.iter().cloned()).collect();
    shared.extend(unit.helpers().iter().flat_map(|map| map.shared.iter().cloned()));
    shared.extend(written_by_hand(&handlers));
    dedup(&mut shared);

    dedup(&mut macros);
    if let Some(e) = misread {
        // the other errors may be consequences of the unreadable options
        diagnostics = Diagnostics::default();
        diagnostics.push(e)
    }

    if !diagnostics.is_empty() {
        // does not warn about refused code
        warnings.clear();
    }

    let output = output::Output {
        written,
        block,
        assumptions: &assumptions,
        handlers: &handlers,
        found: &found,
        helpers: &helpers,
        plain: &plain,
        whole: &whole,
        shared: &shared,
        missing: &missing,
        macros: &macros,
        warnings: &warnings,
        diagnostics: &diagnostics,
    };
    let block = output.block();
    let tokens = output.tokens(&block);

    Derivation { block, tokens, handlers: found, helpers, errors: diagnostics.into_errors(), warnings }
}

/// Returns those assumptions of a map on which the map's keys depend.
fn relied_on(assumptions: &[Assumption], nodes: &[Node]) -> Vec<Assumption> {
    if assumptions.is_empty() {
        return vec![];
    }
    let needed = needed::needed(nodes);
    assumptions.iter().filter(|a| needed.contains(&a.local)).cloned().collect()
}

/// Returns the dictionaries whose shared views are read by handlers with a hand-written map, whose bodies are
/// not analyzed.
fn written_by_hand(handlers: &[Handler]) -> Vec<Ident> {
    struct Reads(Vec<Ident>);

    impl<'ast> Visit<'ast> for Reads {
        fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
            if call.method == "shared"
                && call.args.is_empty()
                && let Some(field) = self_field(&call.receiver)
            {
                self.0.push(field.clone())
            }
            visit::visit_expr_method_call(self, call)
        }
    }

    let mut reads = Reads(vec![]);
    let by_hand = handlers.iter().filter(|h| h.options.map.is_some());
    by_hand.for_each(|h| reads.visit_block(&h.item.block));
    reads.0
}

/// Refuses a hand-written map that takes `self`: such a map would read cells before it is known which cells
/// the message needs.
fn refuse_stateful_maps(handlers: &[Handler], functions: &Functions, diagnostics: &mut Diagnostics) {
    for path in handlers.iter().filter_map(|h| h.options.map.as_ref()) {
        let Some(name) = path.segments.last().map(|s| s.ident.to_string()) else { continue };

        let own = path.segments.len() == 2;
        if own && functions.get(&name).is_some_and(|f| f.iter().any(|f| f.sig.receiver().is_some())) {
            diagnostics.push(Error::new_spanned(
                path,
                format!(
                    "`{name}` takes `self`, but a map must depend only on the message: it decides which cells the handler \
                     needs, and a cell it read could belong to a different bee, or change before the handler runs\n\
                     help: write it as `fn {name}(msg: &Message, mapper: &mut Mapper)`; if a key depends on state, send a \
                     message that carries the key"
                ),
            ));
        }
    }
}

fn dedup(names: &mut Vec<Ident>) {
    let mut seen: Vec<Ident> = vec![];
    names.retain(|n| {
        let new = !seen.contains(n);
        seen.push(n.clone());
        new
    });
}

fn collect_handlers<'a>(block: &'a ItemImpl, diagnostics: &mut Diagnostics) -> Vec<Handler<'a>> {
    let mut handlers: Vec<Handler> = vec![];
    for item in &block.items {
        let ImplItem::Fn(item) = item else { continue };
        let Some(attribute) = item.attrs.iter().find(|a| is_handler_attribute(a)) else { continue };

        let options = HandlerOptions::of(attribute).unwrap_or_else(|e| {
            diagnostics.push(e);
            HandlerOptions { misread: true, ..HandlerOptions::default() }
        });
        let signature = match Signature::of(item, &options) {
            Ok(signature) => signature,
            Err(e) => {
                // the right shape depends on the options, which could not be parsed
                if !options.misread {
                    diagnostics.push(e)
                }
                continue;
            }
        };

        if let Some(span) = options.observes
            && signature::answers(&item.sig.output)
        {
            diagnostics.at(
                span,
                format!(
                    "`{}` returns an answer, so it is not an observer\nhelp: remove `observes`, or make the handler return nothing",
                    item.sig.ident
                ),
            )
        }

        let handler = Handler { item, options, signature, index: handlers.len() };
        let words = handler.message_words();
        match handlers.iter().find(|h| h.signature.message.is_some() && h.message_words() == words) {
            Some(other) if handler.signature.message.is_some() => diagnostics.push(Error::new_spanned(
                &item.sig.ident,
                format!(
                    "`{}` already handles `{words}`; an app has only one handler for it\n\
                     help: do both in that handler, or move one of them to a separate app",
                    other.name()
                ),
            )),
            _ => handlers.push(handler),
        }
    }

    handlers
}

/// Returns the body of a handler's map and a summary of the cells it touches.
fn derive_map(
    h: &Handler,
    map: FunctionMap,
    diagnostics: &mut Diagnostics,
    plain: &mut Vec<Ident>,
    assumptions: &mut Vec<Assumption>,
    generic: &[String],
) -> (TokenStream, Summary) {
    let failed = !map.errors.is_empty();
    diagnostics.extend(map.errors);
    plain.extend(map.plain);

    // an `each` handler always touches the cell that it runs for
    let mut start = Summary { shared: map.shared, ..Summary::default() };
    if let Some(field) = &h.options.each {
        let key = typed_parameters(h.item).next().and_then(|p| pattern_name(&p.pat)).map(Ident::to_string);
        let variable = map.parameters.first().and_then(|p| p.first()).copied().unwrap_or_default();
        let name = key.unwrap_or("..".into());
        start.add(Cell {
            field: field.clone(),
            words: format!("{field}[{name}]"),
            loops: String::new(),
            identity: format!("{name}#{variable}.0"),
            sources: Sources::message(),
            varies: false,
        });
    }

    let nodes = effects::remove_settled(map.nodes);
    let summary = summarize(&nodes, start);
    assumptions.extend(relied_on(&map.assumptions, &nodes));
    let printed = print::print(&nodes, &needed::needed(&nodes));
    if failed {
        return (printed, summary);
    }
    let (printed, untyped) = typed::typed(printed, h.item, generic);
    diagnostics.extend(untyped);
    (printed, summary)
}

/// Checks the assertions in the handler's attribute, and warns about results that are probably unintended.
fn judge(
    h: &Handler,
    verdict: Verdict,
    map: TokenStream,
    diagnostics: &mut Diagnostics,
    warnings: &mut Vec<Warning>,
) -> HandlerDerivation {
    let (name, ident) = (h.name(), &h.item.sig.ident);
    if let Some(path) = &h.options.map {
        return HandlerDerivation {
            name,
            kind: "custom".into(),
            cells: format!("by `{}`", plain_words(path.to_token_stream())),
            joins: String::new(),
            views: String::new(),
            reason: String::new(),
            reason_line: 0,
            note: String::new(),
            map,
        };
    }

    let Verdict { kind, cells, joins, reason, line, accidental } = verdict;
    if let Some(expect) = &h.options.expect
        && expect.value() != cells
    {
        diagnostics.at(
            expect.span(),
            format!(
                "the derived map of `{name}` is \"{cells}\", not \"{}\"\n\
                 help: if the derived map is intended, write `expect = \"{cells}\"`; otherwise the handler accesses cells that it should not",
                expect.value()
            ),
        );
    }

    let mut note = String::new();
    let attribute = h.options.opening();

    // authors who write `expect` know the cells, so no warning is needed
    let meant = h.options.expect.is_some();
    match &h.options.kind {
        Some((said, span)) if *said != kind => {
            let help = match kind {
                "centralized" => "give every message a key of its own, or, if a single bee is intended, write `centralized`".into(),
                "drop" => "is something missing from its body? it touches no dictionary, emits nothing and answers nothing".into(),
                kind => format!("write `{kind}`, or change which cells it touches"),
            };

            let text = match kind {
                "drop" => format!("`{name}` drops every message, because it does nothing; it is not {said}"),
                kind => format!("`{name}` is {kind}, not {said}\nnote: {reason}"),
            };

            diagnostics.at(*span, format!("{text}\nhelp: {help}"))
        }
        None if accidental && !meant => {
            note = format!(
                "give every message a key of its own, or, if a single bee is intended, write #[{attribute}centralized)]"
            );
            warnings.push(Warning {
                handler: ident.clone(),
                title: format!("{name}_is_centralized"),
                text: format!("{reason}, so one bee gets all of these messages; if that is intended, write #[{attribute}centralized)] (more: beehive::guide::errors::centralized)"),
            });
        }
        _ => {}
    }

    if !joins.is_empty() && kind == "sharded" && !h.options.joins && !meant {
        note = format!(
            "touch only one key in each handler: send the other key in a separate message, or write #[{attribute}joins)]"
        );
        warnings.push(Warning {
            handler: ident.clone(),
            title: format!("{name}_joins_cells"),
            text: format!(
                "a message joins {joins} permanently, so one bee may end up owning them all; send a message \
                 for the other key instead, or, if that is intended, write #[{attribute}joins)] (more: beehive::guide::errors::joins)"
            ),
        });
    }

    let reason = if line > 0 { reason } else { String::new() };
    let views = String::new();
    HandlerDerivation { name, kind: kind.into(), cells, joins, views, reason, reason_line: line, note, map }
}

/// Returns the span of the handler's name.
pub(crate) fn declared_at(h: &Handler) -> Span {
    h.item.sig.ident.span()
}
