//! `Dict`: a typed map whose every entry is a cell.

use crate::cell::CellId;
use crate::key::{Key, KeyEncoding};
use crate::mapper::{DictInfo, DictMeta};
use crate::message::Value;
use crate::shape::Shape;
use crate::state::column::Column;
use crate::state::guard;
use crate::state::image::{CellImage, DecodeError, Op, decode, encode, words};
use crate::state::slots::{Slot, Slots};
use crate::state::undo::{LentLog, Mark};
use crate::view;
use crate::view::{DictChange, DictMirror, Mirror, SharedDict};
use std::any::Any;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A dictionary of an app: every key is a cell of its own.
///
/// A handler reaches cells by key, and only those its derived map names; `whole()` owns all of them on one bee. Every
/// change is undone if the transaction fails.
///
/// A dictionary cannot be handed to a function, which might touch any cell; a method of the `#[handlers]` block can do the
/// same, and so can a function that is given what one cell holds.
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
/// Nor are there ranges of cells, whose owners nobody could name: what is to be ranged over are rows of a
/// [`Table`](crate::Table).
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

struct Undo<K, V> {
    id: CellId,
    key: K,
    old: Option<V>,
}

impl<K, V> Dict<K, V> {
    /// An empty dictionary; called by the derived code.
    #[doc(hidden)]
    pub fn open(meta: &'static DictMeta<K>) -> Self {
        Dict { meta, cells: Slots::None, undo: LentLog::default() }
    }
}

impl<K: Key, V: Value> Dict<K, V> {
    /// The value of `key`.
    #[inline]
    pub fn get<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let id = guard::check(self.meta, key);
        self.cells.find(id, key).map(|s| &s.content)
    }

    /// Whether `key` has a value.
    #[inline]
    pub fn contains<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The value of `key`, to be changed. Clones it once per transaction, so keep what grows in a
    /// [`Table`](crate::Table).
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

    /// Sets the value of `key`; returns the one before.
    #[inline]
    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        let id = guard::check(self.meta, &key);
        self.put_at(id, key, value)
    }

    fn put_at(&mut self, id: CellId, key: K, value: V) -> Option<V> {
        match self.cells.find_mut(id, &key) {
            Some(slot) => {
                // before anything changes: a `clone` may panic
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

    /// Removes `key`; returns its value.
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

    /// The place of `key`, to be filled if it is empty.
    #[inline]
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        let id = guard::check(self.meta, &key);
        Entry { dict: self, id, key }
    }

    /// Changes the value of `key`, made with `Default` if there is none; returns what `change` returns.
    #[inline]
    pub fn update<R>(&mut self, key: K, change: impl FnOnce(&mut V) -> R) -> R
    where
        V: Default,
    {
        change(self.entry(key).or_default())
    }

    /// All cells of the dictionary, owned by one bee.
    ///
    /// Every handler of the app that touches this dictionary then runs on that bee: it is *centralised*.
    pub fn whole(&mut self) -> WholeDict<'_, K, V> {
        guard::check_whole(self.meta);
        WholeDict { dict: self }
    }

    /// A snapshot of all cells, whoever owns them: read-only, committed, possibly a little old, and no part of the
    /// handler's map. Decide by a snapshot, confirm at the cell.
    ///
    /// There is none of a volatile dictionary, whose changes are not logged:
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
    /// Outside of a handler and of [`Hive::read`](crate::Hive::read). Where the snapshot is older than the dictionary's
    /// `#[shared(max_age = "..")]` allows, the transaction ends here, with an error of kind
    /// [`Stale`](crate::ErrorKind::Stale).
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

/// The place of one key in a [`Dict`].
pub struct Entry<'a, K: 'static, V> {
    dict: &'a mut Dict<K, V>,
    id: CellId,
    key: K,
}

impl<'a, K: Key, V: Value> Entry<'a, K, V> {
    /// The value, after `value` is put in an empty place.
    #[inline]
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// The value, after that of `make` is put in an empty place.
    #[inline]
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        let Entry { dict, id, key } = self;
        // two look-ups on purpose: the borrow of the first cannot be returned
        if dict.cells.find(id, &key).is_some() {
            let slot = dict.cells.find_mut(id, &key).expect("found a moment ago");
            log(&mut dict.undo, id, &slot.key, || Some(slot.content.clone()));
            return &mut slot.content;
        }
        log(&mut dict.undo, id, &key, || None);
        &mut dict.cells.insert(id, key, make()).content
    }

    /// The value, made with `Default` in an empty place.
    #[inline]
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value if there is one.
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

impl<K: Key, V: Value> WholeDict<'_, K, V> {
    /// Keys and values, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.dict.cells.sorted().into_iter().map(|s| (&s.key, &s.content))
    }

    /// Keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.dict.cells.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.dict.cells.is_empty()
    }

    /// The value of `key`.
    pub fn get<Q: KeyEncoding + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let id = self.dict.meta.cell(guard::seed(), key);
        self.dict.cells.find(id, key).map(|s| &s.content)
    }

    /// Sets the value of `key`; returns the one before.
    pub fn put(&mut self, key: K, value: V) -> Option<V> {
        let id = self.dict.meta.cell(guard::seed(), &key);
        self.dict.put_at(id, key, value)
    }

    /// Removes `key`; returns its value.
    pub fn remove<Q: KeyEncoding + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let id = self.dict.meta.cell(guard::seed(), key);
        self.dict.remove_at(id, key)
    }

    /// Changes every value, in key order.
    pub fn for_each_mut(&mut self, mut change: impl FnMut(&K, &mut V)) {
        let undo = &mut self.dict.undo;
        for slot in self.dict.cells.sorted_mut() {
            log(undo, slot.id, &slot.key, || Some(slot.content.clone()));
            change(&slot.key, &mut slot.content);
        }
    }

    /// Keeps the entries for which `keep` is true; asks in key order.
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
        // dropped last: it may panic
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
        let key: K = decode("a key", &op.key)?;
        let value = op.value.as_ref().map(|value| decode("a value", value).map(Arc::new)).transpose()?;
        Ok(DictChange { id: self.meta.cell(seed, &key), key, value })
    }

    fn info(&self) -> DictInfo {
        self.meta.info()
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

    fn redo(&self, out: &mut Vec<Op>) {
        let mut known = BTreeSet::new();
        for entry in self.undo.entries() {
            if known.insert((entry.id, &entry.key)) {
                let value = self.cells.find(entry.id, &entry.key).map(|s| encode(&s.content));
                out.push(Op { dict: self.meta.index, key: encode(&entry.key), row: None, value });
            }
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
