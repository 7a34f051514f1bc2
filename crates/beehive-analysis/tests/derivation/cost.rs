//! What the analysis costs: a handler must not be felt when a program is compiled, and no body may make it take long.

use beehive_analysis::{Faults, derivation};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Aim for a handler.
const AIM: Duration = Duration::from_millis(2);

/// Without optimisation the analysis, and syn, are several times slower.
const SLOWER: u32 = if cfg!(debug_assertions) { 4 } else { 1 };

/// No body of the size of a source file takes longer than this, here.
const PATHOLOGICAL_MAX: Duration = Duration::from_secs(5);

/// The processor time of this thread: what else the machine does costs nothing here.
fn spent() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The shortest of some runs.
fn cost(block: &str) -> Duration {
    let tokens: proc_macro2::TokenStream = block.parse().expect("tokens");
    let run = || {
        let began = spent();
        derivation(Default::default(), tokens.clone(), Faults::default()).expect("parses");
        spent() - began
    };
    (0..3).map(|_| run()).min().unwrap_or_default()
}

/// The checked-in random handlers: some of them are far worse than what anybody writes.
#[test]
fn handlers_are_cheap_on_average() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../beehive-core/tests/maps/generated.rs");
    let parsed = syn::parse_file(&std::fs::read_to_string(file).expect("generated handlers")).expect("Rust");
    let blocks: Vec<syn::ItemImpl> = parsed
        .items
        .into_iter()
        .filter_map(|item| match item {
            syn::Item::Impl(mut block) if block.attrs.iter().any(|a| a.path().is_ident("handlers")) => {
                block.attrs.clear();
                Some(block)
            }
            _ => None,
        })
        .collect();
    let (mut handlers, mut all) = (0, Duration::ZERO);
    for block in blocks {
        handlers += block.items.len() as u32;
        all += cost(&quote::quote!(#block).to_string());
    }
    assert!(handlers >= 100, "{handlers}");
    let each = all / handlers;
    println!("{handlers} handlers and helpers, {each:?} each");
    assert!(each <= AIM * SLOWER, "{each:?} for each of {handlers} random handlers");
}

/// A handler with `body` repeated, and the same ten times as long: the cost may grow with the square of the size, at most.
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
    // small times are all noise
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
    grows_like_a_square("facts learnt one a round", |n| {
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
