//! Integers whose type follows from code that the map leaves out: the map computes with the type that the handler
//! has, so it compiles, and names the cells of that type.

#![allow(unused, deprecated, clippy::all)]
use crate::message::{Kind, Load, M, Note};
use crate::{check_handlers, expect_maps};
use beehive::{App, Ctx, Dict, Result, handlers};

#[derive(App)]
#[app(name = "integers")]
pub(crate) struct Integers {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    small: Dict<u64, u8>,
}

#[handlers]
impl Integers {
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
    fn of_two_literals(&mut self, m: &M<701>) {
        let n = if m.flag { 3 } else { 4 };
        self.e.put(m.a, n);
        self.d.put(n.wrapping_add(2), 1);
    }
    #[rcv]
    fn parsed(&mut self, m: &M<702>, ctx: &mut Ctx) {
        let n = m.text.trim().parse().unwrap_or(3);
        ctx.emit(Note(n));
        self.d.put(n.clamp(1, 4), 1);
    }
    #[rcv]
    fn of_an_array(&mut self, m: &M<703>, ctx: &mut Ctx) {
        let both = [2, 3];
        ctx.emit(Note(both[0]));
        self.d.put(both[1].wrapping_mul(m.a), 1);
    }
    #[rcv(joins)]
    fn counted(&mut self, m: &M<704>) -> Result {
        let mut n = 0;
        for _ in &m.items {
            n += 1;
        }
        self.e.put(m.a, n);
        self.d.put(n.rotate_left(1), 1);
        Ok(())
    }
    #[rcv(joins)]
    fn in_a_pattern(&mut self, m: &M<705>) {
        for (i, k) in [1, 2].into_iter().enumerate() {
            self.e.put(m.a, k);
            self.d.put(k.pow(3) ^ i as u64, 1);
        }
    }
    #[rcv(joins)]
    fn compared_with_state(&mut self, m: &M<706>) {
        let n = 5;
        let same = self.e.get(&m.a).copied() == Some(n);
        if same {
            self.d.put(n.swap_bytes() >> 56, 1);
        }
    }
    // the type decides about the value: 3 u8 << 7 is 128
    #[rcv]
    fn of_a_smaller_type(&mut self, m: &M<707>) {
        let n = 3;
        self.small.put(m.a, n);
        self.d.put((n << 7) as u64, 1);
    }
    #[rcv(joins)]
    fn of_a_helper(&mut self, m: &M<708>) {
        self.helper(m.a, |q| q)
    }
    fn helper(&mut self, a: u64, f: fn(u64) -> u64) {
        let n = 7;
        self.e.put(f(a), n);
        self.d.put(n.rotate_right(1) >> 60, 1);
    }
    #[rcv(joins)]
    fn assigned_later(&mut self, m: &M<709>) -> Result {
        let n;
        match m.kind {
            Kind::A(_) => n = 3,
            _ => n = 4,
        }
        let note = m.opt.ok_or("none")?;
        self.e.put(m.a, n ^ note);
        self.d.put(n.pow(2), 1);
        Ok(())
    }
}

#[test]
fn maps_compute_with_the_types_of_their_handlers() {
    check_handlers!(Integers, 200, exact in 1 of 2, [701 702 703 704 705 706 707 708 709]);
    expect_maps! { Integers;
        701 => "d[5] e[1]";
        706 => "d[5] e[1]";
        707 => "d[128] small[1]";
    }
}
