//! Analyzes calls: methods of values, methods of the app (*helpers*, which the analysis follows), and
//! functions.

use super::locals::scope::{Alias, Kind};
use super::locals::views::GLOBAL;
use super::{Pass, typed_parameters};
use crate::errors::missing::Missing;
use crate::faults::Fault;
use crate::known::methods::{cannot_panic, reads_by_convention, takes_option};
use crate::known::{
    Callee, call_only_reads, callee_of, is_impure_method, is_upper, only_reads, owns_its_result,
};
use crate::node::{Argument, FunctionMap, HelperCall, Node, is_pure};
use crate::syntax::{
    conditions, is_context, is_self, last_name, path_in_words, pattern_name, peel, peel_references,
    self_field, single_name,
};
use crate::unit::Unavailable;
use crate::value::{Taint, Value, VariableId, Why};
use crate::words::plain_words;
use proc_macro2::Ident;
use quote::ToTokens;
use std::rc::Rc;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprClosure, ExprMethodCall, ExprPath, ImplItemFn};

const MOVED: &str = "a dictionary cannot be moved out of its field, because it would not be put back if the handler fails\n\
    help: move its values or its rows instead, for example with `remove` or `take_if`";

impl Pass<'_, '_> {
    pub(super) fn method_call(&mut self, c: &ExprMethodCall, out: &mut Vec<Node>) -> Value {
        if let Some(value) = self.field_method(c, out) {
            return value;
        }
        if is_self(peel_references(&c.receiver)) {
            return self.helper_call(c, out);
        }
        if self.is_origin(c) {
            return Value::message();
        }

        let method = c.method.to_string();
        self.order_open = false;
        let mut value = self.unordered(&c.receiver, out);
        let of_message = value.taint.is_none();
        let of_receiver = value.unordered.take();
        let mut views = self.place_views(&c.receiver);
        // the receiver may determine how often a closure runs
        self.conditions.push(value.sources.clone());
        let arguments: Vec<Value> = self.with_views(views.clone(), |pass| {
            c.args
                .iter()
                .map(|a| match peel(a) {
                    _ if !of_message => pass.value_argument(a, value.taint.as_ref(), out),
                    Expr::Closure(closure) => {
                        pass.scopes.ordered = pass.passes_no_hashes(c);
                        pass.closure(closure, true, out)
                    }
                    _ => pass.lent(a, out),
                })
                .collect()
        });
        self.fills(c);

        self.conditions.pop();
        let mut closures = c.args.iter().zip(&arguments).filter(|(a, _)| matches!(peel(a), Expr::Closure(_)));
        let counts = closures.any(|(_, of)| !of.changes.is_empty());
        arguments.into_iter().for_each(|a| value.and(a));
        if of_message {
            let fixed = self.unit.faults.has(Fault::StaticsAreFixed);
            let impure = is_impure_method(&method) && !swaps_elements(c) && !fixed;
            let acts = impure || self.acts_on_global(c, &views);
            if self.trust == 0 && acts && !self.unit.trusted.contains(&method) {
                out.push(Node::Effect);
                value.taint.get_or_insert(Taint::new(Why::Method(method.clone()), c.method.span()));
            }

            value.panics |= !cannot_panic(&method) && !self.unit.faults.has(Fault::MethodsCannotPanic);
        }

        let filled = Value { unordered: value.unordered.clone(), ..Value::default() };
        value.unordered = of_receiver.or(value.unordered.take());
        self.order_of_result(c, &mut value, counts);
        let reads = call_only_reads(&method, c.args.len()) || self.copies_option(c, &method);
        if reads || self.unit.faults.has(Fault::MethodsOnlyRead) {
            return value;
        }

        if let Some(root) = self.root(&c.receiver).filter(|root| self.is_exclusive(*root)) {
            let arguments = c.args.iter().filter(|a| !matches!(peel(a), Expr::Closure(_) | Expr::Lit(_)));
            let stored = arguments.flat_map(|a| self.views(a)).collect();
            self.stores(root, stored);
        }

        let result = std::mem::replace(&mut value.unordered, filled.unordered);
        // the receiver may change, and so may the locals into which the arguments are views
        c.args.iter().for_each(|a| views.extend(self.handed_views(a)));
        for id in views.into_iter().filter(|id| self.may_change(*id, &method)).collect::<Vec<_>>() {
            self.changed(id, &mut value, c.method.span());
        }

        value.unordered = result;
        value
    }

