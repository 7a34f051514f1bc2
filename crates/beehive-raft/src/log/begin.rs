//! What a start changes in a folder, when nothing refuses it any more.
//!
//! Opening a folder only reads it. When the hive has compared itself with the log, the start is carried out: the end of
//! the log is settled, and only then a segment follows it, which begins a new term in each log.

use crate::error::OpenError;
use crate::identity::Identity;
use crate::log::format::push_record;
use crate::log::scan::Repairs;
use crate::log::witness::{End, Witness};
use crate::log::writer::{WriteError, Writer};
use crate::place::Place;
use beehive_protocol::{Entry, EntryNumber, LogState};
use std::io;

/// A start that has not changed anything yet.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) place: Place,
    /// The identity of the folder after this start.
    pub(crate) identity: Identity,
    /// Whether the folder has no identity yet.
    pub(crate) is_new: bool,
    pub(crate) repairs: Repairs,
    /// The end of the log so far.
    pub(crate) end: End,
    pub(crate) segment_bytes: u64,
    /// For each log, the entry that begins this start's term.
    pub(crate) blanks: Vec<Entry>,
}

impl Beginning {
    /// Carries out the start.
    pub(crate) fn carry_out(&self) -> Result<(Writer, Witness), OpenError> {
        let Beginning { place, identity, end, .. } = self;
        let failed = |doing| move |error: io::Error| OpenError::io(&place.folder, doing, error);
        if self.is_new {
            // a folder without a witness is whole only if it says that no start has been carried out
            Identity { incarnation: 0, ..*identity }.write(place)?
        }
        self.repairs.carry_out(place)?;

        // From here on, an end that is lost is noticed. Only then a segment follows.
        let witness =
            Witness::create(place, identity.folder_id, *end).map_err(failed("write the witness"))?;
        identity.write(place)?;
        let start = (identity.folder_id, identity.incarnation);
        let mut writer =
            Writer::begin(place, start, *end, self.segment_bytes).map_err(failed("begin a segment"))?;

        let mut group = Vec::new();
        for (log, blank) in (0..).zip(&self.blanks) {
            push_record(&mut group, log, blank.number.0, |buffer| blank.encode_into(buffer))
        }
        let begun = writer.write(&mut group, |_, _| {}).map_err(|error| match error {
            WriteError::Full(error) | WriteError::Failed(_, error) => error,
        });
        begun.map_err(failed("begin a term"))?;
        Ok((writer, witness))
    }
}

/// Begins a term above all that are in these logs. Returns the number of the start, and each log's first entry, which is
/// applied to the log's state. Returns `None` if no higher term is left.
pub(crate) fn begin_term(states: &mut [LogState], incarnation: u64) -> Option<(u64, Vec<Entry>)> {
    let newest = states.iter().map(|state| state.last.term()).max().unwrap_or_default();
    let term = newest.max(incarnation) + 1;
    let is_left = term <= EntryNumber::TERM_MAX;
    is_left.then(|| (term, states.iter_mut().map(|state| state.begin_term(term)).collect()))
}
