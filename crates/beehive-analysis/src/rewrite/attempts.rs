//! `attempt! { .. }`: a block whose changes are rolled back when it yields an error.
//!
//! The analysis treats an attempt as a labeled block that the handler may leave at any `?`; the code after
//! the attempt is analyzed in either case. The code passed to the compiler gives the macro two things that it
//! cannot find by itself: the app and the context.

use crate::errors::diagnostics::Diagnostics;
use crate::pass::typed_parameters;
use crate::syntax::{is_context, last_name, pattern_name};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Error, Expr, GenericArgument, ImplItem, ImplItemFn, Item, ItemImpl, Macro};
use syn::{PathArguments, ReceiverKind, ReturnType, Stmt, Token, Type};
use syn::{parse_quote, parse_quote_spanned};

/// Label that marks an attempt for the analysis.
const LABEL: &str = "'__attempt";

/// Checks whether a label marks an attempt.
pub(crate) fn is_label(label: Option<&syn::Label>) -> bool {
    label.is_some_and(|l| l.name.ident == "__attempt")
}

/// Checks for an attempt among the names that the analysis finds in a function.
pub(crate) fn is_labeled(mentioned: &[String]) -> bool {
    mentioned.iter().any(|name| name == "__attempt")
}

fn is_attempt(m: &Macro) -> bool {
    last_name(&m.path) == "attempt"
}

struct Found(Option<Span>);

