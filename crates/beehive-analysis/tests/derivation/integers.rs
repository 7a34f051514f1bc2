//! Integers without a written type: if the map lacks the code from which the compiler infers the type, the map contains
//! a copy of that code, or the type must be written.

use crate::{block, errors, handler};

const SAYS: &str = "is inferred from code that the map omits";

/// Returns how many locals of the map of a body get their types from a copy of the body.
fn witnesses(body: &str) -> usize {
    let derived = handler(body);
    assert!(derived.errors.is_empty(), "{body}\n{:?}", errors(&derived));
    let text = derived.handlers[0].map.to_string() + &derived.helpers.to_string();
    (0..).take_while(|n| text.contains(&format!("let __witness{n} "))).count()
}

#[test]
fn a_type_that_only_the_handler_knows_is_taken_from_a_copy_of_its_body() {
    for body in [
        // methods
        "let mut n = 0; for _ in &m.items { n += 1; } self.e.put(m.a, n); self.d.put(n.min(5), 1);",
        "let n = 3; ctx.emit(Note(n)); self.d.put(n.wrapping_mul(m.a), 1);",
        "let n = 3; let z = n ^ m.a; self.e.put(m.a, z); self.d.put(n.max(2), 1);",
        "let n = if m.flag { 1 } else { 2 }; self.e.put(m.a, n); self.d.put(n.pow(2), 1);",
        "let n = match m.kind { Kind::A => 3, _ => 4 }; tracing::trace!(\"{}\", n ^ m.a); self.d.put(n.max(2), 1);",
        "let n = loop { break 3; }; self.e.put(m.a, n); self.d.put(n.max(2), 1);",
        "let n = m.text.trim().parse().unwrap_or(3); self.e.put(m.a, n); self.d.put(n.clamp(1, 4), 1);",
        "let n; if m.flag { n = 3; } else { n = 4; } self.e.put(m.a, n); self.d.put(n.max(1), 1);",
        "let n = 3; if self.e.get(&m.a) == Some(n) { self.d.put(n.max(2), 1); }",
        "let n = 3; let add = |q| q ^ n; ctx.emit(Note(add(m.a))); self.d.put(n.rotate_left(3), 1);",
        // patterns, loops, and values that hold integers
        "let (n, q) = (3, m.a); self.e.put(q, n); self.d.put(n.max(2) ^ q, 1);",
        "for k in 0..3 { self.e.put(m.a, k); self.d.put(k.max(1), 1); }",
        "for k in [1, 2, 3] { self.e.put(m.a, k); self.d.put(k.max(2), 1); }",
        "for (i, k) in [1, 2].into_iter().enumerate() { self.e.put(m.a, k); self.d.put(k.pow(2) ^ i as u64, 1); }",
        "let n = Some(3); self.e.put(m.a, n.unwrap_or(1)); if let Some(k) = n { self.d.put(k.pow(2), 1); }",
        "let v = vec![1, 2]; self.e.put(m.a, v[0]); for k in &v { self.d.put(k.pow(2), 1); }",
        "let mut v = Vec::new(); v.push(3); self.e.put(m.a, v[0]); let k = v[0]; self.d.put(k.pow(2), 1);",
        "let n = m.items.iter().map(|_| 3).max().unwrap_or(0); self.e.put(m.a, n); self.d.put(n.pow(2), 1);",
        "let n = [1, 2].iter().copied().fold(0, |p, q| p + q); self.e.put(m.a, n); self.d.put(n.pow(2), 1);",
        "let Some(n) = [1, 2].into_iter().max() else { return }; self.e.put(m.a, n); self.d.put(n.pow(2), 1);",
        "let n = 3; self.e.put(m.a, n); std::iter::successors(Some(n), |k| k.checked_sub(2)).for_each(|k| { self.d.put(k, 1); });",
        // helpers
        "let n = 1; self.sub(n); self.d.put(n.pow(2), 1); } fn sub(&mut self, a: u64) { self.e.put(2, a);",
        "self.sub(m.a); } fn sub(&mut self, a: u64) { let mut n = 0; for _ in 0..a % 3 { n += 1; } self.e.put(a, n); self.d.put(n.min(5), 1);",
        // a function with a type parameter determines no type
        "let mut n = m.text.trim().parse().unwrap_or(3); if m.flag { self.e.put(m.a, n); } else { let r = Self::view(&mut n); *r = (*r).wrapping_add(m.a); } self.d.put(n.min(4), 1); } fn view<T>(v: &mut T) -> &mut T { v",
        "let n = 3; self.e.put(m.a, n); self.d.put(Self::same(&n).max(2), 1); } fn same<T: Clone>(v: &T) -> T { v.clone()",
        // operators and literals
        "let n = 5_000_000_000; self.e.put(m.a, n); self.d.put(n as u64, 1);",
        "let mut n = 1; for _ in 0..40 { n *= 2; } self.e.put(m.a, n); self.d.put((n % 7) as u64, 1);",
        "let n = 3; self.e.put(m.a, n); self.d.put((!n % 7) as u64, 1);",
        "let n = 3; self.e.put(m.a, n); self.d.put((n << 33) as u64 % 7, 1);",
    ] {
        assert!(witnesses(body) > 0, "{body}");
    }
}

