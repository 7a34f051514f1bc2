//! Asks a controller for its status, over HTTP.

use super::status::{Served, Status};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// A controller that does not answer in this time does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest status that is read.
const STATUS_BYTES_MAX: usize = 64 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The status of the controller at `address`, with the sizes of states if asked for, or what is in the way, in words.
pub(super) fn status(address: SocketAddr, sizes: bool) -> Result<Status, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let body = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, fetch(address, sizes)).await })
        .map_err(|_| format!("{address} did not answer within {} s", PATIENCE.as_secs()))?
        .map_err(|error| {
            format!(
                "no controller answers at {address}: {error}\nhelp: `beehive controller` says where it serves HTTP when it \
                 starts; give that address with --http"
            )
        })?;
    let served: Served = serde_json::from_slice(&body).map_err(|error| {
        format!("what {address} answered is no status of this version of beehive: {error}")
    })?;
    Ok(served.hive)
}

async fn fetch(address: SocketAddr, sizes: bool) -> Result<Bytes, Failure> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // it ends with the sender, or with the runtime
    tokio::spawn(connection);
    let path = if sizes { "/api/v1/status?sizes" } else { "/api/v1/status" };
    let request = hyper::Request::get(path).header(HOST, address.to_string()).body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("it answers {status}").into());
    }
    Ok(Limited::new(response.into_body(), STATUS_BYTES_MAX).collect().await?.to_bytes())
}