impl<'ast> Visit<'ast> for Found {
    fn visit_macro(&mut self, m: &'ast Macro) {
        if is_attempt(m) {
            self.0 = self.0.or(Some(m.path.span()))
        }
    }
    fn visit_item(&mut self, _: &'ast Item) {}
}

fn attempt_in(f: &ImplItemFn) -> Option<Span> {
    let mut found = Found(None);
    found.visit_block(&f.block);
    found.0
}

/// Returns a copy of the impl block with its attempts turned into labeled blocks, or `None` if it has no
/// attempts.
pub(crate) fn analyzed(block: &ItemImpl, diagnostics: &mut Diagnostics) -> Option<ItemImpl> {
    let any = block.items.iter().any(|item| matches!(item, ImplItem::Fn(f) if attempt_in(f).is_some()));
    if !any {
        return None;
    }

    let mut block = block.clone();
    let mut labeled = Labeled { errors: vec![] };
    for item in &mut block.items {
        let ImplItem::Fn(f) = item else { continue };
        let Some(span) = attempt_in(f) else { continue };

        if !f.sig.receiver().is_some_and(|r| matches!(r.kind, ReceiverKind::Reference(_, _, Some(_)))) {
            let text = "`attempt!` undoes changes to the app's state, so it works only in a method that takes `&mut self`";
            labeled.errors.push(Error::new(span, text));
        }

        labeled.visit_block_mut(&mut f.block)
    }

    diagnostics.extend(labeled.errors);
    Some(block)
}

/// Rewrites a method into the form passed to the compiler. An attempt with a refused exit becomes a
/// placeholder, because the compiler would refuse the same exit again.
pub(crate) fn executed(f: &mut ImplItemFn) {
    if attempt_in(f).is_none() {
        return;
    }
    let Some(receiver) = f.sig.receiver() else { return };

    let app = receiver.self_token.to_token_stream();
    let context = typed_parameters(f).find(|p| is_context(&p.ty)).and_then(|p| pattern_name(&p.pat));
    let context = match context {
        Some(name) => quote!(::core::option::Option::Some(&mut *#name)),
        None => quote!(::core::option::Option::None),
    };

    let yields = yields_as(&f.sig.output);
    Executed { app, context, yields }.visit_block_mut(&mut f.block)
}

/// Returns the type that a method's attempts yield if they specify none: a `Result` with the method's error type, or
/// with `beehive::Error` if the method specifies none.
fn yields_as(output: &ReturnType) -> TokenStream {
    let any = quote!(::beehive::Result<_>);
    let ReturnType::Type(_, of) = output else { return any };
    let Type::Path(path) = &**of else { return any };

    match path.path.segments.last() {
        Some(last) if last.ident == "Result" => match &last.arguments {
            PathArguments::AngleBracketed(arguments) => match arguments.args.iter().nth(1) {
                // the type of an expression cannot be written with `impl`
                Some(GenericArgument::Type(Type::ImplTrait(_))) | None => any,
                Some(GenericArgument::Type(error)) => quote!(::core::result::Result<_, #error>),
                Some(_) => any,
            },
            _ => any,
        },
        _ => any,
    }
}

/// The content of an attempt: the type it yields, if it begins with `-> Type`, and its statements.
struct Content {
    yields: Option<Type>,
    stmts: Vec<Stmt>,
}

impl Parse for Content {
    fn parse(input: ParseStream) -> syn::Result<Content> {
        if !input.peek(Token![->]) {
            return Ok(Content { yields: None, stmts: Block::parse_within(input)? });
        }

        input.parse::<Token![->]>()?;
        let yields = input.parse()?;
        Ok(Content { yields: Some(yields), stmts: input.parse::<Block>()?.stmts })
    }
}

fn content(m: &Macro) -> syn::Result<Content> {
    m.parse_body()
}

struct Executed {
    app: TokenStream,
    context: TokenStream,
    /// The type that an attempt yields if it specifies none.
    yields: TokenStream,
}

impl VisitMut for Executed {
    fn visit_macro_mut(&mut self, m: &mut Macro) {
        if !is_attempt(m) {
            return;
        }

        // the analysis reports bodies that do not parse; the compiler gets an empty block
        let Content { yields, stmts } = content(m).unwrap_or(Content { yields: None, stmts: vec![] });
        let mut inner: Block = Block { brace_token: Default::default(), stmts };
        self.visit_block_mut(&mut inner);
        if !refused_exits(&inner).is_empty() {
            m.tokens = quote!(@refused);
            return;
        }

        let (app, context, body) = (&self.app, &self.context, &inner.stmts);
        let yields = yields.map_or(self.yields.clone(), ToTokens::into_token_stream);
        m.tokens = quote!(@in #app, #context, #yields, #(#body)*);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        visit_mut::visit_block_mut(self, block);
        end_statements(block)
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// Adds the missing semicolon to `attempt! { .. }` in the middle of a block, where it is a statement whose
/// value, which is not `()`, is discarded.
fn end_statements(block: &mut Block) {
    let last = block.stmts.len().saturating_sub(1);
    for (at, s) in block.stmts.iter_mut().enumerate() {
        if let Stmt::Macro(m) = s
            && is_attempt(&m.mac)
            && at < last
        {
            m.semi_token.get_or_insert_with(Default::default);
        }
    }
}

struct Labeled {
    errors: Vec<Error>,
}

impl Labeled {
    fn block_of(&mut self, m: &Macro) -> Expr {
        let span = m.path.span();
        let stmts = match content(m) {
            Ok(content) => content.stmts,
            Err(error) => {
                self.errors.push(error);
                vec![]
            }
        };

        let mut inner = Block { brace_token: Default::default(), stmts };
        self.visit_block_mut(&mut inner);
        let label = syn::Lifetime::new(LABEL, span);
        self.errors.extend(refused_exits(&inner));

        if matches!(inner.stmts.last(), Some(Stmt::Expr(_, None)))
            && let Some(Stmt::Expr(value, _)) = inner.stmts.pop()
        {
            inner.stmts.push(parse_quote_spanned!(value.span()=> let _: ::beehive::Result<_> = #value;))
        }

        let body = &inner.stmts;
        parse_quote!(#label: { #(#body)* })
    }
}

impl VisitMut for Labeled {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        match e {
            Expr::Macro(m) if is_attempt(&m.mac) => *e = self.block_of(&m.mac),
            _ => visit_mut::visit_expr_mut(self, e),
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        end_statements(block);
        visit_mut::visit_block_mut(self, block)
    }

    fn visit_stmt_mut(&mut self, s: &mut Stmt) {
        match s {
            Stmt::Macro(m) if is_attempt(&m.mac) => *s = Stmt::Expr(self.block_of(&m.mac), m.semi_token),
            _ => visit_mut::visit_stmt_mut(self, s),
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// Returns an error for each `return`, `break` and `continue` that would leave an attempt.
fn refused_exits(block: &Block) -> Vec<Error> {
    let mut leaving = Leaving::default();
    leaving.visit_block(block);
    leaving.errors
}

#[derive(Default)]
struct Leaving {
    loops: usize,
    labels: Vec<String>,
    errors: Vec<Error>,
}

impl Leaving {
    fn within(&mut self, label: Option<&syn::Label>, is_loop: bool, visit: impl FnOnce(&mut Self)) {
        self.labels.extend(label.map(|l| l.name.ident.to_string()));
        self.loops += is_loop as usize;
        visit(self);
        self.loops -= is_loop as usize;
        if label.is_some() {
            self.labels.pop();
        }
    }

    fn refuse(&mut self, e: &Expr, what: &str) {
        self.errors.push(Error::new_spanned(
            e,
            format!(
                "{what} would leave the attempt, which would then be neither kept nor undone\n\
                 help: end the attempt with its value, `Ok(..)` or `Err(..)?`, and leave the loop or the method after it"
            ),
        ))
    }
}

impl<'ast> Visit<'ast> for Leaving {
    fn visit_expr(&mut self, e: &'ast Expr) {
        let goes_out = |to: &Option<syn::Lifetime>| match to {
            Some(label) => !self.labels.contains(&label.ident.to_string()),
            None => self.loops == 0,
        };

        match e {
            // `return` inside a closure or an async block leaves only the closure or the block
            Expr::Closure(_) | Expr::Async(_) => return,
            // a nested attempt has already been checked
            Expr::Block(b) if is_label(b.label.as_ref()) => return,
            Expr::ForLoop(f) => {
                self.visit_expr(&f.expr);
                return self.within(f.label.as_ref(), true, |inside| inside.visit_block(&f.body));
            }
            Expr::While(w) => {
                return self.within(w.label.as_ref(), true, |inside| {
                    inside.visit_expr(&w.cond);
                    inside.visit_block(&w.body)
                });
            }
            Expr::Loop(l) => {
                return self.within(l.label.as_ref(), true, |inside| inside.visit_block(&l.body));
            }
            Expr::Block(b) => {
                return self.within(b.label.as_ref(), false, |inside| inside.visit_block(&b.block));
            }
            Expr::Return(_) => self.refuse(e, "`return`"),
            Expr::Break(b) if goes_out(&b.label) => self.refuse(e, "`break`"),
            Expr::Continue(c) if goes_out(&c.label) => self.refuse(e, "`continue`"),
            _ => {}
        }

        visit::visit_expr(self, e)
    }

    fn visit_item(&mut self, _: &'ast Item) {}
}
