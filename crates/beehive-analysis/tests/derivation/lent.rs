//! Locals that are lent mutably to a call or to a loop stay known: `mem::swap(&mut a, &mut b)`, `write!(&mut s, ..)`.

use crate::{errors, handler};

#[test]
fn what_changes_through_a_lent_local_is_repeated() {
    for (body, kept) in [
        (
            "let (mut a, mut b) = (m.a, m.b); std::mem::swap(&mut a, &mut b); self.d.put(a, b);",
            "std::mem::swap(&muta,&mutb);",
        ),
        (
            "let mut v = m.items.clone(); let old = std::mem::take(&mut v); for k in old { self.e.put(k, 1); } for k in v { self.d.put(k, 1); }",
            "letold=std::mem::take(&mutv);",
        ),
        (
            "let (mut a, mut b) = (m.items.clone(), vec![m.a]); a.append(&mut b); for k in a { self.d.put(k, 1); }",
            "a.append(&mutb);",
        ),
        (
            "let mut s = String::new(); let _ = write!(&mut s, \"{}\", m.a); self.g.put(s, 1);",
            "write!(&muts,\"{}\",m.a)",
        ),
        (
            "let mut v = vec![m.a]; let p = Some(&mut v); if let Some(q) = p { q.push(2); } self.e.put(v[1], 1);",
            "q.push(2);",
        ),
        (
            "let mut v = vec![m.a]; let p = Pair { all: &mut v, n: 1 }; p.all.push(2); self.e.put(v[1], 1);",
            "p.all.push(2);",
        ),
        ("let mut v = vec![m.b, m.a]; let r = &mut v; r.sort(); self.d.put(v[0], 1);", "r.sort();"),
        ("let mut n = m.a; { let r = &mut n; *r += 1; } self.d.put(n, 1);", "*r+=1;"),
        ("let mut n = m.a; let r = &mut n; let s = &mut *r; *s += 1; self.d.put(n, 1);", "*s+=1;"),
        (
            "let mut v = vec![m.b, m.a]; let r = *Box::new(&mut v); r.sort(); self.d.put(v[0], 1);",
            "r.sort();",
        ),
        (
            "let mut v = vec![m.b, m.a]; let r = Self::boxed(&mut v); let s = *r; s.sort(); self.d.put(v[0], 1); } fn boxed<'a>(v: &'a mut Vec<u64>) -> Box<&'a mut Vec<u64>> { Box::new(v)",
            "s.sort();",
        ),
        (
            "let mut o = Some(m.a); if let Some(ref mut k) = o { *k += 1; } self.d.put(o.unwrap(), 1);",
            "*k+=1;",
        ),
        (
            "let (mut a, mut b) = (m.a, m.b); let r = if m.flag { &mut a } else { &mut b }; *r += 1; self.d.put(a, b);",
            "*r+=1;",
        ),
        // changes by a closure, at the point where it is called
        (
            "let mut v = vec![]; let mut add = |k: u64| v.push(k); add(m.a); add(m.b); self.d.put(v[1], 1);",
            "add(m.b);",
        ),
        (
            "let mut v = vec![m.a]; (|r: &mut Vec<u64>| r.push(m.b))(&mut v); self.d.put(v[1], 1);",
            "r.push(m.b))(&mutv);",
        ),
        ("let mut n = m.a; let mut next = || { n += 1; n }; next(); self.d.put(next(), 1);", "next();"),
        (
            "let mut n = 0; let mut add = |k: &u64| n += k; m.items.iter().for_each(&mut add); self.d.put(n, 1);",
            ".for_each(&mutadd);",
        ),
        (
            "let mut n = 0; let add = |k: &u64| n += k; m.items.iter().for_each(add); self.d.put(n, 1);",
            ".for_each(add);",
        ),
        (
            "let mut n = m.a; for _ in &m.items { let mut next = || n += 1; next(); } self.d.put(n, 1);",
            "next();",
        ),
        (
            "let mut ks = m.items.clone(); for k in &mut ks { *k += 1; } for k in ks { self.d.put(k, 1); }",
            "forkin&mutks{__m.step();*k+=1;}",
        ),
        (
            "let mut it = m.items.iter(); let first = it.next(); for k in &mut it { self.d.put(*k, 1); } self.e.put(m.a, first.is_some());",
            "forkin&mutit{",
        ),
        (
            "let mut n = m.a; let x = Self::next(&mut n); self.d.put(x, 1); self.e.put(n, 1); } fn next(n: &mut u64) -> u64 { *n += 1; *n",
            "Self::next(&mutn)",
        ),
        (
            "let mut v = vec![]; Self::fill(&mut v, m.a); self.d.put(v[0], 1); } fn fill(v: &mut Vec<u64>, n: u64) { v.push(n); v.sort();",
            "Self::fill(&mutv,m.a);",
        ),
        (
            "let mut seen = vec![]; let mut v = m.items.clone(); v.retain(|x| { seen.push(*x); *x > 2 }); self.d.put(seen[0], 1);",
            "v.retain(|x|{seen.push(*x);*x>2});",
        ),
        (
            "let e = &mut [m.b, m.a]; Self::order(e); self.d.put(e[0], 1); } fn order(x: &mut [u64]) { x.sort();",
            "Self::order(e);",
        ),
        ("let mut o = m.opt; Option::take(&mut o); self.e.put(o.unwrap_or(0), 1);", "Option::take(&muto);"),
        (
            "let mut p = Pair { a: m.a, b: m.b }; std::mem::swap(&mut p.a, &mut p.b); self.d.put(p.a, 1);",
            "std::mem::swap(&mutp.a,&mutp.b);",
        ),
    ] {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(d.errors.is_empty() && map.contains(kept), "{body}\n{:?}\n{map}", errors(&d));
    }
}

