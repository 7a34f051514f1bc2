// A runtime in one file, so thousands of bodies compile in a minute. It records the cells that a handler
// touches and those that its map names. `tests/maps` of beehive-core runs the same bodies on the real
// runtime.

#![allow(warnings)]
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub type Error = String;
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

pub struct Note(pub u64);
pub struct Ctx;
impl Ctx {
    pub fn emit<T>(&mut self, _: T) {}
}

mod tracing {
    macro_rules! trace {
        ($($t:tt)*) => {{ let _ = format!($($t)*); }};
    }
    pub(crate) use trace;
}

/// Returns counters of side effects outside the app's state. A map must have none.
fn effects() -> (u64, usize, u64) {
    let sent = SENT.lock().map_or_else(|e| e.into_inner().len(), |all| all.len());
    (COUNT.load(Ordering::Relaxed) + NUMBERS.0.load(Ordering::Relaxed), sent, LAST.with(Cell::get))
}

macro_rules! pure {
    ($e:expr) => {
        $e
    };
}
#[derive(Clone, Debug)]
pub enum Kind {
    A(u64),
    B { x: u64 },
    C,
}

#[derive(Clone, Debug)]
pub struct Inner {
    pub id: u64,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct M<const N: u32> {
    pub a: u64,
    pub b: u64,
    pub flag: bool,
    pub name: String,
    pub items: Vec<u64>,
    pub pairs: Vec<(u64, u64)>,
    pub opt: Option<u64>,
    pub kind: Kind,
    pub mac: [u8; 6],
    pub inner: Inner,
    pub text: String,
}

/// Number of steps after which a map ends with an error.
const STEPS_MAX: u64 = 100_000;

type Cells = BTreeSet<(&'static str, u64)>;

#[derive(Default)]
pub struct Dict {
    name: &'static str,
    rows: BTreeMap<u64, u64>,
    touched: RefCell<BTreeSet<u64>>,
}

impl Dict {
    fn touch(&self, key: &u64) {
        self.touched.borrow_mut().insert(*key);
    }
    pub fn get(&self, key: &u64) -> Option<&u64> {
        self.touch(key);
        self.rows.get(key)
    }
    pub fn contains(&self, key: &u64) -> bool {
        self.get(key).is_some()
    }
    pub fn put(&mut self, key: u64, value: u64) -> Option<u64> {
        self.touch(&key);
        self.rows.insert(key, value)
    }
    pub fn remove(&mut self, key: &u64) -> Option<u64> {
        self.touch(key);
        self.rows.remove(key)
    }
    pub fn update<R>(&mut self, key: u64, change: impl FnOnce(&mut u64) -> R) -> R {
        self.touch(&key);
        change(self.rows.entry(key).or_default())
    }
}

#[derive(Default)]
pub struct Mapper {
    cells: Cells,
    steps: u64,
}
impl Mapper {
    pub fn effect(&mut self) {}
    pub fn step(&mut self) {
        self.steps += 1;
        assert!(self.steps < STEPS_MAX, "too many steps");
    }
    pub fn branch(&mut self, part: impl FnOnce(&mut Mapper)) {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| part(self)));
    }
}

#[derive(Clone, Copy)]
pub struct Meta(&'static str);
pub struct At<'a, Q: ?Sized>(pub Meta, pub &'a Q);
pub struct AtValue<'a, Q: ?Sized>(pub Meta, pub &'a Q);
pub trait Number {
    fn number(&self) -> u64;
}
impl Number for u64 {
    fn number(&self) -> u64 {
        *self
    }
}
impl<T: Number + ?Sized> Number for &T {
    fn number(&self) -> u64 {
        (**self).number()
    }
}
impl<Q: Number + ?Sized> At<'_, Q> {
    pub fn cell(self, mapper: &mut Mapper) {
        mapper.cells.insert((self.0.0, self.1.number()));
    }
}
impl<Q: Number + ?Sized> AtValue<'_, Q> {
    pub fn cell(self, mapper: &mut Mapper) {
        mapper.cells.insert((self.0.0, self.1.number()));
    }
}

