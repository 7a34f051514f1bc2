//! Memoized values derived from a view by handlers. All readers share them until the dictionary changes.

use crate::hash::HashMap;
use parking_lot::RwLock;
use std::any::{Any, TypeId};
use std::sync::{Arc, OnceLock};

type Place = Arc<OnceLock<Arc<dyn Any + Send + Sync>>>;

/// Derived values, keyed by the type of the function that computes them.
#[derive(Default)]
pub(crate) struct Derived(RwLock<HashMap<TypeId, Place>>);

impl Derived {
    /// Returns the value that the function of type `F` derives from the cells; `compute` calls that function.
    /// While one caller computes the value, concurrent callers wait for it. If the function panics, the next
    /// caller tries again.
    pub(crate) fn get_or<T: Send + Sync + 'static, F: 'static>(&self, compute: impl Fn() -> T) -> Arc<T> {
        let function = TypeId::of::<F>();
        let known = self.0.read().get(&function).cloned();
        let place = known.unwrap_or_else(|| self.0.write().entry(function).or_default().clone());
        let value = place.get_or_init(|| Arc::new(compute()));
        // The downcast succeeds, because a function has one return type.
        value.clone().downcast().unwrap_or_else(|_| Arc::new(compute()))
    }
}
