//! Each mistake in a body causes exactly one error: its consequences are not reported.

#[path = "../../examples/random_handlers/mistakes.rs"]
mod table;

use crate::{block, errors};

#[test]
fn each_mistake_is_one_error_wherever_it_stands() {
    let handlers = table::handlers();
    let wrong: Vec<String> = handlers
        .iter()
        .map(|h| (h, errors(&block(h))))
        .filter(|(_, errors)| errors.len() != 1)
        .map(|(h, errors)| format!("{h}\n{}\n", errors.join("\n")))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), handlers.len(), wrong.join("\n"));
    assert!(handlers.len() > 600);
}
