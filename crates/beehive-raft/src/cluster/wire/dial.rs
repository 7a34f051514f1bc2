//! Connects with another hive, and again when the connection breaks.

use super::codec::FrameCodec;
use super::counted::{Counted, CountedBy, Socket};
use super::frame::Frame;
use super::handshake::{self, Failure, Line, Us};
use super::identity::Ends;
use super::lane::Lane;
use super::outgoing::Outgoing;
use super::peer::{Admission, Direction, Peer};
use super::shared::Shared;
use super::tasks::Scope;
use super::{text, tls};
use crate::limits::wire as limits;
use http::uri::{PathAndQuery, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::{Request, Streaming};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The client of one HTTP/2 connection.
#[derive(Clone, Debug)]
pub(super) struct Client(SendRequest<Body>);

impl GrpcService<Body> for Client {
    type ResponseBody = Incoming;
    type Error = hyper::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<http::Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Why there is no connection.
struct Failed {
    text: String,
    /// Whether the two hives do not fit.
    is_misfit: bool,
}

/// How an attempt to have a connection has ended.
enum End {
    /// There was a connection.
    Ended,
    Failed(Failed),
    /// The address has changed.
    Moved,
}

/// Keeps a connection with another hive, as long as its address is known.
pub(super) async fn keep_connected(shared: Arc<Shared>, peer: Arc<Peer>) {
    let mut failures = 0;
    while let Some(address) = peer.address() {
        if shared.is_draining() {
            return;
        }
        let begun = Instant::now();
        let scope = shared.scope.inside();
        let end = tokio::select! {
            biased;
            connected = connect(&shared, &peer, &address, &scope) => connected.map_or_else(End::Failed, |()| End::Ended),
            () = peer.changed.notified() => End::Moved,
        };
        scope.end();

        failures = match end {
            End::Moved => {
                failures = 0;
                continue;
            }
            // a connection that breaks again and again is no better than one that cannot be made
            End::Ended if begun.elapsed() > limits::BACKOFF_MAX => 0,
            End::Ended => failures + 1,
            End::Failed(Failed { text, is_misfit }) => {
                match is_misfit {
                    true => peer.note_misfit(&text),
                    false => peer.note_refusal(&text),
                }
                failures + 1
            }
        };
        tokio::select! {
            biased;
            () = sleep(pause(&shared, &peer, failures)) => {}
            () = peer.changed.notified() => failures = 0,
            () = shared.draining.cancelled() => return,
        }
    }
}

/// The pause after a number of failures. It varies by half, so that hives do not all connect at the same moment.
fn pause(shared: &Shared, peer: &Peer, failures: u32) -> Duration {
    let whole = limits::BACKOFF_MIN * 2u32.pow(failures.saturating_sub(1).min(10));
    let part =
        xxh3_64_with_seed(&shared.identity.process, u64::from(peer.hive.0) << 32 | u64::from(failures));
    whole.min(limits::BACKOFF_MAX).mul_f64(0.5 + (part % 512) as f64 / 1024.0)
}

/// Connects, and returns when the connection has ended.
async fn connect(shared: &Arc<Shared>, peer: &Arc<Peer>, address: &str, scope: &Scope) -> Result<(), Failed> {
    let (socket, found) = reach(address).await.map_err(|text| Failed { text, is_misfit: false })?;
    let by = CountedBy::default();
    let failed =
        |why: &str, is_misfit| Failed { text: format!("hive {} at {found}: {why}", peer.hive.0), is_misfit };
    let broken = |why: String| match shared.credentials.is_none() && by.has_seen_tls() {
        true => failed(tls::UNEXPECTED, true),
        false => failed(&why, false),
    };

    let socket = Counted { socket, by: by.clone() };
    let socket: Box<dyn Socket> = match &shared.credentials {
        None => Box::new(socket),
        Some(credentials) => {
            let dialed = Box::pin(tls::dial(credentials, peer.hive, socket));
            match timeout(limits::HANDSHAKE_TIME_MAX, dialed).await {
                Ok(dialed) => Box::new(dialed.map_err(|why| failed(&why.why, why.is_misfit))?),
                Err(_) => return Err(broken(NO_ANSWER.into())),
            }
        }
    };
    let mut client = begin(socket, scope).await.map_err(broken)?;
    let shaken = shake(shared, peer, &mut client, scope, found);
    let (admission, lanes) = match timeout(limits::HANDSHAKE_TIME_MAX, shaken).await {
        Ok(shaken) => shaken.map_err(|why| match why {
            Refused::By(refused) => refused,
            Refused::Broken(why) => broken(why),
        })?,
        Err(_) => return Err(broken(NO_ANSWER.into())),
    };
    // the connection ends when its streams have ended
    drop(client);

    let _ = by.traffic.set(peer.traffic.clone());
    let (outgoing, answers) = lanes;
    let (lane_ended, mut ends) = mpsc::channel(Lane::COUNT);
    for (lane, answers) in Lane::ALL.into_iter().zip(answers) {
        let (outgoing, lane_ended) = (outgoing.clone(), lane_ended.clone());
        scope.spawn(async move {
            let end = outgoing.read(lane, answers).await;
            let _ = lane_ended.send(end).await;
        })
    }
    drop(lane_ended);
    peer.set_outgoing(Some(outgoing.clone()));
    let _in_use = InUse(peer, &outgoing);
    peer.note_connected();
    tracing::info!(peer = peer.hive.0, "connected with hive {} at {found}", peer.hive.0);

    let why = tokio::select! {
        biased;
        why = last_end(peer, &outgoing, &mut ends) => why,
        () = scope.ended() => "the connection has ended, or another one takes its place".into(),
        () = drained(shared, &outgoing) => "this hive stops".into(),
    };
    // first: a caller whose call has ended, and who looks at once, must not find the connection that broke
    peer.set_outgoing(None);
    outgoing.end(&format!("hive {} at {found}: {why}", peer.hive.0));
    drop(admission);
    tracing::info!(peer = peer.hive.0, "no longer connected with hive {} at {found}: {why}", peer.hive.0);
    Ok(())
}

/// Begins HTTP/2 on a socket.
pub(super) async fn begin(socket: Box<dyn Socket>, scope: &Scope) -> Result<Grpc<Client>, String> {
    let io = TokioIo::new(socket);
    let mut builder = Builder::new(scope.clone());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(limits::LANE_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .max_header_list_size(limits::HEADERS_BYTES_MAX)
        .keep_alive_interval(limits::PROBE_EVERY)
        .keep_alive_timeout(limits::PROBE_TIME_MAX)
        .keep_alive_while_idle(true);
    let begun = timeout(limits::HANDSHAKE_TIME_MAX, builder.handshake(io)).await;
    let (client, connection) = match begun {
        Ok(begun) => begun.map_err(|error| text::of_error(&error))?,
        Err(_) => return Err(NO_ANSWER.into()),
    };
    // if it fails, so do its streams, with the same reason
    scope.spawn(async move { connection.await.unwrap_or(()) });
    Ok(Grpc::with_origin(Client(client), Uri::from_static("http://beehive"))
        .max_decoding_message_size(limits::FRAME_BYTES_MAX))
}

const NO_ANSWER: &str = "it does not answer as a hive does; is its address right?";

/// Ends a connection that is no longer used, also if its task is dropped because the wire stops or the address has changed.
struct InUse<'a>(&'a Peer, &'a Outgoing);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.set_outgoing(None);
        self.1.end("this hive has closed the connection")
    }
}

/// Makes a TCP connection.
async fn reach(address: &str) -> Result<(TcpStream, SocketAddr), String> {
    let connected = timeout(limits::CONNECT_TIME_MAX, TcpStream::connect(address)).await;
    let socket = connected
        .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
        .map_err(|error| format!("cannot connect with {address}: {error}"))?;
    let found = socket.peer_addr().map_err(|error| format!("{address}: {error}"))?;
    socket.set_nodelay(true).map_err(|error| format!("{address}: {error}"))?;
    Ok((socket, found))
}

enum Refused {
    By(Failed),
    Broken(String),
}

/// Does the handshake and opens the lanes.
async fn shake(
    shared: &Arc<Shared>,
    peer: &Arc<Peer>,
    client: &mut Grpc<Client>,
    scope: &Scope,
    found: SocketAddr,
) -> Result<(Admission, (Arc<Outgoing>, Vec<Streaming<Frame>>)), Refused> {
    let (to, sent) = handshake::channel();
    let from = open(client, handshake::PATH, sent).await.map_err(Refused::Broken)?;
    // with TLS, the other side has shown the certificate of the expected hive
    let us = Us { identity: &shared.identity, key: &shared.key, shown: None };
    let mut line = Line::new(to, from);
    let admit = |identity: &_| peer.admit(identity, Direction::Dialed, scope);
    let (_, admission) =
        handshake::dial(us, peer.hive, &mut line, admit).await.map_err(|failure| match failure {
            Failure::Broken(why) => Refused::Broken(why),
            Failure::Refused(refusal, theirs) => Refused::By(Failed {
                text: refusal.text(Ends {
                    ours: &shared.identity,
                    theirs: theirs.as_deref(),
                    address: found,
                    shown: None,
                }),
                is_misfit: refusal.is_misfit(),
            }),
        })?;
    drop(line);

    let outgoing = Outgoing::new(scope.clone());
    let mut answers = Vec::with_capacity(Lane::COUNT);
    for lane in Lane::ALL {
        answers.push(open(client, lane.path(), outgoing.frames(lane)).await.map_err(Refused::Broken)?)
    }
    Ok((admission, (outgoing, answers)))
}

async fn open(
    client: &mut Grpc<Client>,
    path: &'static str,
    frames: impl futures_core::Stream<Item = Frame> + Send + 'static,
) -> Result<Streaming<Frame>, String> {
    let ready = client.ready().await;
    ready.map_err(|error| text::of_error(&error))?;
    let opened = client.streaming(Request::new(frames), PathAndQuery::from_static(path), FrameCodec).await;
    opened.map(tonic::Response::into_inner).map_err(|status| text::of_status(&status))
}

/// Waits until all lanes have ended, or one has failed. When the first ends, the other hive stops: nothing more is sent, and
/// for a while the answers that are on their way are taken.
async fn last_end(peer: &Peer, outgoing: &Outgoing, ends: &mut mpsc::Receiver<Result<(), String>>) -> String {
    match ends.recv().await {
        Some(Err(why)) => return why,
        _ => {
            peer.set_outgoing(None);
            outgoing.finish()
        }
    }
    let others = async {
        while let Some(end) = ends.recv().await {
            if let Err(why) = end {
                return why;
            }
        }
        String::new()
    };
    match timeout(limits::DRAIN_TIME_MAX, others).await {
        Ok(why) if !why.is_empty() => why,
        _ => "the other hive has closed the connection".into(),
    }
}

/// When this hive stops: sends what waits. The lanes end when the other hive has answered.
async fn drained(shared: &Shared, outgoing: &Outgoing) {
    shared.draining.cancelled().await;
    outgoing.finish();
    sleep(limits::DRAIN_TIME_MAX).await
}
