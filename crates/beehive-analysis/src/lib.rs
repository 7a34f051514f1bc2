//! The derivation of maps: the body of a handler in, the function that names its cells out, as an ordinary library.
//!
//! A handler is a method over dictionaries. Which cells it may touch is found by a forward pass over its body
//! (the `pass` folder) that separates what depends on the message alone from what depends on state, and leaves a tree
//! of nodes: the slice of the body that keys depend on, with the body's own control flow. The `emit` folder prunes,
//! checks and prints that tree; the `report` folder says in words what was found; `handlers` is the attribute around it
//! all, and `derive` holds the three derive macros. `beehive-macros` is the shell that the compiler loads.
//!
//! # Why a derived map covers every access
//!
//! 1. State is reachable only through `self`: a dictionary has no public constructor and refuses to work outside a
//!    transaction.
//! 2. *Every* occurrence of `self` in an analysed body, macro arguments included, is an access that `known` lists, a use
//!    of a field that is proved by type not to be a dictionary, a call of a method that is analysed too, or an error
//!    (`pass::expressions`, `pass::access`, `pass::calls`, `pass::macros`).
//! 3. Every expression that is printed is a function of the message, and each of its variables has in the map the value
//!    it has in the handler at that point: all changes of a needed variable are printed in order, or the variable is
//!    *poisoned* and reaches no key (`pass::scope`). By induction over the fixpoint of `unit`.
//! 4. Every path through the handler is matched by a path through the map that visits at least its accesses: conditions
//!    on the message agree; of a condition on state all sides are visited; leaving under such a condition leaves only
//!    that branch of the map (`pass::branches`, `pass::loops`, `emit::leave`).
//! 5. What the map evaluates although the handler may not get there cannot panic (`emit::partial`).
//!
//! What is trusted: methods on message data, what is marked `pure!`, the iteration order inside message types, and
//! lower-case constants in patterns. A broken promise is caught when the handler runs, by the guard of the dictionaries.

mod attempts;
mod derive;
mod diagnostics;
mod emit;
mod faults;
mod handlers;
mod known;
mod missing;
mod node;
mod pages;
mod pass;
mod report;
mod similar;
mod syntax;
mod unit;
mod value;
mod words;

pub use derive::{derive_app, derive_key, derive_message};
#[doc(hidden)]
pub use faults::Faults;
pub use handlers::{Derivation, HandlerDerivation, Warning, derivation, expand_handlers, expand_outside};
