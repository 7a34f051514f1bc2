//! Limits the number of connections that have not completed the handshake. When the limit is reached, the oldest of
//! them is evicted.
//!
//! A real switch completes the handshake in milliseconds, so a
//! peer that opens many silent connections mostly evicts its own.

use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// The connections that have not completed the handshake, oldest first.
#[derive(Debug, Default)]
pub(super) struct HalfOpen(Mutex<VecDeque<oneshot::Sender<()>>>);

/// The slot of one connection. Dropping this value frees the slot.
#[derive(Debug)]
pub(super) struct Slot(oneshot::Receiver<()>);

impl HalfOpen {
    /// Takes a slot. If `max` slots are already taken, the oldest connection is evicted.
    pub(super) fn add(&self, max: usize) -> Slot {
        let (evict, evicted) = oneshot::channel();
        let mut waiting = self.0.lock();
        if waiting.len() >= max {
            waiting.retain(|w| !w.is_closed());
        }

        if waiting.len() >= max
            && let Some(oldest) = waiting.pop_front()
        {
            // the connection may have ended meanwhile
            let _ = oldest.send(());
        }

        waiting.push_back(evict);
        Slot(evicted)
    }
}

impl Slot {
    /// Completes when this connection is evicted. Cancel-safe.
    pub(super) async fn evicted(&mut self) {
        if (&mut self.0).await.is_err() {
            // the sender is gone, so this connection can no longer be evicted
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
        assert!(second.0.try_recv().is_err(), "a slot was free");
    }
}
