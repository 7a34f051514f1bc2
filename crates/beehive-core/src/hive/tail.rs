//! What a journaled bee has executed and not seen committed: held back, to be let go in order or to be run again.

use crate::app::App;
use crate::hive::bee::Delivery;
use crate::hive::lane::SenderLane;
use crate::hive::link::{Fate, Link};
use crate::hive::runtime::AppRuntime;
use crate::hive::turn::Turn;
use crate::state::column::Columns;
use crate::state::image::{EncodedCells, Op};
use std::collections::VecDeque;
use std::sync::Arc;

/// Lets go what a run left.
pub(crate) type LetGo<A> = Box<dyn FnOnce(&Arc<AppRuntime<A>>, &mut SenderLane, &mut Turn) + Send>;

/// A run of transactions whose record is on its way.
pub(crate) struct Executed<A: App> {
    pub(crate) number: u64,
    /// To be run again if the record is refused.
    pub(crate) delivery: Delivery<A>,
    pub(crate) ops: Vec<Op>,
    pub(crate) held: LetGo<A>,
}

pub(crate) struct Tail<A: App> {
    link: Arc<Link>,
    version: u64,
    /// The committed state.
    pub(crate) base: EncodedCells,
    pub(crate) entries: VecDeque<Executed<A>>,
    /// To be run again, before anything else.
    pub(crate) again: VecDeque<Delivery<A>>,
    /// The number that the bee's lane goes on with.
    pub(crate) next_seq: u64,
}

impl<A: App> Tail<A> {
    pub(crate) fn new(link: &Arc<Link>, base: EncodedCells, next_seq: u64) -> Box<Self> {
        Box::new(Tail {
            version: link.version(),
            link: link.clone(),
            base,
            entries: VecDeque::new(),
            again: VecDeque::new(),
            next_seq,
        })
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Nothing is on its way.
    pub(crate) fn is_settled(&self) -> bool {
        self.entries.is_empty() && self.again.is_empty()
    }

    /// Whether something may have happened since [`Tail::reconcile`] looked.
    pub(crate) fn is_behind(&self) -> bool {
        self.version != self.link.version()
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.entries.iter().map(|e| e.number).collect()
    }

    /// Lets go what is committed; takes back what is dead and everything executed on it.
    pub(crate) fn reconcile(
        &mut self,
        app: &Arc<AppRuntime<A>>,
        state: &mut A,
        lane: &mut SenderLane,
        turn: &mut Turn,
    ) {
        if !self.is_behind() {
            return;
        }
        // before the look: what happens later makes us look again
        self.version = self.link.version();
        let fates = self.link.fates(self.entries.iter().map(|e| e.number));
        for fate in fates {
            match fate {
                Fate::Open => break,
                Fate::Dead => return self.take_back(app, state),
                Fate::Committed => {
                    let Some(done) = self.entries.pop_front() else { return };
                    done.ops.iter().for_each(|op| self.base.apply(op));
                    turn.cause = done.delivery.cause;
                    (done.held)(app, lane, turn);
                    turn.cause = None;
                }
            }
        }
    }

    /// Forgets everything that is not committed and has it run again.
    fn take_back(&mut self, app: &Arc<AppRuntime<A>>, state: &mut A) {
        let mut again: VecDeque<Delivery<A>> = self.entries.drain(..).map(|e| e.delivery).collect();
        again.append(&mut self.again);
        self.again = again;
        state.clear();
        for image in self.base.images() {
            // encoded by this very process
            if let Err(error) = state.import(app.seed, &image) {
                tracing::error!(app = A::NAME, %error, "a cell cannot be restored");
            }
        }
    }
}
