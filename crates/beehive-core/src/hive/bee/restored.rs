//! A bee of a log that the hive begins to lead: it accepts messages at once, and handles them when what it has sent before is
//! on its way again.

use crate::cell::{BeeId, CellId};
use crate::hive::bee::app::AppRuntime;
use crate::hive::bee::asleep::Asleep;
use crate::hive::bee::lifecycle::Bee;
use crate::hive::bee::mailbox::{AtRest, Mode};
use crate::hive::dispatch::turn::Turn;
use crate::panics;
use crate::state::image::DecodeError;
use std::sync::Arc;

impl Bee {
    /// Creates a bee whose body the caller has.
    pub(crate) fn restored(app: &Arc<AppRuntime>, id: BeeId, cells: &[CellId]) -> Arc<Bee> {
        let bee = Bee::at_rest(app, id, cells, None);
        bee.mailbox.lock().mode = Mode::Frozen;
        bee
    }

    /// Lets the bee, which is frozen and whose body the caller has, handle messages. If a task waits to freeze it, that task
    /// gets the body.
    pub(crate) fn begin(self: &Arc<Self>, asleep: Box<Asleep>, turn: &mut Turn) {
        let mut mailbox = self.mailbox.lock();
        debug_assert!(mailbox.mode == Mode::Frozen && mailbox.at_rest.is_none(), "the caller has the body");
        if mailbox.is_waited_for() {
            drop(mailbox);
            // without the lock, because this decodes the rows. Until then, the bee stays frozen
            return self.thaw(asleep.wake(&self.app), turn);
        }
        mailbox.mode = Mode::Active;
        mailbox.at_rest = Some(asleep.into());
        mailbox.scheduled = !mailbox.queue.is_empty();
        if mailbox.scheduled {
            drop(mailbox);
            turn.schedule(self.clone());
        }
    }

    /// Shows the rows of the bee in its app's views, unless it has run or is about to.
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
            mailbox.mode = Mode::Frozen;
            asleep
        };
        // without the lock, so that no sender waits for this
        let shown = panics::harmless(|| asleep.show(&self.app)).unwrap_or(Ok(()));
        self.begin(asleep, turn);
        shown
    }
}
