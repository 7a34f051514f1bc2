//! Bounds the running time of the analysis: ordinary handlers must not slow down a build noticeably, and no
//! body may take very long.

use beehive_analysis::derivation;
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum cost of the analysis of ordinary handlers, as a multiple of the cost of parsing them, which a
/// compiler has to do in any case. The absolute time depends on the machine. On the machine on which this bound
/// was set, it is about 2 ms for each handler in a debug build, in which by default neither the analysis nor
/// syn is optimized.
const ORDINARY_MAX: f64 = 5.5;

/// The same for random handlers, which have far more branches and loops: about 8 ms for each.
const RANDOM_MAX: f64 = 6.3;

/// Limit for any body of the size of a source file.
const PATHOLOGICAL_MAX: Duration = Duration::from_secs(5);

/// Returns the processor time that this thread has used, which does not depend on the load of the machine.
pub(crate) fn spent() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The cost of a block, in processor time.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// The cost of parsing it.
    parsing: Duration,
    /// The cost of parsing it and deriving its maps.
    derivation: Duration,
}

/// Returns the shortest times of five runs, in which both are measured side by side.
fn costs(block: &str) -> Cost {
    let tokens: proc_macro2::TokenStream = block.parse().expect("tokens");
    let timed = |run: &dyn Fn()| {
        let began = spent();
        run();
        spent() - began
    };

    let parse = || drop(syn::parse2::<syn::ItemImpl>(tokens.clone()).expect("parses"));
    let derive = || drop(derivation(Default::default(), tokens.clone()).expect("parses"));
    let runs: Vec<_> = (0..5).map(|_| (timed(&parse), timed(&derive))).collect();
    Cost {
        parsing: runs.iter().map(|r| r.0).min().unwrap_or_default(),
        derivation: runs.iter().map(|r| r.1).min().unwrap_or_default(),
    }
}

/// Returns the shortest time of five runs.
fn cost(block: &str) -> Duration {
    costs(block).derivation
}

/// Counts the functions in the `#[handlers]` blocks of a file of the repository, and measures the costs of all
/// of them.
fn cost_of_file(file: &Path) -> (u32, Cost) {
    let source = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let parsed = syn::parse_file(&source).expect("Rust");
    let (mut functions, mut all) = (0, Cost::default());

    for item in parsed.items {
        let syn::Item::Impl(mut block) = item else { continue };
        if block.attrs.iter().any(|a| a.path().is_ident("handlers")) {
            block.attrs.clear();
            functions += block.items.len() as u32;
            let cost = costs(&quote::quote!(#block).to_string());
            all.parsing += cost.parsing;
            all.derivation += cost.derivation;
        }
    }

    (functions, all)
}

/// Returns the cost of deriving the handlers of `files`, as a multiple of the cost of parsing them.
fn factor(name: &str, files: impl IntoIterator<Item = PathBuf>, functions_min: u32) -> f64 {
    let (mut functions, mut all) = (0, Cost::default());
    for file in files {
        let (more, cost) = cost_of_file(&file);
        functions += more;
        all.parsing += cost.parsing;
        all.derivation += cost.derivation;
    }

    assert!(functions >= functions_min, "{name}: {functions} functions");
    let factor = all.derivation.as_secs_f64() / all.parsing.as_secs_f64();
    let each = all.derivation / functions;
    println!(
        "{name}: {each:?} for each of {functions} functions, {factor:.2} times as long as to parse them"
    );
    factor
}

/// The handlers of the controller and of the examples.
#[test]
fn ordinary_handlers_are_cheap() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["crates/beehive-nom/src/apps", "examples"].iter().flat_map(|folder| {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.extension().is_some_and(|e| e == "rs"))
    });
    let factor = factor("ordinary handlers", files, 20);
    assert!(factor <= ORDINARY_MAX, "{factor}");
}

/// The checked-in random handlers, most of which are far more complex than hand-written ones.
#[test]
fn random_handlers_are_not_dear() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../beehive-core/tests/maps/generated.rs");
    let factor = factor("random handlers", [file], 100);
    assert!(factor <= RANDOM_MAX, "{factor}");
}

