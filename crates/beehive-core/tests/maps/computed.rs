//! Keys that are computed by loops, labeled blocks, guards with patterns and `dbg!`, and locals that several
//! branches move.

#![allow(unused, deprecated, clippy::all, clippy::dbg_macro)]
use crate::check_handlers;
use crate::message::{Kind, Load, M};
use beehive::{App, Ctx, Dict, Rows, Table, handlers};

#[derive(App)]
#[app(name = "computed")]
pub(crate) struct Computed {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    names: Dict<(String, u64), u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers]
impl Computed {
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
    fn halved(&mut self, m: &M<941>) {
        let mut n = m.a;
        let k = loop {
            if n < 3 {
                break n + 1;
            }
            n /= 2;
        };
        self.d.put(k, 1);
    }
    #[rcv]
    fn labeled(&mut self, m: &M<942>) {
        let k = 'k: {
            if m.flag {
                break 'k m.a;
            }
            if let Some(x) = m.opt {
                break 'k x;
            }
            m.b
        };
        self.d.put(k, 1);
    }
    #[rcv]
    fn searched(&mut self, m: &M<943>) {
        let k = 'o: loop {
            for x in &m.items {
                if *x > 3 {
                    break 'o *x;
                }
            }
            break m.b;
        };
        self.d.put(k, 1);
    }
    #[rcv]
    fn root(&mut self, m: &M<944>) {
        let k = {
            let mut s = 0;
            while s * s < m.a {
                s += 1;
            }
            s
        };
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn guarded(&mut self, m: &M<945>) {
        match m.opt {
            Some(k) if let Some(x) = m.items.get(k as usize) => {
                self.d.put(*x, 1);
            }
            Some(k)
                if let Some(x) = m.items.first()
                    && *x > k =>
            {
                self.d.put(*x + k, 1);
            }
            _ => {
                self.e.put(m.a, 1);
            }
        }
    }
    #[rcv(joins)]
    fn guarded_by_state(&mut self, m: &M<946>) {
        match m.opt {
            Some(k)
                if let Some(v) = self.d.get(&k)
                    && *v > 2 =>
            {
                self.e.put(k, 1);
            }
            Some(k) if k > 2 => {
                self.e.put(k + 1, 1);
            }
            Some(k) if let Some(x) = m.items.first() => {
                self.w.put(k, *x);
            }
            _ => {
                self.e.put(m.a, 1);
            }
        }
    }
    #[rcv]
    fn debugged(&mut self, m: &M<947>) -> Option<()> {
        let k = dbg!(m.opt?) + 1;
        self.d.put(k, 1);
        Some(())
    }
    #[rcv(joins)]
    fn moved(&mut self, m: &M<948>) {
        let name = m.name.clone();
        if self.d.contains(&m.a) {
            self.names.put((name, 1), 1);
        } else if self.d.contains(&m.b) {
            self.names.put((name, 2), 1);
        } else {
            self.names.put((name, 3), 1);
        }
    }
    #[rcv(joins)]
    fn moved_into_loops(&mut self, m: &M<949>) {
        let items = m.items.clone();
        match self.d.get(&m.a) {
            Some(v) if *v > 3 => {
                for x in items.into_iter().rev() {
                    self.e.put(x, 1);
                }
            }
            Some(_) => {
                for x in items {
                    self.w.put(x - x / 2, 1);
                }
            }
            None => {
                let all = [items, vec![m.b]].concat();
                for x in all {
                    self.e.put(x, 2);
                }
            }
        }
    }
    #[rcv(joins)]
    fn moved_by_a_pattern(&mut self, m: &M<950>) {
        let name = m.opt.map(|k| k.to_string());
        if self.d.contains(&m.a) {
            if let Some(name) = name {
                self.names.put((name, 1), 1);
            }
        } else if let Some(name) = name {
            self.names.put((name, 2), 1);
        }
    }
    #[rcv]
    fn answered_by_a_loop(&mut self, m: &M<951>) -> Option<()> {
        let mut n = m.a;
        loop {
            n += 1;
            if n > 4 {
                self.d.put(n, 1);
                break Some(());
            }
        }
    }
    #[rcv(joins)]
    fn with_items(&mut self, m: &M<952>) {
        #[derive(Clone, Copy, PartialEq)]
        enum Way {
            In,
            Out,
        }
        impl Way {
            fn other(self) -> Way {
                if self == Way::In { Way::Out } else { Way::In }
            }
        }
        struct Pair {
            a: u64,
            b: u64,
        }
        fn swapped(pair: Pair) -> Pair {
            Pair { a: pair.b, b: pair.a }
        }
        fn add(keys: &mut Vec<u64>, key: u64) {
            if !keys.contains(&key) {
                keys.push(key)
            }
        }

        let way = if m.flag { Way::In } else { Way::Out };
        let pair = match way.other() {
            Way::In => Pair { a: m.a, b: m.b },
            Way::Out => swapped(Pair { a: m.a, b: m.b }),
        };
        self.t.put((pair.a, pair.b), 1);

        let mut keys = vec![m.a];
        for x in &m.items {
            add(&mut keys, *x);
        }
        for k in keys {
            self.d.put(k, 1);
        }
    }
}

#[test]
fn what_control_flow_computes_and_branches_move() {
    check_handlers!(Computed, 300, exact in 1 of 3, [941 942 943 944 945 946 947 948 949 950 951 952]);
}
