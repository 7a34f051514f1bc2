//! Asks a controller for its status, over HTTP.

use super::status::{Served, Status};
use crate::client::question::{Method, Question};
use crate::client::whereabouts::Whereabouts;
use std::time::Duration;

/// A controller that does not answer in this time does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest status that is read.
const STATUS_BYTES_MAX: u64 = 64 << 20;

/// The status of a controller, with the sizes of states if asked for, or what is in the way, in words.
pub(super) fn status(controller: &Whereabouts, sizes: bool) -> Result<Status, String> {
    let question = Question::new(Method::Get, "/api/v1/status").with("sizes", sizes.then_some("true"));
    question.answer::<Served>(controller, PATIENCE, STATUS_BYTES_MAX).map(|served| served.hive)
}
