//! HTTP for people and their tools: health, metrics, status, switches and their flows, links and hosts.
//!
//! It changes nothing but that flows are put right at once which would be within the minute.

mod failure;
mod flows;
mod host;
mod metrics;
mod places;
mod server;
mod status;
mod switches;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use beehive_core::Hive;
use beehive_nom::driver::Directory;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

/// Requests that are answered at the same time; more are refused.
const REQUESTS_MAX: usize = 32;

/// What is told about.
#[derive(Clone)]
pub(crate) struct Served {
    /// The hive.
    pub(crate) hive: Hive,
    /// Its switches.
    pub(crate) directory: Arc<Directory>,
}

#[derive(Clone)]
struct Gate {
    hosts: Arc<[String]>,
    requests: Arc<Semaphore>,
}

/// Serves HTTP on `socket` until `stopped` says so, for those who ask for localhost, an address, or one of `hosts`.
pub(crate) async fn serve(
    socket: TcpListener,
    served: Served,
    hosts: Vec<String>,
    stopped: watch::Receiver<()>,
) {
    server::serve(socket, router(served, hosts), stopped).await
}

fn router(served: Served, hosts: Vec<String>) -> Router {
    let gate = Gate { hosts: hosts.into(), requests: Arc::new(Semaphore::new(REQUESTS_MAX)) };
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/status", get(status::status))
        .route("/api/v1/switches", get(switches::switches))
        .route("/api/v1/ports", get(switches::ports))
        .route("/api/v1/links", get(places::links))
        .route("/api/v1/hosts", get(places::hosts))
        .route("/api/v1/flows", get(flows::flows))
        .route("/api/v1/flows/verify", post(flows::verify))
        .fallback(|| async { (StatusCode::NOT_FOUND, PATHS) })
        .layer(middleware::from_fn_with_state(gate, admit))
        .with_state(served)
}

/// Lets in who asks for a host that is meant, and not too many at once. A page on the web that has its name point to
/// this machine gets nothing.
async fn admit(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(|host| host::is_meant(host, &gate.hosts)) {
        let why =
            "this host name is not served; use localhost or an address, or start with --http-host NAME\n";
        return (StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let Ok(_permit) = gate.requests.try_acquire() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many requests at the same time\n").into_response();
    };
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("x-content-type-options"),
        header::HeaderValue::from_static("nosniff"),
    );
    response
}

/// What is told to those who ask for something else.
const PATHS: &str = "there are /health, /metrics and, under /api/v1, status, switches, ports, links, hosts, flows and flows/verify (POST)\n";

async fn health() -> &'static str {
    "ok\n"
}
