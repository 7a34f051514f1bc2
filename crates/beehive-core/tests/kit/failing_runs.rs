//! Property: whatever makes a handler run, whatever it changes and however it fails, it leaves nothing behind.
//!
//! A handler runs for a request, a message of an IO bee, a timer, a message that was postponed, a visit of a sweep or a
//! tick. It makes random changes, then succeeds or fails in one of the forms of [`End`]. A plain-code model sees
//! only the runs that succeed.

use beehive_core::testing::{Kit, Spread};
use beehive_core::{App, Ctx, Dict, Key, Message, RequestError, Result, Table, attempt, handlers};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

const SECRET: &str = "the password is bee";

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

impl Place {
    /// The cell that a change of two cells touches as well.
    const fn beside(self) -> Place {
        Place(self.0 ^ 1)
    }
}

/// What an app changes or sends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Change {
    Put(u64),
    Remove,
    Update(u64),
    Modify,
    PutBeside(u64),
    PutVolatile(u64),
    Insert(u64, u64),
    RemoveRow(u64),
    Retain(u64),
    TakeRows(u64),
    Clear,
    InsertBounded(u64),
    Emit,
    After,
    /// Only in runs that fail, because only a transaction that commits postpones its message.
    Postpone,
    /// An `attempt!` that makes changes and yields an error.
    Undone,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum End {
    Well,
    /// `return Err(..)`.
    Return,
    /// `?` on an error that converts.
    Question,
    /// `?` on the result of a helper that calls another one, both of which make changes.
    Helpers,
    /// `?` on an `attempt!` inside another one.
    Attempts,
    /// A panic in a helper inside an `attempt!`.
    Panic,
}
const BAD: [End; 5] = [End::Return, End::Question, End::Helpers, End::Attempts, End::Panic];

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Script {
    place: Place,
    changes: Vec<Change>,
    end: End,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Refused(u64);
impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused {}", self.0)
    }
}
impl std::error::Error for Refused {}

/// Converts into `Refused` with `?`.
struct Low;
impl From<Low> for Refused {
    fn from(_: Low) -> Refused {
        Refused(0)
    }
}

#[derive(Message)]
#[message(reply = u64, error = Refused)]
struct Asked(Script);
/// From an IO bee.
#[derive(Message)]
#[message(error = Refused)]
struct Emitted(Script);
/// Sets the timer that sends `Timed`.
#[derive(Message)]
struct Start(Script);
#[derive(Message)]
#[message(error = Refused)]
struct Timed(Script);
/// Postponed once, so that the script runs in a later run of the message.
#[derive(Message)]
#[message(reply = u64, error = Refused)]
struct Waits(Script);
/// Keeps the script for the next visit or tick.
#[derive(Message)]
struct Plan {
    script: Script,
    on: Occasion,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Occasion {
    Visit,
    TickOfEach,
    Tick,
}
#[derive(Message)]
#[message(error = Refused)]
struct Visit;
/// Drops the plan of a run that failed.
#[derive(Message)]
struct Unplan(Place);

#[derive(Message)]
struct Said {
    place: u64,
    later: bool,
}
#[derive(Message)]
struct Later(Place);

/// The place of the tick that is not for each cell.
const OF_THE_TICK: Place = Place(100);

#[derive(App)]
struct Subject {
    value: Dict<Place, u64>,
    rows: Table<Place, u64, u64>,
    #[rows(max = 3, evict = first)]
    bounded: Table<Place, u64, u64>,
    #[volatile]
    volatile: Dict<Place, u64>,
    waiting: Dict<Place, ()>,
    plan: Dict<Place, (Occasion, Script)>,
}

#[handlers]
impl Subject {
    #[rcv(joins)]
    fn asked(&mut self, Asked(script): &Asked, ctx: &mut Ctx) -> Result<u64, Refused> {
        self.run(script.place, script, ctx)
    }

    #[rcv(joins)]
    fn emitted(&mut self, Emitted(script): &Emitted, ctx: &mut Ctx) -> Result<(), Refused> {
        self.run(script.place, script, ctx)?;
        Ok(())
    }

    #[rcv(sharded)]
    fn start(&mut self, Start(script): &Start, ctx: &mut Ctx) {
        let _ = self.value.contains(&script.place);
        ctx.after(Duration::from_secs(1), Timed(script.clone()))
    }

    #[rcv(joins)]
    fn timed(&mut self, Timed(script): &Timed, ctx: &mut Ctx) -> Result<(), Refused> {
        self.run(script.place, script, ctx).map(drop)
    }

