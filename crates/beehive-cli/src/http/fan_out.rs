//! Queries many switches with bounded concurrency. A switch that does not answer does not block queries of other
//! switches.

use crate::api::Failure;
use beehive_nom::object::NodeId;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Maximum number of switches whose answers are held in memory at the same time.
const CONCURRENT_MAX: usize = 16;
/// Time after which the query of a silent switch releases its slot, so that the next switch can be queried. A late
/// answer still counts.
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// Interval at which a query polls whether its switch has reported its flows.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Interval at which a query polls after it has released its slot.
const POLL_INTERVAL_SILENT: Duration = Duration::from_millis(200);

/// Queries in flight. Dropping the set cancels them.
pub(super) type Queries<T> = JoinSet<(NodeId, Result<T, Failure>)>;

/// Starts a query for each of `nodes`. `ask` must acquire the slot before it queries its switch.
pub(super) fn query_each<T, F>(nodes: Vec<NodeId>, ask: impl Fn(NodeId, QuerySlot) -> F) -> Queries<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(CONCURRENT_MAX));
    let mut queries = JoinSet::new();
    for node in nodes {
        let answer = ask(node, QuerySlot { slots: slots.clone(), permit: None, acquired: Instant::now() });
        queries.spawn(async move { (node, answer.await) });
    }
    queries
}

/// Returns the answer of the next switch that completes, or `None` after the last one.
pub(super) async fn next<T: 'static>(queries: &mut Queries<T>) -> Result<Option<(NodeId, T)>, Failure> {
    let Some(answered) = queries.join_next().await else { return Ok(None) };
    let (node, answer) = answered.map_err(Failure::unavailable)?;
    Ok(Some((node, answer?)))
}

/// Permit to query one switch. The permit is released when this value is dropped, or earlier if the switch does not
/// answer.
#[derive(Debug)]
pub(super) struct QuerySlot {
    slots: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    acquired: Instant,
}

impl QuerySlot {
    /// Waits for a permit.
    pub(super) async fn acquire(&mut self) {
        // the semaphore is never closed
        self.permit = self.slots.clone().acquire_owned().await.ok();
        self.acquired = Instant::now();
    }

    /// Waits for `receive` until `deadline`. Releases the permit after [`SILENCE_MAX`] without an answer. Reacquires a
    /// permit before returning a late answer, so that the number of answers in memory stays bounded.
    pub(super) async fn receive_or_release<T>(
        &mut self,
        deadline: Instant,
        receive: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::pin!(receive);
        let silent = deadline.min(Instant::now() + SILENCE_MAX);
        if let Ok(received) = tokio::time::timeout_at(silent, &mut receive).await {
            return Some(received);
        }

        self.permit = None;
        let received = tokio::time::timeout_at(deadline, receive).await.ok()?;
        tokio::time::timeout_at(deadline, self.acquire()).await.ok()?;
        Some(received)
    }

    /// Returns the time until the next poll. Releases the permit once the query has taken longer than [`SILENCE_MAX`].
    pub(super) fn poll_interval(&mut self) -> Duration {
        if self.acquired.elapsed() < SILENCE_MAX {
            return POLL_INTERVAL;
        }
        self.permit = None;
        POLL_INTERVAL_SILENT
    }
}
