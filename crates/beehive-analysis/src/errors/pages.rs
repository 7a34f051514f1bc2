//! Maps each error to the page of the guide that explains it; the page's name becomes the last line of the
//! error.

use proc_macro2::{Group, Literal, TokenStream, TokenTree};
use syn::{Error, Lit};

/// Pairs of a fragment of an error's text and the name of a page in `beehive::guide::errors`. The first
/// fragment found in the text decides; errors about keys are told apart by their notes.
const PAGES: &[(&str, &str)] = &[
    ("it comes from the context", "key_from_context"),
    ("so do not use `pure!`", "key_from_context"),
    ("which is not part of the message", "key_from_configuration"),
    ("the order of a hash map or a hash set", "key_from_hash_order"),
    ("there is no variable", "key_from_unknown_code"),
    ("cannot prove to be deterministic", "key_from_unknown_code"),
    ("may read something other than the message", "key_from_unknown_code"),
    ("it depends on the macro", "key_from_unknown_code"),
    ("so Beehive cannot tell which function it is", "key_from_unknown_code"),
    ("it depends on the result of `self.", "key_from_helper"),
    ("under a condition that depends on state", "key_changed_under_state"),
    ("by an expression that also depends on state", "key_changed_under_state"),
    ("is mutably borrowed at line", "key_changed_under_state"),
    ("is not a function of the message", "key_from_state"),
    ("`self` leaves the handler", "self_escapes"),
    ("state is accessed inside a closure", "state_in_closure"),
    ("would leave the attempt", "attempt"),
    ("`attempt!` undoes", "attempt"),
    ("state is used inside", "state_in_macro"),
    ("state is used in the guard", "state_in_macro"),
    ("`?` is used in a macro", "state_in_macro"),
    ("is not a method of this `#[handlers]` impl block", "helpers"),
    ("takes no `self`", "helpers"),
    ("so that Beehive can follow it", "helpers"),
    ("is recursive", "recursion"),
    ("only state ends this loop", "endless_loop"),
    ("is inferred from code that the map omits", "integer_type"),
    ("does not know this syntax", "syntax"),
    ("a macro in a pattern", "syntax"),
    ("whether this is compiled", "syntax"),
    ("handlers are synchronous", "handler_waits"),
    ("has the signature `fn", "handler_shape"),
    ("a timer needs a period", "handler_shape"),
    ("expected a period", "handler_shape"),
    ("a handler handles one message type", "handler_shape"),
    ("block has no handler", "handler_shape"),
    ("belongs on a method of", "handler_shape"),
    ("this needs all cells of a dictionary", "all_cells"),
    ("already handles", "handler_twice"),
    ("expected `sharded`", "handler_options"),
    ("expected `pure(..)`", "handler_options"),
    ("belongs on an inherent impl block", "handler_options"),
    ("a handler cannot run on every bee", "handler_options"),
    ("`whole(..)` requires `map = ..`", "handler_options"),
    ("the error type of a message cannot contain references", "typed_errors"),
    ("the answer type of a message cannot contain references", "answers"),
    ("a dictionary cannot hold", "app_fields"),
    ("so it is not an observer", "answers"),
    ("maps recorded at run time", "handler_options"),
    ("but a map must depend only on the message", "handler_options"),
    ("is centralized, not", "wrong_kind"),
    ("is sharded, not", "wrong_kind"),
    ("is stateless, not", "wrong_kind"),
    ("drops every message", "wrong_kind"),
    ("the derived map of", "expectation"),
    ("a dictionary cannot be moved", "app_fields"),
    ("a field of an app", "app_fields"),
    ("an app is a struct", "app_fields"),
    ("an app has", "app_fields"),
    ("an app must have named fields", "app_fields"),
    ("an app's name", "app_options"),
    ("or `durability = ", "app_options"),
    ("`durability` must be", "app_options"),
    ("an app in memory is not", "app_options"),
    ("an app without cells", "app_options"),
    ("`#[rows(", "app_options"),
    ("`replication` must be a number", "app_options"),
    ("`#[volatile]`", "app_options"),
    ("`#[shared", "app_options"),
    ("cannot be borrowed, because both are sent", "keys_and_messages"),
    ("or `serde = false`", "keys_and_messages"),
    ("cannot be a key", "keys_and_messages"),
    ("a union cannot be encoded", "keys_and_messages"),
];

/// Prints `compile_error!` for each of the errors combined in `error` and appends the name of its page if it
/// has one.
pub(crate) fn compile_error(error: &Error) -> TokenStream {
    error.to_compile_error().into_iter().map(with_page).collect()
}

/// Changes the texts inside the tokens, because the tokens carry the first and the last span of the
/// underlined code. On stable compilers, a newly built error would keep only the first span.
fn with_page(token: TokenTree) -> TokenTree {
    match token {
        TokenTree::Group(group) => {
            let mut changed =
                Group::new(group.delimiter(), group.stream().into_iter().map(with_page).collect());
            changed.set_span(group.span());
            changed.into()
        }
        TokenTree::Literal(literal) => {
            let Lit::Str(text) = Lit::new(literal.clone()) else { return literal.into() };

            let text = text.value();
            let Some((_, page)) = PAGES.iter().find(|(says, _)| text.contains(says)) else {
                return literal.into();
            };

            let mut changed = Literal::string(&format!("{text}\nmore: beehive::guide::errors::{page}"));
            changed.set_span(literal.span());
            changed.into()
        }
        other => other,
    }
}