    /// Recognizes a method that takes an `Option` by value, called on a local. If the local is used again later,
    /// it is `Copy`, and the method got a copy.
    fn copies_option(&self, c: &ExprMethodCall, method: &str) -> bool {
        let Expr::Path(p) = peel(&c.receiver) else { return false };
        let local = p.path.get_ident().and_then(|i| self.find(i));
        let is_option = |id: VariableId| self.variable(id).is_option && self.variable_is_plain(id);
        takes_option(method) && local.is_some_and(is_option)
    }

    /// Recognizes `ctx.origin()`: the envelope is part of the message, not of the state.
    fn is_origin(&self, c: &ExprMethodCall) -> bool {
        c.method == "origin"
            && c.args.is_empty()
            && matches!(peel(&c.receiver), Expr::Path(p)
                if p.path.get_ident().and_then(|i| self.find(i)).is_some_and(|id| matches!(self.variable(id).kind, Kind::Context)))
    }

    fn helper_call(&mut self, c: &ExprMethodCall, out: &mut Vec<Node>) -> Value {
        let name = c.method.to_string();
        let item = match self.unit.function(&name) {
            Some(item) if item.sig.receiver().is_some() => item,
            Some(_) => {
                self.error(&c.method, format!("`{name}` takes no `self`; call it as `Self::{name}(..)`"));
                return Value::tainted(Why::Refused, c.method.span());
            }
            None => {
                self.missing.push(Missing::method(c));
                self.error(
                    &c.method,
                    format!(
                        "`{name}` is not a method of this `#[handlers]` impl block, so Beehive cannot see which cells it touches\n\
                         help: move it into this block"
                    ),
                );

                return Value::tainted(Why::Refused, c.method.span());
            }
        };

        let types: Vec<_> = typed_parameters(item).map(|t| &*t.ty).collect();
        let (mut mask, mut arguments, mut taints) = (vec![], vec![], vec![]);
        for (i, a) in c.args.iter().enumerate() {
            if types.get(i).is_some_and(|t| is_context(t)) {
                self.expression(a, &mut vec![]);
                mask.push(false);
                arguments.push(Argument::default());
                taints.push(None);
                continue;
            }

            let mut nodes = vec![];
            let mut value = self.expression(a, &mut nodes);
            self.moves(a, &mut value);
            let clean = Self::is_clean(&value, &nodes);

            // the map evaluates an argument only if the helper's keys need it
            self.dropped(&value, &a);
            taints.push((!clean).then(|| value.taint_or_together(&a)));
            mask.push(!clean);

            if clean {
                let varies = self.varies(&value);
                let Alias { words, identity } = self.in_words(a);
                arguments.push(Argument { tokens: self.printed_owned(a), words, identity, value, varies });
            } else {
                out.extend(nodes);
                arguments.push(Argument { words: plain_words(a.to_token_stream()), ..Argument::default() });
            }
        }

        let maps = match self.unit.helper(&name, &mask) {
            Ok(maps) => maps,
            Err(Unavailable::Missing) => return Value::tainted(Why::Helper(name), c.method.span()),
            Err(Unavailable::Recursive) => {
                self.error(
                    &c.method,
                    format!(
                        "`{name}` is recursive, so its cells have no finite description\nhelp: use a loop"
                    ),
                );

                return Value::tainted(Why::Refused, c.method.span());
            }
        };

        for (i, access) in maps.iter().flat_map(|map| &map.parameter_keys) {
            let (Some(a), Some(Some(taint))) = (c.args.get(*i), taints.get(*i)) else { continue };

            match taint.why {
                Why::Parameter(outer) => self.parameter_keys.push((outer, access.clone())),
                _ => self.refuse_argument(&name, access, a, taint.clone()),
            }
        }

        // the helper's map might not run the changes made by the helper to the caller's local
        for (i, a) in c.args.iter().enumerate() {
            for id in self.handed_views(a) {
                let borrows = matches!(peel(a), Expr::Reference(_));
                if self.is_exclusive(id) || borrows && self.handles(&name, i) {
                    let why = Why::MutableBorrow(self.variable(id).name.clone());
                    self.poison(id, Taint::new(why, a.span()));
                }
            }
        }

        for map in maps {
            let version = self.unit.versions(&name).get(map.version);
            let conditions = version.map(|item| conditions(item)).unwrap_or_default();
            let arguments = arguments.clone();
            out.push(Node::Helper(HelperCall { name: c.method.clone(), map, arguments, conditions }));
        }
        Value::tainted(Why::Helper(name), c.method.span())
    }

