//! Bodies that the analysis must refuse, each with a part of its error. `d`, `e` and `s` are dictionaries;
//! `m` is the message.

use crate::{errors, handler};

#[test]
fn bodies_are_refused_for_their_reason() {
    let not_msg = "is not a function of the message";
    let cases: &[(&str, &str)] = &[
        // state reaches a key
        ("let k = *self.d.get(&m.a).unwrap(); self.e.put(k, 1);", not_msg),
        ("if let Some(k) = self.d.get(&m.a) { self.e.get(k); }", not_msg),
        ("match self.d.get(&m.a) { Some(k) => { self.e.get(k); } None => {} }", not_msg),
        ("for k in self.d.get(&m.a).into_iter() { self.e.get(k); }", not_msg),
        ("self.e.get(self.d.get(&m.a).unwrap());", not_msg),
        ("let k = m.a + self.d.get(&m.a).copied().unwrap_or(0); self.e.put(k, 1);", not_msg),
        ("let mut k = m.a; if self.d.contains(&m.a) { k += 1; } self.e.put(k, 1);", not_msg),
        ("let mut k = m.a; k += *self.d.get(&m.a).unwrap(); self.e.put(k, 1);", not_msg),
        ("let k = if self.d.contains(&m.a) { m.a } else { m.b }; self.e.put(k, 1);", not_msg),
        (
            "let mut ks = vec![m.a]; ks.push(*self.d.get(&m.a).unwrap()); for k in &ks { self.e.get(k); }",
            not_msg,
        ),
        (
            "let mut ks = vec![m.a]; if self.d.contains(&m.a) { ks.push(m.b); } for k in &ks { self.e.get(k); }",
            not_msg,
        ),
        // state that reaches a key through views of a local
        (
            "let mut v = vec![m.a]; for x in v.iter_mut() { *x = *self.d.get(&m.a).unwrap(); } self.e.get(&v[0]);",
            not_msg,
        ),
        (
            "let mut o = Some(m.a); if let Some(x) = o.as_mut() { *x += *self.d.get(&m.a).unwrap(); } self.e.get(&o.unwrap());",
            not_msg,
        ),
        (
            "let mut o = Some(m.a); if let Some(x) = &mut o { *x += *self.d.get(&m.a).unwrap(); } self.e.get(&o.unwrap());",
            not_msg,
        ),
        (
            "let mut p = m.pair; let (ref mut x, _) = p; *x = *self.d.get(&m.a).unwrap(); self.e.get(&p.0);",
            not_msg,
        ),
        ("let mut v = vec![m.a]; v.iter_mut().for_each(|x| *x += ctx.id()); self.e.get(&v[0]);", not_msg),
        (
            "let mut a = m.a; let b = *self.d.get(&m.a).unwrap(); std::mem::swap(&mut a, &mut b.clone()); self.e.get(&a);",
            not_msg,
        ),
        (
            "let (mut a, mut b) = (m.a, m.b); [a, b] = [*self.d.get(&m.a).unwrap(), 2]; self.e.get(&a);",
            not_msg,
        ),
        (
            "let (mut a, mut b) = (m.a, m.b); (a, b) = (b, *self.d.get(&m.a).unwrap()); self.e.get(&b);",
            not_msg,
        ),
        // changes that happen only in code that the map does not run
        (
            "let mut it = m.items.iter(); let x = it.next().copied().or(self.d.get(&m.a).copied()); let k = it.next().unwrap(); self.e.get(k);",
            not_msg,
        ),
        (
            "let mut it = m.items.iter(); self.d.put(m.a, *it.next().unwrap()); self.e.get(it.next().unwrap());",
            not_msg,
        ),
        (
            "let mut it = m.items.iter(); println!(\"{:?}\", it.next()); self.e.get(it.next().unwrap());",
            not_msg,
        ),
        ("let mut it = m.items.iter(); foo(it.next()); self.e.get(it.next().unwrap());", not_msg),
        (
            "let mut it = m.items.iter(); self.note(it.next()); self.e.get(it.next().unwrap()); } fn note(&mut self, x: Option<&u64>) {",
            not_msg,
        ),
        ("let mut i = 0; loop { if self.d.contains(&i) { break; } i += 1; } self.e.get(&i);", not_msg),
        ("let mut i = 0; while self.d.contains(&m.a) { i += 1; } self.e.get(&i);", not_msg),
        (
            "let mut i = 0; 'o: for x in &m.items { for y in &m.items { if self.d.contains(y) { continue 'o; } i += 1; } } self.e.get(&i);",
            not_msg,
        ),
        ("let mut k = m.a; 'b: { if self.d.contains(&m.a) { break 'b; } k = m.b; } self.e.get(&k);", not_msg),
        // keys from sources other than the message
        ("self.d.get(&ctx.bee());", not_msg),
        ("self.d.get(&(m.a + self.limit));", not_msg),
        ("self.d.get(&rand::random::<u64>());", not_msg),
        ("let c = std::cell::Cell::new(m.a); c.set(1); self.d.get(&c.get());", not_msg),
        ("let t = std::time::SystemTime::now(); self.d.get(&t.elapsed().unwrap().as_secs());", not_msg),
        ("let s: u64 = SEQ.fetch_add(1, Ordering::Relaxed); self.d.get(&s);", not_msg),
        ("self.d.get(&hash(m));", not_msg),
        ("self.d.get(&my_key!(m));", not_msg),
        ("let h = HashSet::from([m.a, m.b]); self.d.get(&h.iter().next());", not_msg),
        // `self` escapes
        ("foo(self);", "`self` leaves the handler"),
        ("let t = self; t.d.get(&m.a);", "`self` leaves the handler"),
        ("let f = |t: &mut Self| t.d.get(&m.a); f(self);", "`self` leaves the handler"),
        ("match self { T { d, .. } => { d.get(&m.a); } }", "`self` leaves the handler"),
        ("T::bump(self, 1);", "`self` leaves the handler"),
        (
            "Self::bump(self, 1); } fn bump(&mut self, k: u64) { self.d.put(k, 1);",
            "`self` leaves the handler",
        ),
        ("std::thread::scope(|s| { s.spawn(|| { self.d.get(&m.a); }); });", "inside a closure"),
        ("let f = |k| { self.d.put(k, 1); }; f(m.a);", "inside a closure"),
        ("let d = &mut self.d; let mut f = |k| { d.put(k, 1); }; f(m.a);", "inside a closure"),
        ("m.opt.and_then(|p| self.d.get(&p));", "inside a closure"),
        ("macro_rules! put { ($k:expr) => { self.d.put($k, 1) } } put!(m.a);", "inside a macro"),
        (
            "let d = &mut self.d; macro_rules! put { ($k:expr) => { d.put($k, 1) } } put!(m.a);",
            "inside a macro",
        ),
        ("with!(self.d, m.a);", "state is used inside"),
        ("let d = &mut self.d; with!(d, m.a);", "state is used inside"),
        ("async { self.d.get(&m.a); };", "synchronous"),
        ("self.elsewhere(m.a);", "not a method of this"),
        ("self.walk(m.a); } fn walk(&mut self, k: u64) { self.d.put(k, 1); self.walk(k);", "recursive"),
        (
            "self.one(m.a); } fn one(&mut self, k: u64) { self.two(k); } fn two(&mut self, k: u64) { self.one(k);",
            "recursive",
        ),
        (
            "let k = *self.d.get(&m.a).unwrap(); self.outer(k); } fn outer(&mut self, x: u64) { self.inner(x + 1); } fn inner(&mut self, y: u64) { self.e.put(y, 1);",
            "becomes a key",
        ),
        // only state ends the loop
        (
            "let mut id = m.a; loop { if !self.d.contains(&id) { self.d.put(id, 1); return; } id += 1; }",
            "only state ends",
        ),
        ("for id in 0.. { if !self.d.contains(&id) { self.d.put(id, 1); return; } }", "only state ends"),
        ("let mut id = m.a; while true { if !self.d.contains(&id) { return; } id += 1; }", "only state ends"),
        ("for x in m.items.iter().cycle() { if self.d.contains(x) { return; } }", "only state ends"),
        // conditional compilation
        ("#[cfg(feature = \"x\")] let k = m.a; self.d.get(&m.b);", "compiled"),
        // configuration and shared views
        ("self.d.put(m.a + self.config.offset, 1);", "configuration would move cells"),
        ("if let Some(k) = self.d.shared().get(&m.a) { self.e.put(*k, 1); }", not_msg),
        // changes that are easy to overlook
        (
            "let mut v = vec![m.a]; for (x, y) in m.items.iter().zip(v.iter_mut()) { *y = *self.d.get(x).unwrap(); } self.e.get(&v[0]);",
            not_msg,
        ),
        (
            "let mut v = vec![m.a]; let (x, _n) = (v.iter_mut(), self.d.get(&m.a)); for q in x { *q = *self.e.get(&m.b).unwrap(); } self.e.get(&v[0]);",
            not_msg,
        ),
        (
            "let mut v = vec![m.a]; let w = Wrap(v.iter_mut()); for q in w.0 { *q = *self.d.get(&m.a).unwrap(); } self.e.get(&v[0]);",
            not_msg,
        ),
        (
            "let mut v = vec![0; 4]; let i = self.d.get(&m.a).copied().unwrap_or(0); v[i as usize] = 1; self.e.get(&v[0]);",
            not_msg,
        ),
        ("let mut k = m.a; unsafe { k = m.b; if self.d.contains(&m.a) { k = 3; } } self.e.get(&k);", not_msg),
        (
            "let mut it = m.items.iter(); match it.next() { Some(x) if self.d.contains(x) => {} Some(_) => {} None => {} } self.e.get(it.next().unwrap());",
            not_msg,
        ),
        ("let w = *self.d.get(&m.a).unwrap() as usize; self.s.put(format!(\"{:w$}\", m.b), 1);", not_msg),
        ("let k = m.opt.map(shard_of); self.d.get(&k.unwrap_or(0));", not_msg),
        ("let k = m.opt.unwrap_or_else(rand::random); self.d.get(&k);", not_msg),
        (
            "let mut n = 0; for x in &m.items { if matches!(self.d.get(x), Some(_)) { break; } n += 1; } self.e.put(n, 1);",
            not_msg,
        ),
        ("let mut n = 0; for x in &m.items { stop!(x); n += 1; } self.e.put(n, 1);", not_msg),
        (
            "for q in &m.items { if matches!(m.opt, Some(x) if x > (if *q > 2 { break } else { 3 })) { self.d.put(*q, 1); } }",
            "in a macro on which a key may depend",
        ),
        (
            "if matches!(m.kind, Kind::A(x) if self.d.contains(&x)) { self.e.put(m.a, 1); }",
            "guard of `matches!`",
        ),
        (
            "let mut it = m.items.iter(); for x in it.by_ref() { if self.d.contains(x) { break; } } self.e.get(it.next().unwrap());",
            not_msg,
        ),
        (
            "let mut it = m.items.iter(); let z = it.by_ref(); for x in z { if self.d.contains(&m.a) { break; } } self.e.get(it.next().unwrap());",
            not_msg,
        ),
        (
            "let mut it = m.items.iter(); let t = (it.by_ref(), 1); if self.d.contains(&m.a) { let _v = Vec::from_iter(t.0); } self.e.get(it.next().unwrap());",
            not_msg,
        ),
        // `write!` changes its first argument without a visible borrow
        (
            "let mut s = String::new(); if self.d.contains(&m.a) { write!(s, \"{}\", m.b)?; } self.g.get(&s);",
            not_msg,
        ),
        (
            "let mut s = String::new(); let _ = writeln!(s, \"{:?}\", self.d.get(&m.a)); self.g.get(&s);",
            not_msg,
        ),
        ("let mut s = String::new(); let _ = write!(s, \"{}\", m.opt?); self.g.get(&s);", not_msg),
        (
            "let mut n = 0; for x in &m.items { foo(if *x > 3 { break } else { 1 }); n += 1; } self.e.put(n, 1);",
            not_msg,
        ),
        (
            "for x in &m.items { if self.d.contains(x) { let z = if m.flag { break } else { 1 }; self.e.put(z, 1); } }",
            not_msg,
        ),
        ("for i in 0.. { if self.d.contains(&i) { break; } self.e.put(i, 1); }", "the map would never end"),
        (
            "for i in m.items.iter().cycle() { if self.d.contains(i) { break; } self.e.put(*i, 1); }",
            "the map would never end",
        ),
        ("let p = &raw mut m.a; self.d.get(&m.a);", "does not know this syntax"),
        ("unsafe { let t = self as *mut T; (*t).d.put(m.a, 1); }", "`self` leaves the handler"),
        ("self.pick(m.a); } fn pick(k: u64) -> u64 { k", "takes no `self`"),
        (
            "let k = self.pick(m.a); self.d.get(&k); } fn pick(&self, k: u64) -> u64 { k",
            "remove the `self` of",
        ),
        // the help line suggests `pure!` at the call that computes the key
        (
            "let k = shards::of(m.a); self.d.get(&k);",
            "`pure!(shards::of(..))` in line 1, or `#[handlers(pure(of))]`",
        ),
        ("let k = m.id.load(Ordering::Relaxed); self.d.get(&k);", "`pure!(value.load(..))`"),
        ("let k = my_key!(m); self.d.get(&(k, m.a));", "`pure!(my_key!(..))`"),
        ("let k = shard_of(m.a); self.d.get(&pure!(k));", "`pure!(shard_of(..))`"),
        ("self.d.get(&(shard_of(m.a), m.b));", "write `pure!((shard_of(m.a), m.b))`"),
        ("let k = vec![m.opt?]; for x in &k { self.d.get(x); }", "`?` is used in a macro"),
        ("let f = |x: u64| { n!(x) }; self.d.get(&f(m.a));", not_msg),
    ];

    let mut wrong = vec![];
    for (body, want) in cases {
        let found = errors(&handler(body));
        if !found.iter().any(|e| e.contains(want)) {
            wrong.push(format!("{body}\n    wanted {want:?}, got {found:?}"));
        }
    }

    assert!(
        wrong.is_empty(),
        "{} of {} are not refused as they should be:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );

    assert!(cases.len() > 80);
}

/// One mistake causes one error: its consequences are not reported.
#[test]
fn a_value_that_is_a_key_in_three_places_is_one_error() {
    let found = errors(&handler(
        "let k = *self.d.get(&m.a).unwrap(); self.e.get(&k);\nself.e.put(k, 1);\nself.d.put(k, 1);",
    ));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("the same value is also used as a key at line 2, 3"), "{found:?}");
}

#[test]
fn all_mistakes_are_reported() {
    let found = errors(&handler(
        "let k = *self.d.get(&m.a).unwrap(); self.e.get(&k); foo(self); self.elsewhere(1); self.d.get(&hash(m));",
    ));
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn an_error_in_a_helper_is_reported_once_for_all_callers() {
    let found = errors(&handler(
        "self.a(m.a, m.b); let v = self.d.get(&m.a).copied().unwrap_or(0); self.a(m.b, v); } fn a(&mut self, k: u64, v: u64) { foo(self);",
    ));
    assert_eq!(found.len(), 1, "{found:?}");
}
