//! `/api/v1/top`: which bees have most to do, as `beehive top` shows it.

use crate::api::Failure;
use crate::http::Served;
use crate::http::switches::query;
use crate::observe::{Status, Top};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;

/// Rows of bees and of pairs that are told at most.
const ROWS_MAX: usize = 1_000;

/// How parameters is told.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TopQuery {
    /// Rows of bees and of pairs. Default 10; 1 000 at most.
    most: usize,
    /// Also the bytes of each bee's state; each of them is encoded for that, and its messages wait meanwhile.
    sizes: bool,
}

impl Default for TopQuery {
    fn default() -> Self {
        TopQuery { most: 10, sizes: false }
    }
}

/// Which bees have most to do, what merges them, and who exchanges most with whom, since the start.
#[utoipa::path(get, path = "/api/v1/top", params(TopQuery), responses((status = 200, body = Top), Failure))]
pub(super) async fn top(
    State(Served { hive, .. }): State<Served>,
    parameters: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<Top>, Failure> {
    let TopQuery { most, sizes } = query(parameters)?;
    if most > ROWS_MAX {
        return Err(Failure::bad_request(format!("most={most}: {ROWS_MAX} rows are told at most")));
    }
    let status = if sizes { hive.status_with_sizes() } else { hive.status() };
    // the view is of the status as it is served
    let served = serde_json::to_value(status).and_then(serde_json::from_value::<Status>);
    served.map(|status| Json(Top::of(&status, most))).map_err(Failure::unavailable)
}
