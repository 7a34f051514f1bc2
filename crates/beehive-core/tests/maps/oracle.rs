//! The oracle: for random messages and states, a handler touches only cells that its map names, a strict
//! delivery never fails, and a dropped message would have had no effect.

use crate::message::{Inner, Kind, Load, M};
use beehive::Outcome;
use beehive::testing::maps::{Delivered, covers, deliver, describe, instance, record};
use beehive::{Handlers, Handles, Message};

/// A small deterministic generator. A failure reports the seed, which reproduces the case.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn list<T>(&mut self, most: u64, mut one: impl FnMut(&mut Chance) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }

    /// Returns a small value, so values often coincide.
    fn small(&mut self) -> u64 {
        self.below(7)
    }

    fn pair(&mut self) -> (u64, u64) {
        (self.small(), self.small())
    }

    pub(crate) fn message<const N: u32>(&mut self) -> M<N> {
        let kind = match self.below(3) {
            0 => Kind::A(self.small()),
            1 => Kind::B { x: self.small() },
            _ => Kind::C,
        };

        let id = self.small();
        M {
            a: self.small(),
            b: self.small(),
            flag: self.below(2) == 0,
            name: self.small().to_string(),
            items: self.list(4, Chance::small),
            pairs: self.list(4, Chance::pair),
            opt: (self.below(3) > 0).then(|| self.small()),
            kind,
            mac: [self.small() as u8; 6],
            inner: Inner { id, tags: self.list(2, |c| c.small().to_string()) },
            text: self.small().to_string(),
        }
    }

    pub(crate) fn state(&mut self) -> Load {
        Load {
            d: self.list(8, Chance::pair),
            e: self.list(8, Chance::pair),
            w: self.list(8, Chance::pair),
            t: self.list(8, |c| (c.pair(), c.small())),
            rows: self.list(8, |c| (c.small(), c.small(), c.small())),
        }
    }
}

/// Returns the map of a message as text: `drop`, `stateless`, or the cells in order.
pub(crate) fn words<A: Handlers + Handles<T>, T: Message>(message: &T) -> String {
    let mapped = describe::<A, T>(message);
    match mapped.outcome {
        Outcome::Drop => "drop".into(),
        Outcome::Stateless => "stateless".into(),
        _ => {
            let mut words = mapped.words;
            words.sort();
            words.join(" ")
        }
    }
}

/// Statistics of a run.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    /// Number of runs in which the map named exactly the touched cells.
    pub(crate) exact: u64,
}

/// Returns an app in the given state.
fn loaded<A: Handlers + Handles<Load>>(state: &Load) -> A {
    let mut app: A = instance(Default::default()).expect("default settings");
    let delivered = deliver(&mut app, state);
    assert!(matches!(delivered, Delivered::Committed(_)), "{delivered:?}");
    app
}

/// Checks whether a handler touches a cell that its map does not name.
pub(crate) fn misses<A: Handlers + Handles<M<N>> + Handles<Load>, const N: u32>(
    message: &M<N>,
    state: &Load,
) -> bool {
    !covers(&describe::<A, M<N>>(message), &record(&mut loaded::<A>(state), message))
}

/// Checks one handler with one message and one state.
pub(crate) fn check<A: Handlers + Handles<M<N>> + Handles<Load>, const N: u32>(
    seed: u64,
    message: &M<N>,
    state: &Load,
    tally: &mut Tally,
) {
    let mapped = describe::<A, M<N>>(message);
    let touched = record(&mut loaded::<A>(state), message);
    assert!(
        covers(&mapped, &touched),
        "{} handler {N} seed {seed}: the map is {:?}, but touched is {touched:?}\n{message:?}\n{state:?}",
        A::NAME,
        mapped.words,
    );

    let delivered = deliver(&mut loaded::<A>(state), message);
    match &delivered {
        Delivered::Unmapped(violation) => {
            panic!("{} handler {N} seed {seed}: {violation:?}\n{message:?}\n{state:?}", A::NAME)
        }
        Delivered::Panicked(text) => {
            panic!("{} handler {N} seed {seed}: {text}\n{message:?}\n{state:?}", A::NAME)
        }
        _ => {}
    }

    if mapped.outcome == Outcome::Drop {
        assert_eq!(
            delivered,
            Delivered::Committed(0),
            "{} handler {N} seed {seed}: dropped, but it does something",
            A::NAME
        );
    }

    tally.runs += 1;
    tally.exact += (mapped.words.len() == touched.len()) as u64;
}

/// Checks handlers with random messages and states, `$times` times. Every run checks that the map covers the
/// touched cells. The share of runs in which the map is exact shows that the maps are not needlessly coarse.
#[macro_export]
macro_rules! check_handlers {
    ($app:ty, $times:expr, exact in 1 of $share:literal, [$($n:literal)*]) => {{
        let mut tally = $crate::oracle::Tally::default();
        for seed in 0..$times {
            let mut chance = $crate::oracle::Chance::new(seed);
            let (message, state) = (chance.message::<0>(), chance.state());
            $( $crate::oracle::check::<$app, $n>(seed, &$crate::message::M::of(&message), &state, &mut tally); )*
        }
        println!("{tally:?}");
        assert!(tally.exact * $share > tally.runs, "maps are much too coarse: {tally:?}");
    }};
}

/// Asserts the maps of the sample message, optionally modified.
#[macro_export]
macro_rules! expect_maps {
    ($app:ty; $( $n:literal $(with $change:expr)? => $want:literal; )*) => {{
        let mut wrong: Vec<String> = vec![];
        $({
            #[allow(unused_mut)]
            let mut message = $crate::message::M::<$n>::sample();
            $( let change: fn(&mut $crate::message::M<$n>) = $change; change(&mut message); )?
            let got = $crate::oracle::words::<$app, _>(&message);
            if got != $want {
                wrong.push(format!("{}: wanted {}, got {got}", $n, $want));
            }
        })*
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }};
}
