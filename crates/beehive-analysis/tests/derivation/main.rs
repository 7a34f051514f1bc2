//! Tests of the analysis as an ordinary library: which handlers it refuses and why, and which maps it derives
//! for the others.

mod accepted;
mod assertions;
mod attempts;
mod computed;
mod cost;
mod counted;
mod declared_inside;
mod fan_out;
mod hash_order;
mod hidden_hashes;
mod integers;
mod kept_items;
mod lent;
mod macros;
mod mistakes;
mod moves;
mod panics;
mod passed_on;
mod refused;
mod seeded;
mod side_effects;
mod std_functions;
mod stopped_loops;
mod stored_views;
mod understood;
mod unnamed_changes;
mod versions;
mod wanted;

use beehive_analysis::{Derivation, derivation};

/// Returns the derivation of an impl block with these items.
fn block(items: &str) -> Derivation {
    options_block("", items)
}

fn options_block(options: &str, items: &str) -> Derivation {
    let attribute = options.parse().expect("tokens");
    let source: proc_macro2::TokenStream = format!("impl T {{ {items} }}").parse().expect("tokens");
    derivation(attribute, source).unwrap_or_else(|e| panic!("{items}\n{e}"))
}

/// Returns the derivation of one handler `h` of a message `m`. The body may close the method and open another
/// one.
fn handler(body: &str) -> Derivation {
    block(&format!("#[rcv] fn h(&mut self, m: &Msg, ctx: &mut Ctx) {{ {body} }}"))
}

fn errors(d: &Derivation) -> Vec<String> {
    d.errors.iter().map(ToString::to_string).collect()
}
