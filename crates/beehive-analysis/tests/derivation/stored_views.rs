//! Indirect changes of a local: through a view that is stored after its declaration, through the result of a call, in a
//! closure with side effects, in a loop condition that the map does not repeat, and in code that the analysis does not
//! follow.

use crate::{errors, handler};

/// Checks that the map repeats the change or the key is refused. The map must never name a different key.
fn repeats_or_refuses(bodies: &[(&str, &str)]) {
    for (body, kept) in bodies {
        let d = handler(body);
        let map = d.handlers[0].map.to_string().replace(' ', "");
        match kept.is_empty() {
            true => {
                let found = errors(&d);
                let refused = found.iter().any(|e| e.contains("is not a function of the message"));
                assert!(refused, "{body}\n{found:?}\n{map}")
            }
            false => assert!(d.errors.is_empty() && map.contains(kept), "{body}\n{:?}\n{map}", errors(&d)),
        }
    }
}

#[test]
fn a_view_that_is_stored_later_is_followed() {
    repeats_or_refuses(&[
        (
            "let mut v = m.items.clone(); let mut last = None; for x in v.iter_mut() { if *x > m.a { last = Some(x); } } if let Some(x) = last { *x = m.b; } for k in &v { self.d.put(*k, 1); }",
            "last=Some(x);",
        ),
        (
            "let mut v = m.items.clone(); let slot; slot = v.first_mut(); if let Some(x) = slot { *x = m.b; } for k in &v { self.d.put(*k, 1); }",
            "slot=v.first_mut();",
        ),
        (
            "let mut v = m.items.clone(); let mut refs = vec![]; for x in v.iter_mut() { refs.push(x); } for r in refs { *r += m.a; } for k in &v { self.d.put(*k, 1); }",
            "refs.push(x);",
        ),
        (
            "let mut v = m.items.clone(); let mut by = BTreeMap::new(); for x in v.iter_mut() { by.insert(*x, x); } for r in by.values_mut() { **r += m.a; } for k in &v { self.d.put(*k, 1); }",
            "by.insert(*x,x);",
        ),
        (
            "let mut v = m.items.clone(); let mut best = None; for x in v.iter_mut() { best.replace(x); } best.map(|x| *x = 0); for k in &v { self.d.put(*k, 1); }",
            "best.replace(x);",
        ),
        (
            "let mut v = m.items.clone(); let mut slot = None; for x in &mut v { let _ = std::mem::replace(&mut slot, Some(x)); } if let Some(x) = slot { *x = m.b; } for k in &v { self.d.put(*k, 1); }",
            "*x=m.b;",
        ),
        (
            "let mut v = m.items.clone(); let mut last = None; for x in v.iter_mut() { last = Some(x); } match last { Some(x) => { if self.e.contains(&m.a) { *x = m.b; } } None => {} } for k in &v { self.d.put(*k, 1); }",
            "",
        ),
        (
            "let mut v = m.items.clone(); let mut refs = vec![]; for x in v.iter_mut() { refs.push(x); } for r in refs { *r = self.e.get(&m.a).copied().unwrap_or(0); } for k in &v { self.d.put(*k, 1); }",
            "",
        ),
        (
            "let mut last = None; let mut v = m.items.clone(); loop { if let Some(x) = last.take() { *x = m.b; } last = v.first_mut(); if m.a > 3 { break; } } for k in &v { self.d.put(*k, 1); }",
            "last=v.first_mut();",
        ),
    ]);
}

#[test]
fn what_a_closure_with_an_effect_changes_is_changed() {
    repeats_or_refuses(&[
        (
            "let mut keys = vec![]; let sum = m.items.iter().fold(0, |n, x| { if *x > 3 { keys.push(*x); } n + x }); for k in keys { self.d.put(k, sum); }",
            "keys.push(*x);",
        ),
        (
            "let mut keys = vec![]; let any = m.items.iter().any(|x| { log(x); keys.push(*x); *x > 3 }); for k in keys { self.d.put(k, any); }",
            "",
        ),
        (
            "let mut made = vec![]; let k = m.opt.unwrap_or_else(|| { ctx.emit(m.a); made.push(m.a); m.a }); for k in made { self.d.put(k, 1); }",
            "",
        ),
        (
            "let mut made = vec![]; m.opt.map_or(0, |x| { if clock() > 3 { made.push(x); } x }); for k in made { self.d.put(k, 1); }",
            "",
        ),
    ]);
}

#[test]
fn what_a_condition_changes_that_the_map_evaluates_once_is_refused() {
    repeats_or_refuses(&[
        ("let mut id = m.a; while { id += 1; self.d.contains(&id) } {} self.d.put(id, 1);", ""),
        ("let mut n = m.a; while let Some(_) = { n += 1; self.e.get(&m.a) } {} self.d.put(n, 1);", ""),
        ("let mut n = m.a; while { n += 1; n < 3 && !self.e.contains(&m.b) } {} self.d.put(n, 1);", ""),
    ]);
}

#[test]
fn what_other_code_changes_through_a_view_is_refused_or_repeated() {
    repeats_or_refuses(&[
        (
            "let mut v = m.items.clone(); for x in v.iter_mut() { self.config.normalize(x); } for k in &v { self.d.put(*k, 1); }",
            "",
        ),
        (
            "let config = &self.config; let mut v = m.items.clone(); for x in v.iter_mut() { config.bump(x); } for k in &v { self.d.put(*k, 1); }",
            "",
        ),
        (
            "let mut v = m.items.clone(); for x in v.iter_mut() { (if m.flag { Self::up } else { Self::down })(x); } for k in &v { self.d.put(*k, 1); }",
            "",
        ),
        (
            "let mut v = m.items.clone(); for x in v.iter_mut() { Self::OPS[m.a as usize](x); } for k in &v { self.d.put(*k, 1); }",
            "",
        ),
        (
            "let (mut lo, mut hi) = (m.a, m.b); *std::cmp::max(&mut lo, &mut hi) = m.c; self.d.put(lo, 1); self.d.put(hi, 1);",
            "*std::cmp::max(&mutlo,&muthi)=m.c;",
        ),
        (
            "let mut v = m.items.clone(); *Option::unwrap(v.last_mut()) = m.b; for k in &v { self.d.put(*k, 1); }",
            "*Option::unwrap(v.last_mut())=m.b;",
        ),
        (
            "let (mut lo, mut hi) = (m.a, m.b); *std::cmp::max(&mut lo, &mut hi) = self.e.get(&1).copied().unwrap_or(0); self.d.put(lo, 1);",
            "",
        ),
        ("let config = &self.config; self.g.put(format!(\"{config}/{}\", m.a), 1);", ""),
    ]);
}
