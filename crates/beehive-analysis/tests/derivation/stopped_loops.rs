//! Loops that state may end early. What changes in such a loop is a function of the message inside the loop, and unknown
//! after it.

use crate::{errors, handler};

fn is_refused(body: &str) -> bool {
    let errors = errors(&handler(body));
    assert!(errors.len() <= 1, "{body}\n{errors:?}");
    errors.iter().any(|e| e.contains("is not a function of the message"))
}

#[test]
fn what_changes_in_a_loop_is_known_inside_it() {
    for (body, cells) in [
        ("let mut k = m.a; while k < 9 { if self.d.contains(&k) { break; } k += 1; }", "d[k]"),
        ("let mut k = m.a; loop { if k > 9 || self.d.contains(&k) { break; } k += 1; }", "d[k]"),
        (
            "let mut k = m.a; 'probe: loop { if !self.d.contains(&k) { self.d.put(k, 1); break 'probe; } k += 1; if k > 12 { return; } }",
            "d[k]",
        ),
        (
            "let mut k = m.a; for _ in 0..8 { let Some(v) = self.d.get(&k) else { break }; ctx.emit(*v); k = (k + 1) % 8; }",
            "d[k] for _ in 0..8",
        ),
        (
            "let mut v = vec![]; for k in &m.items { if self.d.contains(k) { break; } v.push(*k); self.e.put(v.iter().sum(), 1); }",
            "d[k] for k in m.items, e[v.iter().sum()] for k in m.items",
        ),
        (
            "let mut rest = &m.items[..]; while let [k, tail @ ..] = rest { if self.d.contains(k) { break; } rest = tail; }",
            "d[k]",
        ),
        (
            "let (mut a, mut b) = (m.a, m.b); for _ in 0..5 { if self.d.contains(&a) { break; } (a, b) = (b, a + b); }",
            "d[a] for _ in 0..5",
        ),
        (
            "let mut n = 0; 'o: for a in &m.items { for b in 0..*a { if self.d.contains(&b) { break 'o; } } n += 1; self.e.put(n, 1); }",
            "d[b] for b in 0.. *a for a in m.items, e[n] for a in m.items",
        ),
        (
            "'o: for a in &m.items { let mut k = *a; while k < 9 { if self.d.contains(&k) { break; } if k == 5 { continue 'o; } k += 2; } self.e.put(*a, 1); }",
            "d[k] for a in m.items, e[a] for a in m.items",
        ),
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        assert_eq!(d.handlers[0].cells, cells, "{body}");
    }
}

#[test]
fn what_changes_in_a_loop_is_unknown_after_it() {
    for body in [
        "let mut n = 0; for k in &m.items { if self.d.contains(k) { break; } n += 1; } self.e.put(n, 1);",
        "let mut k = m.a; while k < 9 { if self.d.contains(&k) { break; } k += 1; } self.e.put(k, 1);",
        "let mut n = m.a; let r = &mut n; for k in &m.items { if self.d.contains(&(*r + k)) { break; } *r += 1; } self.e.put(n, 1);",
        "let mut it = m.items.iter(); let mut n = 0; for k in it.by_ref() { if self.d.contains(&(k + n)) { break; } n += 1; } if let Some(k) = it.next() { self.e.put(*k, 1); }",
        "let mut q = 0; let mut n = 0; for k in m.items.iter().inspect(|_| q += 1) { if self.d.contains(&(k + n)) { break; } n += 1; } self.e.put(q, 1);",
        // the loop around it comes back with it
        "let mut k = m.a; for a in &m.items { for _ in 0..4 { if self.d.contains(&k) { break; } k += a; } }",
    ] {
        assert!(is_refused(body), "{body}");
    }
}

#[test]
fn state_that_continues_a_loop_makes_unknown_what_changes_in_it() {
    for body in [
        "let mut n = 0; for k in &m.items { if self.d.contains(k) { continue; } n += 1; self.e.put(n, 1); }",
        "let mut i = 0; while i < m.items.len() { let k = m.items[i]; i += 1; if self.d.contains(&k) { continue; } if self.e.contains(&k) { break; } }",
        "let mut k = m.a; for _ in 0..6 { match self.d.get(&k) { None => break, Some(_) => { k += 1; } } }",
        // the handler does not change `n` where the map goes on after the inner loop
        "let mut n = 0; 'o: for a in &m.items { let mut k = *a; while k < 9 { if self.d.contains(&k) { break; } if k == 5 { continue 'o; } k += 2; } n += 1; self.e.put(n, 1); }",
    ] {
        assert!(is_refused(body), "{body}");
    }
}

#[test]
fn a_loop_that_only_state_ends_is_visited_once() {
    let d = handler("let mut n = 0; loop { n += 1; if self.d.contains(&m.a) { break; } }");
    assert!(d.errors.is_empty(), "{:?}", errors(&d));
    assert!(is_refused("let mut k = m.a; loop { if self.d.contains(&k) { break; } k += 1; }"));
    assert!(is_refused("let mut k = m.a; while true { if self.d.contains(&k) { break; } k += 1; }"));
    // what is accepted anyway is not run to the end
    let map = |d: &beehive_analysis::Derivation| d.handlers[0].map.to_string().replace(' ', "");
    let d = handler("let mut i = m.a; while i < m.b { if self.d.contains(&m.a) { break; } i += 1; }");
    assert!(!map(&d).contains("while"), "{}", map(&d));
}

#[test]
fn what_leaves_more_than_the_loop_leaves_only_the_loop_in_the_map() {
    let d = handler(
        "let mut k = m.a; while k < 12 { if self.d.contains(&k) { break; } if k == 7 { return; } k += 1; } self.e.put(m.b, 1);",
    );
    assert!(d.errors.is_empty(), "{:?}", errors(&d));
    let map = d.handlers[0].map.to_string();
    assert!(!map.contains("return"), "{map}");
}
