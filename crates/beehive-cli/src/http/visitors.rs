//! Who is connected: where the house is full, whoever came first and asks nothing right now has to go for who comes.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

/// All that are connected, in the order in which they came.
#[derive(Clone, Default)]
pub(super) struct Visitors {
    all: Arc<Mutex<Present>>,
}

#[derive(Default)]
struct Present {
    next: u64,
    visitors: BTreeMap<u64, Visitor>,
}

struct Visitor {
    busy: Arc<AtomicBool>,
    /// Dropped when it has to go.
    _stay: oneshot::Sender<()>,
}

/// The place of one that is connected; free when dropped.
pub(super) struct Place {
    visitors: Visitors,
    number: u64,
    busy: Arc<AtomicBool>,
}

/// Lasts while a request is being answered.
pub(super) struct Busy(Arc<AtomicBool>);

impl Visitors {
    /// A place for one more, and what ends when it has to go.
    pub(super) fn enter(&self) -> (Place, oneshot::Receiver<()>) {
        let (stay, over) = oneshot::channel();
        let busy = Arc::<AtomicBool>::default();
        let mut present = self.all.lock();
        let number = present.next;
        present.next += 1;
        present.visitors.insert(number, Visitor { busy: busy.clone(), _stay: stay });
        drop(present);
        (Place { visitors: self.clone(), number, busy }, over)
    }

    /// Sends one away that asks nothing right now; false if there is none.
    pub(super) fn send_one_away(&self) -> bool {
        let mut present = self.all.lock();
        let idle = |visitor: &Visitor| !visitor.busy.load(Ordering::Acquire);
        let first = present.visitors.iter().find(|(_, visitor)| idle(visitor)).map(|(number, _)| *number);
        first.and_then(|number| present.visitors.remove(&number)).is_some()
    }
}

impl Place {
    /// A request has come.
    pub(super) fn ask(&self) -> Busy {
        self.busy.store(true, Ordering::Release);
        Busy(self.busy.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.visitors.all.lock().visitors.remove(&self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_and_asks_nothing_has_to_go() {
        let visitors = Visitors::default();
        let mut all: Vec<_> = (0..4).map(|_| visitors.enter()).collect();
        let asks = all[0].0.ask();
        let gone = |all: &mut Vec<(Place, oneshot::Receiver<()>)>| {
            let closed = oneshot::error::TryRecvError::Closed;
            all.iter_mut().map(|(_, over)| over.try_recv() == Err(closed.clone())).collect::<Vec<_>>()
        };
        assert!(visitors.send_one_away());
        assert_eq!(gone(&mut all), [false, true, false, false]);
        drop(asks);
        assert!(visitors.send_one_away());
        assert_eq!(gone(&mut all), [true, true, false, false]);
        all.truncate(3); // one leaves by itself
        assert!(visitors.send_one_away() && !visitors.send_one_away(), "nobody is left");
        assert_eq!(gone(&mut all), [true; 3]);
        drop(all);
        assert!(visitors.all.lock().visitors.is_empty());
    }

    #[test]
    fn who_is_being_answered_stays() {
        let visitors = Visitors::default();
        let (place, _over) = visitors.enter();
        let _asks = place.ask();
        assert!(!visitors.send_one_away());
    }
}
