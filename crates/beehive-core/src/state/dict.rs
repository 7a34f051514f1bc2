//! `Dict`: a typed map in which every entry is a cell.

use crate::cell::CellId;
use crate::key::{Key, KeyEncoding};
use crate::mapper::{DictInfo, DictMeta};
use crate::message::Value;
use crate::shape::Shape;
use crate::state::column::Column;
use crate::state::guard;
use crate::state::image::{CellImage, DecodeError, Op, Redo, decode, encode, words};
use crate::state::slots::{Slot, Slots};
use crate::state::undo::{LentLog, Mark};
use crate::view;
use crate::view::{DictChange, DictMirror, Mirror, SharedDict};
use std::any::Any;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// An app's dictionary, in which every key is a cell of its own.
///
/// A handler accesses cells by key, and may access only those named by its derived map. `whole()` makes one bee own all
/// cells. A failed transaction undoes all its changes.
///
/// A dictionary cannot be passed to a function, because the function might touch any cell. Use a method in the
/// `#[handlers]` block instead, or pass the function the content of only one cell.
///
/// ```compile_fail,E0277
/// # extern crate beehive_core as beehive;
/// # use beehive::{App, Dict, Message, handlers};
/// # #[derive(Message)]
/// # struct Reset(u64);
/// # #[derive(App)]
/// # struct Counters { count: Dict<u64, u64> }
/// fn reset(count: &mut Dict<u64, u64>, key: u64) {
///     count.put(key, 0);
/// }
/// #[handlers]
/// impl Counters {
///     #[rcv]
///     fn reset(&mut self, msg: &Reset) {
///         reset(&mut self.count, msg.0)
///     }
/// }
/// ```
///
/// A dictionary cannot be moved out of its field, for example with [`std::mem::swap`], because the move would not be undone
/// if the handler failed. A handler that does this does not compile or, if its map is written by hand, fails with an error
/// of kind [`Unmapped`](crate::ErrorKind::Unmapped). Only fields hold dictionaries: an app has no way to make one.
///
/// ```compile_fail,E0277
/// # extern crate beehive_core as beehive;
/// # use beehive::{App, Dict, Mapper, Message, handlers};
/// # #[derive(Message)]
/// # struct Reset(u64);
/// # #[derive(App)]
/// # struct Counters { count: Dict<u64, u64> }
/// # fn none(_: &Reset, _: &mut Mapper) {}
/// #[handlers]
/// impl Counters {
///     #[rcv(map = none)]
///     fn reset(&mut self, msg: &Reset) {
///         std::mem::take(&mut self.count);
///     }
/// }
/// ```
///
/// There are no ranges of cells, because a map could not name the owners of a range. Keep data that needs
/// ranges as rows of a [`Table`](crate::Table).
///
/// ```compile_fail,E0277
/// # extern crate beehive_core as beehive;
/// # use beehive::{App, Dict, Message, handlers};
/// # #[derive(Message)]
/// # struct Sum(u64, u64);
/// # #[derive(App)]
/// # struct Counters { count: Dict<u64, u64> }
/// #[handlers]
/// impl Counters {
///     #[rcv]
///     fn sum(&mut self, msg: &Sum) {
///         for (_, count) in self.count.range(msg.0..msg.1) {}
///     }
/// }
/// ```
pub struct Dict<K: 'static, V> {
    meta: &'static DictMeta<K>,
    cells: Slots<K, V>,
    undo: LentLog<Undo<K, V>>,
}

/// Shows only the name, because the cells that a dictionary holds here depend on their distribution over bees.
/// [`Dict::whole`] and [`Dict::shared`] show the cells.
impl<K, V> fmt::Debug for Dict<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dict").field("name", &self.meta.name).finish_non_exhaustive()
    }
}

struct Undo<K, V> {
    id: CellId,
    key: K,
    old: Option<V>,
}

impl<K, V> Dict<K, V> {
    /// Returns an empty dictionary. Called by generated code.
    #[doc(hidden)]
    pub fn open(meta: &'static DictMeta<K>) -> Self {
        Dict { meta, cells: Slots::None, undo: LentLog::default() }
    }
}

