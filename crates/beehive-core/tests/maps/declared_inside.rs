//! Handlers that declare types, traits and functions of their own. Some of the types have destructors, which change a
//! local on which a key depends.

#![allow(unused, clippy::all)]
use crate::check_handlers;
use crate::message::{Load, M};
use beehive::{App, Dict, handlers};

/// Changes what it borrows when it is dropped.
struct Raise<'a>(&'a mut u64);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        *self.0 += 20;
    }
}

#[derive(App)]
#[app(name = "declares")]
pub(crate) struct Declares {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
}

#[handlers]
impl Declares {
    #[rcv(joins)]
    fn load(&mut self, m: &Load) {
        for (k, v) in &m.d {
            self.d.put(*k, *v);
        }
        for (k, v) in &m.e {
            self.e.put(*k, *v);
        }
    }
    #[rcv]
    fn dropped_at_the_end_of_a_block(&mut self, m: &M<961>) {
        let mut n = m.a;
        {
            let _raise = Raise(&mut n);
        }
        self.d.put(n, 1);
    }
    #[rcv]
    fn dropped_at_once(&mut self, m: &M<962>) {
        let mut n = m.a;
        Raise(&mut n);
        let _ = Raise(&mut n);
        self.d.put(n, 1);
    }
    #[rcv(joins)]
    fn dropped_by_a_loop(&mut self, m: &M<963>) {
        let mut n = m.a;
        for k in &m.items {
            let _raise = Raise(&mut n);
            if *k == 3 {
                break;
            }
            self.e.put(*k, 1);
        }
        self.d.put(n, 1);
    }
    #[rcv(joins)]
    fn dropped_by_an_assignment(&mut self, m: &M<964>) {
        let (mut n, mut k) = (m.a, m.b);
        {
            let mut raise = Raise(&mut n);
            raise = Raise(&mut k);
        }
        self.d.put(n, 1);
        self.e.put(k, 1);
    }
    #[rcv]
    fn declared_in_the_body(&mut self, m: &M<965>) {
        struct Push<'a> {
            to: &'a mut Vec<u64>,
        }
        impl Drop for Push<'_> {
            fn drop(&mut self) {
                self.to.push(66);
            }
        }
        let mut v = m.items.clone();
        {
            let _push = Push { to: &mut v };
        }
        self.d.put(v[v.len() - 1], 1);
    }
    #[rcv(joins)]
    fn traits_for_foreign_types(&mut self, m: &M<966>) {
        trait Total {
            fn total(&self) -> u64;
        }
        impl Total for Vec<u64> {
            fn total(&self) -> u64 {
                self.iter().sum()
            }
        }
        impl Total for (u64, u64) {
            fn total(&self) -> u64 {
                self.0 + self.1
            }
        }
        self.d.put(m.items.total(), 1);
        self.e.put((m.a, m.b).total(), 1);
    }
    #[rcv(joins)]
    fn generic_functions(&mut self, m: &M<967>) {
        fn part<const N: u64>(x: u64) -> u64 {
            x % N
        }
        fn most<T: Copy + Ord + Default>(v: &[T]) -> T {
            v.iter().copied().max().unwrap_or_default()
        }
        self.d.put(part::<3>(m.a), 1);
        self.e.put(most::<u64>(&m.items), 1);
    }
}

#[test]
fn maps_run_destructors_and_have_their_own_items() {
    check_handlers!(Declares, 300, exact in 1 of 2, [961 962 963 964 965 966 967]);
}
