//! `attempt!`: if a block yields an error, the changes of that block are rolled back, and nothing else.

use beehive_core::testing::Kit;
use beehive_core::{App, Ctx, Dict, Message, Table, attempt, handlers};
use std::time::Duration;

/// An operation of a script: a change, a message or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Do {
    Put(u64),
    Remove,
    Row(u64, u64),
    Take(u64),
    Say(u64),
    Later(u64),
}
#[derive(Message)]
struct Script {
    key: u64,
    /// The operations in five parts: before an attempt, in it, in a nested attempt, in the outer attempt
    /// again, and after it.
    parts: [Vec<Do>; 5],
    inner_fails: bool,
    outer_fails: bool,
    all_fails: bool,
}
#[derive(Message, PartialEq, Debug)]
struct Said(u64);

#[derive(App)]
struct Actor {
    value: Dict<u64, u64>,
    rows: Table<u64, u64, u64>,
}
#[handlers]
impl Actor {
    #[rcv(sharded)]
    fn script(&mut self, msg: &Script, ctx: &mut Ctx) -> beehive_core::Result {
        let [before, first, inside, second, after] = &msg.parts;
        self.play(msg.key, before.as_slice(), ctx);
        let outer = attempt! {
            self.play(msg.key, first.as_slice(), ctx);
            let inner = attempt! {
                self.play(msg.key, inside.as_slice(), ctx);
                if msg.inner_fails { Err("inner")? }
                Ok(7)
            };

            assert_eq!(inner.is_err(), msg.inner_fails);
            self.play(msg.key, second.as_slice(), ctx);
            if msg.outer_fails { Err("outer")? }
            inner.or(Ok(8))
        };

        assert_eq!(outer.is_err(), msg.outer_fails);
        self.play(msg.key, after.as_slice(), ctx);
        if msg.all_fails {
            Err("all")?
        }

        Ok(())
    }
    /// The message of a timer goes to the app that set the timer.
    #[rcv]
    fn said(&mut self, _: &Said) {}
    fn play(&mut self, key: u64, what: &[Do], ctx: &mut Ctx) {
        for what in what {
            match *what {
                Do::Put(value) => drop(self.value.put(key, value)),
                Do::Remove => drop(self.value.remove(&key)),
                Do::Row(row, value) => drop(self.rows.at(key).insert(row, value)),
                Do::Take(row) => drop(self.rows.at(key).remove(&row)),
                Do::Say(word) => ctx.emit(Said(word)),
                Do::Later(word) => ctx.after(Duration::from_secs(1), Said(word)),
            }
        }
    }
}

/// A model of the same semantics in plain code.
#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    value: Option<u64>,
    rows: std::collections::BTreeMap<u64, u64>,
    said: Vec<u64>,
    later: Vec<u64>,
}

impl Model {
    fn play(&mut self, what: &[Do]) {
        for what in what {
            match *what {
                Do::Put(value) => self.value = Some(value),
                Do::Remove => self.value = None,
                Do::Row(row, value) => drop(self.rows.insert(row, value)),
                Do::Take(row) => drop(self.rows.remove(&row)),
                Do::Say(word) => self.said.push(word),
                Do::Later(word) => self.later.push(word),
            }
        }
    }

    fn run(&mut self, script: &Script) {
        let before = self.clone();
        self.play(&script.parts[0]);
        let at_outer = self.clone();
        self.play(&script.parts[1]);

        let at_inner = self.clone();
        self.play(&script.parts[2]);
        if script.inner_fails {
            *self = at_inner
        }

        self.play(&script.parts[3]);
        if script.outer_fails {
            *self = at_outer
        }

        self.play(&script.parts[4]);
        if script.all_fails {
            *self = before
        }
    }
}

struct Chance(u64);
impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
    fn part(&mut self) -> Vec<Do> {
        // This is sometimes more than the number of entries that the undo log searches linearly.
        let count = if self.below(4) == 0 { 30 } else { self.below(6) };
        (0..count)
            .map(|_| match self.below(6) {
                0 => Do::Put(self.below(100)),
                1 => Do::Remove,
                2 => Do::Row(self.below(12), self.below(100)),
                3 => Do::Take(self.below(12)),
                4 => Do::Say(self.below(100)),
                _ => Do::Later(self.below(100)),
            })
            .collect()
    }
}

#[test]
fn random_scripts_leave_what_the_model_says() {
    let mut chance = Chance(7);
    for run in 0..150 {
        let mut kit = Kit::of::<Actor>().start();
        let mut models: [Model; 3] = Default::default();
        let mut said = Vec::new();

        for _ in 0..12 {
            let key = chance.below(3);
            let script = Script {
                key,
                parts: std::array::from_fn(|_| chance.part()),
                inner_fails: chance.below(2) == 0,
                outer_fails: chance.below(3) == 0,
                all_fails: chance.below(5) == 0,
            };

            let model = &mut models[key as usize];
            model.run(&script);
            said.append(&mut model.said);
            said.append(&mut model.later);
            kit.emit(script).advance(Duration::from_secs(2));
        }

        for (key, model) in (0..3).zip(&models) {
            let found = kit.look::<Actor, _>(|app| Model {
                value: app.value.get(&key).copied(),
                rows: app.rows.at(key).iter().map(|(row, value)| (*row, *value)).collect(),
                ..Model::default()
            });
            assert_eq!(found, *model, "run {run}, key {key}");
        }

        let heard: Vec<u64> = kit.sent::<Said>().iter().map(|said| said.0).collect();
        assert_eq!(heard, said, "run {run}");
    }
}

