//! Catches panics that unwind out of user code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind};

#[cfg(panic = "abort")]
compile_error!(
    "Beehive needs `panic = \"unwind\"`: a panic in a handler must fail only its own message, and must not end the process. \
     Remove `panic = \"abort\"` from the profile."
);

#[inline(always)]
pub(crate) fn catch<R>(f: impl FnOnce() -> R + UnwindSafe) -> Result<R, Box<dyn Any + Send>> {
    catch_unwind(f)
}

/// Returns the message of a panic.
pub(crate) fn text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_string()
    }
}

/// Logs a panic of a value of an app that cannot be attributed to a message.
#[cold]
fn say(panic: Box<dyn Any + Send>) {
    let why = text(&*panic);
    tracing::error!(%why, "a value of an app panicked when it was dropped, encoded or read");
    // The payload of a panic may itself panic when it is dropped.
    let _ = catch(AssertUnwindSafe(|| drop(panic)));
}

/// Repeats `work` until it returns without a panic. For work that drops values of an app: each call must
/// resume after the value that panicked.
#[inline(always)]
pub(crate) fn to_the_end(mut work: impl FnMut()) {
    while let Err(panic) = catch(AssertUnwindSafe(&mut work)) {
        say(panic)
    }
}

/// Runs `work` on values of an app. Returns `None` if it panics; the panic is logged.
#[inline(always)]
pub(crate) fn harmless<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch(AssertUnwindSafe(work)).map_err(say).ok()
}
