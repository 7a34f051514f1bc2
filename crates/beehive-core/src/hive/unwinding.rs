//! Catching what unwinds out of user code.

use std::any::Any;
use std::panic::{UnwindSafe, catch_unwind};

#[cfg(panic = "abort")]
compile_error!(
    "Beehive needs `panic = \"unwind\"`: a handler that panics must leave nothing behind but its error, and must not take \
     the hive with it. Remove `panic = \"abort\"` from the profile."
);

#[inline(always)]
pub(crate) fn catch<R>(f: impl FnOnce() -> R + UnwindSafe) -> Result<R, Box<dyn Any + Send>> {
    catch_unwind(f)
}

/// What a panic said.
pub(crate) fn text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_string()
    }
}
