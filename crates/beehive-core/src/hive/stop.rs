//! Stops a hive and reports the work it left unfinished.

use crate::hive::admission::lifecycle::Stopped;
use crate::hive::dispatch::inner::{Hive, HiveInner};
use crate::hive::edge::request::wait_for;
use crate::hive::scheduling::maintenance;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Hive {
    /// Stops the hive. Tells the IO bees to finish and waits up to `grace` for them and for the messages in
    /// flight. After that, no new handler starts, and the hive drops queued messages, timers, and IO bees
    /// that have not returned. If several calls run at the same time, the grace period that ends first
    /// counts. All calls return the same report once the hive has stopped, and its logs say so: who ends the logs after that
    /// leaves no crash behind.
    pub async fn stop(&self, grace: Duration) -> Stopped {
        let inner = self.inner();
        if !inner.stopped.swap(true, Ordering::AcqRel) {
            inner.stopping.notify_waiters()
        }

        let finished = async {
            loop {
                let done = inner.tasks_done.notified();
                if inner.tasks.load(Ordering::Acquire) == 0 {
                    break;
                }
                done.await
            }
            inner.in_flight.done().await
        };
        // what is in flight may wait for acknowledgments
        let acknowledged = async {
            loop {
                inner.platform.sleep(maintenance::PERIOD).await;
                if let Some(logs) = &inner.logs {
                    logs.log_consumed_if_due()
                }
            }
        };

        let mut expires = inner.platform.sleep(grace);
        let expired = tokio::select! {
            biased;
            () = self.over() => return self.report(expires).await,
            () = finished => false,
            () = &mut expires => true,
            () = acknowledged => true,
        };

        if inner.over.swap(true, Ordering::AcqRel) {
            return self.report(expires).await;
        }
        let mut report = Stopped {
            unfinished: inner.in_flight.count(),
            io_bees_dropped: inner.tasks.load(Ordering::Acquire),
            ..Stopped::default()
        };

        inner.ended.notify_waiters();
        if let Some(links) = &inner.links {
            links.close()
        }
        // when this function ends, and also if the caller no longer waits for it
        let _complete = Complete(inner);
        let end_of_life = inner.logs.as_ref().map(|logs| {
            logs.log_consumed();
            logs.log_last_time(inner.now());
            logs.quarantine.end_life(&logs.clients().all())
        });
        report.timers_dropped = inner.timers.clear();

        let apps: Vec<_> = inner.apps.read().clone();
        report.runs_dropped = apps.iter().map(|app| app.clear()).sum();

        if !report.is_clean() {
            tracing::warn!(?report, "grace period expired; the hive stopped with unfinished work")
        }

        *inner.report.lock() = Some(report);
        inner.tasks.store(0, Ordering::Release);
        inner.stop_done.notify_waiters();

        let unmarked = async {
            for removed in end_of_life.into_iter().flatten() {
                let _ = removed.await;
            }
        };
        if !expired {
            // until the log has removed the crash marker, the end of the process would count as a crash
            tokio::select! {
                biased;
                () = unmarked => {}
                () = expires => {}
            }
        }
        report
    }

    /// Like [`Hive::stop`], for threads that run no tasks.
    ///
    /// # Panics
    ///
    /// Panics in a task, as [`Hive::request_blocking`] does.
    #[track_caller]
    pub fn stop_blocking(&self, grace: Duration) -> Stopped {
        // if the runtime has been shut down, everything was dropped with it
        wait_for(self, |hive| async move { hive.stop(grace).await }).unwrap_or_default()
    }

    /// Waits for the report of the call that stopped the hive, and then until that call is complete or the grace period of this
    /// one ends.
    ///
    /// In a cluster, one call may be the program's, and the other one that of a task that ends the logs when the hive has stopped. If
    /// that task got the report while the program's call still waited for the log, the log would end, and the program's call would
    /// wait for the rest of its grace period.
    async fn report(&self, expires: impl Future<Output = ()>) -> Stopped {
        let inner = self.inner();
        let report = loop {
            let done = inner.stop_done.notified();
            if let Some(report) = *inner.report.lock() {
                break report;
            }
            done.await
        };
        let complete = async {
            loop {
                let done = inner.stop_done.notified();
                if inner.stop_is_complete.load(Ordering::Acquire) {
                    break;
                }
                done.await
            }
        };
        tokio::select! {
            biased;
            () = complete => {}
            () = expires => {}
        }
        report
    }
}

/// The call that stops a hive is complete when this is dropped: nobody waits for log entries any more.
struct Complete<'a>(&'a HiveInner);

impl Drop for Complete<'_> {
    fn drop(&mut self) {
        self.0.log_clients().iter().for_each(|link| link.end());
        self.0.stop_is_complete.store(true, Ordering::Release);
        self.0.stop_done.notify_waiters()
    }
}
