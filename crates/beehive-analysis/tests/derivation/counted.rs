//! Tests whether a key counts as different for each message if a loop counts it or a condition selects it.

use crate::{errors, handler};

#[test]
fn a_key_that_the_message_counts_or_chooses_is_sharded() {
    for body in [
        "for i in 0..m.a { self.d.put(i, 1); }",
        "let mut i = 0; while i < m.a { self.d.put(i, 1); i += 1; }",
        "let mut i = 0; loop { if i == m.a { break; } self.d.put(i, 1); i += 1; }",
        "let mut i = 0; loop { self.d.put(i, 1); i += 1; let Some(_) = m.items.get(i) else { break }; }",
        "let mut i = 0; loop { match m.items.get(i) { Some(7) => break, _ => {} } i += 1; self.d.put(i, 1); }",
        "let mut i = 0; loop { if i > 3 && m.flag { break; } if i > 5 { break; } i += 1; } self.d.put(i, 1);",
        "let mut n = 0; for _ in &m.items { n += 1; } self.d.put(n, 1);",
        "let mut n = 0; if m.flag { n = 1; } self.d.put(n, 1);",
        "let mut n = 0; match m.opt { Some(_) => n = 1, None => {} } self.d.put(n, 1);",
        "self.up(m.a); } fn up(&mut self, n: u64) { let mut i = 0; while i < n { self.d.put(i, 1); i += 1; }",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty() && d.handlers[0].kind == "sharded", "{body}\n{:?}", errors(&d));
    }
}

#[test]
fn a_key_that_is_counted_alike_for_every_message_is_centralized() {
    for body in [
        "for i in 0..4 { self.d.put(i, 1); }",
        "let mut i = 0; while i < 4 { self.d.put(i, 1); i += 1; }",
        "let mut i = 0; for _ in 0..4 { i += 1; } self.d.put(i, 1);",
        "let mut i = 0; loop { if i > 5 { break; } i += 1; } self.d.put(i, 1);",
        "self.up(7); } fn up(&mut self, n: u64) { let mut i = 0; while i < n { self.d.put(i, 1); i += 1; }",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty() && d.handlers[0].kind == "centralized", "{body}\n{:?}", errors(&d));
    }
}
