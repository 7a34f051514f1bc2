//! Changes of values that are not reachable through a `mut` name: the map keeps each statement that may
//! change a value on which a key depends, or the handler is refused.

use crate::{errors, handler};

/// Asserts that each map contains the code that changes the key.
fn keeps(cases: &[(&str, &str)]) {
    let mut wrong = vec![];
    for (body, change) in cases {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "");
        if !d.errors.is_empty() || !map.contains(&change.replace(' ', "")) {
            wrong.push(format!("{body}\n    {:?}\n    {map}", errors(&d)));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Asserts that each key is refused.
fn refuses(cases: &[&str]) {
    let refused = |body: &str| {
        errors(&handler(body))
            .iter()
            .any(|e| e.contains("is not a function of the message") || e.contains("becomes a key"))
    };
    let wrong: Vec<&str> = cases.iter().copied().filter(|body| !refused(body)).collect();
    assert!(wrong.is_empty(), "{} of {} are accepted:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_change_through_a_reference_to_a_temporary_is_kept() {
    keeps(&[
        ("let e = &mut [m.b, m.a]; e.sort(); self.t.put((e[0], e[1]), 1);", "e.sort();"),
        (
            "let e: &mut Vec<u64> = &mut vec![m.b]; e.push(m.a); for k in e.iter() { self.d.put(*k, 1); }",
            "e.push(m.a);",
        ),
        ("let (lo, _) = (&mut [m.b, m.a], 1); lo.reverse(); self.d.put(lo[0], 1);", "lo.reverse();"),
        (
            "let p = Pair { all: &mut [m.b, m.a], n: 1 }; p.all.sort(); self.d.put(p.all[0], 1);",
            "p.all.sort();",
        ),
        ("let e = { &mut [m.b, m.a] }; e.sort(); self.d.put(e[0], 1);", "e.sort();"),
        (
            "let [x, y] = &mut [vec![m.a], vec![m.b]]; x.append(y); self.d.put(x.len() as u64, 1);",
            "x.append(y);",
        ),
        (
            "let e = Some(&mut [m.b, m.a]); let Some(f) = e else { return }; f.sort(); self.d.put(f[0], 1);",
            "f.sort();",
        ),
        ("let ref mut e = [m.b, m.a]; let f = e; f.sort(); self.d.put(f[0], 1);", "f.sort();"),
        ("let e = &mut [m.b, m.a]; e.swap(0, 1); self.d.put(e[0], 1);", "e.swap(0,1);"),
        ("let e = &mut [m.b, m.a]; pure!(e.swap(0, 1)); self.d.put(e[0], 1);", "pure!(e.swap(0,1));"),
        ("let e = &mut [m.b, m.a]; let mut f = || e.sort(); f(); self.d.put(e[0], 1);", "f();"),
        ("let e = &mut [m.b, m.a]; if m.flag { e.sort(); } self.d.put(e[0], 1);", "e.sort();"),
    ]);
}

#[test]
fn a_change_through_a_view_that_a_method_returns_is_kept() {
    keeps(&[
        ("let v = vec![m.b, m.a].leak(); v.reverse(); self.d.put(v[0], 1);", "v.reverse();"),
        ("for c in vec![m.b, m.a].chunks_mut(2) { c.sort(); self.d.put(c[0], 1); }", "c.sort();"),
        ("for c in [vec![m.b, m.a]].iter_mut() { c.sort(); self.d.put(c[0], 1); }", "c.sort();"),
        (
            "if let Some(x) = [Some(m.a)].first_mut() { x.take(); self.d.put(x.unwrap_or(m.b), 1); }",
            "x.take();",
        ),
        (
            "match vec![m.b, m.a].split_at_mut(1) { (x, y) => { x.swap_with_slice(y); self.d.put(x[0], 1); } }",
            "x.swap_with_slice(y);",
        ),
        ("let f = || vec![m.b, m.a].leak(); let e = f(); e.sort(); self.d.put(e[0], 1);", "e.sort();"),
        (
            "let e = Self::fresh(m.a, m.b); e.sort(); self.d.put(e[0], 1); } fn fresh(a: u64, b: u64) -> &'static mut [u64] { vec![a, b].leak()",
            "e.sort();",
        ),
    ]);
}

#[test]
fn a_change_of_what_a_pattern_binds_is_kept() {
    keeps(&[
        (
            "match &mut Some([m.b, m.a]) { Some(p) => { p.sort(); self.d.put(p[0], 1); } None => {} }",
            "p.sort();",
        ),
        (
            "let Some(x) = &mut Some(vec![m.a]) else { return }; x.push(m.b); for k in x.iter() { self.d.put(*k, 1); }",
            "x.push(m.b);",
        ),
        ("if let (p, true) = (&mut [m.b, m.a], m.flag) { p.sort(); self.d.put(p[0], 1); }", "p.sort();"),
        ("for p in [&mut [m.b, m.a]] { p.sort(); self.d.put(p[0], 1); }", "p.sort();"),
        (
            "match (vec![m.b, m.a],) { (ref mut p,) => { let q = p; q.sort(); self.d.put(q[0], 1); } }",
            "q.sort();",
        ),
    ]);
}

#[test]
fn an_iterator_that_is_held_by_reference_advances() {
    keeps(&[
        (
            "let it = &mut m.items.iter(); it.next(); if let Some(k) = it.next() { self.d.put(*k, 1); }",
            "it.next();",
        ),
        (
            "let it = &mut [m.a, m.b].into_iter(); let _first = it.next(); for k in it { self.d.put(k, 1); }",
            "let_first=it.next();",
        ),
        (
            "let it = &mut (0..m.n); it.nth(2); while let Some(k) = it.next() { self.d.put(k, 1); }",
            "it.nth(2);",
        ),
        (
            "let it = &mut m.items.iter().peekable(); let n = it.by_ref().take(2).count(); if let Some(k) = it.peek() { self.d.put(**k, 1); }",
            "it.by_ref().take(2).count()",
        ),
        (
            "let it = &mut m.items.iter(); let _ = it.skip_while(|x| **x < m.a).next(); if let Some(k) = it.next() { self.d.put(*k, 1); }",
            "it.skip_while(",
        ),
    ]);
}

#[test]
fn a_change_by_interior_mutability_is_kept() {
    keeps(&[
        ("let c: Slot = Default::default(); c.set(m.a); self.d.put(c.get(), 1);", "c.set(m.a);"),
        ("let c = Slot::from(m.a); let r = &c; r.set(m.b); self.d.put(c.get(), 1);", "r.set(m.b);"),
        (
            "let c: Cell<u64> = m.a.into(); let old = c.replace(m.b); self.d.put(c.get(), old);",
            "c.replace(m.b)",
        ),
        (
            "let acc = Acc { hits: m.opt.unwrap_or_default() }; acc.hits.set(m.a); self.d.put(acc.hits.get(), 1);",
            "acc.hits.set(m.a);",
        ),
        (
            "let cs: Vec<Slot> = m.items.iter().map(|x| Slot::from(*x)).collect(); for c in &cs { c.set(m.a); } for c in &cs { self.d.put(c.get(), 1); }",
            "c.set(m.a);",
        ),
        (
            "let c = Slot::from(m.a); let pair = (&c, m.b); pair.0.set(pair.1); self.d.put(c.get(), 1);",
            "pair.0.set(pair.1);",
        ),
    ]);
}

/// Only values that may hold a `Cell` are treated in this way. A value of the message, and a value of a known
/// type, may be read under any condition.
#[test]
fn what_only_reads_does_not_cost_a_key() {
    for body in [
        "let k = m.name.to_string(); if self.g.contains(&k) { ctx.emit(k.trim()); } self.g.put(k, 1);",
        "let k: u64 = m.small.into(); if self.d.contains(&k) { ctx.emit(k.midpoint(3)); } self.d.put(k, 1);",
        "let k = Mac::from(m.mac); if self.d.contains(&k) { ctx.emit(k.octets()); } self.d.put(k, 1);",
        "let k = m.key.clone(); if self.d.contains(&k) { ctx.emit(k.describe()); } self.d.put(k, 1);",
        // a branch or a closure that only reads a `mut` local is not a view into it
        "let mut k = m.a; if self.d.contains(&k) { ctx.emit(Note(m.items.iter().filter(|q| **q > k).count())); } self.d.put(k, 1);",
        "let mut k = m.a; note(if self.d.contains(&k) { return } else { 2 }); self.d.put(k, 1);",
        "let mut k = m.a; let n = if self.d.contains(&m.b) { k } else { 3 }; self.e.put(m.b, n.max(4)); self.d.put(k, 1);",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    }
}

#[test]
fn a_change_that_the_map_cannot_repeat_is_refused() {
    refuses(&[
        // changes by code that the analysis cannot see into
        "let e = &mut [m.b, m.a]; order(e); self.d.put(e[0], 1);",
        "let e = &mut [m.b, m.a]; order(Some(e)); self.d.put(m.a, 1); let k = e[0]; self.d.put(k, 1);",
        "let c: Slot = Default::default(); fill(&c, m.a); self.d.put(c.get(), 1);",
        // changes by a helper
        "let e = &mut [m.b, m.a]; self.order(e); self.d.put(e[0], 1); } fn order(&mut self, x: &mut [u64]) { x.sort();",
        "let it = &mut m.items.iter(); self.skip(it); if let Some(k) = it.next() { self.d.put(*k, 1); } } fn skip<'a>(&self, it: &mut impl Iterator<Item = &'a u64>) { it.next();",
        "let c = Slot::from(m.a); self.fill(&c); self.d.put(c.get(), 1); } fn fill(&mut self, c: &Slot) { c.set(3);",
        // changes under a condition on state, or by a value from state
        "let e = &mut [m.b, m.a]; if self.d.contains(&m.a) { e.sort(); } self.d.put(e[0], 1);",
        "let e = &mut vec![m.b]; e.extend(self.d.get(&m.a)); for k in e.iter() { self.d.put(*k, 1); }",
        "match &mut Some([m.b, m.a]) { Some(p) => { if self.d.contains(&m.a) { p.sort(); } self.e.put(p[0], 1); } None => {} }",
        "let it = &mut m.items.iter(); if self.d.contains(&m.a) { it.next(); } if let Some(k) = it.next() { self.d.put(*k, 1); }",
        "let c: Slot = Default::default(); if self.d.contains(&m.a) { c.set(m.a); } self.d.put(c.get(), 1);",
        "let mut k = m.a; if self.d.contains(&m.b) { note({ k += 1; k }); } self.d.put(k, 1);",
        "let mut k = vec![m.a]; self.e.put(m.b, { let e = &mut k; e.push(*self.e.get(&m.a).unwrap()); 1 }); self.d.put(k[0], 1);",
        "let mut k = Some(m.a); if self.d.contains(&m.b) { note(match k { Some(ref mut k) => k, None => return }); } self.d.put(k.unwrap(), 1);",
        // changes in an expression that the map does not run
        "let it = &mut m.items.iter(); ctx.emit(it.next()); if let Some(k) = it.next() { self.d.put(*k, 1); }",
        // changes in a closure that runs under a condition on state
        "let e = &mut [m.b, m.a]; let mut f = || e.sort(); if self.d.contains(&m.a) { f(); } self.d.put(e[0], 1);",
    ]);
}

/// A closure that is an argument of a method runs in the map in the same way as in the handler.
#[test]
fn a_closure_may_use_what_the_method_hands_it() {
    keeps(&[
        ("let mut n = 0; m.items.iter().filter(|x| { n += 1; **x > 1 }).count(); self.e.get(&n);", "n+=1;"),
        (
            "let mut parts = m.text.split('/'); if let Some(k) = parts.next().and_then(|s| s.parse().ok()) { self.d.put(k, 1); }",
            "s.parse()",
        ),
        (
            "let mut ks = m.items.clone(); ks.sort_by(|a, b| b.cmp(a)); self.d.put(ks.len() as u64, 1);",
            "b.cmp(a)",
        ),
        (
            "let mut ks = m.items.clone(); ks.retain(|k| k.is_fine()); for k in &ks { self.d.put(*k, 1); }",
            "k.is_fine()",
        ),
        (
            "let mut n = 0; let it = m.items.iter().map(|x| { n += 1; x + n }); for k in it { self.d.put(k, 1); }",
            "n+=1;",
        ),
        ("let mut n = 0; let mut f = |x: u64| { n += x; n }; f(m.a); self.e.put(n, 1);", "f(m.a);"),
        (
            "let mut n = 0; let mut f = || m.items.iter().map(|x| { n += x; n }).count(); f(); self.e.put(n, 1);",
            "f();",
        ),
    ]);
    refuses(&[
        "let mut n = 0; if self.d.contains(&m.a) { m.items.iter().for_each(|x| n += x); } self.e.put(n, 1);",
        "let mut n = 0; let mut f = |x: u64| { n += x; n }; f(*self.d.get(&m.a).unwrap()); self.e.put(n, 1);",
        "let mut n = 0; let mut f = || m.items.iter().map(|x| { n += x; n }).count(); if self.d.contains(&m.a) { f(); } self.e.put(n, 1);",
        "let mut n = 0; self.d.get(&m.a).map(|x| { n += x; n }); self.e.put(n, 1);",
    ]);
}

#[test]
fn a_closure_that_is_called_through_a_place_is_followed() {
    keeps(&[
        (
            "let mut v = m.items.clone(); let turn = || v.reverse(); let mut all = [turn]; all[0](); self.d.put(v[0], 1);",
            "all[0]();",
        ),
        (
            "let mut v = m.items.clone(); let mut turn = || v.reverse(); let both = (&mut turn, 1); (both.0)(); self.d.put(v[0], 1);",
            "(both.0)();",
        ),
        (
            "let mut v = vec![m.a]; let add = || v.push(m.b); let mut h = Holder { run: add }; (h.run)(); self.d.put(v[1], 1);",
            "(h.run)();",
        ),
        (
            "let mut v = m.items.clone(); let mut view = || &mut v; let both = (&mut view, 1); (both.0)().reverse(); self.d.put(v[0], 1);",
            "(both.0)().reverse();",
        ),
        (
            "let mut v = m.items.clone(); let mut turn: Box<dyn FnMut()> = Box::new(|| v.reverse()); turn(); self.d.put(v[0], 1);",
            "turn();",
        ),
        (
            "let mut v = m.items.clone(); let turn = Box::new(|_| v.reverse()); m.items.iter().for_each(turn); self.d.put(v[0], 1);",
            "m.items.iter().for_each(turn);",
        ),
    ]);
    refuses(&[
        "let mut v = m.items.clone(); let turn = || v.reverse(); let mut all = [turn]; if self.e.contains(&m.a) { all[0](); } self.d.put(v[0], 1);",
        "let mut v = m.items.clone(); let mut turn = || v.reverse(); let both = (&mut turn, 1); if self.e.contains(&m.a) { (both.0)(); } self.d.put(v[0], 1);",
        "let mut v = m.items.clone(); let mut view = || &mut v; let both = (&mut view, 1); let r = (both.0)(); if self.e.contains(&m.a) { r.reverse(); } self.d.put(v[0], 1);",
        "let mut v = m.items.clone(); let mut turn: Box<dyn FnMut()> = Box::new(|| v.reverse()); if self.e.contains(&m.a) { turn(); } self.d.put(v[0], 1);",
        "let mut v = m.items.clone(); let mut turn: Box<dyn FnMut()> = Box::new(|| v.reverse()); self.e.put(m.a, { turn(); 1 }); self.d.put(v[0], 1);",
        "let k = (self.pick)(m.a); self.d.put(k, 1);",
        "let k = (ctx.pick)(m.a); self.d.put(k, 1);",
        "let k = (TABLE.pick)(m.a); self.d.put(k, 1);",
        "let k = TABLE[0](m.a); self.d.put(k, 1);",
        "let k = pick(m.a)(m.b); self.d.put(k, 1);",
        "let by = TABLE; let k = (by[0])(m.a); self.d.put(k, 1);",
        "let by = (self.pick, 1); let k = (by.0)(m.a); self.d.put(k, 1);",
    ]);
}

/// State makes the assigned local unknown, but the map still evaluates the assigned expression.
#[test]
fn a_jump_in_an_assigned_value_is_kept_or_refused() {
    refuses(&[
        "let mut n = 0; let mut k = 0; for q in &m.items { n = self.d.get(q).copied().unwrap_or(1); n = if *q > 3 { break } else { 3 }; k += 1; } self.e.put(k, n);",
        "let mut n = 0; let mut k = 0; if self.d.contains(&m.a) { n = 4; } for q in &m.items { n = if *q > 3 { break } else { 3 }; k += 1; } self.e.put(k, n);",
        "let mut n = *self.d.get(&m.a).unwrap(); let mut k = 0; for q in &m.items { n = if *q > 3 { break } else { 3 }; k += 1; } self.e.put(k, n);",
        "let mut n = *self.d.get(&m.a).unwrap(); let mut k = 0; for q in &m.items { n += match q { 3 => continue, q => *q }; k += 1; } self.e.put(k, n);",
        "let mut k = 0; for q in &m.items { self.total = if *q > 3 { break } else { 3 }; k += 1; } self.e.put(k, 1);",
    ]);
}

#[test]
fn a_local_that_the_map_still_assigns_is_declared_in_it() {
    keeps(&[
        (
            "let mut n = 0; if self.d.contains(&m.a) { let mut k = m.a; n = { k += 1; k }; self.e.put(k, n); }",
            "let mut n = 0;",
        ),
        (
            "let mut n = 0; if self.d.contains(&m.a) { let k = { n = 4; m.a }; self.e.put(k, n); }",
            "let mut n = 0;",
        ),
        (
            "let mut n = (0, 1); if self.d.contains(&m.a) { let mut k = m.a; (n.0, k) = (1, m.b); self.e.put(k, n.0); }",
            "let mut n = (0, 1);",
        ),
        (
            "let mut n = Default::default(); n = (m.a, 1); if self.d.contains(&m.a) { (n.0, n.1) = (1, 'v: { if m.flag { break 'v 2; } 3 }); self.e.put(m.a, n.0); }",
            "let mut n = Default::default();",
        ),
    ]);
    // the map cannot initialize a local in each of two branches
    let d = handler(
        "let n; if self.d.contains(&m.a) { n = m.opt.ok_or(1)?; } else { n = 3; } self.e.put(m.a, n);",
    );
    let map = d.handlers[0].map.to_string();
    assert!(d.errors.is_empty() && !map.contains("n ="), "{map}");
}

#[test]
fn a_method_that_takes_an_option_by_value_does_not_change_the_local() {
    for method in
        ["map(|x| x + 1)", "filter(|x| *x > 2)", "or(m.opt)", "and_then(|x| x.checked_sub(1))", "zip(m.opt)"]
    {
        for local in
            ["let mut o: Option<u64> = m.opt;", "let mut o = Some(m.a);", "let mut o = None; o = m.opt;"]
        {
            let d = handler(&format!(
                "{local} if self.e.contains(&m.a) {{ let _ = o.{method}; }} self.d.put(o.unwrap_or(1), 1);"
            ));
            assert!(d.errors.is_empty(), "{local} {method}\n{:?}", errors(&d));
        }
    }
    refuses(&[
        "let mut o: Option<u64> = m.opt; if self.e.contains(&m.a) { o.take(); } self.d.put(o.unwrap_or(1), 1);",
        "let mut o = Some(m.a); if self.e.contains(&m.a) { o.insert(3); } self.d.put(o.unwrap_or(1), 1);",
        // an iterator may be moved into `map` by reference
        "let mut o = m.items.iter(); if self.e.contains(&m.a) { o.map(|x| x + 1).count(); } self.d.put(*o.next().unwrap(), 1);",
        // a view is changed through the copy
        "let mut v = m.a; let mut o = Some(&mut v); if self.e.contains(&m.a) { o.map(|x| *x = 9); } self.d.put(v, 1);",
        "let mut v = m.a; let mut o: Option<&mut u64> = Some(&mut v); if self.e.contains(&m.a) { o.map(|x| *x = 9); } self.d.put(v, 1);",
        "let mut o: Option<u64> = m.opt; let r = &mut o; if self.e.contains(&m.a) { r.map(|x| x + 1).insert(2); r.take(); } self.d.put(o.unwrap_or(1), 1);",
    ]);
}
