//! The guide's chapter about what maps understand: this test generates its tables from the analysis, and derives
//! each example in them.

use crate::{errors, handler};
use beehive_analysis::understood;

/// A form of Rust, and a handler body that has it.
type Form = (&'static str, &'static str);

const FOLLOWED: &[(&str, &[Form])] = &[
    (
        "Values",
        &[
            ("fields, methods, operators, casts", "self.d.put(m.a.rotate_left(3) % 16, 1);"),
            ("functions of standard types by path", "self.d.put(u64::from(m.port), 1);"),
            (
                "associated functions of the block",
                "self.d.put(Self::half(m.a), 1); } fn half(x: u64) -> u64 { x / 2",
            ),
            ("functions and types of the body", "fn half(x: u64) -> u64 { x / 2 } self.d.put(half(m.a), 1);"),
            ("closures", "let half = |x: u64| x / 2; self.d.put(half(m.a), 1);"),
            ("`pure!` around any other function", "self.d.put(pure!(bucket(&m.name)), 1);"),
            ("patterns", "let (a, Some([b, ..])) = (m.a, m.mac) else { return }; self.t.put((a, b), 1);"),
            (
                "`if`, `match` and blocks as values",
                "let k = match m.kind { Kind::A => m.a, _ => m.b }; self.d.put(k, 1);",
            ),
            (
                "guards with patterns",
                "match m.o { Some(k) if let Some(x) = m.v.get(k) => { self.d.put(*x, 1); } _ => {} }",
            ),
            (
                "`loop { break value }`, labeled blocks",
                "let k = 'k: { if m.x { break 'k m.a; } m.b }; self.d.put(k, 1);",
            ),
            ("`?` on the message", "let k = m.name.parse::<u64>()?; self.d.put(k, 1); Ok(())"),
            ("code that may panic", "if self.d.contains(&m.a) { self.e.put(m.v[0] - 1, 1); }"),
        ],
    ),
    (
        "Changes",
        &[
            ("assignments", "let mut k = m.a; if m.x { k += 1; } self.d.put(k, 1);"),
            (
                "changing methods",
                "let mut v = m.v.clone(); v.sort(); v.dedup(); for k in v { self.d.put(k, 1); }",
            ),
            (
                "`&mut` that is lent",
                "let (mut a, mut b) = (m.a, m.b); std::mem::swap(&mut a, &mut b); self.t.put((a, b), 1);",
            ),
            ("`&mut` that is kept", "let e = &mut [m.a, m.b]; e.sort(); self.t.put((e[0], e[1]), 1);"),
            (
                "views of locals, however they are held",
                "let mut v = m.v.clone(); if let Some(r) = Some(&mut v) { r.sort(); } for k in v { self.d.put(k, 1); }",
            ),
            (
                "closures that change captured locals",
                "let mut v = vec![]; let mut add = |k: u64| v.push(k); add(m.a); add(m.b); for k in v { self.d.put(k, 1); }",
            ),
            (
                "functions that fill a local",
                "let mut v = vec![]; Self::fill(&mut v, m.a); for k in v { self.d.put(k, 1); } } fn fill(v: &mut Vec<u64>, x: u64) { v.push(x);",
            ),
            (
                "iterators advanced by hand",
                "let mut it = m.v.iter(); let first = it.next(); for k in it { self.d.put((*k, first), 1); }",
            ),
            (
                "a macro of your own, called with fields of the message",
                "show!(m.a, m.name.len()); self.d.put(m.a, 1);",
            ),
            ("a macro of your own in a block", "let k = m.a / 2; { show!(k); } self.d.put(k, 1);"),
            ("`write!`", "let mut s = String::new(); write!(s, \"{}\", m.a).ok(); self.g.put(s, 1);"),
        ],
    ),
    (
        "Control flow",
        &[
            (
                "conditions on the message: one side",
                "if m.x { self.d.put(m.a, 1); } else { self.d.put(m.b, 1); }",
            ),
            (
                "conditions on state: both sides",
                "if self.d.contains(&m.a) { self.e.put(m.a, 1); } else { self.e.put(m.b, 1); }",
            ),
            ("mixed conditions", "if m.x && self.d.contains(&m.a) { self.e.put(m.b, 1); }"),
            ("loops over the message", "for (k, v) in &m.pairs { self.d.put(*k, *v); }"),
            ("`while`, `loop`, labels", "let mut k = m.a; while k > 9 { k /= 10; } self.d.put(k, 1);"),
            (
                "`break` and `return` on state: the map continues",
                "for k in &m.v { if self.d.contains(k) { break; } self.d.put(*k, 1); }",
            ),
            (
                "a search: what changes in it is known in it, but not after it",
                "let mut k = m.a; while k < 9 { if self.d.contains(&k) { break; } k += 1; }",
            ),
            (
                "a work list",
                "let mut todo = vec![m.a]; while let Some(k) = todo.pop() { self.d.put(k, 1); if k > 1 { todo.push(k / 2); } }",
            ),
            ("`for_each`", "m.v.iter().for_each(|k| { self.d.put(*k, 1); });"),
        ],
    ),
    (
        "The app",
        &[
            ("helpers", "self.note(m.a); } fn note(&mut self, k: u64) { self.d.put(k, 1);"),
            ("names for dictionaries", "let seen = &mut self.d; seen.put(m.a, 1);"),
            (
                "row keys that depend on state",
                "let n = self.d.get(&m.a).copied(); self.rows.at(m.b).insert(n, 1);",
            ),
            ("all of a dictionary, with `whole`", "self.d.whole().put(self.e.get(&m.a).copied(), 1);"),
            ("the origin of a message", "self.d.put(ctx.origin(), 1);"),
        ],
    ),
];

