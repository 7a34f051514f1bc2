//! Programs that developers of real applications wanted to write and that the analysis accepts. Each of them
//! is compiled, and its map is compared with the expected one. The programs that the analysis rejects are in
//! the tests of the analysis.

#![allow(unused, clippy::all)]
use crate::message::{Kind, Load, M, Note};
use crate::{check_handlers, expect_maps};
use beehive::{App, Ctx, Dict, Error, HiveId, Result, Rows, Table, handlers, pure};
use std::fmt::Write;

const BUCKETS: u64 = 16;

fn bucket(key: u64) -> u64 {
    key % BUCKETS
}

fn reconcile(rows: &mut Rows<u64, u64>, wanted: &[u64]) {
    rows.retain(|row, _| wanted.contains(row));
    for row in wanted {
        rows.insert(*row, 1);
    }
}

#[derive(App)]
#[app(name = "wants")]
pub(crate) struct Wants {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    rows: Table<u64, u64, u64>,
    more: Table<u64, u64, u64>,
    origins: Dict<HiveId, u64>,
}

#[handlers]
impl Wants {
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

        for (k, r, v) in &m.rows {
            self.rows.at(*k).insert(*r, *v);
        }

        for (k, v) in &m.t {
            self.t.put(*k, *v);
        }
    }
    #[rcv]
    fn combinator_over_a_state_value(&mut self, m: &M<301>, ctx: &mut Ctx) {
        if let Some(v) = self.d.get(&m.a).and_then(|v| v.checked_add(1)) {
            ctx.emit(Note(v))
        }
    }
    #[rcv]
    fn optional_key(&mut self, m: &M<302>) {
        if let Some(k) = m.opt {
            self.d.get(&k);
        }
    }
    #[rcv]
    fn promised_function(&mut self, m: &M<303>) {
        self.d.get(&pure!(bucket(m.a)));
    }
    #[rcv]
    fn method_of_the_message(&mut self, m: &M<304>) {
        self.d.get(&m.inner.uid());
    }
    #[rcv]
    fn constant_in_the_key(&mut self, m: &M<305>) {
        self.d.get(&(m.a % BUCKETS));
    }
    #[rcv]
    fn rows_to_a_function(&mut self, m: &M<306>) {
        reconcile(self.rows.at(m.a), &m.items);
    }
    #[rcv]
    fn rows_to_an_associated_function(&mut self, m: &M<307>) {
        Self::keep(self.rows.at(m.a), &m.items);
    }
    fn keep(rows: &mut Rows<u64, u64>, wanted: &[u64]) {
        rows.retain(|row, _| wanted.contains(row));
    }
    #[rcv]
    fn rows_of_two_tables(&mut self, m: &M<308>) {
        let from = self.rows.at(m.a);
        let to = self.more.at(m.a);
        for (row, value) in from.iter() {
            to.insert(*row, *value);
        }
    }
    #[rcv]
    fn helper_that_returns_rows(&mut self, m: &M<309>) {
        let rows = self.rows_of(m.a);
        rows.insert(m.b, 1);
    }
    fn rows_of(&mut self, key: u64) -> &mut Rows<u64, u64> {
        self.rows.at(key)
    }
    #[rcv]
    fn key_picked_without_self(&mut self, m: &M<310>) {
        let k = Self::pick(m.a);
        self.d.get(&k);
    }
    fn pick(a: u64) -> u64 {
        a + 1
    }
    #[rcv(joins)]
    fn iterator_over_message_data(&mut self, m: &M<311>) {
        for k in m.pairs.iter().filter(|p| p.0 != p.1).map(|p| p.0) {
            self.d.put(k, 1);
        }
    }
    #[rcv]
    fn early_return_from_a_match(&mut self, m: &M<312>) {
        let Kind::A(x) = m.kind else { return };
        self.d.put(x, 1);
    }
    #[rcv]
    fn origin_in_the_key(&mut self, m: &M<313>, ctx: &mut Ctx) {
        self.origins.put(ctx.origin(), m.a);
    }
    #[rcv]
    fn logging_with_state(&mut self, m: &M<314>) {
        let mut log = String::new();
        let _ = write!(log, "{:?}", self.d.get(&m.a));
    }
    #[rcv]
    fn question_mark_on_state(&mut self, m: &M<315>) -> Result {
        let n = *self.d.get(&m.a).ok_or("gone")?;
        self.rows.at(m.a).insert(m.b, n);
        Ok(())
    }
    #[rcv(joins)]
    fn swap_of_two_cells(&mut self, m: &M<316>) {
        let a = self.d.remove(&m.a);
        let b = self.d.remove(&m.b);
        if let (Some(a), Some(b)) = (a, b) {
            self.d.put(m.a, b);
            self.d.put(m.b, a);
        }
    }
    #[rcv(joins)]
    fn transfer_with_a_check(&mut self, m: &M<317>) -> Result {
        if *self.d.get(&m.a).ok_or("no such account")? < 3 {
            return Err("not enough".into());
        }
        *self.d.entry(m.a).or_default() -= 3;
        *self.d.entry(m.b).or_default() += 3;
        Ok(())
    }
    #[rcv]
    fn pure_half_of_an_or(&mut self, m: &M<318>) {
        if m.flag || self.rows.at(m.a).contains(&m.b) {
            return;
        }
        self.d.put(m.a, 1);
    }
}

#[test]
fn each_handler_has_the_expected_map() {
    expect_maps! { Wants;
        301 => "d[1]";
        302 => "d[8]";
        302 with |m| m.opt = None => "drop";
        303 => "d[1]";
        304 => "d[30]";
        305 => "d[1]";
        306 => "rows[1]";
        307 => "rows[1]";
        308 => "more[1] rows[1]";
        309 => "rows[1]";
        310 => "d[2]";
        311 => "d[5]";
        312 => "d[9]";
        312 with |m| m.kind = Kind::C => "drop";
        313 => "origins[hive 0]";
        314 => "d[1]";
        315 => "d[1] rows[1]";
        316 => "d[1] d[2]";
        317 => "d[1] d[2]";
        318 => "drop";
        318 with |m| m.flag = false => "d[1] rows[1]";
    }
}

#[test]
fn each_map_covers_what_is_touched() {
    check_handlers!(Wants, 400, exact in 1 of 2, [
        301 302 303 304 305 306 307 308 309 310 311 312 313 314 315 316 317 318
    ]);
}
