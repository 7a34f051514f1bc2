//! Examines the copy of a bee before this hive asks the registry for the bee. After the registry has decided, there is no way
//! back: a hive that could not decode the copy would own the bee's cells, and nobody could handle their messages.

use crate::cell::BeeId;
use crate::hive::bee::asleep::Asleep;
use crate::hive::consensus::journal::{AppId, Epoch, Staged};
use crate::hive::consensus::registry::Proposal;
use crate::hive::dispatch::turn::Link;
use crate::hive::ownership::reconciler::Reconciler;
use crate::panics::{catch, text};
use crate::state::image::DecodeError;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

impl Reconciler {
    /// Proposes that the bee whose complete copy this log has moves here or, if this program cannot decode the copy, that
    /// the bee stays where it is.
    pub(super) fn ask_for(self: &Arc<Self>, link: &Arc<Link>, bee: BeeId, epoch: Epoch) {
        let mut entry = None;
        self.links.registry.read(&mut |view| entry = view.bee(bee).filter(|entry| entry.epoch == epoch));
        let Some(entry) = entry else { return };
        let (at, app, stays) = (link.position(), entry.app, entry.colony);
        let decides = |proposal: &Proposal| matches!(proposal, Proposal::Commit { bee: other, epoch: its, .. } if (*other, *its) == (bee, epoch));
        if self.state.lock().proposals.iter().any(decides) {
            return;
        }
        let (this, link) = (self.clone(), link.clone());
        self.work([(at, app, bee)], async move {
            // Nobody else needs the copy meanwhile, because no other work concerns the bee, and a large bee need not be
            // copied, nor decoded under a lock
            let staged = link.outline.lock().log.staged.remove(&(app, bee));
            let Some(staged) = staged else { return };
            let examined = this.examine(&staged, app, bee);
            link.outline.lock().log.staged.insert((app, bee), staged);
            let to = match examined {
                Ok(()) => link.colony(),
                Err(error) => {
                    let app = this.app(app).map_or("unknown", |app| app.name);
                    tracing::error!(app, %bee, %error, "a bee does not move to this hive; do all hives run the same program?");
                    stays
                }
            };
            this.propose(Proposal::Commit { bee, epoch, to })
        })
    }

    /// Checks that this program can decode the copy of a bee, and the messages that the bee has sent.
    fn examine(&self, staged: &Staged, app: AppId, bee: BeeId) -> Result<(), DecodeError> {
        let error = |why: String| DecodeError { what: "the copy of a bee", why };
        let runtime = self.app(app).ok_or_else(|| error(format!("there is no app number {}", app.0)))?;
        let mut cells = BTreeSet::new();
        self.links.registry.read(&mut |view| cells = view.cells_of(bee).collect());
        let logged = &self.hive.types.logged;
        let check = || {
            Asleep::check(runtime, &staged.bee, &cells)?;
            staged
                .outbox
                .iter()
                .try_for_each(|emit| logged.check_message(emit.id.app.0, emit.message_type, &emit.payload))
        };
        // the values are of the app's types, so decoding them runs the app's code
        catch(AssertUnwindSafe(check))
            .unwrap_or_else(|panic| Err(error(format!("it panicked: {}", text(&*panic)))))
    }
}
