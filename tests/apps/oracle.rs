//! Checks that the derived maps of the examples cover the cells that the handlers touch, and that a map from
//! which one cell is removed does not cover them.

use crate::bank::{Bank, Deposit, Transfer};
use crate::hello::{Greeter, Hello};
use beehive::testing::maps::{Delivered, covers, deliver, describe, instance, record};
use beehive::{Handlers, Handles, Message};
use std::collections::BTreeSet;

/// Checks one handler on one message, in the state that the previous messages left. Adds to `needed` the
/// index of each cell of the map without which the map would not have covered the handler's accesses.
fn check<A: Handlers + Handles<M>, M: Message>(app: &mut A, message: &M, needed: &mut BTreeSet<usize>) {
    let mapped = describe::<A, M>(message);
    let touched = record(app, message);
    assert!(covers(&mapped, &touched), "{}: {:?}, touched {touched:?}", M::NAME, mapped.words);

    for lost in 0..mapped.words.len() {
        let mut seeded = mapped.clone();
        seeded.words.remove(lost);
        if !covers(&seeded, &touched) {
            needed.insert(lost);
        }
    }

    let delivered = deliver(app, message);
    assert!(
        matches!(delivered, Delivered::Committed(_) | Delivered::Failed(_)),
        "{}: {delivered:?}",
        M::NAME
    );
}

fn random(n: u64, bound: u64) -> u64 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) % bound
}

#[test]
fn maps_of_the_examples_cover_what_they_touch() {
    let mut bank: Bank = instance(Default::default()).expect("default settings");
    let mut greeter: Greeter = instance(Default::default()).expect("default settings");
    let (mut deposits, mut transfers, mut hellos) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());

    for n in 0..2_000 {
        let (account, amount) = (random(n, 5), random(n + 7, 40));
        if n % 3 == 0 {
            check(&mut bank, &Deposit { account, amount }, &mut deposits)
        }

        check(
            &mut bank,
            &Transfer { from: account, to: random(n + 3, 5), amount: 2 * amount },
            &mut transfers,
        );

        check(&mut greeter, &Hello(account.to_string()), &mut hellos);
    }

    assert_eq!(
        (deposits.len(), transfers.len(), hellos.len()),
        (1, 2, 1),
        "each cell of a map is needed at some time"
    );
}
