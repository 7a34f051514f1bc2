//! `/api/v1/reload`: reloads the configuration file, as SIGHUP does.

use crate::api::{Failure, FailureCode, Reloaded};
use crate::controller::ReloadError;
use crate::http::Served;
use crate::http::switches::query;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;

/// An empty set of query parameters: every parameter is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// Reloads the configuration file. The settings of all apps take effect, or none of them if the file has an error.
#[utoipa::path(post, path = "/api/v1/reload", responses((status = 200, body = Reloaded), Failure))]
pub(super) async fn reload(
    State(Served { reloader, .. }): State<Served>,
    parameters: Result<Query<NoParameters>, QueryRejection>,
) -> Result<Json<Reloaded>, Failure> {
    let NoParameters {} = query(parameters)?;
    let outcome = match reloader {
        Some(reloader) => reloader.reload().await,
        None => Err(ReloadError::NoFile),
    };

    outcome.map(Json).map_err(|why| {
        let code = match why {
            ReloadError::NoFile => FailureCode::NoConfiguration,
            ReloadError::Configuration(_) => FailureCode::BadConfiguration,
            ReloadError::NotYet(_) | ReloadError::Stopped | ReloadError::InCluster => {
                FailureCode::Unavailable
            }
        };
        Failure { code, message: why.to_string() }
    })
}
