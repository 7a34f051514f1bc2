//! Analyzes macro calls: looks into known macros and assumes the worst of all others.

pub(crate) mod arguments;

use super::Pass;
use super::locals::scope::{Kind, Known};
use crate::faults::Fault;
use crate::known::{MacroKind, macro_kind, passes_on};
use crate::node::Node;
use crate::syntax::{find_name, last_name, names, stays};
use crate::value::{Taint, Value, Variables, Why};
use proc_macro2::Span;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, Macro, Token};

impl Pass<'_, '_> {
    pub(super) fn macro_call(&mut self, m: &Macro, out: &mut Vec<Node>, statement: bool) -> Value {
        let name = last_name(&m.path);
        let span = m.path.span();
        let bare = m.path.get_ident();
        let kind = match bare {
            Some(_) if self.own_macros.contains(&name) => MacroKind::Unknown,
            _ => macro_kind(&m.path),
        };
        let kind = match kind {
            _ if self.unit.trusted.contains(&name) => MacroKind::Pure,
            MacroKind::Unknown if self.trust > 0 => MacroKind::Pure,
            kind => kind,
        };

        if let Some(name) = bare.filter(|_| !matches!(kind, MacroKind::Unknown | MacroKind::Guessed)) {
            self.macros.push(name.clone());
        }
        if kind == MacroKind::Unknown {
            return self.opaque(m, &name, span, out, statement);
        }

        let form = match kind {
            MacroKind::Pure => name.as_str(),
            _ => "log",
        };

        let arguments = self.unit.arena.arguments(m, form);
        let Some(arguments) = (*arguments).as_ref() else { return self.opaque(m, &name, span, out, true) };
        if kind == MacroKind::Guessed && !has_format(arguments) {
            return self.opaque(m, &name, span, out, true);
        }

        match kind {
            MacroKind::Trust => {
                self.trust += 1;
                let mut value = self.all(arguments.expressions.iter(), out);
                self.trust -= 1;
                if self.unit.faults.has(Fault::PromisesHideChanges) {
                    value.changes.clear();
                }
                self.refuse_exits(&mut value, arguments, m);
                value
            }
            MacroKind::Pure => self.pure_macro(arguments, m, out),
            MacroKind::Write => self.write_macro(arguments, &name, span, out),
            MacroKind::Log if !statement && passes_on(m) && self.closures == 0 && self.trust == 0 => {
                self.logged = true;
                self.all(arguments.expressions.iter(), out)
            }
            // if the map calls the function, the function also checks its arguments in the map
            MacroKind::Log if name.contains("assert") && (self.is_free() || self.closures > 0) => {
                let mut value = self.arguments(arguments, out);
                value.panics = true;
                self.diverged |= self.closures > 0;
                value
            }
            MacroKind::Log if statement && self.only_logs(arguments) => {
                self.logged = true;
                Value::default()
            }
            _ => {
                for e in &arguments.expressions {
                    let value = self.expression(e, out);
                    self.dropped(&value, &span);
                    if value.exits {
                        out.push(Node::Maybe);
                    }
                }

                if kind == MacroKind::Diverge {
                    self.diverged |= self.closures > 0;
                    self.exit(false, out);
                    return Value::default();
                }

                out.push(Node::Effect);
                if kind == MacroKind::Guessed && !self.unit.faults.has(Fault::GuessedMacrosOnlyLog) {
                    self.distrust(m, &name, span);
                }
                if matches!(kind, MacroKind::MayExit | MacroKind::Guessed) {
                    out.push(Node::Maybe);
                }

                Value::tainted(Why::Macro(name), span)
            }
        }
    }

    /// Checks whether a statement that logs, inside an expression that computes a value, can be left out of the map:
    /// `None => { tracing::debug!("none"); 0 }`. The arguments must touch no state and change nothing.
    fn only_logs(&mut self, arguments: &arguments::Arguments) -> bool {
        if self.computing == 0 || self.closures > 0 || self.trust > 0 {
            return false;
        }

        arguments.expressions.iter().all(|e| {
            let mut nodes = vec![];
            let value = self.expression(e, &mut nodes);
            nodes.is_empty() && !value.exits && value.changes.is_empty()
        })
    }

    /// Analyzes a macro's arguments, including the locals captured by a format string.
    fn arguments(&mut self, arguments: &arguments::Arguments, out: &mut Vec<Node>) -> Value {
        let mut value = self.all(arguments.expressions.iter(), out);
        self.captured(arguments, &mut value);
        value
    }

    /// Adds the locals captured by a format string.
    fn captured(&mut self, arguments: &arguments::Arguments, value: &mut Value) {
        for id in arguments.captured.iter().filter_map(|n| self.find_name(n)).collect::<Vec<_>>() {
            let read = match &self.variable(id).kind {
                Kind::Field(f) => Value::tainted(Why::Field(f.to_string()), f.span()),
                Kind::Context => Value::tainted(Why::Context, Span::call_site()),
                _ => self.read(id).unwrap_or_default(),
            };
            value.and(read);
        }

        Self::decide(value);
    }

    /// Analyzes `write!(text, ..)`, which expands to `text.write_fmt(format_args!(..))` and so changes `text`
    /// without a visible borrow.
    fn write_macro(
        &mut self,
        arguments: &arguments::Arguments,
        name: &str,
        span: Span,
        out: &mut Vec<Node>,
    ) -> Value {
        let mut value = match arguments.expressions.split_first() {
            Some((to, more)) => {
                let mut value = self.lent(to, out);
                value.and(self.all(more.iter(), out));
                self.captured(arguments, &mut value);
                value
            }
            None => Value::default(),
        };
        if value.exits {
            // the map does not run the macro
            self.dropped(&value, &span);
            out.push(Node::Maybe);
            value = Value::tainted(Why::Macro(name.into()), span);
        }

        for id in arguments.expressions.first().map(|to| self.place_views(to)).unwrap_or_default() {
            self.changed(id, &mut value, span);
        }

        value
    }

