//! The forms that belong to a single class of bodies, as data.

use super::classes::{Class, Form};
use super::forms::Of;

/// A statement.
const fn does(text: &'static str) -> Form {
    Form { text, declares: None, derivable: true }
}

/// A declaration of a local that is a function of the message.
const fn gives(of: Of, text: &'static str) -> Form {
    Form { text, declares: Some(of), derivable: true }
}

/// A declaration of a local that is not a function of the message, or not visibly one.
const fn hides(of: Of, text: &'static str) -> Form {
    Form { text, declares: Some(of), derivable: false }
}

/// A statement for which a person would not try to write a map, or whose effect is hidden.
const fn obscures(text: &'static str) -> Form {
    Form { text, declares: None, derivable: false }
}

/// Returns the forms of a class that are not in the other tables.
pub(super) fn forms(class: Class) -> &'static [Form] {
    match class {
        Class::HiddenChanges => HIDDEN_CHANGES,
        Class::WrongDrops => WRONG_DROPS,
        Class::Promises => PROMISES,
        Class::HashOrder => HASH_ORDER,
        Class::SideEffects => SIDE_EFFECTS,
        Class::Macros => MACROS,
        Class::Panics => PANICS,
        Class::Costs => COSTS,
        Class::Ordinary => ORDINARY,
        Class::CountedLoops => COUNTED_LOOPS,
    }
}

const HIDDEN_CHANGES: &[Form] = &[
    gives(Of::Number, "let both = &mut [{n}, {n}]; both.sort(); let {v} = both[0];"),
    hides(
        Of::Number,
        "let cell = std::cell::Cell::new({n}); let r = &cell; r.set(r.get() ^ {n}); let {v} = cell.get();",
    ),
    hides(
        Of::List,
        "let cell = std::cell::RefCell::new(vec![{n}]); cell.borrow_mut().push({n}); let {v} = cell.into_inner();",
    ),
    hides(
        Of::List,
        "let leaked: &'static mut Vec<u64> = Box::leak(Box::new({l}.clone())); leaked.sort(); let {v} = leaked.clone();",
    ),
    gives(
        Of::List,
        "let mut all = {l}.clone(); let rest = &mut all.iter_mut(); if let Some(r) = rest.next() { *r = {n}; } let {v} = all;",
    ),
    gives(Of::List, "let mut all = {l}.clone(); for c in all.chunks_mut(2) { c[0] ^= {n}; } let {v} = all;"),
    gives(Of::Number, "let {v} = { let r = &mut {n}.clone(); *r ^= 5; *r };"),
    gives(Of::Maybe, "let slot = &mut Some({n}); if let Some(r) = slot { *r ^= {n}; } let {v} = *slot;"),
    hides(
        Of::Number,
        "let shared = std::rc::Rc::new(std::cell::Cell::new({n})); let other = shared.clone(); other.set({n}); let {v} = shared.get();",
    ),
    gives(
        Of::List,
        "let mut low = vec![]; { let out = &mut low; m.items.iter().for_each(|q| if *q > {n} { out.push(*q) }); } let {v} = low;",
    ),
];

const WRONG_DROPS: &[Form] = &[
    does("{ let mut q = {o}; let _old = q.take(); if q.is_none() { self.{d}.put({n}, 1); } }"),
    does(
        "{ let mut rest = {l}.iter(); let _first = rest.next(); if rest.next().is_some() { self.{d}.put({n}, 1); } }",
    ),
    does(
        "{ let mut rest = {l}.iter(); if rest.next().is_some() { if let Some(q) = rest.next() { self.{d}.put(*q, 1); } } }",
    ),
    does("{ let mut q = {o}; if let Some(r) = q.take() { if q.is_none() { self.{d}.put(r, 1); } } }"),
    does("{ let mut q = {l}.clone(); q.retain(|r| *r > {n}); if !q.is_empty() { self.{d}.put({n}, 1); } }"),
    does("{ let e = &mut [{n}, {n}]; e.sort(); if e[0] < e[1] { self.{d}.put({n}, 1); } }"),
    does(
        "{ let mut seen = BTreeSet::new(); for q in &m.items { if !seen.insert(*q) { self.{d}.put(*q, 1); } } }",
    ),
    does(
        "{ let q = std::cell::Cell::new({n}); q.set(q.get() ^ 1); if q.get() > 2 { self.{d}.put({n}, 1); } }",
    ),
    does("{ let mut q = {n}; if std::mem::replace(&mut q, 9) > 2 && q == 9 { self.{d}.put({n}, 1); } }"),
    does(
        "{ let mut q = {t}.chars(); if q.next() == Some('1') && q.next().is_none() { self.{d}.put({n}, 1); } }",
    ),
    does(
        "{ let mut q = {s}.clone(); while let Some(r) = q.pop_first() { if r > {n} { self.{d}.put(r, 1); } } }",
    ),
    does(
        "{ let mut q = {l}.clone(); if let Some(r) = q.pop() { if q.contains(&r) { self.{d}.put(r, 1); } } }",
    ),
    does(
        "{ let mut q = 0; if m.items.iter().all(|r| { q += 1; *r < 9 }) && q > 1 { self.{d}.put({n}, 1); } }",
    ),
    does(
        "{ let mut q = {l}.clone(); let r = &mut q; r.dedup(); let r = r.len(); if r < m.items.len() { self.{d}.put({n}, 1); } }",
    ),
    does(
        "{ let mut q = {n}; let mut next = || { q ^= 3; q }; if next() > next() { self.{d}.put({n}, 1); } }",
    ),
];

