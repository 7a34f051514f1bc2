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
const AT_ONCE: usize = 16;
/// How long a switch may be silent before the next one is asked, too. It is listened to nevertheless.
const SILENCE: Duration = Duration::from_millis(500);
/// Pause between two looks at whether a switch has told its flows.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The same, at one that has been silent.
const LOOK_INTERVAL_SILENT: Duration = Duration::from_millis(200);

/// What is asked of switches, and comes as they answer.
pub(super) type Asked<T> = JoinSet<(NodeId, Result<T, Failure>)>;

/// Asks each of `nodes`; ends with the set that is returned.
pub(super) fn ask_each<T, F>(nodes: Vec<NodeId>, ask: impl Fn(NodeId, Turn) -> F) -> Asked<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut asked = JoinSet::new();
    for node in nodes {
        let answer = ask(node, Turn { places: places.clone(), place: None, begun: Instant::now() });
        asked.spawn(async move { (node, answer.await) });
    }
    asked
}

/// What one of them answers, whoever is first; none: all have.
pub(super) async fn next<T: 'static>(asked: &mut Asked<T>) -> Result<Option<(NodeId, T)>, Failure> {
    let Some(answered) = asked.join_next().await else { return Ok(None) };
    let (node, answer) = answered.map_err(Failure::unavailable)?;
    Ok(Some((node, answer?)))
}

/// A switch's turn to tell. Over when dropped, and earlier if the switch is silent.
#[derive(Debug)]
pub(super) struct Turn {
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
    begun: Instant,
}

impl Turn {
    /// Waits for it.
    pub(super) async fn begin(&mut self) {
        // nobody closes it
        self.place = self.places.clone().acquire_owned().await.ok();
        self.begun = Instant::now();
    }

    /// What comes first, until `deadline`. The turn is another one's if nothing has come for long; whoever speaks then waits
    /// for a turn again, so that no more than have one are kept in memory.
    pub(super) async fn unless_silent<T>(
        &mut self,
        deadline: Instant,
        coming: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::pin!(coming);
        let silent = deadline.min(Instant::now() + SILENCE);
        if let Ok(come) = tokio::time::timeout_at(silent, &mut coming).await {
            return Some(come);
        }
        self.place = None;
        let come = tokio::time::timeout_at(deadline, coming).await.ok()?;
        tokio::time::timeout_at(deadline, self.begin()).await.ok()?;
        Some(come)
    }

    /// How long to wait before one looks again. The turn is another one's as soon as it takes long.
    pub(super) fn look(&mut self) -> Duration {
        if self.begun.elapsed() < SILENCE {
            return LOOK_INTERVAL;
        }
        self.place = None;
        LOOK_INTERVAL_SILENT
    }
}
