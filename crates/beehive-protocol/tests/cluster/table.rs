//! Which checker notices which mutant: each rule of the protocol that is broken makes a directed test or a random walk fail.

use crate::mutant::{Kind, Mutant};
use crate::walk::{count_of_seeds, seeds, walk};
use crate::{directed, fences};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Mutants that neither a walk nor a directed test notices.
const OPEN: &[Mutant] = &[];

/// A test that takes the rule to break, and the beginning of what it says then.
struct Directed {
    name: &'static str,
    says: &'static str,
    test: Box<dyn Fn(Option<Mutant>)>,
}

/// Returns the directed test for a mutant that walks rarely notice.
fn directed(mutant: Mutant) -> Option<Directed> {
    let of = |name, says, test: fn(Option<Mutant>)| Some(Directed { name, says, test: Box::new(test) });
    match mutant {
        Mutant::StageAfterFuse => {
            of("late_stage", "OncePerEpoch", |broken| directed::late_stage(broken, true))
        }
        Mutant::StageAfterRelease => {
            of("late_stage", "OncePerEpoch", |broken| directed::late_stage(broken, false))
        }
        Mutant::FloorFromSpeculation => of("speculative_floor", "NotLost", directed::speculative_floor),
        Mutant::FloorOnVolatileAck => of("volatile_ack", "AtMostOnce", directed::volatile_ack),
        Mutant::StaleRouteAccepted => of("stale_route", "OneOwner", directed::stale_route),
        Mutant::SplitDedupNotCopied => of("split_after_message", "AtMostOnce", directed::split_after_message),
        Mutant::SplitIdReused => of("late_split", "OncePerEpoch", directed::late_split),
        Mutant::LocalTakesFrozen => {
            of("local_message_during_move", "FrozenChanged", directed::local_message_during_move)
        }
        Mutant::ForgetWhileFrozen => {
            of("lane_ends_during_move", "FrozenChanged", directed::lane_ends_during_move)
        }
        Mutant::DeposedRefreshes => of("deposed_leader", "AtMostOnce", directed::deposed_leader),
        Mutant::ReleaseUnaddressed => of("late_copy", "AtMostOnce", directed::late_copy),
        Mutant::Unfenced(Kind::Drop) => of("fences::of_drop", "", |broken| fences::of_drop(broken.is_none())),
        Mutant::Unfenced(Kind::Stage) => {
            of("fences::of_stage", "", |broken| fences::of_stage(broken.is_none()))
        }
        Mutant::Unfenced(Kind::Retire) => {
            of("fences::of_retire", "", |broken| fences::of_retire(broken.is_none()))
        }
        Mutant::Unfenced(Kind::Told) => {
            of("fences::of_told", "", |broken| fences::of_told(broken.is_none(), true))
        }
        Mutant::ReleaseToldUnfenced => {
            of("fences::of_told", "", |broken| fences::of_told(broken.is_none(), false))
        }
        _ => None,
    }
}

/// Runs a test. Returns what its panic says.
fn panic_of(test: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(test)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(70).collect()
}

#[test]
fn directed_tests_pass_if_no_rule_is_broken() {
    for mutant in Mutant::all() {
        if let Some(directed) = directed(mutant) {
            (directed.test)(None)
        }
    }
}

#[test]
fn a_walk_or_a_directed_test_notices_each_mutant() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let (mut unfound, mut wrong, mut table) = (Vec::new(), Vec::new(), String::new());
    for mutant in Mutant::all() {
        let by = match directed(mutant) {
            Some(Directed { name, says, test }) => {
                match (panic_of(|| test(None)), panic_of(|| test(Some(mutant)))) {
                    (None, Some(text)) if text.contains(says) => {
                        format!("directed   {name}: {}", first_line(&text))
                    }
                    (without, with) => {
                        wrong.push(mutant);
                        format!("directed   {name} IS WRONG: without {without:?}, with {with:?}")
                    }
                }
            }
            None => {
                let mut walks = seeds(count_of_seeds()).enumerate();
                let found = walks
                    .find_map(|(at, seed)| Some((at, panic_of(|| drop(walk(seed, Some(mutant), false)))?)));
                match found {
                    Some((at, text)) => format!("seed {at:4}  {}", first_line(&text)),
                    None => {
                        unfound.push(mutant);
                        "NOT FOUND".to_string()
                    }
                }
            }
        };
        table.push_str(&format!("{:28} {by}\n", format!("{mutant:?}")))
    }
    std::panic::set_hook(hook);
    println!("{table}");
    assert_eq!(
        wrong,
        [],
        "the directed tests of these do not fail as they should, or also without the mutant"
    );
    assert_eq!(unfound, OPEN, "these are not noticed; those are expected not to be")
}
