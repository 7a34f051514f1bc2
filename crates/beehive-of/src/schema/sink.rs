//! The visitor that receives the values of a message, and its text implementation.

use core::fmt;

use crate::error::Error;

/// Receives the values of a message in order. [`Sink::key`] precedes every field of a record.
pub trait Sink {
    /// Receives a number.
    fn number(&mut self, value: u64);

    /// Receives text, or a number in a notation other than decimal.
    fn text(&mut self, value: fmt::Arguments<'_>);

    /// Receives bytes.
    fn bytes(&mut self, value: &[u8]);

    /// Receives a boolean.
    fn flag(&mut self, value: bool);

    /// Receives the absence of a value.
    fn nothing(&mut self);

    /// Receives the name of the next field.
    fn key(&mut self, name: &str);

    /// Begins a record.
    fn open_record(&mut self);

    /// Ends the innermost record.
    fn close_record(&mut self);

    /// Begins a list.
    fn open_list(&mut self);

    /// Ends the innermost list.
    fn close_list(&mut self);

    /// Receives the error that ends a list, because the rest of the list is malformed.
    fn error(&mut self, error: Error);
}

/// Writes text: `name=value` pairs for the root record, lists in brackets, and nested records in parentheses.
#[derive(Debug)]
pub struct Text<W> {
    out: W,
    result: fmt::Result,
    depth: usize,
    /// Whether the current list or record already has a value.
    follows: bool,
    /// Whether the next value belongs to a key.
    keyed: bool,
}

impl<W: fmt::Write> Text<W> {
    /// Creates a sink that writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, result: Ok(()), depth: 0, follows: false, keyed: false }
    }

    /// Ends the text, and returns whether all of it was written.
    ///
    /// # Errors
    ///
    /// Returns the first error of the writer.
    pub fn finish(self) -> fmt::Result {
        self.result
    }

    fn put(&mut self, value: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.result = self.out.write_fmt(value);
        }
    }

    fn value(&mut self, value: fmt::Arguments<'_>) {
        self.separate();
        self.put(value);
        self.follows = true;
    }

    fn separate(&mut self) {
        if !self.keyed && self.follows {
            self.put(format_args!(", "));
        }
        self.keyed = false;
    }

    fn open(&mut self, bracket: &str) {
        self.separate();
        if self.depth > 0 {
            self.put(format_args!("{bracket}"));
        }
        self.depth += 1;
        self.follows = false;
    }

    fn close(&mut self, bracket: &str) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 {
            self.put(format_args!("{bracket}"));
        }
        self.follows = true;
    }
}

impl<W: fmt::Write> Sink for Text<W> {
    fn number(&mut self, value: u64) {
        self.value(format_args!("{value}"));
    }

    fn text(&mut self, value: fmt::Arguments<'_>) {
        self.value(value);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.value(format_args!(""));
        for byte in value {
            self.put(format_args!("{byte:02x}"));
        }
    }

    fn flag(&mut self, value: bool) {
        self.value(format_args!("{value}"));
    }

    fn nothing(&mut self) {
        self.value(format_args!("none"));
    }

    fn key(&mut self, name: &str) {
        if self.follows {
            self.put(format_args!(" "));
        }
        self.put(format_args!("{name}="));
        self.keyed = true;
    }

    fn open_record(&mut self) {
        self.open("(");
    }

    fn close_record(&mut self) {
        self.close(")");
    }

    fn open_list(&mut self) {
        self.open("[");
    }

    fn close_list(&mut self) {
        self.close("]");
    }

    fn error(&mut self, error: Error) {
        self.value(format_args!("<{error}>"));
    }
}

/// A sink that keeps the first error and discards everything else.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    pub(crate) error: Option<Error>,
}

impl Sink for Checker {
    fn number(&mut self, _value: u64) {}
    fn text(&mut self, _value: fmt::Arguments<'_>) {}
    fn bytes(&mut self, _value: &[u8]) {}
    fn flag(&mut self, _value: bool) {}
    fn nothing(&mut self) {}
    fn key(&mut self, _name: &str) {}
    fn open_record(&mut self) {}
    fn close_record(&mut self) {}
    fn open_list(&mut self) {}
    fn close_list(&mut self) {}

    fn error(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}
