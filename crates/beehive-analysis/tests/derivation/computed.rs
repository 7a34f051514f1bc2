//! Values that are computed by loops, labeled blocks, guards with patterns and `dbg!`, and locals that several
//! branches move.

use crate::{errors, handler};

#[test]
fn values_that_control_flow_computes_are_known() {
    for (body, kept) in [
        (
            "let mut n = m.a; let k = loop { n /= 2; if n < 3 { break n + 1; } }; self.d.put(k, 1);",
            "letk=loop{__m.step();n/=2;ifn<3{breakn+1;}};",
        ),
        (
            "let k = 'k: { if m.flag { break 'k m.a; } m.b }; self.d.put(k, 1);",
            "letk='k:{ifm.flag{break'km.a;}m.b};",
        ),
        (
            "let k = 'o: loop { for x in &m.items { if *x > 3 { break 'o *x; } } break m.b; }; self.d.put(k, 1);",
            "'o:loop{__m.step();forxin&m.items{__m.step();",
        ),
        (
            "let k = { let mut s = 0; while s * s < m.a { s += 1; } s }; self.d.put(k, 1);",
            "whiles*s<m.a{__m.step();s+=1;}",
        ),
        ("let k = dbg!(m.a) + 1; self.d.put(k, 1);", "letk=(m.a)+1;"),
        ("let (a, b) = dbg!(m.a, m.b); self.d.put(a, b);", "=(m.a,m.b,);"),
        ("let k = dbg!(m.opt?); self.d.put(k, 1); Some(1)", "ok_like(m.opt)"),
        (
            "match m.opt { Some(k) if let Some(x) = m.items.get(k as usize) => { self.d.put(*x, 1); } _ => {} }",
            "Some(k)ifletSome(x)=m.items.get(kasusize)=>",
        ),
        (
            "match m.opt { Some(k) if let Some(x) = m.items.first() && *x > k => { self.d.put(*x + k, 1); } _ => {} }",
            "Some(k)ifletSome(x)=m.items.first()&&*x>k=>",
        ),
    ] {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(d.errors.is_empty() && map.contains(kept), "{body}\n{:?}\n{map}", errors(&d));
    }
}

/// If a branch of a value emits and returns, the map omits the branch, but the emission counts as an effect,
/// so the message is not dropped.
#[test]
fn a_branch_that_emits_and_leaves_is_understood() {
    for (body, kept) in [
        (
            "let k = match m.opt { Some(k) => k, None => { ctx.emit(Bad(m.a)); return; } }; self.d.put(k, 1);",
            "__m.effect();letk=matchm.opt{Some(k)=>k,None=>{;return;}};",
        ),
        (
            "let k = if let Some(k) = m.opt { k } else { ctx.emit(Bad(m.a)); return; }; self.d.put(k, 1);",
            "else{;return;};",
        ),
        (
            "for x in &m.items { let k = match x.checked_sub(m.a) { Some(k) => k, None => { ctx.emit(Bad(*x)); continue } }; self.e.put(k, 1); }",
            "None=>{;continue}",
        ),
        (
            "let k = match m.opt { Some(k) => k, None => { let n = m.a + 1; ctx.after(Bad(n), SECOND); n } }; self.d.put(k, 1);",
            "None=>{letn=m.a+1;;n}",
        ),
    ] {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(
            d.errors.is_empty() && map.contains(kept) && map.contains("effect"),
            "{body}\n{:?}\n{map}",
            errors(&d)
        );
    }

    for body in [
        "let k = match m.opt { Some(k) => k, None => { ctx.emit(Bad(self.d.get(&m.a).copied())); return; } }; self.e.put(k, 1);",
        "let mut n = m.a; let k = match m.opt { Some(k) => k, None => { ctx.emit(Bad({ n += 1; n })); n } }; self.e.put(k, 1);",
    ] {
        assert!(!errors(&handler(body)).is_empty(), "{body}");
    }
}

/// If the map does not run an expression that changes a local, the local is unknown only after that expression,
/// unless the handler returns to earlier code in a loop.
#[test]
fn a_local_is_known_until_it_is_lost() {
    for body in [
        "let mut n = m.a; n += 1; self.d.put(n, 1); ctx.emit(Total({ n += 1; n }));",
        "let mut v = m.items.clone(); for k in &v { self.d.put(*k, 1); } ctx.emit(All(std::mem::take(&mut v)));",
        "let mut v = m.items.clone(); self.d.put(v[0], 1); if self.e.contains(&m.a) { v.clear(); ctx.emit(All(v)); }",
        "let mut v = m.items.clone(); for k in &v { self.d.put(*k, 1); } let r = &mut v; keep(r);",
        "for x in &m.items { let mut n = *x; self.d.put(n, 1); ctx.emit(Total({ n += 1; n })); }",
        "let mut n = m.a; let mut next = || { n += 1; n }; self.d.put(next(), 1); ctx.emit(Total(next()));",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty() && d.handlers[0].cells != "-", "{body}\n{:?}", errors(&d));
    }

    for body in [
        "let mut n = m.a; ctx.emit(Total({ n += 1; n })); self.d.put(n, 1);",
        "let mut n = m.a; for _ in &m.items { self.d.put(n, 1); ctx.emit(Total({ n += 1; n })); }",
        "let mut n = m.a; loop { self.d.put(n, 1); if n > 9 { break; } ctx.emit(Total({ n += 1; n })); }",
        "let mut n = m.a; let mut next = || { n += 1; n }; ctx.emit(Total(next())); self.d.put(next(), 1);",
        "let mut v = m.items.clone(); if self.e.contains(&m.a) { v.clear(); } for k in &v { self.d.put(*k, 1); }",
        "let mut n = m.a; while self.e.contains(&m.b) { self.d.put(n, 1); n += 1; }",
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains("is not a function of the message")), "{body}\n{found:?}");
    }
}

