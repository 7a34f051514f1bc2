//! `Mapper`, which collects the cells named by derived maps, and `DictMeta`, the compile-time description of a
//! dictionary.

use crate::cell::{CellId, CellSet, HiveId, MapLimit, Outcome, PlaceId};
use crate::hash::HashSet;
use crate::key::{CellHasher, Key, KeyEncoding};
use crate::{limits, panics};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Compile-time description of a dictionary field of an app.
pub struct DictMeta<K> {
    /// The app's name.
    pub app: &'static str,
    /// The field's name.
    pub name: &'static str,
    /// Position among the app's dictionaries.
    pub index: u32,
    /// Whether the dictionary is `#[volatile]`: it moves and rolls back with its bee, but is not logged, and
    /// is empty after a failover.
    pub volatile: bool,
    /// Stable name of the key type.
    key_name: &'static str,
    /// Seed for place hashes: a hash of the key type. Equal keys of the same key type get the same place.
    type_seed: u64,
    /// Seed for cell hashes: a hash of the app and of either the key type, if it is fused, or the field name.
    /// Equal keys in the same group are one cell.
    group_seed: u64,
    /// Limit on the rows of a cell, if any.
    pub(crate) rows: Option<RowLimit>,
    /// Whether the field has `#[shared]`. A dictionary without it has views only if one of its app's handlers reads
    /// them.
    shared: bool,
    /// Maximum age of a view read by a handler.
    pub(crate) max_age: Duration,
    key: PhantomData<fn(K)>,
}

impl<K: 'static> std::fmt::Debug for DictMeta<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DictMeta").field("app", &self.app).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Limit on the rows of a cell, and the rows to evict when it is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowLimit {
    pub(crate) max: u32,
    pub(crate) evict: Evict,
}

/// The rows to evict from a cell that has too many rows at the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evict {
    /// None: the transaction fails.
    Nothing,
    /// The first rows, in key order.
    First,
    /// The last rows, in key order.
    Last,
}

/// A [`DictMeta`] without its key type parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DictInfo {
    /// The field's name.
    pub name: &'static str,
    /// Position among the app's dictionaries.
    pub index: u32,
    /// Whether the dictionary is `#[volatile]`, that is, not logged.
    pub volatile: bool,
    /// Stable name of the key type.
    pub key: &'static str,
    pub(crate) group_seed: u64,
    /// Whether the field has `#[shared]`.
    pub(crate) shared: bool,
    /// Whether the number of rows of a cell is limited.
    pub(crate) limited: bool,
    /// The compiler's id of the key type, which distinguishes two types with the same stable name.
    pub(crate) key_type: std::any::TypeId,
}

impl<K: Key> DictMeta<K> {
    /// Describes field `name` of app `app`.
    pub const fn new(app: &'static str, name: &'static str, index: u32, volatile: bool) -> Self {
        let app_seed = CellHasher::name(0, app);
        let group = if K::FUSED { K::NAME } else { name };
        // Fused and unfused groups are hashed in different domains, so that a field with the same name as a key type is
        // not fused by accident.
        let group_seed = CellHasher::name(app_seed ^ K::FUSED as u64, group);

        DictMeta {
            app,
            name,
            index,
            volatile,
            key_name: K::NAME,
            type_seed: CellHasher::name(1, K::NAME),
            group_seed,
            rows: None,
            shared: false,
            max_age: limits::VIEW_AGE_MAX,
            key: PhantomData,
        }
    }
}

impl<K: 'static> DictMeta<K> {
    /// Stand-in for the description of a dictionary whose key or value type lacks a derive. The missing
    /// derive is reported elsewhere.
    pub const fn undeclared() -> Self {
        DictMeta {
            app: "",
            name: "",
            index: 0,
            volatile: false,
            key_name: "",
            type_seed: 0,
            group_seed: 0,
            rows: None,
            shared: false,
            max_age: limits::VIEW_AGE_MAX,
            key: PhantomData,
        }
    }

    /// Returns the description with a limit on the rows of a cell.
    pub const fn limit_rows(self, max: u32, evict: Evict) -> Self {
        DictMeta { rows: Some(RowLimit { max, evict }), ..self }
    }

    /// Returns the description with views enabled.
    pub const fn share(self) -> Self {
        let meta = DictMeta { shared: true, ..self };
        let _ = meta.shared_bit();
        meta
    }

    /// Returns the description with views enabled and their maximum age set.
    pub const fn share_for(self, max_age: Duration) -> Self {
        DictMeta { max_age, ..self.share() }
    }

    /// Returns the description without the key type parameter.
    pub const fn info(&self) -> DictInfo {
        DictInfo {
            name: self.name,
            index: self.index,
            volatile: self.volatile,
            key: self.key_name,
            key_type: std::any::TypeId::of::<K>(),
            group_seed: self.group_seed,
            shared: self.shared,
            limited: self.rows.is_some(),
        }
    }
}