#[test]
fn what_the_map_cannot_repeat_is_refused() {
    for body in [
        // changes under a condition on state, or with a value from state
        "let mut a = m.a; if self.d.contains(&m.b) { std::mem::swap(&mut a, &mut 3); } self.e.put(a, 1);",
        "let mut v = m.items.clone(); for k in &mut v { *k += self.d.get(&1).copied().unwrap_or(0); } self.e.put(v[0], 1);",
        "let mut s = String::new(); let _ = write!(&mut s, \"{}\", self.d.get(&m.a).is_some()); self.g.put(s, 1);",
        // changes by code that the analysis does not know
        "let mut v = m.items.clone(); fill(&mut v); self.e.put(v[0], 1);",
        "let mut v = vec![m.a]; let p = longest(&mut v); p.push(2); self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; self.grow(&mut v); self.d.put(v[0], 1); } fn grow(&mut self, v: &mut Vec<u64>) { v.push(self.d.get(&1).copied().unwrap_or(0));",
        "let mut v = vec![m.a]; Self::fill(&mut v); self.d.put(v[0], 1); } fn fill(v: &mut Vec<u64>) { v.push(now()); ",
        // a borrow that lasts longer than the call
        "let mut v = vec![m.a]; let p = Some(&mut v); if let Some(q) = p { if self.d.contains(&m.b) { q.push(2); } } self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let p = Pair { all: &mut v, n: 1 }; p.all.extend(self.d.get(&m.b)); self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let r = &mut v; if self.d.contains(&m.b) { r.push(2); } self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let r = &mut v; for _ in 0..3 { self.e.put(r[0], 1); r[0] = self.d.get(&m.b).copied().unwrap_or(1); }",
        "let mut v = vec![m.a]; let mut add = |n: u64| v.push(n); if self.d.contains(&m.b) { add(2); } self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let mut add = |n: u64| v.push(n); add(*self.d.get(&m.b).unwrap()); self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let add = || v.push(m.b); let mut all = [add]; self.d.put(m.a, { all[0](); 1 }); self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let add = || v.push(m.b); let mut h = Holder { run: add }; if self.d.contains(&m.b) { (h.run)(); } self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let mut add = |k: u64| v.push(k); self.d.get(&m.a).map(|k| add(*k)); self.e.put(v[1], 1);",
        "let mut v = vec![m.a]; let add = |k: u64| v.push(k); self.each(add); self.e.put(v[1], 1); } fn each(&mut self, mut add: impl FnMut(u64)) { add(*self.d.get(&1).unwrap());",
        "let (mut v, n) = (vec![m.a], self.d.get(&m.b).copied()); let mut add = || v.extend(n); add(); self.e.put(v[1], 1);",
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains("is not a function of the message")), "{body}\n{found:?}");
    }
}

/// The logging is left out of the map, and the message is not dropped because of it.
#[test]
fn a_branch_that_logs_and_computes_a_value_is_understood() {
    for body in [
        "let k = match m.opt { Some(k) => k, None => { tracing::debug!(\"none\"); return; } }; self.d.put(k, 1);",
        "let k = match m.opt { Some(k) => { tracing::debug!(k, \"one\"); k } None => 0 }; self.d.put(k, 1);",
        "let k = if let Some(k) = m.opt { k } else { println!(\"{} has none\", m.a); m.b }; self.d.put(k, 1);",
        "let k = { log::info!(\"{}\", m.a); m.a + 1 }; self.d.put(k, 1);",
        "self.d.put(match m.opt { Some(k) => k, None => { tracing::warn!(\"none\"); 0 } }, 1);",
        "if m.flag { let k = match m.opt { Some(k) => k, None => { tracing::debug!(\"none\"); 7 } }; self.d.put(k, 1); }",
    ] {
        let d = handler(body);
        let map = d.handlers[0].map.to_string();
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        assert!(map.contains("__m . effect ()"), "{body}\n{map}");
        assert!(!["tracing", "println", "log ::"].iter().any(|name| map.contains(name)), "{body}\n{map}");
    }
}

#[test]
fn logging_that_does_more_than_log_is_not_left_out() {
    for body in [
        "let mut it = m.items.iter(); let n = match m.opt { Some(k) => k, None => { tracing::debug!(\"{:?}\", it.next()); 0 } }; if let Some(k) = it.next() { self.d.put(*k, n); self.d.put(n, 1); }",
        "let k = match m.opt { Some(k) => k, None => { tracing::debug!(\"{}\", self.d.get(&m.a).is_some()); 0 } }; self.d.put(k, 1);",
        "let k = match m.opt { Some(k) => k, None => { tracing::debug!(\"{}\", next()); 0 } }; self.d.put(k, 1);",
        "let k = match m.opt { Some(k) => k, None => { mine::debug!(\"none\"); 0 } }; self.d.put(k, 1);",
        "let k = match m.opt { Some(k) => k, None => { debug!(\"none\"); 0 } }; self.d.put(k, 1);",
    ] {
        assert!(!handler(body).errors.is_empty(), "{body}");
    }
}
