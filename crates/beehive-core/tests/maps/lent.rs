//! Handlers that lend a local mutably to a call or a loop, or that log while they compute a key: the map repeats
//! the change and leaves out the logging.

#![allow(unused, deprecated, clippy::all)]
use crate::check_handlers;
use crate::message::{Load, M};
use beehive::{App, Ctx, Dict, Rows, Table, handlers};
use std::fmt::Write;

#[derive(App)]
#[app(name = "lent")]
pub(crate) struct Lent {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers]
impl Lent {
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
    #[rcv(joins)]
    fn swapped(&mut self, m: &M<901>) {
        let (mut a, mut b) = (m.a, m.b);
        if m.flag {
            std::mem::swap(&mut a, &mut b);
        }
        self.d.put(a, 1);
        self.e.put(b, 1);
    }
    #[rcv(joins)]
    fn taken(&mut self, m: &M<902>) {
        let mut v = m.items.clone();
        let old = std::mem::take(&mut v);
        v.push(m.a);
        for k in old {
            self.e.put(k, 1);
        }
        for k in v {
            self.d.put(k, 1);
        }
    }
    #[rcv(joins)]
    fn appended(&mut self, m: &M<903>) {
        let (mut a, mut b) = (m.items.clone(), vec![m.a]);
        a.append(&mut b);
        for k in a {
            self.d.put(k, b.len() as u64);
        }
    }
    #[rcv]
    fn written(&mut self, m: &M<904>) {
        let mut text = String::new();
        let _ = write!(&mut text, "{}{}", m.a, m.name);
        self.d.put(text.len() as u64, 1);
    }
    #[rcv(joins)]
    fn incremented(&mut self, m: &M<905>) {
        let mut keys = m.items.clone();
        for k in &mut keys {
            *k = k.wrapping_add(m.a);
        }
        for k in &keys {
            self.d.put(*k, 1);
        }
    }
    #[rcv(joins)]
    fn drawn(&mut self, m: &M<906>) {
        let mut it = m.items.iter();
        let first = it.next();
        for k in &mut it {
            self.d.put(*k, 1);
        }
        self.e.put(m.a, u64::from(first.is_some()));
    }
    #[rcv(joins)]
    fn counted(&mut self, m: &M<907>) {
        let mut n = m.a;
        let x = Self::next(&mut n);
        self.d.put(x, 1);
        self.e.put(n, 1);
    }
    fn next(n: &mut u64) -> u64 {
        *n = n.wrapping_add(1);
        *n
    }
    #[rcv(joins)]
    fn filled(&mut self, m: &M<912>) {
        let mut keys = vec![];
        Self::fill(&mut keys, &m.items, m.a);
        for k in keys {
            self.d.put(k, 1);
        }
    }
    fn fill(keys: &mut Vec<u64>, items: &[u64], most: u64) {
        for x in items.iter().filter(|x| **x <= most) {
            keys.push(*x);
        }
        keys.sort();
        keys.dedup();
    }
    #[rcv(joins)]
    fn remembered(&mut self, m: &M<913>) {
        let mut keys = m.items.clone();
        let (mut last, mut big) = (None, vec![]);
        for x in keys.iter_mut() {
            if *x > m.a {
                last = Some(x);
            } else {
                big.push(x);
            }
        }
        if let Some(x) = last {
            *x = m.b;
        }
        for x in big {
            *x += 1;
        }
        for k in &keys {
            self.d.put(*k, 1);
        }
    }
    #[rcv(joins)]
    fn pushed_aside(&mut self, m: &M<914>) {
        let mut keys = vec![];
        let sum = m.items.iter().fold(0, |n, x| {
            if *x > 3 {
                keys.push(*x);
            }
            n + x
        });
        for k in keys {
            self.d.put(k, sum);
        }
    }
    #[rcv(joins)]
    fn assigned_through_a_call(&mut self, m: &M<915>) {
        let (mut lo, mut hi) = (m.a, m.b);
        *std::cmp::max(&mut lo, &mut hi) = 3;
        self.d.put(lo, 1);
        self.d.put(hi, 1);
    }
    #[rcv(joins)]
    fn one_of_two(&mut self, m: &M<916>, ctx: &mut Ctx) {
        let (mut up, mut down) = (vec![], vec![]);
        for x in &m.items {
            if *x > m.a { up.push(*x) } else { down.push(*x) }
        }
        for k in up {
            self.d.put(k, down.len() as u64);
        }
    }
    #[rcv(joins)]
    fn two_kinds_of_guards(&mut self, m: &M<917>) {
        let name = m.opt.map(|k| k.to_string());
        match name {
            Some(k) if k.len() > 9 => {
                self.d.put(m.a, 1);
            }
            Some(k) if self.d.contains(&(k.len() as u64)) => {
                self.e.put(k.len() as u64 + m.b, 1);
            }
            Some(k) => {
                self.w.put(k.len() as u64, 1);
            }
            None => {}
        }
    }
    #[rcv]
    fn parsed(&mut self, m: &M<918>) -> Option<()> {
        let column = m.text.parse().ok()?;
        self.rows.at(m.a).insert(column, 1);
        let Ok(value) = m.name.parse() else {
            return None;
        };
        self.rows.at(m.a).insert(value, 2);
        Some(())
    }
    #[rcv]
    fn logged_and_left(&mut self, m: &M<908>) {
        let k = match m.opt {
            Some(k) => k,
            None => {
                tracing::trace!(a = m.a, "none");
                return;
            }
        };
        self.d.put(k, 1);
    }
    #[rcv]
    fn logged_and_computed(&mut self, m: &M<909>) {
        let k = if let Some(k) = m.opt {
            tracing::trace!("{k}");
            k
        } else {
            tracing::trace!(a = m.a, "none");
            m.b
        };
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn logged_in_a_key(&mut self, m: &M<910>) {
        for x in &m.items {
            self.d.put(
                match m.opt {
                    Some(k) => k ^ x,
                    None => {
                        tracing::trace!("none");
                        *x
                    }
                },
                1,
            );
        }
    }
    #[rcv]
    fn only_logged(&mut self, m: &M<911>, ctx: &mut Ctx) {
        let k = {
            tracing::trace!("{}", m.a);
            m.a
        };
        if k > 2 {
            self.d.put(k, 1);
        }
    }
}

#[test]
fn what_is_lent_and_what_is_logged() {
    check_handlers!(Lent, 300, exact in 1 of 2, [901 902 903 904 905 906 907 908 909 910 911 912 913 914 915 916 917 918]);
}