fn whole_of(group_seed: u64, seed: u64) -> CellId {
    let mut hasher = CellHasher::new(group_seed ^ seed);
    hasher.word(u64::MAX);
    CellId(hasher.finish())
}

impl DictInfo {
    pub(crate) fn whole(&self, seed: u64) -> CellId {
        whole_of(self.group_seed, seed)
    }
}

impl<K> DictMeta<K> {
    /// Returns this dictionary's bit in a bit mask of dictionaries.
    pub const fn bit(&self) -> u64 {
        1 << self.index
    }

    /// Returns this dictionary's bit, for a handler that reads its views.
    ///
    /// # Panics
    ///
    /// Panics at compile time if the dictionary is volatile.
    pub const fn shared_bit(&self) -> u64 {
        assert!(
            !self.volatile,
            "a `#[volatile]` dictionary has no views: views hold committed state, and its changes are not logged"
        );
        self.bit()
    }

    #[inline(always)]
    pub(crate) fn place<Q: KeyEncoding + ?Sized>(&self, seed: u64, key: &Q) -> PlaceId {
        let mut hasher = CellHasher::new(self.type_seed ^ seed);
        key.feed(&mut hasher);
        PlaceId(hasher.finish())
    }

    #[inline(always)]
    pub(crate) fn cell_in(&self, place: PlaceId) -> CellId {
        let mut hasher = CellHasher::new(self.group_seed);
        hasher.word(place.0);
        CellId(hasher.finish())
    }

    #[inline(always)]
    pub(crate) fn cell<Q: KeyEncoding + ?Sized>(&self, seed: u64, key: &Q) -> CellId {
        self.cell_in(self.place(seed, key))
    }

    /// Returns the one cell that stands for the whole group.
    #[inline]
    pub(crate) fn whole(&self, seed: u64) -> CellId {
        whole_of(self.group_seed, seed)
    }
}

/// Compile-time stand-in for a field that is not a dictionary. An access to it maps to no cell.
#[derive(Debug)]
pub struct PlainField;

impl PlainField {
    /// Returns 0, because this is not a dictionary.
    pub const fn bit(&self) -> u64 {
        0
    }

    /// Returns 0, because this is not a dictionary, even if the field's type has a method named `shared`.
    pub const fn shared_bit(&self) -> u64 {
        0
    }
}

#[diagnostic::on_unimplemented(
    message = "this dictionary is used in a way Beehive cannot analyze",
    label = "not an access Beehive understands",
    note = "a handler may only call the methods of `Dict` and `Table` on a dictionary, directly",
    note = "to share code between handlers, make it a method of this `#[handlers]` impl block: its accesses are then part of the map",
    note = "more: beehive::guide::errors::self_escapes"
)]
/// A field that is not a dictionary.
pub trait IsPlain {}
impl IsPlain for PlainField {}
/// Compiles only for a field that is not a dictionary.
pub const fn assert_plain<T: IsPlain>(_: &T) {}

/// The part of a message's envelope that maps may read.
#[derive(Clone, Copy, Debug)]
pub struct MapEnvelope {
    origin: HiveId,
}

impl MapEnvelope {
    /// Returns the hive at which the chain of messages entered from outside.
    #[inline(always)]
    pub fn origin(&self) -> HiveId {
        self.origin
    }
}

/// A value to which `?` can be applied.
pub trait TryLike {
    /// The type of the value that `?` yields.
    type Value;
    /// Returns the value, or `None` where `?` would return from the handler.
    fn ok_like(self) -> Option<Self::Value>;
}
impl<T> TryLike for Option<T> {
    type Value = T;
    #[inline(always)]
    fn ok_like(self) -> Option<T> {
        self
    }
}
impl<T, E> TryLike for Result<T, E> {
    type Value = T;
    #[inline(always)]
    fn ok_like(self) -> Option<T> {
        self.ok()
    }
}

/// Number of cells up to which a linear scan finds a duplicate as fast as a hash table.
const SCANNED_MAX: usize = 16;

/// Collects the cells of one message. Reused for the next message after [`Mapper::clear`].
#[derive(Debug)]
pub struct Mapper {
    cells: CellSet,
    /// The same cells, once there are more than [`SCANNED_MAX`]; otherwise empty.
    many: HashSet<CellId>,
    /// Number of loop iterations of the map.
    steps: u32,
    /// The limit that the map exceeded.
    exceeded: Option<MapLimit>,
    effect: bool,
    seed: u64,
    /// Bit mask of the dictionaries whose whole group is one cell.
    whole: u64,
    origin: HiveId,
    place: Option<PlaceId>,
    describe: Option<Vec<String>>,
}

