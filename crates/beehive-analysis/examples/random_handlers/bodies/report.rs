//! The findings of a check of many bodies, counted by class.

use super::classes::Class;
use super::run::Accepted;
use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// The numbers of bodies of one class.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) bodies: usize,
    /// Number of bodies whose map a person could write.
    pub(crate) derivable: usize,
    pub(crate) refused: usize,
    /// Number of bodies that are refused although a person could write the map.
    pub(crate) wrongly_refused: usize,
    /// Number of bodies that the compiler refuses with their map, by the code of the error.
    pub(crate) rustc: BTreeMap<String, usize>,
    pub(crate) unsound: usize,
    /// Number of bodies that were also tried with one mistake in them.
    pub(crate) mistaken: usize,
    /// Number of bodies whose mistake does not cause exactly one error.
    pub(crate) miscounted: usize,
}

/// The findings of a check.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) classes: BTreeMap<Class, Counts>,
    /// For each form, the number of bodies that contain it, and the number of those that were wrongly refused.
    pub(crate) forms: BTreeMap<&'static str, (usize, usize)>,
    /// Descriptions of the findings that fail the check.
    pub(crate) wrong: Vec<String>,
    /// Numbers of handlers that ran, of those with exact maps, of those that panicked, and of unsound maps.
    runs: [usize; 4],
    /// The numbers of the handlers in the last program that panicked for some message.
    pub(crate) panicked: Vec<usize>,
}

impl Report {
    pub(crate) fn of(&mut self, body: &Accepted) -> &mut Counts {
        self.classes.entry(body.class).or_default()
    }

    /// Counts a body that the analysis accepted under a condition that does not hold according to the compiler.
    pub(crate) fn refused_by_the_compiler(&mut self, body: &Accepted) {
        let counts = self.of(body);
        counts.refused += 1;
        counts.wrongly_refused += usize::from(body.derivable);
    }

    /// Adds the output of a program that ran these bodies and their maps.
    pub(crate) fn ran(&mut self, printed: &str, accepted: &[Accepted]) -> Result<(), String> {
        let mut complete = false;
        self.panicked.clear();
        for line in printed.lines() {
            if let Some(numbers) = line.strip_prefix("runs ") {
                let digits = |part: &str| part.chars().filter(char::is_ascii_digit).collect::<String>();
                let numbers = numbers.split(',').filter_map(|part| digits(part).parse::<usize>().ok());
                self.runs.iter_mut().zip(numbers).for_each(|(all, new)| *all += new);
                complete = true;
                continue;
            }

            if let Some(number) = line.strip_prefix("PANICKED g") {
                self.panicked.extend(number.parse::<usize>());
                continue;
            }

            let number = line.strip_prefix("UNSOUND g").and_then(|rest| rest.split(' ').next());
            let body = accepted.iter().find(|a| number == Some(a.number.to_string().as_str()));
            self.wrong.push(format!("{line}\n{}", body.map_or("", |b| b.text.as_str())));
            if let Some(body) = body {
                self.of(body).unsound += 1;
            }
        }
        if complete { Ok(()) } else { Err("the program with the maps did not end".into()) }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:14} {:>6} {:>8} {:>7} {:>9} {:>15} {:>5} {:>7} {:>16}",
            "class",
            "bodies",
            "accepted",
            "refused",
            "derivable",
            "wrongly refused",
            "rustc",
            "unsound",
            "not one error of"
        )?;
        for (class, c) in &self.classes {
            let share = c.wrongly_refused as f64 * 100.0 / c.derivable.max(1) as f64;
            let rustc: usize = c.rustc.values().sum();
            writeln!(
                f,
                "{:14} {:>6} {:>8} {:>7} {:>9} {:>8} {share:>5.2}% {rustc:>5} {:>7} {:>8} {:>7} {}",
                format!("{class:?}"),
                c.bodies,
                c.bodies - c.refused,
                c.refused,
                c.derivable,
                c.wrongly_refused,
                c.unsound,
                c.miscounted,
                c.mistaken,
                c.rustc.iter().map(|(code, n)| format!("{code}: {n}")).collect::<Vec<_>>().join(", ")
            )?;
        }
        let [runs, exact, panicked, unsound] = self.runs;
        write!(f, "runs {runs}, exact {exact}, handler panicked {panicked}, unsound maps {unsound}")
    }
}
