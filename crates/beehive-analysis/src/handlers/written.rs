//! The block as the macro receives it: its syntax, and the tokens of each item. An item that the macro does not change
//! is passed on as tokens, because printing syntax costs as much as parsing it.

use crate::syntax::names;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeMap;
use syn::parse::{Parse, ParseStream};
use syn::{AttrStyle, Attribute, ImplItem, ImplItemFn, ItemImpl};

/// An impl block with its tokens.
pub(crate) struct Written {
    pub block: ItemImpl,
    /// The parts of the block's tokens; `None` if they cannot be told apart, because a `macro_rules!` macro passed
    /// several of them on as one.
    parts: Option<Parts>,
    pub mentions: Mentions,
}

/// The tokens of a block.
struct Parts {
    /// All tokens before the braces.
    header: Vec<TokenTree>,
    braces: Group,
    body: Body,
}

/// The items of a block, with its inner attributes.
struct Body {
    attributes: Vec<Attribute>,
    attribute_tokens: TokenStream,
    items: Vec<ImplItem>,
    /// The tokens of each item.
    tokens: Vec<TokenStream>,
}

/// The names in a block.
#[derive(Default)]
pub(crate) struct Mentions {
    /// The names that follow `self.`, which are fields and methods.
    pub of_self: BTreeMap<String, Ident>,
    /// Whether there may be an `attempt!`.
    pub attempts: bool,
    /// For each item whose tokens are known, all names in it, with repetitions.
    names: Vec<Vec<String>>,
}

impl Written {
    pub(crate) fn of(item: TokenStream) -> syn::Result<Written> {
        let mut mentions = Mentions::default();
        if let Some((block, parts)) = apart(item.clone()) {
            mentions.names = parts.body.tokens.iter().map(|tokens| mentions.read(tokens.clone())).collect();
            return Ok(Written { block, parts: Some(parts), mentions });
        }
        mentions.read(item.clone());
        Ok(Written { block: syn::parse2(item)?, parts: None, mentions })
    }

    /// Returns the methods with their tokens and the names in them, where these are known.
    pub(crate) fn methods(&self) -> impl Iterator<Item = (&ImplItemFn, &TokenStream, &[String])> {
        let tokens = self.parts.iter().flat_map(|parts| &parts.body.tokens).zip(&self.mentions.names);
        self.block.items.iter().zip(tokens).filter_map(|(item, (tokens, names))| match item {
            ImplItem::Fn(f) => Some((f, tokens, names.as_slice())),
            _ => None,
        })
    }

    /// Returns the tokens of the block, with each item replaced by the result of `item`. `item` is called with the
    /// number, the syntax and, if known, the tokens of each item.
    pub(crate) fn with_items(
        &self,
        item: impl Fn(usize, &ImplItem, Option<&TokenStream>) -> TokenStream,
    ) -> TokenStream {
        // for an `impl` token with the user's span, the compiler suggests `impl<T>` for an unknown type in a handler; a
        // handler handles one type, so that suggestion would only lead to the next error
        let here = Span::call_site();
        let all = self.block.items.iter().enumerate();
        let Some(Parts { header, braces, body }) = &self.parts else {
            let mut block = self.block.clone();
            block.impl_token.span = here;
            block.items = all.map(|(number, i)| ImplItem::Verbatim(item(number, i, None))).collect();
            return block.into_token_stream();
        };

        let mut inside = body.attribute_tokens.clone();
        inside.extend(all.zip(&body.tokens).map(|((number, i), tokens)| item(number, i, Some(tokens))));
        let mut block = Group::new(Delimiter::Brace, inside);
        block.set_span(braces.span());

        let mut out: Vec<TokenTree> = header.clone();
        let keyword = out.iter_mut().find(|t| matches!(t, TokenTree::Ident(i) if i == "impl"));
        keyword.into_iter().for_each(|t| t.set_span(here));
        out.push(block.into());
        out.into_iter().collect()
    }
}

