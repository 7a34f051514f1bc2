//! Reruns a message outside the hive, in the way a hive runs it, for a probe that compares the outcomes.

use crate::app::{Handlers, Handles};
use crate::cell::HiveId;
use crate::hive::dispatch::probe::{Replay, Replayed, Rerun};
use crate::hive::dispatch::types::handler::map;
use crate::hive::run::transaction::ended;
use crate::mapper::{Mapper, close_over_fusion};
use crate::message::{Message, Reply};
use crate::panics;
use crate::state::guard::Held;
use crate::state::image::{decode, words};
use std::panic::AssertUnwindSafe;

impl Rerun {
    /// Returns the functions for messages of type `M` and app `A`.
    pub(crate) fn of<A: Handlers + Handles<M>, M: Message>() -> Rerun {
        Rerun { run: run::<A, M>, words: in_words::<M>, cells: cells::<A, M> }
    }
}

/// Decodes, maps and handles a message again. Fails if the map names different cells than the first time.
fn run<A: Handlers + Handles<M>, M: Message>(replay: &mut Replay, bytes: &[u8]) -> Replayed {
    let Replay { state, ctx, cells, seed, whole } = replay;
    let state = state.downcast_mut::<A>().ok_or("the state belongs to another app")?;
    let message = decode::<M>(M::NAME, bytes).map_err(|error| error.to_string())?;

    let mut mapper = Mapper::new(*seed, *whole, ctx.origin);
    map::<A, M>(&message, &mut mapper);
    if mapper.cells() != &cells[..] {
        return Err("the map names different cells than the first time".into());
    }

    let held = Held::strict(*seed, *whole, cells);
    let result = ended::<A, M>(state, &message, ctx, &held);
    drop(held);

    let encoded = |answer: M::Reply| panics::catch(AssertUnwindSafe(|| answer.encoded())).unwrap_or_default();
    Ok(result.map(|answer| answer.map(encoded)).map_err(|failed| failed.in_words()))
}

/// Maps a message again, and returns the names of the cells.
fn cells<A: Handlers + Handles<M>, M: Message>(bytes: &[u8], origin: HiveId) -> Vec<String> {
    let Ok(message) = decode::<M>(M::NAME, bytes) else { return Vec::new() };
    let mut mapper = Mapper::describing(0, close_over_fusion(A::MONOLITHIC, A::DICTS), origin);
    map::<A, M>(&message, &mut mapper);
    mapper.words().to_vec()
}

/// Returns the name of a message and its content as readable text.
fn in_words<M: Message>(bytes: &[u8]) -> String {
    match decode::<M>(M::NAME, bytes) {
        Ok(message) => format!("{} {}", M::NAME, words(&message)),
        Err(_) => M::NAME.to_string(),
    }
}
