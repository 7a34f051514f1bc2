//! Macros are recognized by the meaning of their names, not by the names alone.

use crate::{errors, handler};

fn tokens(body: &str) -> String {
    let d = handler(body);
    assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    d.tokens.to_string().replace(' ', "")
}

/// If the user defines a macro with a known name, the compiler refuses the call, because the name is
/// ambiguous in the generated check.
#[test]
fn a_bare_name_of_the_standard_library_is_checked_by_the_compiler() {
    for (body, check) in [
        ("self.g.put(format!(\"{}\", m.a), 1);", "let_=||{let_=format!(\"\");};"),
        ("for k in vec![m.a, m.b] { self.d.put(k, 1); }", "vec![];"),
        ("if matches!(m.kind, Kind::A) { self.d.put(m.a, 1); }", "matches!((),());"),
        ("if m.flag { panic!(\"no\") } self.d.put(m.a, 1);", "panic!(\"\");"),
        ("println!(\"{}\", m.a); self.d.put(m.a, 1);", "println!(\"\");"),
        ("let mut s = String::new(); write!(s, \"{}\", m.a); self.g.put(s, 1);", "write!("),
        ("self.d.put(pure!(of(m.a)), 1);", "pure!(());"),
        (
            "self.g.put(Self::name(m.a), 1); } fn name(a: u64) -> String { format!(\"{a}\")",
            "let_=format!(\"\");",
        ),
    ] {
        let found = tokens(body);
        let from = found.find("fn__macros()").unwrap_or_else(|| panic!("{body}\n{found}"));
        assert!(found[from..].contains(check), "{body}\n{found}");
    }

    // a path determines which macro it is
    assert!(!tokens("self.g.put(std::format!(\"{}\", m.a), 1);").contains("__macros"));
    assert!(!tokens("tracing::info!(\"{}\", m.a); self.d.put(m.a, 1);").contains("__macros"));
}

#[test]
fn a_macro_that_may_be_the_users_may_change_what_it_mentions() {
    for body in [
        "let mut n = m.a; debug!(\"{}\", n); self.d.put(n, 1);",
        "let k = m.a; debug!(k); self.d.put(k, 1);",
        "let e = &mut [m.b, m.a]; info!(\"{}\", e); self.d.put(e[0], 1);",
        "let mut n = m.a; mine::debug!(\"{}\", n); self.d.put(n, 1);",
        "let k = m.a; crate::info!(\"{}\", k); self.d.put(k, 1);",
        "macro_rules! format { ($k:ident) => { $k } } let mut k = m.a; let n = format!(k); self.d.put(n, 1);",
        "use crate::mine::vec; for k in vec![m.a] { self.d.put(k, 1); }",
        "let k = match m.opt { Some(k) => k, None => bail!(\"none\") }; self.d.put(k, 1);",
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains("is not a function of the message")), "{body}\n{found:?}");
    }

    let found = errors(&handler("let mut n = m.a; debug!(\"{}\", n); self.d.put(n, 1);"));
    assert!(found[0].contains("`tracing::debug!(..)`"), "{found:?}");
}

/// It is unknown whether a `bail!` defined by the user returns, so the map continues after it.
#[test]
fn a_macro_that_may_be_the_users_may_return_or_not() {
    for body in [
        "if m.flag { bail!(\"no\") } self.d.put(m.a, 1);",
        "ensure!(m.a > 3, \"no\"); self.d.put(m.a, 1);",
        "for x in &m.items { if *x > 3 { bail!(\"no\"); } } self.d.put(m.a, 1);",
    ] {
        let found = tokens(body);
        assert!(found.contains("AtValue(Self::__bh_d,&(m.a))"), "{body}\n{found}");
        assert!(
            !found[found.find("const_").unwrap_or(0)..].contains("__m.effect();return"),
            "{body}\n{found}"
        );
    }

    // the compiler ensures that this macro does not continue
    let found = tokens("let Some(k) = m.opt else { bail!(\"none\") }; self.d.put(k, 1);");
    assert!(found.contains("return"), "{found}");
    // and this macro is known by its path
    let found = tokens("if m.flag { anyhow::bail!(\"no\") } self.d.put(m.a, 1);");
    assert!(found.contains("return"), "{found}");
}

#[test]
fn a_raw_identifier_is_captured_without_its_mark() {
    let found = tokens("let r#type = m.a + 1; self.g.put(format!(\"{type}\"), 1);");
    assert!(
        found.contains("letr#type=m.a+1;self") || found.matches("letr#type=m.a+1;").count() == 2,
        "{found}"
    );

    for body in [
        "let r#type = *self.d.get(&m.a).unwrap(); self.g.put(format!(\"{type}\"), 1);",
        "let r#match = *self.d.get(&m.a).unwrap(); let s = format!(\"{match:>3}\"); self.g.put(s, 1);",
        "let r#ref = *self.d.get(&m.a).unwrap() as usize; self.g.put(format!(\"{:ref$}\", m.a), 1);",
        "let mut r#loop = m.a; if self.d.contains(&m.a) { r#loop += 1; } self.g.put(format!(\"{loop}\"), 1);",
        "let r#in = ctx.id(); let mut s = String::new(); write!(s, \"{in}\"); self.g.put(s, 1);",
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains("is not a function of the message")), "{body}\n{found:?}");
    }
}

