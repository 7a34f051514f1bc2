//! Statements with one mistake each, for which the analysis must report exactly one error, whatever surrounds them.

/// A statement with a mistake, and the helper that it needs. `{i}` is the number of the handler.
pub(crate) struct Mistake {
    pub(crate) statement: &'static str,
    pub(crate) helper: &'static str,
}

/// Code around a mistake. `{x}` is the mistake.
pub(crate) const AROUND: &[&str] = &[
    "{x}",
    "{ {x} }",
    "if m.flag { {x} }",
    "if m.flag { self.e.put(m.b, 1); } else { {x} }",
    "if self.d.contains(&m.b) { {x} }",
    "if m.flag || self.d.contains(&m.b) { {x} }",
    "for _ in &m.items { {x} }",
    "for q in &m.items { if self.d.contains(q) { break; } {x} }",
    "match m.kind { Kind::A(q) if q > 2 => { {x} } _ => {} }",
    "match m.kind { Kind::A(q) if self.e.contains(&q) => { {x} } _ => {} }",
    "match self.d.get(&m.a).copied() { Some(2) => { {x} } _ => {} }",
    "let mut wait = 0; while wait < m.a { wait += 1; {x} }",
    "'out: { if self.e.contains(&m.a) { break 'out; } {x} }",
];

const fn alone(statement: &'static str) -> Mistake {
    Mistake { statement, helper: "" }
}