    pub(super) fn call(&mut self, c: &ExprCall, out: &mut Vec<Node>) -> Value {
        if let Expr::Closure(closure) = peel(&c.func) {
            return self.closure_call(closure, c, out);
        }
        let Expr::Path(p) = peel(&c.func) else {
            let mut value = self.expression(&c.func, out);
            let arguments = self.all(c.args.iter(), out);
            value.and(arguments);
            // a callable in a local is a closure of this function or part of the message: `(holder.run)()`
            let held = self
                .place(&c.func)
                .is_some_and(|id| self.read(id).is_some() && !self.reaches(id, |view, _| view == GLOBAL));
            if !held {
                value.taint.get_or_insert(Taint::new(Why::FunctionValue, c.func.span()));
            }
            if value.taint.is_some() {
                out.push(Node::Effect);
            }
            value.panics = true;

            let views = match self.unit.faults.has(Fault::ClosuresChangeNothing) {
                true => Default::default(),
                false => self.place_views(&c.func),
            };
            for id in views {
                self.changed(id, &mut value, c.func.span());
            }
            self.change_views_of_arguments(c, &mut value);
            return value;
        };

        self.refuse_moved_field(p, c);
        // like an argument of a method, a closure runs in the map exactly as in the handler
        let makes_items = matches!(last_name(&p.path).as_str(), "from_fn" | "repeat_with" | "successors")
            && matches!(callee_of(p, &[]), Callee::Pure);
        let mut value = Value::default();
        let open = std::mem::take(&mut self.order_open);
        for a in &c.args {
            let next = match is_upper(&last_name(&p.path)) {
                // a constructor stores its arguments
                true => {
                    self.order_open = open;
                    self.expression(a, out)
                }
                false => {
                    let mut next = match peel(a) {
                        Expr::Closure(closure) if makes_items => self.closure(closure, true, out),
                        _ => self.lent(a, out),
                    };
                    if !open {
                        Self::decide(&mut next);
                    }
                    next
                }
            };
            value.and(next);
        }

        let last = last_name(&p.path);
        let own = p.path.segments.len() > 1 && p.path.segments.first().is_some_and(|s| s.ident == "Self");
        value.panics |= !is_upper(&last) && (own || !cannot_panic(&last));
        let local = single_name(&p.path).and_then(|i| self.find(i));
        if let Some(id) = local {
            let mut value = self.local_call(id, c, value, out);
            self.change_views_of_arguments(c, &mut value);
            return value;
        }

        let known = callee_of(p, &self.unit.trusted);
        if value.taint.is_some() {
            if !matches!(known, Callee::Pure) {
                out.push(Node::Effect);
            }
            // the function may change the locals into which its arguments are views
            self.change_views_of_arguments(c, &mut value);
            return value;
        }

        let pure = match known {
            _ if self.trust > 0 => true,
            Callee::Pure => true,
            Callee::Unknown => false,
            Callee::Own(name) => match self.unit.function(&name) {
                None => {
                    let last = p.path.segments.last();
                    self.missing.extend(last.and_then(|s| Missing::function(&s.ident, c)));
                    false
                }
                Some(item) if item.sig.receiver().is_some() => {
                    self.error(
                        &c.func,
                        format!(
                            "call `{name}` as a method, `self.{name}(..)`, so that Beehive can follow it"
                        ),
                    );

                    value.taint = Some(Taint::new(Why::Refused, c.func.span()));
                    false
                }
                Some(item) => {
                    if let syn::ReturnType::Type(_, ty) = &item.sig.output
                        && self.is_unordered_type(ty, false)
                    {
                        value.unordered = Some(Taint::new(Why::Unordered, c.func.span()));
                    }
                    self.own_function_is_pure(&name)
                }
            },
        };

        let hashed = p.path.segments.iter().any(|s| s.ident == "HashMap" || s.ident == "HashSet");
        let makes = matches!(last.as_str(), "new" | "with_capacity" | "default" | "from" | "from_iter");
        let pure = pure || hashed && makes && p.qself.is_none();
        if hashed && makes && !self.unit.faults.has(Fault::HashOrderIsFixed) {
            value.unordered.get_or_insert(Taint::new(Why::Unordered, c.func.span()));
        }

        let handed = |a: &Expr| matches!(peel(a), Expr::Reference(_)) && self.reaches_global(a);
        let acts = !is_upper(&last_name(&p.path)) && c.args.iter().any(handed);
        if !pure || acts && self.trust == 0 {
            out.push(Node::Effect);
            let why = match hashed {
                true => Why::Unordered,
                false => Why::Call(path_in_words(&p.path)),
            };
            value.taint.get_or_insert(Taint::new(why, c.func.span()));
        }

        self.change_views_of_arguments(c, &mut value);
        value
    }

