//! Decides where a map catches a panic.
//!
//! A condition on state may guard `msg.items[0]` in the handler, but the map evaluates that expression
//! regardless. A panic there does not mean that the handler panics, because the handler may never reach this
//! point. The map therefore leaves the branch and continues after it. If the handler does reach the point, it
//! panics too.
//!
//! Everywhere else, the rest of the map is not needed, because the handler has either returned before that
//! point or panics there.

use super::needed::{keeps, needed};
use crate::node::{FunctionMap, HelperCall, Node};
use crate::value::Variables;

/// Checks whether printed nodes may panic outside the branches and calls that catch panics themselves.
pub(crate) fn may_panic(nodes: &[Node], needs: &Variables) -> bool {
    nodes.iter().filter(|n| keeps(n, needs)).any(|n| match n {
        Node::Let { value, .. } | Node::Pure { value, .. } => value.panics,
        Node::Access(a) => a.value.panics,
        Node::LetElse { value, otherwise, .. } => value.panics || may_panic(otherwise, needs),
        Node::Condition { value, then, otherwise, .. } => {
            value.panics || may_panic(then, needs) || may_panic(otherwise, needs)
        }
        Node::OrElse { value, state, .. } => value.panics || may_panic(state, needs),
        Node::Match { value, arms, .. } | Node::Arms { value, arms, .. } => {
            value.panics || arms.iter().any(|a| may_panic(&a.1, needs))
        }
        Node::For { value, body, .. } | Node::While { value, body, .. } => {
            value.panics && !is_caught_around(n) || may_panic(body, needs)
        }
        Node::Loop { body, .. } | Node::Block { body, .. } => may_panic(body, needs),
        Node::Helper(h) => {
            h.arguments.iter().any(|a| a.value.panics) || helper_may_panic(&h.map) && !is_caught(h)
        }
        // each branch catches its own panics
        Node::Either(..) => false,
        _ => false,
    })
}

/// Checks whether a panic in a loop's iterator is caught around the loop, because the handler may have left
/// the loop before that iteration and continued after the loop.
pub(crate) fn is_caught_around(n: &Node) -> bool {
    matches!(n, Node::For { value, body, .. } if value.panics && matches!(body.as_slice(), [Node::Either(..)]))
}

/// Checks whether a call to a helper catches a panic in the helper's map, because the helper may have
/// returned before that point and the handler continued after the call.
pub(crate) fn is_caught(h: &HelperCall) -> bool {
    leaves(&h.map.nodes) && helper_may_panic(&h.map)
}

/// Checks whether a helper's map may panic. The result is cached, because many callers may share the helper.
fn helper_may_panic(map: &FunctionMap) -> bool {
    *map.may_panic.get_or_init(|| may_panic(&map.nodes, &needed(&map.nodes)))
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
