//! The test oracle for derived maps. It compares the cells named by a map with those touched by the handler when every
//! access is allowed.

use crate::app::{Handlers, Handles};
use crate::cell::{CellId, HiveId, Outcome};
use crate::context::Ctx;
use crate::failure::Failed;
use crate::hive::dispatch::outputs::Outputs;
use crate::hive::dispatch::types::message_types::Types;
use crate::hive::message::inbox::IoBees;
use crate::mapper::{Mapper, close_over_fusion};
use crate::message::{Error, Message};
use crate::panics;
use crate::state::column::Columns;
use crate::state::guard::{Held, Violation};
use crate::state::{ConfigError, ConfigSource};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

const SEED: u64 = 0x6265_6568_6976_6500;

/// The result of a map for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Whether the message is dropped, is handled without cells, or goes to the owner of its cells.
    pub outcome: Outcome,
    /// The cells as text, before fusion: `d[1]`, `w[*]`.
    pub words: Vec<String>,
    /// The cells.
    pub cells: Vec<CellId>,
}

/// Returns an instance of an app with the given settings, outside any hive.
pub fn instance<A: Handlers>(settings: toml::Table) -> Result<A, ConfigError> {
    A::configured(&ConfigSource::new(A::NAME, settings))
}

/// Returns the result of `A`'s map for `message`.
pub fn describe<A: Handlers + Handles<M>, M: Message>(message: &M) -> Mapped {
    let whole = close_over_fusion(A::MONOLITHIC, A::DICTS);
    let mut mapper = Mapper::describing(SEED, whole, HiveId(0));
    panics::keep_maps_quiet();
    mapper.run(|mapper| A::map(message, mapper));
    Mapped { outcome: mapper.outcome(), words: mapper.words().to_vec(), cells: mapper.cells().to_vec() }
}

fn context() -> Ctx {
    Ctx::new(Outputs::new(Types::new(Arc::new(IoBees::default()))))
}

/// Runs the handler on `app` with every access allowed, rolls its changes back, and returns the cells it touched, in
/// the notation of [`describe`]. If the handler fails or panics, the result contains the cells touched up to that
/// point.
pub fn record<A: Handlers + Handles<M>, M: Message>(app: &mut A, message: &M) -> Vec<String> {
    let whole = close_over_fusion(A::MONOLITHIC, A::DICTS);
    let held = Held::record(SEED, whole);
    let mut ctx = context();
    let _ = panics::catch(AssertUnwindSafe(|| app.handle(message, &mut ctx).map(drop)));
    if !app.is_in_place() {
        app.put_in_place();
    }
    app.rollback();
    held.accesses()
}

/// The result of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The transaction committed and emitted this many messages.
    Committed(u32),
    /// The handler returned an error.
    Failed(Error),
    /// The handler panicked.
    Panicked(String),
    /// The handler touched a cell not named by its map.
    Unmapped(Violation),
}

/// Runs the handler as a transaction that may touch only the cells named by its map.
pub fn deliver<A: Handlers + Handles<M>, M: Message>(app: &mut A, message: &M) -> Delivered {
    let whole = close_over_fusion(A::MONOLITHIC, A::DICTS);
    let mapped = describe::<A, M>(message);
    let held = Held::strict(SEED, whole, &mapped.cells);
    let mut ctx = context();
    let result = panics::catch(AssertUnwindSafe(|| app.handle(message, &mut ctx).map(drop)));
    let violation = held.violation();
    let moved = (!app.is_in_place()).then(|| app.put_in_place());
    let delivered = match (result, violation) {
        (_, Some(violation)) => Delivered::Unmapped(violation),
        (Ok(Ok(())), None) => Delivered::Committed(ctx.out.len()),
        (Ok(Err(error)), None) => Delivered::Failed(Failed::Handler(error).in_words()),
        (Err(panic), None) => Delivered::Panicked(panics::text(&*panic)),
    };
    let delivered = moved.map_or(delivered, Delivered::Failed);

    match delivered {
        Delivered::Committed(_) => app.commit(),
        _ => app.rollback(),
    }

    delivered
}

/// Checks whether `mapped` names every cell in `touched`.
pub fn covers(mapped: &Mapped, touched: &[String]) -> bool {
    touched.iter().all(|cell| mapped.words.contains(cell))
}

/// Returns a reusable mapper for messages to `A`.
pub fn mapper<A: Handlers>() -> Mapper {
    Mapper::new(SEED, close_over_fusion(A::MONOLITHIC, A::DICTS), HiveId(0))
}

/// Runs `A`'s map for `message` with the given mapper.
#[inline]
pub fn map_into<A: Handlers + Handles<M>, M: Message>(message: &M, mapper: &mut Mapper) -> Outcome {
    mapper.clear();
    A::map(message, mapper);
    mapper.outcome()
}
