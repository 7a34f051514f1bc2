//! The shapes that a handler may have.

use super::options::HandlerOptions;
use crate::diagnostics::SYNCHRONOUS;
use crate::syntax::is_context;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Error, FnArg, GenericArgument, ImplItemFn, PathArguments, ReceiverKind, ReturnType, Type};

/// The parameters of a handler.
pub(crate) struct Signature {
    /// The key of an `each` handler: type and pattern.
    pub key: Option<(Type, TokenStream)>,
    /// The message: type and pattern. A timer has none.
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
                 help: make the application generic, or write one handler for each message",
            ));
        }
        let shape = match (options.each.is_some(), options.every.is_some()) {
            (false, false) => {
                "a handler is `fn name(&mut self, msg: &Message)` or `fn name(&mut self, msg: &Message, ctx: &mut Ctx)`"
            }
            (true, false) => {
                "a handler for each cell is `fn name(&mut self, key: &Key, msg: &Message, ctx: &mut Ctx)`; `ctx` may be left out"
            }
            (true, true) => {
                "a timer for each cell is `fn name(&mut self, key: &Key, ctx: &mut Ctx)`; `ctx` may be left out"
            }
            (false, true) => "a timer is `fn name(&mut self, ctx: &mut Ctx)`; `ctx` may be left out",
        };
        let mut inputs = signature.inputs.iter();
        match inputs.next() {
            Some(FnArg::Receiver(r)) if matches!(r.kind, ReceiverKind::Reference(..)) => {}
            _ => return Err(Error::new_spanned(&signature.ident, shape)),
        }
        let (mut parameters, mut context) = (vec![], None);
        for a in inputs {
            let FnArg::Typed(t) = a else { return Err(Error::new_spanned(a, shape)) };
            if context.is_some() {
                return Err(Error::new_spanned(a, shape));
            }
            if is_context(&t.ty) {
                context = Some(t.pat.to_token_stream());
                continue;
            }
            let Type::Reference(r) = &*t.ty else { return Err(Error::new_spanned(&t.ty, shape)) };
            parameters.push(((*r.elem).clone(), t.pat.to_token_stream()));
        }
        if parameters.len() != options.each.is_some() as usize + options.every.is_none() as usize {
            return Err(Error::new_spanned(&signature.ident, shape));
        }
        let mut parameters = parameters.into_iter();
        let key = options.each.as_ref().and_then(|_| parameters.next());
        Ok(Signature { key, message: parameters.next(), context })
    }
}

/// Whether a return type carries an answer, by its looks: anything but `()`, `Result` and `Result<()>`.
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