    #[rcv(joins)]
    fn waits(&mut self, Waits(script): &Waits, ctx: &mut Ctx) -> Result<Option<u64>, Refused> {
        if self.waiting.put(script.place, ()).is_none() {
            ctx.postpone(Duration::from_secs(1));
            return Ok(None);
        }
        self.waiting.remove(&script.place);
        self.run(script.place, script, ctx).map(Some)
    }

    #[rcv(sharded)]
    fn keep(&mut self, msg: &Plan) {
        self.plan.put(msg.script.place, (msg.on, msg.script.clone()));
    }

    #[rcv(sharded)]
    fn unplan(&mut self, Unplan(place): &Unplan) {
        self.plan.remove(place);
    }

    #[rcv(joins, each = plan)]
    fn visit(&mut self, place: &Place, _: &Visit, ctx: &mut Ctx) -> Result<(), Refused> {
        self.run_plan(*place, Occasion::Visit, ctx)
    }

    #[every("10s", joins, each = plan)]
    fn tick_of_each(&mut self, place: &Place, ctx: &mut Ctx) -> Result<()> {
        Ok(self.run_plan(*place, Occasion::TickOfEach, ctx)?)
    }

    #[every("10s", centralized)]
    fn tick(&mut self, ctx: &mut Ctx) -> Result<()> {
        self.run_plan(OF_THE_TICK, Occasion::Tick, ctx).map_err(|refused| refused.to_string())?;
        Ok(())
    }

    #[rcv(sharded)]
    fn later(&mut self, Later(place): &Later, ctx: &mut Ctx) {
        let _ = self.value.contains(place);
        ctx.emit(Said { place: place.0, later: true })
    }

    /// Runs a plan and drops it: if the run fails, the plan is there again.
    fn run_plan(&mut self, place: Place, on: Occasion, ctx: &mut Ctx) -> Result<(), Refused> {
        let Some((planned, script)) = self.plan.get(&place).cloned() else { return Ok(()) };
        if planned != on {
            return Ok(());
        }
        self.plan.remove(&place);
        self.run(place, &script, ctx)?;
        Ok(())
    }

    fn run(&mut self, place: Place, script: &Script, ctx: &mut Ctx) -> Result<u64, Refused> {
        self.work(place, &script.changes, script.end != End::Well, ctx);
        if script.end == End::Return {
            return Err(Refused(place.0));
        }
        match script.end {
            End::Well | End::Return => Ok(1),
            End::Question => Err(Low)?,
            End::Helpers => {
                self.outer(place, script, ctx)?;
                Ok(2)
            }
            End::Attempts => {
                let outer: Result<u64, Refused> = attempt!(-> Result<u64, Refused> {
                    self.value.put(place, 7);
                    let inner: Result<u64, Refused> = attempt!(-> Result<u64, Refused> {
                        self.work(place, &script.changes, false, ctx);
                        Err(Refused(place.0))
                    });
                    self.rows.at(place).insert(7, 7);
                    inner
                });
                Ok(outer?)
            }
            End::Panic => {
                let done: Result<(), Refused> = attempt!(-> Result<(), Refused> {
                    self.value.put(place, 8);
                    self.panics(place, script, ctx);
                    Ok(())
                });
                done?;
                Ok(3)
            }
        }
    }

    fn outer(&mut self, place: Place, script: &Script, ctx: &mut Ctx) -> Result<(), Refused> {
        self.value.put(place, 9);
        self.inner(place, script, ctx)?;
        Ok(())
    }

    fn inner(&mut self, place: Place, script: &Script, ctx: &mut Ctx) -> Result<(), Refused> {
        self.work(place, &script.changes, true, ctx);
        Err(Refused(place.0))
    }

    fn panics(&mut self, place: Place, script: &Script, ctx: &mut Ctx) {
        self.work(place, &script.changes, true, ctx);
        // without the panic hook, which would print it
        std::panic::resume_unwind(Box::new(SECRET.to_string()))
    }

