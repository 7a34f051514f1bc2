//! The tree that the pass leaves: what of a body a map may need, in the body's own order and control flow.

use crate::missing::Missing;
use crate::value::{Value, Variables};
use proc_macro2::{Ident, TokenStream};
use std::cell::OnceCell;
use std::rc::Rc;
use syn::Error;

/// One step of a map.
#[derive(Debug)]
pub(crate) enum Node {
    /// A binding that depends only on the message.
    Let {
        tokens: TokenStream,
        defines: Variables,
        value: Value,
    },
    /// `let pattern = initial else { .. }` that depends only on the message.
    LetElse {
        pattern: TokenStream,
        initial: TokenStream,
        defines: Variables,
        value: Value,
        otherwise: Vec<Node>,
    },
    /// A statement that depends only on the message: a change of a local, or a possible exit.
    Pure {
        tokens: TokenStream,
        value: Value,
    },
    /// An item in a body.
    Item(TokenStream),
    Access(Access),
    Whole {
        field: Ident,
    },
    /// Something a map cannot reproduce happens here: a message, a log line, a call.
    Effect,
    /// The handler may have returned before this point, depending on state.
    Maybe,
    /// Something that depends on state was left out here.
    Gap,
    Condition {
        condition: TokenStream,
        value: Value,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    /// `if pure || state { then } else { otherwise }`.
    OrElse {
        flag: Ident,
        condition: TokenStream,
        value: Value,
        state: Vec<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    Match {
        scrutinee: TokenStream,
        value: Value,
        arms: Vec<(TokenStream, Vec<Node>)>,
    },
    /// A match whose guards depend on state: every arm that fits counts.
    Arms {
        scrutinee: TokenStream,
        value: Value,
        arms: Vec<(TokenStream, Vec<Node>)>,
    },
    For {
        label: Option<TokenStream>,
        pattern: TokenStream,
        iterator: TokenStream,
        /// The head as a person would write it: `for x in msg.items`.
        words: String,
        value: Value,
        body: Vec<Node>,
    },
    While {
        label: Option<TokenStream>,
        condition: TokenStream,
        value: Value,
        body: Vec<Node>,
    },
    Loop {
        label: Option<TokenStream>,
        body: Vec<Node>,
    },
    Block {
        label: Option<TokenStream>,
        body: Vec<Node>,
    },
    /// Which of these runs depends on state: all count. The number is that of the label that leaves a branch.
    Either(usize, Vec<Vec<Node>>),
    Helper(HelperCall),
    Exit {
        /// Nothing is reported to the sender: the handler has done its work.
        quiet: bool,
        /// Nothing after it runs on this path.
        certain: bool,
        tokens: TokenStream,
    },
    Jump(TokenStream),
}

/// A cell is named by a key.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub field: Ident,
    /// The key is passed by reference.
    pub by_reference: bool,
    pub key: TokenStream,
    /// The key as a person would write it; parameters of a helper are placeholders.
    pub words: String,
    /// Equal for keys that are provably equal, and only for those.
    pub identity: String,
    pub value: Value,
    /// The key differs from round to round of a loop around it.
    pub varies: bool,
}

/// A method of the app is called.
#[derive(Debug)]
pub(crate) struct HelperCall {
    pub name: Ident,
    pub map: Rc<FunctionMap>,
    pub arguments: Vec<Argument>,
}

/// One argument of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Argument {
    pub tokens: TokenStream,
    pub words: String,
    pub identity: String,
    pub value: Value,
    /// It differs from round to round of a loop around the call.
    pub varies: bool,
}

/// What was found in one function of the block, for one pattern of arguments that depend on state.
#[derive(Debug)]
pub(crate) struct FunctionMap {
    /// The name of its map function.
    pub map_name: Ident,
    pub name: String,
    pub nodes: Vec<Node>,
    /// For every parameter: the variables its pattern binds.
    pub parameters: Vec<Variables>,
    /// Which parameters depend on state.
    pub mask: Vec<bool>,
    pub errors: Vec<Error>,
    /// Keys that come from a parameter which depends on state: (parameter, the access in words).
    pub parameter_keys: Vec<(usize, String)>,
    /// Fields that must not be dictionaries, at the place of their use.
    pub plain: Vec<Ident>,
    /// Dictionaries whose snapshots it reads, at the place of their use.
    pub shared: Vec<Ident>,
    /// What it calls and the block does not have.
    pub missing: Vec<Missing>,
    pub tail: Value,
    pub is_method: bool,
    /// Which parameters its map needs; computed once, for callers fan out.
    pub needed: OnceCell<Vec<bool>>,
    /// What it touches, in words; computed once.
    pub summary: OnceCell<crate::report::Summary>,
    /// Whether it may panic; computed once.
    pub may_panic: OnceCell<bool>,
}

/// Whether there is nothing but bindings, changes and exits that depend on the message.
pub(crate) fn is_pure(nodes: &[Node]) -> bool {
    nodes.iter().all(|n| match n {
        Node::Let { .. } | Node::Pure { .. } | Node::Item(_) | Node::Exit { .. } | Node::Jump(_) => true,
        Node::LetElse { otherwise, .. } => is_pure(otherwise),
        Node::Condition { then, otherwise, .. } => is_pure(then) && is_pure(otherwise),
        Node::Match { arms, .. } => arms.iter().all(|a| is_pure(&a.1)),
        Node::For { body, .. }
        | Node::While { body, .. }
        | Node::Loop { body, .. }
        | Node::Block { body, .. } => is_pure(body),
        _ => false,
    })
}

/// Whether cells are named somewhere in here.
pub(crate) fn touches_state(nodes: &[Node]) -> bool {
    nodes.iter().any(|n| match n {
        Node::Access(_) | Node::Whole { .. } | Node::Helper(_) => true,
        Node::LetElse { otherwise, .. } => touches_state(otherwise),
        Node::Condition { then, otherwise, .. } => touches_state(then) || touches_state(otherwise),
        Node::OrElse { .. } => true,
        Node::Match { arms, .. } | Node::Arms { arms, .. } => arms.iter().any(|a| touches_state(&a.1)),
        Node::For { body, .. }
        | Node::While { body, .. }
        | Node::Loop { body, .. }
        | Node::Block { body, .. } => touches_state(body),
        Node::Either(_, branches) => branches.iter().any(|b| touches_state(b)),
        _ => false,
    })
}

/// Adds to `out` all that a verbatim copy of these nodes would use and change.
pub(crate) fn accumulate(nodes: &[Node], out: &mut Value) {
    fn add(out: &mut Value, value: &Value) {
        out.and(Value { taint: None, ..value.clone() })
    }
    for n in nodes {
        match n {
            Node::Let { value, .. } | Node::Pure { value, .. } => add(out, value),
            Node::LetElse { value, otherwise, .. } => {
                add(out, value);
                accumulate(otherwise, out)
            }
            Node::Condition { value, then, otherwise, .. } => {
                add(out, value);
                accumulate(then, out);
                accumulate(otherwise, out)
            }
            Node::Match { value, arms, .. } | Node::Arms { value, arms, .. } => {
                add(out, value);
                arms.iter().for_each(|a| accumulate(&a.1, out))
            }
            Node::For { value, body, .. } | Node::While { value, body, .. } => {
                add(out, value);
                accumulate(body, out)
            }
            Node::Loop { body, .. } | Node::Block { body, .. } => accumulate(body, out),
            Node::Exit { .. } => out.exits = true,
            Node::Jump(_) => (out.exits, out.jumps) = (true, true),
            _ => {}
        }
    }
}
