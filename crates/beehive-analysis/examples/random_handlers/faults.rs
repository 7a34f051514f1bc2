//! Handler bodies for which a seeded fault of the analysis makes a map too small, and the resulting maps.

use beehive_analysis::{Fault, Faults, faulty_derivation};

/// A fault, and the handler bodies (numbered from 1) that it gets wrong.
pub(crate) struct Seeded {
    /// Name of the app that has these handlers.
    pub(crate) app: &'static str,
    pub(crate) faults: Faults,
    pub(crate) bodies: &'static [&'static str],
}

/// Returns all seeded faults, one per entry.
pub(crate) fn seeded() -> Vec<Seeded> {
    vec![
        Seeded {
            app: "ElseBranchLost",
            faults: Faults::only(Fault::ElseBranchLost),
            bodies: &["if m.flag { self.d.put(m.a, 1); } else { self.e.put(m.b, 1); }"],
        },
        Seeded {
            app: "ViewsIgnored",
            faults: Faults::only(Fault::ViewsIgnored),
            bodies: &[
                "let mut v = vec![m.a]; for x in v.iter_mut() { *x += self.d.get(&m.b).copied().unwrap_or(0); } for k in v { self.e.get(&k); }",
                "let mut v = vec![m.a]; for (x, y) in m.items.iter().zip(v.iter_mut()) { *y = *x + self.d.get(x).copied().unwrap_or(0); } for k in v { self.e.get(&k); }",
            ],
        },
        Seeded {
            app: "AssignmentsUnderStateIgnored",
            faults: Faults::only(Fault::AssignmentsUnderStateIgnored),
            bodies: &["let mut k = m.a; if self.d.contains(&m.a) { k = m.b + 20; } self.e.put(k, 1);"],
        },
        Seeded {
            app: "ExitsLeaveTheWholeMap",
            faults: Faults::only(Fault::ExitsLeaveTheWholeMap),
            bodies: &[
                "if self.d.contains(&m.a) { return; } self.e.put(m.b, 1);",
                "for x in &m.items { if self.d.contains(x) { if *x > m.b { return; } } self.e.put(*x, 1); }",
            ],
        },
        Seeded {
            app: "JumpsUnderStateIgnored",
            faults: Faults::only(Fault::JumpsUnderStateIgnored),
            bodies: &[
                "let mut n = 0; for x in &m.items { if self.d.contains(x) { break; } n += 1; } self.e.put(n, 1);",
            ],
        },
        Seeded {
            app: "LoopBodyLost",
            faults: Faults::only(Fault::LoopBodyLost),
            bodies: &["for x in &m.items { self.d.put(*x, 1); }"],
        },
        Seeded {
            app: "DroppedChangesIgnored",
            faults: Faults::only(Fault::DroppedChangesIgnored),
            bodies: &[
                "let mut it = m.items.iter(); self.d.put(m.a, it.next().copied().unwrap_or(0)); if let Some(k) = it.next() { self.e.get(k); }",
                "let mut it = m.items.iter(); note(it.next()); if let Some(k) = it.next() { self.e.get(k); }",
            ],
        },
        Seeded {
            app: "TemporariesAreFixed",
            faults: Faults::only(Fault::TemporariesAreFixed),
            bodies: &[
                "let e = &mut [m.b, m.a]; e.sort(); self.d.put(e[0], 1);",
                "let it = &mut m.items.iter(); it.next(); if let Some(k) = it.next() { self.d.put(*k, 1); }",
            ],
        },
        Seeded {
            app: "ClosuresChangeNothing",
            faults: Faults::only(Fault::ClosuresChangeNothing),
            bodies: &[
                "let mut v = vec![]; let mut add = |k: u64| v.push(k); add(m.a); add(m.b); for k in v { self.d.put(k, 1); }",
                "let mut n = m.a; let mut next = || { n += 1; n }; next(); self.d.put(next(), 1);",
            ],
        },
        Seeded {
            app: "MethodsOnlyRead",
            faults: Faults::only(Fault::MethodsOnlyRead),
            bodies: &[
                "let mut v = m.items.clone(); v.reverse(); if let Some(k) = v.first() { self.d.put(*k, 1); }",
                "let mut v = vec![m.a]; if self.d.contains(&m.b) { v.push(m.b + 20); } for k in v { self.e.put(k, 1); }",
            ],
        },
        Seeded {
            app: "StaticsAreFixed",
            faults: Faults::only(Fault::StaticsAreFixed),
            bodies: &["let k = COUNT.fetch_add(1, Ordering::Relaxed); self.d.put(k, 1);"],
        },
        Seeded {
            app: "PanicsEndTheMap",
            faults: Faults::only(Fault::PanicsEndTheMap),
            bodies: &["if self.d.contains(&m.a) { self.e.put(m.items[3], 1); } self.e.put(m.b, 1);"],
        },
        Seeded {
            app: "OtherVersionsIgnored",
            faults: Faults::only(Fault::OtherVersionsIgnored),
            bodies: &[
                "self.visit(m.a); } #[cfg(any())] fn visit(&mut self, x: u64) { self.d.put(x, 1); } #[cfg(not(any()))] fn visit(&mut self, x: u64) { self.e.put(x, 1);",
            ],
        },
        Seeded {
            app: "HashOrderIsFixed",
            faults: Faults::only(Fault::HashOrderIsFixed),
            bodies: &[
                "let s: std::collections::HashSet<u64> = m.items.iter().copied().collect(); for k in s.into_iter().take(1) { self.d.put(k, 1); }",
                "let mut v = m.items.iter().copied().collect::<std::collections::HashSet<u64>>().into_iter().collect::<Vec<u64>>(); if let Some(k) = v.pop() { self.d.put(k, 1); }",
            ],
        },
        Seeded {
            app: "LateFactsIgnored",
            faults: Faults::only(Fault::LateFactsIgnored),
            bodies: &[
                "let mut k = m.a; for q in &m.items { self.e.put(k, 1); if self.d.contains(q) { k = q + 20; } }",
                "let mut n = 0; for q in &m.items { n += 1; self.e.put(n, 1); if self.d.contains(q) { n += 20; } }",
            ],
        },
        Seeded {
            app: "ReturnedViewsIgnored",
            faults: Faults::only(Fault::ReturnedViewsIgnored),
            bodies: &[
                "let mut v = vec![m.b, m.a]; let r = std::convert::identity(&mut v); r.sort(); self.d.put(v[0], 1);",
                "let mut n = m.a; let r = Self::own(&mut n); *r ^= 16; self.d.put(n, 1); } fn own<T>(r: &mut T) -> &mut T { r",
            ],
        },
        Seeded {
            app: "ResultsHideChanges",
            faults: Faults::only(Fault::ResultsHideChanges),
            bodies: &[
                "let mut q = m.opt; let _old = q.take(); if q.is_none() { self.d.put(m.a, 1); }",
                "let mut v = m.items.clone(); let _last = v.pop(); if v.is_empty() { self.d.put(m.a, 1); }",
            ],
        },
        Seeded {
            app: "PromisesHideChanges",
            faults: Faults::only(Fault::PromisesHideChanges),
            bodies: &[
                "let mut v = m.items.clone(); pure!(v.reverse()); if let Some(k) = v.first() { self.d.put(*k, 1); }",
                "let mut v = [m.b, m.a]; pure!(v.swap(0, 1)); self.d.put(v[0], 1);",
            ],
        },
        Seeded {
            app: "HiddenHashesIgnored",
            faults: Faults::only(Fault::HiddenHashesIgnored),
            bodies: &[
                "struct Own { all: std::collections::HashSet<u64> } let own = Own { all: m.items.iter().copied().collect() }; if let Some(k) = own.all.iter().next() { self.d.put(*k, 1); }",
                "let mut all: std::collections::HashMap<u64, std::collections::HashSet<u64>> = Default::default(); all.insert(m.a, m.items.iter().copied().collect()); if let Some(k) = all.get(&m.a).and_then(|s| s.iter().next()) { self.d.put(*k, 1); }",
            ],
        },
        Seeded {
            app: "GlobalsAreData",
            faults: Faults::only(Fault::GlobalsAreData),
            bodies: &[
                "let k = NUMBERS.number(); self.d.put(k, 1);",
                "let numbers = &NUMBERS; let k = numbers.number() ^ m.a; self.d.put(k, 1);",
            ],
        },
        Seeded {
            app: "GuessedMacrosOnlyLog",
            faults: Faults::only(Fault::GuessedMacrosOnlyLog),
            bodies: &[
                "let mut k = m.a; debug!(\"{}\", k); self.d.put(k, 1);",
                "let mut k = m.a; if m.flag { debug!(\"{}\", k); } self.e.put(k, 1);",
            ],
        },
        Seeded {
            app: "MacrosRebindNothing",
            faults: Faults::only(Fault::MacrosRebindNothing),
            bodies: &["let k = m.a; again!(k); self.d.put(k, 1);", "another!(m.a); self.d.put(m.a, 1);"],
        },
        Seeded {
            app: "MethodsCannotPanic",
            faults: Faults::only(Fault::MethodsCannotPanic),
            bodies: &[
                "if self.d.contains(&m.a) { self.e.put(m.opt.unwrap(), 1); } self.e.put(m.b, 1);",
                "if self.d.contains(&m.a) { self.e.put(m.name.parse::<u64>().expect(\"a number\"), 1); } self.d.put(m.b, 1);",
            ],
        },
        Seeded {
            app: "EndlessLoopsAreAllowed",
            faults: Faults::only(Fault::EndlessLoopsAreAllowed),
            bodies: &[
                "for k in 2u64.. { if self.d.contains(&k) { continue; } self.d.put(k, 1); break; }",
                "for k in std::iter::successors(Some(m.a), |k| Some(k + 1)) { if !self.e.contains(&k) { self.e.put(k, 1); break; } }",
            ],
        },
    ]
}