    fn work(&mut self, place: Place, changes: &[Change], fails: bool, ctx: &mut Ctx) {
        for change in changes {
            match *change {
                Change::Put(value) => drop(self.value.put(place, value)),
                Change::Remove => drop(self.value.remove(&place)),
                Change::Update(by) => self.value.update(place, |value| *value += by),
                Change::Modify => drop(self.value.entry(place).and_modify(|value| *value *= 2)),
                Change::PutBeside(value) => drop(self.value.put(Place(place.0 ^ 1), value)),
                Change::PutVolatile(value) => drop(self.volatile.put(place, value)),
                Change::Insert(row, value) => drop(self.rows.at(place).insert(row, value)),
                Change::RemoveRow(row) => drop(self.rows.at(place).remove(&row)),
                Change::Retain(below) => self.rows.at(place).retain(|row, _| *row < below),
                Change::TakeRows(above) => drop(self.rows.at(place).take_if(|row, _| *row > above)),
                Change::Clear => self.rows.at(place).clear(),
                Change::InsertBounded(row) => drop(self.bounded.at(place).insert(row, row)),
                Change::Emit => ctx.emit(Said { place: place.0, later: false }),
                Change::After => ctx.after(Duration::from_millis(1), Later(place)),
                Change::Postpone if fails => ctx.postpone(Duration::from_millis(1)),
                Change::Postpone => {}
                Change::Undone => {
                    let undone: Result<(), Refused> = attempt!(-> Result<(), Refused> {
                        self.value.put(place, 1_000_000);
                        self.rows.at(place).insert(1_000_000, 1);
                        ctx.emit(Said { place: place.0, later: false });
                        ctx.after(Duration::from_millis(1), Later(place));
                        Err(Low)?;
                        Ok(())
                    });
                    assert_eq!(undone, Err(Refused(0)));
                }
            }
        }
    }
}

/// What a place holds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    value: Option<u64>,
    rows: BTreeMap<u64, u64>,
    bounded: BTreeMap<u64, u64>,
    volatile: Option<u64>,
    is_waiting: bool,
    is_planned: bool,
}

/// The state after the runs that ended well, and what they sent.
#[derive(Default)]
struct Model {
    places: BTreeMap<u64, Content>,
    /// The places of the messages that were emitted at once, and by timers.
    said: Vec<(u64, bool)>,
}

impl Model {
    fn at(&mut self, place: Place) -> &mut Content {
        self.places.entry(place.0).or_default()
    }

    fn run(&mut self, place: Place, changes: &[Change]) {
        for change in changes {
            let content = self.at(place);
            match *change {
                Change::Put(value) => content.value = Some(value),
                Change::Remove => content.value = None,
                Change::Update(by) => content.value = Some(content.value.unwrap_or_default() + by),
                Change::Modify => content.value = content.value.map(|value| value * 2),
                Change::PutBeside(value) => self.at(place.beside()).value = Some(value),
                Change::PutVolatile(value) => content.volatile = Some(value),
                Change::Insert(row, value) => drop(content.rows.insert(row, value)),
                Change::RemoveRow(row) => drop(content.rows.remove(&row)),
                Change::Retain(below) => content.rows.retain(|row, _| *row < below),
                Change::TakeRows(above) => content.rows.retain(|row, _| *row <= above),
                Change::Clear => content.rows.clear(),
                Change::InsertBounded(row) => drop(content.bounded.insert(row, row)),
                Change::Emit => self.said.push((place.0, false)),
                Change::After => self.said.push((place.0, true)),
                Change::Postpone | Change::Undone => {}
            }
        }

        // rows are evicted when the transaction commits
        let bounded = &mut self.at(place).bounded;
        while bounded.len() > 3 {
            bounded.pop_first();
        }
    }
}

struct Chance(u64);
impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }

    fn change(&mut self) -> Change {
        match self.below(16) {
            0 => Change::Put(self.below(100)),
            1 => Change::Remove,
            2 => Change::Update(self.below(100)),
            3 => Change::Modify,
            4 => Change::PutBeside(self.below(100)),
            5 => Change::PutVolatile(self.below(100)),
            6 | 7 => Change::Insert(self.below(12), self.below(100)),
            8 => Change::RemoveRow(self.below(12)),
            9 => Change::Retain(self.below(12)),
            10 => Change::TakeRows(self.below(12)),
            11 => Change::Clear,
            12 => Change::InsertBounded(self.below(12)),
            13 => [Change::Emit, Change::After][self.below(2) as usize],
            14 => Change::Postpone,
            _ => Change::Undone,
        }
    }

    fn script(&mut self, place: Place, may_postpone: bool) -> Script {
        // sometimes more changes than the undo log searches linearly
        let count = if self.below(6) == 0 { 30 } else { self.below(7) };
        let mut changes: Vec<Change> = (0..count).map(|_| self.change()).collect();
        changes.retain(|change| may_postpone || !matches!(change, Change::Postpone));
        let end = if self.below(3) == 0 { End::Well } else { BAD[self.below(BAD.len() as u64) as usize] };
        Script { place, changes, end }
    }
}