pub struct Watched<M: ?Sized>(std::convert::Infallible, M);
impl<M: ?Sized> std::ops::Deref for Watched<M> {
    type Target = M;
    fn deref(&self) -> &M {
        match self.0 {}
    }
}
pub fn watched<M: ?Sized>(_: &M) -> &Watched<M> {
    unreachable!()
}
#[diagnostic::on_unimplemented(message = "this macro rebinds a name")]
pub trait StillBound {}
impl<M: ?Sized> StillBound for &Watched<M> {}
pub fn still_bound<T: StillBound>(_: T) {}

pub trait TryLike {
    type T;
    fn ok_like(self) -> Option<Self::T>;
}
impl<T> TryLike for Option<T> {
    type T = T;
    fn ok_like(self) -> Option<T> {
        self
    }
}
impl<T, E> TryLike for std::result::Result<T, E> {
    type T = T;
    fn ok_like(self) -> Option<T> {
        self.ok()
    }
}

pub struct A {
    pub d: Dict,
    pub e: Dict,
}
impl A {
    pub const __bh_d: Meta = Meta("d");
    pub const __bh_e: Meta = Meta("e");
    fn touched(&self) -> Cells {
        let of = |dict: &Dict| dict.touched.borrow().iter().map(|k| (dict.name, *k)).collect::<Vec<_>>();
        of(&self.d).into_iter().chain(of(&self.e)).collect()
    }
}

struct Chance(u64);
impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
    fn list<T>(&mut self, most: u64, mut one: impl FnMut(&mut Chance) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }
    fn small(&mut self) -> u64 {
        self.below(7)
    }
    fn text(&mut self) -> String {
        let numbers = [1, 2, 12, 21, 345, 6];
        let number = numbers[self.below(6) as usize];
        ["", " ", "/", "x"][self.below(4) as usize].to_string() + &number.to_string()
    }
    fn message<const N: u32>(&mut self) -> M<N> {
        let kind = match self.below(3) {
            0 => Kind::A(self.small()),
            1 => Kind::B { x: self.small() },
            _ => Kind::C,
        };
        M {
            a: self.small(),
            b: self.small(),
            flag: self.below(2) == 0,
            name: self.text(),
            items: self.list(4, Chance::small),
            pairs: self.list(4, |c| (c.small(), c.small())),
            opt: (self.below(3) > 0).then(|| self.small()),
            kind,
            mac: [self.small() as u8; 6],
            inner: Inner { id: self.small(), tags: self.list(2, |c| c.text()) },
            text: self.text(),
        }
    }
    fn dict(&mut self, name: &'static str) -> Dict {
        let rows = self.list(8, |c| (c.small(), c.small())).into_iter().collect();
        Dict { name, rows, ..Dict::default() }
    }
}

/// Runs a handler and its map side by side, and prints the first message for which the map misses a cell.
fn check<const N: u32>(
    handle: fn(&mut A, &M<N>, &mut Ctx) -> Result,
    map: fn(&M<N>, &mut Mapper),
    runs: u64,
    tally: &mut [u64; 4],
) {
    let mut panicked = false;
    for seed in 1..=runs {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let message = chance.message::<N>();
        let mut app = A { d: chance.dict("d"), e: chance.dict("e") };
        let caught = |run: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok();
        let handled = caught(&mut || drop(handle(&mut app, &message, &mut Ctx)));
        let mut mapper = Mapper::default();
        let before = effects();
        let mapped = caught(&mut || map(&message, &mut mapper));
        let touched = app.touched();
        if effects() != before {
            tally[3] += 1;
            println!("UNSOUND g{N} seed {seed}: its map has a side effect; {message:?}");
            return;
        }
        let missed: Vec<_> = touched.difference(&mapper.cells).collect();
        tally[0] += 1;
        tally[1] += (touched.len() == mapper.cells.len()) as u64;
        tally[2] += !handled as u64;

        if handled && mapper.steps >= STEPS_MAX {
            tally[3] += 1;
            println!("UNSOUND g{N} seed {seed}: its map does not end; {message:?}");
            return;
        }
        if !handled && !panicked {
            panicked = true;
            println!("PANICKED g{N}");
        }
        // as on the real runtime, a map that panics names the cells before that point
        if handled && !missed.is_empty() {
            tally[3] += 1;
            let panicked = if mapped { "" } else { ", its map panics" };
            println!("UNSOUND g{N} seed {seed}: misses {missed:?}{panicked}; {message:?}");
            return;
        }
    }
}
