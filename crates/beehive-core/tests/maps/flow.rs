//! Control flow: a map evaluates conditions on the message exactly, and follows all branches of conditions on
//! state.

#![allow(unused, clippy::all)]
use crate::message::{Inner, Kind, Load, M, Note, Text};
use crate::{check_handlers, expect_maps};
use beehive::{App, Ctx, Dict, Mapper, Result, handlers, pure};

#[derive(App)]
#[app(name = "flow")]
pub(crate) struct Flow {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    s: Dict<String, u64>,
    t: Dict<(u64, u64), u64>,
}

#[handlers]
impl Flow {
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
    fn if_(&mut self, m: &M<10>) {
        if m.flag {
            self.d.put(m.a, 1);
        } else {
            self.e.put(m.b, 1);
        }
    }
    #[rcv(joins)]
    fn state_guard(&mut self, m: &M<11>) {
        if self.d.get(&m.a).is_some() {
            self.e.put(m.b, 1);
        }
    }
    #[rcv(joins)]
    fn state_guard_else(&mut self, m: &M<12>) {
        if self.d.contains(&m.a) {
            self.e.put(m.a, 1);
        } else {
            self.e.put(m.b, 1);
        }
    }
    #[rcv(joins)]
    fn while_(&mut self, m: &M<16>) {
        let mut i = 0;
        while i < m.items.len() as u64 {
            self.d.put(m.a + i, 1);
            i += 1;
        }
    }
    #[rcv(joins)]
    fn loop_break(&mut self, m: &M<17>) {
        let mut i = m.a;
        loop {
            if i >= m.a + 3 {
                break;
            }
            self.d.put(i, 1);
            i += 1;
        }
    }
    #[rcv(joins)]
    fn state_break(&mut self, m: &M<18>) {
        for x in &m.items {
            if self.d.contains(x) {
                break;
            }
            self.e.put(*x, 1);
        }
    }
    #[rcv(joins)]
    fn early_drop(&mut self, m: &M<19>) {
        if m.flag {
            return;
        }
        self.d.put(m.a, 1);
    }
    #[rcv(joins)]
    fn early_effect(&mut self, m: &M<20>, ctx: &mut Ctx) {
        if m.flag {
            ctx.emit(Note(1));
            return;
        }
        self.d.put(m.a, 1);
    }
    #[rcv(joins)]
    fn early_state(&mut self, m: &M<21>) {
        if !self.d.contains(&m.a) {
            return;
        }
        self.e.put(m.b, 1);
    }
    #[rcv(joins)]
    fn try_pure(&mut self, m: &M<22>) -> Result {
        let p = m.opt.ok_or("no port")?;
        self.d.put(p, 1);
        Ok(())
    }
    #[rcv(joins)]
    fn try_state(&mut self, m: &M<23>) -> Result {
        let v = *self.d.get(&m.a).ok_or("unknown")?;
        self.e.put(m.b, v);
        Ok(())
    }
    #[rcv(joins)]
    fn let_else(&mut self, m: &M<24>) {
        let Some(p) = m.opt else { return };
        self.d.put(p, 1);
    }
    #[rcv(joins)]
    fn let_else_state(&mut self, m: &M<25>, ctx: &mut Ctx) {
        let Some(v) = self.d.get(&m.a).copied() else {
            self.e.put(m.a, 0);
            return;
        };
        self.e.put(m.b, v);
    }
    #[rcv(joins)]
    fn chain_let(&mut self, m: &M<26>) {
        if let Some(p) = m.opt
            && self.d.contains(&p)
            && let Kind::A(x) = m.kind
        {
            self.e.put(x, 1);
        } else {
            self.e.put(m.b, 1);
        }
    }
    #[rcv(joins)]
    fn match_state_guard(&mut self, m: &M<50>) {
        match m.kind {
            Kind::A(x) if self.d.contains(&x) => drop(self.e.put(x, 1)),
            Kind::A(x) => drop(self.e.put(x + 1, 1)),
            _ => {}
        }
    }
    #[rcv(joins)]
    fn match_state(&mut self, m: &M<51>) {
        match (&m.kind, self.d.get(&m.a)) {
            (Kind::A(_), Some(_)) => drop(self.e.put(m.a, 1)),
            (Kind::B { .. }, None) => drop(self.e.put(m.b, 1)),
            _ => {}
        }
    }
    #[rcv(joins)]
    fn label(&mut self, m: &M<52>) {
        'outer: for x in &m.items {
            for (p, _) in &m.pairs {
                if p == x {
                    continue 'outer;
                }
                if *p > 6 {
                    break 'outer;
                }
                self.t.put((*x, *p), 1);
            }
        }
    }
    #[rcv(joins)]
    fn return_in_loop(&mut self, m: &M<61>) {
        for x in &m.items {
            if *x == m.a {
                return;
            }
            self.d.put(*x, 1);
        }
        self.e.put(m.b, 1);
    }
    #[rcv(joins)]
    fn continue_(&mut self, m: &M<62>) {
        for x in &m.items {
            if x % 2 == 0 {
                continue;
            }
            self.d.put(*x, 1);
        }
    }
    #[rcv(joins)]
    fn diverging_arm(&mut self, m: &M<63>) {
        let k = match m.kind {
            Kind::A(x) => x,
            Kind::B { x } => x + 100,
            Kind::C => return,
        };
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn state_then_exit_in_loop(&mut self, m: &M<66>) {
        for x in &m.items {
            if self.d.contains(x) {
                continue;
            }
            if *x == m.a {
                return;
            }
            self.e.put(*x, 1);
        }
    }
    #[rcv(joins)]
    fn question_in_branch(&mut self, m: &M<68>) -> Result {
        if self.d.contains(&m.a) {
            let p = m.opt.ok_or("no")?;
            self.e.put(p, 1);
        }
        self.e.put(m.b, 1);
        Ok(())
    }
    #[rcv(joins)]
    fn state_loop(&mut self, m: &M<69>) {
        let n = self.d.get(&m.a).copied().unwrap_or(0);
        for _ in 0..n.min(3) {
            *self.e.entry(m.b).or_insert(0) += 1;
        }
        while self.d.get(&m.b).copied().unwrap_or(9) < 3 {
            *self.d.entry(m.b).or_insert(0) += 1;
        }
    }
    #[rcv(joins)]
    fn bool_ops(&mut self, m: &M<70>) {
        let seen = m.flag && self.d.contains(&m.a) || self.e.contains(&m.b);
        if seen {
            self.d.put(m.b, 1);
        }
    }
    #[rcv(joins)]
    fn exit_in_state_branch(&mut self, m: &M<77>, ctx: &mut Ctx) -> Result {
        match self.d.get(&m.a).copied() {
            Some(v) if v > 3 => {
                if m.flag {
                    return Err("stop".into());
                }
                self.e.put(m.a, 1);
            }
            Some(_) => ctx.emit(Note(1)),
            None => drop(self.e.put(m.b, 1)),
        }

        self.d.put(m.b, 2);
        Ok(())
    }
    #[rcv(joins)]
    fn labeled_block(&mut self, m: &M<78>) {
        let mut k = m.a;
        'b: {
            if m.flag {
                break 'b;
            }
            k = m.b;
        }
        self.d.put(k, 1);
    }
    #[rcv(joins)]
    fn or_with_state(&mut self, m: &M<85>) {
        if m.flag || self.d.contains(&m.a) {
            return;
        }
        self.e.put(m.b, 1);
    }
    #[rcv(joins)]
    fn or_with_state_else(&mut self, m: &M<86>) {
        if m.opt.is_none() || m.b > 3 || self.d.contains(&m.a) || self.e.contains(&m.a) {
            self.e.put(m.b, 1);
        } else {
            self.e.put(m.b + 1, 1);
        }
    }
    #[rcv(joins)]
    fn or_nested(&mut self, m: &M<87>) -> Result {
        for x in &m.items {
            if *x == m.a || self.d.contains(x) {
                if m.flag || self.e.contains(x) {
                    Err("stop")?
                }
                self.e.put(*x, 1);
            }
        }

        self.d.put(m.b, 1);
        Ok(())
    }
    #[rcv(joins)]
    fn lazy_operands(&mut self, m: &M<88>) -> Result {
        let found = self.d.contains(&m.a) || self.e.contains(&m.opt.ok_or("none")?);
        let both = m.flag && self.d.contains(&m.b);
        if found && both {
            self.e.put(m.a, 1);
        }
        self.e.put(m.b, 1);
        Ok(())
    }
    #[rcv(joins)]
    fn lazy_while(&mut self, m: &M<89>) -> Result {
        while self.d.contains(&m.a) && self.e.contains(&m.opt.ok_or("none")?) {
            self.d.remove(&m.a);
        }
        self.e.put(m.b, 1);
        Ok(())
    }
    #[rcv]
    fn try_in_a_statement(&mut self, m: &M<90>) -> Result {
        m.opt.ok_or("none")?.to_string();
        self.d.put(m.a, 1);
        Ok(())
    }
    #[rcv(joins)]
    fn state_decides_in_a_loop(&mut self, m: &M<91>) {
        for x in &m.items {
            if self.d.contains(x) {
                continue;
            }
            let y = if self.e.contains(x) { 1 } else { 2 };
            self.e.put(*x, y);
        }
    }
    #[rcv(joins)]
    fn jumps_in_values(&mut self, m: &M<101>) {
        let mut n = 0;
        for x in &m.items {
            let step = if *x > m.b + 2 { break } else { 1 };
            m.flag || *x > 2 || continue;
            n += step;
            self.e.put(n, 1);
        }
        self.d.put(n, 1);
    }
    #[rcv(joins)]
    fn uncertain_jumps_in_values(&mut self, m: &M<102>) {
        for x in &m.items {
            if self.d.contains(x) {
                let z = if m.flag { break } else { 1 };
                self.e.put(*x, z);
            }
            self.d.put(*x + 1, 1);
        }
    }
    #[rcv(joins)]
    fn moved_in_two_branches(&mut self, m: &M<103>) {
        let keys = m.items.clone();
        if self.d.contains(&m.a) {
            for k in keys {
                self.e.put(k, 1);
            }
        } else {
            for k in keys {
                self.d.put(k, 1);
            }
        }
    }
    #[rcv(joins)]
    fn two_names_at_once(&mut self, m: &M<104>) {
        let (d, e) = (&mut self.d, &mut self.e);
        if let Some(v) = d.get(&m.a) {
            e.put(m.b, *v);
        }
    }
    #[rcv(joins)]
    fn unsafe_block(&mut self, m: &M<92>) {
        // SAFETY: the block contains no unsafe operation; the analysis must look into it all the same.
        unsafe {
            if self.d.contains(&m.a) {
                return;
            }
        }
        self.e.put(m.b, 1);
    }
}

