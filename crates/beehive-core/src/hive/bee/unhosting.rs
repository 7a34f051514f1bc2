//! The end of a bee in a hive that no longer leads the bee's log. Nothing that the bee has done since its last committed record
//! becomes visible. The messages that it has accepted go back to their senders, in order, and the next leader of the log gets
//! them.
//!
//! The bee stays in the routing table, and accepts nothing, until its messages are back in the queues of their senders. A
//! sender on another thread, which would find the next owner of the cells otherwise, puts its later messages behind them.

use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::body::Body;
use crate::hive::bee::delivery::Delivery;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::mailbox::{AtRest, Mode, Queue};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::sender::queue::SenderQueue;
use crate::hive::dispatch::turn::Link;
use crate::mutant::Mutant;
use crate::panics;
use crate::state::image::{EncodedCells, Op, Redo};
use std::sync::Arc;

impl AppRuntime {
    /// Ends all bees of a log that this hive no longer leads. Those that are running end when their handlers return:
    /// [`LogClient::all_have_left`](crate::hive::consensus::log_client::LogClient::all_have_left) waits for them.
    pub(crate) fn unhost(self: &Arc<Self>, link: &Arc<Link>, hive: &Arc<HiveInner>) {
        let bees: Vec<Arc<Bee>> = {
            let mut queen = self.queen.lock();
            // the next leader of the log knows which of these ends are committed
            self.registry.read(&mut |view| {
                let is_of_log = |bee: &_| view.bee(*bee).is_some_and(|entry| entry.colony == link.colony());
                queen.ended.retain(|bee| !is_of_log(bee))
            });
            queen.bees.values().filter(|bee| bee.log() == Some(link.position())).cloned().collect()
        };
        bees.iter().for_each(|bee| bee.unhost(link, hive))
    }
}

impl Bee {
    /// Ends the bee, or lets whoever runs it end it.
    fn unhost(self: &Arc<Self>, link: &Link, hive: &Arc<HiveInner>) {
        let mut mailbox = self.mailbox.lock();
        let is_running = mailbox.at_rest.is_none()
            && match mailbox.mode {
                // a thread runs the bee, or is about to show it
                Mode::Active => true,
                // a task holds the body, and no messages: it finds the bee gone
                Mode::Frozen => false,
                Mode::Leaving => mailbox.rare.as_ref().is_some_and(|rare| rare.leaves.is_some()),
                Mode::Unhosted | Mode::Gone => return,
            };
        mailbox.mode = Mode::Unhosted;
        if is_running {
            return link.stays();
        }
        let at_rest = mailbox.at_rest.take();
        drop(mailbox);
        self.end_unhosted(at_rest, Queue::default(), hive)
    }

    /// Ends the bee, whose body or image the caller has, and those of its messages that are not in the mailbox.
    #[cold]
    pub(super) fn lose(self: &Arc<Self>, at_rest: AtRest, queue: Queue, hive: &Arc<HiveInner>) {
        let link = at_rest.link().cloned();
        {
            let mut mailbox = self.mailbox.lock();
            if std::mem::replace(&mut mailbox.mode, Mode::Unhosted) != Mode::Unhosted
                && let Some(link) = &link
            {
                link.stays()
            }
        }
        self.end_unhosted(Some(at_rest), queue, hive);
        if let Some(link) = link {
            link.has_left()
        }
    }

    /// Drops the body of a bee that has ended, because the hive no longer leads its log.
    pub(crate) fn drop_lost(mut body: Box<Body>) {
        let queue = std::mem::take(&mut body.queue);
        let lanes = body.pending.as_ref().map(|pending| &pending.link().lanes);
        if lanes.is_none_or(|lanes| !lanes.breaks(Mutant::DeposedSends)) {
            queue.abandon()
        }
        panics::harmless(|| drop(body));
    }

    /// Gives back the messages of a bee that accepts none any more, and removes it from the routing table.
    fn end_unhosted(self: &Arc<Self>, at_rest: Option<AtRest>, mut queue: Queue, hive: &Arc<HiveInner>) {
        let waiting = {
            let mut mailbox = self.mailbox.lock();
            queue.append(&mut mailbox.queue);
            mailbox.rare.as_mut().map(|rare| (std::mem::take(&mut rare.freezers), rare.leaves.take()))
        };
        // whoever waits for the body learns that the bee has ended
        drop(waiting);

        let mut accepted: Vec<Delivery> = Vec::new();
        match at_rest {
            Some(AtRest::Awake(mut body)) => {
                if let Some(mut pending) = body.pending.take() {
                    if self.breaks(Mutant::DeposedReleases) {
                        pending.release_all(self, &mut body, hive)
                    }
                    // this drops the held effects
                    accepted.extend(pending.entries.drain(..).map(|executed| executed.delivery));
                    accepted.extend(pending.again.drain(..));
                    self.hide(&pending.base, hive);
                    body.pending = Some(pending)
                }
                Bee::drop_lost(body)
            }
            Some(AtRest::Asleep(asleep)) => {
                let (rows, queue): (EncodedCells, SenderQueue) = asleep.into_rows();
                queue.abandon();
                self.hide(&rows, hive)
            }
            None => {}
        }
        accepted.extend(std::iter::from_fn(|| queue.pop_front()));
        if !self.breaks(Mutant::MailboxLost) {
            // each one goes to the front of its sender's queue
            accepted.into_iter().rev().for_each(|delivery| (self.app.give_back)(&self.app, delivery, hive))
        }

        let mut queen = self.app.queen.lock();
        if queen.bees.get(self.id).is_some_and(|known| Arc::ptr_eq(known, self)) {
            queen.bees.remove(self.id)
        }
        let mut mailbox = self.mailbox.lock();
        mailbox.mode = Mode::Gone;
        let more = mailbox.rare.take().into_iter().flat_map(|rare| rare.more_cells);
        for cell in std::iter::once(self.first_cell()).chain(more) {
            self.app.routes.remove(cell, self)
        }
    }

    /// Removes rows of the bee from the views of its app.
    fn hide(&self, rows: &EncodedCells, hive: &HiveInner) {
        if let Some(views) = self.app.own_views() {
            self.app.fresh().publish_committed(views, &removals(rows), hive.now())
        }
    }
}

/// Returns the removals of all these rows.
fn removals(rows: &EncodedCells) -> Redo {
    let mut removals = Redo::default();
    for image in rows.images() {
        for (row, _) in &image.rows {
            // the value of a `Dict` is a row with an empty key
            let row = (!row.is_empty()).then_some(row.as_slice());
            removals.push(Op { dict: image.dict, key: &image.key, row, value: None })
        }
    }
    removals
}
