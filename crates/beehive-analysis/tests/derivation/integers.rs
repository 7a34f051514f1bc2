//! Integers without a written type: if the map lacks the code from which the compiler infers the type, and the
//! type makes a difference, the user must write the type.

use crate::{errors, handler};

const SAYS: &str = "follows from code that the map leaves out";

#[test]
fn a_type_that_only_the_handler_knows_is_asked_for() {
    for body in [
        // methods
        "let mut n = 0; for _ in &m.items { n += 1; } self.e.put(m.a, n); self.d.put(n.min(5), 1);",
        "let n = 3; ctx.emit(Note(n)); self.d.put(n.wrapping_mul(m.a), 1);",
        "let n = 3; let z = n ^ m.a; self.e.put(m.a, z); self.d.put(n.max(2), 1);",
        "let (n, q) = (3, 4); self.e.put(m.a, n); self.d.put(n.max(2) ^ q, 1);",
        "let n = if m.flag { 1 } else { 2 }; self.e.put(m.a, n); self.d.put(n.pow(2), 1);",
        "let n = match m.kind { Kind::A => 3, _ => 4 }; tracing::trace!(\"{}\", n ^ m.a); self.d.put(n.max(2), 1);",
        "let n = loop { break 3; }; self.e.put(m.a, n); self.d.put(n.max(2), 1);",
        "let n = 3; let q = n; self.e.put(m.a, q); self.d.put(n.max(2), 1);",
        "let n = 3; self.e.put(m.a, n); let k = { let q = n; q.max(2) }; self.d.put(k, 1);",
        "let n = 3; if self.e.get(&m.a) == Some(n) { self.d.put(n.max(2), 1); }",
        "for k in 0..3 { self.e.put(m.a, k); self.d.put(k.max(1), 1); }",
        "for k in [1, 2, 3] { self.e.put(m.a, k); self.d.put(k.max(2), 1); }",
        "for n in (0..m.text.parse().unwrap_or(3) % 4).rev() { let s = m.opt.map_or(n, |q| q); self.d.put(n.max(1), s); }",
        "self.sub(m.a); } fn sub(&mut self, a: u64) { let mut n = 0; for _ in 0..a % 3 { n += 1; } self.e.put(a, n); self.d.put(n.min(5), 1);",
        // the argument of a comparison has the same unknown type
        "let mut n = 0; for _ in 0..3 { n += 1; } match n.cmp(&n) { std::cmp::Ordering::Less => { self.e.put(m.a, n); } _ => { let o = n.checked_sub(1); if o.is_some() { self.d.put(m.a, 1); } } }",
        // operators and literals
        "let n = 5_000_000_000; self.e.put(m.a, n); self.d.put(n as u64, 1);",
        "let mut n = 1; for _ in 0..40 { n = n * 2; } self.e.put(m.a, n); self.d.put((n % 7) as u64, 1);",
        "let mut n = 1; for _ in 0..40 { n *= 2; } self.e.put(m.a, n); self.d.put((n % 7) as u64, 1);",
        "let n = 3; self.e.put(m.a, n); self.d.put((!n % 7) as u64, 1);",
        "let n = 3; self.e.put(m.a, n); self.d.put((n << 33) as u64 % 7, 1);",
    ] {
        let found = errors(&handler(body));
        assert!(found.len() == 1 && found[0].contains(SAYS), "{body}\n{found:?}");
        // the alternative that the error suggests
        let typed = body.replace("let n =", "let n: u64 =").replace("let mut n =", "let mut n: u64 =");
        if typed != body {
            let found = errors(&handler(&typed));
            assert!(found.is_empty(), "{typed}\n{found:?}");
        }
    }
}

#[test]
fn a_type_that_the_map_knows_or_that_makes_no_difference_is_not_asked_for() {
    for body in [
        "let mut n = 0; for q in &m.items { n ^= q; } self.d.put(n.min(5), 1);",
        "let mut n = 0; while n < m.a % 4 { n += 1; } self.d.put(n.max(2), 1);",
        "let mut n = 0; for _ in &m.items { n += 1; } if n > m.a { self.d.put(n.min(5), 1); }",
        "let n = 4; self.e.put(m.a, n); self.d.put(n as u64 + m.a, 1);",
        "let n = 4; self.e.put(m.a, n); self.d.put(n, 1);",
        "let n = 4; self.d.put(n, 1); self.e.put(n.max(2), 1);",
        "let n: u64 = 3; self.e.put(m.a, n); self.d.put(n.max(2), 1);",
        "let n = 3u64; self.e.put(m.a, n); self.d.put(n.max(2), 1);",
        "let n = 3; self.e.put(m.a, n.max(m.b)); self.d.put(m.b, 1);",
        "let n = 3; self.d.put(m.items[n], 1); self.e.put(m.items[n.min(1)], 1);",
        "let n = m.text.parse().unwrap_or(3); self.e.put(m.a, n); self.d.put(n, 1);",
        "let n = 2; self.d.put((n * 2) as u64, 1);",
    ] {
        let found = errors(&handler(body));
        assert!(!found.iter().any(|e| e.contains(SAYS)), "{body}\n{found:?}");
    }
}
