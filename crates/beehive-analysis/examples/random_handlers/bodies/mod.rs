//! Writes handler bodies of ordinary Rust: locals of standard types, the methods that read and change them,
//! views, patterns, closures, helpers and moves.
//!
//! The writer tracks conservatively which locals are functions of the message. A body is *derivable* if all its
//! keys are computed from such locals: a person could write its map, and the analysis should accept it. In some
//! bodies, a key also depends on state. The analysis may refuse these, but must not derive a wrong map. Some
//! bodies do not compile, because the writer knows little about borrows. They are discarded later.

mod class_forms;
pub(crate) mod classes;
mod each_form;
mod forms;
mod helpers;
pub(crate) mod report;
pub(crate) mod run;

use crate::mistakes::{AROUND, MISTAKES};
use classes::Class;
use forms::{
    ACCESSES, ALL, BINDINGS, CHANGES, CONDITIONS, DECLARED_BY_CHANGE, LEAVES, MATCHES, MOVES, Of, VALUES,
    VIEWS,
};
use helpers::with_helpers;

/// A local in scope.
#[derive(Clone, Debug)]
struct Local {
    name: String,
    of: Of,
    mutable: bool,
    /// Whether it is a function of the message.
    clean: bool,
    /// Number of conditions on state around its declaration.
    level: usize,
    /// Number of loops around its declaration.
    loops: usize,
}

/// A loop around the current point.
#[derive(Default)]
struct Loop {
    /// Whether its body changes a local of the code around it.
    changes: bool,
    /// Whether state decides where it ends.
    ends_by_state: bool,
}

/// Writes one handler after another from a seed.
pub(crate) struct Bodies {
    chance: u64,
    locals: Vec<Local>,
    /// Locals that may not be mentioned here, because they are borrowed.
    hidden: Vec<String>,
    loops: Vec<Loop>,
    /// Number of conditions on state around the current point.
    level: usize,
    /// Number of names given out.
    names: usize,
    /// Forms that the current body uses.
    used: Vec<&'static str>,
    /// Whether a person could write the map of the current body.
    derivable: bool,
    /// Whether keys may depend on state.
    bold: bool,
    class: Class,
}

/// A handler, and the forms that it consists of.
pub(crate) struct Body {
    pub(crate) text: String,
    pub(crate) class: Class,
    /// The forms of statements and values in it.
    pub(crate) forms: Vec<&'static str>,
    /// Whether a person could write its map.
    pub(crate) derivable: bool,
    /// A derivable handler with one mistake in it.
    pub(crate) mistaken: Option<String>,
}

impl Body {
    /// Returns the handler `g<n>` with this body.
    pub(crate) fn of(n: usize, body: &str) -> Body {
        Body {
            text: with_helpers(n, body),
            class: Class::Ordinary,
            forms: vec![],
            derivable: true,
            mistaken: None,
        }
    }
}

impl Bodies {
    pub(crate) fn new(seed: u64) -> Bodies {
        Bodies {
            chance: seed.wrapping_mul(2_654_435_761).wrapping_add(88_172_645_463_325_252),
            locals: vec![],
            hidden: vec![],
            loops: vec![],
            level: 0,
            names: 0,
            used: vec![],
            derivable: true,
            bold: false,
            class: Class::Ordinary,
        }
    }

    fn start(&mut self, class: Class) {
        self.locals.clear();
        self.used.clear();
        self.names = 0;
        self.derivable = true;
        self.bold = self.one_in(3);
        self.class = class;
    }

    fn finished(&mut self, n: usize, statements: Vec<String>) -> Body {
        let text = with_helpers(n, &statements.concat());
        let mistaken = self.derivable.then(|| self.mistaken(n, statements));
        let forms = std::mem::take(&mut self.used);
        Body { text, class: self.class, forms, derivable: self.derivable, mistaken }
    }

    /// Inserts a mistake into a handler.
    fn mistaken(&mut self, n: usize, mut statements: Vec<String>) -> String {
        let chance = self.chance;
        let mistake = &MISTAKES[self.below(MISTAKES.len())];
        let statement = self.one_of(AROUND).replace("{x}", mistake.statement);
        statements.insert(self.below(statements.len()), statement + " ");
        // restore the random state so that the next handlers are the same as without mistakes
        self.chance = chance;
        with_helpers(n, &statements.concat()) + &mistake.helper.replace("{i}", &n.to_string())
    }

