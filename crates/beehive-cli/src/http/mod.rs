//! The HTTP interface of the controller: health, metrics, status, switches, flows, links, hosts and dead letters.
//!
//! The interface is read-only with three exceptions: it can start a reconciliation of flows, which would otherwise
//! start within a minute; it can resend or discard dead letters; and it can reload the configuration file. It cannot
//! install flows or change settings.
//!
//! A request passes through [`server`] (connection limits and timeouts) and [`guard`] (host name, origin, token,
//! number of requests), and then reaches the endpoint.

mod connections;
mod dead_letters;
mod failure;
mod fan_out;
mod flows;
mod guard;
mod host_header;
mod metrics;
mod ofctl;
mod reload;
mod server;
mod status;
mod switches;
pub(crate) mod token;
mod top;
mod topology;

pub(crate) use guard::Guard;
pub(crate) use switches::node;
pub(crate) use token::Token;

use crate::api::{Failed, Failure, FailureCode};
use crate::controller::Reloader;
use axum::middleware;
use axum::{Json, Router};
use beehive_core::Hive;
use beehive_nom::driver::Directory;
use beehive_raft::Data;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as OpenApiDocument;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The state needed by the endpoints to answer requests.
#[derive(Clone)]
pub(crate) struct Served {
    /// The hive that runs the apps.
    pub(crate) hive: Hive,
    /// The switch connections.
    pub(crate) directory: Arc<Directory>,
    /// Reloads the configuration file; `None` if the controller was started without one.
    pub(crate) reloader: Option<Arc<Reloader>>,
    /// The folder in which state is kept; `None` if state is in memory only.
    pub(crate) data: Option<Data>,
}

/// Serves HTTP on `socket` until the sender of `stopped` is dropped. `guard` decides which requests are admitted.
pub(crate) async fn serve(socket: TcpListener, served: Served, guard: Guard, stopped: watch::Receiver<()>) {
    server::serve(socket, router(served, guard), stopped).await
}

/// Serves another program's `router` on `socket` until the sender of `stopped` is dropped, with the limits and
/// the checks of the controller's interface.
#[cfg(feature = "cluster")]
pub(crate) async fn serve_router(socket: TcpListener, router: Router, stopped: watch::Receiver<()>) {
    let guard = Guard::new(Vec::new(), None);
    server::serve(socket, router.layer(middleware::from_fn_with_state(guard, guard::admit)), stopped).await
}

/// The OpenAPI description. Paths and types are collected from the handlers.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Beehive controller",
        description = "Status of a controller and its switches. The interface is read-only, except that it can reconcile flows, \
            resend or discard dead letters, and reload the configuration file. Failures are objects with the key `error`."
    ),
    components(schemas(Failed))
)]
struct Description;

/// Returns the router together with its OpenAPI description.
fn described() -> OpenApiRouter<Served> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(status::status))
        .routes(routes!(switches::switches))
        .routes(routes!(switches::ports))
        .routes(routes!(topology::links))
        .routes(routes!(topology::hosts))
        .routes(routes!(flows::flows))
        .routes(routes!(flows::verify))
        .routes(routes!(top::top))
        .routes(routes!(dead_letters::list, dead_letters::discard))
        .routes(routes!(dead_letters::resend))
        .routes(routes!(reload::reload))
        .routes(routes!(openapi))
        .routes(routes!(metrics::metrics))
        .routes(routes!(health))
}

fn router(served: Served, guard: Guard) -> Router {
    let (router, _) = described().split_for_parts();
    router
        .method_not_allowed_fallback(async || {
            failed(FailureCode::WrongMethod, "this path does not support this method")
        })
        .fallback(async || failed(FailureCode::UnknownPath, PATHS))
        .layer(middleware::from_fn_with_state(guard, guard::admit))
        .with_state(served)
}

fn failed(code: FailureCode, message: &str) -> Failure {
    Failure { code, message: message.to_string() }
}

/// Returns the OpenAPI 3.1 description of this interface.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, body = Object), Failure))]
async fn openapi() -> Json<OpenApiDocument> {
    Json(described().into_openapi())
}

/// The message for requests to unknown paths.
const PATHS: &str = "unknown path (expected /health, /metrics or, under /api/v1, status, switches, ports, links, hosts, \
    flows, flows/verify (POST), top, dead-letters (GET, DELETE), dead-letters/resend (POST), reload (POST) or openapi.json)";

/// Returns `ok` while the controller is running.
#[utoipa::path(get, path = "/health", responses((status = 200, body = String, content_type = "text/plain"), Failure))]
async fn health() -> &'static str {
    "ok\n"
}
