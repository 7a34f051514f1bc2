//! The properties that the pass tracks for a value: whether it is a function of the message, and which locals it reads
//! and changes.

use proc_macro2::Span;
use std::collections::BTreeSet;
use syn::spanned::Spanned;

/// Identifies a local variable of the function under analysis by its declaration, not by its name.
pub(crate) type VariableId = usize;
/// A set of locals.
pub(crate) type Variables = BTreeSet<VariableId>;

/// Identifies a syntax node by its address. The analyzed block and the arena of macro arguments outlive the
/// analysis, so an address denotes the same node in every round of the fixpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Site(usize);

impl Site {
    pub(crate) fn of<T>(node: &T) -> Site {
        Site(node as *const T as usize)
    }
}

/// The reason why a value is not a function of the message, and the place that caused it.
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

/// The reason why a value is not a function of the message. The names in variants are those of the field, function or
/// variable that causes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Why {
    /// Read from a dictionary.
    State(String),
    /// Read from a shared view of a dictionary.
    View(String),
    /// Returned by a method of the app.
    Helper(String),
    /// Read from a field of the app other than by a keyed access.
    Field(String),
    /// Computed by a function that the analysis cannot see into.
    Call(String),
    /// Computed from the order of a hash map or a hash set.
    Unordered,
    /// Computed by calling a function value, such as a closure in a field.
    FunctionValue,
    /// A name that is not a local's: a function that the analysis cannot see into, or a misspelled local, with the name
    /// that was probably meant.
    Name(String, Option<String>),
    /// Computed by a method that may read something other than its receiver and arguments.
    Method(String),
    /// Produced by a macro that the analysis cannot see into.
    Macro(String),
    /// A name that such a macro may have rebound.
    Rebound(String),
    /// Read from the context.
    Context,
    /// The local with this name is mutably borrowed.
    MutableBorrow(String),
    /// The local with this name is assigned under a condition that depends on state.
    Assigned(String),
    /// The local with this name is changed by a closure that may run at a different time.
    InClosure(String),
    /// The local with this name is moved under a condition on state, and may hold a `&mut` or some other value that
    /// cannot be cloned.
    Moved(String),
    /// Computed in the same expression as an access.
    Together,
    /// The local with this name is changed by an expression that the map does not run.
    Dropped(String),
    /// The parameter at this index, for which some caller passes a state-dependent value.
    Parameter(usize),
    /// Produced by code that is refused with an error of its own.
    Refused,
    /// Any other reason, in words.
    Other(&'static str),
}

impl Why {
    /// Returns the note shown in an error about this reason; `line` is where the reason arose.
    pub(crate) fn note(&self, line: usize) -> String {
        match self {
            Why::State(d) => format!("it depends on `self.{d}`, read at line {line}"),
            Why::View(d) => format!("it depends on a view of `self.{d}`, read at line {line}"),
            Why::Helper(f) => format!("it depends on the result of `self.{f}(..)` (line {line})"),
            Why::Field(f) => {
                format!("it depends on `self.{f}` (line {line}), which is not part of the message")
            }
            Why::Call(f) => {
                format!("it calls `{f}` (line {line}), which Beehive cannot prove to be deterministic")
            }
            Why::Unordered => {
                format!(
                    "it depends on the order of a hash map or a hash set (line {line}), which differs from run to run"
                )
            }
            Why::FunctionValue => {
                format!(
                    "it calls a function through a value (line {line}), so Beehive cannot tell which function it is"
                )
            }
            Why::Method(f) => {
                format!("it calls `.{f}()` (line {line}), which may read something other than the message")
            }
            Why::Macro(f) => {
                format!("it depends on the macro `{f}!` (line {line}), which Beehive cannot see into")
            }
            Why::Rebound(f) => {
                format!(
                    "it depends on the macro `{f}!` (line {line}), which may rebind a name that is passed to it"
                )
            }
            Why::Context => format!("it comes from the context (line {line})"),
            Why::MutableBorrow(v) => {
                format!("`{v}` is mutably borrowed at line {line}, so its value is unknown")
            }
            Why::InClosure(name) => {
                format!("`{name}` is changed at line {line} by a closure that may run at another time")
            }
            Why::Assigned(v) => {
                format!("`{v}` is assigned at line {line} under a condition that depends on state")
            }
            Why::Moved(v) => format!(
                "`{v}` is moved at line {line} under a condition that depends on state, and the map, which runs all branches, cannot clone it"
            ),
            Why::Together => format!(
                "it is computed in the same expression as a state access (line {line}); compute it in a separate `let` first"
            ),
            Why::Dropped(v) => {
                format!("`{v}` is changed at line {line} by an expression that also depends on state")
            }
            Why::Parameter(_) => {
                "it is a parameter to which a caller passes a value that depends on state".into()
            }
            Why::Name(f, _) => format!(
                "there is no variable `{f}` (line {line}), and Beehive cannot prove that a function of that name is deterministic"
            ),
            Why::Refused => format!("it has an error of its own (line {line})"),
            Why::Other(s) => format!("{s} (line {line})"),
        }
    }
}

