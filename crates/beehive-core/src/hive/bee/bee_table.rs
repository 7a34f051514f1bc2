//! A hash table of an app's bees by id. It stores only one pointer per bee, because the bee itself contains
//! its id.

use crate::cell::BeeId;
use crate::hive::bee::lifecycle::Bee;
use hashbrown::HashTable;
use std::sync::Arc;

pub(crate) struct BeesById(HashTable<Arc<Bee>>);

impl Default for BeesById {
    fn default() -> Self {
        BeesById(HashTable::new())
    }
}

impl BeesById {
    pub(crate) fn get(&self, id: BeeId) -> Option<&Arc<Bee>> {
        self.0.find(id.table_hash(), |bee| bee.id == id)
    }

    /// Adds a bee and removes any earlier bee with the same id.
    pub(crate) fn insert(&mut self, bee: Arc<Bee>) {
        self.remove(bee.id);
        self.0.insert_unique(bee.id.table_hash(), bee, |bee| bee.id.table_hash());
    }

    pub(crate) fn remove(&mut self, id: BeeId) {
        if let Ok(found) = self.0.find_entry(id.table_hash(), |bee| bee.id == id) {
            found.remove();
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Bee>> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
