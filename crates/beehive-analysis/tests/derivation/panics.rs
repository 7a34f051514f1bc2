//! Expressions that the map evaluates although the handler may not reach them: a panic ends only the branch,
//! the loop or the helper's map.

use crate::{errors, handler};

fn printed(body: &str) -> String {
    let d = handler(body);
    assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    d.handlers
        .iter()
        .map(|h| h.map.to_string())
        .chain([d.tokens.to_string()])
        .collect::<String>()
        .replace(' ', "")
}

#[test]
fn a_branch_that_may_panic_catches_it() {
    for body in [
        "if self.d.contains(&m.a) { self.e.get(&m.items[0]); }",
        "if self.d.contains(&m.a) { self.e.put(m.b - 1, 1); }",
        "if self.d.contains(&m.a) { self.e.put(1 << m.b, 1); }",
        "if self.d.contains(&m.a) { let k = -(m.b as i64); self.e.put(k as u64, 1); }",
        "if self.d.contains(&m.a) { self.e.put(Option::unwrap(m.opt), 1); }",
        "if self.d.contains(&m.a) { self.e.put(u64::div_euclid(m.a, m.b), 1); }",
        "if self.d.contains(&m.a) { self.e.put(m.a, 1); } else { self.e.put(m.a / m.b, 1); }",
        "match self.d.get(&m.a) { Some(_) => { self.e.put(m.a % m.b, 1); } None => {} }",
        "if m.flag || self.d.contains(&m.a) { self.e.put(m.items[0], 1); }",
        "for x in &m.items { if self.d.contains(x) { continue; } self.e.get(&m.items[*x as usize]); }",
        "for x in m.items.iter().map(|x| x - 1) { if self.d.contains(&x) { break; } } self.e.put(m.a, 1);",
        "while let Some(_) = self.d.get(&m.a) { self.e.put(m.a - 1, 1); }",
        "if self.d.contains(&m.a) { for w in m.items.windows(2) { self.e.put(w[0], 1); } }",
        "self.half(&m.items); self.e.put(m.b, 1); } fn half(&mut self, v: &[u64]) { if self.d.contains(&1) { return; } self.e.get(&v[0]);",
        "if self.d.contains(&m.a) { self.first(&m.items); } } fn first(&mut self, v: &[u64]) { self.e.get(&v[0]);",
    ] {
        let map = printed(body);
        assert!(map.contains("__m.branch(|__m|"), "{body}\n{map}");
    }
}

#[test]
fn what_cannot_panic_or_panics_in_the_handler_too_is_not_caught() {
    for body in [
        "self.e.put(m.items[0], 1); if self.d.contains(&m.a) { self.e.put(m.b, 1); }",
        "let Some(_) = self.d.get(&m.a) else { return }; self.e.get(m.items.last().unwrap());",
        "if self.d.contains(&m.a) { return; } let k = m.a / m.b; self.e.get(&k);",
        "if self.d.contains(&m.a) { self.t.put((m.a, m.b), 1); } else { self.g.put(m.name.clone(), 1); }",
        "if self.d.contains(&m.a) { if let Some(k) = m.opt { self.e.put(k.wrapping_add(1), 1); } }",
        "if self.d.contains(&m.a) { for x in &m.items { self.e.put(*x, 1); } }",
        "if self.d.contains(&m.a) { self.e.put(m.a / 2 % 16, 1); }",
        "self.first(&m.items); self.e.put(m.b, 1); } fn first(&mut self, v: &[u64]) { self.e.get(&v[0]);",
    ] {
        let map = printed(body);
        assert!(!map.contains(".branch("), "{body}\n{map}");
    }
}

/// A `break` cannot leave a closure, so the map records the exit in a variable, and leaves after the branch.
#[test]
fn a_certain_exit_from_a_branch_that_catches() {
    let map = printed(
        "if m.flag || self.d.contains(&m.a) { if m.b == 0 { return; } self.e.put(m.a / m.b, 1); } self.d.put(m.b, 1);",
    );
    let want = "__m.branch(|__m|'__bh1:{ifm.b==0{{__left1=__certain1;break'__bh1};}";
    assert!(map.contains(want) && map.contains("if__left1{return}"), "{map}");
}