/// The origins of a value, for deciding whether a key differs from message to message.
#[derive(Clone, Default, Debug, PartialEq)]
pub(crate) struct Sources {
    /// Whether it comes from the message or its envelope and may therefore differ from message to message.
    pub message: bool,
    /// Indices of the parameters, of the helper under analysis, from which it comes.
    pub parameters: BTreeSet<usize>,
}

impl Sources {
    pub(crate) fn message() -> Sources {
        Sources { message: true, parameters: BTreeSet::new() }
    }

    /// Checks whether these sources include all of `other`.
    pub(crate) fn covers(&self, other: &Sources) -> bool {
        (self.message || !other.message) && other.parameters.is_subset(&self.parameters)
    }

    pub(crate) fn and(&mut self, other: &Sources) {
        self.message |= other.message;
        self.parameters.extend(&other.parameters);
    }
}

/// The known properties of an expression's value.
#[derive(Clone, Default, Debug)]
pub(crate) struct Value {
    /// The reason why it is not a function of the message; `None` if it is one.
    pub taint: Option<Taint>,
    /// The reason why the order of its elements differs between runs; `None` if it does not. Everything else about the
    /// value is known.
    pub unordered: Option<Taint>,
    /// The locals read by its expression.
    pub uses: Variables,
    /// The locals changed by its expression.
    pub changes: Variables,
    /// The origins of the value.
    pub sources: Sources,
    /// The loops in which it may differ between iterations.
    pub varies: BTreeSet<Site>,
    /// Whether its type may follow only from how it is used. This is not merged, because it describes the
    /// initial value of a local.
    pub open: bool,
    /// Whether evaluating it may panic.
    pub panics: bool,
    /// Whether evaluating it may leave the function (`?`) or a loop.
    pub exits: bool,
    /// Whether evaluating it may leave a loop or start its next iteration.
    pub jumps: bool,
}

impl Value {
    pub(crate) fn tainted(why: Why, span: Span) -> Value {
        Value { taint: Some(Taint::new(why, span)), ..Value::default() }
    }

    pub(crate) fn message() -> Value {
        Value { sources: Sources::message(), ..Value::default() }
    }

    /// Merges in the properties of another evaluated expression.
    pub(crate) fn and(&mut self, other: Value) {
        if self.taint.is_none() {
            self.taint = other.taint;
        }

        if self.unordered.is_none() {
            self.unordered = other.unordered;
        }

        self.uses.extend(other.uses);
        self.changes.extend(other.changes);
        self.sources.and(&other.sources);
        self.varies.extend(other.varies);
        self.panics |= other.panics;
        self.exits |= other.exits;

        self.jumps |= other.jumps;
    }

    /// Returns the value's taint or, if it has none, a taint for a value that is computed together with an access.
    pub(crate) fn taint_or_together(&self, at: &impl Spanned) -> Taint {
        // finding the span of a node requires turning the whole node into tokens
        self.taint.clone().unwrap_or_else(|| Taint::new(Why::Together, at.span()))
    }
}
