//! Connections that are not yet set up: a bounded number, of which the one that waits for longest gives way.
//!
//! A real switch is set up in milliseconds, so whoever opens connections without a word only pushes out his own.

use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Connections that are not yet set up, the oldest first.
#[derive(Debug, Default)]
pub(super) struct HalfOpen(Mutex<VecDeque<oneshot::Sender<()>>>);

/// A connection's place among them; free when dropped.
#[derive(Debug)]
pub(super) struct Slot(oneshot::Receiver<()>);

impl HalfOpen {
    /// A place. If there are more than `max` then, the oldest is told to go.
    pub(super) fn add(&self, max: usize) -> Slot {
        let (evict, evicted) = oneshot::channel();
        let mut waiting = self.0.lock();
        if waiting.len() >= max {
            waiting.retain(|w| !w.is_closed());
        }
        if waiting.len() >= max
            && let Some(oldest) = waiting.pop_front()
        {
            // it may be over by itself
            let _ = oldest.send(());
        }
        waiting.push_back(evict);
        Slot(evicted)
    }
}

impl Slot {
    /// Completes when the place is needed. Cancel-safe.
    pub(super) async fn evicted(&mut self) {
        if (&mut self.0).await.is_err() {
            // nobody can want it back any more
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_gives_way() {
        let half_open = HalfOpen::default();
        let mut first = half_open.add(2);
        let mut second = half_open.add(2);
        let third = half_open.add(2);
        first.evicted().await;
        drop(third);
        let _fourth = half_open.add(2);
        assert!(second.0.try_recv().is_err(), "a place was free");
    }
}
