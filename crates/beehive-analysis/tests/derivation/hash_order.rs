//! The order of hash maps and hash sets differs between the map and the handler: keys that depend on it are
//! refused, and the alternatives that the error suggests are accepted.

use crate::{errors, handler};

#[test]
fn what_depends_on_the_order_is_refused_with_the_ways_out() {
    let cases = [
        "let s: HashSet<u64> = m.items.iter().copied().collect(); for k in s.iter().take(2) { self.d.put(*k, 1); }",
        "let s = m.items.iter().copied().collect::<HashSet<u64>>(); for (i, k) in s.iter().enumerate() { self.t.put((i as u64, *k), 1); }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); if let Some(k) = s.iter().next() { self.d.put(*k, 1); }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let k = s.iter().fold(0, |a, b| a * 31 + b); self.d.put(k, 1);",
        "let s: HashMap<u64, u64> = m.pairs.iter().copied().collect(); if let Some((k, _)) = s.iter().max_by_key(|p| *p.1) { self.d.put(*k, 1); }",
        "let v: Vec<u64> = m.items.iter().copied().collect::<HashSet<_>>().into_iter().collect(); self.d.put(v[0], 1);",
        "let v: Vec<u64> = m.items.iter().copied().collect::<HashSet<_>>().into_iter().collect(); let [k, ..] = v[..] else { return }; self.d.put(k, 1);",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let name = format!(\"{s:?}\"); self.g.put(name, 1);",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let mut n = 0; for k in &s { n = n * 31 + k; } self.d.put(n, 1);",
        "let mut s: HashSet<u64> = Default::default(); s.extend(&m.items); let mut v: Vec<u64> = s.iter().take(2).copied().collect(); v.sort(); for k in v { self.d.put(k, 1); }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let mut v: Vec<u64> = s.into_iter().collect(); v.sort_by_key(|k| k % 2); self.d.put(v[0], 1);",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let mut v: Vec<u64> = s.into_iter().collect(); if m.flag { v.sort(); } for k in v.iter().take(1) { self.d.put(*k, 1); }",
        "let mut v: Vec<u64> = vec![]; let s: HashSet<u64> = m.items.iter().copied().collect(); v.extend(s.iter()); self.d.put(v[0], 1);",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let mut n = 0; let v: Vec<u64> = s.iter().map(|k| { n += 1; k * n }).collect(); for k in v { self.d.put(k, 1); }",
        "let s: Set<u64> = m.items.iter().copied().collect(); for k in s.iter().take(1) { self.d.put(*k, 1); }",
        "let s = HashSet::from([m.a, m.b]); for k in s.iter().take(1) { self.d.put(*k, 1); }",
        "let s = Self::unique(&m.items); for k in s.iter().take(1) { self.d.put(*k, 1); } } fn unique(of: &[u64]) -> HashSet<u64> { of.iter().copied().collect()",
        "let v = Self::unique(&m.items); for k in v.iter().take(1) { self.d.put(*k, 1); } } fn unique(of: &[u64]) -> Vec<u64> { of.iter().copied().collect::<HashSet<_>>().into_iter().collect()",
    ];

    let mut wrong = vec![];
    for body in cases {
        let found = errors(&handler(body));
        let text = |e: &String| e.contains("is not a function of the message");
        if !found.iter().any(text) {
            wrong.push(format!("{body}\n    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));

    let found = errors(&handler(cases[0]));
    assert!(found[0].contains("it depends on the order of a hash map or a hash set (line 1)"), "{found:?}");
    assert!(found[0].contains("sort the elements first") && found[0].contains("`BTreeSet`"), "{found:?}");
}

#[test]
fn what_does_not_depend_on_the_order_is_accepted() {
    for body in [
        "let s: HashSet<u64> = m.items.iter().copied().collect(); self.d.put(s.len() as u64, 1);",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); if s.contains(&m.a) { self.d.put(m.a, 1); }",
        "let mut seen: HashSet<u64> = Default::default(); for k in &m.items { if seen.insert(*k) { self.d.put(*k, 1); } }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let mut v: Vec<u64> = s.into_iter().collect(); v.sort(); for k in v.iter().take(2) { self.d.put(*k, 1); }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let mut v: Vec<u64> = s.into_iter().map(|k| k + 1).collect(); v.sort_unstable(); v.dedup(); self.d.put(v.len() as u64, 1);",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); let o: BTreeSet<u64> = s.into_iter().collect(); for k in o.iter().take(2) { self.d.put(*k, 1); }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); for k in s.iter().collect::<BTreeSet<_>>() { self.d.put(*k, 1); }",
        "let s: HashMap<u64, u64> = m.pairs.iter().copied().collect(); if let Some(k) = s.get(&m.a) { self.d.put(*k, 1); }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); if let Some(k) = s.iter().max() { self.d.put(*k, 1); }",
        "let s: HashSet<u64> = m.items.iter().copied().collect(); for _ in &s { self.d.put(m.a, 1); }",
        // the message keeps its own order
        "for k in m.set.iter().take(2) { self.d.put(*k, 1); }",
    ] {
        let d = handler(body);
        assert!(d.errors.is_empty(), "{body}\n{:?}", errors(&d));
    }
}

#[test]
fn counting_in_a_hash_map_is_no_dependence_on_its_order() {
    const COUNTED: &str = "let mut c: HashMap<u64, u64> = HashMap::new(); for k in &m.items { *c.entry(*k).or_default() += 1; }";
    for rest in [
        "let mut v: Vec<(u64, u64)> = c.into_iter().collect(); v.sort(); for (k, n) in v { self.t.put((k, n), 1); }",
        "let n = c.get(&m.a).copied().unwrap_or(0); self.d.put(n, 1);",
    ] {
        let d = handler(&format!("{COUNTED} {rest}"));
        assert!(d.errors.is_empty(), "{rest}\n{:?}", errors(&d));
    }

    for body in [
        &format!("{COUNTED} if let Some(k) = c.keys().next() {{ self.d.put(*k, 1); }}"),
        "let mut c: HashMap<u64, HashSet<u64>> = HashMap::new(); for (a, b) in &m.pairs { c.entry(*a).or_default().insert(*b); } if let Some(k) = c.entry(m.a).or_default().iter().next() { self.d.put(*k, 1); }",
        "let mut c = HashMap::new(); c.insert(m.a, m.items.iter().copied().collect::<HashSet<u64>>()); if let Some(k) = c.entry(m.a).or_default().iter().next() { self.d.put(*k, 1); }",
    ] {
        let d = handler(body);
        assert!(errors(&d).iter().any(|e| e.contains("depends on the order")), "{body}\n{:?}", errors(&d));
    }
}