    /// Refuses to move a dictionary out of its field, as `std::mem::swap` does: a rollback undoes the changes in a
    /// dictionary, but not the move.
    fn refuse_moved_field(&mut self, function: &ExprPath, c: &ExprCall) {
        let moves = matches!(last_name(&function.path).as_str(), "swap" | "replace" | "take");
        if !moves || function.path.segments.first().is_some_and(|first| first.ident == "Self") {
            return;
        }

        if let Some(field) = c.args.iter().find(|a| self.named_field(a).is_some()) {
            self.error(field, MOVED)
        }
    }

    /// Marks the locals into which the arguments are views as changed, because the function may write through
    /// the views.
    fn change_views_of_arguments(&mut self, c: &ExprCall, value: &mut Value) {
        // a constructor only stores its arguments
        if let Expr::Path(p) = peel(&c.func)
            && is_upper(&last_name(&p.path))
        {
            return self.changed_by_destructor(&p.path, c.args.iter(), value);
        }

        for (index, a) in c.args.iter().enumerate() {
            for id in self.handed_views(a) {
                if self.own_function_may_change(c, index, id) {
                    self.changed(id, value, c.func.span());
                    let others = c.args.iter().enumerate().filter(|(other, _)| *other != index);
                    let held = others.flat_map(|(_, a)| self.views(a));
                    let held = held.filter(|v| *v > GLOBAL && !self.variable_is_plain(*v)).collect();
                    // `mem::replace(&mut slot, Some(view))`
                    self.stores(id, held);
                }
            }
        }
    }

    /// Checks whether a call may change a local through an argument that is a view into it. For one of this
    /// block's functions, the analysis looks into the body to check whether it only reads a shared reference.
    fn own_function_may_change(&self, c: &ExprCall, index: usize, id: VariableId) -> bool {
        let Expr::Path(p) = peel(&c.func) else { return true };
        let own = p.path.segments.len() == 2 && p.path.segments.first().is_some_and(|s| s.ident == "Self");
        !own || self.is_exclusive(id) || self.handles(&last_name(&p.path), index)
    }

    /// Checks whether one of the block's functions may do more with a parameter than read it.
    fn handles(&self, name: &str, index: usize) -> bool {
        let versions = self.unit.versions(name);
        versions.is_empty() || versions.iter().any(|item| handles(item, index))
    }

