//! A bee that is about to move to another hive. It handles what is in its mailbox and accepts nothing more, so that its
//! senders keep their later messages, in order. When its mailbox is empty and everything is committed, its body can be
//! taken.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::body::Body;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::mailbox::{AtRest, Mailbox, Mode};
use crate::hive::dispatch::turn::Turn;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Bee {
    /// Creates a bee that was about to move from the log at position `log` when the previous leader of the log ended.
    pub(crate) fn away(app: &Arc<AppRuntime>, id: BeeId, cells: &[CellId], log: usize) -> Arc<Bee> {
        let bee = Bee::at_rest(app, id, cells, None);
        {
            let mut mailbox = bee.mailbox.lock();
            mailbox.mode = Mode::Leaving;
            mailbox.is_in(log)
        }
        bee
    }

    /// Stops the bee: from now on, it accepts no messages. Returns its body when it has handled the messages that it had
    /// accepted, and their records are committed. Returns `None` if the bee has ended, takes part in another change, or cannot
    /// be decoded.
    pub(crate) async fn leave(self: &Arc<Self>) -> Option<Box<Body>> {
        let waiting = {
            let mut mailbox = self.mailbox.lock();
            if mailbox.mode != Mode::Active || mailbox.is_waited_for() {
                return None;
            }
            if matches!(&mailbox.at_rest, Some(AtRest::Asleep(asleep)) if asleep.is_unreadable()) {
                return None;
            }
            mailbox.mode = Mode::Leaving;
            let is_busy = mailbox.at_rest.as_ref().is_none_or(AtRest::is_busy) || !mailbox.queue.is_empty();
            match mailbox.at_rest.take_if(|_| !is_busy) {
                Some(at_rest) => {
                    drop(mailbox);
                    let back = match at_rest.wake(&self.app, self.id) {
                        Ok(body) => return Some(body),
                        Err(back) => back,
                    };
                    let mut mailbox = self.mailbox.lock();
                    if mailbox.mode == Mode::Leaving {
                        mailbox.mode = Mode::Active;
                        mailbox.set_aside(back)
                    }
                    return None;
                }
                None => {
                    let (sender, receiver) = oneshot::channel();
                    mailbox.rare.get_or_insert_default().leaves = Some(sender);
                    receiver
                }
            }
        };
        waiting.await.ok()
    }

    /// Checks whether the bee accepts no messages because it is about to move, or because the hive has lost its log.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.mailbox.lock().mode, Mode::Leaving | Mode::Unhosted)
    }

    /// Checks whether the hive has lost the log of the bee, whose body another thread or task still holds.
    pub(crate) fn is_unhosted(&self) -> bool {
        self.mailbox.lock().mode == Mode::Unhosted
    }

    /// Checks whether the bee handles messages.
    pub(crate) fn is_active(&self) -> bool {
        self.mailbox.lock().mode == Mode::Active
    }

    /// Ends the bee in this hive, because it has moved. Returns its cells.
    pub(crate) fn has_moved(&self) -> Vec<CellId> {
        let mut mailbox = self.mailbox.lock();
        debug_assert!(
            matches!(mailbox.mode, Mode::Leaving | Mode::Unhosted)
                && mailbox.at_rest.is_none()
                && mailbox.queue.is_empty(),
            "a bee that moves has no body and no messages"
        );
        mailbox.mode = Mode::Gone;
        let more = mailbox.rare.take().into_iter().flat_map(|rare| rare.more_cells);
        std::iter::once(self.first_cell()).chain(more).collect()
    }

    /// Puts back the body of a bee that was about to move, and lets the bee continue.
    pub(crate) fn stays_awake(self: &Arc<Self>, body: Box<Body>, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.mode != Mode::Leaving {
            // the hive has lost its log
            drop(mailbox);
            return Bee::drop_lost(body);
        }
        mailbox.mode = Mode::Active;
        mailbox.at_rest = Some(body.into());
        mailbox.scheduled = !mailbox.queue.is_empty();
        if mailbox.scheduled {
            drop(mailbox);
            turn.schedule(self.clone())
        }
    }

    /// Lets the bee continue, because it stays after all.
    pub(crate) fn stays(&self, asleep: Box<Asleep>) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.mode == Mode::Gone {
            // the hive has lost its log meanwhile
            return;
        }
        debug_assert!(
            mailbox.mode == Mode::Leaving && mailbox.at_rest.is_none(),
            "the bee was about to move"
        );
        mailbox.mode = Mode::Active;
        // if the bee was scheduled when its body was taken, the thread that came to run it found none
        mailbox.scheduled = false;
        mailbox.stays_asleep(asleep)
    }
}

/// Hands over the body of a bee that is about to move, if it has nothing left to do. Returns it otherwise.
pub(super) fn pass_on(mailbox: &mut Mailbox, body: Box<Body>) -> Option<Box<Body>> {
    if mailbox.mode != Mode::Leaving || !mailbox.queue.is_empty() || !body.is_settled() {
        return Some(body);
    }
    let Some(leaves) = mailbox.rare.as_mut().and_then(|rare| rare.leaves.take()) else { return Some(body) };
    mailbox.scheduled = false;
    // sending fails if the hive is over
    leaves.send(body).err()
}
