//! A hash table of an app's bees by id. It stores only one pointer per bee, because the bee itself contains
//! its id.

use crate::app::App;
use crate::cell::BeeId;
use crate::hive::bee::lifecycle::Bee;
use hashbrown::HashTable;
use std::sync::Arc;

pub(crate) struct BeesById<A: App>(HashTable<Arc<Bee<A>>>);

impl<A: App> Default for BeesById<A> {
    fn default() -> Self {
        BeesById(HashTable::new())
    }
}

impl<A: App> BeesById<A> {
    pub(crate) fn get(&self, id: BeeId) -> Option<&Arc<Bee<A>>> {
        self.0.find(id.table_hash(), |bee| bee.id == id)
    }

    /// Adds a bee and removes any earlier bee with the same id.
    pub(crate) fn insert(&mut self, bee: Arc<Bee<A>>) {
        self.remove(bee.id);
        self.0.insert_unique(bee.id.table_hash(), bee, |bee| bee.id.table_hash());
    }

    pub(crate) fn remove(&mut self, id: BeeId) {
        if let Ok(found) = self.0.find_entry(id.table_hash(), |bee| bee.id == id) {
            found.remove();
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Bee<A>>> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
