//! Refuses operations that may panic in the map at points that the handler might not reach.
//!
//! A state check in the handler may guard `msg.items[0]`, but the map evaluates that expression regardless.
//! An operation that may panic and that the map keeps must therefore come before everything that depends on
//! state.

use super::needed::{keeps, needed};
use crate::node::{FunctionMap, Node};
use crate::value::{Value, Variables};
use syn::Error;

const MAY_PANIC: &str = "this may panic, and the map evaluates it even when the handler does not get here, because \
    whether it does depends on state\n\
    help: use a form that cannot panic (`get`, `if let`, `checked_div`), or compute it before the first state access";

/// Reports the operations that may panic although the handler might not reach them.
pub(crate) fn refuse(nodes: &[Node], errors: &mut Vec<Error>) {
    check(nodes, &needed(nodes), false, errors);
}

/// Returns whether it is uncertain that the handler gets past these nodes.
fn check(nodes: &[Node], needs: &Variables, mut uncertain: bool, errors: &mut Vec<Error>) -> bool {
    fn test(value: &Value, uncertain: bool, errors: &mut Vec<Error>) {
        if let (Some(span), true) = (value.partial, uncertain) {
            errors.push(Error::new(span, MAY_PANIC));
        }
    }

    for n in nodes.iter().filter(|n| keeps(n, needs) || matches!(n, Node::Maybe)) {
        match n {
            Node::Let { value, .. } | Node::Pure { value, .. } => test(value, uncertain, errors),
            Node::Access(a) => test(&a.value, uncertain, errors),
            Node::LetElse { value, otherwise, .. } => {
                test(value, uncertain, errors);
                check(otherwise, needs, uncertain, errors);
            }
            Node::Condition { value, then, otherwise, .. } => {
                test(value, uncertain, errors);
                let a = check(then, needs, uncertain, errors);
                let b = check(otherwise, needs, uncertain, errors);
                uncertain |= a | b;
            }
            Node::OrElse { value, state, then, otherwise, .. } => {
                test(value, uncertain, errors);
                uncertain |= check(state, needs, uncertain, errors);
                check(std::slice::from_ref(then), needs, true, errors);
                check(std::slice::from_ref(otherwise), needs, true, errors);
                uncertain |= leaves(std::slice::from_ref(then)) || leaves(std::slice::from_ref(otherwise));
            }
            Node::Match { value, arms, .. } | Node::Arms { value, arms, .. } => {
                test(value, uncertain, errors);
                let mut after = false;
                for a in arms {
                    after |= check(&a.1, needs, uncertain, errors);
                }
                uncertain |= after;
            }
            Node::For { value, body, .. } | Node::While { value, body, .. } => {
                test(value, uncertain, errors);
                uncertain = rounds(body, needs, uncertain, errors);
                if uncertain && matches!(n, Node::While { .. }) {
                    test(value, uncertain, errors);
                }
            }
            Node::Loop { body, .. } => uncertain = rounds(body, needs, uncertain, errors),
            Node::Block { body, .. } => uncertain |= check(body, needs, uncertain, errors),
            Node::Either(_, branches) => {
                for b in branches {
                    check(b, needs, true, errors);
                }
                uncertain |= branches.iter().any(|b| leaves(b));
            }
            Node::Helper(h) => {
                for a in &h.arguments {
                    test(&a.value, uncertain, errors);
                }

                if uncertain && may_panic(&h.map) {
                    errors.push(Error::new(
                        h.name.span(),
                        format!(
                            "`{0}` may panic while its keys are computed, and the map evaluates them even when the \
                             handler does not get here, because whether it does depends on state\n\
                             help: use forms that cannot panic in `{0}` (`get`, `if let`, `checked_div`), or call it before the \
                             first state access",
                            h.map.name
                        ),
                    ));
                }

                uncertain |= leaves(&h.map.nodes);
            }
            Node::Maybe => uncertain = true,
            _ => {}
        }
    }

    uncertain
}

/// Checks a loop's body. An uncertain exit anywhere in the body makes the start of the next iteration
/// uncertain, so the body is then checked a second time.
fn rounds(body: &[Node], needs: &Variables, uncertain: bool, errors: &mut Vec<Error>) -> bool {
    let after = check(body, needs, uncertain, errors);
    if after && !uncertain {
        check(body, needs, true, errors);
    }
    uncertain | after
}

/// Checks whether a helper may panic while its keys are computed. The result is cached, because many callers
/// may share the helper.
fn may_panic(map: &FunctionMap) -> bool {
    *map.may_panic.get_or_init(|| {
        let mut found = vec![];
        check(&map.nodes, &needed(&map.nodes), true, &mut found);
        !found.is_empty()
    })
}

/// Checks whether these nodes may leave the function or the branch.
pub(crate) fn leaves(nodes: &[Node]) -> bool {
    nodes.iter().any(|n| match n {
        Node::Exit { .. } | Node::Maybe => true,
        Node::Let { value, .. } | Node::Pure { value, .. } => value.exits,
        Node::Access(a) => a.value.exits,
        Node::Helper(h) => h.arguments.iter().any(|a| a.value.exits),
        Node::LetElse { value, otherwise, .. } => value.exits || leaves(otherwise),
        Node::Condition { value, then, otherwise, .. } => value.exits || leaves(then) || leaves(otherwise),
        Node::OrElse { value, state, then, otherwise, .. } => {
            value.exits
                || leaves(state)
                || leaves(std::slice::from_ref(then))
                || leaves(std::slice::from_ref(otherwise))
        }
        Node::Match { value, arms, .. } | Node::Arms { value, arms, .. } => {
            value.exits || arms.iter().any(|a| leaves(&a.1))
        }
        Node::For { value, body, .. } | Node::While { value, body, .. } => value.exits || leaves(body),
        Node::Loop { body, .. } | Node::Block { body, .. } => leaves(body),
        Node::Either(_, branches) => branches.iter().any(|b| leaves(b)),
        _ => false,
    })
}
