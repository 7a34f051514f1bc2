//! Writes random handler bodies with shadowing, loops, labels, `?`, iterators, views, helpers and conditions
//! on state.
//!
//! Most bodies make no sense but compile. The analysis refuses some of them; for the others its map must
//! cover every access.

/// Generates one handler after another from a seed.
pub(crate) struct Writer {
    chance: u64,
    vars: Vec<(String, bool)>,
    its: Vec<String>,
    vecs: Vec<String>,
    n: usize,
    loops: Vec<String>,
    helper: bool,
}

impl Writer {
    pub(crate) fn new(seed: u64) -> Writer {
        let chance = seed.wrapping_mul(2_654_435_761).wrapping_add(88_172_645_463_325_252);
        Writer { chance, vars: vec![], its: vec![], vecs: vec![], n: 0, loops: vec![], helper: false }
    }

    /// Returns a handler `g<n>` of the message `M<n>`, with a helper `h<n>` if the body calls one.
    pub(crate) fn handler(&mut self, n: usize) -> String {
        self.forget();
        self.n = 0;
        self.helper = true;
        self.vars = vec![("x".into(), false), ("y".into(), false)];
        let helper: String = (0..1 + self.below(3)).map(|_| self.statement(1)).collect();
        self.forget();

        self.helper = false;
        let body: String = (0..2 + self.below(6)).map(|_| self.statement(3)).collect();
        let body = body.replace("self.h1(", &format!("self.h{n}("));
        let helper = match body.contains(&format!("self.h{n}(")) {
            true => format!("fn h{n}(&mut self, x: u64, y: u64, m: &M<{n}>, ctx: &mut Ctx) {{ {helper} }}\n"),
            false => String::new(),
        };

        format!(
            "#[rcv] fn g{n}(&mut self, m: &M<{n}>, ctx: &mut Ctx) -> Result {{ {body} Ok(()) }}\n{helper}"
        )
    }

    fn forget(&mut self) {
        self.vars.clear();
        self.its.clear();
        self.vecs.clear();
    }

