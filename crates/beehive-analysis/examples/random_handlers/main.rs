//! Writes test modules for `beehive-core/tests/maps`: random handlers that the analysis accepts, and maps
//! that a faulty analysis derives.
//!
//! Usage: `random_handlers SEED COUNT > generated.rs`, `random_handlers bodies SEED COUNT > bodies.rs`, or
//! `random_handlers faults > seeded.rs`. `random_handlers check SEED COUNT` runs COUNT bodies on a stand-in for the
//! runtime, about 1 000 per minute, in equal shares of ten classes, and prints its findings for each class. It fails if
//! a map is wrong or does not compile, or if the analysis does not report exactly one error for a body with one
//! mistake. With the name of a fault, which is then seeded into the analysis, it shows that the bodies detect the
//! fault.

mod bodies;
mod faults;
mod mistakes;
mod writer;

use beehive_analysis::{Fault, Faults, derivation};
use bodies::classes::Class;
use bodies::report::Report;
use bodies::run::{judge, miscounted, run, that_compile};
use bodies::{Bodies, Body};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

/// Number of bodies that are compiled at a time.
const BODIES_PER_PROGRAM: usize = 500;

/// Number of handlers in one app.
const HANDLERS_PER_APP: usize = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = match arguments[..] {
        ["faults"] => faults::module(),
        ["try", path] => tried(path),
        [seed, count] => numbers(seed, count).map(|(seed, count)| random(seed, count)),
        ["bodies", seed, count] => numbers(seed, count).and_then(|(seed, count)| bodies(seed, count)),
        ["check", seed, count] => {
            numbers(seed, count).and_then(|(seed, count)| check(seed, count, Faults::default()))
        }
        ["check", seed, count, fault] => numbers(seed, count).and_then(|(seed, count)| {
            let fault =
                Fault::named(fault).ok_or(format!("`{fault}` is no fault of beehive_analysis::Fault"))?;
            check(seed, count, Faults::only(fault))
        }),
        _ => Err("usage: random_handlers SEED COUNT | bodies SEED COUNT | check SEED COUNT [FAULT] | try FILE | faults"
            .into()),
    };

    match text {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn numbers(seed: &str, count: &str) -> Result<(u64, usize), String> {
    match (seed.parse(), count.parse()) {
        (Ok(seed), Ok(count)) => Ok((seed, count)),
        _ => Err(format!("SEED and COUNT are numbers, not `{seed}` and `{count}`")),
    }
}

/// Returns bodies of all classes in turn that compile, numbered from `first`.
fn written(writer: &mut Bodies, first: usize, count: usize) -> Result<Vec<(usize, Body)>, String> {
    that_compile((first..first + count).map(|n| (n, writer.of_class(Class::of_number(n), n))).collect())
}

/// Checks bodies on the stand-in for the runtime.
fn check(seed: u64, count: usize, faults: Faults) -> Result<String, String> {
    let mut writer = Bodies::new(seed);
    let mut report = Report::default();
    let (mut done, mut refused) = (0, vec![]);
    let mut each = Some(writer.of_each_form());
    for text in mistakes::handlers() {
        report.wrong.extend(miscounted(&text)?);
    }
    while done < count {
        let bodies = match each.take() {
            Some(each) => that_compile((1..).zip(each).collect())?,
            None => written(&mut writer, 1, BODIES_PER_PROGRAM)?,
        };
        done += bodies.len();
        let judged = judge(bodies, faults, &mut report)?;
        refused.extend(judged.refused);
        run(judged.accepted, &mut report)?;
        eprintln!(
            "{done} bodies, {} wrongly refused, {} wrong\n{report}\n",
            refused.len(),
            report.wrong.len()
        );
    }

    let mut out = String::new();
    for (class, error, text) in &refused {
        let _ = writeln!(out, "REFUSED {class:?}: {error}\n{text}");
    }
    let mut forms: Vec<_> = report.forms.iter().collect();
    forms.sort_by_key(|(_, (all, refused))| refused * 1_000 / all.max(&1));
    for (form, (all, refused)) in forms.iter().filter(|f| f.1.1 > 0) {
        let _ = writeln!(out, "FORM {refused} of {all} refused: {form}");
    }
    let _ = writeln!(out, "{report}");
    match report.wrong.is_empty() {
        true => Ok(out),
        false => Err(format!("{out}{}", report.wrong.join("\n"))),
    }
}

/// Analyzes the bodies in a file, one per line, and runs those that the analysis accepts.
fn tried(path: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with("//"));
    let bodies: Vec<(usize, Body)> = (1..).zip(lines).map(|(n, line)| (n, Body::of(n, line))).collect();
    let numbers: Vec<usize> = bodies.iter().map(|b| b.0).collect();
    let compiled = that_compile(bodies)?;
    let mut out = String::new();
    for n in numbers.iter().filter(|n| compiled.iter().all(|b| b.0 != **n)) {
        let _ = writeln!(out, "{n} does not compile without a map");
    }

    let mut report = Report::default();
    let judged = judge(compiled, Faults::default(), &mut report)?;
    for (_, error, text) in &judged.refused {
        let _ = writeln!(out, "REFUSED {error}\n{text}");
    }
    run(judged.accepted, &mut report)?;
    let _ = writeln!(out, "{}\n{report}", report.wrong.join("\n"));
    Ok(out)
}

