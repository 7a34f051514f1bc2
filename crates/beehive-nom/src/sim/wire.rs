//! A cable between two ports: what goes out of one comes in on the other.

use crate::object::PortNo;
use crate::sim::switch::SimulatedSwitch;
use beehive::Restart;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Frames on their way in one direction; more are lost.
const FRAMES_MAX: usize = 1_024;

/// A cable between two ports of simulated switches, or of one.
pub struct Wire {
    ends: [(SimulatedSwitch, PortNo); 2],
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    carried: AtomicU64,
    lossy: AtomicBool,
}

impl Wire {
    /// Plugs a cable into both ports.
    pub fn new(one: (&SimulatedSwitch, PortNo), other: (&SimulatedSwitch, PortNo)) -> Wire {
        let ends = [(one.0.clone(), one.1), (other.0.clone(), other.1)];
        let state = Arc::new(State::default());
        let [one, other] = &ends;
        carry(one, other, &state);
        carry(other, one, &state);
        Wire { ends, state }
    }

    /// Frames that it has carried so far, both ways.
    pub fn carried(&self) -> u64 {
        self.state.carried.load(Ordering::Relaxed)
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.ends.iter().all(|(switch, port)| switch.inner.is_wire_empty(*port))
    }

    /// Loses everything from now on, or nothing any more; the ports do not notice.
    pub fn set_lossy(&self, lossy: bool) {
        self.state.lossy.store(lossy, Ordering::Relaxed)
    }

    /// Cuts it: both ports see their link go.
    pub fn cut(&self) {
        self.ends.iter().for_each(|(switch, port)| switch.set_up(*port, false))
    }

    /// Mends it.
    pub fn mend(&self) {
        self.ends.iter().for_each(|(switch, port)| switch.set_up(*port, true))
    }
}

/// Brings what goes out of `from` to `to`, in a task of its own: so no frame runs through the network in one call.
fn carry(from: &(SimulatedSwitch, PortNo), to: &(SimulatedSwitch, PortNo), state: &Arc<State>) {
    let (put, take) = mpsc::channel::<Bytes>(FRAMES_MAX);
    from.0.inner.plug(from.1, put);
    let take = Mutex::new(Some(take));
    let (to, state) = (to.clone(), state.clone());
    let name = format!("wire into port {} of {}", to.1, to.0.inner.node);
    from.0.inner.hive.spawn_io(name, Restart::Never, move |_| {
        let (take, (switch, port), state) = (take.lock().take(), to.clone(), state.clone());
        async move {
            let Some(mut take) = take else { return Ok(()) };
            while let Some(frame) = take.recv().await {
                if state.lossy.load(Ordering::Relaxed) {
                    continue;
                }
                state.carried.fetch_add(1, Ordering::Relaxed);
                switch.receive(port, frame)
            }
            Ok(())
        }
    })
}
