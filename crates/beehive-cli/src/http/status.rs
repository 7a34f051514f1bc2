//! `/api/v1/status`: the status of the hive and of the connections of switches.

use crate::api::Failure;
use crate::http::Served;
use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use beehive_nom::driver::{CountersNow, NodeStatus};
use beehive_raft::{Data, LogStatus};
use serde::Serialize;
use utoipa::ToSchema;

/// The answer to `GET /api/v1/status`.
#[derive(Serialize, ToSchema)]
pub(super) struct Status {
    /// The controller's version.
    version: &'static str,
    /// The place where the apps' state is kept.
    state: StateKept,
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

/// The place where the apps' state is kept.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kept", rename_all = "snake_case")]
enum StateKept {
    /// In memory only: a restart loses it.
    InMemory,
    /// In a folder, and in effect only when it is on disk.
    OnDisk {
        /// The folder.
        folder: String,
        /// Number of starts with this folder.
        starts: u64,
        /// Number of log entries since the start.
        entries: u64,
        /// Number of syncs since the start. Entries that wait at the same time share one.
        syncs: u64,
        /// Number of bytes logged since the start.
        bytes: u64,
        /// Number of checkpoints since the start.
        checkpoints: u64,
        /// Why changes of state wait: the disk is full. `null` if they do not.
        held_up: Option<String>,
        /// Why changes of state are refused until the next start: the disk has failed. `null` if they are not.
        failed: Option<String>,
    },
}

impl StateKept {
    fn of(data: Option<&Data>) -> StateKept {
        let Some(data) = data else { return StateKept::InMemory };
        let LogStatus { entries, syncs, bytes, checkpoints, held_up, failed, .. } = data.status();
        StateKept::OnDisk {
            folder: data.folder().display().to_string(),
            starts: data.identity().incarnation,
            entries,
            syncs,
            bytes,
            checkpoints,
            held_up,
            failed,
        }
    }
}

/// Returns the status of the hive with its apps and bees, and the status of the connections of switches.
///
/// With `?sizes` it also returns the encoded size of the state of the busiest bees.
#[utoipa::path(get, path = "/api/v1/status", params(("sizes" = Option<bool>, Query, description = "Also return the encoded size of the state of the busiest bees, in bytes.")), responses((status = 200, body = Status), Failure))]
pub(super) async fn status(
    State(Served { hive, directory, data, .. }): State<Served>,
    uri: Uri,
) -> Json<Status> {
    let (connections_ended, connections_refused) = directory.ended();
    Json(Status {
        version: env!("CARGO_PKG_VERSION"),
        state: StateKept::of(data.as_ref()),
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