    /// Analyzes a closure called where it is written: `(|x| x + 1)(m.a)`.
    fn closure_call(&mut self, closure: &ExprClosure, c: &ExprCall, out: &mut Vec<Node>) -> Value {
        let mut value = Value::default();
        for a in &c.args {
            let mut argument = self.lent(a, out);
            Self::decide(&mut argument);
            value.and(argument);
        }

        let views = c.args.iter().flat_map(|a| self.views(a)).collect();
        let called = self.with_views(views, |this| this.closure(closure, true, out));
        value.and(called);
        self.change_views_of_arguments(c, &mut value);
        value
    }

    /// Analyzes a call to a closure held by a local. The result depends on the arguments and on the captured
    /// values.
    fn local_call(&mut self, id: VariableId, c: &ExprCall, mut value: Value, out: &mut Vec<Node>) -> Value {
        let Some(closure) = self.read(id) else {
            return Value::tainted(Why::FunctionValue, c.func.span());
        };

        let clean = closure.taint.is_none() && value.taint.is_none();
        value.and(closure);
        // the closure may change the values it has captured
        if !self.variable_is_plain(id) && !self.unit.faults.has(Fault::ClosuresChangeNothing) {
            self.changed(id, &mut value, c.func.span());
        }
        if !clean {
            out.push(Node::Effect);
        }
        value
    }

    /// Checks whether one of the block's associated functions is a pure function of its arguments, by
    /// analyzing its body.
    pub(super) fn own_function_is_pure(&self, name: &str) -> bool {
        let pure =
            |map: &Rc<FunctionMap>| map.tail.taint.is_none() && is_pure(&map.nodes) && map.errors.is_empty();
        self.own_function(name).is_some_and(|maps| maps.iter().all(pure))
    }

    fn own_function(&self, name: &str) -> Option<Vec<Rc<FunctionMap>>> {
        let item = self.unit.function(name).filter(|f| f.sig.receiver().is_none())?;
        self.unit.helper(name, &vec![false; item.sig.inputs.len()]).ok()
    }
}

/// Recognizes `slice.swap(i, j)`. `swap` of an atomic takes an `Ordering`, which is capitalized.
fn swaps_elements(c: &ExprMethodCall) -> bool {
    let is_name = |e: &Expr| matches!(peel(e), Expr::Path(p) if is_upper(&last_name(&p.path)));
    c.method == "swap" && c.args.len() == 2 && !c.args.last().is_some_and(is_name)
}

/// Checks whether a function may do more with a parameter than read it: call a method on it that is not known to only
/// read, or pass it to other code.
fn handles(item: &ImplItemFn, index: usize) -> bool {
    struct Uses<'n> {
        name: &'n Ident,
        found: bool,
    }

    impl Uses<'_> {
        fn is_name(&self, e: &Expr) -> bool {
            matches!(peel_references(e), Expr::Path(p) if p.path.is_ident(self.name))
        }
    }

    impl<'ast> Visit<'ast> for Uses<'_> {
        fn visit_expr_method_call(&mut self, c: &'ast ExprMethodCall) {
            let method = c.method.to_string();
            let known = only_reads(&method) || reads_by_convention(&method) || owns_its_result(&method);
            self.found |= self.is_name(&c.receiver) && !known;
            let keyed = self_field(&c.receiver).is_some();
            self.found |= !keyed && !known && c.args.iter().any(|a| self.is_name(a));
            visit::visit_expr_method_call(self, c)
        }

        fn visit_expr_call(&mut self, c: &'ast ExprCall) {
            self.found |= c.args.iter().any(|a| self.is_name(a));
            visit::visit_expr_call(self, c)
        }

        fn visit_local(&mut self, l: &'ast syn::Local) {
            self.found |= l.init.as_ref().is_some_and(|i| self.is_name(&i.expr));
            visit::visit_local(self, l)
        }
    }

    let Some(parameter) = typed_parameters(item).nth(index) else { return true };
    let Some(name) = pattern_name(&parameter.pat) else { return true };
    let mut uses = Uses { name, found: false };
    uses.visit_block(&item.block);
    uses.found
}
