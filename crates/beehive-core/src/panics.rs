//! Catches panics that unwind out of user code.

use crate::message::Error;
use std::any::Any;
use std::cell::Cell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

#[cfg(panic = "abort")]
compile_error!(
    "Beehive needs `panic = \"unwind\"`: a panic in a handler must fail only its own message, and must not end the process. \
     Remove `panic = \"abort\"` from the profile."
);

#[inline(always)]
pub(crate) fn catch<R>(f: impl FnOnce() -> R + UnwindSafe) -> Result<R, Caught> {
    catch_unwind(f).map_err(|payload| Caught(Some(payload)))
}

/// The payload of a caught panic.
///
/// A payload is a value of the app, so dropping it may panic, and so may dropping the payload of that panic, and so on.
/// Dropping a `Caught` never panics: it leaks the payload of the second panic.
pub(crate) struct Caught(Option<Box<dyn Any + Send>>);

impl Caught {
    /// Returns the payload if it is a `T`.
    pub(crate) fn downcast<T: 'static>(mut self) -> Result<T, Caught> {
        match self.0.take().map(|payload| payload.downcast::<T>()) {
            Some(Ok(payload)) => Ok(*payload),
            Some(Err(payload)) => Err(Caught(Some(payload))),
            None => Err(self),
        }
    }

    /// Continues the panic.
    pub(crate) fn resume(mut self) -> ! {
        // only the methods that consume the payload take it
        resume_unwind(self.0.take().unwrap_or_else(|| Box::new("no message")))
    }
}

impl Deref for Caught {
    type Target = dyn Any + Send;
    fn deref(&self) -> &Self::Target {
        self.0.as_deref().unwrap_or(&())
    }
}

impl Drop for Caught {
    #[cold]
    fn drop(&mut self) {
        if let Some(payload) = self.0.take()
            && let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
        {
            std::mem::forget(again)
        }
    }
}

thread_local! {
    static IN_MAP: Cell<bool> = const { Cell::new(false) };
}

/// Same as [`catch`], for a map. The panic hook does not report the map's panic, because the handler may never reach
/// the point at which the map panicked. If the handler does reach it, it panics too, and the hook reports that panic.
#[inline(always)]
pub(crate) fn catch_in_map<R>(f: impl FnOnce() -> R) -> Result<R, Caught> {
    IN_MAP.set(true);
    let result = catch(AssertUnwindSafe(f));
    IN_MAP.set(false);
    result
}

/// Wraps the process's panic hook in one that passes on all panics except those in maps. Later calls do nothing.
pub(crate) fn keep_maps_quiet() {
    static WRAPPED: Once = Once::new();
    // On a panicking thread, `take_hook` would panic.
    if std::thread::panicking() {
        return;
    }

    WRAPPED.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IN_MAP.get() {
                hook(panic)
            }
        }))
    })
}

/// The payload with which the platform unwinds to end a transaction. App code cannot name this type, so the platform
/// never mistakes an app's panic for its own unwinding, even if the panic's payload is an [`Error`].
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Error);

/// Returns the message of a panic.
pub(crate) fn text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else if let Some(error) = panic.downcast_ref::<Error>() {
        error.text().to_string()
    } else {
        "no message".to_string()
    }
}

/// Logs a panic caused by an app's value that cannot be attributed to a message.
#[cold]
fn say(panic: Caught) {
    let why = text(&*panic);
    tracing::error!(%why, "a value of an app panicked when it was dropped, encoded or read");
}

/// Calls `work` until it returns without a panic. Meant for work that drops an app's values. Each call must resume
/// after the value that panicked.
#[inline(always)]
pub(crate) fn to_the_end(mut work: impl FnMut()) {
    while let Err(panic) = catch(AssertUnwindSafe(&mut work)) {
        say(panic)
    }
}

/// Runs `work`, which calls app code. If it panics, logs the panic and returns `None`.
#[inline(always)]
pub(crate) fn harmless<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch(AssertUnwindSafe(work)).map_err(say).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload whose drop panics with another payload of this type.
    struct Endless;
    impl Drop for Endless {
        fn drop(&mut self) {
            resume_unwind(Box::new(Endless))
        }
    }

    fn caught() -> Caught {
        catch(|| resume_unwind(Box::new(Endless))).expect_err("it panics")
    }

    #[test]
    fn a_payload_whose_drop_panics_again_and_again_is_dropped_without_a_panic() {
        drop(caught());
        assert!(caught().downcast::<u8>().is_err());
        assert_eq!(harmless(|| drop(Endless)), None);
        let mut left = 3;
        to_the_end(|| {
            while left > 0 {
                left -= 1;
                drop(Endless)
            }
        });
        assert_eq!(left, 0);
    }

    #[test]
    fn a_caught_panic_continues_with_its_own_payload() {
        let again = catch(|| catch(|| resume_unwind(Box::new(7u8))).map_err(Caught::resume)).err();
        assert_eq!(again.and_then(|panic| panic.downcast::<u8>().ok()), Some(7));
    }
}