impl<K: Key, V: Value> Dict<K, V> {
    /// Returns the value of `key`.
    #[inline]
    pub fn get<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let id = guard::check(self.meta, key);
        self.cells.find(id, key).map(|s| &s.content)
    }

    /// Checks whether `key` has a value.
    #[inline]
    pub fn contains<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Returns the value of `key` for modification. This clones the value once per transaction, so keep a
    /// collection that grows in a [`Table`](crate::Table) instead.
    #[inline]
    pub fn get_mut<Q: KeyEncoding + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let id = guard::check(self.meta, key);
        let slot = self.cells.find_mut(id, key)?;
        log(&mut self.undo, id, &slot.key, || Some(slot.content.clone()));
        Some(&mut slot.content)
    }

    /// Sets the value of `key`. Returns the previous value.
    #[inline]
    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        let id = guard::check(self.meta, &key);
        self.put_at(id, key, value)
    }

    fn put_at(&mut self, id: CellId, key: K, value: V) -> Option<V> {
        match self.cells.find_mut(id, &key) {
            Some(slot) => {
                // Log the old value before anything changes, because `clone` may panic.
                log(&mut self.undo, id, &slot.key, || Some(slot.content.clone()));
                Some(std::mem::replace(&mut slot.content, value))
            }
            None => {
                log(&mut self.undo, id, &key, || None);
                self.cells.insert(id, key, value);
                None
            }
        }
    }

    /// Removes `key`. Returns its value.
    #[inline]
    pub fn remove<Q: KeyEncoding + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let id = guard::check(self.meta, key);
        self.remove_at(id, key)
    }

    fn remove_at<Q: Eq + ?Sized>(&mut self, id: CellId, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let slot = self.cells.find(id, key)?;
        log(&mut self.undo, id, &slot.key, || Some(slot.content.clone()));
        self.cells.remove(id, key).map(|slot| slot.content)
    }

    /// Returns the entry of `key`, for insertion or modification in place.
    #[inline]
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        let id = guard::check(self.meta, &key);
        Entry { dict: self, id, key }
    }

    /// Calls `change` on the value of `key`, inserting `V::default()` first if there is none. Returns the
    /// result of `change`.
    #[inline]
    pub fn update<R>(&mut self, key: K, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        change(self.entry(key).or_default())
    }

    /// Returns all cells of the dictionary. They are then all owned by one bee.
    ///
    /// A handler that calls this makes the dictionary *centralized*: every handler of the app that touches the
    /// dictionary runs on that bee.
    pub fn whole(&mut self) -> WholeDict<'_, K, V> {
        guard::check_whole(self.meta);
        WholeDict { dict: self }
    }

    /// Returns a read-only view of all cells, regardless of which bees own them. The view contains committed state,
    /// which may be slightly stale, and its cells are not part of the handler's map. Use the view to find a cell,
    /// then confirm the decision at the cell itself.
    ///
    /// A volatile dictionary has no view, because its changes are not logged:
    ///
    /// ```compile_fail,E0080
    /// # extern crate beehive_core as beehive;
    /// # use beehive::{App, Dict, Message, handlers};
    /// # #[derive(Message)]
    /// # #[message(reply = u64)]
    /// # struct Count;
    /// # #[derive(App)]
    /// # struct Hosts {
    /// #[volatile]
    /// heard: Dict<u64, u64>,
    /// # }
    /// # #[handlers]
    /// # impl Hosts {
    /// # #[rcv]
    /// fn count(&mut self, _: &Count) -> u64 {
    ///     self.heard.shared().len() as u64
    /// }
    /// # }
    /// # let _ = beehive::Hive::builder().app::<Hosts>();
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if called outside a handler and outside [`Hive::read`](crate::Hive::read). If the view is older
    /// than the dictionary's `#[shared(max_age = "..")]` allows, the transaction fails here with an error of
    /// kind [`Stale`](crate::ErrorKind::Stale).
    #[inline]
    pub fn shared(&self) -> SharedDict<K, V> {
        let DictMeta { name, index, max_age, .. } = self.meta;
        SharedDict::new(view::pinned(name, *index, *max_age, || self.mirror()), self.meta)
    }

    fn mirror(&self) -> DictMirror<K, V> {
        let (mut mirror, mut changes) = (DictMirror::default(), Vec::new());
        self.contents(&mut changes);
        changes.iter().for_each(|change| mirror.apply(change));
        mirror
    }
}

#[inline]
fn log<K: Key, V>(undo: &mut LentLog<Undo<K, V>>, id: CellId, key: &K, old: impl FnOnce() -> Option<V>) {
    undo.note(
        |u| u.id == id && u.key == *key,
        |_, u| u.id.0,
        |_| id.0,
        || Undo { id, key: key.clone(), old: old() },
    )
}

