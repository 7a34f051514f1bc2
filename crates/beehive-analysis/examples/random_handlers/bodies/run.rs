//! Compiles and runs bodies and their maps on the stand-in runtime, with `rustc` alone.

use super::Body;
use super::classes::Class;
use super::report::Report;
use beehive_analysis::{Faults, derivation, faulty_derivation};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

const RUNTIME: &str = concat!(include_str!("stand_in.rs"), include_str!("surroundings.rs"));

/// Number of random messages for each handler.
const RUNS: u32 = 100;

/// The error for a macro that rebinds a name on which a map depends: only the compiler can find it.
const REFUSED_BY_THE_COMPILER: &str = "this macro rebinds a name";

/// A body that the analysis accepted.
pub(crate) struct Accepted {
    pub(crate) number: usize,
    pub(crate) class: Class,
    pub(crate) text: String,
    /// The handler and its helpers as they are passed to the compiler.
    block: String,
    map: String,
    helpers: String,
    /// Whether a person could write its map.
    pub(crate) derivable: bool,
}

/// The results of the analysis for some bodies.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) accepted: Vec<Accepted>,
    /// The bodies that should not have been refused, with the error.
    pub(crate) refused: Vec<(Class, String, String)>,
}

/// Keeps the bodies that compile unchanged, without a map.
pub(crate) fn that_compile(bodies: Vec<(usize, Body)>) -> Result<Vec<(usize, Body)>, String> {
    let mut program = RUNTIME.to_string();
    let mut line = program.lines().count();
    let mut lines = BTreeMap::new();
    for (number, body) in &bodies {
        let _ = write!(program, "impl A {{\n{}}}\n", plain(&body.text));
        let next = program.lines().count();
        lines.extend((line + 1..=next).map(|l| (l, *number)));
        line = next;
    }

    program += "fn main() {}\n";
    let (errors, _) = compile("plain", &program, &["--emit=metadata"])?;
    let wrong: BTreeSet<usize> = errors.iter().filter_map(|(l, _)| lines.get(l).copied()).collect();
    Ok(bodies.into_iter().filter(|(number, _)| !wrong.contains(number)).collect())
}

/// Derives the maps of bodies, by an analysis with these faults.
pub(crate) fn judge(
    bodies: Vec<(usize, Body)>,
    faults: Faults,
    report: &mut Report,
) -> Result<Judged, String> {
    let mut judged = Judged::default();
    for (number, body) in bodies {
        let source =
            format!("impl A {{ {} }}", body.text).parse().map_err(|e| format!("{e}: {}", body.text))?;
        let derived = faulty_derivation(Default::default(), source, faults)
            .map_err(|e| format!("{e}: {}", body.text))?;
        let refused = derived.errors.first().map(ToString::to_string);
        let counts = report.classes.entry(body.class).or_default();
        counts.bodies += 1;
        counts.derivable += usize::from(body.derivable);
        counts.refused += usize::from(refused.is_some());
        if refused.is_some() && !body.derivable {
            continue;
        }
        counts.wrongly_refused += usize::from(refused.is_some());
        for form in body.forms.iter().collect::<BTreeSet<_>>() {
            let of_form = report.forms.entry(form).or_default();
            of_form.0 += 1;
            of_form.1 += usize::from(refused.is_some());
        }

        if let Some(text) = body.mistaken.filter(|_| refused.is_none()) {
            counts.mistaken += 1;
            if let Some(wrong) = miscounted(&text)? {
                counts.miscounted += 1;
                report.wrong.push(wrong)
            }
        }

        match refused {
            Some(error) => judged.refused.push((body.class, error, body.text)),
            None => {
                let map = derived.handlers.first().map(|h| h.map.to_string()).unwrap_or_default();
                let helpers = derived.helpers.to_string();
                let (class, text, block) = (body.class, body.text, derived.block.to_string());
                let derivable = body.derivable;
                judged.accepted.push(Accepted { number, class, text, block, derivable, map, helpers })
            }
        }
    }
    Ok(judged)
}

