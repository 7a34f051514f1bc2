//! Parses handler signatures.

use super::options::HandlerOptions;
use crate::errors::diagnostics::SYNCHRONOUS;
use crate::syntax::is_context;
use crate::words::plain_words;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit_mut::VisitMut;
use syn::{
    Error, FnArg, GenericArgument, ImplItemFn, Lifetime, PathArguments, ReceiverKind, ReturnType, Type,
};

/// The parameters of a handler other than `self`.
pub(crate) struct Signature {
    /// Type and pattern of the key of an `each` handler.
    pub key: Option<(Type, TokenStream)>,
    /// Type and pattern of the message; `None` for a timer.
    pub message: Option<(Type, TokenStream)>,
    pub context: Option<TokenStream>,
}

impl Signature {
    pub(crate) fn of(f: &ImplItemFn, options: &HandlerOptions) -> syn::Result<Signature> {
        let signature = &f.sig;
        if let Some(asyncness) = &signature.asyncness {
            return Err(Error::new_spanned(asyncness, SYNCHRONOUS));
        }

        if signature.generics.type_params().next().is_some()
            || signature.generics.const_params().next().is_some()
        {
            return Err(Error::new_spanned(
                &signature.generics,
                "a handler handles one message type, so it cannot be generic\n\
                 help: make the app generic, or write one handler for each message type",
            ));
        }

        let shape = match (options.each.is_some(), options.every.is_some()) {
            (false, false) => {
                "a handler has the signature `fn name(&mut self, msg: &Message)` or `fn name(&mut self, msg: &Message, ctx: &mut Ctx)`"
            }
            (true, false) => {
                "a per-cell handler has the signature `fn name(&mut self, key: &Key, msg: &Message, ctx: &mut Ctx)`; `ctx` is optional"
            }
            (true, true) => {
                "a per-cell timer has the signature `fn name(&mut self, key: &Key, ctx: &mut Ctx)`; `ctx` is optional"
            }
            (false, true) => {
                "a timer has the signature `fn name(&mut self, ctx: &mut Ctx)`; `ctx` is optional"
            }
        };

        let mut inputs = signature.inputs.iter();
        match inputs.next() {
            Some(FnArg::Receiver(r)) if matches!(r.kind, ReceiverKind::Reference(..)) => {}
            _ => {
                let help = "help: the first parameter is `&mut self`, because the handler works on the app's dictionaries";
                return Err(Error::new_spanned(&signature.ident, format!("{shape}\n{help}")));
            }
        }

        let (mut parameters, mut context) = (vec![], None);
        for a in inputs {
            let FnArg::Typed(t) = a else { return Err(Error::new_spanned(a, shape)) };

            if context.is_some() {
                return Err(Error::new_spanned(
                    a,
                    format!("{shape}\nhelp: the context is the last parameter"),
                ));
            }

            if is_context(&t.ty) {
                context = Some(t.pat.to_token_stream());
                continue;
            }

            let Type::Reference(r) = &*t.ty else {
                let help = format!(
                    "help: take the message by reference, `&{}`, because other apps may handle the same message",
                    plain_words(t.ty.to_token_stream())
                );
                return Err(Error::new_spanned(&t.ty, format!("{shape}\n{help}")));
            };

            // keys and messages are shared references, so this is the context, whose type has a different name in this
            // program
            if r.mutability.is_some() {
                let help = format!(
                    "help: the type of a context is recognized by its name: write `&mut Ctx` instead of `&mut {}`",
                    plain_words(r.elem.to_token_stream())
                );
                return Err(Error::new_spanned(&t.ty, format!("{shape}\n{help}")));
            }

            parameters.push((lasting((*r.elem).clone()), t.pat.to_token_stream()));
        }

        if parameters.len() != options.each.is_some() as usize + options.every.is_none() as usize {
            return Err(Error::new_spanned(&signature.ident, shape));
        }

        let mut parameters = parameters.into_iter();
        let key = options.each.as_ref().and_then(|_| parameters.next());
        Ok(Signature { key, message: parameters.next(), context })
    }
}

/// Replaces the lifetimes in a type with `'static`. A message type that borrows is refused where it is
/// declared, so it is not reported again here.
fn lasting(mut ty: Type) -> Type {
    struct Lasting;
    impl VisitMut for Lasting {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            *lifetime = Lifetime::new("'static", lifetime.span())
        }
    }
    Lasting.visit_type_mut(&mut ty);
    ty
}

/// Returns the source text of the type with which a handler answers, without `Option` and `Result`. Returns
/// an empty string if the handler answers nothing.
pub(crate) fn answer_words(output: &ReturnType) -> String {
    let ReturnType::Type(_, t) = output else { return String::new() };
    if !answers(output) {
        return String::new();
    }

    // strip `Option` and `Result`
    let mut inner: &Type = t;
    while let Type::Path(p) = inner
        && let Some(s) = p.path.segments.last()
        && (s.ident == "Option" || s.ident == "Result")
        && let PathArguments::AngleBracketed(a) = &s.arguments
        && let Some(GenericArgument::Type(next)) = a.args.first()
    {
        inner = next;
    }

    plain_words(inner.to_token_stream())
}

/// Checks by name whether a return type carries an answer: anything but `()`, `!`, `Result` and `Result<()>`
/// does.
pub(crate) fn answers(output: &ReturnType) -> bool {
    let ReturnType::Type(_, t) = output else { return false };

    match &**t {
        Type::Tuple(u) => !u.elems.is_empty(),
        Type::Never(_) => false,
        Type::Path(p) => match p.path.segments.last() {
            Some(s) if s.ident == "Result" => match &s.arguments {
                PathArguments::AngleBracketed(a) => {
                    !matches!(a.args.first(), Some(GenericArgument::Type(Type::Tuple(u))) if u.elems.is_empty())
                }
                _ => false,
            },
            _ => true,
        },
        _ => true,
    }
}

/// Checks whether a return type is `Result` without arguments, which may be any alias.
pub(crate) fn is_bare_result(output: &ReturnType) -> bool {
    match output {
        ReturnType::Type(_, t) => match &**t {
            Type::Path(p) => {
                p.path.segments.last().is_some_and(|s| s.ident == "Result" && s.arguments.is_none())
            }
            _ => false,
        },
        ReturnType::Default => false,
    }
}