/// The entry of one key in a [`Dict`], occupied or vacant.
pub struct Entry<'a, K: 'static, V> {
    dict: &'a mut Dict<K, V>,
    id: CellId,
    key: K,
}

impl<K: Key + fmt::Debug, V: fmt::Debug> fmt::Debug for Entry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.dict.cells.find(self.id, &self.key).map(|slot| &slot.content);
        f.debug_struct("Entry").field("key", &self.key).field("value", &value).finish()
    }
}

impl<'a, K: Key, V: Value> Entry<'a, K, V> {
    /// Inserts `value` if the entry is vacant. Returns the entry's value.
    #[inline]
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// Inserts the result of `make` if the entry is vacant. Returns the entry's value.
    #[inline]
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        let Entry { dict, id, key } = self;
        // Look the cell up twice, because the borrow checker does not allow one branch to return the borrow from the
        // first lookup.
        if dict.cells.find(id, &key).is_some() {
            let slot = dict.cells.find_mut(id, &key).expect("found a moment ago");
            log(&mut dict.undo, id, &slot.key, || Some(slot.content.clone()));
            return &mut slot.content;
        }

        log(&mut dict.undo, id, &key, || None);
        &mut dict.cells.insert(id, key, make()).content
    }

    /// Inserts `V::default()` if the entry is vacant. Returns the entry's value.
    #[inline]
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Calls `change` on the value if the entry is occupied.
    #[inline]
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Self {
        if let Some(slot) = self.dict.cells.find_mut(self.id, &self.key) {
            log(&mut self.dict.undo, self.id, &slot.key, || Some(slot.content.clone()));
            change(&mut slot.content);
        }
        self
    }
}

/// All cells of a [`Dict`], in key order.
pub struct WholeDict<'a, K: 'static, V> {
    dict: &'a mut Dict<K, V>,
}

impl<K: Key + fmt::Debug, V: Value + fmt::Debug> fmt::Debug for WholeDict<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Key, V: Value> WholeDict<'_, K, V> {
    /// Iterates over the keys and their values, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.dict.cells.sorted().into_iter().map(|s| (&s.key, &s.content))
    }

    /// Iterates over keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over values, in key order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.dict.cells.len()
    }

    /// Checks whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.dict.cells.is_empty()
    }

    /// Returns the value of `key`.
    pub fn get<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let id = self.dict.meta.cell(guard::seed(), key);
        self.dict.cells.find(id, key).map(|s| &s.content)
    }

    /// Sets the value of `key`. Returns the previous value.
    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        let id = self.dict.meta.cell(guard::seed(), &key);
        self.dict.put_at(id, key, value)
    }

    /// Removes `key`. Returns its value.
    pub fn remove<Q: KeyEncoding + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let id = self.dict.meta.cell(guard::seed(), key);
        self.dict.remove_at(id, key)
    }

    /// Calls `change` on every value, in key order.
    pub fn for_each_mut(&mut self, mut change: impl FnMut(&K, &mut V)) {
        let undo = &mut self.dict.undo;
        for slot in self.dict.cells.sorted_mut() {
            log(undo, slot.id, &slot.key, || Some(slot.content.clone()));
            change(&slot.key, &mut slot.content);
        }
    }

    /// Keeps the entries for which `keep` returns true. Calls `keep` in key order.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        let gone: Vec<_> = self
            .dict
            .cells
            .sorted()
            .into_iter()
            .filter(|s| !keep(&s.key, &s.content))
            .map(|s| (s.id, s.key.clone()))
            .collect();

        for (id, key) in gone {
            self.dict.remove_at(id, &key);
        }
    }
}

impl<K: Key, V: Value> Dict<K, V> {
    fn put_back(&mut self, entry: Undo<K, V>) {
        let Undo { id, key, old } = entry;
        // Drop the value at the end of the function, because its drop may panic.
        let _undone = self.cells.remove(id, &key);
        if let Some(old) = old {
            self.cells.insert(id, key, old);
        }
    }
}

impl<K: Key, V: Value> Column for Dict<K, V> {
    type Mark = Mark;
    type Mirror = DictMirror<K, V>;

    fn changes(&self, out: &mut Vec<DictChange<K, V>>) {
        out.extend(self.undo.entries().iter().map(|Undo { id, key, .. }| DictChange {
            id: *id,
            key: key.clone(),
            value: self.cells.find(*id, key).map(|slot| Arc::new(slot.content.clone())),
        }))
    }