/// Checks that a handler with ten times as many copies of `body` takes at most about a hundred times as long:
/// the cost may grow with the square of the size.
fn grows_like_a_square(name: &str, body: impl Fn(usize) -> String) {
    let block = |n: usize| {
        format!(
            "impl T {{ #[rcv] fn h(&mut self, m: &M, ctx: &mut Ctx) -> Result {{ {} Ok(()) }} }}",
            body(n)
        )
    };

    let (small, large) = (cost(&block(20)), cost(&block(200)));
    println!("{name}: {small:?}, ten times as long {large:?}");
    assert!(large <= PATHOLOGICAL_MAX, "{name}: {large:?}");

    // below a millisecond the measurements are mostly noise
    let allowed = small.max(Duration::from_millis(1)) * 250;
    assert!(large <= allowed, "{name}: {small:?} grows to {large:?}");
}

#[test]
fn long_bodies_are_bounded() {
    grows_like_a_square("accesses", |n| (0..n).map(|i| format!("self.d.put(m.a + {i}, 1);")).collect());
    grows_like_a_square("branches on state", |n| {
        (0..n).map(|i| format!("if self.d.contains(&m.a) {{ self.e.put(m.b + {i}, 1); }}")).collect()
    });
    grows_like_a_square("locals", |n| {
        let chain: String = (1..n).map(|i| format!("let x{i} = x{} + m.b;", i - 1)).collect();
        format!("let x0 = m.a; {chain} self.d.put(x{}, 1);", n - 1)
    });

    grows_like_a_square("arms", |n| {
        let arms: String = (0..n).map(|i| format!("{i} => {{ self.d.put(m.b + {i}, 1); }}")).collect();
        format!("match m.a {{ {arms} _ => {{}} }}")
    });
    grows_like_a_square("early returns", |n| {
        (0..n)
            .map(|i| format!("if self.d.contains(&m.a) {{ return Ok(()); }} self.e.put(m.b + {i}, 1);"))
            .collect()
    });

    grows_like_a_square("loops that feed one another", |n| {
        let vectors: String = (0..n).map(|i| format!("let mut v{i} = vec![m.a];")).collect();
        let loops: String = (1..n).map(|i| format!("for x in &v{} {{ v{i}.push(*x); }}", i - 1)).collect();
        format!("{vectors} {loops} for k in &v{} {{ self.d.get(k); }}", n - 1)
    });

    grows_like_a_square("facts learned one a round", |n| {
        let declared: String = (0..n).map(|i| format!("let mut x{i} = m.a;")).collect();
        let moved: String = (1..n).map(|i| format!("x{} = x{i};", i - 1)).collect();
        let last = n - 1;
        format!(
            "{declared} for y in &m.items {{ {moved} if self.d.contains(y) {{ x{last} = m.b; }} }} self.e.put(m.a, x0);"
        )
    });
}

#[test]
fn deep_bodies_are_bounded() {
    for (name, open, close) in [
        ("conditions on state", "if self.d.contains(&m.a) {", "}"),
        ("conditions on the message", "if m.a > 1 {", "}"),
        ("loops", "for x in &m.items {", "}"),
        ("blocks", "{", "}"),
        ("loops left early", "for x in &m.items { if self.d.contains(x) { break; }", "}"),
    ] {
        let block = |n: usize| {
            let (open, close) = (open.repeat(n), close.repeat(n));
            format!("impl T {{ #[rcv] fn h(&mut self, m: &M) {{ {open} self.e.put(m.b, 1); {close} }} }}")
        };

        let (small, large) = (cost(&block(6)), cost(&block(24)));
        println!("{name}: {small:?} at depth 6, {large:?} at depth 24");
        assert!(large <= PATHOLOGICAL_MAX, "{name}: {large:?}");
        let allowed = small.max(Duration::from_micros(500)) * 100;
        assert!(large <= allowed, "{name}: {small:?} at depth 6 grows to {large:?} at depth 24");
    }
}