/// A function without state may check its arguments: the map calls it and catches the panic.
#[test]
fn a_function_that_asserts_may_compute_a_key() {
    for body in [
        "self.d.put(Self::slot(m.a), 1); } fn slot(k: u64) -> u64 { assert!(k > 0, \"zero\"); k - 1",
        "self.d.put(Self::slot(m.a), 1); } fn slot(k: u64) -> u64 { match k { 0 => 10, k => { debug_assert!(k < 9); 30 } }",
        "let k = m.opt.map(|k| { debug_assert_ne!(k, 0); k / 2 }); self.d.put(k, 1);",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty() && d.handlers[0].cells != "-", "{body}\n{:?}", errors(&d));
    }
}

/// The printed map compiles even if it omits the code that determines a type or the way in which the handler returns.
#[test]
fn what_the_map_leaves_out_does_not_break_it() {
    for (body, kept) in [
        // the type of the number follows from the row
        (
            "let Ok(port) = m.text.parse() else { return }; self.rows.at(m.a).insert(port, 1);",
            "__m.effect();::beehive::__private::AtValue(Self::__bh_rows,&(m.a)).cell(__m);",
        ),
        (
            "let port = m.text.parse().ok()?; self.rows.at(m.a).insert(port, 1); None",
            "__m.effect();::beehive::__private::AtValue(Self::__bh_rows,&(m.a)).cell(__m);",
        ),
        ("self.d.put(m.a, 1); Some(m.text.trim().parse().ok()?)", "AtValue(Self::__bh_d,&(m.a)).cell(__m);"),
        ("let k: u64 = m.text.parse().ok()?; self.d.put(k, 1); None", "letk:u64=match::beehive"),
        ("let k = m.text.parse().ok()?; self.d.put(k, 1); None", "letk=match::beehive"),
        // the map needs only one of the two vectors
        (
            "let (mut up, mut down) = (vec![], vec![]); for x in &m.items { if *x > 3 { up.push(*x) } else { down.push(*x) } } for k in up { self.d.put(k, 1); } ctx.emit(down);",
            "letmutup=vec![];forxin&m.items",
        ),
        ("let (mut a, mut b) = (m.a, m.b); (a, b) = (b, a); self.t.put((a, b), 1);", "(a,b)=(b,a);"),
        ("let (a, b) = (m.a, m.b); let (a, b) = (b, a); self.t.put((a, b), 1);", "let(a,b)=(b,a);"),
        // state decides in which way the handler returns
        (
            "let Some(k) = m.opt else { match self.d.get(&m.a) { Some(_) => return, None => { ctx.emit(m.a); return } } }; self.e.put(k, 1);",
            "return;};::beehive",
        ),
        // one arm has a guard on the message, a different one has a guard on state
        (
            "match m.opt { Some(x) if x > 9 => { self.d.put(x, 1); } Some(x) if self.e.contains(&x) => { self.e.put(x, 2); } _ => {} }",
            "ifletSome(x)=m.opt{",
        ),
    ] {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "").replace("letk=(match", "letk=match");
        let map = map.replace("letk:u64=(match", "letk:u64=match");
        assert!(d.errors.is_empty() && map.contains(kept), "{body}\n{:?}\n{map}", errors(&d));
    }
}

