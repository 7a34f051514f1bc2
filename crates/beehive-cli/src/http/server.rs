//! The HTTP server. Whatever clients do, the number of connections, their lifetime, and the time to receive a request
//! head are limited.
//!
//! `axum::serve` has none of these limits.

use super::connections::{ConnectionTracker, TrackedConnection};
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// Maximum number of connections. When it is reached, a new connection evicts an idle one.
const CONNECTIONS_MAX: usize = 64;
/// Interval at which the server looks for an idle connection to evict while a new one is waiting.
const EVICT_AGAIN: Duration = Duration::from_millis(20);
/// Time to receive the head of a request, counted from the start of the connection or the end of the previous response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum lifetime of a connection. Slow readers and clients that keep connections alive have to reconnect.
const CONNECTION_LIFETIME_MAX: Duration = Duration::from_secs(120);
/// Time for requests in flight to complete when the program stops or a connection's lifetime ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of the head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Serves `router` on `socket` until the sender of `stopped` is dropped, then waits for requests in flight.
pub(super) async fn serve(socket: TcpListener, router: Router, mut stopped: watch::Receiver<()>) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (over, tracker) = (stopped.clone(), ConnectionTracker::default());
    let accept = async {
        loop {
            match socket.accept().await {
                Ok((stream, _)) => {
                    let permit = make_room(&connections, &tracker).await;
                    // Tracks the connection before its task runs: in a burst, none of the tasks may have run yet, but
                    // one of their connections must be evictable.
                    let tracked = tracker.track();
                    let (router, over) = (router.clone(), over.clone());
                    tokio::spawn(async move {
                        serve_connection(stream, router, over, tracked).await;
                        drop(permit)
                    });
                }
                Err(error) => {
                    // out of file descriptors or memory: retries after a delay, during which some may be released
                    tracing::debug!(%error, "cannot accept an HTTP connection");
                    tokio::time::sleep(Duration::from_millis(100)).await
                }
            }
        }
    };

    tokio::select! {
        () = accept => {}
        () = dropped(&mut stopped) => {}
    }

    let all = connections.acquire_many(CONNECTIONS_MAX as u32);
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, all).await;
}

/// Waits until one more connection is allowed. At the limit, evicts the oldest idle connection. If all connections
/// are busy, evicts the first one that becomes idle.
async fn make_room(
    connections: &Arc<Semaphore>,
    tracker: &ConnectionTracker,
) -> Option<OwnedSemaphorePermit> {
    loop {
        if connections.available_permits() == 0 {
            tracker.evict_idle();
        }

        let permit = connections.clone().acquire_owned();
        if let Ok(permit) = tokio::time::timeout(EVICT_AGAIN, permit).await {
            // the semaphore is never closed
            return permit.ok();
        }
    }
}

/// Waits until the sender is dropped.
async fn dropped(stopped: &mut watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

/// Serves one connection until it ends, is evicted or reaches its maximum lifetime.
async fn serve_connection(
    stream: TcpStream,
    router: Router,
    mut stopped: watch::Receiver<()>,
    (tracked, evicted): (TrackedConnection, oneshot::Receiver<()>),
) {
    let router = TowerToHyperService::new(router);
    let answers = service_fn(|request| {
        let (in_flight, answer) = (tracked.begin_request(), router.call(request));
        async {
            let answer = answer.await;
            drop(in_flight);
            answer
        }
    });

    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), answers);
    tokio::pin!(connection);

    let done = tokio::select! {
        done = &mut connection => Some(done),
        () = dropped(&mut stopped) => None,
        _ = evicted => return,
        () = tokio::time::sleep(CONNECTION_LIFETIME_MAX) => None,
    };

    let done = match done {
        Some(done) => done,
        None => {
            // finishes the request in flight, but accepts no further ones
            connection.as_mut().graceful_shutdown();
            match tokio::time::timeout(DRAIN_TIMEOUT, connection).await {
                Ok(done) => done,
                Err(_) => return,
            }
        }
    };

    if let Err(error) = done {
        tracing::debug!(%error, "an HTTP connection ended with an error")
    }
}
