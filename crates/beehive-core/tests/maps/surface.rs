//! Other language features: helpers, aliases, whole dictionaries, tables, configuration, sweeps and timers.

#![allow(unused, clippy::all)]
use crate::message::NodeId;
use crate::message::{Inner, Kind, Load, M, Note, Text};
use crate::{check_handlers, expect_maps};
use beehive::{App, Ctx, Dict, Mapper, Result, handlers, pure};
use beehive::{Config, Table};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, crate = "serde")]
pub(crate) struct Limits {
    limit: u64,
}

#[derive(App)]
#[app(name = "surface")]
pub(crate) struct Surface {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    s: Dict<String, u64>,
    t: Dict<(u64, u64), u64>,
    w: Dict<u64, u64>,
    g: Dict<String, u64>,
    nodes: Dict<NodeId, u64>,
    #[volatile]
    beside: Dict<NodeId, u64>,
    rows: Table<u64, u64, u64>,
    config: Config<Limits>,
}

fn written_by_hand(m: &M<75>, mapper: &mut Mapper) {
    mapper.cell(Surface::__bh_d, &m.a);
    mapper.cell(Surface::__bh_e, &m.b);
}

#[handlers]
impl Surface {
    #[rcv(centralized)]
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
    #[rcv(joins)]
    fn helper(&mut self, m: &M<27>) {
        self.bump(m.a);
    }
    #[rcv(joins)]
    fn helper_value(&mut self, m: &M<28>) {
        let v = self.d.get(&m.a).copied().unwrap_or(0);
        self.set(m.b, v);
    }
    #[rcv(joins)]
    fn helper_helper(&mut self, m: &M<29>, ctx: &mut Ctx) {
        for x in &m.items {
            self.both(*x, m.b, ctx);
        }
    }
    #[rcv(joins)]
    fn helper_generic(&mut self, m: &M<30>) {
        self.named(&m.name, &m.items);
    }
    #[rcv(joins)]
    fn alias(&mut self, m: &M<33>) {
        let d = &mut self.d;
        if d.contains(&m.a) {
            d.put(m.b, 1);
        }
    }
    #[rcv(joins)]
    fn destructure_self(&mut self, m: &M<34>) {
        let Self { d, e, .. } = self;
        for (k, v) in m.items.iter().zip(m.pairs.iter()) {
            d.put(*k, v.0);
            e.put(v.1, *k);
        }
    }
    #[rcv(joins)]
    fn macro_arg(&mut self, m: &M<35>) {
        println!("value {:?} of {}", self.d.get(&m.a), m.b);
    }
    #[rcv(joins)]
    fn nested_access(&mut self, m: &M<36>) {
        self.d.put(m.a, self.e.get(&m.b).copied().unwrap_or(0) + 1);
    }
    #[rcv(joins)]
    fn split_let(&mut self, m: &M<37>) {
        let (k, v) = (m.a, self.e.get(&m.b).copied());
        self.d.put(k, v.unwrap_or(0));
    }
    #[rcv(centralized)]
    fn whole(&mut self, m: &M<38>) {
        let w = self.w.whole();
        let best = w.iter().max_by_key(|(_, v)| **v).map(|(k, _)| *k);
        let mut w = w;
        w.put(best.unwrap_or(m.a), 1);
    }
    #[rcv(centralized)]
    fn monolithic(&mut self, m: &M<39>) {
        self.w.put(m.a, 1);
    }
    #[rcv(centralized)]
    fn constant(&mut self, m: &M<41>) {
        *self.g.entry("gen".to_string()).or_insert(0) += 1;
        self.d.put(m.a, 1);
    }
    #[rcv(stateless)]
    fn stateless(&mut self, m: &M<42>, ctx: &mut Ctx) {
        ctx.emit(Note(m.a));
    }
    #[rcv(joins)]
    fn nothing(&mut self, m: &M<43>) {
        let _ = m.a;
    }
    #[rcv(joins)]
    fn update(&mut self, m: &M<44>, ctx: &mut Ctx) {
        self.d.update(m.a, |v| {
            *v += m.b;
            if *v > 10 {
                ctx.emit(Note(*v));
            }
        });
    }
    #[rcv(joins)]
    fn for_each(&mut self, m: &M<45>) {
        m.items.iter().for_each(|x| {
            self.d.put(*x, 1);
        });
    }
    #[rcv(joins)]
    fn plain_guard(&mut self, m: &M<60>) {
        if m.b > self.config.limit {
            self.d.put(m.a, 1);
        }
    }
    #[rcv(joins)]
    fn rows(&mut self, m: &M<71>) {
        let rows = self.rows.at(m.a);
        let next = rows.get(&m.b).copied().unwrap_or(0);
        rows.insert(next, m.b);
        rows.retain(|k, _| *k != 3);
    }
    #[rcv(map = written_by_hand)]
    fn user_map(&mut self, m: &M<75>) {
        let k = self.d.get(&m.a).copied().unwrap_or(0);
        self.e.put(m.b, k);
    }
    fn bump(&mut self, k: u64) {
        *self.d.entry(k).or_insert(0) += 1;
    }
    fn set(&mut self, k: u64, v: u64) {
        if v > 3 {
            self.e.put(k, v);
        }
    }
    fn both(&mut self, x: u64, y: u64, ctx: &mut Ctx) {
        self.bump(x);
        self.set(y, 9);
        ctx.emit(Note(x));
    }
    fn named<S: AsRef<str>, I>(&mut self, name: S, _unused: I) {
        self.s.put(name.as_ref().to_string(), 1);
    }
    #[rcv]
    fn helper_shadows(&mut self, m: &M<93>) {
        let k = m.b;
        self.shadowing(m.a, k);
    }
    fn shadowing(&mut self, a: u64, _unused: u64) {
        let a = a + 1;
        let m = a * 2;
        self.d.put(m, 1);
    }
    #[rcv(joins)]
    fn helper_of_state_and_message(&mut self, m: &M<94>) {
        let v = self.d.get(&m.a).copied().unwrap_or(0);
        self.set(m.a, v);
        self.set(m.b, m.a);
    }
    #[rcv(centralized)]
    fn whole_by_helper(&mut self, _: &M<95>, ctx: &mut Ctx) {
        ctx.emit(Note(self.count()));
    }
    fn count(&mut self) -> u64 {
        self.w.whole().len() as u64
    }
    #[rcv]
    fn fused_with_whole(&mut self, m: &M<96>) {
        self.beside.put(NodeId(m.a), 1);
    }
    #[rcv(centralized)]
    fn all_of_a_fused_one(&mut self, _: &M<97>) {
        self.nodes.whole().retain(|_, v| *v > 1);
    }
    #[rcv]
    fn row_in_an_answer(&mut self, m: &M<98>) -> Result<()> {
        self.rows.at(m.a).get(&m.b).ok_or("none")?;
        Ok(())
    }
    #[rcv(joins)]
    fn each_zip(&mut self, m: &M<99>) {
        let mut sums = vec![0; m.items.len()];
        for (x, sum) in m.items.iter().zip(sums.iter_mut()) {
            *sum = x + m.a;
        }
        for s in sums {
            self.d.put(s, 1);
        }
    }
    #[rcv(each = rows)]
    fn sweep(&mut self, key: &u64, m: &Note) {
        self.rows.at(*key).insert(m.0, 1);
        self.d.put(*key, m.0);
    }
    #[every("1s")]
    fn tick(&mut self, ctx: &mut Ctx) {
        ctx.emit(Note(1));
    }
    #[every("1s", each = rows)]
    fn tick_each(&mut self, key: &u64) {
        self.rows.at(*key).clear();
    }
}

