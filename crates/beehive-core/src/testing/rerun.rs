//! Runs a scenario with several distributions of cells over bees. All observable results must be the same.

use crate::testing::hooks::inspect::CellWords;
use crate::testing::kit::{Kit, Step};
use crate::testing::setup::Setup;
use crate::testing::spread::Spread;

/// Maximum number of lines that a [`Difference`] shows for each side.
const SHOWN: usize = 8;

/// A proof that the outcome of a scenario depends on how cells are distributed over bees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The distribution in the run that differs from the run with one bee for all cells.
    pub spread: Spread,
    /// Position of the first difference: the step of the scenario, or the app whose final state differs.
    pub at: String,
    /// Lines that occur only in the run with one bee for all cells.
    pub together: Vec<String>,
    /// Lines that occur only in the other run.
    pub spread_out: Vec<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference { spread, at, together, spread_out } = self;
        writeln!(f, "the outcome depends on how cells are distributed over bees\n  {at}")?;
        for (how, lines) in [(Spread::Together, together), (*spread, spread_out)] {
            writeln!(f, "  only {how}:")?;
            if lines.is_empty() {
                writeln!(f, "    nothing")?
            }

            for line in lines.iter().take(SHOWN) {
                writeln!(f, "    {line}")?
            }

            if lines.len() > SHOWN {
                writeln!(f, "    and {} more", lines.len() - SHOWN)?
            }
        }

        write!(
            f,
            "help: messages from different senders to one cell arrive in any order; give the message a field that decides the \
             order (a time or a number), or let one cell decide it"
        )
    }
}
impl std::error::Error for Difference {}

type State = Vec<(&'static str, Vec<CellWords>)>;

/// A guard that prints which run failed if the scenario panics.
struct InRun(Spread);

impl Drop for InRun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the scenario failed in the run {}", self.0)
        }
    }
}

fn run(setup: &Setup, scenario: &impl Fn(&mut Kit), spread: Spread) -> (Vec<Step>, State) {
    let in_run = InRun(spread);
    let mut kit = setup.kit(spread, true);
    scenario(&mut kit);
    let account = kit.into_account();
    drop(in_run);
    account
}

pub(crate) fn compare(setup: &Setup, scenario: impl Fn(&mut Kit)) -> Result<(), Difference> {
    let (steps, state) = run(setup, &scenario, Spread::Together);
    let merging = (1..=setup.merging_runs).map(|seed| Spread::Merging { seed });
    for spread in std::iter::once(Spread::Apart).chain(merging) {
        let (other_steps, other_state) = run(setup, &scenario, spread);
        let found = of_steps(&steps, &other_steps).or_else(|| of_state(&state, &other_state));
        if let Some((at, together, spread_out)) = found {
            return Err(Difference { spread, at, together, spread_out });
        }
    }

    Ok(())
}

type Found = (String, Vec<String>, Vec<String>);

fn of_steps(one: &[Step], other: &[Step]) -> Option<Found> {
    for (at, (a, b)) in one.iter().zip(other).enumerate() {
        let step = || format!("step {} ({})", at + 1, a.what);
        if a.what != b.what {
            let why = "the scenario itself took other steps";
            return Some((format!("{}: {why}", step()), vec![a.what.clone()], vec![b.what.clone()]));
        }

        if a.answers != b.answers {
            let (x, y) = apart(&a.answers, &b.answers);
            return Some((format!("{}: the answers differ", step()), x, y));
        }

        let same = a.sent.iter().map(|s| (s.0, &s.1)).eq(b.sent.iter().map(|s| (s.0, &s.1)));
        if !same {
            let in_words = |step: &Step| step.sent.iter().map(|s| s.2.clone()).collect::<Vec<_>>();
            let (x, y) = apart(&in_words(a), &in_words(b));
            return Some((format!("{}: the messages sent by the apps differ", step()), x, y));
        }
    }

    if one.len() != other.len() {
        let rest = |steps: &[Step], from: usize| steps.iter().skip(from).map(|s| s.what.clone()).collect();
        let why = "the scenario itself took other steps".to_string();
        return Some((why, rest(one, other.len()), rest(other, one.len())));
    }

    None
}

fn of_state(one: &State, other: &State) -> Option<Found> {
    one.iter().zip(other).find(|(a, b)| a != b).map(|((app, a), (_, b))| {
        let in_words =
            |cells: &[CellWords]| cells.iter().map(|(c, v)| format!("{c} = {v}")).collect::<Vec<_>>();
        let (x, y) = apart(&in_words(a), &in_words(b));
        (format!("the final cells of `{app}` differ"), x, y)
    })
}

/// Returns the lines found only in `one` and those found only in `other`. The lists are multisets.
fn apart(one: &[String], other: &[String]) -> (Vec<String>, Vec<String>) {
    let without = |from: &[String], what: &[String]| {
        let mut left = what.to_vec();
        from.iter()
            .filter(|line| match left.iter().position(|l| l == *line) {
                Some(at) => {
                    left.swap_remove(at);
                    false
                }
                None => true,
            })
            .cloned()
            .collect::<Vec<_>>()
    };

    (without(one, other), without(other, one))
}