#[derive(Message)]
struct Many {
    keys: Vec<u64>,
    fails: bool,
}
#[derive(App)]
struct Wide {
    value: Dict<u64, u64>,
    rows: Table<u64, u64, u64>,
}
#[handlers]
impl Wide {
    #[rcv(joins)]
    fn many(&mut self, msg: &Many) {
        let first = msg.keys.first().copied().unwrap_or(0);
        self.rows.at(first).insert(0, 1);
        let _ = attempt! {
            // The first cell has been accessed before the attempt; the others have not.
            for key in &msg.keys {
                self.value.put(*key, 1);
                self.rows.at(*key).insert(1, 1);
                self.rows.at(*key).insert(0, 2);
            }
            if msg.fails { Err("all of it")? }
            Ok(())
        };
    }
}

#[test]
fn many_cells_are_undone_and_leave_no_empty_ones() {
    let cells = |fails| {
        let mut kit = Kit::of::<Wide>().start();
        kit.emit(Many { keys: (0..40).collect(), fails });
        let cells = kit.state_copy::<Wide>().cells();
        (cells.len(), cells.first().cloned().unwrap())
    };
    assert_eq!(cells(true), (1, ("rows[0]".into(), "[[0,1]]".into())));
    assert_eq!(cells(false).0, 80);
}

/// Another name of the context.
type Outside = Ctx;
/// Hides the context in a field.
struct Envelope<'a> {
    ctx: &'a mut Ctx,
}
trait Says {
    fn say(&mut self, word: u64);
}
impl Says for Ctx {
    fn say(&mut self, word: u64) {
        self.emit(Said(word))
    }
}

/// Emits in an attempt that fails, in a method whose context is hidden in one of these ways.
#[derive(Message, Clone, Copy, PartialEq, Debug)]
enum Hidden {
    BehindAnAlias,
    InAField,
    InAnOption,
    BehindATrait,
    OnlyATimer,
    /// Does not emit in the attempt, but outside of it.
    Nothing,
}

#[derive(App)]
struct Hiding {
    value: Dict<u64, u64>,
}
#[handlers]
impl Hiding {
    #[rcv(centralized)]
    fn hidden(&mut self, msg: &Hidden, ctx: &mut Ctx) {
        self.value.put(0, 1);
        match msg {
            Hidden::BehindAnAlias => self.behind_an_alias(ctx),
            Hidden::InAField => self.in_a_field(&mut Envelope { ctx }),
            Hidden::InAnOption => self.in_an_option(Some(ctx)),
            Hidden::BehindATrait => self.behind_a_trait(ctx),
            Hidden::OnlyATimer => self.only_a_timer(ctx),
            Hidden::Nothing => self.nothing(ctx),
        }
    }
    #[rcv]
    fn said(&mut self, _: &Said) {}
    fn behind_an_alias(&mut self, out: &mut Outside) {
        let _ = attempt! { out.emit(Said(1)); Err("no")?; Ok(()) };
    }
    fn in_a_field(&mut self, out: &mut Envelope) {
        let _ = attempt! { out.ctx.emit(Said(1)); Err("no")?; Ok(()) };
    }
    fn in_an_option(&mut self, mut out: Option<&mut Ctx>) {
        let _ = attempt! {
            if let Some(out) = out.as_mut() { out.emit(Said(1)) }
            Err("no")?;
            Ok(())
        };
    }
    fn behind_a_trait<S: Says>(&mut self, out: &mut S) {
        let _ = attempt! { out.say(1); Err("no")?; Ok(()) };
    }
    fn only_a_timer(&mut self, out: &mut Outside) {
        let _ = attempt! { out.after(Duration::from_secs(1), Said(1)); Err("no")?; Ok(()) };
    }
    fn nothing(&mut self, out: &mut Outside) {
        out.emit(Said(1));
        let _ = attempt! { self.value.put(0, 2); Err("no")?; Ok(()) };
        let _ = attempt! { out.emit(Said(2)); Ok(()) };
    }
}

#[test]
fn a_failed_attempt_keeps_nothing_that_it_emitted_through_a_hidden_context() {
    use Hidden::{BehindATrait, BehindAnAlias, InAField, InAnOption, OnlyATimer};
    for hidden in [BehindAnAlias, InAField, InAnOption, BehindATrait, OnlyATimer] {
        let mut kit = Kit::of::<Hiding>().failures_allowed().start();
        kit.emit(hidden).advance(Duration::from_secs(2));
        assert_eq!(kit.sent::<Said>().len(), 0, "{hidden:?}");
        assert_eq!(kit.look::<Hiding, _>(|app| app.value.get(&0).copied()), None, "{hidden:?}");
        let letters = kit.dead_letters();
        assert!(letters[0].error.text().contains("parameter of type `&mut Ctx`"), "{letters:?}");
    }

    let mut kit = Kit::of::<Hiding>().start();
    kit.emit(Hidden::Nothing);
    assert_eq!(kit.sent::<Said>().iter().map(|said| said.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(kit.look::<Hiding, _>(|app| app.value.get(&0).copied()), Some(1));
}
