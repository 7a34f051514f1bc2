//! Maps that panic where their handlers do not, because the map cannot evaluate a condition. Each handler here
//! checks the condition first, in a local that also depends on state, and never panics.

#![allow(unused, deprecated, clippy::all)]
use crate::check_handlers;
use crate::message::{Kind, Load, M};
use beehive::{App, Ctx, Dict, Rows, Table, handlers};

#[derive(App)]
#[app(name = "panicking")]
pub(crate) struct Panicking {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    names: Dict<(String, u64), u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers]
impl Panicking {
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
    fn index(&mut self, m: &M<921>) {
        let filled = self.d.contains(&m.a) && !m.items.is_empty();
        if filled {
            self.e.put(m.items[0], 1);
        } else {
            self.w.put(m.b, 1);
        }
        self.d.put(m.b, 1);
    }
    #[rcv(joins)]
    fn difference(&mut self, m: &M<922>) {
        let ok = self.d.contains(&m.a) && m.b > 0;
        if !ok {
            return;
        }
        self.t.put((m.a, m.b - 1), 1);
        self.w.put(m.a, 1);
    }
    #[rcv(joins)]
    fn both_sides(&mut self, m: &M<923>) {
        let small = self.d.contains(&m.a) || m.b == 0;
        match small {
            true => self.e.put(6 - m.b, 1),
            false => self.w.put(m.a / m.b, 1),
        };
        self.d.put(m.a, 1);
    }
    #[rcv(joins)]
    fn each_round(&mut self, m: &M<924>) {
        for x in &m.items {
            let ok = self.d.contains(x) && *x > 2;
            if !ok {
                continue;
            }
            self.e.put(x - 3, 1);
        }
        self.w.put(m.a, 1);
    }
    #[rcv(joins)]
    fn left_in_time(&mut self, m: &M<925>) {
        let short = self.d.contains(&9) || m.items.len() < 3;
        for k in (0..3).map(|i| if i == 0 { m.a } else { m.items[i] }) {
            self.e.put(k, 1);
            if short {
                break;
            }
        }
        self.w.put(m.a, 1);
    }
    #[rcv(joins)]
    fn helped(&mut self, m: &M<926>) {
        self.half(&m.items);
        self.w.put(m.b, 1);
    }
    fn half(&mut self, items: &[u64]) {
        let none = self.d.contains(&1) || items.is_empty();
        if none {
            return;
        }
        self.e.put(items[0] / 2, 1);
    }
    #[rcv(joins)]
    fn or_leaves(&mut self, m: &M<927>) {
        let filled = self.d.contains(&m.b) || !m.items.is_empty();
        if m.flag || self.d.contains(&m.a) {
            if m.items.is_empty() {
                return;
            }
            self.e.put(m.items[m.items.len() - 1] << 1, 1);
        }
        self.w.put(m.b, 1);
    }
    #[rcv(joins)]
    fn nested(&mut self, m: &M<928>) {
        let ok = self.d.contains(&m.a) && m.items.len() > 1;
        if ok {
            self.e.put(m.items[0], 1);
            let more = self.e.contains(&m.b) && m.items.len() > 3;
            if more {
                self.e.put(m.items[3] + 1, 1);
                return;
            }
            self.e.put(m.items[1] + 2, 1);
        }
        self.w.put(m.b, 1);
    }
    #[rcv(joins)]
    fn windows(&mut self, m: &M<929>) {
        if self.d.contains(&m.a) {
            for w in m.items.windows(2) {
                self.t.put((w[0], w[1]), 1);
            }
            self.e.put(m.b.clamp(1, 3), 1);
            self.e.put(u64::from(m.mac[5]), 1);
        }
    }
    #[rcv(joins)]
    fn chained(&mut self, m: &M<930>) {
        let big = self.d.contains(&m.a) && m.opt.is_some();
        if big {
            let k = m.opt.unwrap();
            self.e.put(k, 1);
        } else if self.w.contains(&m.b) {
            self.e.put(m.b * 2, 1);
        }
    }
}

#[test]
fn maps_that_panic_where_their_handlers_do_not() {
    check_handlers!(Panicking, 300, exact in 1 of 4, [921 922 923 924 925 926 927 928 929 930]);
}