const PROMISES: &[Form] = &[
    does("self.either{i}({n});"),
    gives(Of::Number, "let {v} = pure!(outside({n}, {n}));"),
    gives(Of::Number, "let {v} = pure!({n}.wrapping_mul(3));"),
    gives(Of::List, "let mut {v} = pure!(spread({n})); {v}.reverse();"),
    gives(Of::List, "let mut {v} = {l}.clone(); pure!({v}.reverse());"),
    gives(Of::Number, "let {v} = pure!({l}.iter().map(|q| outside(*q, {n})).max().unwrap_or(2));"),
    gives(Of::Number, "let {v} = Self::which{i}({n});"),
    gives(Of::List, "let mut {v} = vec![{n}]; Self::fill{i}(&mut {v}, {n});"),
    does("if self.{d}.contains(&({k})) { self.either{i}({n}); }"),
    does("self.{d}.put(pure!(outside({n}, 1)), 1);"),
    hides(Of::Number, "let {v} = outside({n}, 1);"),
    hides(Of::List, "let {v} = spread({n});"),
];

const HASH_ORDER: &[Form] = &[
    gives(
        Of::Number,
        "let mut lists = std::collections::HashMap::new(); for q in &m.items { lists.entry(*q).or_insert_with(Vec::new).push({n}); } let {v} = lists.get(&{n}).map_or(7, |q| q.len() as u64);",
    ),
    hides(
        Of::Number,
        "let mut nested: std::collections::HashMap<u64, std::collections::HashSet<u64>> = Default::default(); nested.entry(m.a).or_default().extend(m.items.iter().copied()); let {v} = nested.get(&m.a).and_then(|q| q.iter().next().copied()).unwrap_or(1);",
    ),
    hides(
        Of::Number,
        "let mut nested = std::collections::HashMap::new(); nested.insert(m.a, {l}.iter().copied().collect::<std::collections::HashSet<u64>>()); let {v} = nested.remove(&m.a).and_then(|q| q.into_iter().next()).unwrap_or(1);",
    ),
    hides(
        Of::Number,
        "struct Own { all: std::collections::HashSet<u64> } let own = Own { all: {l}.iter().copied().collect() }; let {v} = own.all.iter().next().copied().unwrap_or(1);",
    ),
    hides(
        Of::List,
        "fn some(v: &[u64]) -> std::collections::HashSet<u64> { v.iter().copied().collect() } let mut {v} = vec![]; for q in some(&{l}) { {v}.push(q); } {v}.truncate(1);",
    ),
    hides(
        Of::Number,
        "let {v} = <std::collections::HashSet<u64> as FromIterator<u64>>::from_iter({l}.iter().copied()).iter().next().copied().unwrap_or(1);",
    ),
    hides(
        Of::Number,
        "let mut lists = std::collections::HashMap::new(); lists.entry(m.a).or_insert_with(Vec::new).push({l}.iter().copied().collect::<std::collections::HashSet<u64>>()); let {v} = lists.get(&m.a).and_then(|q| q[0].iter().next().copied()).unwrap_or(1);",
    ),
    hides(
        Of::Number,
        "let mut lists = std::collections::BTreeMap::new(); lists.insert(m.a, Vec::new()); if let Some(q) = lists.get_mut(&m.a) { q.push({l}.iter().copied().collect::<std::collections::HashSet<u64>>()); } let {v} = lists.get(&m.a).and_then(|q| q[0].iter().next().copied()).unwrap_or(1);",
    ),
    hides(
        Of::Number,
        "struct Last { all: std::collections::HashSet<u64> } let {v} = m.items.iter().fold(Last { all: {l}.iter().copied().collect() }, |q, _| q).all.iter().next().copied().unwrap_or(1);",
    ),
    hides(
        Of::Number,
        "type Unique = std::collections::HashSet<u64>; let {v} = {l}.iter().copied().collect::<Unique>().iter().next().copied().unwrap_or(1);",
    ),
    hides(
        Of::Number,
        "use std::collections::HashSet as Unordered; let mut all = Unordered::new(); all.extend({l}.iter().copied()); let {v} = all.iter().next().copied().unwrap_or(1);",
    ),
    gives(
        Of::Number,
        "let {v} = {l}.iter().copied().collect::<std::collections::HashSet<u64>>().len() as u64;",
    ),
    gives(
        Of::List,
        "let mut {v}: Vec<u64> = {l}.iter().copied().collect::<std::collections::HashSet<_>>().into_iter().collect(); {v}.sort();",
    ),
    gives(
        Of::Number,
        "let hashed: std::collections::HashMap<u64, u64> = m.pairs.iter().copied().collect(); let {v} = hashed.get(&{n}).copied().unwrap_or({n});",
    ),
    gives(
        Of::List,
        "let mut seen = std::collections::HashSet::new(); let {v}: Vec<u64> = {l}.iter().copied().filter(|q| seen.insert(*q)).collect();",
    ),
    gives(
        Of::Set,
        "let hashed: std::collections::HashSet<u64> = {l}.iter().copied().collect(); let {v} = hashed.iter().copied().collect::<BTreeSet<u64>>();",
    ),
    gives(
        Of::Number,
        "let hashed: std::collections::HashSet<u64> = {l}.iter().copied().collect(); let {v} = u64::from(hashed.contains(&{n}));",
    ),
    gives(
        Of::Number,
        "let mut counts = std::collections::HashMap::new(); for q in &m.items { *counts.entry(*q).or_insert(0u64) += 1; } let {v} = counts.get(&{n}).copied().unwrap_or(7);",
    ),
    gives(
        Of::Number,
        "let mut hashed = std::collections::HashSet::new(); hashed.insert({n}); hashed.remove(&{n}); let {v} = hashed.len() as u64 ^ {n};",
    ),
    does(
        "let mut seen = std::collections::HashSet::new(); for q in &m.items { if seen.insert(*q) { self.{d}.put(*q, 1); } }",
    ),
    hides(
        Of::Number,
        "let hashed: std::collections::HashSet<u64> = {l}.iter().copied().collect(); let {v} = hashed.into_iter().next().unwrap_or(1);",
    ),
    hides(
        Of::List,
        "let {v} = {l}.iter().copied().collect::<std::collections::HashSet<u64>>().into_iter().take(1).collect::<Vec<u64>>();",
    ),
    hides(
        Of::Number,
        "let hashed: std::collections::HashMap<u64, u64> = m.pairs.iter().copied().collect(); let {v} = hashed.iter().max_by_key(|q| *q.1 % 2).map_or(1, |q| *q.0);",
    ),
    hides(
        Of::Number,
        "let mut {v} = 1u64; let hashed: std::collections::HashSet<u64> = {l}.iter().copied().collect(); for (i, q) in hashed.iter().enumerate() { {v} = {v}.wrapping_mul(3) ^ q ^ i as u64; }",
    ),
    hides(
        Of::List,
        "let hashed: std::collections::HashSet<u64> = {l}.iter().copied().collect(); let mut {v} = vec![]; for q in &hashed { {v}.push(*q); } {v}.truncate(1);",
    ),
];

