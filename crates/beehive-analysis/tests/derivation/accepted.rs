//! Bodies that the analysis must accept, with the maps that it must derive.

use crate::{errors, handler};

fn found(body: &str) -> String {
    let d = handler(body);
    assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    format!("{}: {}", d.handlers[0].kind, d.handlers[0].cells)
}

fn map(body: &str) -> String {
    let d = handler(body);
    assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    d.handlers[0].map.to_string().replace(' ', "")
}

#[test]
fn kinds_and_cells() {
    let cases: &[(&str, &str)] = &[
        ("self.d.get(&m.a);", "sharded: d[m.a]"),
        (
            "let mut it = m.items.iter(); it.next(); if let Some(k) = it.next() { self.d.get(k); }",
            "sharded: d[k]",
        ),
        (
            "let mut v = vec![m.a]; for x in v.iter_mut() { *x += m.b; } for k in &v { self.d.get(k); }",
            "sharded: d[k] for k in v",
        ),
        ("let (a, _x) = (m.a, self.e.get(&m.b)); self.d.get(&a);", "sharded: e[m.b], d[m.a]"),
        (
            "match self.d.get(&m.a) { Some(v) => ctx.emit(*v), None => { self.e.put(m.b, 1); } }",
            "sharded: d[m.a], e[m.b]",
        ),
        (
            "let near = |n: u64| { let mut k = n; loop { if k % 3 == 0 { return k; } k += 1; } }; self.d.put(near(m.a), 1);",
            "sharded: d[near(m.a)]",
        ),
        // a name that a closure or a pattern binds is not the local of that name
        (
            "let k = m.a; self.d.put(m.items.iter().fold(k, |p, k| p ^ k), 1);",
            "sharded: d[m.items.iter().fold(k, |p, k |p ^ k)]",
        ),
        (
            "let q = m.a; self.d.put(match m.opt { Some(q) => q, None => 1 }, q);",
            "sharded: d[match m.opt { Some(q) => q, None => 1 }]",
        ),
        ("ctx.emit(m.a);", "stateless: -"),
        ("m.reply.send(1);", "stateless: -"),
        ("let _ = m.reply.send(1);", "stateless: -"),
        ("if m.skip { return; } tracing::info!(\"x\");", "stateless: -"),
        ("let _x = m.a;", "drop: -"),
        ("self.d.put(7, 1);", "centralized: d[7]"),
        (
            "self.inc(\"gen\".into()); } fn inc(&mut self, name: String) { *self.g.entry(name) += 1;",
            "centralized: g[\"gen\".into()]",
        ),
        ("for (k, v) in self.d.whole().iter() { ctx.emit((*k, *v)); }", "centralized: d[*]"),
        (
            "macro_rules! twice { ($x:expr) => { $x * 2 } } self.d.get(&pure!(twice!(m.a)));",
            "sharded: d[pure!(twice!(m.a))]",
        ),
        (
            "self.both(m.a, m.b); } fn both(&mut self, x: u64, y: u64) { self.d.get(&x); self.e.get(&(y + 1));",
            "sharded: d[m.a], e[m.b + 1]",
        ),
        (
            "let Self { d, e, limit, .. } = self; d.get(&m.a); e.get(&m.b); limit.check();",
            "sharded: d[m.a], e[m.b]",
        ),
        (
            "let mut v = m.items.clone(); v.sort(); let z = v.iter().zip(&m.pairs); for (x, _) in z { if self.d.contains(x) { break } }",
            "sharded: d[x] for (x, _) in z",
        ),
        ("self.found.at(ctx.origin()).insert(m.a, 1);", "sharded: found[ctx.origin()]"),
        ("if self.d.shared().iter().any(|r| r.fits(m)) { self.e.put(m.a, 1); }", "sharded: e[m.a]"),
        ("if m.b > self.config.limit { self.d.put(m.a, 1); }", "sharded: d[m.a]"),
        ("self.rows.at(m.node.clone()).insert(m.a, 1);", "sharded: rows[m.node]"),
        (
            "let mut k = m.a; if self.d.get(&k).copied().unwrap_or(0) > 1 { self.e.get(&k); }",
            "sharded: d[k], e[k]",
        ),
    ];

    let mut wrong = vec![];
    for (body, want) in cases {
        let got = found(body);
        if got != *want {
            wrong.push(format!("{body}\n    wanted {want:?}, got {got:?}"));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An answered message must not be dropped, even if the handler touches no cell.
#[test]
fn an_answer_is_an_effect() {
    let kind = |output: &str, body: &str| {
        let d = crate::block(&format!("#[rcv] fn h(&mut self, m: &Msg) -> {output} {{ {body} }}"));
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        d.handlers[0].kind.clone()
    };

    for (output, body, want) in [
        ("Option<u64>", "Some(m.a)", "stateless"),
        ("u64", "m.a + 1", "stateless"),
        ("Option<u64>", "let answer = m.opt; answer", "stateless"),
        ("Option<u64>", "if m.flag { None } else { Some(1) }", "stateless"),
        ("Option<u64>", "match m.kind { K::A => return None, _ => { { Some(1) } } }", "stateless"),
        ("Option<u64>", "loop { if m.flag { break Some(1) } return None; }", "stateless"),
        ("Option<u64>", "if m.flag { return Some(m.a) } None", "stateless"),
        ("String", "format!(\"{}\", m.a)", "stateless"),
        ("Result<Option<u64>>", "Ok(Some(1))", "stateless"),
        ("Result", "if m.flag { Err(\"no\".into()) } else { Ok(()) }", "stateless"),
        (
            "Result",
            "self.check(m.a)?; Ok(()) } fn check(&self, a: u64) -> Result { if a > 3 { Err(\"no\".into()) } else { Ok(()) }",
            "stateless",
        ),
        ("Option<u64>", "None", "drop"),
        ("Option<u64>", "if m.flag { return None } None", "drop"),
        ("Option<u64>", "let x = { let y = Some(1); y }; None", "drop"),
        ("Result<Option<u64>>", "Ok(None)", "drop"),
        ("Result", "Ok(())", "drop"),
        ("()", "()", "drop"),
    ] {
        assert_eq!(kind(output, body), want, "{output}: {body}");
    }
}

/// If a variable may be a view of a variable that the map needs, a change through the view also changes the needed
/// variable. A map that prints the change must declare both variables.
#[test]
fn what_a_map_changes_it_declares() {
    let got = map(
        "let mut x = m.a; if x > 1 { let mut y = ({ let y = x; y }); y = m.o.unwrap_or(x); } self.d.put(x, 1);",
    );
    assert_eq!(got.contains("y=m.o"), got.contains("letmuty"), "{got}");
}

#[test]
fn the_map_is_a_slice_of_the_body() {
    let got = map(
        "if let Some(p) = m.opt && self.d.contains(&p) { self.e.put(key(), 1) } else { self.e.put(m.b, 1) }"
            .replace("key()", "m.a")
            .as_str(),
    );

    assert_eq!(
        got,
        "ifletSome(p)=m.opt{::beehive::__private::At(Self::__bh_d,&(&p)).cell(__m);{::beehive::__private::AtValue(Self::__bh_e,&(m.a)).cell(__m);}}{{::beehive::__private::AtValue(Self::__bh_e,&(m.b)).cell(__m);}}"
    );
}

#[test]
fn the_pure_half_of_an_or_leaves_for_certain() {
    let got = map("if m.lldp || self.d.contains(&m.a) { return } self.e.put(m.b, 1);");
    assert!(
        got.contains(
            "let__certain1:bool=m.lldp;if!__certain1{::beehive::__private::At(Self::__bh_d,&(&m.a)).cell(__m);}"
        ),
        "{got}"
    );
    assert!(got.contains("'__bh1:{{__left1=__certain1;break'__bh1};}if__left1{return}"), "{got}");
}

#[test]
fn what_no_key_needs_is_not_computed() {
    let got = map(
        "let big: Vec<String> = m.items.iter().map(|x| format!(\"{x}\")).collect(); self.d.put(m.a, 1); ctx.emit(big);",
    );
    assert_eq!(got, "::beehive::__private::AtValue(Self::__bh_d,&(m.a)).cell(__m);");
}

#[test]
fn a_field_is_not_cloned_only_to_be_hashed() {
    assert_eq!(
        map("self.d.put(m.name.clone(), 1);"),
        "::beehive::__private::AtValue(Self::__bh_d,&(m.name)).cell(__m);"
    );
}

#[test]
fn joins_are_different_keys_in_one_message() {
    let joins = |body: &str| handler(body).handlers[0].joins.clone();
    // the same key, written in different ways
    assert_eq!(
        joins(
            "let k = m.a; self.d.get(&k); self.e.put(m.a, 1); self.f.put(m.a.clone(), 1); let r = &k; self.d.get(r); self.e.put(*r, 2);"
        ),
        ""
    );

    assert_eq!(joins("if m.flag { self.d.get(&m.a); } else { self.d.get(&m.b); }"), "");
    assert_eq!(joins("if m.flag { self.d.get(&m.a); return } self.d.get(&m.b);"), "");
    assert_eq!(joins("match m.kind { A => self.d.get(&m.a), _ => self.d.get(&m.b) };"), "");
    assert_eq!(joins("for _ in &m.items { self.d.get(&m.a); }"), "");
    assert_eq!(joins("self.touch(m.a); } fn touch(&mut self, k: u64) { self.d.get(&k); self.e.get(&k);"), "");

    // different keys
    assert_eq!(joins("self.d.get(&m.a); self.e.get(&m.b);"), "d[m.a] with e[m.b]");
    assert_eq!(joins("if self.d.contains(&m.a) { self.e.get(&m.b); }"), "d[m.a] with e[m.b]");
    assert_eq!(joins("for x in &m.items { self.d.get(x); }"), "d[x] for x in m.items");
    assert_eq!(joins("let mut i = 0; while i < m.n { self.d.get(&i); i += 1; }"), "d[i]");
    assert_eq!(joins("let mut k = m.a; self.d.get(&k); k = m.b; self.d.get(&k);"), "several values of d[k]");

    assert_eq!(
        joins("for x in &m.items { self.touch(*x); } } fn touch(&mut self, k: u64) { self.d.get(&k);"),
        "d[x] for x in m.items"
    );
    assert_eq!(
        joins("for x in &m.items { if *x > 3 { self.d.get(&m.a); } else { self.d.get(&m.b); } }"),
        "d[m.a] with d[m.b]"
    );

    assert_eq!(
        joins("self.touch(m.a); self.touch(m.b); } fn touch(&mut self, k: u64) { self.d.get(&k);"),
        "d[m.a] with d[m.b]"
    );
}

/// A local that may change cannot be replaced by its initial value, whether it is a parameter or a local of a
/// helper.
#[test]
fn a_value_that_changes_is_another_key_in_a_helper_too() {
    let joins = |body: &str| handler(body).handlers[0].joins.clone();
    assert_eq!(
        joins("self.touch(m.a); } fn touch(&mut self, mut k: u64) { self.d.get(&k); k += 1; self.e.get(&k);"),
        "d[k] with e[k]"
    );
    assert_eq!(
        joins(
            "self.walk(m.a, m.b); } fn walk(&mut self, mut k: u64, end: u64) { while k < end { self.d.get(&k); k += 1; }"
        ),
        "d[k]"
    );

    let touch = "fn touch(&mut self, k: u64) { let mut n = k; n += 1; self.d.get(&n);";
    assert_eq!(joins(&format!("self.touch(m.a); self.touch(m.b); }} {touch}")), "several values of d[n]");
    assert_eq!(joins(&format!("self.touch(m.a); self.touch(m.a); }} {touch}")), "");
    assert_eq!(
        joins(
            "self.both((m.a, m.b)); } fn both(&mut self, (a, b): (u64, u64)) { self.d.get(&a); self.e.get(&b);"
        ),
        "d[a] with e[b]"
    );
}

#[test]
fn a_closure_may_drop_the_result_of_a_change() {
    for change in [
        "let _ = v.pop();",
        "let _last = v.pop();",
        "v.pop();",
        "let _ = std::mem::take(&mut v);",
        "let _ = v.remove(0);",
    ] {
        let body = format!(
            "let mut v = m.items.clone(); let mut change = || {{ {change} }}; change(); for k in v {{ self.d.put(k, 1); }}"
        );
        assert!(map(&body).contains("change();"), "{body}");
    }
}

#[test]
fn a_loop_whose_own_code_decides_where_it_ends_is_followed() {
    for body in [
        "std::iter::successors(Some(m.a), |k| k.checked_sub(2)).for_each(|k| { self.d.put(k, 1); });",
        "for k in std::iter::successors(Some(m.a), |k| k.checked_sub(2)) { self.d.put(k, 1); }",
        "for k in (0..).take_while(|k| *k < m.a) { self.d.put(k, 1); }",
        "for k in std::iter::successors(m.opt, |k| k.checked_sub(1)).filter(|k| k % 2 == 0) { self.d.put(k, 1); }",
        "for k in (1..).map_while(|k| m.a.checked_sub(k)) { self.d.put(k, 1); }",
    ] {
        assert!(found(body).starts_with("sharded: d["), "{body}\n{}", found(body));
    }
    for body in [
        "for k in std::iter::successors(Some(m.a), |k| Some(k + 1)) { if !self.d.contains(&k) { break; } }",
        "for k in (0..).take_while(|k| *k < m.a || m.flag) { if !self.d.contains(&k) { break; } }",
    ] {
        let found = errors(&handler(body));
        assert!(found.len() == 1 && found[0].contains("only state ends this loop"), "{body}\n{found:?}");
    }
}

#[test]
fn a_jump_inside_of_a_macro_does_not_leave_it() {
    for body in [
        "for k in vec![(loop { break m.b }) % 9] { self.d.put(k, 1); }",
        "if matches!(m.opt, Some(q) if q > (loop { break m.b })) { self.d.put(m.a, 1); }",
        "if matches!({ 'l: { if m.flag { break 'l m.a; } m.b } }, 2..) { self.d.put(m.a, 1); }",
        "let k = pure!(shard('k: { if m.flag { break 'k m.a; } m.b })); self.d.put(k, 1);",
        "let k = format!(\"{}\", { let mut n = 0; while n < m.a { n += 1; if n > 3 { break; } } n }); self.d.put(k, 1);",
        "for k in vec![{ let mut n = 0; for x in &m.items { if *x > 2 { continue; } n += 1; } n }] { self.d.put(k, 1); }",
        "for k in vec!['a: { loop { if m.flag { break 'a m.a; } break; } m.b }] { self.d.put(k, 1); }",
    ] {
        assert!(found(body).starts_with("sharded: d["), "{body}\n{}", found(body));
    }
    let body = "for x in &m.items { let v = vec![if *x > 2 { break } else { *x }]; self.d.put(v[0], 1); }";
    assert_eq!(errors(&handler(body)).len(), 1, "{body}");
}