#[test]
fn a_type_that_the_map_knows_or_that_makes_no_difference_needs_no_copy() {
    for body in [
        "let mut n = 0; for q in &m.items { n ^= q; } self.d.put(n.min(5), 1);",
        "let mut n = 0; while n < m.a % 4 { n += 1; } self.d.put(n.max(2), 1);",
        "let n = 4; self.e.put(m.a, n); self.d.put(n as u64 + m.a, 1);",
        "let n = 4; self.e.put(m.a, n); self.d.put(n, 1);",
        "let n: u64 = 3; self.e.put(m.a, n); self.d.put(n.max(2), 1);",
        "let n = 3u64; self.e.put(m.a, n); self.d.put(n.max(2), 1);",
        "let n = 3; self.d.put(m.items[n], 1); self.e.put(m.items[n.min(1)], 1);",
        "let n = m.text.parse().unwrap_or(3); self.e.put(m.a, n); self.d.put(n, 1);",
        "let n = m.opt.unwrap_or(3); self.d.put(n.max(2), 1);",
        "let n = m.items.iter().fold(0, |p, q| p ^ q); self.d.put(n.max(2), 1);",
        "let n = 3; self.e.put(m.a, n); self.d.put(Self::same(n).max(2), 1); } fn same(v: u64) -> u64 { v",
        "let n = m.items.len().max(2); self.d.put(n.pow(2) as u64, 1);",
    ] {
        assert_eq!(witnesses(body), 0, "{body}");
    }
}

#[test]
fn the_copy_has_no_self_and_every_parameter() {
    let derived = block(
        "#[rcv] fn h(&mut self, Msg { a, .. }: &Msg, ctx: &mut Ctx) -> Result { let n = 3; let all = vec![self.total, n]; \
         self.e.put(*a, all[1]); ctx.emit(all); self.d.put(n.pow(2), 1); Ok(()) }",
    );
    let map = derived.handlers[0].map.to_string();
    assert!(map.contains("__this . total") && !map.contains("self ."), "{map}");
    assert!(
        map.contains("| | -> Result") && map.contains("let ctx : & mut Ctx = :: core :: unreachable"),
        "{map}"
    );
    assert!(map.contains("let Msg { a , .. } : & Msg"), "{map}");
}

#[test]
fn a_type_is_asked_for_where_the_copy_could_not_declare_the_parameters() {
    let body = "let n = 3; self.e.put(m.a, n); self.d.put(n.max(2), 1);";
    for (call, parameters) in [
        ("sub(&m.a)", "sub<T: Clone>(&mut self, m: &Msg, x: &T)"),
        ("sub(m, &m.name)", "sub<'a>(&mut self, m: &'a Msg, name: &'a str)"),
        ("sub(m, |q| q)", "sub(&mut self, m: &Msg, f: impl Fn(u64) -> u64)"),
    ] {
        let found = errors(&handler(&format!("self.{call}; }} fn {parameters} {{ {body}")));
        assert!(found.len() == 1 && found[0].contains(SAYS), "{parameters}\n{found:?}");
        let typed = body.replace("let n =", "let n: u64 =");
        let found = errors(&handler(&format!("self.{call}; }} fn {parameters} {{ {typed}")));
        assert!(found.is_empty(), "{parameters}\n{found:?}");
    }
}
