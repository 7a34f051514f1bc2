//! Writes test modules for `beehive-core/tests/maps`: random handlers that the analysis accepts, and maps
//! that a faulty analysis derives.
//!
//! Usage: `random_handlers SEED COUNT > generated.rs`, or `random_handlers faults > seeded.rs`.

mod faults;
mod writer;

use beehive_analysis::derivation;
use std::fmt::Write;
use std::process::ExitCode;

/// Number of handlers in one app.
const HANDLERS_PER_APP: usize = 40;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let text = match arguments[..] {
        ["faults"] => faults::module(),
        [seed, count] => match (seed.parse(), count.parse()) {
            (Ok(seed), Ok(count)) => Ok(random(seed, count)),
            _ => Err("SEED and COUNT are numbers".into()),
        },
        _ => Err("usage: random_handlers SEED COUNT | random_handlers faults".into()),
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

/// Checks that the analysis accepts a handler and finds cells; the error is the reason why not.
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

    let mut refused = std::collections::BTreeMap::<&str, usize>::new();
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
