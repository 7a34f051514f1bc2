//! Decides which nodes a map keeps: accesses, exits and, by a backward analysis, everything on which those depend.

use crate::node::{FunctionMap, Node};
use crate::value::{Value, Variables};

/// Checks whether two sets have a variable in common.
pub(super) fn meets(a: &Variables, b: &Variables) -> bool {
    a.iter().any(|x| b.contains(x))
}

/// Checks whether a map that needs the variables `needed` prints this node.
pub(crate) fn keeps(n: &Node, needed: &Variables) -> bool {
    let acts = |value: &Value| value.exits || meets(&value.changes, needed);
    let any = |nodes: &[Node]| nodes.iter().any(|n| keeps(n, needed));

    // a loop whose body only jumps has no effect on the map
    let works = |nodes: &[Node]| nodes.iter().any(|n| !matches!(n, Node::Jump(_)) && keeps(n, needed));
    match n {
        Node::Let { defines, value, .. } => meets(defines, needed) || acts(value),
        Node::Pure { value, .. } => acts(value),
        Node::Condition { value, then, otherwise, .. } => acts(value) || any(then) || any(otherwise),
        Node::OrElse { value, state, then, otherwise, .. } => {
            acts(value) || any(state) || keeps(then, needed) || keeps(otherwise, needed)
        }
        Node::Match { value, arms, .. } | Node::Arms { value, arms, .. } => {
            acts(value) || arms.iter().any(|a| any(&a.1))
        }
        Node::For { value, body, .. } | Node::While { value, body, .. } => acts(value) || works(body),
        Node::Loop { body, .. } => works(body),
        Node::Block { body, .. } => any(body),
        Node::Either(_, branches) => branches.iter().any(|b| any(b)),
        Node::Item(_) | Node::Gap | Node::Maybe => false,
        _ => true,
    }
}

/// Marks the variables read or changed by a printed expression. A changed variable must also be declared, and
/// may be a view into a needed one.
fn require(value: &Value, needed: &mut Variables) {
    needed.extend(value.uses.iter().chain(&value.changes))
}

fn collect(nodes: &[Node], needed: &mut Variables) {
    for n in nodes {
        if !keeps(n, needed) {
            continue;
        }

        match n {
            Node::Let { value, .. } | Node::Pure { value, .. } => require(value, needed),
            Node::LetElse { value, otherwise, .. } => {
                require(value, needed);
                collect(otherwise, needed)
            }
            Node::Access(a) => require(&a.value, needed),
            Node::Condition { value, then, otherwise, .. } => {
                require(value, needed);
                collect(then, needed);
                collect(otherwise, needed)
            }
            Node::OrElse { value, state, then, otherwise, .. } => {
                require(value, needed);
                collect(state, needed);
                collect(std::slice::from_ref(then), needed);
                collect(std::slice::from_ref(otherwise), needed)
            }
            Node::Match { value, arms, .. } | Node::Arms { value, arms, .. } => {
                require(value, needed);
                arms.iter().for_each(|a| collect(&a.1, needed))
            }
            Node::For { value, body, .. } | Node::While { value, body, .. } => {
                require(value, needed);
                collect(body, needed)
            }
            Node::Loop { body, .. } | Node::Block { body, .. } => collect(body, needed),
            Node::Either(_, branches) => branches.iter().for_each(|b| collect(b, needed)),
            Node::Helper(h) => {
                for (needs, a) in needed_parameters(&h.map).iter().zip(&h.arguments) {
                    if *needs {
                        require(&a.value, needed)
                    }
                }
            }
            _ => {}
        }
    }
}

/// Computes the variables on which the printed nodes depend, as a fixpoint.
pub(crate) fn needed(nodes: &[Node]) -> Variables {
    let mut needed = Variables::new();
    loop {
        let before = needed.len();
        collect(nodes, &mut needed);
        if needed.len() == before {
            return needed;
        }
    }
}

/// Returns for each parameter of a helper whether its map takes it.
pub(crate) fn needed_parameters(map: &FunctionMap) -> &[bool] {
    map.needed.get_or_init(|| {
        let needed = needed(&map.nodes);
        let of_state = map.mask.iter().copied().chain(std::iter::repeat(false));
        map.parameters.iter().zip(of_state).map(|(p, of_state)| !of_state && meets(p, &needed)).collect()
    })
}
