//! `/api/v1/status`: the hive and its switches, as JSON.

use crate::api::Failure;
use crate::http::Served;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use beehive_nom::driver::{CountersNow, NodeStatus};
use serde::Serialize;
use utoipa::ToSchema;

/// Everything.
#[derive(Serialize, ToSchema)]
pub(super) struct Status {
    /// The version of the controller.
    version: &'static str,
    /// The hive: its apps, their handlers and busiest bees.
    #[schema(value_type = Object)]
    hive: beehive_core::Status,
    /// Connections, whatever their state.
    #[schema(value_type = Vec<Object>)]
    switches: Vec<NodeStatus>,
    /// What was counted, of connections that are no more too.
    #[schema(value_type = HashMap<String, u64>)]
    totals: CountersNow,
    /// Connections that are over.
    connections_ended: u64,
    /// Connections that were refused as duplicates.
    connections_refused: u64,
    /// Connections that were refused for their address.
    addresses_refused: u64,
}

/// The hive, its apps and bees, and the connections of switches.
///
/// With `?sizes`: also the bytes of the state of the busiest bees.
#[utoipa::path(get, path = "/api/v1/status", params(("sizes" = Option<bool>, Query, description = "Also the bytes of the state of the busiest bees.")), responses((status = 200, body = Status), Failure))]
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
