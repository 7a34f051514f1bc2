//! Maps of handlers with `attempt!`: the map contains the accesses of a block whether or not the block is
//! rolled back.

#![allow(unused, clippy::all)]
use crate::message::{Kind, Load, M, Note};
use crate::{check_handlers, expect_maps};
use beehive::{App, Ctx, Dict, Error, Result, Table, attempt, handlers};

#[derive(App)]
#[app(name = "attempts")]
pub(crate) struct Attempts {
    d: Dict<u64, u64>,
    e: Dict<u64, u64>,
    w: Dict<u64, u64>,
    t: Dict<(u64, u64), u64>,
    rows: Table<u64, u64, u64>,
}

#[handlers]
impl Attempts {
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
    #[rcv(joins)]
    fn left_upon_state(&mut self, m: &M<401>) {
        let done = attempt! {
            let v = *self.d.get(&m.a).ok_or("no d")?;
            self.e.put(m.b, v);
            Ok(v)
        };
        self.w.put(m.a, done.is_ok() as u64);
    }
    #[rcv(joins)]
    fn left_upon_the_message(&mut self, m: &M<402>) {
        let _ = attempt! {
            let k = m.opt.ok_or("no opt")?;
            self.d.put(k, 1);
            Ok(())
        };
        self.e.put(m.a, 1);
    }
    #[rcv(joins)]
    fn nested(&mut self, m: &M<403>, ctx: &mut Ctx) -> Result {
        attempt! {
            self.d.put(m.a, 1);
            let inner = attempt! {
                self.e.get(&m.b).ok_or("no e")?;
                ctx.emit(Note(1));
                self.rows.at(m.a).insert(m.b, 1);
                Ok(())
            };

            if inner.is_err() && m.flag {
                Err("neither")?;
            }

            self.w.put(m.b, 1);
            Ok(())
        }
    }
    #[rcv(joins)]
    fn in_a_loop(&mut self, m: &M<404>) {
        for x in &m.items {
            let _ = attempt! {
                if self.d.contains(x) {
                    Err("there")?;
                }
                let y: u64 = m.text.trim().parse()?;
                self.e.put(*x + y, 1);
                Ok(())
            };
        }
    }
    #[rcv(joins)]
    fn around_a_loop(&mut self, m: &M<405>) {
        let _ = attempt! {
            for (p, q) in &m.pairs {
                if self.d.contains(p) {
                    break;
                }

                if *q == m.b {
                    continue;
                }

                self.e.put(*q, 1);
                if m.flag && *p == m.a {
                    Err("enough")?;
                }
            }

            self.w.put(m.a, 1);
            Ok(())
        };

        self.t.put((m.a, m.b), 1);
    }
    #[rcv(joins)]
    fn through_a_helper(&mut self, m: &M<406>, ctx: &mut Ctx) {
        if attempt! { self.help(m.a, ctx)?; self.help(m.b, ctx) }.is_err() {
            self.w.put(m.a, 1);
        }
    }
    fn help(&mut self, key: u64, ctx: &mut Ctx) -> Result<u64> {
        ctx.emit(Note(key));
        let of = attempt! { Ok(*self.d.get(&key).ok_or("no d")?) };
        self.e.put(key, of.unwrap_or(0));
        Ok(1)
    }
    #[rcv]
    fn matched(&mut self, m: &M<407>) {
        match attempt! {
            match &m.kind {
                Kind::A(x) => {
                    self.d.put(*x, 1);
                    Ok(1)
                }
                Kind::B { x } => Err(Error::new("not this")),
                Kind::C => Ok(u64::from_str_radix(m.text.trim(), 10)?),
            }
        } {
            Ok(_) => {}
            Err(_) => {}
        }
    }
}

#[test]
fn each_handler_has_the_expected_map() {
    expect_maps! { Attempts;
        401 => "d[1] e[2] w[1]";
        402 => "d[8] e[1]";
        402 with |m| m.opt = None => "e[1]";
        403 => "d[1] e[2] rows[1] w[2]";
        404 => "d[3] d[4] e[45] e[46]";
        404 with |m| m.text = "no number".into() => "d[3] d[4]";
        405 => "d[5] d[7] e[6] e[7] t[(1, 2)] w[1]";
        406 => "d[1] d[2] e[1] e[2] w[1]";
        407 => "d[9]";
    }
}

#[test]
fn each_map_covers_what_is_touched() {
    check_handlers!(Attempts, 600, exact in 1 of 3, [401 402 403 404 405 406 407]);
}