const SIDE_EFFECTS: &[Form] = &[
    hides(Of::Number, "let {v} = NUMBERS.number();"),
    hides(Of::Number, "let numbers = &NUMBERS; let {v} = numbers.number() ^ {n};"),
    does("COUNT.fetch_add(1, Ordering::Relaxed);"),
    does("ctx.emit(Note(COUNT.fetch_add({n}, Ordering::Relaxed)));"),
    does("SENT.lock().unwrap().push({n});"),
    does("LAST.with(|q| q.set({n}));"),
    does("self.{d}.put({k}, COUNT.fetch_add(1, Ordering::Relaxed));"),
    does("let sent = {n}; if let Ok(mut all) = SENT.lock() { all.push(sent); }"),
    does("let counted = &COUNT; counted.store({n}, Ordering::Relaxed);"),
    does("tracing::trace!(\"{}\", COUNT.fetch_add(1, Ordering::Relaxed));"),
    does("let bump = || COUNT.fetch_add(1, Ordering::Relaxed); ctx.emit(Note(bump()));"),
    does("if COUNT.fetch_add(1, Ordering::Relaxed) > 900_000 { self.{d}.put({k}, 1); }"),
    gives(Of::Number, "let {v} = LIMITS[0] ^ {n};"),
    gives(Of::Number, "let {v} = LIMITS.len() as u64 ^ {n};"),
    gives(Of::Number, "let {v} = {n} ^ u64::from(LIMITS.contains(&{n}));"),
    hides(Of::Number, "let {v} = COUNT.fetch_add(1, Ordering::Relaxed);"),
    hides(Of::Number, "let {v} = LAST.with(|q| q.replace({n}));"),
    hides(Of::Number, "SENT.lock().unwrap().push({n}); let {v} = SENT.lock().unwrap().len() as u64;"),
    hides(
        Of::Number,
        "let (to, from) = std::sync::mpsc::channel(); let _ = to.send({n}); let {v} = from.recv().unwrap_or(1);",
    ),
    hides(Of::Number, "let counted = &COUNT; let {v} = counted.swap({n}, Ordering::Relaxed);"),
];