    fn below(&mut self, n: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        ((self.chance >> 11) % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns a form for a type.
    fn form(&mut self, table: &[(Of, &'static str)], of: Of) -> &'static str {
        let fitting: Vec<&'static str> = table.iter().filter(|f| f.0 == of).map(|f| f.1).collect();
        let form = self.one_of(&fitting);
        self.used.push(form);
        form
    }

    /// Returns the locals that are in scope under their names, innermost first.
    fn visible(&self) -> Vec<usize> {
        let mut seen: Vec<&str> = vec![];
        let mut visible = vec![];
        for (i, l) in self.locals.iter().enumerate().rev() {
            if !seen.contains(&l.name.as_str()) {
                seen.push(&l.name);
                visible.push(i);
            }
        }
        visible.retain(|i| !self.hidden.contains(&self.locals[*i].name));
        visible
    }

    /// Returns a place of this type that is only read, and whether it is a function of the message.
    fn place(&mut self, of: Of, clean: bool) -> (String, bool) {
        let fitting: Vec<usize> = self
            .visible()
            .into_iter()
            .filter(|i| self.locals[*i].of == of && (self.locals[*i].clean || !clean))
            .collect();
        if fitting.is_empty() || self.one_in(4) {
            return (self.one_of(of.of_message()).to_string(), true);
        }

        // the newest locals are the most interesting ones
        let newest = self.below(fitting.len()).min(self.below(fitting.len()));
        let local = &self.locals[fitting[newest]];
        (local.name.clone(), local.clean)
    }

    /// Replaces the placeholders of places and numbers. Returns whether all of them are functions of the
    /// message.
    fn filled(&mut self, form: &str, clean: bool, depth: usize) -> (String, bool) {
        let (mut out, mut rest, mut all_clean) = (String::new(), form, true);
        while let Some(at) = rest.find('{') {
            let of = ALL.iter().find(|of| rest[at..].starts_with(of.placeholder()));
            let Some(of) = of else {
                out += &rest[..=at];
                rest = &rest[at + 1..];
                continue;
            };

            out += &rest[..at];
            rest = &rest[at + of.placeholder().len()..];
            let (text, is_clean) = match of {
                Of::Number if depth > 0 && self.one_in(3) => {
                    let (text, is_clean) = self.value(Of::Number, clean, depth - 1);
                    (format!("({text})"), is_clean)
                }
                of => self.place(*of, clean),
            };
            out += &text;
            all_clean &= is_clean;
        }
        (out + rest, all_clean)
    }

    /// Returns an expression that owns a value of this type.
    fn value(&mut self, of: Of, clean: bool, depth: usize) -> (String, bool) {
        let form = self.form(VALUES, of);
        self.filled(form, clean, depth)
    }

    fn key(&mut self) -> String {
        let clean = !self.bold || !self.one_in(3);
        let (text, is_clean) = match self.one_in(3) {
            true => self.place(Of::Number, clean),
            false => self.value(Of::Number, clean, 1),
        };
        self.derivable &= is_clean;
        format!("({text})")
    }

    fn dictionary(&mut self) -> &'static str {
        self.one_of(&["d", "e"])
    }

    fn access(&mut self) -> String {
        let form = self.one_of(ACCESSES);
        let form = form.replace("{d}", self.dictionary()).replace("{k}", &self.key());
        self.filled(&form, false, 1).0 + " "
    }

    fn declare(&mut self, of: Of, mutable: bool, clean: bool) -> String {
        // few names, so locals shadow each other
        self.names += 1;
        let name = match self.one_in(4) {
            true => format!("{}0", of.prefix()),
            false => format!("{}{}", of.prefix(), self.names),
        };
        let (level, loops) = (self.level, self.loops.len());
        self.locals.push(Local { name: name.clone(), of, mutable, clean, level, loops });
        name
    }

    fn local(&mut self) -> String {
        let of = self.one_of(ALL);
        let clean = !self.one_in(4);
        let (text, is_clean) = self.value(of, clean, 2);
        let mutable = !self.one_in(3);
        let name = self.declare(of, mutable, is_clean);
        let typed = if self.one_in(3) { format!(": {}", of.written()) } else { String::new() };
        format!("let {}{name}{typed} = {text}; ", if mutable { "mut " } else { "" })
    }

    fn read_state(&mut self) -> String {
        let (key, dictionary) = (self.key(), self.dictionary());
        if self.one_in(2) {
            let name = self.declare(Of::Maybe, false, false);
            return format!("let {name} = self.{dictionary}.get(&({key})).copied(); ");
        }
        let mutable = self.one_in(2);
        let name = self.declare(Of::Number, mutable, false);
        let mutable = if mutable { "mut " } else { "" };
        format!("let {mutable}{name} = self.{dictionary}.get(&({key})).copied().unwrap_or(1); ")
    }

    /// Checks whether a change at this point may make a local depend on state in an enclosing loop whose
    /// first statements have already been written.
    fn would_surprise(&self, local: &Local, clean: bool) -> bool {
        let outside = local.loops < self.loops.len();
        let ends = self.loops.iter().skip(local.loops).any(|l| l.ends_by_state);
        outside && (ends || local.clean && (!clean || self.level > local.level))
    }

    /// Returns a change of a mutable local, directly or through a view.
    fn change(&mut self) -> String {
        let places: Vec<usize> = self.visible().into_iter().filter(|i| self.locals[*i].mutable).collect();
        if places.is_empty() {
            return self.local();
        }

        let changed = places[self.below(places.len())];
        let (name, of) = (self.locals[changed].name.clone(), self.locals[changed].of);
        let form = self.form(CHANGES, of);
        let through_view = self.class == Class::HiddenChanges && self.one_in(2) || self.one_in(3);
        let view = through_view.then(|| self.one_of(VIEWS));
        let also: Vec<usize> =
            places.into_iter().filter(|i| *i != changed && self.locals[*i].of == of).collect();
        let both = [Some(form), view].iter().flatten().filter(|f| f.contains("{w}")).count();
        if both > also.len().min(1) {
            return self.local();
        }

        let other = (both > 0).then(|| also[self.below(also.len())]);
        let other_name = other.map(|i| self.locals[i].name.clone());
        let hidden = self.hidden.len();
        self.hidden.push(name.clone());
        self.hidden.extend(other_name.clone());

        let place = if view.is_some() { "(*r)" } else { name.as_str() };
        let form = form.replace("{v}", place);
        let clean = !self.one_in(5);
        let (mut text, mut clean) = self.filled(&form, clean, 1);
        if let Some(view) = view {
            self.used.push(view);
            let view = view.replace("{v}", &name).replace("{T}", of.written());
            let (outer, is_clean) = self.filled(&view, true, 1);
            clean &= is_clean;
            text = outer.replace("{C}", &text);
        }
        if let Some(other) = &other_name {
            text = text.replace("{w}", other);
        }
        self.hidden.truncate(hidden);

        let clean = clean && [Some(changed), other].iter().flatten().all(|i| self.locals[*i].clean);
        let touched: Vec<usize> = [Some(changed), other].into_iter().flatten().collect();
        if touched.iter().any(|i| self.would_surprise(&self.locals[*i], clean)) {
            if !self.bold {
                return String::new();
            }
            self.derivable = false;
        }

        for i in touched {
            let (level, loops) = (self.locals[i].level, self.locals[i].loops);
            self.locals[i].clean = clean && self.level <= level;
            self.loops.iter_mut().skip(loops).for_each(|l| l.changes = true);
        }
        text + " "
    }

    /// Returns a block of statements.
    fn block(&mut self, depth: usize) -> String {
        let outer = self.locals.len();
        let statements = 1 + self.below(3);
        let text: String = (0..statements).map(|_| self.statement(depth)).collect();
        self.locals.truncate(outer);
        format!("{{ {text}}} ")
    }

    /// Returns a block. If `state` is set, the block is under a condition on state.
    fn block_under(&mut self, state: bool, depth: usize) -> String {
        self.level += state as usize;
        let text = self.block(depth);
        self.level -= state as usize;
        text
    }

    fn condition(&mut self) -> (String, bool) {
        if self.one_in(3) {
            let (dictionary, key) = (self.dictionary(), self.key());
            return (format!("self.{dictionary}.contains(&({key}))"), false);
        }
        let form = self.one_of(CONDITIONS);
        let clean = !self.one_in(4);
        self.filled(form, clean, 1)
    }

    fn branch(&mut self, depth: usize) -> String {
        let (condition, clean) = self.condition();
        let then = self.block_under(!clean, depth);
        match self.one_in(2) {
            true => format!("if {condition} {then}else {}", self.block_under(!clean, depth)),
            false => format!("if {condition} {then}"),
        }
    }

    /// Returns a block for which a pattern binds a name.
    fn binding(&mut self, depth: usize) -> String {
        let (head, of) = self.one_of(BINDINGS);
        self.used.push(head);
        let clean = !self.one_in(4);
        let (head, clean) = self.filled(head, clean, 1);
        let is_loop = head.starts_with("for") || head.contains("while");
        let outer = self.locals.len();

        if is_loop {
            self.loops.push(Loop { ends_by_state: !clean, ..Loop::default() });
        }
        self.level += !clean as usize;
        let name = self.declare(of, false, clean);
        let mut body = self.block(depth);
        if is_loop && self.loops.last().is_some_and(|l| !l.changes) && self.one_in(4) {
            let (condition, _) = self.condition();
            let leave = self.one_of(&["break", "continue", "return Ok(())"]);
            body = format!("{{ {body} if {condition} {{ {leave}; }} }} ");
        }
        self.level -= !clean as usize;
        if is_loop {
            self.loops.pop();
        }

        self.locals.truncate(outer);
        format!("{} {body}", head.replace("{b}", &name))
    }

    fn matched(&mut self, depth: usize) -> String {
        let (head, arms) = self.one_of(MATCHES);
        self.used.push(head);
        let clean = !self.one_in(4);
        let (mut text, clean) = self.filled(head, clean, 1);
        text += " { ";
        for (pattern, of) in arms {
            let outer = self.locals.len();
            self.level += !clean as usize;
            let name = of.map(|of| self.declare(of, false, clean)).unwrap_or_default();
            text += &format!("{} => {}", pattern.replace("{b}", &name), self.block(depth));
            self.level -= !clean as usize;
            self.locals.truncate(outer);
        }
        if arms.iter().all(|(pattern, _)| *pattern != "_") && head.starts_with("match {l}") {
            text += "_ => {} ";
        }
        text + "} "
    }

    /// Declares a local by one of the forms of a table.
    fn declared_by(&mut self, table: &'static [(Of, &'static str)]) -> String {
        let (of, form) = self.one_of(table);
        self.used.push(form);
        let clean = !self.one_in(4);
        let (text, clean) = self.filled(form, clean, 1);
        let mutable = text.contains("let mut {v}");
        let name = self.declare(of, mutable, clean);
        text.replace("{v}", &name) + " "
    }

    /// Moves a local out of scope.
    fn moved(&mut self) -> String {
        let here = self.loops.len();
        let candidates: Vec<usize> = self
            .visible()
            .into_iter()
            .filter(|i| {
                let l = &self.locals[*i];
                l.clean && !l.of.is_copy() && l.loops == here
            })
            .collect();
        if candidates.is_empty() {
            return self.local();
        }

        let chosen = self.one_of(&candidates);
        let local = self.locals[chosen].clone();
        // after the move, the name must not refer to an outer local with the same name
        if self.locals.iter().filter(|l| l.name == local.name).count() > 1 {
            return String::new();
        }
        self.locals.retain(|l| l.name != local.name);
        let form = self.one_of(MOVES);
        self.used.push(form);
        let form = form.replace("{v}", &local.name).replace("{T}", local.of.written());
        self.filled(&form, true, 1).0 + " "
    }

    /// Returns a statement that the map leaves out, and that changes a number.
    fn left_out(&mut self) -> String {
        let numbers: Vec<usize> = self
            .visible()
            .into_iter()
            .filter(|i| self.locals[*i].mutable && self.locals[*i].of == Of::Number)
            .collect();
        if numbers.is_empty() {
            return self.local();
        }

        let changed = self.one_of(&numbers);
        if self.would_surprise(&self.locals[changed], false) {
            if !self.bold {
                return String::new();
            }
            self.derivable = false;
        }
        let local = &mut self.locals[changed];
        local.clean = false;
        let (name, loops) = (local.name.clone(), local.loops);
        self.loops.iter_mut().skip(loops).for_each(|l| l.changes = true);
        format!("ctx.emit(Note({{ {name} = {name}.wrapping_add(9); {name} }})); ")
    }

    fn statement(&mut self, depth: usize) -> String {
        let nested = if depth == 0 { 11 } else { 15 };
        match self.below(nested) {
            0 | 1 => self.local(),
            2..=4 => self.change(),
            5 | 6 => self.access(),
            7 => self.read_state(),
            8 => self.declared_by(DECLARED_BY_CHANGE),
            9 if self.one_in(3) => self.declared_by(LEAVES),
            9 if self.one_in(3) => self.left_out(),
            9 => {
                let (text, _) = self.value(Of::Text, false, 1);
                format!("tracing::trace!(\"{{}}\", {text}); ")
            }
            10 if self.level == 0 && depth == 2 => self.moved(),
            10 => self.change(),
            11 => self.branch(depth - 1),
            12 | 13 => self.binding(depth - 1),
            _ => self.matched(depth - 1),
        }
    }
}
