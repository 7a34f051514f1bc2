//! Catching what unwinds out of user code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind};

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

/// Says that something has panicked that is nobody's fault but its own.
#[cold]
fn say(panic: Box<dyn Any + Send>) {
    let why = text(&*panic);
    tracing::error!(%why, "a value of an app panicked when it was dropped, encoded or read");
    // what a panic carries may panic when it is dropped
    let _ = catch(AssertUnwindSafe(|| drop(panic)));
}

/// Does work that drops values of an app, also when some of them panic. It must go on where it was, one value further each
/// time.
#[inline(always)]
pub(crate) fn to_the_end(mut work: impl FnMut()) {
    while let Err(panic) = catch(AssertUnwindSafe(&mut work)) {
        say(panic)
    }
}

/// Does something with values of an app that harms nobody when it panics: then there is nothing.
#[inline(always)]
pub(crate) fn harmless<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch(AssertUnwindSafe(work)).map_err(say).ok()
}
