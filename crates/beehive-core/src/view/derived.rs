//! What was computed from a snapshot, once for all who ask, for as long as the dictionary does not change.

use crate::hash::HashMap;
use parking_lot::RwLock;
use std::any::{Any, TypeId};
use std::sync::{Arc, OnceLock};

type Place = Arc<OnceLock<Arc<dyn Any + Send + Sync>>>;

/// By function: what it made of the cells.
#[derive(Default)]
pub(crate) struct Derived(RwLock<HashMap<TypeId, Place>>);

impl Derived {
    /// What the function with type `F` makes of the cells; `compute` calls it. Who asks while another computes waits for that.
    /// If it panics, whoever asks next tries again.
    pub(crate) fn get_or<T: Send + Sync + 'static, F: 'static>(&self, compute: impl Fn() -> T) -> Arc<T> {
        let function = TypeId::of::<F>();
        let known = self.0.read().get(&function).cloned();
        let place = known.unwrap_or_else(|| self.0.write().entry(function).or_default().clone());
        let value = place.get_or_init(|| Arc::new(compute()));
        // a function returns one type
        value.clone().downcast().unwrap_or_else(|_| Arc::new(compute()))
    }
}
