//! Collects a block's errors: each is reported once, on the user's own tokens.

use crate::errors::pages;
use proc_macro2::{Span, TokenStream};
use std::fmt::Display;
use syn::Error;

/// Error for `self` used as a value.
pub(crate) const ESCAPE: &str = "`self` leaves the handler here, so Beehive cannot tell which cells are touched\n\
    help: use `self.<dictionary>.<access>(..)`, or call a method of this impl block as `self.<method>(..)`";

/// Error for a handler that contains `await` or `async`.
pub(crate) const SYNCHRONOUS: &str = "handlers are synchronous\n\
    note: a handler is one transaction on one bee, so it cannot wait\n\
    help: emit a message and handle the answer in another `#[rcv]` method";

/// Errors in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    errors: Vec<Error>,
}

/// Returns the start and end of a span in a form that can be compared.
pub(crate) fn extent(span: Span) -> (usize, usize, usize, usize) {
    let (start, end) = (span.start(), span.end());
    (start.line, start.column, end.line, end.column)
}

impl Diagnostics {
    /// Adds an error, unless the same message has already been reported at the same place, because a helper
    /// is analyzed once per pattern of arguments.
    pub(crate) fn push(&mut self, error: Error) {
        let known = self
            .errors
            .iter()
            .any(|e| extent(e.span()) == extent(error.span()) && e.to_string() == error.to_string());
        if !known {
            self.errors.push(error)
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.push(Error::new(span, message))
    }

    pub(crate) fn extend(&mut self, errors: impl IntoIterator<Item = Error>) {
        errors.into_iter().for_each(|e| self.push(e))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn into_errors(self) -> Vec<Error> {
        self.errors
    }

    /// Prints one `compile_error!` per error.
    pub(crate) fn tokens(&self) -> TokenStream {
        self.errors.iter().map(pages::compile_error).collect()
    }
}
