//! Sources of keys: locals, arithmetic, collections, patterns, functions.

#![allow(unused, clippy::all)]
use crate::message::{Inner, Kind, Load, M, Note, Text};
use crate::{check_handlers, expect_maps};
use beehive::{App, Ctx, Dict, Mapper, Result, handlers, pure};

#[derive(App)]
#[app(name = "keys")]
pub(crate) struct Keys {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    s: Dict<String, u64>,
    t: Dict<(u64, u64), u64>,
}

const BASE: u64 = 1000;

mod outer {
    pub(crate) fn shard(x: u64) -> u64 {
        x % 16
    }
}

#[handlers(pure(listed))]
impl Keys {
    #[rcv(joins)]
    fn load(&mut self, m: &Load) {
        for (k, v) in &m.d {
            self.d.put(*k, *v);
        }

        for (k, v) in &m.e {
            self.e.put(*k, *v);
        }

        for (k, v) in &m.t {
            self.t.put(*k, *v);
        }
    }
    #[rcv(joins)]
    fn field(&mut self, m: &M<1>) {
        self.d.get(&m.a);
    }
    #[rcv(joins)]
    fn let_(&mut self, m: &M<2>) {
        let k = m.a;
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn shadow(&mut self, m: &M<3>) {
        let k = m.a;
        self.d.get(&k);
        let k = m.b;
        self.e.get(&k);
    }
    #[rcv(joins)]
    fn reassign(&mut self, m: &M<4>) {
        let mut k = m.a;
        self.d.get(&k);
        k = m.b;
        self.d.get(&k);
    }
    #[rcv(joins)]
    fn tuple(&mut self, m: &M<5>) {
        *self.t.entry((m.a, m.b)).or_insert(0) += 1;
    }
    #[rcv(joins)]
    fn format(&mut self, m: &M<6>) {
        let node = m.a;
        self.s.put(format!("{node}-{}", m.b), 1);
    }
    #[rcv(joins)]
    fn arith(&mut self, m: &M<7>) {
        self.d.get(&((m.a << 8) | (m.b & 0xff)));
    }
    #[rcv(joins)]
    fn const_(&mut self, m: &M<8>) {
        self.d.get(&(BASE + m.a));
    }
    #[rcv(joins)]
    fn match_(&mut self, m: &M<9>) {
        match &m.kind {
            Kind::A(x) => drop(self.d.put(*x, 1)),
            Kind::B { x } => drop(self.e.put(*x, 1)),
            Kind::C => {}
        }
    }
    #[rcv(joins)]
    fn for_(&mut self, m: &M<13>) {
        for x in &m.items {
            *self.d.entry(*x).or_insert(0) += 1;
        }
    }
    #[rcv(joins)]
    fn nested_for(&mut self, m: &M<14>) {
        for x in &m.items {
            for (p, q) in &m.pairs {
                self.t.put((*x, *p), *q);
            }
        }
    }
    #[rcv(joins)]
    fn chain(&mut self, m: &M<15>) {
        for x in m.items.iter().filter(|x| **x > 2).map(|x| x * 2) {
            self.d.put(x, 1);
        }
    }
    #[rcv(joins)]
    fn assoc(&mut self, m: &M<31>) {
        self.t.put(Self::pair(&m.inner, m.b), 1);
    }
    #[rcv(joins)]
    fn pure(&mut self, m: &M<32>) {
        self.d.put(pure!(outer::shard(m.a)), 1);
    }
    #[rcv(joins)]
    fn destructured_msg(&mut self, M { a, pairs, .. }: &M<46>) {
        for &(p, _) in pairs {
            self.t.put((*a, p), 1);
        }
    }
    #[rcv(joins)]
    fn local_const(&mut self, m: &M<47>) {
        const SHIFT: u64 = 4;
        use std::cmp::min;
        let k = u64::from(m.mac[0]) << SHIFT;
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn block_key(&mut self, m: &M<48>) {
        let k = {
            let mut h = 0u64;
            for b in &m.mac {
                h = h.wrapping_mul(31).wrapping_add(u64::from(*b));
            }
            h
        };
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn match_guard(&mut self, m: &M<49>) {
        match m.kind {
            Kind::A(x) if x > 2 => drop(self.d.put(x, 1)),
            Kind::A(x) | Kind::B { x } => drop(self.e.put(x, 1)),
            Kind::C => {}
        }
    }
    #[rcv(joins)]
    fn collect_keys(&mut self, m: &M<53>) {
        let mut keys = Vec::new();
        for (p, q) in &m.pairs {
            if p != q {
                keys.push(*p);
                keys.push(*q);
            }
        }

        keys.sort();
        keys.dedup();
        for k in keys {
            self.d.put(k, 1);
        }
    }
    #[rcv(joins)]
    fn next(&mut self, m: &M<54>) {
        let mut it = m.items.iter();
        let skipped = it.next();
        while let Some(x) = it.next() {
            self.d.put(*x, 1);
        }
    }
    #[rcv(joins)]
    fn parse(&mut self, m: &M<55>) {
        let k = m.text.trim().parse::<u64>().unwrap_or(0);
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn slice_pattern(&mut self, m: &M<56>) {
        if let [first, .., last] = m.items.as_slice() {
            self.d.put(*first, 1);
            self.e.put(*last, 1);
        }
    }
    #[rcv(joins)]
    fn index(&mut self, m: &M<57>) {
        if !m.items.is_empty() {
            self.d.put(m.items[0], 1);
        }
    }
    #[rcv(joins)]
    fn matches(&mut self, m: &M<58>) {
        if matches!(m.kind, Kind::A(x) if x > m.b) {
            self.d.put(m.a, 1);
        }
    }
    #[rcv(joins)]
    fn combinators(&mut self, m: &M<64>) {
        let k = m.opt.map(|p| p + 1).filter(|p| *p > 2).unwrap_or_else(|| m.b);
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn ref_keys(&mut self, m: &M<65>) {
        for t in &m.inner.tags {
            self.s.get(t);
            self.s.put(t.clone(), 1);
        }
        self.s.get(m.name.as_str());
    }
    #[rcv(joins)]
    fn method_on_msg(&mut self, m: &M<67>) {
        self.d.put(m.inner.uid(), 1);
    }
    #[rcv(joins)]
    fn listed(&mut self, m: &M<72>) {
        fn listed(x: u64) -> u64 {
            x + 1
        }
        self.d.put(listed(m.a), 1);
    }
    #[rcv(joins)]
    fn deferred_init(&mut self, m: &M<73>) {
        let k;
        if m.flag {
            k = m.a;
        } else {
            k = m.b;
        }
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn closure_local(&mut self, m: &M<76>) {
        let key = |x: u64| x + m.b;
        self.d.put(key(m.a), 1);
    }
    #[rcv(joins)]
    fn unused_parse(&mut self, m: &M<79>, ctx: &mut Ctx) {
        let big: Vec<String> = m.items.iter().map(|x| format!("{x}")).collect();
        self.d.put(m.a, big.len() as u64);
        ctx.emit(Text(big));
    }
    #[rcv(joins)]
    fn nested_macro(&mut self, m: &M<80>) {
        for k in vec![m.a, m.b, m.a + 4] {
            for k in [k, k + 1] {
                self.d.put(k, 1);
            }
        }
    }
    #[rcv(joins)]
    fn written(&mut self, m: &M<85>) -> Result {
        use std::fmt::Write;
        let mut name = String::new();
        for x in &m.items {
            write!(name, "{x}-")?;
        }
        let _ = write!(name, "{}", m.b);
        self.s.put(name, 1);
        Ok(())
    }
    /// `get` takes a reference to a key, and every type that the compiler dereferences to such a reference.
    #[rcv(joins)]
    fn through_pointers(&mut self, m: &M<88>) {
        let large: Vec<&u64> = m.items.iter().filter(|x| **x > 3).collect();
        for x in &large {
            self.d.get(x);
        }

        if let Some(x) = large.iter().peekable().peek() {
            self.d.remove(x);
        }

        let boxed = Box::new(m.b);
        self.e.get_mut(&boxed);
    }
    #[rcv(joins)]
    fn drawn_from(&mut self, m: &M<86>) {
        let mut it = m.items.iter();
        let head = it.by_ref().take(1);
        for _skipped in head {}
        for x in it {
            self.d.put(*x, 1);
        }
    }
    #[rcv(joins)]
    fn drawn_from_a_part(&mut self, m: &M<87>) {
        let mut it = m.items.iter();
        let parts = (it.by_ref(), [0]);
        let pairs = std::iter::zip(parts.1, parts.0);
        for _skipped in pairs {}
        for x in it {
            self.d.put(*x, 1);
        }
    }
    fn pair(i: &Inner, b: u64) -> (u64, u64) {
        let x = if b > 2 { i.id } else { 0 };
        (x, b)
    }
    #[rcv]
    fn immutable_chain(&mut self, m: &M<81>) {
        let base = m.a;
        let key = base + 1;
        self.d.put(key, 1);
    }
    #[rcv(joins)]
    fn captured_width(&mut self, m: &M<82>) {
        let width = m.b as usize;
        self.s.put(format!("{:width$}", m.a), 1);
    }
    #[rcv]
    fn function_values(&mut self, m: &M<83>) {
        let k = m.opt.map(u64::from).unwrap_or_default();
        self.d.put(k, 1);
    }
    #[rcv]
    fn origin(&mut self, _: &M<84>, ctx: &mut Ctx) {
        self.d.put(u64::from(ctx.origin().0), 1);
    }
}

#[test]
fn maps_are_as_expected() {
    expect_maps! { Keys;
        1 => "d[1]";
        2 => "d[1]";
        3 => "d[1] e[2]";
        4 => "d[1] d[2]";
        5 => "t[(1, 2)]";
        6 => "s[1-2]";
        7 => "d[258]";
        8 => "d[1001]";
        9 => "d[9]";
        9 with |m| m.kind = Kind::B { x: 9 } => "e[9]";
        9 with |m| m.kind = Kind::C => "drop";
        13 => "d[3] d[4]";
        13 with |m| m.items.clear() => "drop";
        14 => "t[(3, 5)] t[(3, 7)] t[(4, 5)] t[(4, 7)]";
        15 => "d[6] d[8]";
        31 => "t[(0, 2)]";
        31 with |m| m.b = 5 => "t[(3, 5)]";
        32 => "d[1]";
        46 => "t[(1, 5)] t[(1, 7)]";
        47 => "d[16]";
        49 => "d[9]";
        49 with |m| m.kind = Kind::A(1) => "e[1]";
        53 => "d[5] d[6]";
        54 => "d[4]";
        55 => "d[42]";
        56 => "d[3] e[4]";
        56 with |m| m.items.truncate(1) => "drop";
        57 => "d[3]";
        57 with |m| m.items.clear() => "drop";
        58 => "d[1]";
        58 with |m| m.b = 10 => "drop";
        64 => "d[9]";
        64 with |m| m.opt = Some(0) => "d[2]";
        65 => "s[n] s[x] s[y]";
        67 => "d[30]";
        72 => "d[2]";
        73 => "d[1]";
        73 with |m| m.flag = false => "d[2]";
        76 => "d[3]";
        79 => "d[1]";
        80 => "d[1] d[2] d[3] d[5] d[6]";
        81 => "d[2]";
        82 => "s[ 1]";
        83 => "d[8]";
        84 => "d[0]";
        85 => "s[3-4-2]";
        86 => "d[4]";
        87 => "d[4]";
        88 => "d[4] e[2]";
    }
}

#[test]
fn maps_cover_what_is_touched() {
    check_handlers!(Keys, 1000, exact in 1 of 2, [1 2 3 4 5 6 7 8 9 13 14 15 31 32 46 47 48 49 53 54 55 56 57 58 64 65 67 72 73 76 79 80 81 82 83 84 85 86 87 88]);
}
