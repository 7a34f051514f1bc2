//! Derives a handler's map: the input is the handler's body; the output is a function that names the cells the handler
//! may touch.
//!
//! A handler is a method over dictionaries. A forward pass over its body (the `pass` folder, with one file per kind of
//! syntax, such as `closures`) separates code that depends only on the message from code that depends on state. The
//! result is a tree of nodes: the slice of the body on which keys depend, with the body's own control flow. The `emit`
//! folder prunes, checks and prints that tree; the `report` folder describes the result in words; `handlers` implements
//! the `#[handlers]` attribute on top of these, and `derive` holds the three derive macros. The crate is an ordinary
//! library; `beehive-macros` is the proc-macro crate that the compiler loads.
//!
//! # Why a derived map covers every access
//!
//! 1. State is reachable only through `self`: a dictionary has no public constructor and refuses to work outside a
//!    transaction.
//! 2. *Every* occurrence of `self` in an analyzed body, macro arguments included, is an access that `known` lists, a
//!    use of a field proved by its type not to be a dictionary, a call to a method that is also analyzed, or an error
//!    (`pass::expressions`, `pass::access`, `pass::calls`, `pass::closures`, `pass::macros`).
//! 3. Every printed expression is a function of the message, and each of its variables has the same value in
//!    the map as in the handler at that point: either all changes of a needed variable are printed in order,
//!    or the variable is *poisoned* and reaches no key (`pass::locals`). The proof is by induction over the
//!    fixpoint of `unit`.
//! 4. For every path through the handler there is a path through the map that visits at least its accesses:
//!    conditions on the message take the same side in both; the map visits all sides of a condition on state;
//!    an exit under such a condition leaves only that branch of the map (`pass::branches`, `pass::loops`,
//!    `pass::stops`, `emit::leave`).
//! 5. If an expression that the map evaluates panics, the map still visits all cells that the handler may visit without
//!    evaluating the expression: a branch under a condition on state, and a helper that may have returned, catch the
//!    panic; anywhere else the handler has returned before that point, or panics there too (`emit::panics`).
//!
//! The analysis trusts methods on message data, expressions marked `pure!`, the iteration order inside message types,
//! and lower-case constants in patterns. It also assumes that a clone equals its original. If one of these assumptions
//! is wrong, the guard of the dictionaries catches the access when the handler runs.

mod derive;
mod emit;
mod errors;
mod faults;
mod handlers;
mod known;
mod node;
mod pass;
mod report;
mod rewrite;
mod syntax;
mod understood;
mod unit;
mod value;
mod words;

pub use derive::{derive_app, derive_key, derive_message};
#[cfg(feature = "faults")]
#[doc(hidden)]
pub use faults::{Fault, Faults};
#[cfg(feature = "faults")]
#[doc(hidden)]
pub use handlers::faulty_derivation;
pub use handlers::{Derivation, HandlerDerivation, Warning, derivation, expand_handlers, expand_outside};
#[doc(hidden)]
pub use understood::{Understood, understood};
