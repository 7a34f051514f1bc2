//! Parses the arguments of macros with a known grammar.

use crate::syntax::captures;
use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Lit, Pat, Token};

/// The parsed arguments of a macro call.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub expressions: Vec<Expr>,
    /// Names of the locals captured by a format string.
    pub captured: Vec<String>,
    /// The pattern and the guard of `matches!`.
    pub pattern: Option<(Pat, Option<Expr>)>,
}

impl Arguments {
    /// Parses the arguments of the macro `form`. Returns `None` if the macro does not accept them.
    pub(crate) fn parse(form: &str, tokens: TokenStream) -> Option<Arguments> {
        match form {
            "matches" => matches_arguments.parse2(tokens).ok(),
            "stringify" | "line" | "file" | "column" | "module_path" | "cfg" => Some(Arguments::of(vec![])),
            "vec" => {
                if let Ok(repeated) = repeat_arguments.parse2(tokens.clone()) {
                    return Some(Arguments::of(repeated));
                }
                list_arguments.parse2(tokens).ok().map(Arguments::of)
            }
            _ => {
                let expressions = list_arguments.parse2(tokens).ok()?;
                let mut captured = vec![];
                for e in &expressions {
                    if let Expr::Lit(l) = e
                        && let Lit::Str(s) = &l.lit
                    {
                        captures(&s.value(), &mut captured);
                    }
                }

                Some(Arguments { captured, ..Arguments::of(expressions) })
            }
        }
    }

    fn of(expressions: Vec<Expr>) -> Arguments {
        Arguments { expressions, captured: vec![], pattern: None }
    }
}

fn matches_arguments(input: ParseStream) -> syn::Result<Arguments> {
    let scrutinee = input.parse()?;
    input.parse::<Token![,]>()?;
    let pattern = Pat::parse_multi_with_leading_vert(input)?;
    let guard = match input.parse::<Option<Token![if]>>()? {
        Some(_) => Some(input.parse()?),
        None => None,
    };

    input.parse::<Option<Token![,]>>()?;
    Ok(Arguments { pattern: Some((pattern, guard)), ..Arguments::of(vec![scrutinee]) })
}

fn repeat_arguments(input: ParseStream) -> syn::Result<Vec<Expr>> {
    let element = input.parse()?;
    input.parse::<Token![;]>()?;
    Ok(vec![element, input.parse()?])
}

fn list_arguments(input: ParseStream) -> syn::Result<Vec<Expr>> {
    let mut out = vec![];
    while !input.is_empty() {
        // `name = %value`, `?value`, `target: value`, as in the macros of `tracing` and `log`
        if input.peek(syn::Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]) {
            input.parse::<syn::Ident>()?;
            input.parse::<Token![=]>()?;
        } else if input.peek(syn::Ident) && input.peek2(Token![:]) && !input.peek2(Token![::]) {
            input.parse::<syn::Ident>()?;
            input.parse::<Token![:]>()?;
        }

        if input.peek(Token![%]) {
            input.parse::<Token![%]>()?;
        } else if input.peek(Token![?]) {
            input.parse::<Token![?]>()?;
        }

        out.push(input.parse()?);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }

    Ok(out)
}
