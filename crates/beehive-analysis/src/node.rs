//! The tree produced by the pass: the parts of a body that a map may need, in the body's own order and
//! control flow.

use crate::emit::panics::leaves;
use crate::errors::missing::Missing;
use crate::value::{Value, VariableId, Variables};
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
    /// A statement that depends only on the message: a change to a local, or a possible exit.
    Pure {
        tokens: TokenStream,
        value: Value,
    },
    /// An item declared inside a body.
    Item(TokenStream),
    Access(Access),
    Whole {
        field: Ident,
    },
    /// Something that a map cannot reproduce, such as an emitted message, a log line or an unknown call.
    Effect,
    /// The handler may have returned before this point, depending on state.
    Maybe,
    /// A computation that depends on state was left out here.
    Gap,
    Condition {
        condition: TokenStream,
        value: Value,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    /// `if pure || state { then } else { otherwise }`.
    OrElse {
        /// Whether the handler is certain to take the first branch.
        flag: Ident,
        /// Whether, in that case, the handler has certainly exited the code surrounding the branches.
        left: Ident,
        /// The jump or exit that leaves the code around the branches.
        leave: TokenStream,
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
    /// A match whose guards depend on state: the map runs every arm whose pattern fits.
    Arms {
        scrutinee: TokenStream,
        value: Value,
        arms: Vec<(TokenStream, Vec<Node>)>,
    },
    For {
        label: Option<TokenStream>,
        pattern: TokenStream,
        iterator: TokenStream,
        /// The source text of the loop header: `for x in msg.items`.
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
    /// Branches between which state decides, so the map runs all of them. The number is the depth used in the label
    /// with which a branch is left ([`branch_label`](crate::emit::leave::branch_label)).
    Either(usize, Vec<Vec<Node>>),
    Helper(HelperCall),
    Exit {
        /// Whether the exit reports nothing to the sender, neither an answer nor an error.
        quiet: bool,
        /// Whether the handler is certain to leave here, so that nothing after this runs on this path.
        certain: bool,
        /// Whether the handler leaves here unless it has already left the loop around this, so that the map leaves that
        /// loop.
        ends: bool,
        tokens: TokenStream,
    },
    Jump(TokenStream),
}

/// An access to the cell named by a key.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub field: Ident,
    /// Whether the key is passed by reference.
    pub by_reference: bool,
    pub key: TokenStream,
    /// The access as a person would write it, `d[msg.a]`; parameters of a helper are placeholders.
    pub words: String,
    /// A text that two keys share only if they are provably equal.
    pub identity: String,
    pub value: Value,
    /// Whether the key differs between the iterations of a loop around it.
    pub varies: bool,
}

/// A call to one of the app's methods.
#[derive(Debug)]
pub(crate) struct HelperCall {
    pub name: Ident,
    pub map: Rc<FunctionMap>,
    pub arguments: Vec<Argument>,
    /// The method's `#[cfg]` attributes.
    pub conditions: TokenStream,
}

/// One argument of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Argument {
    pub tokens: TokenStream,
    pub words: String,
    pub identity: String,
    pub value: Value,
    /// Whether it differs between the iterations of a loop around the call.
    pub varies: bool,
}

/// The result of analyzing one of the block's functions, for one pattern of arguments that depend on state.
#[derive(Debug)]
pub(crate) struct FunctionMap {
    /// Name of the map function printed for it.
    pub map_name: Ident,
    pub name: String,
    /// Index among the functions with this name, of which `#[cfg]` selects one.
    pub version: usize,
    pub nodes: Vec<Node>,
    /// For each parameter, the variables bound by its pattern.
    pub parameters: Vec<Variables>,
    /// For each parameter, whether it depends on state.
    pub mask: Vec<bool>,
    pub errors: Vec<Error>,
    /// Keys that come from a state-dependent parameter: the parameter's index and the access in words.
    pub parameter_keys: Vec<(usize, String)>,
    /// Fields that must not be dictionaries, with the spans of their uses.
    pub plain: Vec<Ident>,
    /// Dictionaries whose shared views it reads, with the spans of their uses.
    pub shared: Vec<Ident>,
    /// Methods and functions that it calls but the block does not define.
    pub missing: Vec<Missing>,
    /// Standard library macros that it calls by a bare name.
    pub macros: Vec<Ident>,
    /// The assumptions about names that macros may rebind.
    pub assumptions: Vec<Assumption>,
    pub tail: Value,
    pub is_method: bool,
    /// For each parameter, whether its map needs it. Computed once, because many callers may share the
    /// function.
    pub needed: OnceCell<Vec<bool>>,
    /// The cells it touches, for reports. Computed once.
    pub summary: OnceCell<crate::report::Summary>,
    /// Whether it may panic. Computed once.
    pub may_panic: OnceCell<bool>,
}

/// The assumption that a name keeps its meaning across a statement that is a macro.
#[derive(Clone, Debug)]
pub(crate) struct Assumption {
    /// Index of the statement, as counted by [`macro_statements`](crate::rewrite::rebinding::macro_statements).
    pub statement: usize,
    /// The name as it is passed to the macro.
    pub name: Ident,
    /// The local that the name denotes after the statement.
    pub local: VariableId,
}

/// Checks that the nodes contain only bindings, changes and exits that depend only on the message.
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

/// Checks whether a condition on the message alone may make the map leave these nodes by a jump or an exit.
pub(crate) fn may_leave(nodes: &[Node]) -> bool {
    nodes.iter().any(|n| match n {
        Node::Jump(_) => true,
        Node::Exit { certain, ends, .. } => *certain || *ends,
        Node::Let { value, .. } | Node::Pure { value, .. } => value.exits,
        Node::Access(a) => a.value.exits,
        Node::Helper(h) => h.arguments.iter().any(|a| a.value.exits),
        Node::LetElse { value, otherwise, .. } => value.exits || may_leave(otherwise),
        Node::Condition { value, then, otherwise, .. } => {
            value.exits || may_leave(then) || may_leave(otherwise)
        }
        // the map leaves under a certain condition
        Node::OrElse { value, then, .. } => value.exits || leaves(std::slice::from_ref(then)),
        Node::Match { value, arms, .. } | Node::Arms { value, arms, .. } => {
            value.exits || arms.iter().any(|a| may_leave(&a.1))
        }
        Node::For { value, body, .. } | Node::While { value, body, .. } => value.exits || may_leave(body),
        Node::Loop { body, .. } | Node::Block { body, .. } => may_leave(body),
        _ => false,
    })
}

/// Checks whether any of the nodes is an access to a cell.
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

/// Adds to `out` everything that a verbatim copy of these nodes would use or change.
pub(crate) fn accumulate(nodes: &[Node], out: &mut Value) {
    fn add(out: &mut Value, value: &Value) {
        out.and(Value { taint: None, unordered: None, ..value.clone() })
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
            Node::Either(_, branches) => branches.iter().for_each(|b| accumulate(b, out)),
            Node::OrElse { value, state, then, otherwise, .. } => {
                add(out, value);
                accumulate(state, out);
                accumulate(std::slice::from_ref(then), out);
                accumulate(std::slice::from_ref(otherwise), out)
            }
            Node::Exit { .. } => out.exits = true,
            Node::Jump(_) => (out.exits, out.jumps) = (true, true),
            _ => {}
        }
    }
}