    fn contents(&self, out: &mut Vec<DictChange<K, V>>) {
        out.extend(self.cells.sorted().into_iter().map(|slot| DictChange {
            id: slot.id,
            key: slot.key.clone(),
            value: Some(Arc::new(slot.content.clone())),
        }))
    }

    fn change_of(&self, seed: u64, op: &Op) -> Result<DictChange<K, V>, DecodeError> {
        let key: K = decode("a key", op.key)?;
        let value = op.value.map(|value| decode("a value", value).map(Arc::new)).transpose()?;
        Ok(DictChange { id: self.meta.cell(seed, &key), key, value })
    }

    fn info(&self) -> DictInfo {
        self.meta.info()
    }

    #[inline(always)]
    fn index(&self) -> u32 {
        self.meta.index
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Dict::open(self.meta))
    }

    #[inline(always)]
    fn commit(&mut self) {
        self.undo.clear()
    }

    fn rollback(&mut self) {
        while let Some(entry) = self.undo.pop() {
            self.put_back(entry)
        }
    }

    fn mark(&mut self) -> Mark {
        self.undo.mark()
    }

    fn settle(&mut self, mark: Mark, keep: bool) {
        while !keep && let Some(entry) = self.undo.pop_since(&mark) {
            self.put_back(entry)
        }
        self.undo.release(&mark)
    }

    fn redo(&self, out: &mut Redo) {
        let undo = self.undo.entries();
        // Almost every transaction changes one cell once and so needs no set.
        let mut known = BTreeSet::new();
        for entry in undo {
            if undo.len() > 1 && !known.insert((entry.id, &entry.key)) {
                continue;
            }

            // The first entry of a cell contains the value from before the transaction.
            let (value, old) = (self.cells.find(entry.id, &entry.key).map(|s| &s.content), &entry.old);
            out.encode_change(self.meta.index, &entry.key, None::<&()>, value, old.as_ref())
        }
    }

    fn is_dirty(&self) -> bool {
        !self.undo.is_empty()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    fn len(&self) -> usize {
        self.cells.len()
    }

    fn export(&self, out: &mut Vec<CellImage>) {
        out.extend(self.cells.sorted().into_iter().map(|slot| CellImage {
            dict: self.meta.index,
            key: encode(&slot.key),
            rows: vec![(Vec::new(), encode(&slot.content))],
        }))
    }

    fn import(&mut self, seed: u64, image: &CellImage) -> Result<CellId, DecodeError> {
        let key: K = decode("a key", &image.key)?;
        let [(row, value)] = image.rows.as_slice() else {
            return Err(DecodeError {
                what: "a cell",
                why: format!("{} values instead of one", image.rows.len()),
            });
        };

        if !row.is_empty() {
            return Err(DecodeError {
                what: "a cell",
                why: "it has rows, but its dictionary has none".into(),
            });
        }

        let id = self.meta.cell(seed, &key);
        let value = decode("a value", value)?;
        self.cells.remove(id, &key);
        self.cells.insert(id, key, value);
        Ok(id)
    }

    fn set(&mut self, seed: u64, op: &Op) -> Result<(), DecodeError> {
        let key: K = decode("a key", op.key)?;
        let id = self.meta.cell(seed, &key);
        // Drop the value at the end of the function, because its drop may panic.
        let _old = self.cells.remove(id, &key);
        if let Some(value) = op.value {
            let value = decode("a value", value)?;
            self.cells.insert(id, key, value);
        }
        Ok(())
    }

    fn cells(&self, with: &mut dyn FnMut(CellId, &dyn Any)) {
        self.cells.sorted().into_iter().for_each(|slot| with(slot.id, &slot.key))
    }

    fn shape(&self) -> Shape {
        Shape::Map(Box::new(Shape::of::<K>()), Box::new(Shape::of::<V>()))
    }

    fn in_words(&self, out: &mut Vec<(String, String)>) {
        let words = |slot: &Slot<K, V>| (guard::words(self.meta.name, &slot.key), words(&slot.content));
        out.extend(self.cells.sorted().into_iter().map(words))
    }

    fn clear(&mut self) {
        self.cells = Slots::None;
        self.undo.clear();
    }

    #[inline(always)]
    fn lend(&mut self, other: &mut Self) {
        self.undo.lend(&mut other.undo)
    }

    fn absorb(&mut self, other: &mut Self) {
        for slot in other.cells.drain() {
            self.cells.insert(slot.id, slot.key, slot.content);
        }
    }
}