#[test]
fn items_of_the_body_are_items_of_the_map() {
    for (body, kept) in [
        (
            "struct P { a: u64, b: u64 } let p = P { a: m.a, b: m.b }; self.t.put((p.a, p.b), 1);",
            "structP{a:u64,b:u64}",
        ),
        (
            "enum Way { In, Out } impl Way { fn key(self) -> u64 { self as u64 } } let w = if m.flag { Way::In } else { Way::Out }; self.d.put(w.key(), 1);",
            "implWay{",
        ),
        (
            "trait Half { fn half(&self) -> u64; } struct N(u64); impl Half for N { fn half(&self) -> u64 { self.0 / 2 } } self.d.put(N(m.a).half(), 1);",
            "implHalfforN{",
        ),
        ("fn half(x: u64) -> u64 { x / 2 } self.d.put(half(m.a), 1);", "(half(m.a))"),
        (
            "fn half(x: u64) -> u64 { x / 2 } fn both(x: u64, y: u64) -> u64 { half(x) + half(y) } self.d.put(both(m.a, m.b), 1);",
            "(both(m.a,m.b))",
        ),
        (
            "fn fill(v: &mut Vec<u64>, n: u64) { v.push(n); } let mut v = vec![]; fill(&mut v, m.a); self.d.put(v[0], 1);",
            "fill(&mutv,m.a);",
        ),
    ] {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(d.errors.is_empty() && map.contains(kept), "{body}\n{:?}\n{map}", errors(&d));
    }

    for body in [
        "fn clock(x: u64) -> u64 { x + now() } self.d.put(clock(m.a), 1);",
        "fn seen(x: u64) -> u64 { COUNT.fetch_add(x, Relaxed) } self.d.put(seen(m.a), 1);",
        "fn walk(x: u64) -> u64 { if x == 0 { 0 } else { walk(x - 1) } } self.d.put(walk(m.a), 1);",
        "async fn wait(x: u64) -> u64 { x } self.d.put(wait(m.a), 1);",
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains("is not a function of the message")), "{body}\n{found:?}");
    }
}

#[test]
fn values_that_state_decides_are_refused() {
    for body in [
        "let k = loop { if self.d.contains(&m.a) { break m.a; } break m.b; }; self.e.put(k, 1);",
        "let k = loop { break self.d.get(&m.a).copied().unwrap_or(0); }; self.e.put(k, 1);",
        "let k = 'k: { if self.d.contains(&m.a) { break 'k m.a; } m.b }; self.e.put(k, 1);",
        "let k = 'o: loop { for x in &m.items { if self.d.contains(x) { break 'o *x; } } break m.b; }; self.e.put(k, 1);",
        "let k = dbg!(self.d.get(&m.a).copied().unwrap_or(0)); self.e.put(k, 1);",
        "match m.opt { Some(k) if let Some(v) = self.d.get(&k) => { self.e.put(*v, 1); } _ => {} }",
        "match m.opt { Some(k) if let Some(x) = m.items.first() && self.d.contains(&k) => { self.e.put(*x, 1); } _ => {} }",
        "match self.d.get(&m.a) { Some(v) if let Some(x) = m.items.get(*v as usize) => { self.e.put(*x, 1); } _ => {} }",
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains("is not a function of the message")), "{body}\n{found:?}");
    }
}

/// If state decides between branches, the map runs all of them and must not move the same local twice.
#[test]
fn a_local_that_several_branches_move_is_cloned() {
    for (body, kept) in [
        (
            "let n = m.name.clone(); if self.d.contains(&m.a) { self.p.put((n, 1), 1); } else { self.p.put((n, 2), 1); }",
            "(::core::clone::Clone::clone(&n),1)",
        ),
        (
            "let n = m.name.clone(); if self.d.contains(&m.a) { self.q.put(Named { n }, 1); } else { self.q.put(Named { n }, 2); }",
            "Named{n:::core::clone::Clone::clone(&n)}",
        ),
        (
            "let v = m.items.clone(); if self.d.contains(&m.a) { for x in v.into_iter().rev() { self.e.put(x, 1); } } else { for x in v.into_iter() { self.e.put(x, 2); } }",
            "::core::clone::Clone::clone(&v).into_iter()",
        ),
        (
            "let n = m.name.clone(); match self.d.get(&m.a) { Some(_) => { self.q.put(Self::named(n), 1); } None => { self.q.put(Self::named(n), 2); } } } fn named(n: String) -> Named { Named { n }",
            "Self::named(::core::clone::Clone::clone(&n))",
        ),
        (
            "let key = m.o.clone(); match key { Some(k) if self.g.contains(&k) => { self.p.put((k, 1), 1); } Some(k) => { self.g.put(k, 1); } None => {} }",
            "ifletSome(k)=::core::clone::Clone::clone(&key){",
        ),
        (
            "let o = m.o.clone(); if self.d.contains(&m.a) { if let Some(n) = o { self.g.put(n, 1); } } else if let Some(n) = o { self.g.put(n, 2); }",
            "ifletSome(n)=::core::clone::Clone::clone(&o)",
        ),
    ] {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(d.errors.is_empty() && map.contains(kept), "{body}\n{:?}\n{map}", errors(&d));
    }

    // a local that is moved only once, or not under a condition on state
    for body in [
        "let n = m.name.clone(); if self.d.contains(&m.a) { self.q.put(Named { n }, 1); }",
        "let n = m.name.clone(); self.q.put(Named { n: n.clone() }, 1); if self.d.contains(&m.a) { self.e.put(n.len(), 1); }",
    ] {
        let map = handler(body).handlers[0].map.to_string().replace(' ', "");
        assert!(!map.contains("Clone::clone"), "{body}\n{map}");
    }
}