const MACROS: &[Form] = &[
    does("assert!({n} < 1_000 || m.flag || !m.flag);"),
    does("debug_assert_eq!({n}, {n}.clone());"),
    does("tracing::trace!(\"{q} {}\", {n}, q = {n});"),
    does("let _ = format!(\"{:?}\", {l});"),
    does("if matches!({o}, Some(q) if q > {n}) { self.{d}.put({k}, 1); }"),
    // only the macro's definition shows that the macro binds no name; a person reads it, and the compiler checks it
    does("show!(m.a);"),
    does("if {n} > 2 { show!({n}); }"),
    obscures("another!(m.a); self.{d}.put(m.a ^ m.b, {n});"),
    gives(Of::Text, "let {v} = { let r#type = {n}; format!(\"{type}\") };"),
    gives(Of::Text, "let {v} = { let wide = {n}; let width = 3; format!(\"{wide:>width$}\") };"),
    gives(Of::Number, "let {v} = u64::from(matches!({o}, Some(q) if q > {n}));"),
    gives(
        Of::Text,
        "let mut {v} = String::new(); let _ = writeln!({v}, \"{}\", {n}); let _ = write!(&mut {v}, \"{:?}\", {o});",
    ),
    gives(Of::List, "let mut {v} = vec![{n}; 2]; {v}.extend(vec![{n}]);"),
    gives(Of::Text, "let {v} = concat!(\"1\", 2).to_string();"),
    gives(Of::Number, "let {v} = if cfg!(any()) { 3 } else { {n} };"),
    gives(Of::Number, "let {v} = match m.opt { Some(q) => q, None => { tracing::trace!(\"none\"); {n} } };"),
    hides(Of::Number, "let mut {v} = {n}; debug!(\"{}\", {v});"),
    hides(Of::Number, "let {v} = show!(m.a);"),
    hides(Of::Number, "let {v} = {n}; again!({v});"),
    gives(Of::Number, "let {v} = {n}; { again!({v}); show!({v}); }"),
    hides(Of::Number, "let mut {v} = {n}; swap_with!({v}, m.a);"),
];

