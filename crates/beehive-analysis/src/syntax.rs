//! Properties of syntax that do not depend on the variables in scope.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, ImplItemFn, Member, Pat, Type};

/// Strips parentheses.
pub(crate) fn peel(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(p) => peel(&p.expr),
        Expr::Group(g) => peel(&g.expr),
        _ => e,
    }
}

/// Strips parentheses, `&`, `&mut` and `*`.
pub(crate) fn peel_references(e: &Expr) -> &Expr {
    match peel(e) {
        Expr::Reference(r) => peel_references(&r.expr),
        Expr::Unary(u) if matches!(u.op, syn::UnOp::Deref(_)) => peel_references(&u.expr),
        e => e,
    }
}

/// Strips operations whose result is an equal key: references, dereferences, `clone` and `to_owned`.
pub(crate) fn peel_copies(e: &Expr) -> &Expr {
    match peel_references(e) {
        Expr::MethodCall(c)
            if c.args.is_empty() && matches!(c.method.to_string().as_str(), "clone" | "to_owned") =>
        {
            peel_copies(&c.receiver)
        }
        e => e,
    }
}

pub(crate) fn is_self(e: &Expr) -> bool {
    matches!(peel(e), Expr::Path(p) if p.path.is_ident("self"))
}

/// Returns `field` for the expression `self.field`.
pub(crate) fn self_field(e: &Expr) -> Option<&Ident> {
    match peel_references(e) {
        Expr::Field(f) if is_self(peel_references(&f.base)) => match &f.member {
            Member::Named(i) => Some(i),
            _ => None,
        },
        _ => None,
    }
}

/// Checks for the value of `return;`, `return Ok(())` and `return None`, which give the sender no answer.
pub(crate) fn is_quiet(e: Option<&Expr>) -> bool {
    match e.map(peel) {
        None => true,
        Some(Expr::Tuple(t)) => t.elems.is_empty(),
        Some(Expr::Path(p)) => p.path.is_ident("None"),
        Some(Expr::Call(c)) => is_call_of(c, "Ok") && c.args.len() == 1 && is_quiet(c.args.first()),
        _ => false,
    }
}

/// Checks for `Err(..)`.
pub(crate) fn is_error(e: &Expr) -> bool {
    matches!(peel(e), Expr::Call(c) if is_call_of(c, "Err"))
}

fn is_call_of(c: &syn::ExprCall, name: &str) -> bool {
    matches!(&*c.func, Expr::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == name))
}

/// Returns the `#[cfg]` attributes of a function.
pub(crate) fn conditions(f: &ImplItemFn) -> TokenStream {
    f.attrs.iter().filter(|a| a.path().is_ident("cfg")).map(ToTokens::to_token_stream).collect()
}

/// Returns the name of a path that consists of one name, with or without type arguments: `half`, `half::<u64>`.
pub(crate) fn single_name(p: &syn::Path) -> Option<&Ident> {
    match (p.leading_colon, p.segments.len()) {
        (None, 1) => p.segments.first().map(|s| &s.ident),
        _ => None,
    }
}

/// Returns a path in words, without type arguments.
pub(crate) fn path_in_words(p: &syn::Path) -> String {
    let names: Vec<String> = p.segments.iter().map(|s| s.ident.to_string()).collect();
    names.join("::")
}

/// Returns the last name of a path.
pub(crate) fn last_name(p: &syn::Path) -> String {
    p.segments.last().map(|s| s.ident.to_string()).unwrap_or_default()
}

/// Returns the span of the first occurrence of an identifier in tokens, unless it follows `::`.
pub(crate) fn find_name(tokens: TokenStream, name: &str) -> Option<Span> {
    let mut after_colon = false;
    for t in tokens {
        match t {
            TokenTree::Ident(i) if i == name && !after_colon => return Some(i.span()),
            TokenTree::Group(g) => {
                if let Some(s) = find_name(g.stream(), name) {
                    return Some(s);
                }
                after_colon = false;
            }
            TokenTree::Punct(p) => after_colon = p.as_char() == ':',
            _ => after_colon = false,
        }
    }

    None
}

