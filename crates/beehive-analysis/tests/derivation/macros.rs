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

    // a path says which macro it is
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

/// It is not known whether a `bail!` of the user returns, so the map continues after it.
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
