//! Asks a controller for its status, over HTTP.

use super::status::{Served, Status};
use crate::client::endpoint::Endpoint;
use crate::client::request::{Method, Request};
use std::time::Duration;

/// A controller that does not answer in this time does not answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest status that is read.
const STATUS_BYTES_MAX: u64 = 64 << 20;

/// The status of a controller, with the sizes of states if asked for, or what is in the way, in words.
pub(super) fn status(controller: &Endpoint, sizes: bool) -> Result<Status, String> {
    let request = Request::new(Method::Get, "/api/v1/status").with("sizes", sizes.then_some("true"));
    request.fetch::<Served>(controller, TIMEOUT, STATUS_BYTES_MAX).map(|served| served.hive)
}
