//! A bee of a log that the hive begins to lead: it accepts messages at once, and handles them when what it has sent before is
//! on its way again.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::mailbox::{AtRest, Mode, Queue};
use crate::hive::dispatch::turn::Turn;
use crate::state::image::DecodeError;
use std::sync::Arc;

impl Bee {
    /// Creates a bee whose image the caller has. It is as if a thread ran the bee: its messages and whoever wants to freeze
    /// it wait. For the reconciler, the bee is there.
    pub(crate) fn restored(app: &Arc<AppRuntime>, id: BeeId, cells: &[CellId], asleep: &Asleep) -> Arc<Bee> {
        let bee = Bee::at_rest(app, id, cells, None);
        let mut mailbox = bee.mailbox.lock();
        mailbox.scheduled = true;
        // a merge looks at the logs of both bees first
        mailbox.will_be(asleep);
        drop(mailbox);
        bee
    }

    /// Lets the bee, whose image the caller has, handle messages, or pass its body to the task that waits to freeze or to
    /// move it.
    pub(crate) fn begin(self: &Arc<Self>, asleep: Box<Asleep>, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        if mailbox.mode == Mode::Unhosted {
            drop(mailbox);
            return self.lose(asleep.into(), Queue::default(), turn.hive);
        }
        debug_assert!(mailbox.scheduled && mailbox.at_rest.is_none(), "the caller has the image");
        mailbox.stays_asleep(asleep);
        mailbox.scheduled =
            !mailbox.queue.is_empty() || mailbox.is_waited_for() || mailbox.mode == Mode::Leaving;
        if mailbox.scheduled {
            drop(mailbox);
            turn.schedule(self.clone());
        }
    }

    /// Shows the rows of the bee in its app's views, unless it has run or is about to. Meanwhile it is as if a thread ran the
    /// bee. It is not frozen: the reconciler would take a frozen bee for one that is not there, and could stage an old copy of
    /// it, and a move that begins meanwhile would not find it again.
    ///
    /// # Errors
    ///
    /// Returns an error if its image cannot be decoded.
    pub(crate) fn show(self: &Arc<Self>, turn: &mut Turn) -> Result<(), DecodeError> {
        let mut asleep = {
            let mut mailbox = self.mailbox.lock();
            let is_hidden =
                |at_rest: &mut AtRest| matches!(at_rest, AtRest::Asleep(asleep) if !asleep.is_shown());
            if mailbox.mode != Mode::Active {
                // whoever moves or merges the bee wakes it
                return Ok(());
            }
            let Some(AtRest::Asleep(asleep)) = mailbox.at_rest.take_if(is_hidden) else { return Ok(()) };
            // if it was scheduled, the thread that comes to run it finds no body
            mailbox.scheduled = true;
            asleep
        };
        // without the lock, so that no sender waits for this
        let shown = asleep.show(&self.app);
        self.begin(asleep, turn);
        shown
    }
}