/// Fills the dictionaries. The map is written by hand, so no fault of the analysis affects it.
const LOAD: &str = "#[rcv(map = Self::load_map)] fn load(&mut self, m: &Load) { \
    for (k, v) in &m.d { self.d.put(*k, *v); } for (k, v) in &m.e { self.e.put(*k, *v); } }";

/// Returns the impl block of an app with these bodies.
pub(crate) fn block(seeded: &Seeded, bodies: &[&str]) -> String {
    let handlers: Vec<String> = bodies
        .iter()
        .enumerate()
        .map(|(i, body)| format!("#[rcv] fn h{0}(&mut self, m: &M<{0}>) {{ {body} }}", i + 1))
        .collect();
    format!("impl {} {{ {LOAD} {} }}", seeded.app, handlers.join(" "))
}

/// Returns a module with all apps, each expanded by the analysis with its fault.
pub(crate) fn module() -> Result<String, String> {
    let mut out = String::from(
        "//! Written by `cargo run -p beehive-analysis --example random_handlers -- faults`: maps from an analysis with bugs.\n\n\
         #![allow(warnings, clippy::all)]\n\
         use crate::message::{Load, M};\nuse beehive::{App, Ctx, Dict, Mapper, pure};\n\
         use std::sync::atomic::{AtomicU64, Ordering};\n\nstatic COUNT: AtomicU64 = AtomicU64::new(0);\n\n\
         pub(crate) struct Numbers(AtomicU64);\nimpl Numbers { fn number(&self) -> u64 { self.0.fetch_add(1, Ordering::Relaxed) } }\n\
         static NUMBERS: Numbers = Numbers(AtomicU64::new(0));\n\n\
         /// Looks like a macro that logs, and changes its argument.\n\
         macro_rules! debug { ($($text:literal,)? $x:ident) => { $x ^= 16 }; }\n\
         macro_rules! again { ($x:ident) => { let $x = $x ^ 16; }; }\n\
         macro_rules! another { ($m:ident . $x:ident) => { let mut other = $m.clone(); other.$x ^= 16; let $m = &other; }; }\n\n\
         fn note(_: Option<&u64>) {}\n",
    );

    for s in seeded() {
        let source = block(&s, s.bodies).parse().map_err(|e| format!("{e}"))?;
        let derived = faulty_derivation(Default::default(), source, s.faults).map_err(|e| e.to_string())?;
        if let Some(e) = derived.errors.first() {
            return Err(format!("{} is refused even with the bug: {e}", s.app));
        }

        out += &format!(
            "\n#[derive(App)]\npub(crate) struct {0} {{ d: Dict<u64, u64>, e: Dict<u64, u64> }}\n\
             impl {0} {{ fn load_map(m: &Load, cells: &mut Mapper) {{\n\
             for (k, _) in &m.d {{ cells.cell(Self::__bh_d, k); }} for (k, _) in &m.e {{ cells.cell(Self::__bh_e, k); }}\n}} }}\n",
            s.app
        );

        out += &derived.tokens.to_string().replace("} ", "}\n");
        out.push('\n');
    }

    Ok(out)
}
