//! Hash maps and hash sets that no local's own type shows: keys computed from their order are refused, and keys that do
//! not depend on it are accepted.

use crate::{errors, handler};

const SAYS: &str = "the order of a hash map or a hash set";

fn says(body: &str) -> Vec<String> {
    errors(&handler(body))
}

#[test]
fn the_order_of_a_hidden_collection_decides_no_key() {
    for body in [
        "let mut h: HashMap<u64, HashSet<u64>> = Default::default(); h.entry(m.a).or_default().extend(m.v.iter().copied()); if let Some(k) = h.get(&m.a).and_then(|s| s.iter().next()) { self.d.put(*k, 1); }",
        "let mut h = HashMap::new(); h.insert(m.a, m.v.iter().copied().collect::<HashSet<u64>>()); if let Some(s) = h.remove(&m.a) { for k in s.into_iter().take(1) { self.d.put(k, 1); } }",
        "let mut h: BTreeMap<u64, HashSet<u64>> = BTreeMap::new(); h.insert(m.a, m.v.iter().copied().collect()); if let Some(s) = h.get(&m.a) { for k in s.iter().take(1) { self.d.put(*k, 1); } }",
        "struct Own { all: HashSet<u64> } let own = Own { all: m.v.iter().copied().collect() }; if let Some(k) = own.all.iter().next() { self.d.put(*k, 1); }",
        "struct Own { all: HashSet<u64> } let own = Own { all: m.v.iter().copied().collect() }; let mut v = vec![]; for k in own.all { v.push(k); } self.d.put(v[0], 1);",
        "type Own = HashSet<u64>; let own: Own = m.v.iter().copied().collect(); if let Some(k) = own.iter().next() { self.d.put(*k, 1); }",
        "let s = <HashSet<u64> as FromIterator<u64>>::from_iter(m.v.iter().copied()); if let Some(k) = s.iter().next() { self.d.put(*k, 1); }",
        "let mut s = HashSet::new(); s.insert(m.a); s.insert(m.b); if let Some(k) = s.iter().next() { self.d.put(*k, 1); }",
        "let s = HashSet::from([m.a, m.b]); for k in s.iter().take(1) { self.d.put(*k, 1); }",
        "let mut h = HashMap::new(); h.insert(m.a, vec![m.v.iter().copied().collect::<HashSet<u64>>()]); if let Some(k) = h.get(&m.a).and_then(|v| v[0].iter().next()) { self.d.put(*k, 1); }",
        "let mut h = HashMap::new(); h.entry(m.a).or_insert_with(Vec::new).push(m.v.iter().copied().collect::<HashSet<u64>>()); if let Some(k) = h.get(&m.a).and_then(|v| v[0].iter().next()) { self.d.put(*k, 1); }",
        "struct Own { all: HashSet<u64> } let k = m.v.iter().fold(Own { all: m.v.iter().copied().collect() }, |o, _| o).all.iter().next().copied().unwrap_or(1); self.d.put(k, 1);",
        "struct Own { all: HashSet<u64> } let k = m.v.iter().map(|_| Own { all: m.v.iter().copied().collect() }).filter_map(|o| o.all.iter().next().copied()).max().unwrap_or(2); self.d.put(k, 1);",
        "type Own = HashSet<u64>; let k = m.v.iter().copied().collect::<Own>().iter().next().copied().unwrap_or(1); self.d.put(k, 1);",
        "struct Own { a: HashSet<u64>, b: HashSet<u64> } let own = Own { a: m.v.iter().copied().collect(), b: HashSet::from([m.b]) }; let s = &own.a | &own.b; if let Some(k) = s.iter().next() { self.d.put(*k, 1); }",
        "use std::collections::HashSet as Set; let mut s = Set::new(); s.extend(m.v.iter().copied()); for k in s.iter().take(1) { self.d.put(*k, 1); }",
        "let s = HashSet::from([m.a]); let n = m.b; let mut h = HashMap::new(); h.insert(m.a, match m.opt { Some(_) => { let n = s; n } None => Default::default() }); if let Some(k) = h.get(&m.a).and_then(|s| s.iter().next()) { self.d.put(*k, n); }",
        // imported under this name outside of the block
        "let mut s = Set::new(); s.extend(m.v.iter().copied()); for k in s.iter().take(1) { self.d.put(*k, 1); }",
        "if let Some(k) = Set::from([m.a, m.b]).iter().next() { self.d.put(*k, 1); }",
    ] {
        let found = says(body);
        assert!(found.len() == 1 && found[0].contains(SAYS), "{body}\n{found:?}");
    }
}

#[test]
fn what_does_not_depend_on_the_order_is_a_key() {
    for body in [
        "let mut seen = HashSet::new(); let v: Vec<u64> = m.v.iter().copied().filter(|k| seen.insert(*k)).collect(); for k in v { self.d.put(k, 1); }",
        "let mut n = HashMap::new(); for k in &m.v { *n.entry(*k).or_insert(0u64) += 1; } self.d.put(n.get(&m.a).copied().unwrap_or(0), 1);",
        "let mut n = HashMap::new(); for k in &m.v { n.entry(*k).or_insert_with(Vec::new).push(m.a); } self.d.put(n.get(&m.a).map_or(0, |v| v.len() as u64), 1);",
        "let mut s = HashSet::new(); s.insert(m.a); s.remove(&m.b); self.d.put(s.len() as u64, 1);",
        "let mut n: HashMap<u64, u64> = HashMap::with_capacity(2); n.insert(m.a, m.b); if let Some(k) = n.get(&m.a) { self.d.put(*k, 1); }",
        "struct Own { all: HashSet<u64> } let own = Own { all: m.v.iter().copied().collect() }; for k in m.v.iter() { self.d.put(*k, own.all.len() as u64); }",
        "struct Own { all: HashSet<u64> } let own = Own { all: m.v.iter().copied().collect() }; let mut v: Vec<u64> = own.all.into_iter().collect(); v.sort(); for k in v { self.d.put(k, 1); }",
        // none of these contains one, although the function has some
        "struct Own { all: HashSet<u64> } let own = Own { all: m.v.iter().copied().collect() }; let l: Vec<u64> = m.v.iter().copied().filter(|k| own.all.contains(k)).collect(); for k in l.chunks(2).map(|c| c.iter().sum::<u64>()) { self.d.put(k, 1); }",
        "struct Own { all: HashSet<u64> } let own = Own { all: m.v.iter().copied().collect() }; let n = own.all.len() as u64; let l = m.v.iter().map(|k| k ^ 1).collect::<Vec<u64>>(); for k in l.iter() { self.d.put(*k, n); }",
        "let s: HashSet<u64> = m.v.iter().copied().collect(); let h: HashMap<u64, u64> = m.pairs.iter().copied().collect(); if let Some(k) = h.get(&m.a) { self.d.put(*k, s.len() as u64); }",
        "let s = HashSet::from([m.a]); let mut n = HashMap::new(); for k in &m.v { n.entry(*k).or_insert_with(Vec::new).push(*k); } self.d.put(n.get(&m.a).map_or(0, |v| v.len() as u64), s.len() as u64);",
        "let mut n = HashMap::new(); n.insert(m.a, m.b); let mut n = HashMap::new(); n.insert(m.b, vec![m.a]); if let Some(k) = n.get(&m.a).and_then(|v| v.first()) { self.d.put(*k, 1); }",
    ] {
        let found = says(body);
        assert!(found.is_empty(), "{body}\n{found:?}");
    }
}
