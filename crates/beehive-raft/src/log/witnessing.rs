//! Keeps the witness at most [`WITNESS_EVERY`](crate::limits::WITNESS_EVERY) behind the acknowledged end of a log, on a thread of
//! its own.

use crate::limits;
use crate::log::witness::{End, Witness};
use parking_lot::{Condvar, Mutex};
use std::io;

/// What the writer of a log tells the witness.
#[derive(Debug, Default)]
pub(crate) struct Witnessing {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The acknowledged end.
    end: End,
    /// Whether the end has moved since the witness was woken.
    is_behind: bool,
    writer_is_done: bool,
}

impl Witnessing {
    /// Everything up to `end` is on disk.
    pub(crate) fn acknowledged(&self, end: End) {
        let mut state = self.state.lock();
        state.end = end;
        if !std::mem::replace(&mut state.is_behind, true) {
            self.changed.notify_one();
        }
    }

    /// The log begins at `end`, which the witness says already.
    pub(crate) fn begin(&self, end: End) {
        self.state.lock().end = end
    }

    /// The writer has ended.
    pub(crate) fn end(&self) {
        self.state.lock().writer_is_done = true;
        self.changed.notify_all();
    }

    /// Keeps the witness close behind until the writer has ended. `failed` is called for each end that could not be written.
    pub(crate) fn run(&self, mut witness: Witness, failed: impl Fn(io::Error)) {
        let mut last = End::default();
        loop {
            let mut state = self.state.lock();
            while !state.is_behind && !state.writer_is_done {
                self.changed.wait(&mut state);
            }
            if !state.writer_is_done {
                self.changed.wait_for(&mut state, limits::WITNESS_EVERY);
            }
            let (end, is_done) = (state.end, state.writer_is_done);
            // an end that has stopped moving is written a second time
            state.is_behind = end != last && !is_done;
            drop(state);

            match witness.write(end, if is_done { 2 } else { 1 }) {
                Ok(()) => last = end,
                Err(error) => failed(error),
            }
            if is_done {
                return;
            }
        }
    }
}