const PANICS: &[Form] = &[
    does(
        "if self.{d}.get(&({k})).is_some_and(|q| *q > 90) { self.{d}.put(m.opt.unwrap(), {n}); } self.{d}.put(m.b, 1);",
    ),
    does("if self.{d}.contains(&({k})) { self.e.put(m.name.parse::<u64>().expect(\"a number\"), 1); }"),
    does("if self.{d}.get(&({k})).is_some_and(|q| *q > 90) { self.{d}.put(m.items[7], {n}); }"),
    does("if let Some(q @ 91..) = self.{d}.get(&({k})).copied() { self.{d}.put(m.opt.unwrap() - 9, q); }"),
    does(
        "match self.{d}.get(&({k})).copied() { Some(91..) => { self.{d}.put({n} / m.a.saturating_sub(9), 1); } _ => {} }",
    ),
    does(
        "for q in &m.items { if self.{d}.get(q).is_some_and(|q| *q > 90) { self.e.put(m.pairs[9].0, 1); } }",
    ),
    does(
        "if self.{d}.contains(&({k})) && self.e.get(&2).is_some_and(|q| *q > 90) { self.e.put(m.name.parse::<u64>().unwrap() + m.text[9..].len() as u64, 1); }",
    ),
    does("if self.{d}.contains(&({k})) { let q = m.items[0]; self.e.put(q, 1); }"),
    does("if !self.{d}.contains(&({k})) { return Ok(()); } self.{d}.put(m.items[0], 1);"),
    does(
        "let Some(q @ 91..) = self.{d}.get(&({k})).copied() else { return Ok(()) }; self.{d}.put(m.a - 9, q);",
    ),
    does(
        "{ let q = self.{d}.get(&({k})).copied().unwrap_or(1); if q > 90 { let r: [u64; 2] = m.items[..2].try_into().unwrap(); self.e.put(r[1], q); } }",
    ),
    does(
        "if self.{d}.get(&({k})).is_some_and(|q| *q > 90) { let (q, r) = m.items.split_at(9); self.e.put(q[0] ^ r[0], 1); }",
    ),
    gives(Of::Number, "let {v} = m.mac[5] as u64 ^ {n};"),
    gives(Of::Number, "let {v} = {l}.windows(2).map(|w| w[0] ^ w[1]).max().unwrap_or({n});"),
    gives(Of::Number, "let {v} = [{n}, {n}, {n}][{n} as usize % 3];"),
    gives(Of::Number, "let {v} = {n} / ({n} % 3 + 1);"),
];

const COSTS: &[Form] = &[
    does("for q in 0..{n} % 9 { self.{d}.put(q, 1); }"),
    does(
        "{ let mut todo = vec![{n} % 9]; while let Some(q) = todo.pop() { self.{d}.put(q, 1); if q > 1 { todo.push(q / 2); } } }",
    ),
    does("for q in ({n}..).take(3) { self.{d}.put(q, 1); }"),
    does("{ let mut k = 0; loop { k += 1; if k > {n} % 5 { break; } self.{d}.put(k, 1); } }"),
    does("for q in 2..5 { if self.{d}.contains(&q) { continue; } self.{d}.put(q, {n}); break; }"),
    obscures("{ let mut port = 1000; for _ in 0..4 { if !self.{d}.contains(&port) { break; } port += 1; } }"),
    does("for q in &m.items { for r in &m.items { self.{d}.put(q ^ r, {n}); } }"),
    does(
        "{ let mut k = {n} % 9; while k != 1 && k != 0 { self.{d}.put(k, 1); k = if k % 2 == 0 { k / 2 } else { k - 1 }; } }",
    ),
    does("std::iter::successors(Some({n} % 9), |q| q.checked_sub(2)).for_each(|q| { self.{d}.put(q, 1); });"),
    gives(Of::List, "let {v} = (0..{n} % 4).flat_map(|q| (0..q).map(move |r| q ^ r)).collect::<Vec<u64>>();"),
    gives(Of::Number, "let {v} = (1..).find(|q| q * q > {n}).unwrap_or(1);"),
    obscures("for q in 2u64.. { if self.{d}.contains(&q) { continue; } self.{d}.put(q, {n}); break; }"),
    obscures(
        "for q in std::iter::successors(Some({n}), |q| Some(q + 1)) { if !self.{d}.contains(&q) { self.{d}.put(q, 1); break; } }",
    ),
    hides(Of::Number, "let mut {v} = {n}; while self.{d}.contains(&({k})) && {v} < 9 { {v} += 1; }"),
];