    fn below(&mut self, n: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 11) % n
    }

    /// Returns one of four names, so names repeat and shadow each other.
    fn name(&mut self, p: &str) -> String {
        let k = self.below(4);
        format!("{p}{k}")
    }

    fn var(&mut self) -> Option<String> {
        if self.vars.is_empty() {
            return None;
        }
        let i = self.below(self.vars.len() as u64) as usize;
        Some(self.vars[i].0.clone())
    }

    fn mutable(&mut self) -> Option<String> {
        let (mut seen, mut ok) = (vec![], vec![]);
        for (v, m) in self.vars.iter().rev() {
            if seen.contains(v) {
                continue;
            }

            seen.push(v.clone());
            if *m {
                ok.push(v.clone());
            }
        }

        if ok.is_empty() {
            return None;
        }

        let i = self.below(ok.len() as u64) as usize;
        Some(ok[i].clone())
    }

    fn dict(&mut self) -> &'static str {
        ["d", "e"][self.below(2) as usize]
    }

    fn sometimes(&mut self) -> bool {
        self.below(3) == 0
    }

    /// Returns an expression of depth `d` at most. `st` allows it to read state.
    fn value(&mut self, d: u32, st: bool) -> String {
        let n = if d == 0 { 6 } else { 16 };
        match self.below(n) {
            0 => format!("{}u64", self.below(4)),
            1 => "m.a".into(),
            2 => "m.b".into(),
            3..=5 if d == 0 => self.var().unwrap_or("m.a".into()),
            8 | 9 if !self.its.is_empty() && self.below(2) == 0 => {
                let i = self.below(self.its.len() as u64) as usize;
                format!("{}.next().copied().unwrap_or(1)", self.its[i])
            }
            3 | 4 => self.var().unwrap_or("m.b".into()),
            5 => format!("({}).wrapping_add({})", self.value(d - 1, st), self.value(d - 1, st)),
            6 => format!("({} % 7)", self.value(d - 1, st)),
            7 => "(m.items.len() as u64)".into(),
            8 if st => {
                let k = self.value(0, false);
                format!("self.{}.get(&({k})).copied().unwrap_or(1)", self.dict())
            }
            9 if !self.its.is_empty() => {
                let i = self.below(self.its.len() as u64) as usize;
                format!("{}.next().copied().unwrap_or(1)", self.its[i])
            }
            10 => format!("m.items.iter().copied().filter(|q| *q > {}).sum::<u64>()", self.value(0, false)),
            11 => {
                let (c, a, b) = (self.condition(d - 1, st), self.value(d - 1, st), self.value(d - 1, st));
                format!("(if {c} {{ {a} }} else {{ {b} }})")
            }
            12 => {
                let (a, b) = (self.value(d - 1, st), self.value(0, false));
                format!("(match m.kind {{ Kind::A(q) => q, Kind::B {{ x: q }} if q > 3 => {b}, _ => {a} }})")
            }
            13 => {
                let k = self.vars.len();
                let v = self.name("v");
                let x = self.value(d - 1, st);
                self.vars.push((v.clone(), false));
                let y = self.value(d - 1, st);
                self.vars.truncate(k);

                format!("({{ let {v} = {x}; {y} }})")
            }
            14 => format!(
                "m.opt.map(|q| q.wrapping_add({})).unwrap_or({})",
                self.value(0, false),
                self.value(0, false)
            ),
            _ => format!("(m.a ^ {})", self.value(d - 1, st)),
        }
    }

    fn condition(&mut self, d: u32, st: bool) -> String {
        if st && self.below(2) == 0 {
            return format!("self.{}.contains(&({}))", self.dict(), self.value(0, false));
        }

        match self.below(if d == 0 { 3 } else { 8 }) {
            0 => format!("({} > {})", self.value(0, false), self.value(0, false)),
            1 => "m.flag".into(),
            2 => "m.opt.is_some()".into(),
            3 => format!("({} && {})", self.condition(d - 1, st), self.condition(d - 1, st)),
            4 => format!("({} || {})", self.condition(d - 1, st), self.condition(d - 1, st)),
            5 => format!("!({})", self.condition(d - 1, st)),
            6 if st => {
                let k = self.value(0, false);
                format!("self.{}.contains(&({k}))", self.dict())
            }
            _ => format!("matches!(m.kind, Kind::A(q) if q > {})", self.value(0, false)),
        }
    }

    fn block(&mut self, d: u32) -> String {
        let (a, b, c) = (self.vars.len(), self.its.len(), self.vecs.clone());
        let mut s = String::from("{ ");
        for _ in 0..1 + self.below(3) {
            s += &self.statement(d);
        }

        self.vars.truncate(a);
        self.its.truncate(b);
        self.vecs = c;
        s + "} "
    }

    fn with<T>(&mut self, v: &str, f: impl FnOnce(&mut Self) -> T) -> T {
        let k = self.vars.len();
        self.vars.push((v.into(), false));
        let t = f(self);
        self.vars.truncate(k);
        t
    }

    fn body(&mut self, d: u32) -> (String, String) {
        self.n += 1;
        let l = format!("'l{}", self.n);
        self.loops.push(l.clone());
        let t = self.block(d);
        self.loops.pop();
        (l, t)
    }

    fn statement(&mut self, d: u32) -> String {
        let st = self.sometimes();
        let dd = self.dict();
        match self.below(if d == 0 { 12 } else { 36 }) {
            0 | 1 => {
                let x = self.value(2, st);
                let v = self.name("v");
                let m = self.below(2) == 0;
                self.vars.push((v.clone(), m));
                format!("let {}{v} = {x}; ", if m { "mut " } else { "" })
            }
            2 => match self.mutable() {
                Some(v) => format!("{v} = {}; ", self.value(2, st)),
                None => String::new(),
            },
            3 => match self.mutable() {
                Some(v) => format!("{v} ^= {}; ", self.value(1, st)),
                None => String::new(),
            },
            4 | 5 => {
                let s = self.sometimes();
                let (k, v) = (self.value(1, false), self.value(1, s));
                format!("self.{dd}.put({k}, {v}); ")
            }
            6 => format!("let _ = self.{dd}.get(&({})); ", self.value(1, false)),
            7 => {
                let (k, v) = (self.value(1, false), self.value(0, false));
                format!("self.{dd}.update({k}, |q| *q = q.wrapping_add({v})); ")
            }
            8 => format!("self.{dd}.remove(&({})); ", self.value(1, false)),
            9 => format!("ctx.emit(Note({})); ", self.value(1, true)),
            10 if !self.helper => {
                let (x, y) = (self.value(1, false), self.value(1, true));
                format!("let (hx, hy) = ({x}, {y}); self.h1(hx, hy, m, ctx); ")
            }
            10 | 11 => {
                let v = self.name("it");
                if !self.its.contains(&v) {
                    self.its.push(v.clone());
                }
                format!("let mut {v} = m.items.iter(); ")
            }
            12 | 13 => {
                let s = self.sometimes();
                let c = self.condition(2, s);
                let t = self.block(d - 1);

                if self.below(2) == 0 {
                    format!("if {c} {t}else {}", self.block(d - 1))
                } else {
                    format!("if {c} {t}")
                }
            }
            14 => {
                let v = self.name("v");
                let c = self.condition(1, true);
                let t = self.with(&v, |g| g.block(d - 1));
                let and = if self.sometimes() { format!("&& {c} ") } else { String::new() };
                let e =
                    if self.below(2) == 0 { format!("else {}", self.block(d - 1)) } else { String::new() };

                format!("if let Some({v}) = m.opt {and}{t}{e}")
            }
            15 => {
                let key = self.value(1, false);
                let v = self.name("v");
                let t = self.with(&v, |g| g.block(d - 1));
                format!("if let Some({v}) = self.{dd}.get(&({key})).copied() {t}")
            }
            16 | 17 => {
                let over = match self.below(4) {
                    0 => format!("0..({} % 4)", self.value(1, st)),
                    1 if !self.vecs.is_empty() => format!("{}.clone()", self.vecs[0]),
                    2 => "m.items.iter().copied().map(|q| q ^ m.b)".into(),
                    _ => "m.items.iter().copied()".into(),
                };

                let v = self.name("v");
                let (l, t) = self.with(&v, |g| g.body(d - 1));
                format!("{l}: for {v} in {over} {t}")
            }
            18 => {
                let lim = self.value(1, st);
                let (l, t) = self.body(d - 1);
                let c = format!("c{}", self.n + 1000);
                format!("let mut {c} = 0u64; {l}: while {c} < ({lim}) % 4 {{ {c} += 1; {t} }} ")
            }
            19 => {
                let (l, t) = self.body(d - 1);
                let c = format!("c{}", self.n + 1000);
                format!("let mut {c} = 0u64; {l}: loop {{ {c} += 1; if {c} > 3 {{ break; }} {t} }} ")
            }
            20 | 21 if !self.loops.is_empty() => {
                let s = self.below(3) > 0;
                let c = self.condition(1, s);
                let i = self.below(self.loops.len() as u64) as usize;
                let l = self.loops[i].clone();
                let k = ["break", "continue"][self.below(2) as usize];
                format!("if {c} {{ {k} {l}; }} ")
            }
            20 | 21 => {
                let s = self.sometimes();
                let c = self.condition(1, s);
                let r = if self.helper {
                    "return"
                } else {
                    ["return Ok(())", "return Err(\"x\".into())"][self.below(2) as usize]
                };

                format!("if {c} {{ {r}; }} ")
            }
            22 => {
                let r = if self.helper { "return" } else { "return Ok(())" };
                let v = self.name("v");
                let x = if self.sometimes() {
                    format!("self.{dd}.get(&({})).copied()", self.value(0, false))
                } else {
                    "m.opt".into()
                };

                self.vars.push((v.clone(), false));
                format!("let Some({v}) = {x} else {{ {r} }}; ")
            }
            23 if !self.helper => {
                let v = self.name("v");
                let x = if self.sometimes() {
                    format!("self.{dd}.get(&({})).copied()", self.value(0, false))
                } else {
                    "m.opt".into()
                };

                self.vars.push((v.clone(), false));
                format!("let {v} = {x}.ok_or(\"none\")?; ")
            }
            23 | 24 => {
                let v = self.name("w");
                let x = self.value(1, false);
                self.vecs.insert(0, v.clone());
                format!("let mut {v} = vec![{x}]; ")
            }
            25 if !self.vecs.is_empty() => format!("{}.push({}); ", self.vecs[0].clone(), self.value(1, st)),
            25 | 26 if !self.vecs.is_empty() => {
                let v = self.vecs[0].clone();
                format!("for q in {v}.iter_mut() {{ *q ^= {}; }} ", self.value(0, st))
            }
            29 if !self.vecs.is_empty() => {
                let (v, x) = (self.vecs[0].clone(), self.value(0, st));
                format!("for (p, q) in m.items.iter().zip({v}.iter_mut()) {{ *q ^= *p ^ {x}; }} ")
            }
            30 => {
                let (c, s) = (self.condition(0, false), self.condition(1, true));
                let body = self.block(d - 1);
                let end = ["", "return"][self.below(2) as usize];
                let end = if end.is_empty() || self.helper {
                    end.to_string()
                } else {
                    "return Ok(());".to_string()
                };

                let other =
                    if self.sometimes() { format!("else {}", self.block(d - 1)) } else { String::new() };
                format!("if {c} || {s} {{ {body} {end} }} {other} ")
            }
            32 | 33 if !self.loops.is_empty() => {
                let state = self.below(3) > 0;
                let (c, x) = (self.condition(1, state), self.value(1, st));
                let i = self.below(self.loops.len() as u64) as usize;
                let l = self.loops[i].clone();
                let k = ["break", "continue"][self.below(2) as usize];
                if self.below(2) == 0 {
                    return format!("note(if {c} {{ {k} {l} }} else {{ {x} }}); ");
                }

                let v = self.name("v");
                self.vars.push((v.clone(), false));
                format!("let {v} = if {c} {{ {k} {l} }} else {{ {x} }}; ")
            }
            34 => {
                let (k, q) = (self.value(1, false), self.value(0, false));
                let (c, body) = (self.condition(0, true), self.block(d - 1));
                format!(
                    "{{ let (d, e) = (&mut self.d, &mut self.e); if let Some(v) = d.get(&({k})) {{ e.put({q}, *v); }} }} if {c} {body}"
                )
            }
            31 => {
                let (k, s) = (self.value(1, false), self.condition(1, true));
                format!("let _found = {s} && self.{dd}.contains(&({k})); ")
            }
            25..=27 => {
                let (a, b) = (self.block(d - 1), self.block(d - 1));
                let (k, c) = (self.value(1, st), self.condition(1, st));
                format!("match {k} {{ 0 | 1 => {a} q if q > 3 && {c} => {b} _ => {{}} }} ")
            }
            28 => {
                let key = self.value(1, false);
                let (a, b) = (self.block(d - 1), self.block(d - 1));
                format!(
                    "match (self.{dd}.get(&({key})).copied(), m.flag) {{ (Some(q), true) if q > 2 => {a} (None, _) => {b} _ => {{}} }} "
                )
            }
            _ => {
                let (l, a) = self.body(d - 1);
                let s = self.sometimes();
                let c = self.condition(1, s);
                let a = a.replace(&format!("continue {l}"), &format!("break {l}"));
                format!("{l}: {{ if {c} {{ break {l}; }} {a} }} ")
            }
        }
    }
}
