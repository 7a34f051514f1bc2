//! Fetches the status of a controller over HTTP.

use super::status::{Served, Status};
use crate::client::endpoint::Endpoint;
use crate::client::request::{Method, Request};
use std::time::Duration;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum length of a status, in bytes.
const STATUS_BYTES_MAX: u64 = 64 << 20;

/// Fetches the status of the hive. With `sizes`, it includes the encoded size of each bee's state.
pub(super) fn status(controller: &Endpoint, sizes: bool) -> Result<Status, String> {
    let request = Request::new(Method::Get, "/api/v1/status").with("sizes", sizes.then_some("true"));
    request.fetch::<Served>(controller, TIMEOUT, STATUS_BYTES_MAX).map(|served| served.hive)
}
