//! Functions of types of the standard library, by path.

use crate::{errors, handler};

#[test]
fn functions_of_standard_types_are_known_by_their_path() {
    for (body, kept) in [
        (
            "if let Some(k) = m.text.lines().map(str::trim).next() { self.g.put(k.to_string(), 1); }",
            "str::trim",
        ),
        (
            "for k in m.texts.iter().map(|t| t.parse()).filter_map(Result::ok) { self.d.put(k, 1); }",
            "Result::ok",
        ),
        ("self.d.put(u64::pow(m.a, 2), 1);", "u64::pow(m.a,2)"),
        ("let k = m.opt.map_or_else(String::new, |x| x.to_string()); self.g.put(k, 1);", "String::new"),
        (
            "if m.items.first().is_some_and(u64::is_power_of_two) { self.d.put(m.a, 1); }",
            "u64::is_power_of_two",
        ),
        ("for c in m.items.chunks(2).map(<[u64]>::to_vec) { self.d.put(c[0], 1); }", "<[u64]>::to_vec"),
        ("let v = <[u64; 2]>::as_slice(&m.two); self.d.put(v[0], 1);", "<[u64;2]>::as_slice(&m.two)"),
        ("let k = <str>::len(&m.text) as u64; self.d.put(k, 1);", "<str>::len(&m.text)"),
        ("let mut v = vec![m.b, m.a]; <[u64]>::sort(&mut v); self.d.put(v[0], 1);", "<[u64]>::sort(&mutv);"),
        ("let e = Vec::leak(vec![m.b, m.a]); e.sort(); self.d.put(e[0], 1);", "e.sort();"),
        ("let e = &mut vec![m.b]; Vec::push(e, m.a); self.d.put(e[1], 1);", "Vec::push(e,m.a);"),
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(map.contains(kept), "{body}\n{map}");
    }
}

#[test]
fn a_function_by_path_changes_like_the_method() {
    for (body, want) in [
        (
            "let e = &mut vec![m.b]; if self.d.contains(&m.a) { Vec::push(e, m.a); } self.e.put(e[0], 1);",
            "is not a function of the message",
        ),
        (
            "let mut o = m.opt; if self.d.contains(&m.a) { Option::take(&mut o); } self.e.put(o.unwrap_or(0), 1);",
            "is not a function of the message",
        ),
        (
            "let mut v = vec![m.b, m.a]; if self.d.contains(&m.a) { <[u64]>::sort(&mut v); } self.e.put(v[0], 1);",
            "is not a function of the message",
        ),
        ("let k = <Thing>::to_vec(&m.items); self.e.put(k[0], 1);", "is not a function of the message"),
        ("let k = <[Thing]>::to_vec(&m.items); self.e.put(k[0], 1);", "is not a function of the message"),
        ("let k = <u64 as Chance>::random(m.a); self.e.put(k, 1);", "is not a function of the message"),
        ("let k = <HashSet<u64>>::len(&m.set); self.e.put(k, 1);", "is not a function of the message"),
        ("let s = HashSet::from([m.a]); self.e.put(HashSet::len(&s) as u64, 1);", "the order of a hash map"),
        ("self.e.put(Box::leak(m.ids()).next(), 1);", "is not a function of the message"),
    ] {
        let found = errors(&handler(body));
        assert!(found.iter().any(|e| e.contains(want)), "{body}\n{found:?}");
    }
}

#[test]
fn a_closure_that_makes_items_changes_what_it_captures() {
    for (body, kept) in [
        (
            "let ks: [u64; 4] = std::array::from_fn(|i| m.a + i as u64); for k in ks { self.d.put(k, 1); }",
            "from_fn(|i|m.a+iasu64)",
        ),
        (
            "let mut n = m.a; for k in std::iter::from_fn(|| { if n == 0 { None } else { n -= 1; Some(n) } }) { self.d.put(k, 1); }",
            "from_fn(",
        ),
        (
            "let mut n = 3; let mut ids = iter::from_fn(|| { n += m.a; Some(n) }); let k = ids.next(); self.o.put(k, 1);",
            "ids.next()",
        ),
        (
            "let mut n = m.a; let v: Vec<u64> = std::iter::repeat_with(|| { n += 2; n }).take(3).collect(); for k in v { self.d.put(k, 1); } self.e.put(n, 1);",
            "repeat_with(",
        ),
        (
            "let mut n = 3; let v: Vec<u64> = std::iter::successors(Some(m.a), |x| { n += 1; if n > 6 { None } else { Some(x + n) } }).collect(); self.d.put(v[0], n);",
            "successors(",
        ),
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(map.contains(kept), "{body}\n{map}");
    }

    for body in [
        "let mut n = 3; let mut ids = std::iter::from_fn(|| { n += 1; Some(n) }); if self.d.contains(&m.a) { ids.next(); } self.e.put(n, 1);",
        "let mut n = 3; for k in std::iter::from_fn(|| { n += 1; (n < 9).then_some(n) }) { if self.d.contains(&k) { break; } } self.e.put(n, 1);",
        "let mut n = 3; let ids = from_fn(|| { n += 1; Some(n) }); for k in ids.take(3) { self.d.put(k, 1); }",
        "let k = std::iter::repeat_with(|| COUNT.fetch_add(1, Relaxed)).take(2).sum(); self.d.put(k, 1);",
    ] {
        let d = handler(body);
        assert!(
            errors(&d).iter().any(|e| e.contains("is not a function of the message")),
            "{body}\n{:?}",
            errors(&d)
        );
    }

    let d = handler("for k in std::iter::repeat_with(|| m.a) { if self.d.contains(&k) { break; } }");
    assert!(errors(&d)[0].contains("only state ends this loop"), "{:?}", errors(&d));
}

#[test]
fn what_is_dropped_early_is_dropped_in_the_map() {
    for (body, kept) in [
        ("let mut n = m.a; let r = &mut n; *r += 1; drop(r); self.d.put(n, 1);", "*r+=1;"),
        ("let mut n = m.a; let g = Guard(&mut n); drop(g); self.d.put(n, 1);", "drop(g);"),
        ("let mut o = None; drop(o.insert(m.a)); self.d.put(o.unwrap_or(9), 1);", "drop(o.insert(m.a));"),
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
        let map = d.handlers[0].map.to_string().replace(' ', "");
        assert!(map.contains(kept), "{body}\n{map}");
    }
}

#[test]
fn the_error_for_a_change_in_a_stored_closure_does_not_blame_state() {
    let stored = "let mut n = 0; let f = Some(Box::new(|x| n += x)); if let Some(mut f) = f { f(m.a); } self.d.put(n, 1);";
    let e = errors(&handler(stored)).concat();
    assert!(e.contains("`n` is changed at line 1 by a closure that may run at another time"), "{e}");

    let by_state = "let mut n = 0; if self.d.contains(&m.a) { n += 1; } self.e.put(n, 1);";
    let e = errors(&handler(by_state)).concat();
    assert!(e.contains("`n` is assigned at line 1 under a condition that depends on state"), "{e}");
}
