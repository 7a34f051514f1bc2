//! The tasks of a wire, so that nothing outlives it.

use hyper::rt::Executor;
use std::future::Future;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Spawns tasks, and ends them. A scope inside another one ends with it.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    runtime: Handle,
    end: CancellationToken,
    running: TaskTracker,
}

impl Scope {
    pub(super) fn new(runtime: Handle) -> Scope {
        Scope { runtime, end: CancellationToken::new(), running: TaskTracker::new() }
    }

    /// Makes a scope inside this one. Its tasks also count as tasks of this one.
    pub(super) fn inside(&self) -> Scope {
        Scope { runtime: self.runtime.clone(), end: self.end.child_token(), running: self.running.clone() }
    }

    /// Spawns a task. It is dropped, between two polls, when the scope ends.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        let task = async move {
            tokio::select! {
                biased;
                () = end.cancelled() => {}
                () = task => {}
            }
        };
        self.running.spawn_on(task, &self.runtime);
    }

    /// Ends all tasks, without waiting for them.
    pub(super) fn end(&self) {
        self.end.cancel()
    }

    /// Waits until the scope is ended.
    pub(super) async fn ended(&self) {
        self.end.cancelled().await
    }

    /// Waits until no task runs. No task may be spawned after that.
    pub(super) async fn finished(&self) {
        self.running.close();
        self.running.wait().await
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Scope {
    fn execute(&self, task: F) {
        self.spawn(task)
    }
}
