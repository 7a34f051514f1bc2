//! Prints the code that replaces a `#[handlers]` block: the block itself, the map functions, the
//! implementations for the runtime, and the errors and warnings.

use super::written::{Written, with_attributes};
use super::{Assumptions, Handler, HandlerDerivation, Warning, declared_at, is_handler_attribute, signature};
use crate::emit::{allowances, field_constant, mapper};
use crate::errors::diagnostics::Diagnostics;
use crate::errors::missing::{Missing, refused};
use crate::rewrite::{attempts, rebinding};
use crate::syntax::names;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Attribute, ImplItem, ImplItemFn, ItemImpl, ReturnType};

/// Returns the name of the message in a map function whose parameter is not the user's own pattern.
pub(crate) fn message_name() -> Ident {
    Ident::new("__message", Span::mixed_site())
}

/// Everything that is printed for a block.
pub(crate) struct Output<'a> {
    pub written: &'a Written,
    pub block: &'a ItemImpl,
    pub assumptions: &'a Assumptions,
    pub handlers: &'a [Handler<'a>],
    pub found: &'a [HandlerDerivation],
    pub helpers: &'a TokenStream,
    pub plain: &'a [Ident],
    pub whole: &'a [Ident],
    pub shared: &'a [Ident],
    pub missing: &'a [Missing],
    pub macros: &'a [Ident],
    pub warnings: &'a [Warning],
    pub diagnostics: &'a Diagnostics,
}

