//! Handlers whose keys change without a visible `mut`: through references, by interior mutability, in
//! alternative versions of a method, and in closures. The map repeats each change.

#![allow(unused, deprecated, clippy::all)]
use crate::check_handlers;
use crate::message::{Load, M};
use beehive::{App, Ctx, Dict, Rows, Table, handlers, pure};
use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

#[derive(Default)]
struct Slot(Cell<u64>);

impl Slot {
    fn set(&self, value: u64) {
        self.0.set(value)
    }
    fn get(&self) -> u64 {
        self.0.get()
    }
}

impl From<u64> for Slot {
    fn from(value: u64) -> Slot {
        Slot(Cell::new(value))
    }
}

#[derive(App)]
#[app(name = "hidden")]
pub(crate) struct Hidden {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers]
impl Hidden {
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
    #[rcv]
    fn array_behind_a_reference(&mut self, m: &M<701>) {
        let e = &mut [m.b, m.a];
        e.sort();
        self.t.put((e[0], e[1]), 1);
    }
    #[rcv]
    fn leaked_vector(&mut self, m: &M<702>) {
        let v = vec![m.b, m.a].leak();
        v.reverse();
        self.d.put(v[0], 1);
    }
    #[rcv(joins)]
    fn chunks(&mut self, m: &M<703>) {
        for c in m.items.clone().chunks_mut(2) {
            c.sort();
            self.d.put(c[0], 1);
        }
    }
    #[rcv]
    fn option_behind_a_reference(&mut self, m: &M<704>) {
        match &mut Some([m.b, m.a]) {
            Some(p) => {
                p.sort();
                self.t.put((p[0], p[1]), 1);
            }
            None => {}
        }
    }
    #[rcv]
    fn iterator_behind_a_reference(&mut self, m: &M<705>) {
        let it = &mut m.items.iter();
        it.next();
        if let Some(k) = it.next() {
            self.d.put(*k, 1);
        }
    }
    #[rcv]
    fn used_result(&mut self, m: &M<706>) {
        if let Some(x) = [m.opt].first_mut() {
            let old = x.replace(m.a);
            if old.is_some() {
                self.d.put(x.unwrap_or(m.b), 1);
            }
        }
    }
    #[rcv]
    fn cell_by_default(&mut self, m: &M<707>) {
        let c: Slot = Default::default();
        c.set(m.a);
        self.d.put(c.get(), 1);
    }
    #[rcv]
    fn cell_behind_a_shared_reference(&mut self, m: &M<708>) {
        let c = Slot::from(m.a);
        let r = &c;
        r.set(m.b);
        self.d.put(c.get(), 1);
    }
    #[rcv]
    fn cell_by_conversion(&mut self, m: &M<709>) {
        let c: Cell<u64> = m.a.into();
        let old = c.replace(m.b);
        self.t.put((c.get(), old), 1);
    }
    #[rcv]
    fn promised_change(&mut self, m: &M<710>) {
        let mut ks = vec![m.a, m.b];
        pure!(ks.swap(0, 1));
        self.t.put((ks[0], ks[1]), 1);
    }
    #[rcv]
    fn versions_of_a_helper(&mut self, m: &M<711>) {
        self.touch(m.a, m.b);
    }
    #[cfg(all())]
    fn touch(&mut self, a: u64, _: u64) {
        self.d.put(a, 1);
    }
    #[cfg(not(all()))]
    fn touch(&mut self, _: u64, b: u64) {
        self.e.put(b, 1);
    }
    #[rcv]
    fn versions_of_a_function(&mut self, m: &M<712>) {
        self.d.put(Self::pick(m.a), 1);
    }
    #[cfg(all())]
    fn pick(a: u64) -> u64 {
        a + 1
    }
    #[cfg(not(all()))]
    fn pick(a: u64) -> u64 {
        a
    }
    #[rcv]
    fn closure_over_what_is_split(&mut self, m: &M<713>) {
        let mut parts = m.text.trim().split(' ');
        if let Some(k) = parts.next().and_then(|s| s.parse::<u64>().ok()) {
            self.d.put(k, 1);
        }
    }
    #[rcv(joins)]
    fn closure_that_sorts(&mut self, m: &M<714>) {
        let mut ks = m.items.clone();
        ks.sort_by(|a, b| b.cmp(a));
        for k in ks.iter().take(2) {
            self.d.put(*k, 1);
        }
    }
    #[rcv]
    fn closure_that_counts(&mut self, m: &M<715>) {
        let mut n = 0u64;
        m.items
            .iter()
            .filter(|x| {
                n += 1;
                **x > 1
            })
            .count();
        self.d.put(n, 1);
    }
}

#[test]
fn each_hidden_change_is_in_the_map() {
    check_handlers!(Hidden, 300, exact in 1 of 2, [701 702 703 704 705 706 707 708 709 710 711 712 713 714 715]);
}