#[test]
fn maps_are_as_expected() {
    expect_maps! { Flow;
        10 => "d[1]";
        10 with |m| m.flag = false => "e[2]";
        11 => "d[1] e[2]";
        12 => "d[1] e[1] e[2]";
        16 => "d[1] d[2]";
        17 => "d[1] d[2] d[3]";
        18 => "d[3] d[4] e[3] e[4]";
        19 => "drop";
        19 with |m| m.flag = false => "d[1]";
        20 => "stateless";
        20 with |m| m.flag = false => "d[1]";
        21 => "d[1] e[2]";
        22 => "d[8]";
        22 with |m| m.opt = None => "stateless";
        23 => "d[1] e[2]";
        24 => "d[8]";
        24 with |m| m.opt = None => "drop";
        25 => "d[1] e[1] e[2]";
        26 => "d[8] e[2] e[9]";
        26 with |m| m.opt = None => "e[2]";
        50 => "d[9] e[10] e[9]";
        51 => "d[1] e[1] e[2]";
        52 with |m| m.pairs = vec![(5, 0), (3, 0), (7, 0)] => "t[(3, 5)] t[(4, 3)] t[(4, 5)]";
        61 => "d[3] d[4] e[2]";
        61 with |m| m.a = 4 => "d[3]";
        62 => "d[3]";
        63 => "d[9]";
        63 with |m| m.kind = Kind::C => "drop";
        66 with |m| m.a = 4 => "d[3] d[4] e[3]";
        68 => "d[1] e[2] e[8]";
        68 with |m| m.opt = None => "d[1] e[2]";
        69 => "d[1] d[2] e[2]";
        70 => "d[1] d[2] e[2]";
        77 => "d[1] d[2] e[2]";
        77 with |m| m.flag = false => "d[1] d[2] e[1] e[2]";
        78 => "d[1]";
        78 with |m| m.flag = false => "d[2]";
        85 => "drop";
        85 with |m| m.flag = false => "d[1] e[2]";
        86 => "d[1] e[1] e[2] e[3]";
        86 with |m| m.opt = None => "e[2]";
        87 => "d[2] d[3] d[4]";
        87 with |m| m.flag = false => "d[2] d[3] d[4] e[3] e[4]";
        87 with |m| m.a = 3 => "stateless";
        87 with |m| (m.a, m.flag) = (3, false) => "d[2] d[4] e[3] e[4]";
        88 => "d[1] d[2] e[1] e[2] e[8]";
        88 with |m| (m.opt, m.flag) = (None, false) => "d[1] e[1] e[2]";
        89 with |m| m.opt = None => "d[1] e[2]";
        90 => "d[1]";
        90 with |m| m.opt = None => "stateless";
        91 => "d[3] d[4] e[3] e[4]";
        92 => "d[1] e[2]";
        101 => "d[2] e[1] e[2]";
        101 with |m| m.b = 1 => "d[1] e[1]";
        101 with |m| m.b = 9 => "d[2] e[1] e[2]";
        102 => "d[3] d[4] d[5] e[3] e[4]";
        103 => "d[1] d[3] d[4] e[3] e[4]";
        104 => "d[1] e[2]";
    }
}

#[test]
fn maps_cover_what_is_touched() {
    check_handlers!(Flow, 1000, exact in 1 of 2, [101 102 103 104 10 11 12 16 17 18 19 20 21 22 23 24 25 26 50 51 52 61 62 63 66 68 69 70 77 78 85 86 87 88 89 90 91 92]);
}
