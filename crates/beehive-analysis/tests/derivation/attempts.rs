//! `attempt! { .. }`: the map contains its cells whether or not it is rolled back, and control leaves it only
//! through its value.

use crate::{block, errors, handler};

fn cells(body: &str) -> String {
    let d = handler(body);
    assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    format!("{}: {}", d.handlers[0].kind, d.handlers[0].cells)
}

#[test]
fn what_a_block_touches_is_part_of_the_map() {
    let cases: &[(&str, &str)] = &[
        ("let _ = attempt! { self.d.put(m.a, 1); Ok(()) };", "sharded: d[m.a]"),
        ("let _ = attempt! { if m.flag { Err(E)? } Ok(()) };", "stateless: -"),
        (
            "let r = attempt! { let v = *self.d.get(&m.a).ok_or(E)?; self.e.put(m.b, v); Ok(v) }; self.f.put(m.c, r.is_ok());",
            "sharded: d[m.a], e[m.b], f[m.c]",
        ),
        (
            "let _ = attempt! { let p = m.opt.ok_or(E)?; self.d.put(p, 1); Ok(()) }; self.e.put(m.a, 1);",
            "sharded: d[m.opt.ok_or(E)?], e[m.a]",
        ),
        (
            "let _ = attempt! { self.d.put(m.a, 1); let _ = attempt! { self.e.get(&m.b).ok_or(E)?; self.f.put(m.c, 1); Ok(()) }; Ok(()) };",
            "sharded: d[m.a], e[m.b], f[m.c]",
        ),
        (
            "for x in &m.items { let _ = attempt! { if self.d.contains(x) { Err(E)? } self.e.put(*x, 1); Ok(()) }; }",
            "sharded: d[x] for x in m.items, e[x] for x in m.items",
        ),
        (
            "let _ = attempt! { for x in &m.items { if self.d.contains(x) { break; } self.e.put(*x, 1); } Ok(()) };",
            "sharded: d[x] for x in m.items, e[x] for x in m.items",
        ),
        (
            "let _ = attempt! { self.both(m.a)?; Ok(()) }; } fn both(&mut self, k: u64) -> Result { self.d.get(&k).ok_or(E)?; Ok(()) ",
            "sharded: d[m.a]",
        ),
    ];

    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(body, want)| {
            let got = cells(body);
            (got != *want).then(|| format!("{body}\n    wanted {want:?}, got {got:?}"))
        })
        .collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_refused() {
    let cases: &[(&str, &str)] = &[
        ("let r = attempt! { Ok(m.a) }; self.d.put(r.unwrap(), 1);", "not a function of the message"),
        (
            "let _ = attempt! { let v = *self.d.get(&m.a).ok_or(E)?; self.e.put(v, 1); Ok(()) };",
            "not a function of the message",
        ),
        ("let _ = attempt! { if m.flag { return; } Ok(()) };", "`return` would leave the attempt"),
        (
            "for x in &m.items { let _ = attempt! { if m.flag { break; } Ok(()) }; }",
            "`break` would leave the attempt",
        ),
        (
            "for x in &m.items { let _ = attempt! { if m.flag { continue; } Ok(()) }; }",
            "`continue` would leave the attempt",
        ),
        (
            "'l: for x in &m.items { let _ = attempt! { loop { break 'l; } Ok(()) }; }",
            "`break` would leave the attempt",
        ),
        ("let _ = attempt! { self.d.put(m.a, 1; Ok(()) };", "expected"),
        (
            "let mut k = m.a; let _ = attempt! { self.d.get(&m.a).ok_or(E)?; k = m.b; Ok(()) }; self.e.put(k, 1);",
            "assigned",
        ),
    ];

    for (body, want) in cases {
        let items = format!("#[rcv] fn h(&mut self, m: &Msg, ctx: &mut Ctx) {{ {body} }}");
        let Ok(tokens) = items.parse::<proc_macro2::TokenStream>() else {
            continue; // text that is not valid tokens never reaches the macro
        };

        drop(tokens);
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains(want)), "{body}\n    wanted {want:?}, got {found:?}");
    }

    let without = errors(&block(
        "#[rcv] fn h(&mut self, m: &Msg) { Self::f(m) } fn f(m: &Msg) { let _ = attempt! { Ok(()) }; }",
    ));

    assert!(without.iter().any(|e| e.contains("takes `&mut self`")), "{without:?}");
}

#[test]
fn the_compiler_is_told_the_app_and_the_context() {
    let d = handler("let _ = attempt! { let _ = attempt! { Ok(()) }; Ok(()) };");
    let printed = d.tokens.to_string().replace(' ', "");
    assert_eq!(
        printed.matches("attempt!{@inself,::core::option::Option::Some(&mut*ctx),").count(),
        2,
        "{printed}"
    );
}

#[test]
fn a_map_that_takes_self_is_refused_with_the_reason() {
    let found = errors(&block(
        "#[rcv(map = Self::cells)] fn h(&mut self, m: &Msg) { self.d.put(m.a, 1); } fn cells(&self, m: &Msg, mapper: &mut Mapper) {}",
    ));
    assert!(
        found.iter().any(|e| e.contains("`cells` takes `self`") && e.contains("a different bee,")),
        "{found:?}"
    );
    let found = errors(&block(
        "#[rcv(map = Self::cells)] fn h(&mut self, m: &Msg) { self.d.put(m.a, 1); } fn cells(m: &Msg, mapper: &mut Mapper) {}",
    ));

    assert!(found.is_empty(), "{found:?}");
}
