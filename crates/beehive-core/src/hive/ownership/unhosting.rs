//! The end of a hive's leadership: a hive that no longer leads a log, and goes on living, cancels everything that it has under
//! way for the log. The next leader of the log goes on with it, which may be this hive again.
//!
//! ```text
//!  the journal (`JournalEvents::deposed`) ──┐                  from now on, nothing of the log leaves the hive
//!  the registry: another hive leads ────────┴─► the office ends ─► the client gives up the journal and what is in flight
//!                                                               ─► timers, lanes, messages under way, crash marker
//!                                                               ─► bees: their messages go back to the senders
//!                                                               ─► steps of moves and merges
//!                                                               ─► the position is free for another log
//! ```
//!
//! The office ends at once, on any thread. The rest is done by one task, which waits for handlers that are running.

use crate::hive::dispatch::turn::Link;
use crate::hive::ownership::reconciler::{Key, Reconciler, State};
use std::sync::Arc;

impl Reconciler {
    /// Begins to leave the logs that the hive no longer leads, according to their journals or to its replica of the registry.
    pub(super) fn leave_lost_logs(self: &Arc<Self>) {
        let Some(logs) = &self.hive.logs else { return };
        let clients = logs.clients();
        self.links.registry.read(&mut |view| clients.lost(view).iter().for_each(|link| link.depose()));
        for link in clients.all().into_iter().filter(|link| link.is_deposed()) {
            if !self.state.lock().unhosting.insert(link.position()) {
                continue;
            }
            let this = self.clone();
            self.hive.spawn(Box::pin(async move {
                tokio::select! {
                    biased;
                    () = this.unhost(&link) => {}
                    () = this.hive.over() => return,
                }
                this.state.lock().unhosting.remove(&link.position());
                this.changed.notify_one()
            }))
        }
    }

    /// Leaves a log. Completes when nothing of it is left in the hive.
    async fn unhost(&self, link: &Arc<Link>) {
        let Some(logs) = &self.hive.logs else { return };
        // the hive may still be about to begin: then its bees are not all in the routing table yet
        let _one_at_a_time = logs.one_at_a_time.lock().await;
        let at = link.position();
        link.leave();
        logs.quarantine.forget(at);
        self.hive.timers.cancel(link.office());
        let lanes = link.lanes.bees.leave_log(at, |lane| link.lanes.foreign.remember(lane));
        self.links.give_up(&lanes);

        for app in self.apps() {
            app.unhost(link, &self.hive)
        }
        self.forget_steps(at);
        link.all_have_left().await;

        // what a handler that was running has begun meanwhile
        self.hive.timers.cancel(link.office());
        self.forget_steps(at);
        logs.clients().remove(link);
        tracing::info!(
            colony = link.colony().0,
            term = link.term(),
            "nothing of the colony is left in this hive"
        )
    }

    /// Forgets the moves of the bees of a log. Work that is under way ends when it finds that its record is not committed.
    fn forget_steps(&self, at: usize) {
        let mut state = self.state.lock();
        let State { away, not_before, sending, staging, .. } = &mut *state;
        let is_other = |key: &Key| key.0 != at;
        away.retain(|key, _| is_other(key));
        not_before.retain(|key, _| is_other(key));
        staging.retain(|key, _| is_other(key));
        sending.retain(|key, sending| {
            let stays = is_other(key);
            if !stays {
                sending.end()
            }
            stays
        })
    }
}
