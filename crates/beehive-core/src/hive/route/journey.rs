//! Deliveries to bees of other hives.
//!
//! Such a delivery stays in its sender's queue until the other hive has committed the records that consume its messages.
//! Until then, the sender's later messages to the same cells wait behind it, so they keep their order although the other
//! hive may refuse them, and although the cells may come to this hive meanwhile. The delivery also keeps its cause, and
//! thus the credits of the work from outside that caused it.

use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::elsewhere::Elsewhere;
use crate::hive::consensus::journal::{AppId, Emits, LaneId};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::QueueState;
use crate::hive::links::frame::ToBee;
use crate::hive::links::links::Links;
use crate::hive::links::sent::{Entry, Fate, Sent};
use crate::mutant::Mutant;
use crate::panics;
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Pause after the first refusal, so that two hives with different replicas of the registry do not ask each other without
/// end. It doubles with each further refusal, up to [`DOUBLINGS_MAX`] times.
const PAUSE: Duration = Duration::from_millis(1);
const DOUBLINGS_MAX: u32 = 6;

/// Size of the messages that are sent together, in bytes. A larger message is sent alone.
const SENT_BYTES_MAX: usize = 1 << 20;

/// Checks whether messages stay in the hive in which they begin: periodic ticks, and news about settings. Each hive has its
/// own, and the hive that owns the cells handles them.
pub(crate) fn stays(delivery: &Delivery) -> bool {
    let name = delivery.batch.message_name();
    delivery.batch.numbers().lane == LaneId::NONE || name.starts_with("beehive::")
}

/// The next step of a delivery that waits in its sender's queue.
pub(crate) enum Next {
    /// Wait: the messages are under way, or were refused by a hive whose replica of the registry is ahead.
    Wait,
    /// End: this many messages are handled, the first ones of the delivery.
    End(u32),
    /// Find the owner of the cells again.
    Route,
}

/// The state of a delivery that may go to another hive.
#[derive(Default)]
pub(crate) struct Journey {
    /// The messages under way, and their number.
    sent: Option<(Arc<Sent>, u32)>,
    /// Number of refusals since messages were last handled.
    refusals: u32,
    /// The sender's queue, in which the delivery waits. It changes when the sender merges into another bee.
    queue: Arc<Mutex<Weak<QueueState>>>,
}

impl Journey {
    /// Sets the queue in which the delivery waits.
    pub(crate) fn enter(&mut self, queue: &Arc<QueueState>) {
        *self.queue.lock() = Arc::downgrade(queue)
    }

    /// Returns the queue in which the delivery waits.
    pub(crate) fn queue(&self) -> Option<Arc<QueueState>> {
        self.queue.lock().upgrade()
    }

    /// Returns a function that wakes the queue in which the delivery waits.
    fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let queue = self.queue.clone();
        move || {
            let queue = queue.lock().upgrade();
            if let Some(queue) = queue {
                queue.wake()
            }
        }
    }

    /// Lets the delivery wait for a moment, because the owner of its cells is about to move.
    pub(crate) fn rest(&mut self, hive: &HiveInner) {
        let again = Sent::new(self.waker());
        self.sent = Some((again.clone(), 0));
        let (platform, pause) = (hive.platform.clone(), self.pause());
        hive.platform.spawn(Box::pin(async move {
            platform.sleep(pause).await;
            again.decide(Fate::Route)
        }))
    }

    /// Returns the time for which the delivery waits before it is routed again.
    fn pause(&mut self) -> Duration {
        let pause = PAUSE * (1 << self.refusals);
        self.refusals = (self.refusals + 1).min(DOUBLINGS_MAX);
        pause
    }

    /// Checks whether the messages are under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns what the delivery must do next.
    pub(crate) fn next(&mut self, links: &Arc<Links>, hive: &HiveInner) -> Next {
        let Some((sent, count)) = &self.sent else { return Next::Route };
        let count = *count;
        match sent.fate() {
            Fate::UnderWay => Next::Wait,
            Fate::Handled => {
                (self.sent, self.refusals) = (None, 0);
                Next::End(count)
            }
            Fate::Back(index) => {
                // wait for the replica, and then try again
                let (registry, platform) = (links.registry.clone(), hive.platform.clone());
                let again = Sent::new(self.waker());
                self.sent = Some((again.clone(), count));
                let pause = self.pause();
                hive.platform.spawn(Box::pin(async move {
                    platform.sleep(pause).await;
                    registry.wait(index).await;
                    again.decide(Fate::Route)
                }));
                Next::Wait
            }
            Fate::Route => {
                self.sent = None;
                Next::Route
            }
        }
    }

    /// Sends the messages of a delivery to a bee of another hive: as many of the first ones as may be sent together. Returns
    /// `false` if they cannot be encoded.
    pub(crate) fn send(
        &mut self,
        delivery: &mut Delivery,
        app: AppId,
        to: &Elsewhere,
        (links, hive): (&Arc<Links>, &HiveInner),
    ) -> bool {
        if hive.breaks(Mutant::CreditAtSend) {
            delivery.cause = None
        }
        let Delivery { batch, first, count, position, .. } = &*delivery;
        let encoded = panics::catch(AssertUnwindSafe(|| {
            let (mut messages, mut bytes) = (Vec::new(), 0);
            for emit in (*first..first + count).map_while(|index| batch.emit(index, app, *position)) {
                bytes += emit.size();
                if bytes > SENT_BYTES_MAX && !messages.is_empty() {
                    break;
                }
                messages.push(emit)
            }
            messages
        }));
        let Ok(messages) = encoded else {
            tracing::error!(
                message = batch.message_name(),
                "a message to another hive cannot be encoded; it is dropped"
            );
            return false;
        };

        let sent = Sent::new(self.waker());
        self.sent = Some((sent.clone(), messages.len() as u32));
        let lane = batch.numbers().lane;
        let floor = match hive.breaks(Mutant::ForeignFloorTooHigh) {
            true => messages.last().map(|emit| emit.id.seq.next()),
            false => hive.logs.as_ref().and_then(|logs| logs.lanes.floor_of_sender(lane, app)),
        };
        let requester = batch.clone().requester(*first);
        let asks = requester.is_some();
        let entry = Entry {
            to: to.hive,
            colony: to.colony,
            cell: delivery.cells.first().copied(),
            ids: messages.iter().map(|emit| emit.id).collect(),
            sent,
            requester,
        };
        let known = links.registry.index();
        links.send_to_bee(entry, |ticket| ToBee {
            bee: to.bee,
            ticket,
            known,
            floor: floor.unwrap_or_default(),
            asks,
            messages: Emits(messages),
        });
        true
    }
}
