//! `/api/v1/status`: the status of the hive and of the connections of switches.

use crate::api::Failure;
use crate::http::Served;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use beehive_nom::driver::{CountersNow, NodeStatus};
use serde::Serialize;
use utoipa::ToSchema;

/// The answer to `GET /api/v1/status`.
#[derive(Serialize, ToSchema)]
pub(super) struct Status {
    /// The controller's version.
    version: &'static str,
    /// Status of the hive: apps, handlers and busiest bees.
    #[schema(value_type = Object)]
    hive: beehive_core::Status,
    /// All connections of switches in any state.
    #[schema(value_type = Vec<Object>)]
    switches: Vec<NodeStatus>,
    /// Sums of the counters over all connections, including closed ones.
    #[schema(value_type = HashMap<String, u64>)]
    totals: CountersNow,
    /// Number of closed connections.
    connections_ended: u64,
    /// Number of connections that were refused because the switch was already connected.
    connections_refused: u64,
    /// Number of connections that were refused because their IP address is not allowed.
    addresses_refused: u64,
}

/// Returns the status of the hive with its apps and bees, and the status of the connections of switches.
///
/// With `?sizes` it also returns the encoded size of the state of the busiest bees.
#[utoipa::path(get, path = "/api/v1/status", params(("sizes" = Option<bool>, Query, description = "Also return the encoded size of the state of the busiest bees, in bytes.")), responses((status = 200, body = Status), Failure))]
pub(super) async fn status(State(Served { hive, directory, .. }): State<Served>, uri: Uri) -> Json<Status> {
    let (connections_ended, connections_refused) = directory.ended();
    Json(Status {
        version: env!("CARGO_PKG_VERSION"),
        hive: if matches!(uri.query(), Some("sizes" | "sizes=true")) {
            hive.status_with_sizes()
        } else {
            hive.status()
        },
        switches: directory.status(hive.now()),
        totals: directory.totals(),
        connections_ended,
        connections_refused,
        addresses_refused: directory.addresses_refused(),
    })
}