#[diagnostic::on_unimplemented(
    message = "the key has the wrong type for this dictionary",
    label = "expected the dictionary's key type, found `{Q}`"
)]
/// A dictionary, or its stand-in, that maps a key to a cell.
pub trait Keyed<Q: ?Sized> {
    /// Adds the cell of `key`.
    fn add(&self, mapper: &mut Mapper, key: &Q);
}
impl<K: Key + Borrow<Q>, Q: KeyEncoding + ?Sized> Keyed<Q> for DictMeta<K> {
    #[inline(always)]
    fn add(&self, mapper: &mut Mapper, key: &Q) {
        mapper.push(self, key)
    }
}
impl<Q: ?Sized> Keyed<Q> for PlainField {
    #[inline(always)]
    fn add(&self, mapper: &mut Mapper, _: &Q) {
        mapper.effect()
    }
}
#[diagnostic::on_unimplemented(
    message = "the key has the wrong type for this dictionary",
    label = "expected the dictionary's key type, found `{Q}`"
)]
/// Same as [`Keyed`], for accesses that take the key by value.
pub trait KeyedByValue<Q> {
    /// Adds the cell of `key`.
    fn add(&self, mapper: &mut Mapper, key: &Q);
}
impl<K: Key> KeyedByValue<K> for DictMeta<K> {
    #[inline(always)]
    fn add(&self, mapper: &mut Mapper, key: &K) {
        mapper.push(self, key)
    }
}
impl<Q> KeyedByValue<Q> for PlainField {
    #[inline(always)]
    fn add(&self, mapper: &mut Mapper, _: &Q) {
        mapper.effect()
    }
}
/// A dictionary, or its stand-in, that can be used as a whole.
pub trait Whole {
    /// Adds the one cell that stands for the whole dictionary.
    fn add_whole(&self, mapper: &mut Mapper);
}
impl<K> Whole for DictMeta<K> {
    #[inline]
    fn add_whole(&self, mapper: &mut Mapper) {
        mapper.add(self.whole(mapper.seed));
        if let Some(describe) = &mut mapper.describe {
            note(describe, format!("{}[*]", self.name));
        }
    }
}
impl Whole for PlainField {
    fn add_whole(&self, mapper: &mut Mapper) {
        mapper.effect()
    }
}

/// Ends a map that exceeds a limit. Unwinds without calling the panic hook, because the message fails with an
/// error that names the limit.
#[cold]
fn exceed(limit: MapLimit) -> ! {
    std::panic::resume_unwind(Box::new(limit))
}

fn note(describe: &mut Vec<String>, cell: String) {
    if !describe.contains(&cell) {
        describe.push(cell)
    }
}

impl Mapper {
    /// Returns a mapper for an app in which the dictionaries in `whole` (a bit mask, closed under fusion) are one cell
    /// each.
    pub fn new(seed: u64, whole: u64, origin: HiveId) -> Self {
        Mapper {
            cells: CellSet::new(),
            many: HashSet::default(),
            steps: 0,
            exceeded: None,
            effect: false,
            seed,
            whole,
            origin,
            place: None,
            describe: None,
        }
    }

    /// Same as [`Mapper::new`], but the mapper also records the cells as text, before fusion.
    pub fn describing(seed: u64, whole: u64, origin: HiveId) -> Self {
        Mapper { describe: Some(Vec::new()), ..Mapper::new(seed, whole, origin) }
    }

    #[inline(always)]
    fn add(&mut self, cell: CellId) {
        if self.cells.len() >= SCANNED_MAX {
            self.add_to_many(cell)
        } else if !self.cells.contains(&cell) {
            self.cells.push(cell)
        }
    }

    #[cold]
    fn add_to_many(&mut self, cell: CellId) {
        if self.many.is_empty() {
            self.many.extend(self.cells.iter().copied())
        }
        if !self.many.insert(cell) {
            return;
        }

        if self.cells.len() == limits::CELLS_PER_MESSAGE_MAX {
            exceed(MapLimit::Cells)
        }
        self.cells.push(cell)
    }

    /// Counts an iteration of one of the map's loops.
    #[inline(always)]
    pub fn step(&mut self) {
        self.steps += 1;
        if self.steps > limits::STEPS_PER_MAP_MAX {
            exceed(MapLimit::Steps)
        }
    }

