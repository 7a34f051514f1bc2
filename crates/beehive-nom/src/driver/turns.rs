//! Drivers that have more to say than the hive can handle take turns, in the order in which they came. In its turn, a
//! driver hands one batch of packets to the hive. The turn ends when the hive has handled the batch, so the packets in
//! flight are those of at most [`limits::TURNS_MAX`](crate::limits::TURNS_MAX) drivers.

use crate::driver::Capacity;
use crate::limits;
use beehive::Time;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Waits for the next free turn. Dropping it gives up the place in the queue.
type Wait = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// The turn of one driver, or its place in the queue.
#[derive(Default)]
pub(super) enum Turn {
    /// It is not the driver's turn, and the driver does not wait for it.
    #[default]
    None,
    Waiting(Wait),
    Ours {
        /// Returns the turn when it is dropped.
        _permit: OwnedSemaphorePermit,
        since: Option<Time>,
    },
}

impl Turn {
    /// Returns whether it is the driver's turn.
    #[inline]
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Turn::Ours { .. })
    }

    /// Returns whether the driver waits for its turn.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self, Turn::Waiting(_))
    }

    /// Returns whether packets were handed to the hive in this turn.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        matches!(self, Turn::Ours { since: Some(_), .. })
    }

    /// Takes a turn, or a place in the queue. Returns whether it is the driver's turn now.
    pub(super) fn begin(&mut self, capacity: &Capacity) -> bool {
        if let Turn::None = self {
            let turns: &Arc<Semaphore> = capacity.turns();
            *self = match turns.clone().try_acquire_owned() {
                Ok(permit) => Turn::Ours { _permit: permit, since: None },
                Err(_) => {
                    let turns = turns.clone();
                    Turn::Waiting(Box::pin(async move { turns.acquire_owned().await.ok() }))
                }
            }
        }
        self.is_ours()
    }

    /// Waits for the driver's turn, for ever if it does not [wait](Turn::is_awaited) for one. Cancel-safe: the driver keeps
    /// its place in the queue.
    pub(super) async fn come(&mut self) {
        let Turn::Waiting(wait) = self else { return std::future::pending().await };
        let permit = wait.await;
        *self = match permit {
            Some(permit) => Turn::Ours { _permit: permit, since: None },
            None => Turn::None,
        }
    }

    /// Records that packets are handed to the hive.
    pub(super) fn hand_over(&mut self, now: Time) {
        if let Turn::Ours { since, .. } = self {
            since.get_or_insert(now);
        }
    }

    /// Returns whether the turn has lasted too long.
    pub(super) fn is_over(&self, now: Time) -> bool {
        matches!(self, Turn::Ours { since: Some(since), .. } if now.since(*since) >= limits::TURN_TIME_MAX)
    }

    /// Ends the turn, or gives up the place in the queue.
    pub(super) fn end(&mut self) {
        *self = Turn::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};
    use std::time::Duration;

    /// Polls [`Turn::come`] once, and returns whether it is the driver's turn. Then drops the future, as `select!` does.
    fn comes(turn: &mut Turn) -> bool {
        let mut coming = std::pin::pin!(turn.come());
        coming.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn all_taken(capacity: &Capacity) -> Vec<Turn> {
        let mut turns: Vec<_> = (0..limits::TURNS_MAX).map(|_| Turn::default()).collect();
        assert!(turns.iter_mut().all(|turn| turn.begin(capacity)));
        turns
    }

    #[test]
    fn drivers_get_their_turns_in_the_order_in_which_they_came() {
        let capacity = Capacity::default();
        let mut taken = all_taken(&capacity);
        let mut waiting: Vec<_> = (0..3).map(|_| Turn::default()).collect();
        for turn in &mut waiting {
            assert!(!turn.begin(&capacity) && turn.is_awaited());
            assert!(!comes(turn))
        }

        // the place in the queue is kept, however often the driver looks
        assert!(!comes(&mut waiting[1]) && !comes(&mut waiting[0]));
        taken.pop();
        assert!(!comes(&mut waiting[2]) && !comes(&mut waiting[1]) && comes(&mut waiting[0]));

        // who has had a turn is last, also if a turn is free at that moment
        waiting[0].end();
        assert!(!waiting[0].begin(&capacity) && !comes(&mut waiting[0]));
        assert!(!comes(&mut waiting[2]) && comes(&mut waiting[1]))
    }

    #[test]
    fn a_driver_that_leaves_gives_up_its_turn_and_its_place() {
        let capacity = Capacity::default();
        let taken = all_taken(&capacity);
        let (mut first, mut second) = (Turn::default(), Turn::default());
        for turn in [&mut first, &mut second] {
            assert!(!turn.begin(&capacity) && !comes(turn))
        }
        drop(first);
        drop(taken);
        assert!(comes(&mut second));
        second.end();
        assert_eq!(all_taken(&capacity).len(), limits::TURNS_MAX as usize)
    }

    #[test]
    fn a_turn_is_over_some_time_after_packets_were_handed_over() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut turn = Turn::default();
        turn.hand_over(at(0));
        assert!(turn.begin(&Capacity::default()) && !turn.is_used() && !turn.is_over(at(99_999)));
        turn.hand_over(at(5));
        turn.hand_over(at(50));
        let over = 5 + limits::TURN_TIME_MAX.as_millis() as u64;
        assert!(turn.is_used() && !turn.is_over(at(over - 1)) && turn.is_over(at(over)))
    }
}