/// Parses a block and splits its tokens into parts.
fn apart(item: TokenStream) -> Option<(ItemImpl, Parts)> {
    let mut header: Vec<TokenTree> = item.into_iter().collect();
    let Some(TokenTree::Group(braces)) = header.pop() else { return None };
    if braces.delimiter() != Delimiter::Brace {
        return None;
    }

    let mut empty = Group::new(Delimiter::Brace, TokenStream::new());
    empty.set_span(braces.span());
    let tokens = header.iter().cloned().chain([TokenTree::Group(empty)]).collect();
    let mut block: ItemImpl = syn::parse2(tokens).ok()?;
    let mut body: Body = syn::parse2(braces.stream()).ok()?;
    block.attrs.append(&mut body.attributes);
    block.items = std::mem::take(&mut body.items);
    Some((block, Parts { header, braces, body }))
}

impl Parse for Body {
    fn parse(input: ParseStream<'_>) -> syn::Result<Body> {
        let begin = input.cursor();
        let attributes = Attribute::parse_inner(input)?;
        let mut body =
            Body { attributes, attribute_tokens: since(begin, input)?, items: vec![], tokens: vec![] };
        while !input.is_empty() {
            let begin = input.cursor();
            body.items.push(input.parse()?);
            body.tokens.push(since(begin, input)?);
        }
        Ok(body)
    }
}

/// Returns the tokens parsed since `begin`.
fn since(begin: syn::buffer::Cursor<'_>, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let (mut tokens, mut at) = (vec![], begin);
    while at != input.cursor() {
        // a group without delimiters may extend beyond the current point
        let (token, next) = at.token_tree().ok_or_else(|| input.error("part of a group"))?;
        tokens.push(token);
        at = next;
    }
    Ok(tokens.into_iter().collect())
}

/// Returns the tokens of a method with only those of its attributes that `keep` accepts, followed by `more`.
pub(crate) fn with_attributes(
    tokens: &TokenStream,
    method: &ImplItemFn,
    keep: impl Fn(&Attribute) -> bool,
    more: TokenStream,
) -> Option<TokenStream> {
    let mut rest = tokens.clone().into_iter();
    let mut out: Vec<TokenTree> = vec![];
    for attribute in method.attrs.iter().filter(|a| matches!(a.style, AttrStyle::Outer)) {
        let (sign, group) = (rest.next()?, rest.next()?);
        let is_attribute = matches!(&sign, TokenTree::Punct(p) if p.as_char() == '#')
            && matches!(&group, TokenTree::Group(g) if g.delimiter() == Delimiter::Bracket);
        if !is_attribute {
            return None;
        }
        if keep(attribute) {
            out.extend([sign, group])
        }
    }
    Some(out.into_iter().chain(more).chain(rest).collect())
}

impl Mentions {
    /// Reads tokens. Returns all names in them.
    fn read(&mut self, tokens: TokenStream) -> Vec<String> {
        let mut all = vec![];
        self.add(tokens, &mut all);
        self.attempts |= all.iter().any(|name| name == "attempt");
        all
    }

    fn add(&mut self, tokens: TokenStream, all: &mut Vec<String>) {
        // whether the preceding tokens are `self`, and `self` followed by a dot
        let (mut of_self, mut dotted) = (false, false);
        for t in tokens {
            let (before, after_dot) = (std::mem::take(&mut of_self), std::mem::take(&mut dotted));
            match t {
                TokenTree::Ident(i) => {
                    let name = i.to_string();
                    of_self = name == "self";
                    if after_dot {
                        self.of_self.insert(name.clone(), i);
                    }
                    all.push(name)
                }
                TokenTree::Punct(p) => dotted = before && p.as_char() == '.',
                TokenTree::Group(g) => self.add(g.stream(), all),
                TokenTree::Literal(_) => names(t.into(), all),
            }
        }
    }
}
