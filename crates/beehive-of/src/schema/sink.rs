//! Where messages are told to: text here, other notations elsewhere.

use core::fmt;

use crate::error::Error;

/// Takes in the values of a message, in order; every field of a record is announced by [`Sink::key`].
pub trait Sink {
    /// A number.
    fn number(&mut self, value: u64);

    /// Words, or a number that is better read in another notation.
    fn text(&mut self, value: fmt::Arguments<'_>);

    /// Bytes.
    fn bytes(&mut self, value: &[u8]);

    /// True or false.
    fn flag(&mut self, value: bool);

    /// Nothing.
    fn nothing(&mut self);

    /// The name of the field that comes next.
    fn key(&mut self, name: &str);

    /// A record begins.
    fn open_record(&mut self);

    /// The record ends.
    fn close_record(&mut self);

    /// A list begins.
    fn open_list(&mut self);

    /// The list ends.
    fn close_list(&mut self);

    /// The rest of a list is malformed.
    fn error(&mut self, error: Error);
}

/// Text: `name=value` pairs at the top; lists in brackets, records inside of others in parentheses.
#[derive(Debug)]
pub struct Text<W> {
    out: W,
    result: fmt::Result,
    depth: usize,
    /// Whether a value comes before the next one, in the same list or record.
    follows: bool,
    /// Whether the next value belongs to a key.
    keyed: bool,
}

impl<W: fmt::Write> Text<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, result: Ok(()), depth: 0, follows: false, keyed: false }
    }

    /// Whether everything was written.
    ///
    /// # Errors
    ///
    /// The writer's.
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

/// Keeps the first error and forgets all else.
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