    fn pure_macro(&mut self, arguments: &arguments::Arguments, m: &Macro, out: &mut Vec<Node>) -> Value {
        let mut value = self.arguments(arguments, out);
        if m.path.segments.last().is_some_and(|s| s.ident == "vec") {
            arguments.expressions.iter().for_each(|e| self.moves(e, &mut value));
        }
        if let Some((pattern, guard)) = &arguments.pattern {
            self.open_scope();
            let kind = match &value.taint {
                Some(t) => Kind::Tainted(t.clone()),
                None => Kind::Known(Known {
                    sources: value.sources.clone(),
                    varies: value.varies.clone(),
                    alias: None,
                    unordered: None,
                }),
            };

            let of = arguments.expressions.first();
            match of {
                Some(of) => self.bind_view(pattern, of, &kind, true),
                None => self.bind(pattern, &kind, true),
            };

            if let Some(guard) = guard {
                let decided = value.taint.is_none();
                if !decided {
                    self.under();
                }

                let mut nodes = vec![];
                let of_guard = self.expression(guard, &mut nodes);
                if !decided {
                    self.control.pop();
                }

                if !nodes.is_empty() {
                    self.error(
                        guard,
                        "state is used in the guard of `matches!`\nhelp: write a `match` or an `if let`",
                    );
                    value.taint = Some(Taint::new(Why::Refused, guard.span()));
                }

                value.and(of_guard);
            }

            self.close_scope();
        }

        // `vec![0; n]` may be too large
        value.panics |= m.path.segments.last().is_some_and(|s| s.ident == "vec");
        self.refuse_exits(&mut value, arguments, m);
        value
    }

    /// Handles a macro that looks like one from a logging or error crate but may be defined by the user: the locals
    /// that it mentions may change, and the macro may or may not return.
    fn distrust(&mut self, m: &Macro, name: &str, span: Span) {
        let mut mentioned = vec![];
        names(m.tokens.clone(), &mut mentioned);
        for id in mentioned.iter().filter_map(|n| self.find_name(n)).collect::<Vec<_>>() {
            if self.variable(id).mutable || self.is_exclusive(id) {
                self.poison(id, Taint::new(Why::Macro(name.into()), span));
            }
        }
    }

    /// Refuses `?` inside a macro that the map may print. A jump that stays inside the macro is accepted.
    fn refuse_exits(&mut self, value: &mut Value, arguments: &arguments::Arguments, m: &Macro) {
        let list = Punctuated::<Expr, Token![,]>::parse_terminated;
        let stays_inside = || match &arguments.pattern {
            // a pattern is not an expression
            Some((_, guard)) => arguments.expressions.iter().chain(guard).all(stays),
            None => list.parse2(m.tokens.clone()).is_ok_and(|list| list.iter().all(stays)),
        };
        if value.exits && stays_inside() {
            (value.exits, value.jumps) = (false, false);
        }
        if value.exits {
            self.error(
                &m.path,
                "`?` is used in a macro on which a key may depend\nhelp: compute the value in a separate `let` first",
            );
        }
    }

    /// Handles a macro that Beehive cannot see into. The macro may change any local that it mentions and, as a
    /// statement, rebind the local's name, but it must not mention state.
    fn opaque(&mut self, m: &Macro, name: &str, span: Span, out: &mut Vec<Node>, statement: bool) -> Value {
        let help = "help: read the state into a local first, and pass the local to the macro";
        let message = format!("state is used inside `{name}!`, which Beehive cannot see into\n{help}");
        let mut mentioned = vec![];
        names(m.tokens.clone(), &mut mentioned);
        let mentioned: Variables = mentioned.iter().filter_map(|n| self.find_name(n)).collect();
        let alias = mentioned.iter().find(|id| matches!(self.variable(**id).kind, Kind::Field(_)));
        let of_state = find_name(m.tokens.clone(), "self").or(alias.map(|_| span));
        if let Some(span) = of_state {
            self.error_at(span, message);
            self.blind |= statement;
        }

        let why = match of_state {
            Some(_) => Why::Refused,
            None => Why::Macro(name.into()),
        };
        out.push(Node::Effect);
        // the macro may also return, break or continue
        self.undecide_all();
        out.push(Node::Maybe);

        let rebinds = statement && !self.unit.faults.has(Fault::MacrosRebindNothing);
        for id in mentioned {
            let v = self.variable(id);
            if v.mutable || v.late || !self.variable_is_plain(id) {
                self.poison(id, Taint::new(why.clone(), span));
            } else if rebinds {
                let why = if of_state.is_some() { why.clone() } else { Why::Rebound(name.into()) };
                self.rebound(id, m, Taint::new(why, span), out);
            }
        }

        Value::tainted(why, span)
    }
}

/// Checks for a format string among the first arguments, as in logging and error macros.
fn has_format(arguments: &arguments::Arguments) -> bool {
    let is_text = |e: &syn::Expr| matches!(e, syn::Expr::Lit(l) if matches!(l.lit, syn::Lit::Str(_)));
    arguments.expressions.iter().take(3).any(is_text)
}