/// Writes a test module of bodies that the analysis accepts and that do not panic.
fn bodies(seed: u64, count: usize) -> Result<String, String> {
    let mut writer = Bodies::new(seed);
    let mut accepted = vec![];
    while accepted.len() < count {
        let bodies = written(&mut writer, accepted.len() + 1, count - accepted.len())?;
        let mut report = Report::default();
        let judged = judge(bodies, Faults::default(), &mut report)?;
        let texts: Vec<(usize, String)> =
            judged.accepted.iter().map(|a| (a.number, a.text.clone())).collect();
        run(judged.accepted, &mut report)?;
        for (number, text) in texts.into_iter().filter(|(n, _)| !report.panicked.contains(n)) {
            // the writer also numbers the bodies that do not compile
            let next = accepted.len() + 1;
            accepted.push(renumbered(&text, number, next));
        }
    }

    let mut out = format!(
        "//! Written by `cargo run -p beehive-analysis --example random_handlers -- bodies {seed} {count}`: bodies of ordinary Rust.\n\n\
         #![allow(warnings, unused_must_use, clippy::all)]\n\
         use crate::check_handlers;\nuse crate::message::{{Kind, Load, M, Note}};\n\
         use beehive::{{App, Ctx, Dict, Result, handlers, pure}};\nuse std::cell::Cell;\nuse std::collections::BTreeSet;\n\
         use std::fmt::Write;\nuse std::sync::Mutex;\nuse std::sync::atomic::{{AtomicU64, Ordering}};\n\n{}",
        include_str!("bodies/surroundings.rs"),
    );
    let mut tests = String::new();
    for (app, bodies) in accepted.chunks(HANDLERS_PER_APP).enumerate() {
        let first = app * HANDLERS_PER_APP + 1;
        let numbers: Vec<String> = (first..first + bodies.len()).map(|n| n.to_string()).collect();
        let _ = write!(
            out,
            "\n#[derive(App)]\npub(crate) struct B{app} {{ d: Dict<u64, u64>, e: Dict<u64, u64> }}\n#[handlers]\nimpl B{app} {{\n\
             #[rcv] fn load(&mut self, m: &Load) {{ for (k, v) in &m.d {{ self.d.put(*k, *v); }} for (k, v) in &m.e {{ self.e.put(*k, *v); }} }}\n{}}}\n",
            bodies.concat(),
        );
        let _ = write!(
            tests,
            "\n#[test]\nfn maps_of_b{app}_cover_what_is_touched() {{\n    check_handlers!(B{app}, 200, exact in 1 of 4, [{}]);\n}}\n",
            numbers.join(" "),
        );
    }
    Ok(out + &tests)
}

/// Returns a body with a different number.
fn renumbered(text: &str, old: usize, new: usize) -> String {
    let mut text = text.replace(&format!("M<{old}>"), &format!("M<{new}>"));
    for name in [
        "g", "mix", "bump", "grow", "pick", "same", "view", "twice", "touch", "raise", "either", "which",
        "fill", "first",
    ] {
        for end in ["(", "<", "::"] {
            text = text.replace(&format!("{name}{old}{end}"), &format!("{name}{new}{end}"));
        }
    }
    text
}

/// Checks that the analysis accepts a handler and finds cells. Returns the reason as an error if it does not.
fn judged(handler: &str) -> Result<(), &'static str> {
    let source = format!("impl A {{ {handler} }}").parse().map_err(|_| "does not parse")?;
    let derived = derivation(Default::default(), source).map_err(|_| "does not parse")?;
    match derived.errors.first().map(ToString::to_string) {
        Some(e) if e.contains("not a function of the message") => Err("key of state"),
        Some(e) => {
            eprintln!("refused for another reason: {e}\n{handler}");
            Err("other")
        }
        None if derived.handlers.iter().all(|h| h.cells == "-") => Err("no cells"),
        None => Ok(()),
    }
}

fn random(seed: u64, count: usize) -> String {
    let mut writer = writer::Writer::new(seed);
    let mut out = format!(
        "//! Written by `cargo run -p beehive-analysis --example random_handlers -- {seed} {count}`: random handlers.\n\n\
         #![allow(warnings, clippy::all)]\n\
         use crate::check_handlers;\nuse crate::message::{{Kind, Load, M, Note}};\n\
         use beehive::{{App, Ctx, Dict, Result, handlers}};\n\nfn note(_: u64) {{}}\n",
    );

    let mut refused = BTreeMap::<&str, usize>::new();
    let (mut done, mut tests) = (0, String::new());
    while done < count {
        let app = done / HANDLERS_PER_APP;
        let _ = write!(
            out,
            "\n#[derive(App)]\npub(crate) struct A{app} {{ d: Dict<u64, u64>, e: Dict<u64, u64> }}\n#[handlers]\nimpl A{app} {{\n\
             #[rcv] fn load(&mut self, m: &Load) {{ for (k, v) in &m.d {{ self.d.put(*k, *v); }} for (k, v) in &m.e {{ self.e.put(*k, *v); }} }}\n",
        );

        let mut numbers = vec![];
        while done < count && numbers.len() < HANDLERS_PER_APP {
            let number = done + 1;
            let handler = writer.handler(number);
            if let Err(why) = judged(&handler) {
                *refused.entry(why).or_default() += 1;
                continue;
            }
            out += &handler;
            numbers.push(number.to_string());
            done = number;
        }

        out += "}\n";
        let _ = write!(
            tests,
            "\n#[test]\nfn maps_of_a{app}_cover_what_is_touched() {{\n    check_handlers!(A{app}, 200, exact in 1 of 4, [{}]);\n}}\n",
            numbers.join(" "),
        );
    }

    eprintln!("{done} handlers, refused {refused:?}");
    out + &tests
}
