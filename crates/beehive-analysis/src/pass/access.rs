//! Analyzes dictionary accesses and reports keys that are not functions of the message.

use super::Pass;
use super::locals::scope::{Alias, Kind};
use crate::errors::diagnostics::extent;
use crate::known::{has_another_name, is_foreign_macro, keyed_by_reference, needs_all_cells};
use crate::node::{Access, Node};
use crate::syntax::{names, peel, peel_references, self_field};
use crate::value::{Taint, Value, Why};
use crate::words::plain_words;
use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprMethodCall};

/// A pending error for a key that is not a function of the message.
pub(super) struct KeyError {
    taint: Taint,
    /// All places where the same value is used as a key.
    keys: Vec<Span>,
    message: String,
    notes: String,
}

impl Pass<'_, '_> {
    /// Returns the field named by an expression, directly or through a local alias.
    pub(super) fn named_field(&self, e: &Expr) -> Option<Ident> {
        if let Some(f) = self_field(e) {
            return Some(f.clone());
        }

        match peel_references(e) {
            Expr::Path(p) => match &self.variable(self.find(p.path.get_ident()?)?).kind {
                Kind::Field(f) => Some(f.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Analyzes a method call on a field. Returns `None` if the receiver is not a field.
    pub(super) fn field_method(&mut self, c: &ExprMethodCall, out: &mut Vec<Node>) -> Option<Value> {
        let field = self.named_field(&c.receiver)?;
        let method = c.method.to_string();
        let state = Value::tainted(Why::State(field.to_string()), field.span());

        if let (Some(by_reference), Some(key)) = (keyed_by_reference(&method), c.args.first()) {
            let value = self.expression(key, out);
            self.access(&field, &method, by_reference, key, value, out);
            for a in c.args.iter().skip(1) {
                let argument = self.value_argument(a, None, out);
                self.dropped(&argument, &a);
            }

            return Some(state);
        }

        match method.as_str() {
            "whole" if c.args.is_empty() => out.push(Node::Whole { field }),
            // a shared view reads the committed state of any cell, so it adds no cell to the map
            "shared" if c.args.is_empty() => {
                out.push(Node::Effect);
                let value = Value::tainted(Why::View(field.to_string()), field.span());
                self.shared.push(field);
                return Some(value);
            }
            _ => {
                if !needs_all_cells(&method) && !has_another_name(&method) {
                    self.plain.push(Ident::new(&field.to_string(), c.method.span()))
                }

                for a in &c.args {
                    let argument = self.value_argument(a, None, out);
                    self.dropped(&argument, &a);
                    // a method of a configuration may change its arguments
                    for id in self.handed_views(a) {
                        if self.is_exclusive(id) {
                            let why = Why::MutableBorrow(self.variable(id).name.clone());
                            self.poison(id, Taint::new(why, a.span()));
                        }
                    }
                }

                out.push(Node::Effect);
                return Some(Value::tainted(Why::Field(field.to_string()), field.span()));
            }
        }

        Some(state)
    }

    fn access(
        &mut self,
        f: &Ident,
        method: &str,
        by_reference: bool,
        key: &Expr,
        value: Value,
        out: &mut Vec<Node>,
    ) {
        if let Some(taint) = &value.taint {
            self.dropped(&value, &key);
            return self.refuse_key(f, method, key, taint.clone());
        }

        let varies = self.varies(&value);
        let Alias { words, identity } = self.in_words(key);
        let words = format!("{f}[{words}]");
        let key = match peel(key) {
            // does not clone a field only to hash it
            Expr::MethodCall(c)
                if !by_reference && c.method == "clone" && matches!(peel(&c.receiver), Expr::Field(_)) =>
            {
                &c.receiver
            }
            _ => key,
        };

        let key = self.printed(key);
        out.push(Node::Access(Access {
            field: f.clone(),
            by_reference,
            key,
            words,
            identity,
            value,
            varies,
        }));
    }

    /// Checks whether a value differs between the iterations of a loop around the current point.
    pub(super) fn varies(&self, value: &Value) -> bool {
        self.enclosing.iter().any(|l| value.varies.contains(&l.site))
    }

    fn refuse_key(&mut self, f: &Ident, method: &str, key: &Expr, taint: Taint) {
        if let Why::Parameter(i) = taint.why {
            let access = format!("self.{f}.{method}({})", plain_words(key.to_token_stream()));
            self.parameter_keys.push((i, access));
            return;
        }

        if self.is_reported(&taint, key.span()) {
            return;
        }

        if let Why::Name(name, Some(meant)) = &taint.why {
            let message =
                format!("there is no variable `{name}` here, but a key of `self.{f}` depends on it");
            let notes = format!("help: a variable with a similar name exists: `{meant}`");
            let keys = vec![taint.span];
            self.key_errors.push(KeyError { taint, keys, message, notes });
            return;
        }

        let message = format!(
            "this key of `self.{f}` is not a function of the message, so Beehive cannot tell which cell the handler needs"
        );
        let line = taint.span.start().line;
        let notes = format!("note: {}\n{}", taint.why.note(line), way_out(f, method, key, &taint));
        self.key_errors.push(KeyError { taint, keys: vec![key.span()], message, notes });
    }

    /// Refuses an argument that becomes a key in the method `name`; `access` is the access with this key.
    pub(super) fn refuse_argument(&mut self, name: &str, access: &str, argument: &Expr, taint: Taint) {
        if self.is_reported(&taint, argument.span()) {
            return;
        }

        let message = format!(
            "this argument becomes a key in `{name}` (`{access}`), but it is not a function of the message"
        );
        let notes = format!(
            "note: {}\nhelp: emit a message that carries the key, and handle that message in its own `#[rcv]` method",
            taint.why.note(taint.span.start().line)
        );
        self.key_errors.push(KeyError { taint, keys: vec![argument.span()], message, notes });
    }

    /// Checks whether the mistake because of which a key is unknown has already been reported, and if so adds the key
    /// to that error. The same value may be a key in several places, but each mistake is one error.
    fn is_reported(&mut self, taint: &Taint, key: Span) -> bool {
        if taint.why == Why::Refused {
            return true;
        }

        // an unknown name is shown once, at its first use
        let is_name = matches!(taint.why, Why::Name(_, Some(_)));
        let same = |e: &&mut KeyError| e.taint.why == taint.why && extent(e.taint.span) == extent(taint.span);
        let Some(known) = self.key_errors.iter_mut().find(same) else { return false };

        // an expression may be analyzed twice
        if !is_name && !known.keys.iter().any(|k| extent(*k) == extent(key)) {
            known.keys.push(key);
        }
        true
    }

    /// Turns the refused keys into errors at the end of a function.
    pub(super) fn report_keys(&mut self) {
        let errors = std::mem::take(&mut self.key_errors);
        // a refused construct hides names, so these errors may only be consequences of it
        if self.blind {
            return;
        }

        for e in errors {
            let Some((first, more)) = e.keys.split_first() else { continue };

            let mut lines: Vec<usize> = more.iter().map(|s| s.start().line).collect();
            lines.dedup();
            let mut text = format!("{}\n{}", e.message, e.notes);
            if !lines.is_empty() {
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                text += &format!("\nnote: the same value is also used as a key at line {}", lines.join(", "));
            }

            self.errors.push(Error::new(*first, text));
        }
    }
}

/// Checks whether a path names a well-known function that reads a clock or a source of randomness, in the standard
/// library, `chrono`, `rand` or `uuid`.
fn reads_clock_or_chance(path: &str) -> bool {
    const KNOWN: [&str; 8] = [
        "Instant::now",
        "SystemTime::now",
        "Utc::now",
        "Local::now",
        "rand::random",
        "rand::rng",
        "thread_rng",
        "Uuid::new_v4",
    ];

    KNOWN.iter().any(|known| path == *known || path.ends_with(&format!("::{known}")))
}

/// Returns the help lines of the error: the code to write instead.
fn way_out(f: &Ident, method: &str, key: &Expr, taint: &Taint) -> String {
    match &taint.why {
        Why::Unordered => "help: sort the elements first, `keys.sort()`, or collect them into a `BTreeSet` or a `BTreeMap`, which are ordered".into(),
        Why::Macro(name) if is_foreign_macro(name) => format!(
            "help: if the macro is from one of these crates, name the crate: `tracing::{name}!(..)`, `log::{name}!(..)` or `anyhow::{name}!(..)`"
        ),
        Why::Rebound(name) => format!(
            "help: if it does not, put the call into a block of its own: `{{ {name}!(..); }}`"
        ),
        Why::Call(name) if reads_clock_or_chance(name) => format!(
            "help: each call returns a different value, so do not use `pure!`: make the call where the message is created, and send the value in the message\n\
             help: a time or a random number can be a row key, because a row key need not be a function of the message: make `{f}` a `Table`, and write `self.{f}.at(key).insert(..)` with `ctx.now()` or `ctx.rng()`"
        ),
        Why::Call(name) | Why::Method(name) | Why::Macro(name) | Why::Name(name, _) => {
            let called = name.rsplit("::").next().unwrap_or(name);
            let mut mentioned = vec![];
            names(key.to_token_stream(), &mut mentioned);
            let say_so = if mentioned.iter().any(|n| n == called) {
                let shown = plain_words(peel_references(key).to_token_stream());
                format!("write `pure!({shown})`")
            } else {
                // the key is a local: `pure!` has no effect on a local, so the help line points to the call that
                // computes it
                let shown = match &taint.why {
                    Why::Call(_) => format!("{name}(..)"),
                    Why::Method(_) => format!("value.{name}(..)"),
                    Why::Macro(_) => format!("{name}!(..)"),
                    _ => name.clone(),
                };

                format!("write `pure!({shown})` in line {}", taint.span.start().line)
            };

            let or = match name.starts_with("Self::") {
                true => "help: or write it with a loop if it calls itself, so that Beehive can check it",
                false => "help: or make it an associated function of this impl block, so that Beehive can check it",
            };
            format!(
                "help: if `{called}` depends only on its arguments, {say_so}, or `#[handlers(pure({called}))]`\n{or}"
            )
        }
        Why::FunctionValue => {
            "help: call a function by name, preferably an associated function of this impl block, which Beehive can check".into()
        }
        Why::InClosure(_) => {
            "help: change it where the closure is not stored: in a loop, or in a closure that is the argument of a method".into()
        }
        Why::Together | Why::MutableBorrow(_) | Why::Dropped(_) => {
            "help: compute the key only from the message, before the handler touches state".into()
        }
        Why::Moved(name) => format!(
            "help: compute the key before the condition, or borrow the value instead of moving it: `&{name}`"
        ),
        // We do not suggest a message that carries the time: its sender would also have to read the context.
        Why::Context => format!(
            "help: a time or a random number can be a row key, because a row key need not be a function of the message: make `{f}` a `Table`, and write `self.{f}.at(key).insert(..)`\n\
             help: to have one bee own all of `{f}`, write `self.{f}.whole().{method}(..)`"
        ),
        Why::Field(_) => {
            "help: compute the key from the message and constants; otherwise, a change of the configuration would move cells"
                .into()
        }
        Why::Helper(name) => format!(
            "help: if the result depends only on the arguments, remove the `self` of `{name}` and call it as \
             `Self::{name}(..)`, so that Beehive can check it\n\
             help: otherwise emit a message that carries the key and handle it in its own `#[rcv]` method"
        ),
        _ => format!(
            "help: to keep the app sharded, emit a message that carries the key and handle it in its own `#[rcv]` method\n\
             help: to have one bee own all of `{f}`, write `self.{f}.whole().{method}(..)`"
        ),
    }
}