/// Collects all identifiers in tokens, including those captured by format strings.
pub(crate) fn names(tokens: TokenStream, out: &mut Vec<String>) {
    for t in tokens {
        match t {
            TokenTree::Ident(i) => out.push(i.to_string()),
            TokenTree::Group(g) => names(g.stream(), out),
            TokenTree::Literal(l) => {
                let l = l.to_string();
                // a string, raw or not; parsing every number would be slow
                if l.starts_with(['"', 'r'])
                    && let Ok(s) = syn::parse_str::<syn::LitStr>(&l)
                {
                    captures(&s.value(), out)
                }
            }
            TokenTree::Punct(_) => {}
        }
    }
}

/// Collects the identifiers captured by a format string: `{name}`, `{name:..}`, `{:width$}`,
/// `{:.precision$}`.
pub(crate) fn captures(format: &str, out: &mut Vec<String>) {
    let mut rest = format;
    while let Some(at) = rest.find('{') {
        rest = rest.get(at + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix('{') {
            rest = after;
            continue;
        }

        let Some(end) = rest.find('}') else { return };

        let (inside, after) = rest.split_at(end);
        rest = after;
        let (name, form) = inside.split_once(':').unwrap_or((inside, ""));
        if is_name(name.trim()) {
            out.push(name.trim().to_string());
        }

        for part in form.split('$').take(form.matches('$').count()) {
            let start = part.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
            let digits = part.get(start..).unwrap_or_default();
            // a fill character may stand right before the name: `{:x>w$}` ends in `w`, `{:w$}` is all name
            if is_name(digits) {
                out.push(digits.to_string());
            }
        }
    }
}

fn is_name(s: &str) -> bool {
    s.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && s.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the operands of a chain of `&&`. They keep their parentheses, which may matter where an operand is
/// printed.
pub(crate) fn conjuncts(e: &Expr) -> Vec<&Expr> {
    match peel(e) {
        Expr::Binary(b) if matches!(b.op, syn::BinOp::And(_)) => {
            let mut v = conjuncts(&b.left);
            v.extend(conjuncts(&b.right));
            v
        }
        _ => vec![e],
    }
}

/// Returns the operands of a chain of `||`.
pub(crate) fn disjuncts(e: &Expr) -> Vec<&Expr> {
    match peel(e) {
        Expr::Binary(b) if matches!(b.op, syn::BinOp::Or(_)) => {
            let mut v = disjuncts(&b.left);
            v.extend(disjuncts(&b.right));
            v
        }
        _ => vec![e],
    }
}

/// Checks whether a type is called `Ctx`, possibly behind references.
pub(crate) fn is_context(t: &Type) -> bool {
    match t {
        Type::Reference(r) => is_context(&r.elem),
        Type::Path(p) => p.path.segments.last().is_some_and(|s| s.ident == "Ctx"),
        _ => false,
    }
}

/// Checks whether an expression contains a call and therefore has an effect when used as a statement.
pub(crate) fn discards(e: &Expr) -> bool {
    match peel(e) {
        // building a value has no effect, except that an error in tail position is the function's result
        Expr::Call(c) => match peel(&c.func) {
            Expr::Path(p) => {
                let last = last_name(&p.path);
                last == "Err" || !last.starts_with(char::is_uppercase)
            }
            _ => true,
        },
        Expr::MethodCall(_) | Expr::Macro(_) => true,
        Expr::Try(t) => discards(&t.expr),
        _ => false,
    }
}

/// Checks whether iterating over an expression never ends by itself. With `perhaps`, an iterator whose own code decides
/// where it ends counts as endless.
pub(crate) fn is_endless(e: &Expr, perhaps: bool) -> bool {
    match peel(e) {
        Expr::Range(r) => r.end.is_none(),
        Expr::MethodCall(c) => match c.method.to_string().as_str() {
            "take" => false,
            "take_while" | "map_while" | "scan" => perhaps && is_endless(&c.receiver, perhaps),
            "zip" => is_endless(&c.receiver, perhaps) && c.args.iter().all(|a| is_endless(a, perhaps)),
            "cycle" => true,
            "chain" | "flat_map" => {
                is_endless(&c.receiver, perhaps) || c.args.iter().any(|a| is_endless(a, perhaps))
            }
            _ => is_endless(&c.receiver, perhaps),
        },
        Expr::Call(c) => match peel(&c.func) {
            Expr::Path(p) => match last_name(&p.path).as_str() {
                "repeat" | "repeat_with" => true,
                "successors" | "from_fn" => perhaps,
                _ => false,
            },
            _ => false,
        },
        Expr::Reference(r) => is_endless(&r.expr, perhaps),
        _ => false,
    }
}

/// Checks whether an expression leaves neither the function nor a loop or a block around it. It must not contain a
/// macro, because a macro may leave them.
pub(crate) fn stays(e: &Expr) -> bool {
    #[derive(Default)]
    struct Jumps {
        labels: Vec<String>,
        loops: usize,
        leaves: bool,
    }

    impl Jumps {
        fn jump(&mut self, label: Option<&syn::Lifetime>) {
            self.leaves |= match label {
                Some(label) => !self.labels.contains(&label.ident.to_string()),
                None => self.loops == 0,
            }
        }

        fn inside(&mut self, label: Option<&syn::Label>, is_loop: bool, visit: impl FnOnce(&mut Self)) {
            let depth = self.labels.len();
            self.labels.extend(label.map(|l| l.name.ident.to_string()));
            self.loops += usize::from(is_loop);
            visit(self);
            self.loops -= usize::from(is_loop);
            self.labels.truncate(depth);
        }
    }

    impl<'ast> Visit<'ast> for Jumps {
        fn visit_expr(&mut self, e: &'ast Expr) {
            match e {
                Expr::Try(_) | Expr::Return(_) | Expr::Macro(_) => self.leaves = true,
                Expr::Break(b) => {
                    self.jump(b.label.as_ref());
                    visit::visit_expr(self, e)
                }
                Expr::Continue(c) => self.jump(c.label.as_ref()),
                Expr::Loop(l) => self.inside(l.label.as_ref(), true, |this| visit::visit_expr(this, e)),
                Expr::While(l) => self.inside(l.label.as_ref(), true, |this| visit::visit_expr(this, e)),
                Expr::ForLoop(l) => self.inside(l.label.as_ref(), true, |this| visit::visit_expr(this, e)),
                Expr::Block(b) => self.inside(b.label.as_ref(), false, |this| visit::visit_expr(this, e)),
                _ => visit::visit_expr(self, e),
            }
        }
        fn visit_stmt_macro(&mut self, _: &'ast syn::StmtMacro) {
            self.leaves = true;
        }
        fn visit_item(&mut self, _: &'ast syn::Item) {}
    }

    let mut jumps = Jumps::default();
    jumps.visit_expr(e);
    !jumps.leaves
}

/// Returns the name that a pattern binds if the pattern consists of just that name.
pub(crate) fn pattern_name(p: &Pat) -> Option<&Ident> {
    match p {
        Pat::Ident(i) if i.by_ref.is_none() && i.subpat.is_none() => Some(&i.ident),
        Pat::Type(t) => pattern_name(&t.pat),
        Pat::Paren(t) => pattern_name(&t.pat),
        _ => None,
    }
}

/// Returns the names bound by an expression itself: parameters of its closures, and names in its patterns.
pub(crate) fn bound_inside(e: &Expr) -> Vec<String> {
    let mut bound = Bound(vec![]);
    bound.visit_expr(e);
    bound.0
}

/// Returns the names bound by a pattern.
pub(crate) fn bound_by(p: &Pat) -> Vec<String> {
    let mut bound = Bound(vec![]);
    bound.visit_pat(p);
    bound.0
}

struct Bound(Vec<String>);

impl<'ast> Visit<'ast> for Bound {
    fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
        self.0.push(p.ident.to_string());
        visit::visit_pat_ident(self, p)
    }
}
