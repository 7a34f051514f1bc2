//! Removes effects that follow an unconditional access or another effect: at that point, the message can no
//! longer be dropped, so they do not influence the map.

use crate::node::Node;

/// Removes the effects that no longer influence the map.
pub(crate) fn remove_settled(nodes: Vec<Node>) -> Vec<Node> {
    remove(nodes, false).0
}

fn remove(nodes: Vec<Node>, mut settled: bool) -> (Vec<Node>, bool) {
    let mut out = vec![];
    let inner = |nodes: Vec<Node>, settled: bool| remove(nodes, settled).0;
    for n in nodes {
        out.push(match n {
            Node::Effect if settled => continue,
            n @ (Node::Effect | Node::Access(_) | Node::Whole { .. }) => {
                settled = true;
                n
            }
            Node::LetElse { pattern, initial, defines, value, otherwise } => {
                Node::LetElse { pattern, initial, defines, value, otherwise: inner(otherwise, settled) }
            }
            Node::Condition { condition, value, then, otherwise } => {
                let (then, a) = remove(then, settled);
                let (otherwise, b) = remove(otherwise, settled);
                settled |= a && b;
                Node::Condition { condition, value, then, otherwise }
            }
            Node::Match { scrutinee, value, arms } => Node::Match {
                scrutinee,
                value,
                arms: arms.into_iter().map(|(p, n)| (p, inner(n, settled))).collect(),
            },
            Node::Arms { scrutinee, value, arms } => Node::Arms {
                scrutinee,
                value,
                arms: arms.into_iter().map(|(p, n)| (p, inner(n, settled))).collect(),
            },
            Node::For { label, pattern, iterator, words, value, body } => {
                Node::For { label, pattern, iterator, words, value, body: inner(body, settled) }
            }
            Node::While { label, condition, value, body } => {
                Node::While { label, condition, value, body: inner(body, settled) }
            }
            Node::Loop { label, body } => Node::Loop { label, body: inner(body, settled) },
            Node::Block { label, body } => Node::Block { label, body: inner(body, settled) },
            Node::Either(depth, branches) => {
                Node::Either(depth, branches.into_iter().map(|n| inner(n, settled)).collect())
            }
            n => n,
        });
    }

    (out, settled)
}