    /// Runs a map. If the map exceeds a limit, the outcome is that limit. If the map panics, the outcome is the cells
    /// named before the panic. These are enough, because the handler either returns before that point or panics there
    /// too.
    #[inline(always)]
    pub(crate) fn run(&mut self, map: impl FnOnce(&mut Mapper)) {
        if let Err(panic) = panics::catch_in_map(|| map(self)) {
            self.ended_by(panic)
        }
    }

    #[cold]
    fn ended_by(&mut self, panic: panics::Caught) {
        match panic.downcast::<MapLimit>() {
            Ok(limit) => {
                self.clear();
                self.exceeded = Some(limit)
            }
            // The handler must run even if its map panicked before naming a cell.
            Err(_) => self.effect(),
        }
    }

    /// Runs a part of a map whose counterpart in the handler might not run. A panic ends only this part: if the handler
    /// reaches the same point, it panics too. Each panic counts as [`STEPS_PER_PANIC`](limits::STEPS_PER_PANIC) steps.
    #[inline(always)]
    pub fn branch(&mut self, part: impl FnOnce(&mut Mapper)) {
        if let Err(panic) = panics::catch(AssertUnwindSafe(|| part(self))) {
            self.branch_ended_by(panic)
        }
    }

    #[cold]
    fn branch_ended_by(&mut self, panic: panics::Caught) {
        if panic.is::<MapLimit>() {
            panic.resume()
        }

        drop(panic);
        self.steps += limits::STEPS_PER_PANIC;
        self.step()
    }

    #[inline(always)]
    fn push<K, Q: KeyEncoding + ?Sized>(&mut self, meta: &DictMeta<K>, key: &Q) {
        if self.whole & meta.bit() != 0 {
            self.add(meta.whole(self.seed));
        } else {
            let place = meta.place(self.seed, key);
            if self.place.is_none() {
                self.place = Some(place);
            }
            self.add(meta.cell_in(place));
        }

        if let Some(describe) = &mut self.describe {
            if self.whole & meta.bit() != 0 {
                note(describe, format!("{}[*]", meta.name));
            } else {
                let mut text = format!("{}[", meta.name);
                key.describe(&mut text);
                text.push(']');
                note(describe, text);
            }
        }
    }

    /// Adds the cell of `key` in the dictionary.
    #[inline(always)]
    pub fn cell<D: Keyed<Q>, Q: ?Sized>(&mut self, dict: &D, key: &Q) {
        dict.add(self, key)
    }

    /// Same as [`Mapper::cell`], for an access that takes its key by value.
    #[inline(always)]
    pub fn cell_val<D: KeyedByValue<Q>, Q>(&mut self, dict: &D, key: &Q) {
        dict.add(self, key)
    }

    /// Adds the cell that stands for the whole dictionary.
    #[inline(always)]
    pub fn whole<D: Whole>(&mut self, dict: &D) {
        dict.add_whole(self)
    }

    /// Notes that the handler has an effect that a map cannot reproduce, so that the message is not
    /// dropped.
    #[inline(always)]
    pub fn effect(&mut self) {
        self.effect = true
    }

    /// Returns the part of the envelope that a key may depend on.
    #[inline(always)]
    pub fn envelope(&self) -> MapEnvelope {
        MapEnvelope { origin: self.origin }
    }

    /// Resets the mapper for the next message.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.cells.clear();
        if !self.many.is_empty() {
            self.many.clear()
        }
        self.steps = 0;
        self.exceeded = None;
        self.effect = false;
        self.place = None;
    }

    /// Returns the outcome of the map.
    #[inline(always)]
    pub fn outcome(&self) -> Outcome {
        if !self.cells.is_empty() {
            Outcome::Cells
        } else if self.effect {
            Outcome::Stateless
        } else if let Some(limit) = self.exceeded {
            Outcome::Refused(limit)
        } else {
            Outcome::Drop
        }
    }

    /// Returns the mapped cells.
    #[inline(always)]
    pub fn cells(&self) -> &[CellId] {
        &self.cells
    }

    /// Returns the place of the first key.
    #[inline(always)]
    pub fn place(&self) -> Option<PlaceId> {
        self.place
    }

    /// Returns the mapped cells as text, before fusion: `"macs[4]"`, `"matrix[*]"`. Empty unless the mapper
    /// was created by [`Mapper::describing`].
    pub fn words(&self) -> &[String] {
        self.describe.as_deref().unwrap_or_default()
    }
}

/// Extends a bit mask of dictionaries by all dictionaries that share cells with one of them.
pub(crate) fn close_over_fusion(mask: u64, dicts: &[DictInfo]) -> u64 {
    dicts.iter().filter(|d| mask & (1 << d.index) != 0).fold(mask, |whole, d| {
        dicts.iter().filter(|o| o.group_seed == d.group_seed).fold(whole, |w, o| w | 1 << o.index)
    })
}