const ORDINARY: &[Form] = &[
    gives(
        Of::Number,
        "let mut parts = {t}.split('/'); let {v} = parts.next().and_then(|s| s.trim().parse().ok()).unwrap_or({n});",
    ),
    gives(Of::List, "let mut {v} = {l}.clone(); {v}.sort_by(|a, b| b.cmp(a)); {v}.retain(|q| q % 3 != 1);"),
    gives(
        Of::Number,
        "let {v} = match m.kind { Kind::A(q) => q, Kind::B { x } => { tracing::trace!(\"{x}\"); x } Kind::C => return Ok(()) };",
    ),
    gives(Of::Number, "let Some({v}) = {o}.or(Some({n})) else { panic!(\"no number\") };"),
    gives(Of::Number, "let {v} = loop { let q = {n} % 7; if q < 7 { break q; } };"),
    gives(Of::Number, "let {v} = 'found: { for q in &m.items { if *q > {n} { break 'found *q; } } {n} };"),
    gives(Of::Number, "let {v} = Self::first{i}::<u64, 2>([{n}, {n}]).unwrap_or(1);"),
    gives(
        Of::Number,
        "let (mut low, mut high) = ({n}, {n}); if low > high { std::mem::swap(&mut low, &mut high); } let {v} = high - low;",
    ),
    gives(
        Of::Number,
        "struct Span { from: u64, to: u64 } impl Span { fn middle(&self) -> u64 { self.from / 2 + self.to / 2 } } let {v} = Span { from: {n}, to: {n} }.middle();",
    ),
    gives(
        Of::Number,
        "enum Side { Left(u64), Right } let side = if m.flag { Side::Left({n}) } else { Side::Right }; let {v} = match side { Side::Left(q) => q, Side::Right => {n} };",
    ),
    gives(
        Of::Text,
        "let {v} = m.inner.tags.iter().map(String::as_str).map(str::trim).collect::<Vec<_>>().concat();",
    ),
    gives(
        Of::List,
        "let {v} = m.inner.tags.iter().map(|q| q.parse::<u64>()).filter_map(std::result::Result::ok).collect::<Vec<u64>>();",
    ),
    gives(Of::Number, "let {v} = std::cmp::min({n}, {n}).max(u64::MIN);"),
    gives(Of::Pair, "let {v} = { let (q, r) = ({n}, {n}); if q < r { (q, r) } else { (r, q) } };"),
    gives(Of::List, "let mut {v} = Vec::new(); for k in &mut {l}.clone() { *k ^= 1; {v}.push(*k); }"),
    gives(Of::Number, "fn half(x: u64) -> u64 { x / 2 } const STEP: u64 = 3; let {v} = half({n}) ^ STEP;"),
    gives(
        Of::Number,
        "let sum = |all: &[u64]| all.iter().fold(0, |p, q| p ^ q); let {v} = sum(&{l}) ^ sum(&[{n}]);",
    ),
    gives(Of::Maybe, "let {v} = {l}.iter().position(|q| *q > {n}).and_then(|i| m.items.get(i)).copied();"),
    gives(
        Of::Number,
        "let mut all = std::collections::BTreeMap::new(); for (k, q) in &m.pairs { all.entry(*k).or_insert_with(Vec::new).push(*q); } let {v} = all.get(&{n}).map_or(0, |q| q.len() as u64);",
    ),
    gives(
        Of::Number,
        "let all: std::collections::VecDeque<u64> = {l}.iter().copied().collect(); let {v} = all.front().copied().unwrap_or({n});",
    ),
];

const COUNTED_LOOPS: &[Form] = &[
    does("{ let mut i = 0; while i < m.items.len() { self.{d}.put(m.items[i], 1); i += 1; } }"),
    does(
        "{ let mut i = 0; loop { let Some(q) = m.items.get(i) else { break }; self.{d}.put(*q, i as u64); i += 1; } }",
    ),
    does("for i in 0..m.items.len() { self.{d}.put(m.items[i] ^ {n}, 1); }"),
    does("for (i, q) in m.items.iter().enumerate().skip(1) { self.{d}.put(q ^ i as u64, 1); }"),
    does("{ let mut i = m.items.len(); while i > 0 { i -= 1; self.{d}.put(m.items[i], 1); } }"),
    does(
        "for i in (0..m.pairs.len()).rev() { let (q, r) = m.pairs[i]; if self.{d}.contains(&q) { self.{d}.put(r, 1); } }",
    ),
    does("{ let mut left = {n} % 4; while left > 0 { left -= 1; self.{d}.put(left, 1); } }"),
    gives(Of::Number, "let mut {v} = 0; for i in 0..m.items.len() { {v} ^= m.items[i] ^ i as u64; }"),
    gives(
        Of::Number,
        "let mut {v} = {n}; let mut i = 0; while i < m.items.len() { if m.items[i] > {v} { {v} = m.items[i]; } i += 1; }",
    ),
    gives(Of::List, "let mut {v} = vec![]; for i in (0..m.items.len()).step_by(2) { {v}.push(m.items[i]); }"),
];
