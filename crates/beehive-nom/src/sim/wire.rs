//! Simulates a cable between two ports: each port receives the frames sent by the other.

use crate::object::PortNo;
use crate::sim::switch::SimulatedSwitch;
use beehive::Restart;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Maximum number of frames in flight in one direction. Further frames are lost.
const FRAMES_MAX: usize = 1_024;

/// A cable between two ports of simulated switches, or of the same switch.
pub struct Wire {
    ends: [(SimulatedSwitch, PortNo); 2],
    state: Arc<State>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("ends", &self.ends).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    carried: AtomicU64,
    lossy: AtomicBool,
}

impl Wire {
    /// Connects two ports.
    pub fn new(one: (&SimulatedSwitch, PortNo), other: (&SimulatedSwitch, PortNo)) -> Wire {
        let ends = [(one.0.clone(), one.1), (other.0.clone(), other.1)];
        let state = Arc::new(State::default());
        let [one, other] = &ends;
        carry(one, other, &state);
        carry(other, one, &state);
        Wire { ends, state }
    }

    /// Returns the number of frames carried so far, in both directions.
    pub fn carried(&self) -> u64 {
        self.state.carried.load(Ordering::Relaxed)
    }

    /// Returns whether no frame is in flight.
    pub fn is_empty(&self) -> bool {
        self.ends.iter().all(|(switch, port)| switch.inner.is_wire_empty(*port))
    }

    /// Sets whether the wire loses all frames. The ports stay up.
    pub fn set_lossy(&self, lossy: bool) {
        self.state.lossy.store(lossy, Ordering::Relaxed)
    }

    /// Disconnects the cable, so that both ports go down.
    pub fn cut(&self) {
        self.ends.iter().for_each(|(switch, port)| switch.set_up(*port, false))
    }

    /// Reconnects the cable, so that both ports come up.
    pub fn mend(&self) {
        self.ends.iter().for_each(|(switch, port)| switch.set_up(*port, true))
    }
}

/// Carries frames from `from` to `to` in a separate task, so that a frame does not pass through the whole
/// network in a single call.
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