/// Checks the answer to a request that runs a script.
fn check<T>(got: &std::result::Result<T, RequestError<Refused>>, script: &Script) {
    let refused = match (got.as_ref().err(), script.end) {
        (None, End::Well) | (Some(RequestError::Panicked), End::Panic) => return,
        (Some(RequestError::Handler(Refused(number))), _) => *number,
        (other, end) => panic!("{end:?}: {other:?}"),
    };
    let wanted = if script.end == End::Question { 0 } else { script.place.0 };
    assert!(BAD[..4].contains(&script.end) && refused == wanted, "{:?}: {refused}", script.end);
}

/// Runs one script in the way with this number.
fn play(kit: &mut Kit, model: &mut Model, way: u64, chance: &mut Chance) -> Script {
    let place = if way == 6 { OF_THE_TICK } else { Place(chance.below(4)) };
    let script = chance.script(place, way < 4);
    let is_well = script.end == End::Well;
    match way {
        0 => check(&kit.request(Asked(script.clone())), &script),
        1 => {
            // in one batch, so that the run that failed has others after it in the same context
            let more: Vec<Script> = (0..chance.below(4)).map(|_| chance.script(place, true)).collect();
            let all = [&script].into_iter().chain(&more);
            kit.emit_all(all.cloned().map(Emitted));
            if is_well {
                model.run(place, &script.changes)
            }
            let well = more.iter().filter(|script| script.end == End::Well);
            well.for_each(|script| model.run(place, &script.changes));
            kit.advance(Duration::from_secs(2));
            return script;
        }
        2 => drop(kit.emit(Start(script.clone())).advance(Duration::from_secs(2))),
        3 => {
            check(&kit.request(Waits(script.clone())), &script);
            // the run that fails does not take the mark away that the first run has made
            model.at(place).is_waiting = !is_well;
        }
        _ => {
            let on = [Occasion::Visit, Occasion::TickOfEach, Occasion::Tick][way as usize - 4];
            kit.emit(Plan { script: script.clone(), on });
            match on {
                Occasion::Visit => check(&kit.request(Visit), &script),
                _ => drop(kit.advance(Duration::from_secs(25))),
            }
            let is_planned = kit.look::<Subject, _>(|app| app.plan.contains(&place));
            assert_eq!(is_planned, !is_well, "a plan is dropped by a run that ends well: {script:?}");
            kit.emit(Unplan(place));
        }
    }

    if is_well {
        model.run(place, &script.changes)
    }
    // the timers of the runs
    kit.advance(Duration::from_secs(2));
    script
}

const WAYS: u64 = 7;

#[test]
fn a_run_that_fails_leaves_nothing_whatever_made_it_run_and_however_it_fails() {
    for (seed, spread) in [(1, Spread::Apart), (2, Spread::Together), (3, Spread::Merging { seed: 3 })] {
        let mut kit = Kit::of::<Subject>().failures_allowed().start_spread(spread);
        let (mut model, mut chance) = (Model::default(), Chance(seed));
        let mut failed = BTreeMap::new();

        for _ in 0..700 {
            let way = chance.below(WAYS);
            let script = play(&mut kit, &mut model, way, &mut chance);
            *failed.entry((way, format!("{:?}", script.end))).or_insert(0) += 1;

            let places = [0, 1, 2, 3, OF_THE_TICK.0, OF_THE_TICK.beside().0];
            for place in places.map(Place) {
                let found = kit.look::<Subject, _>(|app| Content {
                    value: app.value.get(&place).copied(),
                    rows: app.rows.at(place).iter().map(|(row, value)| (*row, *value)).collect(),
                    bounded: app.bounded.at(place).iter().map(|(row, value)| (*row, *value)).collect(),
                    volatile: app.volatile.get(&place).copied(),
                    is_waiting: app.waiting.contains(&place),
                    is_planned: app.plan.contains(&place),
                });
                assert_eq!(found, *model.at(place), "{place:?}, way {way}: {script:?}");
            }

            let mut said: Vec<_> = kit.sent::<Said>().iter().map(|said| (said.place, said.later)).collect();
            said.sort();
            model.said.sort();
            assert_eq!(said, std::mem::take(&mut model.said), "way {way}: {script:?}");
        }

        // each form of failure has been met in each way to run
        assert_eq!(failed.len(), (WAYS * 6) as usize, "{failed:?}");
        let letters = kit.dead_letters();
        assert!(!letters.is_empty() && letters.iter().all(|letter| letter.error.text() == SECRET));
    }
}
