//! The alternatives that the help lines of the errors suggest, each as a handler: the analysis accepts it, and
//! its map covers the cells that it touches.

#![allow(unused, deprecated, clippy::all)]
use crate::check_handlers;
use crate::message::{Kind, Load, M, Note};
use beehive::{App, Ctx, Dict, Result, Rows, Table, handlers, pure};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

fn shard_of(key: u64) -> u64 {
    key % 4
}

fn listed(key: u64) -> u64 {
    key + 1
}

macro_rules! twice {
    ($x:expr) => {
        $x * 2
    };
}

macro_rules! bump {
    ($x:expr) => {
        $x + 1
    };
}

#[derive(App)]
#[app(name = "ways")]
pub(crate) struct Ways {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers(pure(listed))]
impl Ways {
    #[rcv(joins)]
    fn load(&mut self, m: &Load) {
        for (k, v) in &m.d {
            self.d.put(*k, *v);
        }
        for (k, v) in &m.e {
            self.e.put(*k, *v);
        }
        for (k, v) in &m.w {
            self.w.put(*k, *v);
        }
        for (k, v) in &m.t {
            self.t.put(*k, *v);
        }
    }
    // key_from_unknown_code: use `pure!`, use a known function, or show the function to the analysis
    #[rcv]
    fn promised(&mut self, m: &M<801>) {
        self.d.put(pure!(shard_of(m.a)), 1);
    }
    #[rcv]
    fn promised_where_it_is_called(&mut self, m: &M<802>) {
        let k = pure!(shard_of(m.a));
        self.d.put(k, 1);
    }
    #[rcv]
    fn promised_macro(&mut self, m: &M<803>) {
        self.d.put(pure!(twice!(m.a)), 1);
    }
    #[rcv]
    fn listed_for_the_block(&mut self, m: &M<804>) {
        self.d.put(listed(m.a), 1);
    }
    #[rcv]
    fn associated_function(&mut self, m: &M<805>) {
        self.d.put(Self::shard(m.a), 1);
    }
    fn shard(key: u64) -> u64 {
        key % 4
    }
    // key_from_hash_order: sort first, or use a collection with an order
    #[rcv(joins)]
    fn sorted_first(&mut self, m: &M<806>) {
        let s: HashSet<u64> = m.items.iter().copied().collect();
        let mut keys: Vec<u64> = s.into_iter().collect();
        keys.sort();
        for k in keys.iter().take(2) {
            self.d.put(*k, 1);
        }
    }
    #[rcv(joins)]
    fn ordered_set(&mut self, m: &M<807>) {
        let s: BTreeSet<u64> = m.items.iter().copied().collect();
        for (i, k) in s.iter().enumerate().take(2) {
            self.t.put((i as u64, *k), 1);
        }
    }
    #[rcv]
    fn ordered_map(&mut self, m: &M<808>) {
        let s: BTreeMap<u64, u64> = m.pairs.iter().copied().collect();
        if let Some((k, _)) = s.iter().max_by_key(|p| *p.1) {
            self.d.put(*k, 1);
        }
    }
    #[rcv(joins)]
    fn hash_set_that_is_only_asked(&mut self, m: &M<809>) {
        let mut seen: HashSet<u64> = Default::default();
        for k in &m.items {
            if seen.insert(*k) {
                self.d.put(*k, seen.len() as u64);
            }
        }
    }
    // key_changed_under_state: compute the key first
    #[rcv(joins)]
    fn computed_before(&mut self, m: &M<810>) {
        let (this, next) = (m.a, m.a + 1);
        if self.d.contains(&m.b) {
            self.e.put(next, 1);
        } else {
            self.e.put(this, 1);
        }
    }
    // key_from_context: use a row, whose key may be any value
    #[rcv]
    fn row_by_time(&mut self, m: &M<811>, ctx: &mut Ctx) {
        self.rows.at(m.a).insert(m.b, 1);
    }
    // key_from_state: own the whole dictionary on one bee
    #[rcv(centralized)]
    fn whole(&mut self, m: &M<812>) {
        if let Some(k) = self.d.get(&m.a).copied() {
            self.w.whole().put(k, 1);
        }
    }
    // key_from_helper: a function without `self`
    #[rcv]
    fn without_self(&mut self, m: &M<813>) {
        let k = Self::both(m.a, m.b);
        self.d.put(k, 1);
    }
    fn both(a: u64, b: u64) -> u64 {
        a.max(b)
    }
    // endless_loop: a loop that the message bounds
    #[rcv(joins)]
    fn bounded(&mut self, m: &M<815>) {
        for i in (0u64..).take(m.items.len()) {
            if self.d.contains(&i) {
                break;
            }
            self.d.put(i, 1);
        }
    }
    // state_in_closure: a loop, `if let` or `match`
    #[rcv(joins)]
    fn loop_for_a_closure(&mut self, m: &M<816>) {
        for k in &m.items {
            self.d.put(*k, 1);
        }
        if let Some(k) = m.opt {
            self.e.get(&k);
        }
    }
    // state_in_macro: read the state first; a `match` for the guard of `matches!`; `?` in a `let` of its own
    #[rcv]
    fn read_before_the_macro(&mut self, m: &M<817>, ctx: &mut Ctx) {
        let v = self.d.get(&m.a).copied().unwrap_or(0);
        ctx.emit(Note(bump!(v)));
    }
    #[rcv(joins)]
    fn match_for_the_guard(&mut self, m: &M<818>) {
        match m.kind {
            Kind::A(x) if self.d.contains(&x) => {
                self.e.put(m.a, 1);
            }
            _ => {}
        }
    }
    #[rcv(joins)]
    fn question_mark_before_the_macro(&mut self, m: &M<819>) -> Result {
        let k = m.opt.ok_or("none")?;
        for x in vec![k, m.a] {
            self.d.put(x, 1);
        }
        Ok(())
    }
    // recursion: a loop
    #[rcv(joins)]
    fn loop_for_recursion(&mut self, m: &M<820>) {
        let mut k = m.a;
        while k > 0 {
            self.d.put(k, 1);
            k /= 2;
        }
    }
    // syntax: `#[cfg]` on two versions of a method
    #[rcv]
    fn versions(&mut self, m: &M<821>) {
        self.put_version(m.a, m.b);
    }
    #[cfg(not(all()))]
    fn put_version(&mut self, a: u64, _: u64) {
        self.d.put(a, 1);
    }
    #[cfg(all())]
    fn put_version(&mut self, _: u64, b: u64) {
        self.e.put(b, 1);
    }
    // all_cells: a shared view, or the rows of one cell
    #[rcv]
    fn rows_of_one_cell(&mut self, m: &M<822>, ctx: &mut Ctx) {
        for (row, _) in self.rows.at(m.a).iter() {
            ctx.emit(Note(*row));
        }
    }
}

#[test]
fn each_way_out_is_accepted_and_its_map_covers_it() {
    check_handlers!(Ways, 200, exact in 1 of 3, [
        801 802 803 804 805 806 807 808 809 810 811 812 813 815 816 817 818 819 820 821 822
    ]);
}