/// `show!` may contain a `let` of a name that is passed to it.
#[test]
fn a_name_that_a_macro_statement_may_bind_anew_is_unknown_until_the_block_ends() {
    for body in [
        "let k = m.a; show!(k); self.d.put(k, 1);",
        "let k = m.a; show!(\"{}\", k ^ 1); self.d.put(k, 1);",
        "show!(m); self.d.put(m.a, 1);",
        "show!(m.a, m); self.d.put(m.a, 1);",
        "show!(m.hash()); self.d.put(m.a, 1);",
        "show!(\"{m:?}\"); self.d.put(m.a, 1);",
        "m.v.iter().for_each(|q| { show!(m.a); self.d.put(m.a, 1); });",
        "for k in &m.v { show!(k); self.d.put(*k, 1); }",
        "let k; show!(k = m.a); self.d.put(k, 1);",
        "let k; { show!(k = m.a); } self.d.put(k, 1);",
        "let mut k = m.a; { show!(k); } self.d.put(k, 1);",
        "let k = &mut [m.a]; { show!(k); } self.d.put(k[0], 1);",
    ] {
        let found = errors(&handler(body));
        assert!(
            found.len() == 1 && found[0].contains("it depends on the macro `show!`"),
            "{body}\n{found:?}"
        );
    }
    for body in [
        "let k = m.a; { show!(k); } self.d.put(k, 1);",
        "let k = m.a; if m.flag { show!(k); } self.d.put(k, 1);",
        "let k = m.a; for q in &m.v { show!(k, q); } self.d.put(k, 1);",
        "let k = m.a; let _ = show!(k); self.d.put(k, 1);",
        "let k = m.a; show!(k); let k = m.b; self.d.put(k, 1);",
    ] {
        let found = tokens(body);
        assert!(!found.contains("still_bound"), "{body}\n{found}");
    }
}

/// The compiler checks that the macro does not bind the name of the message.
#[test]
fn a_macro_that_gets_fields_of_the_message_is_checked_where_a_key_depends_on_the_message() {
    for body in [
        "show!(m.a); self.d.put(m.a, 1);",
        "show!(\"a message\", &m.g[..], m.a.max(1)); self.d.put(m.a, 1);",
        "if m.flag { show!(m.a); self.d.put(m.b, 1); }",
        "for k in &m.v { show!(m.a, k); self.d.put(m.a, 1); }",
        "self.note(m); } fn note(&mut self, m: &Msg) { show!(m.a); self.d.put(m.a, 1);",
    ] {
        let found = tokens(body);
        assert!(found.contains("iffalse{letm=::beehive::__private::watched(m);show!("), "{body}\n{found}");
        assert_eq!(found.matches("still_bound(m)").count(), 1, "{body}\n{found}");
        let map = found.rfind("fnmap").unwrap_or_default();
        assert!(!found[map..].contains("show!"), "{body}\n{found}");
    }

    // no key depends on the message after the macro
    for body in [
        "self.d.put(m.a, 1); show!(m.a);",
        "let k = m.a; show!(m.a); self.d.put(k, m.b);",
        "if m.flag { show!(m.a); } self.d.put(m.a, 1);",
    ] {
        let found = tokens(body);
        assert!(!found.contains("still_bound"), "{body}\n{found}");
    }

    // a key is the same before and after the macro
    let d = handler("self.d.put(m.a, 1); show!(m.a); self.d.put(m.a, 2); self.d.put(m.a, 3);");
    assert!(d.errors.is_empty(), "{:?}", errors(&d));
    assert_eq!((&*d.handlers[0].cells, &*d.handlers[0].joins), ("d[m.a]", ""));
}

#[test]
fn a_mistake_after_a_macro_that_gets_fields_of_the_message_is_one_error() {
    for body in [
        "let mut n = m.b; swap_with!(n, m.a); for q in &m.v { if self.d.contains(q) { break; } let x = self.gone(m.a); self.d.put(x, 1); self.d.put(x, 2); }",
        "show!(m.a); if let Some(x) = self.d.get(&m.a).copied() { let y = x.wrapping_add(1); self.d.put(y, 1); self.d.put(x, 1); }",
    ] {
        let found = errors(&handler(body));
        assert_eq!(found.len(), 1, "{body}\n{found:?}");
    }
}
