//! `/api/v1/top`: the busiest bees and pairs of bees, as `beehive top` shows them.

use crate::api::Failure;
use crate::http::Served;
use crate::http::switches::query;
use crate::observe::{Status, Top};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;

/// Maximum value of the parameter `most`.
const ROWS_MAX: usize = 1_000;

/// The query parameters of `/api/v1/top`.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TopQuery {
    /// Maximum number of bees, and of pairs of bees, to return. Default: 10; at most 1000.
    most: usize,
    /// Also return the encoded size of each bee's state, in bytes. Each bee is blocked while its state is encoded.
    sizes: bool,
}

impl Default for TopQuery {
    fn default() -> Self {
        TopQuery { most: 10, sizes: false }
    }
}

/// Lists the handlers, the busiest bees, and the pairs of bees that have exchanged the most messages since the start.
#[utoipa::path(get, path = "/api/v1/top", params(TopQuery), responses((status = 200, body = Top), Failure))]
pub(super) async fn top(
    State(Served { hive, .. }): State<Served>,
    parameters: Result<Query<TopQuery>, QueryRejection>,
) -> Result<Json<Top>, Failure> {
    let TopQuery { most, sizes } = query(parameters)?;
    if most > ROWS_MAX {
        return Err(Failure::bad_request(format!(
            "most={most} is out of range (expected at most {ROWS_MAX})"
        )));
    }
    let status = if sizes { hive.status_with_sizes() } else { hive.status() };
    // builds the view from the JSON form, because that is what the command `top` receives
    let served = serde_json::to_value(status).and_then(serde_json::from_value::<Status>);
    served.map(|status| Json(Top::of(&status, most))).map_err(Failure::unavailable)
}
