//! `/api/v1/status`: the hive and its switches, as JSON.

use crate::http::Served;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use beehive_nom::driver::{CountersNow, NodeStatus};
use serde::Serialize;

/// Everything.
#[derive(Serialize)]
pub(super) struct Status {
    version: &'static str,
    hive: beehive_core::Status,
    switches: Vec<NodeStatus>,
    totals: CountersNow,
    connections_ended: u64,
    connections_refused: u64,
}

/// With `?sizes`: also the bytes of the state of the busiest bees.
pub(super) async fn status(State(Served { hive, directory }): State<Served>, uri: Uri) -> Json<Status> {
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
    })
}
