//! The classes of bodies: each of them covers a kind of code for which analyses of handlers have been wrong.

use super::class_forms::forms;
use super::forms::Of;
use super::{Bodies, Body};

/// The kind of Rust code that a body exercises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    /// Keys that change through views and shared references that no `mut` names.
    HiddenChanges,
    /// A condition around the only accesses depends on a change whose result is used, so a wrong map drops the
    /// message.
    WrongDrops,
    /// Methods with several versions, and functions that are promised to be deterministic.
    Promises,
    /// Hash maps and hash sets, whose order differs from run to run.
    HashOrder,
    /// Statics, locks, channels and thread locals, which a map must not change.
    SideEffects,
    /// Macros of the standard library, of other crates, and the user's own.
    Macros,
    /// Keys whose computation panics at a point that the handler does not reach.
    Panics,
    /// Maps that take long, or that could take long.
    Costs,
    /// Ordinary forms: patterns, closures, moves, functions by path, types of the body.
    Ordinary,
    /// Counted loops.
    CountedLoops,
}

impl Class {
    pub(crate) const ALL: [Class; 10] = [
        Class::HiddenChanges,
        Class::WrongDrops,
        Class::Promises,
        Class::HashOrder,
        Class::SideEffects,
        Class::Macros,
        Class::Panics,
        Class::Costs,
        Class::Ordinary,
        Class::CountedLoops,
    ];

    /// Returns the class of the body with this number.
    pub(crate) fn of_number(n: usize) -> Class {
        Class::ALL[n % Class::ALL.len()]
    }
}

/// A form that belongs to a class.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Rust with the placeholders of the other tables: `{v}` is a local that it declares, `{d}` a dictionary and
    /// `{k}` a key.
    pub text: &'static str,
    /// The type of the local that it declares.
    pub declares: Option<Of>,
    /// Whether a person could write the map of a handler that uses it, as a statement or in a key.
    pub derivable: bool,
}

impl Bodies {
    /// Returns a handler `g<n>` of a class, with the helpers that it calls.
    pub(crate) fn of_class(&mut self, class: Class, n: usize) -> Body {
        self.start(class);
        let all = 2 + self.below(4);
        let mut statements: Vec<String> = (0..all)
            .map(|_| if self.one_in(2) { self.class_statement() } else { self.statement(2) })
            .collect();
        statements.push(self.class_statement());
        // the state of the locals after the statements decides which cells these are
        if class != Class::WrongDrops {
            statements.extend([self.access(), self.access()]);
        }
        self.finished(n, statements)
    }

    /// Returns a statement of the current class.
    pub(super) fn class_statement(&mut self) -> String {
        let table = forms(self.class);
        if table.is_empty() || self.class == Class::HiddenChanges && self.one_in(2) {
            return if self.class == Class::HiddenChanges { self.change() } else { self.statement(2) };
        }

        let form = self.one_of(table);
        if !form.derivable && !self.bold {
            return self.change();
        }
        self.used.push(form.text);
        self.derivable &= form.derivable || form.declares.is_some();
        let mut text = form.text.replace("{d}", self.dictionary());
        while text.contains("{k}") {
            text = text.replacen("{k}", &self.key(), 1);
        }
        let (text, _) = self.filled(&text, true, 1);
        let Some(of) = form.declares else { return text + " " };
        let name = self.declare(of, text.contains("let mut {v}"), form.derivable);
        text.replace("{v}", &name) + " "
    }
}
