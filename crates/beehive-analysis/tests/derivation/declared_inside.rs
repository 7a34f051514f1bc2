//! Types, traits and functions that a body declares: the map has its own copies of them, and their destructors run in
//! it as in the handler.

use crate::{errors, handler};

const GUARD: &str =
    "struct Guard<'a>(&'a mut u64); impl Drop for Guard<'_> { fn drop(&mut self) { *self.0 += 20; } }";

/// Asserts that the map of each body contains this code.
fn keeps(cases: &[(&str, &str)]) {
    for (body, kept) in cases {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(map.contains(&kept.replace(' ', "")), "{body}\n{map}");
    }
}

#[test]
fn the_map_makes_what_may_change_a_local_when_it_is_dropped() {
    // the type may also be declared outside of the body
    for declared in [GUARD, ""] {
        for (body, kept) in [
            ("let mut n = m.a; { let _g = Guard(&mut n); } self.d.put(n, 1);", "let _g = Guard(&mut n);"),
            ("let mut n = m.a; Guard(&mut n); self.d.put(n, 1);", "Guard(&mut n);"),
            ("let mut n = m.a; let _ = Guard(&mut n); self.d.put(n, 1);", "Guard(&mut n);"),
            (
                "let mut n = m.a; { let _g = Guard { n: &mut n, by: 2 }; } self.d.put(n, 1);",
                "Guard { n: &mut n, by: 2 }",
            ),
            ("let mut n = m.a; { let _g = vec![Guard(&mut n)]; } self.d.put(n, 1);", "vec![Guard(&mut n)]"),
            (
                "let mut n = m.a; for k in &m.items { let _g = Guard(&mut n); if *k == 3 { break; } } self.d.put(n, 1);",
                "let _g = Guard(&mut n);",
            ),
            (
                "let mut n = m.a; { let r = &mut n; let _g = Guard(r); } self.d.put(n, 1);",
                "let _g = Guard(r);",
            ),
        ] {
            keeps(&[(&format!("{declared} {body}"), kept)]);
        }
    }
}

#[test]
fn a_destructor_that_state_decides_makes_the_local_unknown() {
    for body in [
        "let mut n = m.a; if self.d.contains(&m.b) { let _g = Guard(&mut n); } self.e.put(n, 1);",
        "let mut n = m.a; { let _g = Guard { n: &mut n, by: self.d.get(&m.b).copied() }; } self.e.put(n, 1);",
        "let mut n = m.a; for k in &m.items { let _g = Guard(&mut n); if self.d.contains(k) { break; } } self.e.put(n, 1);",
    ] {
        let d = handler(&format!("{GUARD} {body}"));
        let refused = errors(&d);
        assert!(
            refused.len() == 1 && refused[0].contains("is not a function of the message"),
            "{body}\n{refused:?}"
        );
    }
}

#[test]
fn what_has_no_destructor_changes_nothing() {
    for body in [
        "let mut n = m.a; if self.d.contains(&m.b) { let o = Some(&mut n); ctx.emit(o.is_some()); } self.e.put(n, 1);",
        "struct Pair<'a>(&'a mut u64, u64); let mut n = m.a; if self.d.contains(&m.b) { let p = Pair(&mut n, 1); ctx.emit(m.b); } self.e.put(n, 1);",
        "if self.d.contains(&m.b) { let p = Pair(&m.a, 1); ctx.emit(p.1); } self.e.put(m.a, 1);",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    }
}

#[test]
fn the_map_has_the_impls_of_its_own_traits_and_types() {
    keeps(&[
        (
            "trait Total { fn total(&self) -> u64; } impl Total for Vec<u64> { fn total(&self) -> u64 { self.iter().sum() } } self.d.put(m.items.total(), 1);",
            "impl Total for Vec<u64>",
        ),
        (
            "trait Half { fn half(self) -> u64; } impl<T: Into<u64>> Half for T { fn half(self) -> u64 { self.into() / 2 } } self.d.put(m.a.half(), 1);",
            "impl<T: Into<u64>> Half for T",
        ),
        (
            "struct K(u64); impl From<K> for u64 { fn from(k: K) -> u64 { k.0 + 1 } } self.d.put(u64::from(K(m.a)), 1);",
            "impl From<K> for u64",
        ),
    ]);

    // an impl of a foreign trait for a foreign type exists once
    let d = handler("impl Total for Outside { fn total(&self) -> u64 { 1 } } self.d.put(m.a, 1);");
    assert!(!d.handlers[0].map.to_string().contains("impl"));
}

#[test]
fn a_function_of_the_body_may_be_called_with_type_arguments() {
    keeps(&[
        ("fn part<const N: u64>(x: u64) -> u64 { x % N } self.d.put(part::<3>(m.a), 1);", "part::<3>(m.a)"),
        (
            "fn most<T: Copy + Ord + Default>(v: &[T]) -> T { v.iter().copied().max().unwrap_or_default() } self.d.put(most::<u64>(&m.items), 1);",
            "most::<u64>(&m.items)",
        ),
        (
            "fn part<const N: u64>(x: u64) -> u64 { x % N } for k in m.items.iter().copied().map(part::<3>) { self.d.put(k, 1); }",
            "map(part::<3>)",
        ),
    ]);

    let d =
        handler("fn next<const N: u64>() -> u64 { COUNT.fetch_add(N, Relaxed) } self.d.put(next::<3>(), 1);");
    assert!(errors(&d)[0].contains("it calls `next` (line 1)"), "{:?}", errors(&d));
}

#[test]
fn the_help_for_a_recursive_function_does_not_send_it_where_it_is() {
    let d = handler(
        "self.d.put(Self::gcd(m.a, m.b), 1); } fn gcd(a: u64, b: u64) -> u64 { if b == 0 { a } else { Self::gcd(b, a % b) }",
    );
    let e = &errors(&d)[0];
    assert!(e.contains("write it with a loop") && !e.contains("make it an associated function"), "{e}");
}