#[test]
fn maps_are_as_expected() {
    expect_maps! { Surface;
        27 => "d[1]";
        28 => "d[1] e[2]";
        29 => "d[3] d[4] e[2]";
        30 => "s[n]";
        33 => "d[1] d[2]";
        34 => "d[3] d[4] e[6] e[7]";
        35 => "d[1]";
        36 => "d[1] e[2]";
        37 => "d[1] e[2]";
        38 => "w[*]";
        39 => "w[*]";
        41 => "d[1] g[gen]";
        42 => "stateless";
        43 => "drop";
        44 => "d[1]";
        45 => "d[3] d[4]";
        60 => "d[1]";
        71 => "rows[1]";
        75 => "d[1] e[2]";
        93 => "d[4]";
        94 => "d[1] e[1]";
        94 with |m| m.a = 4 => "d[4] e[2] e[4]";
        95 => "w[*]";
        96 => "beside[*]";
        97 => "nodes[*]";
        98 => "rows[1]";
        99 => "d[4] d[5]";
    }
}

#[test]
fn maps_cover_what_is_touched() {
    check_handlers!(Surface, 1000, exact in 1 of 2, [27 28 29 30 33 34 36 37 38 39 41 42 43 44 45 60 71 75 93 94 95 96 97 98 99]);
}