const REFUSED: &[Form] = &[
    ("a key from state", "let k = *self.d.get(&m.a).unwrap(); self.e.put(k, 1);"),
    (
        "a local whose value depends on state",
        "let mut k = m.a; if self.d.contains(&k) { k = m.b; } self.e.put(k, 1);",
    ),
    ("a key from the context", "self.d.put(ctx.now(), 1);"),
    ("a key from the configuration", "self.d.put(m.a % self.config.shards, 1);"),
    ("a key from an unknown function", "self.d.put(bucket(&m.name), 1);"),
    ("a key from a static", "self.d.put(COUNTER.fetch_add(1, Relaxed), 1);"),
    (
        "the order of a hash map",
        "let s: HashSet<u64> = m.v.iter().copied().collect(); for (i, k) in s.iter().enumerate() { self.t.put((i, *k), 1); }",
    ),
    ("all cells", "for v in &self.d { ctx.emit(v); }"),
    ("state in a closure", "m.o.map(|k| self.d.get(&k).copied());"),
    ("state in an unknown macro", "count!(self.d, m.a);"),
    ("`self` passed to other code", "process(self);"),
    ("a recursive helper", "self.walk(m.a); } fn walk(&mut self, k: u64) { self.d.put(k, 1); self.walk(k);"),
    ("a loop that only state ends", "for k in 0.. { if self.d.contains(&k) { break; } }"),
    ("`async`", "async { self.d.get(&m.a); };"),
];

/// Returns the code as one cell of a table.
fn cell(code: &str) -> String {
    format!("`{}`", code.replace('|', "\\|"))
}

fn chapter() -> String {
    let mut out = String::from(
        "# What maps understand

<!-- written by the tests of beehive-analysis: UNDERSTOOD=write cargo test -p beehive-analysis understood -->

A map is the part of a handler that computes which cells it touches. It runs before the handler and knows the message, not the
state. Therefore a key must be a function of the message, and the macro must be able to see this. The tables list the code that it
recognizes. All other code is refused with an error that suggests an alternative; see [the errors](super::errors).

",
    );

    for (section, forms) in FOLLOWED {
        out += &format!("## {section}\n\n| form | example | cells |\n|---|---|---|\n");
        for (form, body) in *forms {
            let d = handler(body);
            assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
            let cells = d.handlers[0].cells.as_str();
            assert_ne!(cells, "-", "{body}");
            out += &format!("| {form} | {} | {} |\n", cell(body), cell(cells));
        }
        out += "\n";
    }

    out += "## Refused\n\n| form | example | reason |\n|---|---|---|\n";
    for (form, body) in REFUSED {
        let found = errors(&handler(body));
        assert_eq!(found.len(), 1, "{body}\n{found:?}");
        let why = found[0].lines().find_map(|line| line.strip_prefix("note: ")).or(found[0].lines().next());
        let why = why.unwrap_or_default().replace(", read at line 1", "").replace(" at line 1", "");
        out +=
            &format!("| {form} | {} | {} |\n", cell(body), why.replace(" (line 1)", "").replace('|', "\\|"));
    }

    out += "\n## Names\n\nThe macro sees names, not types. These are the names that it knows. A method on message data that is in none of
these lists can still be used to compute a key, but if it is called on a `mut` local, Beehive assumes that it modifies that local.\n";
    for group in understood() {
        let names: Vec<String> = group.names.iter().map(|name| format!("`{name}`")).collect();
        out += &format!("\n**{}**: {}.\n", group.what, names.join(", "));
    }

    out
}

#[test]
fn the_chapter_says_what_the_analysis_does() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/guide/understood.md");
    let written = chapter();
    if std::env::var("UNDERSTOOD").is_ok_and(|v| v == "write") {
        std::fs::write(&file, &written).expect("the chapter can be written")
    }

    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == written,
        "write the chapter again: UNDERSTOOD=write cargo test -p beehive-analysis understood"
    );
}
