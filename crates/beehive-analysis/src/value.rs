//! What the pass knows of a value: whether it is a function of the message, and of which locals.

use proc_macro2::Span;
use std::collections::BTreeSet;

/// A local variable of the function under analysis, by declaration and not by name.
pub(crate) type VariableId = usize;
/// A set of locals.
pub(crate) type Variables = BTreeSet<VariableId>;

/// A syntax node, by its address. The analysed block and the arena of macro arguments outlive the analysis, so an
/// address stands for the same node in every round of the fixpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Site(usize);

impl Site {
    pub(crate) fn of<T>(node: &T) -> Site {
        Site(node as *const T as usize)
    }
}

/// Why a value is not a function of the message, and where that began.
#[derive(Clone, Debug)]
pub(crate) struct Taint {
    pub why: Why,
    pub span: Span,
}

impl Taint {
    pub(crate) fn new(why: Why, span: Span) -> Taint {
        Taint { why, span }
    }
}

/// Why a value is not a function of the message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Why {
    /// Read from a dictionary.
    State(String),
    /// Read from a snapshot of a dictionary.
    Snapshot(String),
    /// Answered by a method of the app.
    Helper(String),
    /// Another field of the app.
    Field(String),
    /// Computed by a function the analysis cannot see.
    Call(String),
    /// Computed by a function that a value holds.
    FunctionValue,
    /// A name that no local has: a function that the analysis cannot see, or a misspelt local, and then the one meant.
    Name(String, Option<String>),
    /// Computed by a method that may read something else.
    Method(String),
    /// Made by a macro the analysis cannot see into.
    Macro(String),
    /// From the context.
    Context,
    /// Mutably borrowed.
    MutableBorrow(String),
    /// Assigned under a condition on state.
    Assigned(String),
    /// Computed in one expression with an access.
    Together,
    /// Changed by an expression that the map does not run.
    Dropped(String),
    /// A parameter for which some caller passes state.
    Parameter(usize),
    /// Made by what was refused, which has been said.
    Refused,
    /// Anything else, in words.
    Other(&'static str),
}

impl Why {
    /// The note under an error.
    pub(crate) fn note(&self, line: usize) -> String {
        match self {
            Why::State(d) => format!("it depends on `self.{d}`, read at line {line}"),
            Why::Snapshot(d) => format!("it depends on a snapshot of `self.{d}`, read at line {line}"),
            Why::Helper(f) => format!("it depends on what `self.{f}(..)` returns (line {line})"),
            Why::Field(f) => {
                format!("it depends on `self.{f}` (line {line}), which is not part of the message")
            }
            Why::Call(f) => {
                format!("it calls `{f}` (line {line}), which Beehive cannot see to be deterministic")
            }
            Why::FunctionValue => {
                format!(
                    "it calls a function that a value holds (line {line}), so that Beehive cannot see which"
                )
            }
            Why::Method(f) => {
                format!("it calls `.{f}()` (line {line}), which may read something other than the message")
            }
            Why::Macro(f) => {
                format!("it goes through the macro `{f}!` (line {line}), which Beehive cannot see into")
            }
            Why::Context => format!("it comes from the context (line {line})"),
            Why::MutableBorrow(v) => {
                format!("`{v}` is mutably borrowed at line {line}, so its value is not known")
            }
            Why::Assigned(v) => {
                format!("`{v}` is assigned at line {line} under a condition that depends on state")
            }
            Why::Together => format!(
                "it is computed together with a state access (line {line}); compute it in a `let` of its own first"
            ),
            Why::Dropped(v) => {
                format!("`{v}` is changed at line {line} by an expression that also depends on state")
            }
            Why::Parameter(_) => "it is a parameter that a caller fills from state".into(),
            Why::Name(f, _) => format!(
                "there is no variable `{f}` (line {line}), and a function of that name Beehive cannot see to be deterministic"
            ),
            Why::Refused => format!("it is refused (line {line})"),
            Why::Other(s) => format!("{s} (line {line})"),
        }
    }
}

/// What a value is made of, as far as keys care.
#[derive(Clone, Default, Debug, PartialEq)]
pub(crate) struct Sources {
    /// The message or its envelope: the value may differ from message to message.
    pub message: bool,
    /// Parameters of the helper under analysis.
    pub parameters: BTreeSet<usize>,
}

impl Sources {
    pub(crate) fn message() -> Sources {
        Sources { message: true, parameters: BTreeSet::new() }
    }

    pub(crate) fn and(&mut self, other: &Sources) {
        self.message |= other.message;
        self.parameters.extend(&other.parameters);
    }
}

/// What is known of the value of an expression.
#[derive(Clone, Default, Debug)]
pub(crate) struct Value {
    /// Set if it is not a function of the message.
    pub taint: Option<Taint>,
    /// The locals it reads.
    pub uses: Variables,
    /// The locals it changes.
    pub changes: Variables,
    /// What it is made of.
    pub sources: Sources,
    /// The loops from round to round of which it may differ.
    pub varies: BTreeSet<Site>,
    /// Where it may panic.
    pub partial: Option<Span>,
    /// Whether evaluating it may leave the function (`?`) or a loop.
    pub exits: bool,
    /// Whether evaluating it may leave a loop, or start its next round.
    pub jumps: bool,
}

impl Value {
    pub(crate) fn tainted(why: Why, span: Span) -> Value {
        Value { taint: Some(Taint::new(why, span)), ..Value::default() }
    }

    pub(crate) fn message() -> Value {
        Value { sources: Sources::message(), ..Value::default() }
    }

    /// Both are evaluated.
    pub(crate) fn and(&mut self, other: Value) {
        if self.taint.is_none() {
            self.taint = other.taint;
        }
        self.uses.extend(other.uses);
        self.changes.extend(other.changes);
        self.sources.and(&other.sources);
        self.varies.extend(other.varies);
        self.partial = self.partial.or(other.partial);
        self.exits |= other.exits;
        self.jumps |= other.jumps;
    }

    /// Why it is no key, or that it was computed together with an access.
    pub(crate) fn taint_or_together(&self, span: Span) -> Taint {
        self.taint.clone().unwrap_or(Taint::new(Why::Together, span))
    }
}
