//! Asks a controller for its status, over HTTP.

use super::status::{Served, Status};
use crate::client::question::{Method, Question};
use std::time::Duration;

/// A controller that does not answer in this time does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest status that is read.
const STATUS_BYTES_MAX: u64 = 64 << 20;

/// The status of the controller at `address`, with the sizes of states if asked for, or what is in the way, in words.
pub(super) fn status(address: &str, sizes: bool) -> Result<Status, String> {
    let question = Question::new(Method::Get, "/api/v1/status").with("sizes", sizes.then_some("true"));
    let (status, body) = question.ask(address, PATIENCE, STATUS_BYTES_MAX)?;
    if status != 200 {
        return Err(format!("{address} answers with HTTP status {status}"));
    }
    let served: Served = serde_json::from_slice(&body).map_err(|error| {
        format!("what {address} answered is no status of this version of beehive: {error}")
    })?;
    Ok(served.hive)
}