/// Returns a body with one mistake, and its errors, unless there is exactly one error.
pub(crate) fn miscounted(text: &str) -> Result<Option<String>, String> {
    let source = format!("impl A {{ {text} }}").parse().map_err(|e| format!("{e}: {text}"))?;
    let derived = derivation(Default::default(), source).map_err(|e| format!("{e}: {text}"))?;
    let errors: Vec<String> = derived.errors.iter().map(|e| e.to_string()).collect();
    Ok((errors.len() != 1)
        .then(|| format!("{} errors for one mistake: {text}{}", errors.len(), errors.join("\n"))))
}

/// Runs handlers and their maps side by side. Handlers whose maps do not compile are reported and left out.
pub(crate) fn run(mut accepted: Vec<Accepted>, report: &mut Report) -> Result<(), String> {
    loop {
        let (program, lines) = with_maps(&accepted);
        let (errors, binary) = compile("maps", &program, &["-Copt-level=0", "-Cdebuginfo=0"])?;
        if errors.is_empty() {
            return report.ran(&output(binary)?, &accepted);
        }

        let mut broken = BTreeSet::new();
        for (line, error) in errors {
            let number = lines.get(&line).copied();
            let body = accepted.iter().find(|a| Some(a.number) == number).ok_or(error.as_str())?;
            if error.contains(REFUSED_BY_THE_COMPILER) {
                if broken.insert(body.number) {
                    report.refused_by_the_compiler(body)
                }
                continue;
            }
            report.wrong.push(format!("{error}\n{}", body.text));
            if broken.insert(body.number) {
                let code = error.split(['[', ']']).nth(1).unwrap_or("?").to_string();
                *report.of(body).rustc.entry(code).or_default() += 1;
            }
        }
        accepted.retain(|a| !broken.contains(&a.number));
    }
}

fn with_maps(accepted: &[Accepted]) -> (String, BTreeMap<usize, usize>) {
    let mut program = RUNTIME.to_string();
    let mut line = program.lines().count();
    let mut lines = BTreeMap::new();
    let mut checks = String::new();
    for Accepted { number, block, map, helpers, .. } in accepted {
        let here = |text: &str| text.replace(":: beehive :: __private ::", "crate ::");
        let (block, map, helpers) = (here(block), here(map), here(helpers));
        let _ = write!(
            program,
            "{block}\nimpl A {{\nfn map{number}(m: &M<{number}>, __m: &mut Mapper) {{ {map} }}\n{helpers}\n}}\n"
        );
        let next = program.lines().count();
        lines.extend((line + 1..=next).map(|l| (l, *number)));
        line = next;
        let _ = writeln!(checks, "check::<{number}>(A::g{number}, A::map{number}, {RUNS}, &mut tally);");
    }

    let _ = write!(
        program,
        "fn main() {{ std::panic::set_hook(Box::new(|_| {{}})); let mut tally = [0; 4];\n{checks}\
         println!(\"runs {{}}, exact {{}}, handler panicked {{}}, unsound {{}}\", tally[0], tally[1], tally[2], tally[3]); }}\n"
    );
    (program, lines)
}

fn output(binary: PathBuf) -> Result<String, String> {
    let output = Command::new(binary).output().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a body without the attributes that only a macro understands.
fn plain(text: &str) -> String {
    text.replace("#[rcv] ", "")
}

/// Compiles a program. Returns the lines with errors, and the path of the result.
fn compile(name: &str, program: &str, options: &[&str]) -> Result<(Vec<(usize, String)>, PathBuf), String> {
    let folder = std::env::temp_dir().join(format!("random_handlers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (source, binary) = (folder.join(format!("{name}.rs")), folder.join(name));
    std::fs::write(&source, program).map_err(|e| format!("{}: {e}", source.display()))?;

    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--error-format=short", "--cap-lints=allow", "-o"])
        .arg(&binary)
        .args(options)
        .arg(&source)
        .output()
        .map_err(|e| format!("rustc: {e}"))?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<_> = printed
        .lines()
        .filter(|l| l.contains(": error"))
        .filter_map(|l| Some((l.split(':').nth(1)?.parse().ok()?, l.to_string())))
        .collect();
    match errors.is_empty() && !output.status.success() {
        true => Err(printed.into_owned()),
        false => Ok((errors, binary)),
    }
}
