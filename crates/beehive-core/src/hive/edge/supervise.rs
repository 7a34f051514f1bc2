//! Supervision of IO bees: the hive restarts them after a failure, with exponential backoff, until it
//! stops.

use crate::hive::dispatch::inner::Hive;
use crate::hive::edge::io_bee::Io;
use crate::hive::message::batch::Address;
use crate::message::Error;
use crate::panics;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

/// The restart policy of an IO bee: how the hive reacts when the IO bee returns or panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The IO bee ends. For example, it owned a connection that is now closed.
    Never,
    /// The IO bee is restarted after an error or a panic, but not after it has returned `Ok`. The pause
    /// before the restart doubles from `first` up to `most`, and is reset after a run of at least `most`.
    OnFailure {
        /// The first pause.
        first: Duration,
        /// The longest pause.
        most: Duration,
    },
}

impl Restart {
    /// Restarts after a failure, with pauses from 100 ms to 10 s.
    pub const ON_FAILURE: Restart =
        Restart::OnFailure { first: Duration::from_millis(100), most: Duration::from_secs(10) };
}

/// A future that catches panics and returns them as errors.
struct Catching<F>(Option<Pin<Box<F>>>);

impl<F: Future> Future for Catching<F> {
    type Output = Result<F::Output, String>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = self.0.as_mut().map(Pin::as_mut) else { return Poll::Pending };
        match panics::catch(AssertUnwindSafe(|| future.poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panics::text(&*panic))),
        }
    }
}

impl<F> Drop for Catching<F> {
    fn drop(&mut self) {
        // an IO bee that is dropped at an await point drops its locals
        panics::harmless(|| drop(self.0.take()));
    }
}

/// One run of an IO bee. It is registered under its name until this value is dropped.
struct Named {
    hive: Hive,
    name: String,
    id: u64,
}

impl Named {
    fn begin(hive: &Hive, name: &str, id: u64) -> Named {
        hive.inner().io.begin(name, id);
        Named { hive: hive.clone(), name: name.to_string(), id }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        self.hive.inner().io.end(&self.name, self.id)
    }
}

impl Hive {
    /// Returns the address of the IO bee that [`Hive::spawn_io`] or [`Builder::io`](crate::Builder::io)
    /// started under this name. This is the address of the most recent run, or `None` if that run has ended.
    /// Handlers must not depend on which hive they run on, so they get addresses in messages instead.
    pub fn find_io(&self, name: &str) -> Option<Address> {
        let id = self.inner().io.find(name)?;
        Some(Address::Io(self.id(), id))
    }

    /// Runs the IO bee created by `make`. After a failure, calls `make` again, as `restart` specifies. A
    /// panic of the IO bee affects nothing else.
    ///
    /// When the hive stops, the IO bee has the grace period of [`Hive::stop`] to notice [`Io::stopping`] and
    /// return. After that, the IO bee is dropped at its next await point.
    pub fn spawn_io<F, Fut>(&self, name: impl Into<String>, restart: Restart, make: F)
    where
        F: Fn(Io) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let hive = self.clone();
        let name = name.into();
        let inner = self.inner().clone();
        inner.tasks.fetch_add(1, Ordering::AcqRel);

        let task = async move {
            let mut pause = Duration::ZERO;
            while !hive.inner().is_stopped() {
                let began = hive.now();
                let io = hive.io();
                let named = Named::begin(&hive, &name, io.id());

                let made = panics::catch(AssertUnwindSafe(|| make(io)));
                let ended = match made {
                    Ok(made) => tokio::select! {
                        biased;
                        ended = Catching(Some(Box::pin(made))) => ended,
                        () = hive.over() => break,
                    },
                    Err(panic) => Err(panics::text(&*panic)),
                };

                // after this, and during the pause, `find_io` finds no IO bee under this name
                drop(named);
                let failed = match ended {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(panic) => Some(format!("panicked: {panic}")),
                };

                let Some(why) = failed else { break };
                let Restart::OnFailure { first, most } = restart else {
                    tracing::warn!(io = %name, %why, "an IO bee failed and is not restarted");
                    break;
                };

                if hive.now().since(began) >= most {
                    pause = Duration::ZERO
                }
                pause = (pause * 2).clamp(first, most);
                tracing::warn!(io = %name, %why, ?pause, "an IO bee failed and is restarted");

                tokio::select! {
                    biased;
                    () = hive.inner().platform.sleep(pause) => {}
                    () = hive.stopping() => {}
                }
            }

            let inner = hive.inner();
            // `stop` may already have set the count to zero when it gave up on the remaining tasks
            let _ = inner.tasks.fetch_update(Ordering::AcqRel, Ordering::Acquire, |t| t.checked_sub(1));
            inner.tasks_done.notify_waiters();
        };

        inner.platform.spawn(Box::pin(task))
    }
}
