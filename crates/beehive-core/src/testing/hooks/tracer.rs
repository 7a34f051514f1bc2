//! `Tracer`: a probe that writes what one hive of a simulated cluster does to the cluster's trace.

use crate::cell::{CellId, HiveId};
use crate::context::Ctx;
use crate::hive::dispatch::outputs::Savepoint;
use crate::hive::dispatch::probe::{Note, Probe, Transaction, Uncommitted};
use crate::hive::dispatch::types::handler::Handler;
use crate::hive::message::batch::{Address, Messages};
use crate::hive::message::dead_letters::DeadLetter;
use crate::message::Error;
use crate::panics;
use crate::testing::cluster::trace::{Kind, Log};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Maximum length of a message in the trace, in bytes.
const WORDS_BYTES_MAX: usize = 200;

/// Writes the events of one hive.
pub(crate) struct Tracer {
    log: Arc<Log>,
    hive: HiveId,
}

impl Tracer {
    pub(crate) fn new(log: Arc<Log>, hive: HiveId) -> Tracer {
        Tracer { log, hive }
    }

    fn add(&self, kind: Kind, chain: Option<u64>, text: impl std::fmt::Display) {
        self.log.add(kind, Some(self.hive), chain, text)
    }

    /// Returns the handler, the cells, the message and the bee of a transaction.
    fn words(transaction: &Transaction) -> String {
        let Transaction { handler, bee, batch, index, .. } = transaction;
        // a message that cannot be encoded has no cells in words
        let encode = || batch.payload(*index).map(|payload| payload.to_vec());
        let bytes = panics::catch(AssertUnwindSafe(encode)).ok().flatten();
        let cells = bytes.map(|bytes| (transaction.rerun.cells)(&bytes, batch.source().origin));
        let mut words = format!("{}.{}", handler.app_name, handler.name);
        for cell in cells.into_iter().flatten() {
            words.push(' ');
            words.push_str(&cell)
        }
        let message = batch.words(*index as usize, WORDS_BYTES_MAX);
        words.push_str(&format!(" {} {message}", handler.message));
        if let Some(bee) = bee {
            words.push_str(&format!(" by {bee}"))
        }
        words
    }
}

impl Probe for Tracer {
    fn emitted(&self, batch: Arc<dyn Messages>, range: Range<u32>) {
        let source = batch.source();
        let from = match source.sender {
            Address::App(_) => "by an app",
            _ => "from outside",
        };
        for index in range {
            let chain = source.chain.number(index);
            let (name, words) = (batch.message_name(), batch.words(index as usize, WORDS_BYTES_MAX));
            self.add(Kind::Emit, Some(chain), format_args!("{name} {words} {from}"))
        }
    }

    fn ended_unhandled(&self, handler: &Handler, batch: &dyn Messages, index: u32) -> Option<Note> {
        let (app, name, message) = (handler.app_name, handler.name, handler.message);
        let words = batch.words(index as usize, WORDS_BYTES_MAX);
        let chain = batch.source().chain.number(index);
        self.add(Kind::Skip, Some(chain), format_args!("{app}.{name} {message} {words}"));
        None
    }

    fn committing(
        &self,
        transaction: &Transaction,
        _: &mut dyn Uncommitted,
        _: &Ctx,
        _: Savepoint,
    ) -> Option<Note> {
        let chain = transaction.batch.source().chain.number(transaction.index);
        self.add(Kind::Handle, Some(chain), Tracer::words(transaction));
        None
    }

    fn failed(&self, transaction: &Transaction, error: &Error) -> Option<Note> {
        let chain = transaction.batch.source().chain.number(transaction.index);
        self.add(Kind::Fail, Some(chain), format_args!("{}: {error}", Tracer::words(transaction)));
        None
    }

    fn dead_letter(&self, letter: &DeadLetter) {
        let DeadLetter { app, handler, message, words, error, cause, .. } = letter;
        let what = format!("`{handler}` of app `{app}` on {}, given {message} {words}: {error}", self.hive);
        self.add(Kind::Fail, Some(cause.chain), format_args!("dead letter: {what}"));
        self.log.fails(what, cause.chain)
    }

    fn restored(&self, app: u16, cells: Vec<CellId>) {
        self.add(Kind::Restore, None, format_args!("a bee of app {app} with {} cells", cells.len()))
    }
}
