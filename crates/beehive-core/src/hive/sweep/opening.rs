//! The start of a logged sweep: the record that begins it, if that is not the record of the bee that has sent it.

use crate::hive::admission::bee_lanes::Reserved;
use crate::hive::admission::outside_lanes::Admitted;
use crate::hive::consensus::journal::{AppId, Emit, Emits, HandlerId, MessageId, Record};
use crate::hive::dispatch::inner::HiveInner;
use crate::hive::dispatch::turn::Link;
use std::sync::Arc;

/// The start of a sweep that is not part of a bee's record.
pub(super) struct Opening {
    /// The record that starts the sweep.
    record: Record,
    /// The batch from outside that is closed when the record is committed.
    admitted: Option<Arc<Admitted>>,
    /// The sweep's own sequence number, if it has one.
    reserved: Option<Reserved>,
}

/// Reserves a sequence number for a sweep on the lane of its app, if bees may move from one log to another.
/// The visits are parts of this number, by which a bee in another log recognizes duplicates. The number of
/// the message that begins the sweep cannot be used, because the floor of its lane is that of another log.
pub(super) fn number_of_its_own(link: &Link, app: u16) -> Option<Reserved> {
    link.bees_move().then(|| link.reserve(AppId(app)))
}

impl Opening {
    /// Creates the opening of sweep `emit`, which is started by message `consumed` in log `link`. Returns
    /// `None` if the message is a duplicate that has already started its sweep.
    pub(super) fn of(
        link: &Link,
        consumed: MessageId,
        handler: HandlerId,
        admitted: Option<Arc<Admitted>>,
        (emit, reserved): (Emit, Option<Reserved>),
    ) -> Option<Opening> {
        let input = link.input_without_bee(consumed, handler, admitted.as_ref())?;
        let id = reserved.as_ref().map_or(emit.id, |reserved| reserved.id);
        let record =
            Record::Admit { app: consumed.app, handler, input, emits: Emits(vec![Emit { id, ..emit }]) };
        Some(Opening { record, admitted, reserved })
    }

    /// Commits the record.
    pub(super) async fn commit(self, link: &Link, hive: &HiveInner) {
        let Opening { record, admitted, reserved } = self;
        let emit = match (&record, &reserved) {
            (Record::Admit { emits, .. }, Some(_)) => emits.first().cloned(),
            _ => None,
        };

        if !link.commit(record).await {
            if !hive.is_over() {
                // the next leader of the log knows whether the sweep has begun
                admitted.iter().for_each(|admitted| admitted.close())
            }
            return;
        }
        link.lanes.bees.sent(link.office(), &emit);
        drop(reserved);
        admitted.iter().for_each(|admitted| admitted.close())
    }
}
