//! HTTP for people and their tools: health, metrics, status, switches and their flows, links, hosts, and dead letters.
//!
//! It changes nothing but that flows are put right at once which would be within the minute, that messages which could
//! not be handled are sent again or thrown away, and that the configuration file is read again.

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
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as OpenApiDocument;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What is told about.
#[derive(Clone)]
pub(crate) struct Served {
    /// The hive.
    pub(crate) hive: Hive,
    /// Its switches.
    pub(crate) directory: Arc<Directory>,
    /// Who reads the configuration file again; none where there is no file.
    pub(crate) reloader: Option<Arc<Reloader>>,
}

/// Serves HTTP on `socket` until `stopped` says so, for those whom `guard` lets in.
pub(crate) async fn serve(socket: TcpListener, served: Served, guard: Guard, stopped: watch::Receiver<()>) {
    server::serve(socket, router(served, guard), stopped).await
}

/// The description of the interface for programs; paths and types are added from the handlers.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Beehive controller",
        description = "What a controller knows of its switches, and of itself. Nothing here changes the network, but for flows \
            that are put right at once which would be within the minute, and for what the configuration file says when it is \
            read again. Failures are objects with `error`."
    ),
    components(schemas(Failed))
)]
struct Description;

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
            failed(FailureCode::WrongMethod, "this path is asked in another way")
        })
        .fallback(async || failed(FailureCode::UnknownPath, PATHS))
        .layer(middleware::from_fn_with_state(guard, guard::admit))
        .with_state(served)
}

fn failed(code: FailureCode, message: &str) -> Failure {
    Failure { code, message: message.to_string() }
}

/// This description, as OpenAPI 3.1.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, body = Object), Failure))]
async fn openapi() -> Json<OpenApiDocument> {
    Json(described().into_openapi())
}

/// What is told to those who ask for something else.
const PATHS: &str = "there are /health, /metrics and, under /api/v1, status, switches, ports, links, hosts, flows, \
    flows/verify (POST), top, dead-letters (GET, DELETE), dead-letters/resend (POST), reload (POST) and openapi.json, which describes them";

/// Whether the controller runs.
#[utoipa::path(get, path = "/health", responses((status = 200, body = String, content_type = "text/plain"), Failure))]
async fn health() -> &'static str {
    "ok\n"
}