impl Output<'_> {
    /// Prints everything that replaces the block; `block` is what [`Self::block`] returns.
    pub(crate) fn tokens(&self, block: &TokenStream) -> TokenStream {
        let failed = !self.diagnostics.is_empty();
        let errors = self.errors();
        let warnings = self.warnings.iter().map(warning);
        let handles = self.handlers.iter().zip(self.found).map(|(h, found)| self.handles(h, found, failed));
        let registrations = self.handlers.iter().map(registration);

        let reports = self.handlers.iter().zip(self.found).map(|(h, found)| report(h, found));
        let helpers = if failed { &TokenStream::new() } else { self.helpers };
        let checks = self.plain.iter().map(|p| {
            let constant = field_constant(p);
            quote_spanned!(p.span()=> ::beehive::__private::assert_plain(Self::#constant);)
        });

        let monolithic = self.whole.iter().map(field_constant);
        let shared = self.shared.iter().map(|field| {
            let constant = field_constant(field);
            quote_spanned!(field.span()=> | Self::#constant.shared_bit())
        });
        let allowances = allowances();

        let of = &self.block.self_ty;
        let (generics, _, bounds) = self.block.generics.split_for_impl();
        let undeclared = self.undeclared();
        let macros = super::macros::checks(self.macros);
        quote! {
            #block
            #errors
            #(#warnings)*
            const _: () = {
            #undeclared
            #macros
            #[allow(unused_imports)]
            use ::beehive::__private::{AnswerOtherwise as _, CellOtherwise as _, CellThrough as _, CellThroughTwo as _, RegistrationOtherwise as _};
            #[automatically_derived]
            impl #generics #of #bounds { #helpers }
            #[automatically_derived]
            impl #generics ::beehive::__private::Handlers for #of #bounds {
                const MONOLITHIC: u64 = 0 #(| Self::#monolithic.bit())*;
                const SHARED: u64 = 0 #(#shared)*;
                #allowances
                const REPORT: &'static [::beehive::__private::HandlerReport] = {
                    // the checks need `Self`; a second block of the same app would be refused as a
                    // conflicting impl anyway
                    #(#checks)*
                    &[#(#reports),*]
                };
                #[allow(unused_variables)]
                fn register(registrar: &mut ::beehive::__private::Registrar<Self>) { #(#registrations)* }
            }
            #(#handles)*
            };
        }
    }

    /// Prints the errors. After errors, stand-ins keep the compiler from reporting missing methods and
    /// functions again.
    fn errors(&self) -> TokenStream {
        let errors = self.diagnostics.tokens();
        if errors.is_empty() || self.missing.is_empty() {
            return errors;
        }
        let mut name = vec![];
        names(self.block.self_ty.to_token_stream(), &mut name);
        refused(&name.join("_"), self.missing, errors)
    }

    /// Prints fallbacks for field constants, used if no derive declares the app. Inherent constants take
    /// precedence over them. A field named only in an attribute gets no fallback, because the missing
    /// constant is the only error for a field that does not exist.
    fn undeclared(&self) -> TokenStream {
        if !self.block.generics.params.is_empty() {
            return TokenStream::new();
        }

        // an unused constant for a method does no harm
        let constants = self.written.mentions.of_self.values().map(|f| {
            let constant = field_constant(f);
            quote! {
                const #constant: &'static ::beehive::__private::Undeclared = ::beehive::__private::Undeclared::IT;
            }
        });

        quote! {
            #[allow(non_upper_case_globals, dead_code)]
            trait __Undeclared { #(#constants)* }
            impl<__T: ?Sized> __Undeclared for __T {}
        }
    }

    /// Returns the block as written, but without the macro's attributes. Each handler gets a doc line about its map,
    /// and checks of the assumptions about macros are added.
    pub(crate) fn block(&self) -> TokenStream {
        self.written.with_items(|index, item, tokens| match (item, tokens) {
            (ImplItem::Fn(f), _) => self.method(index, f, tokens),
            (_, Some(tokens)) => tokens.clone(),
            (item, None) => item.to_token_stream(),
        })
    }

    /// Prints a method of the block. `tokens` are the tokens as written, if they are known.
    fn method(&self, index: usize, f: &ImplItemFn, tokens: Option<&TokenStream>) -> TokenStream {
        let assumed = self.assumptions.get(&Some(index));
        let assumed = assumed.filter(|a| !a.is_empty() && self.diagnostics.is_empty());
        let more = self.documentation(f);
        let keep = |a: &Attribute| !is_handler_attribute(a);
        if assumed.is_none()
            && !self.written.mentions.attempts
            && let Some(tokens) = tokens
            && let Some(method) = with_attributes(tokens, f, keep, more.clone())
        {
            return method;
        }

        let mut f = f.clone();
        attempts::executed(&mut f);
        if let Some(assumed) = assumed {
            rebinding::checked(&mut f, assumed)
        }
        f.attrs.retain(keep);
        f.attrs.extend(Attribute::parse_outer.parse2(more).unwrap_or_default());
        f.into_token_stream()
    }

    /// Returns the attributes that document the map of a method, if it is a handler.
    fn documentation(&self, f: &ImplItemFn) -> TokenStream {
        let is_handler = f.attrs.iter().any(is_handler_attribute);
        let Some(found) = self.found.iter().find(|d| is_handler && f.sig.ident == d.name) else {
            return TokenStream::new();
        };

        let line = documentation(found);
        let empty = f.attrs.iter().any(|a| a.path().is_ident("doc")).then(|| quote!(#[doc = ""]));
        quote!(#empty #[doc = #line])
    }

    fn handles(&self, h: &Handler, found: &HandlerDerivation, failed: bool) -> TokenStream {
        let of = &self.block.self_ty;
        let (generics, _, bounds) = self.block.generics.split_for_impl();
        let (ty, index, method) = (message_type(h), h.index, &h.item.sig.ident);
        let (pattern, body) = map_parts(h, &found.map);
        let body = if failed { TokenStream::new() } else { body };
        let pattern = if failed { quote!(_) } else { pattern };

        let answers = signature::answers(&h.item.sig.output);
        let arguments = match (&h.signature.key, &h.signature.message) {
            (None, Some(_)) => quote!(msg,),
            (None, None) => quote!(),
            (Some(_), Some(_)) => quote!(&msg.key, &*msg.msg,),
            (Some(_), None) => quote!(&msg.key,),
        };

        let context = h.signature.context.as_ref().map(|_| quote!(ctx));
        let call = quote!(self.#method(#arguments #context));

        // the compiler reports an answer of the wrong type at the return type
        let returned = match &h.item.sig.output {
            ReturnType::Type(_, of) => of.span(),
            ReturnType::Default => declared_at(h),
        };

        // a type that is not a message is reported where it is written; the span has the hygiene of the handler's name,
        // because the type may come from a macro
        let written = h.signature.message.as_ref().map_or(declared_at(h), |(ty, _)| ty.span());
        let message = written.resolved_at(declared_at(h));
        let reply = quote_spanned!(message=> <#ty as ::beehive::Message>::Reply);
        let error = quote_spanned!(message=> <#ty as ::beehive::Message>::Error);
        let is_timer = h.signature.message.is_none();
        let call = match answers {
            // for a variable of type `()`, clippy would show a warning at the handler
            false if is_timer && matches!(h.item.sig.output, ReturnType::Default) => {
                quote!(::beehive::__private::ticked(#call))
            }
            false if is_timer => quote_spanned! {returned=> {
                let returned = #call;
                ::beehive::__private::ticked(returned)
            }},
            true => quote_spanned! {returned=> {
                let returned = #call;
                ::beehive::__private::AnswerCheck::<#reply, #error, _>::of(&returned).check();
                ::beehive::__private::answer::<#reply, #error, _>(returned)
            }},
            // An observer never answers, whatever the message's reply type is.
            false if h.options.observes.is_some() || h.options.misread => quote_spanned! {returned=>
                ::beehive::__private::unanswered::<(), #error, _>(#call).map(|_| ::core::option::Option::None)
            },
            false if signature::is_bare_result(&h.item.sig.output) => quote_spanned! {returned=> {
                let returned = #call;
                ::beehive::__private::bare_result::<#reply, #error, _>(returned)
            }},
            false => {
                quote_spanned!(declared_at(h)=> ::beehive::__private::unanswered::<#reply, #error, _>(#call))
            }
        };

        // the number of a constant cannot depend on a generic parameter of the block
        let reply_check = h.signature.message.as_ref().filter(|_| self.block.generics.params.is_empty());
        let reply_check = reply_check.map(|(ty, _)| {
            quote_spanned! {message=>
                #[allow(unused_imports)]
                use ::beehive::__private::NoResult as _;
                ::beehive::__private::ReplyCheck::<
                    <#ty as ::beehive::Message>::Reply,
                    { <#ty as ::beehive::Message>::COMMITS_ERRORS },
                >::check();
            }
        });

        let (mapper, allowances) = (mapper(), allowances());
        let handle = quote_spanned! {message=>
                #[allow(unused_variables)]
                #[inline]
                fn handle(&mut self, msg: &#ty, ctx: &mut ::beehive::Ctx)
                    -> ::core::result::Result<::core::option::Option<#reply>, #error>
            { #reply_check #call }
        };

        // for an `impl` token without the user's span, the compiler does not suggest a generic parameter for an unknown
        // type; this error then equals the one at the user's code, so the compiler shows only one of them
        let implementation = quote!(impl);
        quote_spanned! {declared_at(h)=>
            #[automatically_derived]
            #implementation #generics ::beehive::Handles<#ty> for #of #bounds {
                const HANDLER: usize = #index;
                const ANSWERS: bool = #answers;
                #allowances
                #[inline]
                fn map(#pattern: &#ty, #mapper: &mut ::beehive::__private::Mapper) { #body }
                #handle
            }
        }
    }
}

/// Returns the doc line about the map of a handler.
fn documentation(found: &HandlerDerivation) -> String {
    let mut line = match found.kind.as_str() {
        "custom" => format!("**Map:** {}.", found.cells),
        kind if found.cells == "-" => format!("**Map:** {kind}."),
        kind => format!("**Map:** {kind}, `{}`.", found.cells),
    };

    if !found.views.is_empty() {
        line += &format!(" **Views:** `{}`.", found.views);
    }

    if !found.reason.is_empty() {
        line += &format!(" **Why:** {}.", found.reason);
    }

    if !found.joins.is_empty() {
        line += &format!(" **Joins:** `{}`.", found.joins);
    }

    if !found.note.is_empty() {
        // puts attributes into code spans, because rustdoc would take their brackets for a link
        line += &format!(" **Note:** {}.", found.note.replace("#[", "`#[").replace(")]", ")]`"));
    }

    line
}

/// Returns the message type as seen by the runtime.
fn message_type(h: &Handler) -> TokenStream {
    let index = h.index as u32;
    let inner = match &h.signature.message {
        Some((ty, _)) => quote!(#ty),
        None => quote!(::beehive::__private::Tick<#index>),
    };

    match &h.signature.key {
        Some((key, _)) => quote!(::beehive::__private::Each<#key, #inner>),
        None => inner,
    }
}

/// Returns the parameter pattern and the body of a map function.
fn map_parts(h: &Handler, map: &TokenStream) -> (TokenStream, TokenStream) {
    let (mapper, message) = (mapper(), message_name());
    let envelope = match (&h.signature.context, &h.options.map) {
        (Some(c), None) => quote!(let #c = #mapper.envelope();),
        _ => quote!(),
    };

    let own_cell = h.options.each.as_ref().map(|f| {
        let constant = field_constant(f);
        quote_spanned!(f.span()=> ::beehive::__private::At(Self::#constant, &&#message.key).cell(#mapper);)
    });

    match (&h.signature.key, &h.signature.message) {
        _ if h.options.map.is_some() => (quote!(#message), quote!(#own_cell #map)),
        (None, Some((_, pattern))) => (pattern.clone(), quote!(#envelope #map)),
        (None, None) => (quote!(_), quote!(#envelope #map)),
        (Some((ty, key)), inner) => {
            let inner = inner.as_ref().map(|(ty, pattern)| quote!(let #pattern: &#ty = &*#message.msg;));
            (quote!(#message), quote!(#own_cell #envelope let #key: &#ty = &#message.key; #inner #map))
        }
    }
}

fn registration(h: &Handler) -> TokenStream {
    let index = h.index as u32;
    let dictionary = h.options.each.as_ref().map(|f| {
        let constant = field_constant(f);
        quote!(Self::#constant.index)
    });
    let period = h.options.every.as_ref().map(|(ms, _)| quote!(::core::time::Duration::from_millis(#ms)));

    let span = declared_at(h);
    let of = quote_spanned!(span=> ::beehive::__private::Registration);
    match (&h.signature.key, &h.signature.message) {
        (None, Some((ty, _))) => quote_spanned!(span=> #of::<Self, (), #ty>::of(registrar).rcv();),
        (None, None) => quote_spanned!(span=> registrar.every::<#index>(#period);),
        (Some((key, _)), Some((ty, _))) => {
            quote_spanned!(span=> #of::<Self, #key, #ty>::of(registrar).each(#dictionary);)
        }
        (Some((key, _)), None) => {
            let tick = quote!(::beehive::__private::Tick<#index>);
            quote_spanned!(span=> #of::<Self, #key, #tick>::of(registrar).every_each(#period, #dictionary);)
        }
    }
}

fn report(h: &Handler, found: &HandlerDerivation) -> TokenStream {
    let answer = signature::answer_words(&h.item.sig.output);
    let HandlerDerivation { name, kind, cells, joins, views, reason, note, .. } = found;
    let (line, reason_line) = (declared_at(h).start().line as u32, found.reason_line as u32);
    let message = match &h.options.each {
        Some(f) => format!("{} for each of {f}", h.message_words()),
        None => h.message_words(),
    };

    quote!(::beehive::__private::HandlerReport {
        name: #name, message: #message, answer: #answer, kind: #kind, cells: #cells, joins: #joins, views: #views, file: ::core::file!(), line: #line,
        reason: #reason, reason_line: #reason_line, note: #note
    })
}

/// Prints a warning in a way that works on stable compilers: as a use of a deprecated constant whose name
/// describes the problem.
fn warning(w: &Warning) -> TokenStream {
    let title = format_ident!("{}", w.title, span = w.handler.span());
    let text = &w.text;
    quote_spanned! {w.handler.span()=>
        const _: () = {
            #[deprecated(note = #text)]
            #[allow(non_upper_case_globals)]
            const #title: () = ();
            let () = #title;
        };
    }
}
