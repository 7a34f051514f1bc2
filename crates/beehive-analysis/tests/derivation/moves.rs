//! Locals that a handler moves in branches between which state decides. The map runs all branches. It moves a
//! local that only one branch can move, clones a local that several branches move, and reborrows a `&mut`. If
//! none of these is possible, the analysis refuses the handler.

use crate::{errors, handler};

fn map(body: &str) -> String {
    let d = handler(body);
    assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    d.handlers[0].map.to_string().replace(' ', "")
}

/// Asserts that the maps contain a text, and that they clone only if that text does.
fn prints(cases: &[(&str, &str)]) {
    let mut wrong = vec![];
    for (body, text) in cases {
        let map = map(body);
        if !map.contains(text) || map.contains("Clone::clone") && !text.contains("Clone::clone") {
            wrong.push(format!("{body}\n    {map}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_local_that_the_branch_itself_declares_is_moved() {
    prints(&[
        (
            "if self.e.contains(&m.b) { let mut l = m.items.clone(); let mut views = vec![]; views.push(&mut l); for r in views { r.push(1); } self.d.put(l.len(), 1); }",
            "forrinviews{",
        ),
        (
            "if self.e.contains(&m.b) { let mut n = m.a; let r = &mut n; let q = r; *q ^= 1; self.d.put(n, 1); }",
            "letq=r;",
        ),
        (
            "if self.e.contains(&m.b) { let mut n = m.a; let slot = Some(&mut n); if let Some(r) = slot { *r ^= 1; } self.d.put(n, 1); }",
            "ifletSome(r)=slot{",
        ),
        (
            "match self.e.get(&m.b) { Some(_) => { let mut n = m.a; let slot = Ok(&mut n); match slot { Ok(r) => *r ^= 1, Err(()) => {} } self.d.put(n, 1); } None => {} }",
            "matchslot{",
        ),
        (
            "if self.e.contains(&m.b) { let mut n = m.a; let r = &mut n; let pair = (r, 1); *pair.0 ^= 1; self.d.put(n, 1); }",
            "letpair=(r,1);",
        ),
        (
            "for x in &m.items { if self.e.contains(x) { let mut n = *x; let all = [&mut n]; for r in all { *r ^= 1; } self.d.put(n, 1); } }",
            "forrinall{",
        ),
        (
            "if self.e.contains(&m.b) { let mut n = m.a; let r = &mut n; Self::bump(r); self.d.put(n, 1); } } fn bump(r: &mut u64) { *r ^= 1;",
            "Self::bump(r)",
        ),
        (
            "if self.e.contains(&m.b) { let mut n = m.a; let mut change: Box<dyn FnMut()> = Box::new(|| n ^= 1); let mut run = change; run(); self.d.put(n, 1); }",
            "letmutrun=change;",
        ),
    ]);
}

#[test]
fn a_reference_that_several_branches_move_is_reborrowed() {
    prints(&[
        (
            "let mut n = m.a; let r = &mut n; if self.e.contains(&m.b) { let q = r; self.d.put(*q, 1); } else { self.e.put(*r, 1); }",
            "letq=(&mut*r);",
        ),
        (
            "let mut n = m.a; let r = &mut n; if self.e.contains(&m.b) { let q = (r, 1); self.d.put(*q.0, 1); } else { self.e.put(*r, 1); }",
            "((&mut*r),1)",
        ),
        (
            "let mut n = m.a; let r: &mut u64 = &mut n; if self.e.contains(&m.b) { let q = Some(r); if let Some(q) = q { self.d.put(*q, 1); } } else { self.e.put(*r, 1); }",
            "Some((&mut*r))",
        ),
        (
            "let mut n = m.a; let ref mut r = n; if self.e.contains(&m.b) { let q = r; self.d.put(*q, 1); } else { self.e.put(*r, 1); }",
            "letq=(&mut*r);",
        ),
        (
            "let mut n = m.a; let r = &mut n; match r { q if self.e.contains(&m.b) => { self.d.put(*q, 1); } q => { self.e.put(*q, 1); } }",
            "ifletq=(&mut*r){",
        ),
        (
            "let mut n = m.a; let r = &mut n; let s = r; for x in &m.items { if self.e.contains(x) { let q = s; self.d.put(*q, 1); break; } }",
            "letq=(&mut*s);",
        ),
        (
            "let mut n = m.a; self.lend(&mut n); } fn lend(&mut self, r: &mut u64) { let n = 1; if self.e.contains(&n) { let q = r; self.d.put(n, *q); } else { let q = r; self.e.put(n, *q); }",
            "__bh_map_lend",
        ),
    ]);
}

#[test]
fn a_value_that_several_branches_move_is_cloned_wherever_it_stands() {
    let other = "else { self.e.put(v.len(), 1); }";
    for (moves, text) in [
        (
            "let mut w = vec![]; w.push(1); w = v; self.d.put(w.len(), 1);",
            "w=::core::clone::Clone::clone(&v)",
        ),
        (
            "let w = if m.flag { v } else { vec![m.a] }; self.d.put(w.len(), 1);",
            "{::core::clone::Clone::clone(&v)}",
        ),
        ("let w = { v }; self.d.put(w.len(), 1);", "{::core::clone::Clone::clone(&v)}"),
        ("let w = loop { break v; }; self.d.put(w.len(), 1);", "break::core::clone::Clone::clone(&v)"),
        (
            "let w = move || v.len(); self.d.put(w(), 1);",
            "{letv=::core::clone::Clone::clone(&v);move||v.len()}",
        ),
        ("let w = v + \"1\"; self.d.put(w.len(), 1);", "::core::clone::Clone::clone(&v)+\"1\""),
        ("let (w, x) = (v, self.e.get(&m.b)); self.d.put(w.len(), x);", "::core::clone::Clone::clone(&v)"),
        ("let w = { let u = v; u.len() }; self.d.put(w, 1);", "letu=::core::clone::Clone::clone(&v)"),
        ("let w = v.rev().count(); self.d.put(w, 1);", "::core::clone::Clone::clone(&v).rev()"),
    ] {
        let body = format!("let v = m.items.clone(); if self.e.contains(&m.b) {{ {moves} }} {other}");
        let map = map(&body);
        assert!(map.contains(text), "{body}\n    {map}");
    }

    // the local is computed by a change of another value, and holds no view of that value
    for body in [
        "let mut k = 0; let n = loop { k += 1; if k > m.a { break k; } }; if self.e.contains(&m.b) { self.t.put((n, 1), 1); } else { self.d.put(n, 1); }",
        "let n = { let mut v = m.items.clone(); v.sort(); v }; if self.e.contains(&m.b) { self.q.put((n, 1), 1); } else { self.d.put(n.len(), 1); }",
        "let mut it = m.items.iter(); let n = it.next().copied(); if self.e.contains(&m.b) { self.q.put((n, 1), 1); } else { self.q.put((n, 2), 1); }",
    ] {
        assert!(map(body).contains("::core::clone::Clone::clone(&n),1"), "{}", map(body));
    }

    // a loop may reach the move again
    let body = "let v = m.items.clone(); for q in &m.items { if self.e.contains(q) { let w = v; self.d.put(w.len(), 1); break; } }";
    assert!(map(body).contains("letw=::core::clone::Clone::clone(&v);"), "{}", map(body));
    // a local in the branch has the same name as a local outside of it
    let body = "let r = m.items.clone(); if self.e.contains(&m.b) { let k = { let mut n = m.a; let r = &mut n; let q = r; *q ^= 1; n }; self.d.put(k, 1); } self.e.put(r.len(), 1);";
    assert!(map(body).contains("letq=r;"), "{}", map(body));
}

#[test]
fn a_value_is_kept_where_a_pattern_binds_its_name_again() {
    let kept = "::core::clone::Clone::clone(&o)";
    for branches in [
        "if self.e.contains(&m.b) { if let Some(o) = o { self.d.put(o, 1); } } else if let Some(o) = o { self.e.put(o, 1); }",
        "if self.e.contains(&m.b) { match o { Some(o) => { self.d.put(o, 1); } None => {} } } else { match o { Some(o) => { self.e.put(o, 1); } None => {} } }",
        "if self.e.contains(&m.b) { let Some(o) = o else { return }; self.d.put(o, 1); } else { let Some(o) = o else { return }; self.e.put(o, 1); }",
        "if self.e.contains(&m.b) { for o in o { self.d.put(o, 1); } } else { for o in o { self.e.put(o, 1); } }",
        "if self.e.contains(&m.b) { let k = { let o = o; o.unwrap_or(m.a) }; self.d.put(k, 1); } else { let k = { let (o, _) = (o, 1); o.unwrap_or(m.a) }; self.e.put(k, 1); }",
        "if self.e.contains(&m.b) { let k = if let Some(o) = o && o > 1 { o } else { 1 }; self.d.put(k, 1); } else { let k = match o { Some(o) if o > 1 => o, _ => 2 }; self.e.put(k, 1); }",
        "if self.e.contains(&m.b) { let k = (|o: Option<u64>| o.unwrap_or(1))(o); self.d.put(k, 1); } else { let k = (move |o: Option<u64>| o.unwrap_or(2))(o); self.e.put(k, 1); }",
        "match self.e.get(&m.b) { Some(1) => { while let Some(o) = o { self.d.put(o, 1); break; } } _ => { if let Some(o @ 1..) = o { self.e.put(o, 1); } } }",
    ] {
        let map = map(&format!("let o = Some(m.a); {branches}"));
        assert_eq!(map.matches(kept).count(), 2, "{branches}\n    {map}");
    }

    // inside the pattern's scope, the name does not refer to the local
    let body = "let o = Some(m.a); if self.e.contains(&m.b) { let k = match o { Some(o) => { let q = o; q } None => 1 }; self.d.put(k, 1); } else { self.e.put(o.unwrap_or(2), 1); }";
    assert!(map(body).contains("Some(o)=>{letq=o;q}"), "{}", map(body));
}

#[test]
fn a_part_that_several_branches_move_is_cloned() {
    for (moves, text) in [
        ("let w = p.0; self.d.put(w.len(), 1);", "letw=::core::clone::Clone::clone(&p.0);"),
        ("let w = Some(p.0); self.q.put((w, 1), 1);", "Some(::core::clone::Clone::clone(&p.0))"),
        ("for k in p.0 { self.d.put(k, 1); }", "forkin::core::clone::Clone::clone(&p.0){"),
        (
            "let w = p.0.into_iter().max(); self.q.put((w, 1), 1);",
            "::core::clone::Clone::clone(&p.0).into_iter()",
        ),
        ("let w = vec![p.0]; self.d.put(w.len(), 1);", "vec![::core::clone::Clone::clone(&p.0)]"),
        ("if let [k, ..] = p.0[..] { self.d.put(k, 1); }", "iflet[k,..]=p.0[..]{"),
        ("let [w] = [p.0]; self.d.put(w.len(), 1);", "[::core::clone::Clone::clone(&p.0)]"),
        ("let w = p; self.d.put(w.0.len(), 1);", "letw=::core::clone::Clone::clone(&p);"),
    ] {
        let body = format!(
            "let p = (m.items.clone(), m.a); if self.e.contains(&m.b) {{ {moves} }} else {{ let u = p.0; self.e.put(u.len(), 1); }}"
        );
        let map = map(&body);
        assert!(map.contains(text), "{body}\n    {map}");
    }

    // a closure that is called inside the literal does not make it a view
    let body = "let p = (m.items.clone(), ((|q: u64| q ^ 2)(m.b))); if self.e.contains(&m.b) { let w = p.0; self.d.put(w.len(), 1); } else { let w = (p.0, 1); self.e.put(w.0.len(), p.1); }";
    assert_eq!(map(body).matches("::core::clone::Clone::clone(&p.0)").count(), 2, "{}", map(body));
    // a pattern moves a field only out of a value that is certainly not a reference
    let body = "let p = (Some(m.items.clone()), m.a); if self.e.contains(&m.b) { if let Some(w) = p.0 { self.d.put(w.len(), 1); } } else if let Some(w) = p.0 { self.e.put(w.len(), 1); }";
    assert_eq!(map(body).matches("::core::clone::Clone::clone(&p.0)").count(), 2, "{}", map(body));
    let body = "let p = &m.inner; if self.e.contains(&m.b) { if let 1.. = p.id { self.d.put(p.id, 1); } } else { let k = p.id; self.e.put(k, 1); }";
    assert!(!map(body).contains("Clone::clone"), "{}", map(body));
    // another field, which only one branch moves, need not be `Clone`
    let body = "let p = (m.items.clone(), vec![m.a]); if self.e.contains(&m.b) { let w = p.0; self.d.put(w.len(), 1); } else { let w = p.1; self.e.put(w.len(), 1); }";
    assert!(!map(body).contains("clone(&p."), "{}", map(body));
    // a type that the body declares without `Clone`: its fields are cloned, but not the whole value
    let own = "struct P { t: Vec<u64>, k: u64 } let p = P { t: m.items.clone(), k: m.a };";
    let body = format!(
        "{own} if self.e.contains(&m.b) {{ let w = p.t; self.d.put(w.len(), 1); }} else {{ let w = p.t; self.e.put(w.len(), p.k); }}"
    );
    assert_eq!(map(&body).matches("::core::clone::Clone::clone(&p.t)").count(), 2, "{}", map(&body));
}

#[test]
fn what_a_reference_yields_is_not_a_reference() {
    for value in [
        "let rest = &mut m.items.iter(); let n = rest.by_ref().take(1).fold(2, |p, q| p ^ q);",
        "let mut it = m.items.iter(); let r = &mut it; let n = r.next();",
        "let mut v = m.items.clone(); let r = &mut v; let n = r.pop();",
        "let mut v = m.items.clone(); let n = v.drain(..).max();",
        "let mut v = m.items.clone(); let n = v.iter_mut().map(|q| *q ^ 1).max();",
        "let mut v = m.items.clone(); let r: &mut Vec<u64> = &mut v; let n = r.iter().copied().last();",
        "let mut o = m.opt; let r = &mut o; let n = r.take();",
    ] {
        let body = format!(
            "{value} if self.e.contains(&m.b) {{ self.q.put((n, 1), 1); }} else {{ self.q.put((n, 2), 1); }}"
        );
        assert!(map(&body).contains("(::core::clone::Clone::clone(&n),1)"), "{body}\n{}", map(&body));
    }
}

#[test]
fn what_cannot_be_cloned_is_no_key_after_a_branch_has_moved_it() {
    let cases = [
        "let slot = Some(&mut n); if self.e.contains(&m.b) { if let Some(q) = slot { self.d.put(*q, 1); } } else if let Some(q) = slot { self.e.put(*q, 1); }",
        "let slot = Some(&mut n); if self.e.contains(&m.b) { let q = slot.unwrap(); self.d.put(*q, 1); } else if let Some(q) = slot { self.e.put(*q, 1); }",
        "let views = vec![&mut n]; if self.e.contains(&m.b) { for q in views { self.d.put(*q, 1); } } else { for q in views { self.e.put(*q, 1); } }",
        "let slot = Some(&mut n); match slot { Some(q) if self.e.contains(&m.b) => { self.d.put(*q, 1); } Some(q) => { self.e.put(*q, 1); } None => {} }",
        "let run: Box<dyn Fn(u64) -> u64> = Box::new(|q| q ^ 1); if self.e.contains(&m.b) { let f = run; self.d.put(f(m.a), 1); } else { self.e.put(run(m.b), 1); }",
        "let mut v = m.items.clone(); let it = v.iter_mut(); if self.e.contains(&m.b) { for q in it { self.d.put(*q, 1); } } else { for q in it { self.e.put(*q, 1); } }",
        "let mut v = m.items.clone(); let it = v.drain(..); if self.e.contains(&m.b) { let w = (it, 1); for q in w.0 { self.d.put(q, 1); } } else { for q in it { self.e.put(q, 1); } }",
        "let mut change = || { n ^= 1; n }; if self.e.contains(&m.b) { let mut run = change; self.d.put(run(), 1); } else { let mut run = change; self.e.put(run(), 1); }",
        "let mut views = vec![]; views.push(&mut n); if self.e.contains(&m.b) { for q in views { self.d.put(*q, 1); } } else { for q in views { self.e.put(*q, 1); } }",
        "let mut slot = None; slot = Some(&mut n); if self.e.contains(&m.b) { if let Some(q) = slot { self.d.put(*q, 1); } } else if let Some(q) = slot { self.e.put(*q, 1); }",
        "let mut v = m.items.clone(); for q in v.iter_mut() { if self.e.contains(&m.b) { let r = q; self.d.put(*r, 1); } else { let r = q; self.e.put(*r, 1); } }",
        "let mut o = m.opt; if let Some(q) = &mut o { if self.e.contains(&m.b) { let r = q; self.d.put(*r, 1); } else { let r = q; self.e.put(*r, 1); } }",
        "let mut v = m.items.clone(); let q = v.iter_mut().find(|q| **q > 1); if self.e.contains(&m.b) { let r = q; self.q.put((r, 1), 1); } else { let r = q; self.q.put((r, 2), 1); }",
        "let mut v = m.items.clone(); let mut views: Vec<&mut u64> = v.iter_mut().collect(); let q = views.pop(); if self.e.contains(&m.b) { let r = q; self.q.put((r, 1), 1); } else { let r = q; self.q.put((r, 2), 1); }",
        "let mut v = m.items.clone(); let r = &mut v.iter_mut(); let q = r.next(); if self.e.contains(&m.b) { let r = q; self.q.put((r, 1), 1); } else { let r = q; self.q.put((r, 2), 1); }",
        "let p = (m.a, &mut n); if self.e.contains(&m.b) { let r = p.1; self.d.put(*r, 1); } else { let r = (p.1, 1); self.e.put(*r.0, 1); }",
        "let mut v = m.items.clone(); let it = v.iter_mut(); if self.e.contains(&m.b) { let w = vec![it]; for q in w { self.q.put((q, 1), 1); } } else { let w = vec![it]; for q in w { self.q.put((q, 2), 1); } }",
        "struct P(Vec<u64>); let p = P(m.items.clone()); if self.e.contains(&m.b) { let P(w) = p; self.d.put(w.len(), 1); } else { let P(w) = p; self.e.put(w.len(), 1); }",
        "let r = std::convert::identity(&mut n); if self.e.contains(&m.b) { let q = r; self.d.put(*q, 1); } else { self.e.put(*r, 1); }",
    ];
    for body in cases.map(|body| format!("let mut n = m.a; {body}")) {
        let found = errors(&handler(&body));
        assert!(
            found.len() == 1 && found[0].contains("the map, which runs all branches, cannot clone it"),
            "{body}\n{found:?}"
        );
    }

    // keys that do not depend on the moved value, and the alternative that the error suggests
    for body in [
        "let mut n = m.a; let views = vec![&mut n]; if self.e.contains(&m.b) { for q in views { self.d.put(m.a, *q); } } else { for q in views { self.e.put(m.b, *q); } }",
        "let mut n = m.a; let slot = Some(&mut n); if self.e.contains(&m.b) { if let Some(q) = &slot { self.d.put(**q, 1); } } else if let Some(q) = &slot { self.e.put(**q, 1); }",
    ] {
        assert!(!map(body).contains("Clone::clone"), "{body}\n{}", map(body));
    }
}

#[test]
fn what_mem_take_and_mem_replace_return_is_no_view() {
    for taken in [
        "let mut own = m.items.clone(); let q = std::mem::take(&mut own);",
        "let mut own = m.items.clone(); let q = std::mem::replace(&mut own, vec![]);",
        "let mut own = (m.items.clone(), 1); let q = std::mem::take(&mut own.0);",
        "let mut own = Some(m.items.clone()); let q = core::mem::replace(&mut own, None).unwrap_or_default();",
        "let mut own = m.items.clone(); own.sort(); let q = { std::mem::take(&mut own) };",
    ] {
        let body = format!(
            "{taken} if self.e.contains(&m.b) {{ let w = q; self.d.put(w.len(), 1); }} else {{ let w = (q, 1); self.e.put(w.0.len(), 1); }}"
        );
        assert!(map(&body).contains("letw=::core::clone::Clone::clone(&q)"), "{body}\n{}", map(&body));
    }
}

#[test]
fn what_is_taken_out_of_a_local_that_holds_a_view_is_one() {
    for body in [
        "let mut n = m.a; let mut slot = Some(&mut n); if let Some(r) = std::mem::take(&mut slot) { *r ^= 1; } self.d.put(n, 1);",
        "let mut n = m.a; let mut slot = (Some(&mut n), 1); if let Some(r) = std::mem::replace(&mut slot.0, None) { *r ^= 1; } self.d.put(n, 1);",
        "let mut n = m.a; let mut all = vec![&mut n]; let r = &mut all; for q in std::mem::take(&mut *r) { *q ^= 1; } self.d.put(n, 1);",
    ] {
        let map = map(body);
        assert!(map.contains("^=1"), "{body}\n{map}");
    }
}
