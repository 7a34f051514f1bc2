//! Handlers with loops that state may end early, in which keys change: searches and probes.

#![allow(unused, deprecated, clippy::all)]
use crate::check_handlers;
use crate::message::{Load, M};
use beehive::{App, Ctx, Dict, handlers};

#[derive(App)]
#[app(name = "stopped")]
pub(crate) struct Stopped {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
}

#[handlers]
impl Stopped {
    #[rcv(joins)]
    fn load(&mut self, m: &Load) {
        for (k, v) in &m.d {
            self.d.put(*k, *v);
        }
        for (k, v) in &m.e {
            self.e.put(*k, *v);
        }
    }
    #[rcv(joins)]
    fn probe(&mut self, m: &M<981>) {
        let mut k = m.a % 8;
        for _ in 0..8 {
            if !self.d.contains(&k) {
                self.d.put(k, m.b);
                break;
            }
            k = (k + 1) % 8;
        }
    }
    #[rcv(joins)]
    fn probe_until_the_end(&mut self, m: &M<982>) {
        let mut k = m.a;
        loop {
            if k > 9 || self.d.contains(&k) {
                break;
            }
            self.e.put(k, 1);
            k += 1;
        }
        self.d.put(m.b + 30, 1);
    }
    #[rcv(joins)]
    fn return_from_the_loop(&mut self, m: &M<983>) {
        let mut k = m.a;
        while k < 12 {
            if self.d.contains(&k) {
                break;
            }
            if k == 7 {
                return;
            }
            k += 1;
        }
        self.e.put(m.b, 1);
    }
    #[rcv(joins)]
    fn panic_of_the_map(&mut self, m: &M<984>) {
        // the handler finds the last item; the map goes on behind it
        let Some(last) = m.items.last() else { return };
        self.d.put(*last, 1);
        let mut i = 0;
        while i < 5 {
            if self.d.contains(&m.items[i]) {
                break;
            }
            i += 1;
        }
        self.e.put(m.b, 1);
    }
    #[rcv(joins)]
    fn move_in_the_loop(&mut self, m: &M<985>) {
        let (mut i, v) = (0, m.items.clone());
        for k in &m.items {
            if self.d.contains(&(k + i)) {
                break;
            }
            i += 1;
            if *k == 3 {
                let w = v;
                self.e.put(w.len() as u64 + 20, 1);
                return;
            }
        }
        self.e.put(v.len() as u64, 1);
    }
    #[rcv(joins)]
    fn leave_both_loops(&mut self, m: &M<986>) {
        let mut n = 0;
        'all: for a in &m.items {
            let mut k = *a;
            while k < 9 {
                if self.d.contains(&k) {
                    break 'all;
                }
                if self.e.contains(&k) {
                    break;
                }
                if k == 5 {
                    break 'all;
                }
                k += 2;
            }
            n += 1;
            self.e.put(n + 40, 1);
        }
        self.d.put(m.b + 30, 1);
    }
    #[rcv(joins)]
    fn value_of_the_loop(&mut self, m: &M<987>, ctx: &mut Ctx) {
        let mut k = m.a % 5;
        let found = loop {
            if let Some(v) = self.d.get(&k) {
                break Some(*v);
            }
            k += 1;
            if k > 9 {
                break None;
            }
        };
        self.e.put(m.b, found.unwrap_or(0));
    }
    #[rcv(joins)]
    fn pairs(&mut self, m: &M<988>) {
        let mut sum = m.a;
        for (a, b) in &m.pairs {
            let Some(v) = self.d.get(&sum).copied() else { break };
            self.e.put(*a, v);
            sum += b;
        }
    }
    #[rcv(joins)]
    fn helper(&mut self, m: &M<989>) {
        self.first_free(m.a);
        self.first_free(m.b);
    }
    fn first_free(&mut self, from: u64) {
        let (mut k, mut step) = (from, 1);
        while k < from + 9 {
            if !self.d.contains(&k) {
                self.d.put(k, 1);
                break;
            }
            (k, step) = (k + step, step + 1);
        }
    }
}

#[test]
fn maps_follow_loops_that_state_ends() {
    check_handlers!(Stopped, 300, exact in 1 of 20, [981 982 983 984 985 986 987 988 989]);
}
