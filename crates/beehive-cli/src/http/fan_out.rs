//! Asking many switches: some at the same time, and whoever is silent keeps none of the others waiting.

use crate::api::Failure;
use beehive_nom::object::NodeId;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Switches that tell at the same time: what they tell is in memory.
const CONCURRENT_MAX: usize = 16;
/// How long a switch may be silent before the next one is asked, too. It is listened to nevertheless.
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// Pause between two looks at whether a switch has told its flows.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The same, at one that has been silent.
const POLL_INTERVAL_SILENT: Duration = Duration::from_millis(200);

/// What is asked of switches, and comes as they answer.
pub(super) type Queries<T> = JoinSet<(NodeId, Result<T, Failure>)>;

/// Asks each of `nodes`; ends with the set that is returned.
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

/// What one of them answers, whoever is first; none: all have.
pub(super) async fn next<T: 'static>(queries: &mut Queries<T>) -> Result<Option<(NodeId, T)>, Failure> {
    let Some(answered) = queries.join_next().await else { return Ok(None) };
    let (node, answer) = answered.map_err(Failure::unavailable)?;
    Ok(Some((node, answer?)))
}

/// A switch's turn to tell. Over when dropped, and earlier if the switch is silent.
#[derive(Debug)]
pub(super) struct QuerySlot {
    slots: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    acquired: Instant,
}

impl QuerySlot {
    /// Waits for it.
    pub(super) async fn acquire(&mut self) {
        // nobody closes it
        self.permit = self.slots.clone().acquire_owned().await.ok();
        self.acquired = Instant::now();
    }

    /// What comes first, until `deadline`. The turn is another one's if nothing has come for long; whoever speaks then waits
    /// for a turn again, so that no more than have one are kept in memory.
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

    /// How long to wait before one looks again. The turn is another one's as soon as it takes long.
    pub(super) fn poll_interval(&mut self) -> Duration {
        if self.acquired.elapsed() < SILENCE_MAX {
            return POLL_INTERVAL;
        }
        self.permit = None;
        POLL_INTERVAL_SILENT
    }
}