pub(crate) const MISTAKES: &[Mistake] = &[
    // a value from state is a key in several places
    alone(
        "let x = self.d.get(&m.a).copied().unwrap_or(1); self.d.put(x, 1); self.e.put(x ^ 1, 1); self.d.remove(&x);",
    ),
    alone(
        "let x = self.d.get(&m.a).copied().unwrap_or(1); let y = x; self.d.put(y, x); if self.e.contains(&x) { self.d.remove(&y); }",
    ),
    alone(
        "let Some(x) = self.d.get(&m.a).copied() else { return Ok(()) }; self.d.put(x, 1); self.e.put(x, 1);",
    ),
    alone(
        "match self.d.get(&m.a).copied() { Some(x) if x > 1 => { self.d.put(x, 1); self.e.put(x, 1); } _ => {} }",
    ),
    alone(
        "if let Some(x) = self.d.get(&m.a).copied() { let y = x.wrapping_add(1); self.d.put(y, 1); self.e.put(x, 1); }",
    ),
    alone(
        "let (x, y) = (self.d.get(&m.a).copied().unwrap_or(1), m.b); self.d.put(x, y); self.e.put(x, 1); self.e.put(y, 1);",
    ),
    alone("for x in self.d.get(&m.a).copied() { self.d.put(x, 1); self.e.put(x, 1); }"),
    // a local changes under a condition on state, or in code that the map does not run
    alone("let mut x = m.a; if self.d.contains(&m.b) { x = 5; } self.d.put(x, 1); self.e.put(x, 1);"),
    alone(
        "let mut x = m.a; if self.d.contains(&m.b) { x = 5; } else { x = 6; } self.d.put(x, 1); self.e.put(x, 1);",
    ),
    alone(
        "let mut x = 0; for q in &m.items { if self.d.contains(q) { break; } x += 1; } self.d.put(x, 1); self.e.put(x, 1);",
    ),
    alone(
        "let mut x = vec![m.a]; if let Some(q) = self.d.get(&m.a) { x.push(*q); } for k in &x { self.d.put(*k, 1); self.e.put(*k, 1); }",
    ),
    alone(
        "let mut x = m.items.iter(); self.d.put(m.a, x.next().copied().unwrap_or(0)); if let Some(k) = x.next() { self.d.put(*k, 1); self.e.put(*k, 1); }",
    ),
    alone(
        "let mut x = m.a; ctx.emit(Note({ x = x.wrapping_add(9); x })); self.d.put(x, 1); self.e.put(x, 1);",
    ),
    // a key from a source that the analysis does not know
    alone("let x = self.total; self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = hash_of(m.a); self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = m.a.hash_of(m.b).elapsed(); self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = (self.pick)(m.a); self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = COUNT.fetch_add(1, Ordering::Relaxed); self.d.put(x, 1); self.e.put(x, 1);"),
    alone(
        "let x: std::collections::HashSet<u64> = m.items.iter().copied().collect(); for k in &x { self.d.put(*k, 1); self.e.put(*k, 1); }",
    ),
    alone("let x = unsafe { m.a }; self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = ctx.now(); self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = strange!(m.a); self.d.put(x, 1); self.e.put(x, 1);"),
    alone(
        "let x = self.d.shared(); let y = x.get(&m.a).copied().unwrap_or(1); self.d.put(y, 1); self.e.put(y, 1);",
    ),
    alone("let count = m.a; let x = coumt; self.d.put(x, 1); self.e.put(x, count);"),
    // helpers
    Mistake {
        statement: "let x = self.read{i}(m.a); self.d.put(x, 1); self.e.put(x, 1);",
        helper: "fn read{i}(&mut self, x: u64) -> u64 { self.d.get(&x).copied().unwrap_or(1) }",
    },
    Mistake {
        statement: "let x = self.d.get(&m.a).copied().unwrap_or(1); self.both{i}(x); self.both{i}(x); self.e.put(x, 1);",
        helper: "fn both{i}(&mut self, x: u64) { self.d.put(x, 1); self.e.put(x, 1); }",
    },
    Mistake {
        statement: "let x = self.d.get(&m.a).copied().unwrap_or(1); self.outer{i}(x, m.b);",
        helper: "fn outer{i}(&mut self, x: u64, y: u64) { self.inner{i}(x); self.inner{i}(y); self.inner{i}(x); }\n\
                 fn inner{i}(&mut self, x: u64) { self.d.put(x, 1); self.e.put(x, 1); }",
    },
    Mistake {
        statement: "let x = self.d.get(&m.a).copied().unwrap_or(1); self.wrong{i}(m.a, m.b); self.wrong{i}(m.a, x);",
        helper: "fn wrong{i}(&mut self, x: u64, v: u64) { let y = self.d.get(&x).copied().unwrap_or(v); self.e.put(y, 1); self.d.put(y, 1); }",
    },
    Mistake {
        statement: "self.around{i}(m.a); self.around{i}(m.b);",
        helper: "fn around{i}(&mut self, x: u64) -> u64 { self.d.put(x, 1); self.around{i}(x) }",
    },
    Mistake {
        statement: "let x = Self::store{i}(m.a); self.d.put(x, 1); self.e.put(x, 1);",
        helper: "fn store{i}(&mut self, x: u64) -> u64 { self.d.put(x, 1); x }",
    },
    Mistake {
        statement: "let x = Self::store{i}(self, m.a);",
        helper: "fn store{i}(&mut self, x: u64) -> u64 { self.d.put(x, 1); x }",
    },
    Mistake {
        statement: "let x = self.plus{i}(m.a); self.d.put(x, 1); self.e.put(x, 1);",
        helper: "fn plus{i}(x: u64) -> u64 { x ^ 1 }",
    },
    alone("let x = self.gone{i}(m.a); self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = Self::gone{i}(m.a); self.d.put(x, 1); self.e.put(x, 1);"),
    // state in a place that the analysis does not support
    alone(
        "let x = m.items.iter().filter(|q| self.d.contains(q)).count() as u64; self.d.put(x, 1); self.e.put(x, 1);",
    ),
    alone(
        "m.items.iter().filter(|q| self.d.contains(q)).for_each(|q| { self.d.put(*q, 1); self.e.put(*q, 1); });",
    ),
    alone(
        "let x = |q: u64| self.d.get(&q).copied().unwrap_or(1); self.e.put(x(m.a), 1); self.e.put(x(m.b), 1);",
    ),
    alone(
        "let x = matches!(m.opt, Some(q) if self.d.contains(&q)) as u64; self.d.put(x, 1); self.e.put(x, 1);",
    ),
    alone("for (x, _) in &self.d { self.d.put(*x, 1); self.e.put(*x, 1); }"),
    alone("let x = strange!(self.d.get(&m.a)); self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let mut x = m.a; strange!(self.d, x); self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = &mut self.d; strange!(x, m.a);"),
    alone("macro_rules! put { () => { self.d.put(m.a, 1) } } put!();"),
    alone("foo(self); self.d.put(m.a, 1);"),
    alone("let x = &mut *self; x.d.put(m.a, 1); x.e.put(m.a, 1);"),
    alone("let x = Wrap { app: self }; self.d.put(m.a, 1);"),
    // syntax
    alone("let x = later(m.a).await; self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = async { m.a }; self.d.put(m.a, 1);"),
    alone("let x = try { m.a }; self.d.put(x, 1); self.e.put(x, 1);"),
    alone("#[cfg(test)] let x = 1; self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let place!(x) = m.a; self.d.put(x, 1); self.e.put(x, 1);"),
    alone("let x = format!(\"{}\", m.opt.ok_or(\"none\")?); self.d.put(x.len() as u64, 1);"),
    alone("loop { self.d.put(m.a, 1); }"),
    alone("for x in 0.. { self.d.put(x, 1); }"),
];

/// Returns handlers with each mistake in each place, and nothing else.
pub(crate) fn handlers() -> Vec<String> {
    let of = |mistake: &Mistake, around: &str| {
        let body = around.replace("{x}", mistake.statement);
        let helper = mistake.helper;
        format!("#[rcv] fn h(&mut self, m: &M<1>, ctx: &mut Ctx) -> Result {{ {body} Ok(()) }} {helper}")
            .replace("{i}", "1")
    };
    MISTAKES.iter().flat_map(|m| AROUND.iter().map(move |around| of(m, around))).collect()
}
