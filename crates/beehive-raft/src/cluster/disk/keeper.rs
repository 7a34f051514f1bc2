//! The thread that writes snapshots and checkpoints, and removes what they replace. Nobody who commits waits for it.

use super::record::Logs;
use super::{snapshot, whole};
use crate::cluster::types::{Chunks, GroupId, SnapshotMeta};
use crate::limits;
use crate::log::witness::End;
use crate::log::writer::is_full;
use crate::place::{self, Place};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::sync::oneshot;

/// A task of the thread.
pub(crate) enum Job {
    /// Write the file of a snapshot. The sender learns when it is on disk.
    Snapshot {
        group: GroupId,
        number: u64,
        meta: SnapshotMeta,
        chunks: Chunks,
        done: oneshot::Sender<io::Result<()>>,
    },
    /// Remove the file of a snapshot.
    Remove { group: GroupId, number: u64 },
    /// Write the logs at the end of a segment, and remove the segments up to it.
    Checkpoint { logs: Logs, end: End },
}

/// The thread's work.
#[derive(Default)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    is_making_checkpoint: bool,
    is_closing: bool,
}

impl Keeper {
    pub(crate) fn push(&self, job: Job) {
        let mut state = self.state.lock();
        // whoever waits for a job that is dropped learns that it was not done
        if !state.is_closing {
            state.is_making_checkpoint |= matches!(job, Job::Checkpoint { .. });
            state.jobs.push_back(job)
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Checks whether a checkpoint waits or is being written.
    pub(crate) fn is_making_checkpoint(&self) -> bool {
        self.state.lock().is_making_checkpoint
    }

    /// Ends the thread after the present job, and after a checkpoint that waits.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closing = true;
        // a hive that is started and stopped again and again must get its checkpoint once
        let (kept, dropped): (VecDeque<Job>, VecDeque<Job>) =
            state.jobs.drain(..).partition(|job| matches!(job, Job::Checkpoint { .. }));
        state.jobs = kept;
        drop(state);
        drop(dropped);
        self.changed.notify_one();
    }

    /// Does the jobs until the log closes.
    pub(crate) fn run(&self, place: &Place, folder_id: u64) {
        loop {
            let mut state = self.state.lock();
            while state.jobs.is_empty() && !state.is_closing {
                self.changed.wait(&mut state)
            }
            let Some(job) = state.jobs.pop_front() else { return };
            drop(state);

            let folder = place.folder.display();
            match job {
                Job::Snapshot { group, number, meta, chunks, done } => {
                    let written = snapshot::write(place, folder_id, (group, number), &meta, &chunks);
                    if written.as_ref().is_err_and(is_full) && !self.pause(limits::FULL_DISK_PAUSE) {
                        // behind the other jobs, which may free space
                        self.push(Job::Snapshot { group, number, meta, chunks, done })
                    } else {
                        // the caller may have ended
                        let _ = done.send(written);
                    }
                }
                Job::Remove { group, number } => {
                    let removed = place.files.remove(&snapshot::path(&place.folder, group, number));
                    if let Err(error) = removed {
                        tracing::warn!(%folder, %error, "an old snapshot was not removed; the next start removes it")
                    }
                }
                Job::Checkpoint { logs, end } => {
                    if let Err(error) = checkpoint(place, folder_id, &logs, end) {
                        tracing::warn!(%folder, %error, "a checkpoint was not made; the log goes on without it")
                    }
                    self.state.lock().is_making_checkpoint = false
                }
            }
        }
    }
}

impl Keeper {
    /// Waits, or until the log closes. Returns whether it closes.
    fn pause(&self, time: Duration) -> bool {
        #[expect(clippy::disallowed_methods, reason = "a pause of the disk, not of the model")]
        let until = std::time::Instant::now() + time;
        let mut state = self.state.lock();
        // new jobs wake the thread, too
        while !state.is_closing && !self.changed.wait_until(&mut state, until).timed_out() {}
        state.is_closing
    }
}

/// Writes a checkpoint, and removes what it covers.
fn checkpoint(place: &Place, folder_id: u64, logs: &Logs, end: End) -> io::Result<()> {
    whole::write_checkpoint(place, folder_id, logs, end)?;
    let listing = place.list()?;
    let segments = listing.segments.iter().filter(|number| **number <= end.segment);
    let old = segments.map(|number| place::segment(&place.folder, *number));
    let checkpoints = listing.checkpoints.iter().filter(|number| **number <= end.segment);
    let old = old.chain(checkpoints.map(|number| place::checkpoint(&place.folder, *number)));
    // a crash here leaves files that the next start removes
    old.into_iter().try_for_each(|path| place.files.remove(&path))?;
    place.files.sync_folder(&place.folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SimulatedFiles;
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_snapshot_that_finds_no_space_lets_other_jobs_free_it() {
        let (files, group) = (SimulatedFiles::new(5), GroupId(0));
        let place = Place { files: Arc::new(files.clone()), folder: "/hive".into() };
        place.files.create_folder(&place.folder).unwrap();
        let (meta, chunks): (SnapshotMeta, Chunks) =
            (SnapshotMeta::default(), Arc::new(vec![vec![7; 1_000]]));
        snapshot::write(&place, 1, (group, 1), &meta, &chunks).unwrap();
        // there is room for one of them
        files.set_capacity(Some(files.used() + 100));

        let (keeper, (done, mut written)) = (Arc::new(Keeper::default()), oneshot::channel());
        keeper.push(Job::Snapshot { group, number: 2, meta, chunks, done });
        keeper.push(Job::Remove { group, number: 1 });
        let thread = std::thread::spawn({
            let keeper = keeper.clone();
            move || keeper.run(&place, 1)
        });
        let begun = Instant::now();
        let written = loop {
            assert!(begun.elapsed() < Duration::from_secs(10), "the snapshot waits for ever");
            match written.try_recv() {
                Ok(written) => break written,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        assert!(written.is_ok(), "{written:?}");
        keeper.close();
        thread.join().unwrap()
    }
}
