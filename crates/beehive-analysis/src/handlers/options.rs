//! Parses `#[handlers(..)]`, `#[rcv(..)]` and `#[every(..)]`.

use proc_macro2::{Ident, Span};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, LitStr, Path, Token};

/// Options of `#[handlers(pure(f, g))]`.
#[derive(Default)]
pub(crate) struct BlockOptions {
    /// Functions, methods and macros that the programmer has promised are deterministic.
    pub pure: Vec<String>,
}

impl Parse for BlockOptions {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut options = BlockOptions::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name != "pure" {
                return Err(Error::new(
                    name.span(),
                    "expected `pure(..)`\nhelp: `#[handlers(pure(f, g))]` promises that `f` and `g` are deterministic functions of their arguments",
                ));
            }

            let inner;
            syn::parenthesized!(inner in input);
            for p in Punctuated::<Path, Token![,]>::parse_terminated(&inner)? {
                let segments: Vec<String> = p.segments.iter().map(|s| s.ident.to_string()).collect();
                options.pure.push(segments.join("::"));
            }

            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }

        Ok(options)
    }
}

/// Options of `#[rcv(..)]` and `#[every(..)]`.
#[derive(Default)]
pub(crate) struct HandlerOptions {
    /// The kind that the map must have, and the span of the option.
    pub kind: Option<(&'static str, Span)>,
    /// Whether one message may need different keys together without a warning.
    pub joins: bool,
    /// The span of `observes`: the handler intentionally answers nothing.
    pub observes: Option<Span>,
    /// Path of a hand-written map.
    pub map: Option<Path>,
    /// Dictionaries used as a whole by the hand-written map.
    pub whole: Vec<Ident>,
    pub expect: Option<LitStr>,
    /// The dictionary for each of whose cells the handler runs once.
    pub each: Option<Ident>,
    /// The period of a timer, in milliseconds and as written.
    pub every: Option<(u64, String)>,
    /// Whether the attribute could not be parsed; the other options are then the defaults.
    pub misread: bool,
}

const EXPECTED: &str = "expected `sharded`, `centralized`, `stateless`, `joins`, `observes`, `each = dictionary`, \
    `expect = \"..\"` or `map = function`";

impl HandlerOptions {
    /// Parses the attribute of a handler.
    pub(crate) fn of(attribute: &syn::Attribute) -> syn::Result<HandlerOptions> {
        let timer = attribute.path().is_ident("every");
        let mut options = match &attribute.meta {
            syn::Meta::Path(_) => HandlerOptions::default(),
            _ => attribute.parse_args_with(|input: ParseStream| HandlerOptions::parse(input, timer))?,
        };

        if timer && options.every.is_none() {
            return Err(Error::new_spanned(attribute, "a timer needs a period: `#[every(\"1s\")]`"));
        }
        if let (None, Some(w)) = (&options.map, options.whole.first()) {
            return Err(Error::new(
                w.span(),
                "`whole(..)` requires `map = ..`; a derived map detects `.whole()` on its own",
            ));
        }

        if options.map.as_ref().is_some_and(|p| p.is_ident("runtime")) {
            let map = options.map.take();
            return Err(Error::new_spanned(
                map,
                "maps recorded at run time are not available\nhelp: write a map by hand, `map = function`, or use all of a dictionary with `.whole()`",
            ));
        }

        Ok(options)
    }

    /// Returns the attribute as written, up to the place for another option.
    pub(crate) fn opening(&self) -> String {
        let each = self.each.as_ref().map(|d| format!("each = {d}, ")).unwrap_or_default();
        match &self.every {
            Some((_, period)) => format!("every({period:?}, {each}"),
            None => format!("rcv({each}"),
        }
    }

    fn parse(input: ParseStream, timer: bool) -> syn::Result<HandlerOptions> {
        let mut options = HandlerOptions::default();
        if timer {
            let period: LitStr = input.parse()?;
            options.every = Some((milliseconds(&period)?, period.value()));
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }

        while !input.is_empty() {
            options.parse_one(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }

        Ok(options)
    }

    fn parse_one(&mut self, input: ParseStream) -> syn::Result<()> {
        let name: Ident = input.parse()?;
        match name.to_string().as_str() {
            "sharded" => self.kind = Some(("sharded", name.span())),
            "centralized" => self.kind = Some(("centralized", name.span())),
            "stateless" => self.kind = Some(("stateless", name.span())),
            "joins" => self.joins = true,
            "observes" => self.observes = Some(name.span()),
            "each" => {
                input.parse::<Token![=]>()?;
                self.each = Some(input.parse()?);
            }
            "map" => {
                input.parse::<Token![=]>()?;
                self.map = Some(input.parse()?);
            }
            "expect" => {
                input.parse::<Token![=]>()?;
                self.expect = Some(input.parse()?);
            }
            "whole" => {
                let inner;
                syn::parenthesized!(inner in input);
                self.whole.extend(Punctuated::<Ident, Token![,]>::parse_terminated(&inner)?);
            }
            "broadcast" => {
                let message = "a handler cannot run on every bee, because its result would depend on how the cells \
                    are distributed\nhelp: `each = dictionary` runs the handler once for every cell";
                return Err(Error::new(name.span(), message));
            }
            _ => return Err(Error::new(name.span(), EXPECTED)),
        }

        Ok(())
    }
}

/// Parses a period such as `"250ms"`, `"1s"`, `"5m"` or `"1h"`.
pub(crate) fn milliseconds(period: &LitStr) -> syn::Result<u64> {
    const SHAPE: &str = "expected a period such as \"250ms\", \"1s\", \"5m\" or \"1h\"";

    let text = period.value();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(Error::new(period.span(), SHAPE)),
    };

    match number.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)) {
        Some(0) | None => Err(Error::new(period.span(), SHAPE)),
        Some(n) => Ok(n),
    }
}
